// Package session runs a workload under its collectors into a record.
package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	driver "github.com/go-sql-driver/mysql"
	goredis "github.com/redis/go-redis/v9"

	"chokepoint/collectors"
	"chokepoint/collectors/goruntime"
	"chokepoint/collectors/host"
	"chokepoint/collectors/mysql"
	"chokepoint/collectors/operations"
	"chokepoint/collectors/pool"
	"chokepoint/collectors/profiler"
	"chokepoint/collectors/record"
	"chokepoint/collectors/redis"
	"chokepoint/workloads"
	"chokepoint/workloads/lock"
)

// Schema is where the lock workload works. Its prefix marks what is ours.
const Schema = "chokepoint_lock"

// process is the name under which the host source reports this process.
const process = "chokepoint"

// Plan is a run to be made.
type Plan struct {
	Lock     lock.Options
	Load     workloads.Load // of the measured phase; First is set by the session
	Warmup   time.Duration
	Pool     int // connections, 0 is unlimited
	Prepared bool
	// Unobserved leaves out all that watches the load but the meter, which is read
	// at both ends of the measured phase: to measure what watching costs.
	Unobserved bool
	// Args and Parameters go into the record as they are.
	Args       []string
	Parameters map[string]string
	Tool       record.Tool
}

// MySQL is the server to load.
type MySQL struct {
	Config  *driver.Config
	Sandbox bool
	PID     int // 0 if the server is not on this machine
}

// Redis is the Redis server to watch, and to lock in where the strategy does;
// without Options there is none.
type Redis struct {
	Options *goredis.Options
	Sandbox bool
	PID     int // 0 if the server is not on this machine
}

// Env is the world that a session runs in.
type Env struct {
	Runs  *os.Root // where records go
	MySQL MySQL
	Redis Redis
	Log   *slog.Logger
	// Pyroscope is the URL of a server that profiles are also sent to, or empty.
	Pyroscope string
	// Progress, if not nil, is told how far the run is, several times a second.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Phase      string
	Elapsed    time.Duration // of the phase
	Duration   time.Duration // of the whole phase, 0 if the load ends by count
	Operations uint64        // ended in the phase
	Requests   uint64        // in the whole phase, 0 if it ends by time
}

// Run makes the run and returns the id of its record. Ending ctx ends the load
// early but in order: what has started is drained, and the record is complete
// but for its status. A run that cannot begin leaves no record; a later error
// leaves the record there is.
func Run(ctx context.Context, env Env, p Plan) (record.ID, error) {
	s := &session{env: env, plan: p, started: time.Now()}
	defer s.close()
	if err := s.startSending(); err != nil {
		return "", err
	}
	defer s.endSending()
	if err := s.prepare(ctx); err != nil {
		return "", err
	}
	if err := s.create(); err != nil {
		return "", err
	}
	err := s.run(ctx)
	s.endSending()
	end := record.End{AtS: s.now().Seconds(), Status: record.Complete, Books: s.books}
	if ctx.Err() != nil {
		end.Status = record.Interrupted
	}
	if err != nil {
		end.Error = err.Error()
	}
	if full := s.w.Err(); full != nil {
		env.Log.Warn("the record is not complete; the run went on", "error", full)
		end.Error = errors.Join(err, full).Error()
	}
	return s.id, errors.Join(err, s.w.Close(end))
}

type session struct {
	env     Env
	plan    Plan
	started time.Time
	id      record.ID
	w       *record.Writer
	rec     collectors.Recorder
	server  *mysql.Server
	claimed *sql.Conn        // has the named lock of the schema
	redis   *redis.Server    // nil if there is none
	locks   *goredis.Client  // the load's own, nil unless it needs one
	unclaim func()           // nil unless our keys in Redis are claimed
	sender  *profiler.Sender // nil unless profiles are sent on
	pool    *workloads.Pool
	work    *lock.Workload
	meter   *workloads.Meter
	sources []collectors.Source // all but operations
	books   *record.Books
}

func (s *session) now() time.Duration { return time.Since(s.started) }

func (s *session) create() error {
	s.id = record.NewID(s.started, "lock")
	w, err := record.Create(s.env.Runs, record.Run{
		ID: s.id, Tool: s.plan.Tool, Started: s.started.UTC(), Workload: s.describeWorkload(), Host: describeHost(),
	})
	if err != nil {
		return err
	}
	s.w = w
	s.rec = collectors.Recorder{W: w, Now: s.now}
	return nil
}

