package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"chokepoint/analysis"
	"chokepoint/analysis/waits"
	"chokepoint/dashboards/report"
)

// extreme has long names, large numbers and many of them, and is unsure of all.
func extreme() *analysis.Result {
	nan := analysis.Number(math.NaN())
	r := full()
	r.Run.Variant, r.Run.Status = "the-slow-one", "interrupted"
	r.Verdict.Cause, r.Verdict.Resource = waits.Cause{Layer: "inconclusive", Cause: "too_close"}, "row:stock/9000000001"
	r.Verdict.Share, r.Verdict.ShareInterval = 0.99996, analysis.Interval{0.0004, 1}
	r.Verdict.Evidence = append(r.Verdict.Evidence, analysis.Evidence{Claim: "not known", Metric: "m", Value: nan, Unit: "s", Source: "s"})
	r.Load.Outcomes = map[string]int{}
	for _, o := range []string{"ok", "timeout", "deadlock", "pool_timeout", "connection_lost", "commit_unknown", "sold_out", "lock_wait_timeout", "canceled"} {
		r.Load.Outcomes[o] = 123_456_789
	}
	r.Load.Operations, r.Load.OK, r.Load.OfferedPerS, r.Load.ThroughputPerS = 1_234_567_890, 0, 98_765.4, 0.05
	r.Load.ByOperation = map[string]analysis.Totals{"buy": r.Load.Totals, "look": {Outcomes: map[string]int{}}}
	r.Load.LatencyS = analysis.Latency{Mean: nan, P50: nan, P90: nan, P95: nan, P99: nan, P999: nan, Max: nan}
	r.Statements = []analysis.Statement{
		{Text: "SELECT " + strings.Repeat("`a_long_column` , ", 40) + "? FROM `stock`", Count: 9_999_999, MeanS: 1234.5, LockS: analysis.Bounds{Lo: 0, Point: 999.4, Hi: 1234.5}, LockRatio: 0.81, MaxS: 3600, Share: 0.6, LockMethod: "bounded", LockSource: "Innodb_row_lock_time"},
		{Text: "COMMIT", Count: 1, MeanS: 26e-6, MaxS: nan, Share: 0.4, LockMethod: "exact"},
		{Text: "shown for its errors", Count: 1, Errors: 1},
	}
	r.Locks.Blockers = []analysis.Blocker{{Thread: 7, Resource: "row:stock/1", Query: "UPDATE `stock` SET `quantity` = ?", AgeS: 12.3, Blocks: 99}}
	for range 7 {
		r.Locks.HotRows = append(r.Locks.HotRows, analysis.HotRow{Table: "a_table_with_a_very_long_name", Key: "9000000001", WaitersMean: 0.5, WaitersMax: 9876.5, Utilisation: analysis.Interval{0, 1}})
	}
	short := analysis.Spread{Mean: 1.76e-3, P95: 1.98e-3, P99: 2.79e-3, Max: nan}
	r.AppLock = &analysis.AppLock{Acquired: 3407, AttemptsPerAcquire: 5.61, IdleWithWaitersRatio: 0.113, HandoffS: short, HoldS: short, LeaseExpired: 1702, DoubleHeld: 884}
	r.Redis = &analysis.Redis{OpsPerS: 13780, HitRatio: nan, MemoryUsedBytesMax: 6.3e6, DatasetBytesMax: nan, BusyShare: 0.16,
		Commands: []analysis.RedisCommand{{Name: "latency|histogram", Calls: 123_456_789, MeanS: 20.4e-6, P99S: nan}, {Name: "set", Calls: 1, MeanS: 2.18e-6, P99S: 16e-6}}}
	r.Locks.Metadata = []analysis.MetadataLock{{Resource: "mdl:stock", WaitersMean: 9.5}, {Resource: "named:door", WaitersMean: 0.7}}
	r.Pool.MaxOpen, r.Pool.Utilisation, r.Pool.Timeouts = 0, nan, 42
	r.Runtime.GCCPUShare, r.Runtime.HeapPeakBytes = 0.301, 7.7e9
	r.Host.CPUPressure = 0.42
	for i := range r.Budget {
		if r.Budget[i].BlamedOn == nil {
			r.Budget[i].BlamedOn = []analysis.BlamedOn{}
		}
	}
	r.Relief = append(r.Relief, analysis.Relief{Change: "pool of 100000 connections instead of 50000", Command: "", Target: r.Candidates[1].Cause, Ratio: 1.005, Bound: "at_most", LimitedBy: "row:stock/9000000001"},
		analysis.Relief{Change: "twice the processors", Ratio: 123.456, Bound: "figure", LimitedBy: "offered load"})
	r.Correctness = &analysis.Correctness{What: "units left in stock", LostUpdates: 12, Oversold: 3, Expected: -3, Actual: 9_000_000_000}
	r.Checks = append(r.Checks, analysis.Check{Name: "a law without numbers", Expected: nan, Measured: nan})
	r.Warnings = append(r.Warnings, strings.Repeat("words that fill more than one line ", 6))
	return r
}

