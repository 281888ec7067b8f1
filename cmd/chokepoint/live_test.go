package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"chokepoint/collectors/record"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

// symptom is a symptom in the JSON report.
type symptom struct {
	Stage, Layer string
	Share        float64
	CausedBy     struct{ Layer, Cause string } `json:"caused_by"`
}

// page is what the tests read of the JSON report.
type page struct {
	SchemaVersion int `json:"schema_version"`
	Run           struct{ ID, Status string }
	Load          struct {
		Operations     int
		OK             int
		ThroughputPerS float64 `json:"throughput_per_s"`
		Outcomes       map[string]int
		LatencyS       struct{ Mean float64 } `json:"latency_s"`
	}
	Verdict struct {
		Layer, Cause, Resource, Summary string
		Share                           float64
		ShareInterval                   [2]float64 `json:"share_interval"`
		Holder                          []struct {
			Stage string
			Share float64
		}
	}
	Symptoms []symptom
	Budget   []struct {
		Stage string
		Share float64
	}
	Unexplained float64 `json:"unexplained_share"`
	Relief      []struct {
		Change, Bound string
		Ratio         float64 `json:"predicted_throughput_ratio"`
	}
	Statements []struct {
		Text       string
		Count      int
		MeanS      float64                         `json:"mean_s"`
		LockS      struct{ Lo, Point, Hi float64 } `json:"lock_s"`
		LockSource string                          `json:"lock_source"`
		LockMethod string                          `json:"lock_method"`
	}
	Locks struct {
		Conflicts float64
		Blockers  []struct {
			Thread   int
			Query    string
			Foreign  bool
			Resource string
		}
	}
	AppLock struct {
		Acquired     float64
		Attempts     float64                `json:"attempts_per_acquire"`
		IdleRatio    float64                `json:"idle_with_waiters_ratio"`
		HoldS        struct{ Mean float64 } `json:"hold_s"`
		LeaseExpired float64                `json:"lease_expired"`
		DoubleHeld   float64                `json:"double_held"`
	} `json:"app_lock"`
	Profiles struct {
		CPUS    float64 `json:"cpu_s"`
		ByStage []struct {
			Stage string
			CPUS  float64 `json:"cpu_s"`
		} `json:"by_stage"`
		Functions []struct{ Function string }
	}
	Observer struct {
		CPUS        float64 `json:"cpu_s"`
		CPUShare    float64 `json:"cpu_share"`
		StatementsS float64 `json:"statements_s"`
		Polls       int
	}
	Redis struct {
		Commands []struct {
			Name  string
			Calls float64
		}
	}
	Pool struct {
		HoldS struct{ Mean float64 } `json:"hold_s"`
	}
	Correctness struct {
		LostUpdates                int64 `json:"lost_updates"`
		Oversold, Expected, Actual int64
	}
	Windows []struct {
		FromS float64 `json:"from_s"`
		ToS   float64 `json:"to_s"`
		Layer string
		Cause string
	}
	Warnings []string
	Checks   []struct {
		Name               string
		Expected, Measured float64
		OK                 bool
		Note               string
	}
}

// chokepoint runs a command line in this process and returns what it printed.
func chokepoint(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	getenv := func(string) string { return "" }
	code = run(context.Background(), world{getenv, &out, &errs}, args)
	return out.String(), errs.String(), code
}

// runLive makes a run on private servers and returns its report. Where there
// are no servers the test is skipped, loudly, or fails in CI.
func runLive(t *testing.T, runs string, args ...string) page {
	t.Helper()
	stdout, stderr, code := chokepoint(t, append([]string{"run", "lock", "--runs", runs, "--output", "json"}, args...)...)
	if code != exitOK {
		if strings.Contains(stderr, "apt-get install") && os.Getenv("CI") == "" {
			t.Skipf("NO SERVER HERE, NOTHING IS TESTED: %s", stderr)
		}
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	return parsePage(t, stdout)
}

func parsePage(t *testing.T, text string) page {
	t.Helper()
	var p page
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("the report is no JSON: %v\n%s", err, text)
	}
	return p
}

