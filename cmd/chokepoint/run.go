package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"chokepoint/cmd/chokepoint/internal/session"
	"chokepoint/collectors/record"
	"chokepoint/workloads"
	"chokepoint/workloads/lock"
	"chokepoint/workloads/sandbox"
)

const runHelp = `chokepoint run lock [flags] sells units of a few rows from many workers, keeps a
record of it, and explains where the operations' time went.

Without a server to use it starts a private one (a sandbox) and ends it again.
Ctrl-C ends the run early but in order; a second one at once.`

func runCommand(ctx context.Context, w world, args []string) error {
	f := newRunFlags(w)
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		if err := parse(f.fs, args); errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError("run: which workload? There is: lock")
	}
	if args[0] != "lock" {
		return usageError("run: there is no workload %q; there is: lock", args[0])
	}
	args = args[1:]
	if err := parse(f.fs, args); err != nil {
		return err
	}
	plan, err := f.plan(args)
	if err != nil {
		return err
	}
	return runLock(ctx, w, f, plan)
}

// runFlags are the flags of run lock.
type runFlags struct {
	fs       *flag.FlagSet
	runs     *string
	output   *output
	strategy *string
	keys     *int
	workers  *int
	requests *uint64
	duration *time.Duration
	warmup   *time.Duration
	think    *time.Duration
	timeout  *time.Duration
	pool     *int
	stock    *int64
	seed     *uint64
	sandbox  *flavorFlag
	skew     *string
	durable  *bool
	prepared *bool
	dsn      *dsnFlag
	redis    *redisFlag
	lease    *time.Duration
	hold     *time.Duration
	fault    *string
	pyro     *string
	allow    *bool
	rate     *float64
	arrival  *string
	retries  *int
	base     *time.Duration
	most     *time.Duration
	jitter   *string
}

func newRunFlags(w world) *runFlags {
	fs := flags(w, "run", runHelp)
	return &runFlags{
		fs: fs, runs: runsFlag(fs, w), output: outputFlag(fs),
		strategy: fs.String("strategy", "pessimistic", "how the stock is kept right: "+strings.Join(lock.Strategies(), ", ")),
		keys:     fs.Int("keys", 1, "rows that the operations choose from"),
		workers:  fs.Int("concurrency", 50, "workers, each with one operation at a time"),
		requests: fs.Uint64("requests", 0, "end after so many measured operations; alone, the duration does not end the run"),
		duration: fs.Duration("duration", 10*time.Second, "end after this time"),
		warmup:   fs.Duration("warmup", time.Second, "load before measuring; with --requests at most a tenth of them"),
		think:    fs.Duration("think", 0, "mean pause of a worker between operations"),
		timeout:  fs.Duration("timeout", 10*time.Second, "time limit of one operation"),
		pool:     fs.Int("pool", 10, "connections of the pool, 0 is unlimited"),
		stock:    fs.Int64("stock", 1_000_000, "units of each row at the start"),
		seed:     fs.Uint64("seed", 1, "seed of the random choices"),
		dsn:      newDSNFlag(fs, "to load instead of a private one"),
		allow:    fs.Bool("allow-load", false, "load the server of the DSN, in a schema of our own"),
		skew:     fs.String("skew", lock.Uniform, "how operations choose their row: "+strings.Join(lock.Skews(), ", ")),
		durable:  fs.Bool("durable", false, "private server with the binary log on and a flush at each commit, as real ones have"),
		prepared: fs.Bool("prepared", false, "prepared statements, to which MariaDB's digests are blind"),
		redis:    newRedisFlag(fs, "to watch, and to lock in where the strategy does, instead of a private one"),
		lease:    fs.Duration("lease", 5*time.Second, "time after which a lock in Redis ends by itself"),
		hold:     fs.Duration("hold", 0, "time between reading and writing (SLEEP in the database), in which an operation holds what it has locked"),
		pyro:     fs.String("pyroscope", "", "`URL` of a Pyroscope server that profiles are also sent to; one with a password belongs into the environment variable "+pyroscopeVariable),
		fault:    fs.String("fault", "", "`NAME[:mild|:strong][,NAME...]` of what goes wrong on purpose: "+strings.Join(lock.Faults(), ", ")),
		sandbox:  newFlavorFlag(fs),
		rate:     fs.Float64("rate", 0, "open loop: operations due a second, whatever becomes of those before; --concurrency caps those in flight, the rest wait in the queue"),
		arrival:  fs.String("arrival", workloads.Poisson, "how operations of an open loop come due: "+strings.Join(workloads.Arrivals(), ", ")),
		retries:  fs.Int("max-retries", 10, "attempts after the first, for strategies that try again"),
		base:     fs.Duration("backoff-base", time.Millisecond, "wait before the second attempt, doubled for each further one"),
		most:     fs.Duration("backoff-cap", 100*time.Millisecond, "longest wait between attempts"),
		jitter:   fs.String("jitter", workloads.FullJitter, "how that wait is spread: "+strings.Join(workloads.Jitters(), ", ")),
	}
}