// early is what is found in a run that was killed as its load began.
func early() *analysis.Result {
	r := minimal()
	r.Run.Servers, r.Unexplained = []analysis.Server{}, analysis.Number(math.NaN())
	r.Verdict.Holder, r.Verdict.Evidence = []analysis.StageShare{}, []analysis.Evidence{}
	r.Candidates, r.Symptoms, r.Budget, r.Relief = []analysis.Candidate{}, []analysis.Symptom{}, []analysis.Stage{}, []analysis.Relief{}
	r.Checks, r.Windows, r.Warnings = []analysis.Check{}, []analysis.Window{}, []string{}
	return r
}

func asText(t *testing.T, res *analysis.Result, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := (&report.Page{Tool: "v1", Result: res}).WriteText(&b, report.Style{Width: width}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPages: what the text says at each width, which no line exceeds.
func TestPages(t *testing.T) {
	golden(t, "full.120.txt", asText(t, full(), 120))
	golden(t, "extreme.80.txt", asText(t, extreme(), 80))
	golden(t, "extreme.120.txt", asText(t, extreme(), 120))
	golden(t, "extreme.160.txt", asText(t, extreme(), 160))
	for name, res := range map[string]*analysis.Result{"full": full(), "extreme": extreme(), "early": early()} {
		for width := 80; width <= 160; width += 5 {
			for _, line := range strings.Split(asText(t, res, width), "\n") {
				if n := len([]rune(line)); n > width {
					t.Errorf("%s at %d: a line of %d columns: %s", name, width, n, line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("%s at %d: blanks at the end of %q", name, width, line)
				}
			}
		}
		if asText(t, res, 160) != asText(t, res, 500) {
			t.Errorf("%s: longer lines than 160 columns on a wider terminal", name)
		}
	}
}

func asJSON(t *testing.T, res *analysis.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := (&report.Page{Tool: "v1", Result: res}).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPagesJSON: what is not known is null, and a section of which nothing is
// known is not there.
func TestPagesJSON(t *testing.T) {
	golden(t, "extreme.json", asJSON(t, extreme()))
	golden(t, "early.json", asJSON(t, early()))
	var v map[string]any
	if err := json.Unmarshal([]byte(asJSON(t, early())), &v); err != nil {
		t.Fatal(err)
	}
	for _, section := range []string{"load", "statements", "locks", "pool", "runtime", "host", "correctness"} {
		if _, there := v[section]; there {
			t.Errorf("an empty section %q", section)
		}
	}
	if s := v["verdict"].(map[string]any)["share_interval"].([]any); len(s) != 2 || s[0] != nil {
		t.Errorf("the interval of an unknown share is %v", s)
	}
	if v["tool"].(map[string]any)["version"] != "v1" {
		t.Errorf("made by %v", v["tool"])
	}
}
