package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chokepoint/analysis"
	"chokepoint/analysis/waits"
	"chokepoint/dashboards/report"
)

var update = flag.Bool("update", false, "rewrite the expected outputs")

// golden compares with testdata/NAME, and leaves what it got beside it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		os.WriteFile(file+".got", []byte(got), 0o644)
		t.Errorf("%s (go test ./dashboards/report -update): %s", file, d)
	}
}

func full() *analysis.Result {
	nan := analysis.Number(math.NaN())
	row := waits.Cause{Layer: "row_lock", Cause: "hot_row"}
	pool := waits.Cause{Layer: "pool", Cause: "undersized"}
	latency := analysis.Latency{Mean: 0.0654, P50: 0.0478, P90: 0.15, P95: 0.2, P99: 0.3018, P999: 0.4, Max: 0.588}
	return &analysis.Result{
		Run: analysis.Run{ID: "20261130T212218Z-lock-7f3a", Workload: "lock", Strategy: "pessimistic", Started: time.Date(2026, 11, 30, 21, 22, 18, 0, time.UTC),
			DurationS: 1.016, Status: "complete", Servers: []analysis.Server{{Kind: "mysql", Flavor: "mariadb", Version: "10.11.19-MariaDB"}}, Command: "chokepoint run lock --pool 10"},
		Load: &analysis.Load{OfferedPerS: nan, Totals: analysis.Totals{Operations: 3000, OK: 2997, SuccessRatio: 0.999, ThroughputPerS: 2949.8, LatencyS: latency, Outcomes: map[string]int{"ok": 2997, "timeout": 3}}},
		Verdict: analysis.Verdict{Cause: row, Resource: "row:stock/1", Share: 0.987, ShareInterval: analysis.Interval{0.971, 0.996},
			Holder:   []analysis.StageShare{{Stage: "db_exec", Share: 0.6}, {Stage: "db_commit", Share: 0.3}},
			Summary:  strings.Repeat("The verdict in a sentence that is longer than a line of a terminal. ", 2),
			Evidence: []analysis.Evidence{{Claim: "operations waiting for it", Metric: "waiting(row:stock/1)", Value: 8.1, Unit: "1", Source: "Innodb_row_lock_time"}}},
		Candidates: []analysis.Candidate{{Cause: row, Share: 0.987}, {Cause: pool, Share: 0.013}},
		Symptoms:   []analysis.Symptom{{Stage: "pool_wait", Layer: "pool", Share: 0.95, CausedBy: row}},
		Budget: []analysis.Stage{
			{Stage: "pool_wait", SecondsPerOperation: 0.06207, Share: 0.949, BlamedOn: []analysis.BlamedOn{{Cause: row, Share: 0.9}, {Cause: pool, Share: 0.1}}},
			{Stage: "row_lock", SecondsPerOperation: 0.00293, Share: 0.045, BlamedOn: []analysis.BlamedOn{{Cause: row, Share: 1}}},
			{Stage: "db_exec", SecondsPerOperation: 0.0004, Share: 0.006},
			{Stage: "network", SecondsPerOperation: 1e-9, Share: 1e-8},
		},
		Unexplained: 0,
		Relief: []analysis.Relief{
			{Change: "pool of 20 connections instead of 10", Command: "chokepoint run lock --pool 20", Target: pool, Ratio: 1, Bound: "figure", LimitedBy: "row:stock/1"},
			{Change: "the row spread over 1000 rows", Command: "chokepoint run lock --pool 10 --keys 1000", Target: row, Ratio: 7.9, Bound: "at_most", LimitedBy: "cpu:mariadbd"},
		},
		Statements: []analysis.Statement{
			{Digest: "a9", Text: "SELECT `quantity` FROM `stock` WHERE ID = ? FOR UPDATE", Count: 3000, MeanS: 0.00289, LockS: analysis.Bounds{Lo: 0.0022, Point: 0.0027, Hi: 0.00289}, LockRatio: 0.934, MaxS: 0.0158, Share: 0.93, LockMethod: "bounded", LockSource: "Innodb_row_lock_time"},
			{Digest: "b1", Text: "COMMIT", Count: 3000, MeanS: 0.0001057, LockRatio: 0, MaxS: nan, Share: 0.034},
			{Digest: "c2", Text: "never shown: too small", Count: 1, Share: 0.0001},
		},
		Locks: &analysis.Locks{HotRows: []analysis.HotRow{{Table: "stock", Key: "1", WaitersMean: 8.12, WaitersMax: 8.9, Utilisation: analysis.Interval{0.82, 1}}}, Deadlocks: 0, Timeouts: nan},
		Pool: &analysis.Pool{MaxOpen: 10, InUseMean: 9.95, InUseMax: 10, IdleMean: 0.05, PendingMean: 183.4, PendingMax: 190, Waits: 2990, Utilisation: 0.995,
			WaitS: analysis.Spread{Mean: 0.062, P95: 0.2, P99: 0.298, Max: 0.585}, HoldS: analysis.Spread{Mean: 0.0034, P95: 0.006, P99: 0.009, Max: 0.0201}},
		Runtime: &analysis.Runtime{GOMAXPROCS: 2, CPUShare: 0.31, GCCPUShare: nan, GCPauses: 12, GCPauseMaxS: 0.00026, GCPauseTotalS: 0.001, HeapPeakBytes: 3452000, GoroutinesMax: 245, MutexWaitS: 0.0225,
			SchedLatencyS: analysis.SchedLatency{Mean: 12.1e-6, P50: 4.1e-6, P99: 164e-6}},
		Host:        &analysis.Host{CPUs: 2, BusyShare: 0.74, StealShare: 0.0004, CPUPressure: nan, Processes: []analysis.Process{{Name: "mariadbd", CPUS: 0.6, RunQueueS: 0.399}}},
		Correctness: &analysis.Correctness{What: "units left in stock", Expected: 997003, Actual: 997003},
		Checks:      []analysis.Check{{Name: "pool wait, s", Expected: 186.21, Measured: 186.22, OK: true, Note: "cancelled waits included"}, {Name: "books", Expected: 1, Measured: 2}},
		Windows:     []analysis.Window{{FromS: 0, ToS: 0.5, Cause: pool, Share: 0.9}, {FromS: 0.5, ToS: 1.016, Cause: row, Share: 1}},
		Warnings:    []string{"durability is off on the sandbox's mariadb"},
	}
}

