package analysis_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"testing"
	"time"

	"chokepoint/collectors"
	"chokepoint/collectors/goruntime"
	"chokepoint/collectors/host"
	"chokepoint/collectors/metric"
	"chokepoint/collectors/mysql"
	"chokepoint/collectors/operations"
	"chokepoint/collectors/pool"
	"chokepoint/collectors/record"
	"chokepoint/workloads"
)

// Names in the records.
const (
	simProcess    = "chokepoint"
	simSchema     = "chokepoint_lock"
	simCPUs       = 2 // of a machine whose processors are not short
	simGoroutines = 10
	simConns      = 2 // of the observer
)

// simRecorder writes the record of a run.
type simRecorder struct {
	w    *record.Writer
	told map[string]bool // digests whose text is written
	errs []error
}

// simRun is a run and the record that it left.
type simRun struct {
	root   string // the folder of runs, for os.OpenRoot
	id     record.ID
	result simResult
}

// record runs the case and writes its record.
func (c simCase) record(tb testing.TB, o simOptions) simRun {
	tb.Helper()
	dir := tb.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		tb.Fatal(err)
	}
	defer root.Close()
	w := newSimWorld(c, o)
	meta := w.meta(c)
	out, err := record.Create(root, meta)
	if err != nil {
		tb.Fatal(err)
	}
	w.rec = &simRecorder{w: out, told: map[string]bool{}}
	r := w.simulate(tb)
	if err := errors.Join(w.rec.errs...); err != nil {
		tb.Fatal(err)
	}
	return simRun{root: dir, id: meta.ID, result: r}
}

// measure runs the case without a record, in which case the same happens.
func (c simCase) measure(tb testing.TB, o simOptions) simResult {
	tb.Helper()
	return newSimWorld(c, o).simulate(tb)
}

func (w *simWorld) simulate(tb testing.TB) (r simResult) {
	tb.Helper()
	w.driver = w.engine.Spawn(true, func(p *simProc) { r = w.run(p) })
	if err := cmp.Or(w.engine.Run(), w.err); err != nil {
		tb.Fatal(err)
	}
	return r
}

func (r *simRecorder) note(err error) {
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

func (r *simRecorder) event(e record.Event) { r.note(r.w.Event(e)) }

// read takes one reading. That of the operations is the real source's.
func (r *simRecorder) read(w *simWorld, source string) {
	b := &record.Batch{Source: source, T: w.engine.now.Seconds(), Took: simReading.Seconds()}
	if source == operations.Name {
		r.note(operations.Source{Meter: w.meter}.Read(context.Background(), b))
	} else {
		simReadings()[source](w, b)
	}
	if len(b.Values) > 0 {
		r.note(r.w.Batch(b))
	}
	if source == mysql.DigestsSource {
		r.tell(w)
	}
}

// meta is what run.json holds.
func (w *simWorld) meta(c simCase) record.Run {
	return record.Run{
		ID:      simID(c.name, w.options),
		Tool:    record.Tool{Version: "simulated", Go: "go1.26"},
		Started: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
		Workload: record.Workload{
			Name: "lock", Strategy: c.strategy, Variant: c.name, Seed: w.options.seed, Concurrency: c.params.N, ThinkS: c.params.Think.Seconds(),
			OfferedPerS: c.params.Rate, Args: []string{"run", "lock"}, Parameters: w.settings(c), Resources: w.capacities(),
		},
		Host:    record.Host{OS: "linux", Kernel: "simulated", CPUs: w.cpus(), GOMAXPROCS: w.cpus(), MemoryBytes: 8 << 30, Process: simProcess},
		Servers: []record.Server{w.server()},
		Clocks:  []record.Clock{{Server: "mysql", RTTS: simPingTakes.Seconds()}},
		Metrics: w.metrics(),
	}
}

// simID makes the same id for the same run.
func simID(name string, o simOptions) record.ID {
	h := fnv.New32a()
	fmt.Fprint(h, name, o)
	return record.ID(fmt.Sprintf("20261201T000000Z-lock-%04x", h.Sum32()&0xffff))
}

func (w *simWorld) settings(c simCase) map[string]string {
	p := c.params
	return map[string]string{
		"strategy": c.strategy, "concurrency": strconv.Itoa(p.N), "duration": p.T.String(), "think": p.Think.String(),
		"pool": strconv.Itoa(p.Pool), "keys": strconv.Itoa(p.Rows), "seed": strconv.FormatUint(w.options.seed, 10),
	}
}

func (w *simWorld) capacities() []record.Resource {
	rs := []record.Resource{}
	for _, r := range []*simResource{w.pool, w.slot, w.mutex} {
		if r.capacity < simUnlimited {
			rs = append(rs, record.Resource{Name: r.name, Capacity: r.capacity})
		}
	}
	return rs
}

// cpus are those of the machine that the load runs on.
func (w *simWorld) cpus() int {
	elsewhere := w.options.hidden && w.params.Processors == simDatabaseCPU
	if w.params.Cores > 0 && !elsewhere {
		return w.params.Cores
	}
	return simCPUs
}

func (w *simWorld) flavor() string {
	if w.options.flavor == "" {
		return mysql.MariaDB
	}
	return w.options.flavor
}

func (w *simWorld) server() record.Server {
	s := record.Server{Kind: "mysql", Flavor: w.flavor(), Version: "10.11.19-MariaDB-0+deb12u1", Sandbox: true, Process: w.database(), Schema: simSchema,
		Variables: map[string]string{"performance_schema": "ON", "innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "log_bin": "ON"}}
	if s.Flavor == mysql.MySQL {
		s.Version = "9.7.0"
	}
	return s
}

// database is the name of the database's process, "" where it is not seen.
func (w *simWorld) database() string {
	switch {
	case w.options.hidden:
		return ""
	case w.flavor() == mysql.MySQL:
		return "mysqld"
	default:
		return "mariadbd"
	}
}

func (w *simWorld) metrics() []metric.Desc {
	server := &mysql.Server{Flavor: w.flavor()}
	sources := []collectors.Source{operations.Source{}, mysql.Ping{}, mysql.Locks{}, pool.Source{}, goruntime.Source{}, host.Source{}}
	sources = append(sources, server.Sources(simSchema, func(mysql.Text) {})...)
	var ds []metric.Desc
	for _, s := range sources {
		ds = append(ds, s.Metrics()...)
	}
	return ds
}

// latencies writes the latency log: one interval, the measured phase.
func (r *simRecorder) latencies(t *simTally, from, to float64) {
	for _, stage := range []string{record.StageTotal, string(workloads.PoolWait), record.StagePoolHold} {
		for _, outcome := range []workloads.Outcome{workloads.OK, simTimeout} {
			if h := t.latencies[simLatency{stage, outcome}]; h != nil {
				r.note(r.w.Latency(record.Interval{Operation: simOperation, Stage: stage, Outcome: string(outcome), From: from, To: to, Histogram: h}))
			}
		}
	}
}