func (s *session) describeWorkload() record.Workload {
	p := s.plan
	wl := record.Workload{
		Name: "lock", Strategy: p.Lock.Strategy, Seed: p.Load.Seed, Concurrency: p.Load.Workers, ThinkS: p.Load.Think.Seconds(), OfferedPerS: p.Load.Rate,
		Args: p.Args, Parameters: p.Parameters, Fault: p.faults(),
	}
	if p.Pool > 0 {
		wl.Resources = append(wl.Resources, record.Resource{Name: "pool:mysql", Capacity: p.Pool})
	}
	if p.Load.Rate > 0 {
		wl.Concurrency = 0 // operations come from outside, any number of them
		wl.Resources = append(wl.Resources, record.Resource{Name: "slot", Capacity: p.Load.Workers})
	}
	return wl
}

// close closes what prepare has opened.
func (s *session) close() {
	if s.pool != nil {
		s.pool.DB.Close()
	}
	if s.claimed != nil {
		s.claimed.Close()
	}
	if s.server != nil {
		s.server.DB.Close()
	}
	if s.unclaim != nil {
		s.unclaim()
	}
	for _, c := range []*goredis.Client{s.locks, s.redisClient()} {
		if c != nil {
			c.Close()
		}
	}
}

func (s *session) run(ctx context.Context) error {
	if err := s.describe(ctx); err != nil {
		return err
	}
	// What has to be read at the end is read even after Ctrl-C.
	rest := context.WithoutCancel(ctx)
	s.idle(ctx)

	polling, stop := context.WithCancel(rest)
	defer stop()
	waitSlow := s.poll(polling, s.sources, slowReading())
	s.warmUp(ctx)
	if ctx.Err() != nil {
		stop()
		waitSlow()
		return errors.New("interrupted before the measured phase")
	}
	stopProfiling := s.profile(record.PhaseMeasure)
	s.measure(ctx, polling)
	stop()
	waitSlow()
	s.readAll(rest)
	s.readEnds(rest)
	stopProfiling() // its last profiles cost time, which is not the load's
	s.clock(rest)
	if err := s.audit(rest); err != nil { // a server that has gone is no fault of the run
		s.rec.Event(record.Fault, "books", err.Error())
		s.env.Log.Warn("the books could not be read", "error", err)
	}
	return nil
}

// readTimeout bounds one reading, so that a server that hangs does not stop
// the observer.
const readTimeout = 5 * time.Second

func slowReading() collectors.Every {
	return collectors.Every{Steps: []collectors.Step{{Every: time.Second}}, Timeout: readTimeout}
}

// fineReading reads the first seconds finely, for runs that are over in one.
func fineReading() []collectors.Step {
	return []collectors.Step{{Every: 25 * time.Millisecond, Until: 4 * time.Second}, {Every: 100 * time.Millisecond}}
}

// operationsReading reads the first half second more finely: twenty slices must
// fit into a run of 0.2 s.
func operationsReading() collectors.Every {
	first := collectors.Step{Every: 10 * time.Millisecond, Until: 500 * time.Millisecond}
	return collectors.Every{Steps: append([]collectors.Step{first}, fineReading()...), Timeout: readTimeout}
}

func pingReading() collectors.Every {
	return collectors.Every{Steps: fineReading(), Timeout: readTimeout}
}

// locksReading leaves the server's lock tables their rest: they are refreshed
// only if nobody read them for 100 ms. With hundreds of waiters a reading takes
// some 50 ms of the server's time, so they take a tenth of it at most.
func locksReading() collectors.Every {
	return collectors.Every{Steps: []collectors.Step{{Every: 250 * time.Millisecond}}, Timeout: time.Second, Rest: 9}
}

// lockSources sample who waits for whom.
func (s *session) lockSources() []collectors.Source {
	return []collectors.Source{mysql.Locks{Server: s.server}, mysql.MetadataLocks{Server: s.server}}
}

// poll reads the sources until ctx ends; the function that it returns waits
// for the last reading.
func (s *session) poll(ctx context.Context, sources []collectors.Source, every collectors.Every) (wait func()) {
	done := make(chan struct{})
	left := len(sources)
	ended := make(chan struct{}, left)
	for _, src := range sources {
		go profiler.Observe(ctx, src.Name(), func(ctx context.Context) {
			s.rec.Poll(ctx, src, every)
			ended <- struct{}{}
		})
	}
	go func() {
		for range left {
			<-ended
		}
		close(done)
	}()
	return func() { <-done }
}

// idlePings are taken before the load: they bound what the network costs.
const idlePings = 20

func (s *session) idle(ctx context.Context) {
	s.phase(record.PhaseIdle, s.now())
	for range idlePings {
		s.readOne(ctx, mysql.Ping{Server: s.server})
	}
	s.clock(ctx)
}