// minimal has nothing but a verdict: a run that hardly began.
func minimal() *analysis.Result {
	nan := analysis.Number(math.NaN())
	return &analysis.Result{
		Run:     analysis.Run{ID: "20261130T212218Z-lock-7f3a", Workload: "lock", Strategy: "none", DurationS: 0.01, Status: "killed"},
		Verdict: analysis.Verdict{Cause: waits.Cause{Layer: "inconclusive", Cause: "too_little_data"}, Share: nan, ShareInterval: analysis.Interval{nan, nan}, Summary: "Inconclusive."},
	}
}

func TestText(t *testing.T) {
	for name, res := range map[string]*analysis.Result{"full": full(), "minimal": minimal()} {
		for width, suffix := range map[int]string{0: "80", 120: "120", 160: "160"} { // 0: less than 80 is 80
			var b bytes.Buffer
			if err := (&report.Page{Tool: "v1", Result: res}).WriteText(&b, report.Style{Width: width}); err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(b.String(), "\n") {
				if n := len([]rune(line)); n > max(width, 80) {
					t.Errorf("%s at %s: a line of %d columns: %s", name, suffix, n, line)
				}
			}
			if width != 120 {
				golden(t, name+"."+suffix+".txt", b.String())
			}
		}
	}
}

func TestColor(t *testing.T) {
	var b bytes.Buffer
	if err := (&report.Page{Result: full()}).WriteText(&b, report.Style{Color: true}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\x1b[1m"); n < 5 || n != strings.Count(b.String(), "\x1b[0m") {
		t.Errorf("%d headings are bold", n)
	}
}

func TestMarkdown(t *testing.T) {
	res := full()
	res.Statements[1].Text = "SELECT '|' /* <b>_*_</b> */" // a server's text is no markup
	for name, r := range map[string]*analysis.Result{"full": res, "minimal": minimal()} {
		var b bytes.Buffer
		if err := (&report.Page{Result: r}).WriteMarkdown(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".md", b.String())
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := (&report.Page{Tool: "v1", Result: full()}).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "full.json", b.String())
	var v map[string]any
	if err := json.Unmarshal(b.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	if v["schema_version"] != 1.0 || v["load"].(map[string]any)["offered_per_s"] != nil {
		t.Error("schema_version must be 1, and what is not known null")
	}
}