// plan checks the flags and makes the plan of the run.
func (f *runFlags) plan(args []string) (session.Plan, error) {
	set := map[string]bool{}
	f.fs.Visit(func(fl *flag.Flag) { set[fl.Name] = true })
	p := session.Plan{
		Lock: lock.Options{Strategy: *f.strategy, Keys: *f.keys, Skew: *f.skew, Stock: *f.stock, Hold: *f.hold, Lease: *f.lease, MaxRetries: *f.retries,
			Backoff: workloads.BackoffPolicy{Base: *f.base, Cap: *f.most, Jitter: *f.jitter}},
		Load: workloads.Load{Operation: lock.Operation, Workers: *f.workers, Rate: *f.rate, Arrival: *f.arrival, Think: *f.think,
			Requests: *f.requests, Duration: *f.duration, Timeout: *f.timeout, Seed: *f.seed},
		Warmup: *f.warmup,
		Pool:   *f.pool, Prepared: *f.prepared, Args: f.args(), Parameters: map[string]string{}, Tool: build(),
	}
	if set["requests"] && !set["duration"] {
		p.Load.Duration = 0
	}
	f.fs.VisitAll(func(fl *flag.Flag) {
		if recorded(fl.Name) {
			p.Parameters[fl.Name] = fl.Value.String()
		}
	})
	var err error
	if p.Lock.Faults, err = lock.ParseFaults(*f.fault); err != nil {
		return p, usageError("run: --fault: %w", err)
	}
	_, err = f.sandbox.flavor("run")
	return p, errors.Join(err, f.output.check(), check(p))
}

// args are the words that make the run again: the flags that were set, without
// those that only say where the result goes.
func (f *runFlags) args() []string {
	out := []string{}
	f.fs.Visit(func(fl *flag.Flag) {
		if recorded(fl.Name) {
			if b, ok := fl.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
				out = append(out, "--"+fl.Name+"="+fl.Value.String())
				return
			}
			out = append(out, "--"+fl.Name, fl.Value.String())
		}
	})
	return out
}

// recorded tells whether a flag goes into the record: not those that only say
// where the result goes, and never those that may hold a password.
func recorded(name string) bool {
	return !slices.Contains([]string{"runs", "output", "mysql-dsn", "redis-url", "pyroscope"}, name)
}

// Bounds of what a run may ask of this machine.
const (
	maxConcurrency = 10_000
	maxKeys        = 10_000_000
	maxRate        = 100_000
)

func check(p session.Plan) error {
	l := p.Load
	switch {
	case !slices.Contains(lock.Strategies(), p.Lock.Strategy):
		return usageError("run: there is no strategy %q; there are: %s", p.Lock.Strategy, strings.Join(lock.Strategies(), ", "))
	case !slices.Contains(lock.Skews(), p.Lock.Skew):
		return usageError("run: there is no skew %q; there are: %s", p.Lock.Skew, strings.Join(lock.Skews(), ", "))
	case l.Workers < 1 || l.Workers > maxConcurrency:
		return usageError("run: --concurrency must be 1 to %d", maxConcurrency)
	case p.Lock.Keys < 1 || p.Lock.Keys > maxKeys:
		return usageError("run: --keys must be 1 to %d", maxKeys)
	case p.Pool < 0 || p.Pool > maxConcurrency:
		return usageError("run: --pool must be 0 (unlimited) to %d", maxConcurrency)
	case p.Lock.Stock < 0:
		return usageError("run: --stock must not be negative")
	case l.Duration < 0 || p.Warmup < 0 || l.Think < 0:
		return usageError("run: --duration, --warmup and --think must not be negative")
	case l.Timeout <= 0:
		return usageError("run: --timeout must be positive")
	case l.Duration == 0 && l.Requests == 0:
		return usageError("run: --duration 0 needs --requests, or the run would not end")
	case !(l.Rate >= 0 && l.Rate <= maxRate):
		return usageError("run: --rate must be 0 (closed loop) to %d operations a second", maxRate)
	case l.Rate > 0 && l.Think > 0:
		return usageError("run: --think is for a closed loop; with --rate operations come due by themselves")
	case !slices.Contains(workloads.Arrivals(), l.Arrival):
		return usageError("run: there is no arrival %q; there are: %s", l.Arrival, strings.Join(workloads.Arrivals(), ", "))
	case p.Lock.Hold < 0 || p.Lock.Hold > 0 && !lock.Holds(p.Lock.Strategy):
		return usageError("run: --hold must not be negative, and strategy %s does nothing between reading and writing", p.Lock.Strategy)
	case p.Lock.Hold >= l.Timeout:
		return usageError("run: --hold must be shorter than --timeout, or no operation could succeed")
	case p.Lock.Lease < time.Millisecond:
		return usageError("run: --lease must be at least 1ms")
	case p.Lock.MaxRetries < 0:
		return usageError("run: --max-retries must not be negative")
	}
	if err := errors.Join(p.Lock.Backoff.Check(), p.Lock.Check()); err != nil {
		return usageError("run: %w", err)
	}
	return nil
}