func (s *session) phase(name string, at time.Duration) {
	s.w.Event(record.Event{T: at.Seconds(), Kind: record.Phase, Text: name})
}

// warmUp runs the load without measuring it, and drains it. A load that ends by
// count is warmed up with a tenth of that count, if that is shorter.
func (s *session) warmUp(ctx context.Context) {
	if s.plan.Warmup <= 0 {
		return
	}
	s.phase(record.PhaseWarmup, s.now())
	l := s.plan.Load
	l.Duration, l.Requests = s.plan.Warmup, l.Requests/10
	stopProfiling := s.profile(record.PhaseWarmup)
	stop := s.tellProgress(record.PhaseWarmup, l)
	workloads.Drive(ctx, s.work, s.meter, l, func(workloads.Done) {})
	stop()
	stopProfiling()
}

// measure reads all sources, runs the load to its drained end, and reads the
// operations again; the others follow when polling has stopped. In between
// nothing runs at the readings, so that client and server can be compared.
func (s *session) measure(ctx, polling context.Context) {
	s.readEnds(polling)
	s.readAll(polling)
	s.phase(record.PhaseMeasure, s.readOperations())

	observe, end := s.watch(polling)
	l := s.plan.Load
	l.First = 1 << 32 // apart from the warm-up's numbers: other random choices
	tell := s.tellProgress(record.PhaseMeasure, l)
	leave := s.intrude(polling)
	workloads.Drive(ctx, s.work, s.meter, l, observe)
	leave()
	tell()
	end()
	s.phase(record.PhaseDone, s.readOperations())
}

// watch reads what is read finely, until end is called, and gathers latencies
// from the operations that observe is told of.
func (s *session) watch(polling context.Context) (observe func(workloads.Done), end func()) {
	if s.plan.Unobserved {
		return func(workloads.Done) {}, func() {}
	}
	fine, stop := context.WithCancel(polling)
	wait := s.poll(fine, []collectors.Source{operations.Source{Meter: s.meter}}, operationsReading())
	waitPings := s.poll(fine, []collectors.Source{mysql.Ping{Server: s.server}}, pingReading())
	waitLocks := s.poll(fine, s.lockSources(), locksReading())
	lat := newLatencies(s.w, s.now)
	flushed := lat.flushEverySecond(fine)
	return lat.observe, func() {
		stop()
		wait()
		waitPings()
		waitLocks()
		flushed()
	}
}

// readOperations takes a reading of the meter and tells its time.
func (s *session) readOperations() time.Duration {
	b := &record.Batch{Source: operations.Name}
	operations.Source{Meter: s.meter}.Read(context.Background(), b) // reads memory, cannot fail
	s.w.Batch(b)
	return time.Duration(b.T * float64(time.Second))
}

func (s *session) readAll(ctx context.Context) {
	for _, src := range s.sources {
		s.readOne(ctx, src)
	}
}

// readEnds reads what is read at both ends of the measured phase only, outside
// all other readings: their differences must not hold what these cost.
func (s *session) readEnds(ctx context.Context) {
	for _, src := range s.endSources() {
		s.readOne(ctx, src)
	}
}

func (s *session) endSources() []collectors.Source {
	if s.plan.Unobserved {
		return nil
	}
	return []collectors.Source{mysql.Observer{Server: s.server}}
}

// readOne takes a reading of bounded length.
func (s *session) readOne(ctx context.Context, src collectors.Source) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s.rec.Read(ctx, src)
}

func (s *session) clock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	c, err := s.server.Clock(ctx, func() (float64, float64) {
		now := time.Now()
		return now.Sub(s.started).Seconds(), float64(now.UnixNano()) / 1e9
	})
	if err != nil {
		s.rec.Event(record.Fault, "clock", err.Error())
		return
	}
	s.w.Update(func(r *record.Run) { r.Clocks = append(r.Clocks, c) })
}

// audit compares the books: what was sold against what is gone.
func (s *session) audit(ctx context.Context) error {
	if !s.work.Sells() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	got, err := s.work.Audit(ctx)
	if err != nil {
		return err
	}
	var sold int64
	for f, n := range s.meter.Read().Finished {
		if f.Outcome == workloads.OK {
			sold += int64(n)
		}
	}
	b := &record.Books{What: "units left in stock", Expected: s.work.Initial() - sold, Actual: got.Left, Oversold: got.Oversold}
	b.LostUpdates = max(0, b.Actual-b.Expected)
	s.books = b
	return nil
}