// latest opens the newest record of a folder for the time of the test.
func latest(t *testing.T, runs string) *record.Reader {
	t.Helper()
	root, err := os.OpenRoot(runs)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r, err := openRun(root, "latest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// hotRow are the flags of 200 buyers of one product.
func hotRow(pool int) []string {
	return []string{"--strategy", "pessimistic", "--concurrency", "200", "--requests", "3000", "--pool", fmt.Sprint(pool)}
}

// liveRuns is how often each run is made: the verdict must be right each time.
// MySQL takes three seconds to end, so it gets fewer.
const (
	liveRuns      = 10
	liveRunsMySQL = 4
)

func TestLiveHotRow(t *testing.T) { sandboxtest.EachFlavor(t, testLiveHotRow) }

func testLiveHotRow(t *testing.T, flavor sandbox.Flavor) {
	runs := liveRuns
	if flavor == sandbox.MySQL {
		runs = liveRunsMySQL
	}
	for _, pool := range []int{10, 100} {
		t.Run(fmt.Sprintf("pool-%d", pool), func(t *testing.T) {
			var apart []float64
			for range runs {
				p := runLive(t, t.TempDir(), append(hotRow(pool), "--sandbox", string(flavor))...)
				t.Logf("%s/%s share %.3f [%.3f %.3f], %.0f ok/s, unexplained %.4f of all, %.3f inside connections; %s",
					p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Share, p.Verdict.ShareInterval[0], p.Verdict.ShareInterval[1],
					p.Load.ThroughputPerS, p.Unexplained, insideUnexplained(p), p.forUpdate(t))
				checkHotRow(t, p, pool)
				apart = append(apart, clientOverDigest(p))
			}
			// The client's seconds of the locking statement are the server's and
			// a round trip, which is a few per cent of the wait.
			slices.Sort(apart)
			t.Logf("client over digest seconds of the locking statement, less 1: median %.4f, %.4f to %.4f", apart[len(apart)/2], apart[0], apart[len(apart)-1])
			if m := apart[len(apart)/2]; m < 0 || m > 0.05 {
				t.Errorf("client and digest seconds are %.3f apart, want at most 0.05", m)
			}
		})
	}
}

func checkHotRow(t *testing.T, p page, pool int) {
	t.Helper()
	if p.Verdict.Layer != "row_lock" || p.Verdict.Cause != "hot_row" || p.Verdict.Resource != "row:stock/1" {
		t.Errorf("verdict %s/%s on %s: %s", p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Resource, p.Verdict.Summary)
	}
	if len(p.Verdict.Holder) == 0 {
		t.Error("the verdict does not say what the holders do")
	}
	if p.Load.Operations != 3000 || p.Load.OK != 3000 {
		t.Errorf("%d operations, %d ok; all 3000 must be", p.Load.Operations, p.Load.OK)
	}
	// Warm-up is at most a tenth on top; each success took one unit.
	if c := p.Correctness; c.Expected != c.Actual || c.LostUpdates != 0 || c.Oversold != 0 || c.Actual > 1_000_000-3000 || c.Actual < 1_000_000-3300 {
		t.Errorf("books: %+v", c)
	}
	checkPoolIsSymptom(t, p)
	if pool == 10 && p.stage("pool_wait") < 0.5 {
		t.Errorf("%.2f of the time in pool_wait, want most of it", p.stage("pool_wait"))
	}
	// Little: of 200 operations at most 100 have a connection, and all but the
	// row's holder and its like wait for the row.
	if pool == 100 && p.stage("row_lock") < 0.4 {
		t.Errorf("%.2f of the time in row_lock, want about half", p.stage("row_lock"))
	}
	if p.Unexplained > 0.05 {
		t.Errorf("%.3f of the operations' time is unexplained", p.Unexplained)
	}
	if u := insideUnexplained(p); u > 0.20 {
		t.Errorf("%.3f of the time inside connections is unexplained", u)
	}
	for _, r := range p.Relief {
		if strings.Contains(r.Change, "pool of") && (r.Ratio < 0.9 || r.Ratio > 1.1) {
			t.Errorf("%s: predicted %.2f, want about 1.0", r.Change, r.Ratio)
		}
	}
	for _, c := range p.Checks {
		if !c.OK {
			t.Errorf("check %q: expected %v, measured %v (%s)", c.Name, c.Expected, c.Measured, c.Note)
		}
	}
}

// clientOverDigest is by how much the client's seconds of the locking statement
// exceed the digest's, as a share of those.
func clientOverDigest(p page) float64 {
	for _, c := range p.Checks {
		if !strings.HasPrefix(c.Name, "locking statement's time") {
			continue
		}
		for _, s := range p.Statements {
			if strings.Contains(s.Text, "FOR UPDATE") {
				return c.Measured/(s.MeanS*float64(s.Count)) - 1
			}
		}
	}
	return -1
}

func checkPoolIsSymptom(t *testing.T, p page) {
	t.Helper()
	for _, s := range p.Symptoms {
		if s.Layer == "pool" && s.CausedBy.Layer == "row_lock" && s.CausedBy.Cause == "hot_row" {
			return
		}
	}
	t.Errorf("the pool is no symptom caused by row_lock: %+v", p.Symptoms)
}

func (p page) stage(name string) float64 {
	for _, s := range p.Budget {
		if s.Stage == name {
			return s.Share
		}
	}
	return 0
}

// insideUnexplained is the unexplained share of the time for which operations
// have a connection.
func insideUnexplained(p page) float64 {
	return p.Unexplained * p.Load.LatencyS.Mean / p.Pool.HoldS.Mean
}

// forUpdate tells the lock time of the locking statement: on MariaDB its own
// lock column has none, and the bounds must hold the client's view.
func (p page) forUpdate(t *testing.T) string {
	t.Helper()
	for _, s := range p.Statements {
		if !strings.Contains(s.Text, "FOR UPDATE") {
			continue
		}
		if s.LockS.Lo > s.LockS.Point || s.LockS.Point > s.LockS.Hi || s.LockS.Hi > s.MeanS*1.0001 || s.LockSource == "" {
			t.Errorf("lock time of the locking statement: %+v", s)
		}
		if s.LockMethod == "exact" && s.LockS.Lo != s.LockS.Hi {
			t.Errorf("an exact lock time with bounds: %+v", s)
		}
		if s.LockS.Point < 0.5*s.MeanS {
			t.Errorf("lock time %.6f of %.6f s: nearly all of it is waiting for the row", s.LockS.Point, s.MeanS)
		}
		return fmt.Sprintf("FOR UPDATE: mean %.3f ms, lock %.3f ms [%.3f %.3f] (%s, %s)", 1e3*s.MeanS, 1e3*s.LockS.Point, 1e3*s.LockS.Lo, 1e3*s.LockS.Hi, s.LockMethod, s.LockSource)
	}
	t.Error("no locking statement among the digests")
	return ""
}

func TestLiveHealthy(t *testing.T) { sandboxtest.EachFlavor(t, testLiveHealthy) }

func testLiveHealthy(t *testing.T, flavor sandbox.Flavor) {
	p := runLive(t, t.TempDir(), "--sandbox", string(flavor), "--keys", "100000", "--concurrency", "4", "--pool", "50", "--think", "5ms", "--duration", "3s")
	if p.Verdict.Layer != "none" {
		t.Errorf("verdict %s/%s, want none: %s", p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Summary)
	}
}

// TestLiveStrategies: reading and then writing loses updates, one statement
// does not, and it holds the row for less.
func TestLiveStrategies(t *testing.T) { sandboxtest.EachFlavor(t, testLiveStrategies) }

func testLiveStrategies(t *testing.T, flavor sandbox.Flavor) {
	common := []string{"--sandbox", string(flavor), "--concurrency", "50", "--requests", "3000", "--pool", "10"}
	none := runLive(t, t.TempDir(), append(common, "--strategy", "none")...)
	if c := none.Correctness; c.LostUpdates == 0 || c.Actual-c.Expected != c.LostUpdates {
		t.Errorf("none: %+v; updates must be lost and counted", c)
	}
	atomic := runLive(t, t.TempDir(), append(common, "--strategy", "atomic")...)
	if c := atomic.Correctness; c.LostUpdates != 0 || c.Actual != c.Expected {
		t.Errorf("atomic: %+v; the books must be exact", c)
	}
	pessimistic := runLive(t, t.TempDir(), append(common, "--strategy", "pessimistic")...)
	t.Logf("lost updates %d of %d; ok/s: none %.0f, atomic %.0f, pessimistic %.0f", none.Correctness.LostUpdates, none.Load.OK,
		none.Load.ThroughputPerS, atomic.Load.ThroughputPerS, pessimistic.Load.ThroughputPerS)
	if atomic.Load.ThroughputPerS <= pessimistic.Load.ThroughputPerS {
		t.Errorf("atomic %.0f ok/s is not faster than pessimistic %.0f", atomic.Load.ThroughputPerS, pessimistic.Load.ThroughputPerS)
	}
}

// TestLiveOptimistic: on one key the books are exact, the conflicts counted, and
// the verdict is that retries eat the time.
func TestLiveOptimistic(t *testing.T) { sandboxtest.EachFlavor(t, testLiveOptimistic) }

func testLiveOptimistic(t *testing.T, flavor sandbox.Flavor) {
	p := runLive(t, t.TempDir(), "--sandbox", string(flavor), "--strategy", "optimistic", "--concurrency", "50", "--duration", "3s")
	if p.Verdict.Layer != "row_lock" || p.Verdict.Cause != "conflict_retry" || p.Verdict.Resource != "row:stock/1" {
		t.Errorf("verdict %s/%s: %s", p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Summary)
	}
	if c := p.Correctness; c.LostUpdates != 0 || c.Oversold != 0 || c.Actual != c.Expected {
		t.Errorf("books %+v", c)
	}
	updates := 0
	for _, s := range p.Statements {
		if strings.HasPrefix(strings.ToUpper(s.Text), "UPDATE") {
			updates = s.Count
		}
	}
	if got := p.Load.OK + int(p.Locks.Conflicts); p.Locks.Conflicts == 0 || math.Abs(float64(got-updates)) > 0.01*float64(updates) {
		t.Errorf("%d sales and %.0f conflicts, and the server ran %d updates", p.Load.OK, p.Locks.Conflicts, updates)
	}
	t.Logf("%s: %.1f conflicts a sale, share %.2f", flavor, p.Locks.Conflicts/float64(p.Load.OK), p.Verdict.Share)
}

// TestLiveRedisSpin: 200 workers poll for a lock in Redis, which looks idle; the
// wait is found in the client, the database is not blamed, and Redis counted as
// many SETs as there were attempts. With a lease shorter than the hold there are
// leases that end too early and double holds.
func TestLiveRedisSpin(t *testing.T) { sandboxtest.EachFlavor(t, testLiveRedisSpin) }

func testLiveRedisSpin(t *testing.T, flavor sandbox.Flavor) {
	args := []string{"--sandbox", string(flavor), "--strategy", "redis-spin", "--concurrency", "200", "--max-retries", "10",
		"--backoff-base", "50ms", "--backoff-cap", "200ms", "--hold", "1ms"}
	p := runLive(t, t.TempDir(), append(args, "--duration", "4s")...)
	if p.Verdict.Layer != "redis" || p.Verdict.Cause != "lock_contention" || p.Verdict.Resource != "applock:stock/1" {
		t.Errorf("verdict %s/%s of %s: %s", p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Resource, p.Verdict.Summary)
	}
	a := p.AppLock
	sets := 0.0
	for _, c := range p.Redis.Commands {
		if c.Name == "set" {
			sets = c.Calls
		}
	}
	if attempts := a.Attempts * a.Acquired; math.Abs(attempts-sets) > 0.01*sets || a.Attempts < 2 {
		t.Errorf("%.0f attempts (%.2f each), Redis ran SET %.0f times", attempts, a.Attempts, sets)
	}
	if a.LeaseExpired != 0 || a.DoubleHeld != 0 || p.Correctness.LostUpdates != 0 || !(a.IdleRatio > 0 && a.IdleRatio < 0.5) || a.HoldS.Mean < 1e-3 {
		t.Errorf("%+v, lost updates %d", a, p.Correctness.LostUpdates)
	}
	short := runLive(t, t.TempDir(), append(args, "--duration", "2s", "--lease", "1ms")...)
	if b := short.AppLock; b.LeaseExpired == 0 || b.DoubleHeld == 0 || short.Verdict.Cause != "lock_lease" {
		t.Errorf("with a lease of 1 ms: %s/%s, %+v", short.Verdict.Layer, short.Verdict.Cause, b)
	}
	t.Logf("%s: %.0f ok/s, hold %.2f ms, %.1f attempts each, free %.2f; with a lease of 1 ms %.0f expired, %.0f doubled of %.0f, %d lost updates", flavor,
		p.Load.ThroughputPerS, 1e3*a.HoldS.Mean, a.Attempts, a.IdleRatio, short.AppLock.LeaseExpired, short.AppLock.DoubleHeld, short.AppLock.Acquired, short.Correctness.LostUpdates)
}

// TestLiveOpenLoop: at more than its capacity the latency of a service grows
// with the backlog, what was never started is counted, and the queue is told to
// be a symptom of the row.
func TestLiveOpenLoop(t *testing.T) { sandboxtest.EachFlavor(t, testLiveOpenLoop) }

func testLiveOpenLoop(t *testing.T, flavor sandbox.Flavor) {
	const seconds, workers = 3, 200
	hot := []string{"--sandbox", string(flavor), "--concurrency", fmt.Sprint(workers), "--duration", fmt.Sprint(seconds, "s")}
	capacity := runLive(t, t.TempDir(), hot...).Load.ThroughputPerS
	p := runLive(t, t.TempDir(), append(hot, "--rate", fmt.Sprintf("%.0f", 1.5*capacity))...)
	if p.Verdict.Layer != "row_lock" || p.Verdict.Cause != "hot_row" {
		t.Errorf("verdict %s/%s: %s", p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Summary)
	}
	if !slices.ContainsFunc(p.Symptoms, func(s symptom) bool { return s.Stage == "queue" && s.CausedBy.Layer == "row_lock" }) {
		t.Errorf("symptoms %+v; the queue is one", p.Symptoms)
	}
	// A third of what is offered cannot be served; the runs' capacities differ.
	offered := 1.5 * capacity * seconds
	never, all := float64(p.Load.Outcomes["never_started"]), float64(p.Load.Operations)
	if math.Abs(all-offered) > 0.05*offered || never < 0.1*offered || never > 0.6*offered {
		t.Errorf("%.0f operations, %.0f never started, of %.0f offered", all, never, offered)
	}
	// The backlog grows evenly, so that operations waited half as long on average
	// as the last of them; those in flight alone would be out in a tenth of that.
	if inFlight := workers / capacity; p.Load.LatencyS.Mean < 2*inFlight {
		t.Errorf("mean latency %.3f s; of a full service it is %.3f s without the backlog", p.Load.LatencyS.Mean, inFlight)
	}
	t.Logf("%s: capacity %.0f/s, offered %.0f/s, served %.0f/s, mean latency %.2f s", flavor, capacity, 1.5*capacity, p.Load.ThroughputPerS, p.Load.LatencyS.Mean)
}

// TestLiveRecordExplainsItself: with the servers gone, the record gives the
// same report again.
func TestLiveRecordExplainsItself(t *testing.T) {
	runs := t.TempDir()
	first := runLive(t, runs, hotRow(10)...)
	verify, stderr, code := chokepoint(t, "runs", "verify", "latest", "--runs", runs)
	if code != exitOK || !strings.Contains(verify, "ok (complete)") {
		t.Errorf("runs verify: exit %d, %s%s", code, verify, stderr)
	}
	again, _, code := chokepoint(t, "analyze", "--run-id", "latest", "--runs", runs, "--output", "json")
	p := parsePage(t, again)
	if code != exitOK || p.SchemaVersion != 1 || p.Run.ID != first.Run.ID || p.Verdict.Summary != first.Verdict.Summary {
		t.Errorf("analyze: exit %d, run %s, %s", code, p.Run.ID, p.Verdict.Summary)
	}
	text, _, code := chokepoint(t, "analyze", "--run-id", first.Run.ID, "--runs", runs, "--expect", "layer==row_lock")
	if code != exitOK || !strings.Contains(text, "VERDICT  row_lock/hot_row") {
		t.Errorf("analyze as text: exit %d\n%s", code, text)
	}
	if _, stderr, code := chokepoint(t, "analyze", "--run-id", "latest", "--runs", runs, "--expect", "layer==pool"); code != exitUnmet {
		t.Errorf("an expectation that is not met: exit %d, %s", code, stderr)
	}
}

// TestLiveInterrupt: the first Ctrl-C ends the run early and in order.
func TestLiveInterrupt(t *testing.T) {
	runs := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out, errs bytes.Buffer
	w := world{func(string) string { return "" }, &out, &cancelAt{&errs, "measure", cancel}}
	code := run(ctx, w, []string{"run", "lock", "--runs", runs, "--output", "json", "--duration", "60s", "--warmup", "100ms"})
	if strings.Contains(errs.String(), "apt-get install") && os.Getenv("CI") == "" {
		t.Skip("NO SERVER HERE, NOTHING IS TESTED")
	}
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	if p := parsePage(t, out.String()); p.Run.Status != record.Interrupted || p.Load.Operations == 0 {
		t.Errorf("status %q, %d operations", p.Run.Status, p.Load.Operations)
	}
}

// cancelAt ends a context when a word is written: progress lines tell how far
// the run is.
type cancelAt struct {
	*bytes.Buffer
	word   string
	cancel func()
}

func (c *cancelAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.word)) {
		c.cancel()
	}
	return c.Buffer.Write(p)
}