// runLock makes the run in a sandbox and explains it.
func runLock(ctx context.Context, w world, f *runFlags, p session.Plan) error {
	log := slog.New(slog.NewTextHandler(w.stderr, nil))
	root, err := makeRuns(*f.runs)
	if err != nil {
		return err
	}
	defer root.Close()
	pyroscope, err := f.pyroscope(w)
	if err != nil {
		return err
	}
	to, end, err := f.target(ctx, w, log, p)
	if err != nil {
		return err
	}
	defer end()
	progress := newProgress(w)
	id, err := session.Run(ctx, session.Env{Runs: root, MySQL: to.mysql, Redis: to.redis, Pyroscope: pyroscope, Log: log, Progress: progress.tell}, p)
	progress.end()
	if err != nil {
		return advise(ctx, err)
	}
	fmt.Fprintf(w.stderr, "record: %s (explain it again with: chokepoint analyze --run-id %s)\n", id, id)
	r, err := record.Open(root, id)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = explain(w, r, f.output)
	return err
}

// pyroscopeVariable is where the URL of a Pyroscope server may stand.
const pyroscopeVariable = "CHOKEPOINT_PYROSCOPE_URL"

// pyroscope is the URL that was given, or empty.
func (f *runFlags) pyroscope(w world) (string, error) {
	if *f.pyro == "" {
		return w.getenv(pyroscopeVariable), nil
	}
	if u, err := url.Parse(*f.pyro); err == nil && u.User != nil {
		return "", usageError("run: --pyroscope: it holds a user or password, which every user of this machine can read in the list of processes: put the URL into the environment variable %s", pyroscopeVariable)
	}
	return *f.pyro, nil
}

// target is what a load runs against.
type target struct {
	mysql session.MySQL
	redis session.Redis
}

// target is the server of the DSN that was given, or a sandbox, with the Redis
// server of the URL, or the sandbox's. The function that it returns ends it.
func (f *runFlags) target(ctx context.Context, w world, log *slog.Logger, p session.Plan) (target, func(), error) {
	cfg, err := f.dsn.config(w, "run")
	o, err1 := f.redis.options(w, "run")
	flavor, err2 := f.sandbox.flavor("run")
	if err := errors.Join(err, err1, err2); err != nil {
		return target{}, nil, err
	}
	needsRedis := p.Lock.NeedsRedis()
	switch {
	case o != nil && needsRedis && !*f.allow:
		return target{}, nil, usageError("run: strategy %s would lock in the Redis server at %s, which chokepoint did not start; if that is what you want, say --allow-load (it uses keys that begin with %s only)", p.Lock.Strategy, o.Addr, lock.KeyPrefix)
	case cfg == nil:
		return f.private(ctx, w, log, p, flavor, o)
	case !*f.allow:
		return target{}, nil, usageError("run: this would load the server at %s, which chokepoint did not start; if that is what you want, say --allow-load (it works in schema %s only)", cfg.Addr, session.Schema)
	case flavor != "" || *f.durable:
		return target{}, nil, usageError("run: --sandbox and --durable are for private servers, and a DSN is given")
	case needsRedis && o == nil:
		return target{}, nil, usageError("run: strategy %s needs a Redis server beside that of the DSN: give --redis-url", p.Lock.Strategy)
	}
	return target{foreign(cfg), foreignRedis(o)}, func() {}, nil
}

// private starts a sandbox for the load; o is a Redis server to use instead of
// its own, or nil.
func (f *runFlags) private(ctx context.Context, w world, log *slog.Logger, p session.Plan, flavor sandbox.Flavor, o *redis.Options) (target, func(), error) {
	so := sandbox.Options{Flavor: flavor, MaxConnections: p.Pool}
	if so.MaxConnections == 0 {
		so.MaxConnections = p.Load.Workers
	}
	if *f.durable {
		so.Variables = durable()
	}
	sb, end, err := startSandbox(ctx, w, log, so)
	if err != nil {
		return target{}, nil, err
	}
	my := sb.MySQL()
	t := target{mysql: session.MySQL{Config: my.Config(), Sandbox: true, PID: my.PID}, redis: privateRedis(sb)}
	if o != nil {
		t.redis = foreignRedis(o)
	}
	return t, end, nil
}

// makeRuns opens the folder of the records, and makes it if need be.
func makeRuns(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("the folder for records: %w", err)
	}
	return os.OpenRoot(dir)
}

// durable are the settings of a server that loses nothing. With the binary log
// and sync_binlog=1 the flush happens while the row is locked.
func durable() map[string]string {
	return map[string]string{
		"log-bin": "binlog", "server-id": "1", "sync-binlog": "1", "innodb-flush-log-at-trx-commit": "1", "innodb-doublewrite": "ON",
	}
}

// joined writes words as a shell would need them.
func joined(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = word
		if word == "" || strings.ContainsAny(word, " \t\"'$&|;<>()*?") {
			out[i] = strconv.Quote(word)
		}
	}
	return strings.Join(out, " ")
}