// prepare connects, makes the schema and fills it, and opens the connections of
// the pool.
func (s *session) prepare(ctx context.Context) error {
	var err error
	if s.server, err = mysql.Connect(ctx, s.env.MySQL.Config); err != nil {
		return err
	}
	if s.claimed, err = claim(ctx, s.server.DB); err != nil {
		return err
	}
	if err := ownSchema(ctx, s.server.DB); err != nil {
		return err
	}
	cfg := s.env.MySQL.Config.Clone()
	cfg.DBName = Schema
	cfg.Logger = &driver.NopLogger{} // errors become outcomes
	cfg.ConnectionAttributes = "program_name:" + mysql.ProgramName
	cfg.InterpolateParams = !s.plan.Prepared // MariaDB's digests are blind to prepared statements
	conn, err := driver.NewConnector(cfg)
	if err != nil {
		return err
	}
	s.pool = workloads.NewPool("mysql", conn, s.plan.Pool, s.plan.Load.Workers)
	if err := s.prepareRedis(ctx); err != nil {
		return err
	}
	if s.work, err = lock.New(s.pool, s.locks, s.plan.Lock); err != nil {
		return err
	}
	if err := s.work.Setup(ctx); err != nil {
		return err
	}
	size := s.plan.Pool
	if size == 0 {
		size = s.plan.Load.Workers
	}
	if err := s.pool.Open(ctx, size); err != nil {
		return fmt.Errorf("opening %d connections: %w", size, err)
	}
	s.meter = workloads.NewMeter(s.now)
	return nil
}

// describe completes run.json and the record's head with what the servers say
// of themselves.
func (s *session) describe(ctx context.Context) error {
	s.makeSources()
	limits, err := s.server.Findings(ctx)
	if err != nil {
		return err
	}
	s.tellLimits("mysql", limits)
	if s.redis != nil {
		s.tellLimits("redis", s.redis.Findings(ctx))
	}
	return s.completeRun(ctx, limits)
}

func (s *session) makeSources() {
	if s.plan.Unobserved {
		return
	}
	s.sources = s.server.Sources(Schema, s.tellText)
	processes := []host.Process{{Name: process, PID: os.Getpid()}}
	if name := s.serverProcess(); name != "" {
		processes = append(processes, host.Process{Name: name, PID: s.env.MySQL.PID})
	}
	if s.redis != nil && s.env.Redis.PID != 0 {
		processes = append(processes, host.Process{Name: s.redis.Process(), PID: s.env.Redis.PID})
	}
	s.sources = append(s.sources, pool.Source{DB: s.pool.DB, Label: "mysql"}, goruntime.Source{}, host.Source{Processes: processes})
	s.sources = append(s.sources, s.redisSources()...)
}

// tellText writes the text of a digest into the record.
func (s *session) tellText(x mysql.Text) {
	labels := map[string]string{"digest": x.Digest}
	if x.Cut {
		labels["cut"] = "true"
	}
	s.w.Event(record.Event{T: s.now().Seconds(), Kind: record.Statement, Source: mysql.DigestsSource, Text: x.Text, Labels: labels})
}

// seenInData are findings that a run's own readings tell better: whether they
// touch its statements.
func seenInData() []string {
	return []string{"digest_table", "digest_length", "prepared_statements", "connections"}
}

// tellLimits writes down what the server does not show.
func (s *session) tellLimits(source string, all []collectors.Finding) {
	for _, f := range all {
		if f.State != collectors.Visible && !slices.Contains(seenInData(), f.Check) {
			s.w.Event(record.Event{T: s.now().Seconds(), Kind: record.Limit, Source: source, Text: f.Found,
				Labels: map[string]string{"check": f.Check, "costs": f.Costs}})
		}
	}
}

// serverProcess is the name for the server's process, empty if it is not here.
func (s *session) serverProcess() string {
	if s.env.MySQL.PID == 0 {
		return ""
	}
	return s.server.Process()
}

func (s *session) completeRun(ctx context.Context, findings []collectors.Finding) error {
	vars, err := s.server.Variables(ctx)
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Check == mysql.CheckMetadataLocks && f.State == collectors.Visible {
			vars[record.MetadataInstrument] = "ON"
		}
	}
	srv := record.Server{Kind: "mysql", Flavor: s.server.Flavor, Version: s.server.Text, Sandbox: s.env.MySQL.Sandbox,
		Process: s.serverProcess(), Schema: Schema, Variables: vars}
	return s.w.Update(func(r *record.Run) {
		r.Servers = append(r.Servers, srv)
		r.Servers = append(r.Servers, s.describeRedis()...)
		r.Metrics = slices.Concat(operations.Source{}.Metrics(), mysql.Ping{}.Metrics())
		for _, src := range slices.Concat(s.sources, s.lockSources(), s.endSources()) {
			r.Metrics = append(r.Metrics, src.Metrics()...)
		}
	})
}
