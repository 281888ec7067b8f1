package analysis_test

import (
	"bytes"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"chokepoint/collectors/host"
	"chokepoint/collectors/mysql"
	"chokepoint/collectors/record"
	"chokepoint/workloads"
)

// near tells whether got is within the tolerance of want, as a ratio.
func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Abs(want)
}

// Each case leaves a valid record in both flavours that holds what the
// simulation says, no law is broken, and throughputs and gains agree with the
// reference simulation in Python, which was written apart from this one.
func TestSimCases(t *testing.T) {
	for _, c := range simCases() {
		if simRace && c.params.T > 10*time.Second {
			continue // the race detector takes minutes, and one coroutine runs at a time
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := c.record(t, simOptions{flavor: mysql.MariaDB})
			checkRecord(t, run)
			checkLaws(t, c, run.result)
			throughput, gain := 0.03, 0.05
			if c.erratic {
				throughput, gain = 1, 1
			}
			if x := run.result.Steady; c.x > 0 && !near(x, c.x, throughput) {
				t.Errorf("throughput %.1f/s, the reference says %.0f/s", x, c.x)
			}
			if testing.Short() || simRace {
				return
			}
			checkFlavours(t, c, run)
			checkGains(t, c, run.result, gain)
		})
	}
}

func checkFlavours(t *testing.T, c simCase, maria simRun) {
	t.Helper()
	other := c.record(t, simOptions{flavor: mysql.MySQL})
	checkRecord(t, other)
	if !reflect.DeepEqual(maria.result, other.result) {
		t.Error("another flavour, another truth")
	}
}

func checkGains(t *testing.T, c simCase, base simResult, tolerance float64) {
	t.Helper()
	for _, ch := range c.changes {
		if ch.gain == 0 {
			continue
		}
		after := c.with(t, ch.name).measure(t, simOptions{seed: 2})
		if got := after.Steady / base.Steady; !near(got, ch.gain, tolerance) {
			t.Errorf("%s: gain %.2f, the reference says %.2f", ch.name, got, ch.gain)
		}
	}
}

// checkLaws holds the truth of a run against what must be true of any.
func checkLaws(t *testing.T, c simCase, r simResult) {
	t.Helper()
	checkUse(t, r)
	var inside float64
	for _, d := range r.Spent {
		inside += d.Seconds() / r.Seconds
	}
	if x := float64(r.Finished+r.Failed) / r.Seconds; !near(inside, x*r.Latency, 1e-6) || c.params.N > 0 && inside > float64(c.params.N) {
		t.Errorf("%.3f operations in flight, %.1f/s that take %.6f s each, of %d workers", inside, x, r.Latency, c.params.N)
	}
	checkSplit(t, c, r)
}

func checkUse(t *testing.T, r simResult) {
	t.Helper()
	for name, u := range r.Truth.Resources {
		if u.Utilisation < 0 || u.Utilisation > 1+1e-9 {
			t.Errorf("utilisation of %s is %g", name, u.Utilisation)
		}
		if u.Foreign > u.Held || u.IdleWaited > 1 || u.Waited < 0 {
			t.Errorf("use of %s: %+v", name, u)
		}
	}
}

// checkSplit compares what clients see with what resources and server know.
func checkSplit(t *testing.T, c simCase, r simResult) {
	t.Helper()
	const tick = 1e-6 // clients see whole ns
	if p := r.Truth.Resources["pool:mysql"]; math.Abs(p.Waited-r.Spent[workloads.PoolWait].Seconds()) > tick {
		t.Errorf("pool: operations waited %.6f s, clients saw %v", p.Waited, r.Spent[workloads.PoolWait])
	}
	var rows, rowLock, timer float64
	for name, u := range r.Truth.Resources {
		if strings.HasPrefix(name, "row:") {
			rows += u.Waited
		}
	}
	for _, d := range r.Truth.Digests {
		rowLock += d.RowLock.Seconds()
		timer += d.Timer.Seconds()
	}
	if math.Abs(rows-rowLock) > tick {
		t.Errorf("rows: operations waited %.6f s, the server counts %.6f s", rows, rowLock)
	}
	client := (r.Spent[workloads.Statement] + r.Spent[workloads.Commit]).Seconds()
	if c.params.AppCPUAt != "" && c.params.AppCPUAt != "app" {
		client -= r.Truth.AppQueued // the rest of the trip
	}
	if math.Abs(client-timer) > tick {
		t.Errorf("statements: clients saw %.6f s, the server counts %.6f s", client, timer)
	}
}

func checkRecord(t *testing.T, run simRun) {
	t.Helper()
	r := openSim(t, run)
	if err := record.Validate(r); err != nil {
		t.Error(err)
	}
	began, ended := phasesOf(t, r)
	if !near(ended-began, run.result.Seconds, 1e-9) {
		t.Errorf("the measured phase lasts %g s, the simulation says %g s", ended-began, run.result.Seconds)
	}
	from, to := bordersOf(t, r, began, ended)
	grown := func(series string) float64 { return to[series] - from[series] }
	if got, want := grown(record.Series("operations.finished", simOperation, "ok")), float64(run.result.Finished); got != want {
		t.Errorf("%g operations finished, the simulation says %g", got, want)
	}
	for name, d := range run.result.Truth.Digests {
		if got, want := grown(record.Series(mysql.DigestCount, name)), float64(d.Count); got != want {
			t.Errorf("%s: %g executions, the simulation says %g", name, got, want)
		}
		if got, want := grown(record.Series(mysql.DigestTimer, name)), d.Timer.Seconds(); !near(got, want, 1e-9) {
			t.Errorf("%s: %g s, the simulation says %g s", name, got, want)
		}
		lock := d.RowLock
		if r.Run().Servers[0].Flavor == mysql.MariaDB {
			lock = d.MetadataLock
		}
		if got := grown(record.Series(mysql.DigestLock, name)); math.Abs(got-lock.Seconds()) > 1e-6 {
			t.Errorf("%s: lock time %g s, the simulation says %v", name, got, lock)
		}
	}
	if got := grown(record.Series("pool.wait_seconds", "mysql")); math.Abs(got-run.result.Truth.Resources["pool:mysql"].Waited) > 1e-6 {
		t.Errorf("pool: waited %g s, the simulation says %+v", got, run.result.Truth.Resources["pool:mysql"])
	}
}

func openSim(t *testing.T, run simRun) *record.Reader {
	t.Helper()
	root, err := os.OpenRoot(run.root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	r, err := record.Open(root, run.id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func phasesOf(t *testing.T, r *record.Reader) (measure, done float64) {
	t.Helper()
	for e, err := range r.Events() {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Kind == record.Phase && e.Text == record.PhaseMeasure:
			measure = e.T
		case e.Kind == record.Phase && e.Text == record.PhaseDone:
			done = e.T
		}
	}
	return measure, done
}

// bordersOf are the values of the last readings before the measured phase and
// of the first ones after it.
func bordersOf(t *testing.T, r *record.Reader, measure, done float64) (from, to map[string]float64) {
	t.Helper()
	from, to = map[string]float64{}, map[string]float64{}
	read := map[string]bool{}
	for b, err := range r.Batches() {
		switch {
		case err != nil:
			t.Fatal(err)
		case b.T <= measure:
			maps.Copy(from, b.Values)
		case b.T >= done && !read[b.Source]:
			read[b.Source] = true
			maps.Copy(to, b.Values)
		}
	}
	return from, to
}

// The same seed makes the same record to the byte, with or without anybody who
// reads; another seed makes another one.
func TestSimDeterministic(t *testing.T) {
	for _, name := range []string{"two-rows", "starved-3-hogs", "pool-4-beside-4"} {
		c := simCaseNamed(t, name)
		c.params.T = time.Second
		batches := func(seed uint64) ([]byte, simResult) {
			run := c.record(t, simOptions{seed: seed})
			p, err := os.ReadFile(filepath.Join(run.root, string(run.id), record.BatchesFile))
			if err != nil {
				t.Fatal(err)
			}
			return p, run.result
		}
		first, r := batches(7)
		if again, _ := batches(7); !bytes.Equal(first, again) {
			t.Errorf("%s: the same seed made another record", name)
		}
		if other, _ := batches(8); bytes.Equal(first, other) {
			t.Errorf("%s: another seed made the same record", name)
		}
		if unseen := c.measure(t, simOptions{seed: 7}); !reflect.DeepEqual(r, unseen) {
			t.Errorf("%s: what is recorded differs from what happens unseen", name)
		}
	}
}

// The flavours tell the same row waits in their own ways.
func TestSimFlavours(t *testing.T) {
	c := simCaseNamed(t, "hot-row-pool-10")
	series := record.Series(mysql.DigestLock, simLock)
	read := func(flavor string) (locks, innodb, waits, truth float64) {
		run := c.record(t, simOptions{flavor: flavor})
		r := openSim(t, run)
		measure, done := phasesOf(t, r)
		from, to := bordersOf(t, r, measure, done)
		return to[series] - from[series], to[mysql.RowLockTime] - from[mysql.RowLockTime], to[mysql.RowLockWaits] - from[mysql.RowLockWaits], run.result.Truth.RowLock
	}
	locks, innodb, _, truth := read(mysql.MySQL)
	if !near(locks, truth, 1e-9) || math.Abs(innodb-truth) > 2e-3 {
		t.Errorf("MySQL: digest %g s, InnoDB %g s, truth %g s", locks, innodb, truth)
	}
	locks, innodb, waits, truth := read(mysql.MariaDB)
	if locks != 0 || innodb > truth || innodb < truth-1e-3*waits || !near(innodb+0.5e-3*waits, truth, 0.02) {
		t.Errorf("MariaDB: digest %g s, InnoDB %g s in %g waits, truth %g s", locks, innodb, waits, truth)
	}
}

// Where the database's CPU is not seen, nothing tells of it.
func TestSimHidden(t *testing.T) {
	c := simCaseNamed(t, "database-cpu-pool-3")
	c.params.T = time.Second
	for _, hidden := range []bool{false, true} {
		run := c.record(t, simOptions{hidden: hidden})
		r := openSim(t, run)
		measure, done := phasesOf(t, r)
		from, to := bordersOf(t, r, measure, done)
		_, seen := to[record.Series(host.ProcessCPU, "mariadbd")]
		busy := to[record.Series(host.CPUSeconds, "user")] - from[record.Series(host.CPUSeconds, "user")]
		if seen == hidden || (busy > 0) == hidden || (r.Run().Servers[0].Process == "") != hidden {
			t.Errorf("hidden %v: process %q, busy %g s, series %v", hidden, r.Run().Servers[0].Process, busy, seen)
		}
	}
}

// A round trip's cost is the client's alone.
func TestSimNetwork(t *testing.T) {
	c := simCaseNamed(t, "pool-4-of-40")
	c.params.T = time.Second
	r := c.measure(t, simOptions{network: 5 * time.Millisecond})
	client, server := r.Spent[workloads.Statement].Seconds(), r.Truth.Digests[simSleep].Timer.Seconds()
	if trips := float64(r.Truth.Digests[simSleep].Count); !near(client-server, 5e-3*trips, 1e-6) || !near(r.Steady, 400, 0.05) {
		t.Errorf("clients saw %g s, the server %g s in %g trips, %g/s", client, server, trips, r.Steady)
	}
}
