package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

const testID = record.ID("20261130T212218Z-lock-7f3a")

func testRun() record.Run {
	return record.Run{
		ID: testID, Started: time.Date(2026, 11, 30, 21, 22, 18, 0, time.UTC),
		Workload: record.Workload{Name: "lock", Concurrency: 4, Args: []string{"--pool", "10"}},
		Metrics: []metric.Desc{
			{Name: "operations.seconds", Unit: metric.Seconds, Kind: metric.Counter, Labels: []string{"operation"}},
			{Name: "g", Unit: metric.One, Kind: metric.Gauge},
		},
	}
}

// write makes a record of three batches, three events and two intervals.
func write(tb testing.TB, end *record.End) (*os.Root, string) {
	tb.Helper()
	dir := tb.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { root.Close() })
	w, err := record.Create(root, testRun())
	if err != nil {
		tb.Fatal(err)
	}
	for i := range 3 {
		b := &record.Batch{Source: "operations", T: float64(i)}
		b.Add(float64(i)*1.5, "operations.seconds", "buy,{1}\\")
		must(tb, w.Batch(b))
		must(tb, w.Event(record.Event{T: float64(i), Kind: record.Phase, Text: []string{record.PhaseIdle, record.PhaseMeasure, record.PhaseDone}[i]}))
	}
	for i := range 2 {
		h := record.NewHistogram()
		must(tb, h.RecordValue(int64(5e6*(i+1))))
		must(tb, w.Latency(record.Interval{Operation: "buy", Stage: record.StageTotal, Outcome: "ok", From: float64(i), To: float64(i + 1), Histogram: h}))
	}
	if end != nil {
		must(tb, w.Close(*end))
	}
	return root, filepath.Join(dir, string(testID))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// seen is all that a reader gives.
type seen struct {
	Batches   []record.Batch
	Events    []record.Event
	Intervals []string
	Bad       []string
}

func read(tb testing.TB, root *os.Root) seen {
	tb.Helper()
	r, err := record.Open(root, testID)
	must(tb, err)
	defer r.Close()
	var s seen
	bad := func(err error) bool {
		var syntax *record.SyntaxError
		if err != nil && !errors.As(err, &syntax) {
			tb.Fatal(err)
		}
		if err != nil {
			s.Bad = append(s.Bad, err.Error())
		}
		return err != nil
	}
	for b, err := range r.Batches() {
		if !bad(err) {
			s.Batches = append(s.Batches, *b)
		}
	}
	for e, err := range r.Events() {
		if !bad(err) {
			s.Events = append(s.Events, *e)
		}
	}
	for iv, err := range r.Latencies() {
		if !bad(err) {
			s.Intervals = append(s.Intervals, fmt.Sprintf("%s/%s/%s %g..%g n=%d max=%d", iv.Operation, iv.Stage, iv.Outcome, iv.From, iv.To, iv.Histogram.TotalCount(), iv.Histogram.Max()/1e5))
		}
	}
	return s
}

func TestWriteThenRead(t *testing.T) {
	root, dir := write(t, &record.End{AtS: 3, Status: record.Complete})
	got := read(t, root)
	want := seen{
		Batches: []record.Batch{
			{Source: "operations", T: 0, Values: map[string]float64{`operations.seconds{buy\,\{1\}\\}`: 0}},
			{Source: "operations", T: 1, Values: map[string]float64{`operations.seconds{buy\,\{1\}\\}`: 1.5}},
			{Source: "operations", T: 2, Values: map[string]float64{`operations.seconds{buy\,\{1\}\\}`: 3}},
		},
		Events: []record.Event{{T: 0, Kind: "phase", Text: "idle"}, {T: 1, Kind: "phase", Text: "measure"}, {T: 2, Kind: "phase", Text: "done"}},
		// 5 and 10 ms to three digits: 50 and 100 tenths of a millisecond.
		Intervals: []string{"buy/total/ok 0..1 n=1 max=50", "buy/total/ok 1..2 n=1 max=100"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	r, err := record.Open(root, testID)
	must(t, err)
	defer r.Close()
	if err := record.Validate(r); err != nil {
		t.Error(err)
	}
	for _, f := range []string{record.RunFile, record.BatchesFile, record.EventsFile, record.LatencyFile} {
		if info, err := os.Stat(filepath.Join(dir, f)); err != nil || info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s of a finished run is %v (%v); it must be read-only", f, info.Mode(), err)
		}
	}
	if _, err := record.Create(root, testRun()); err == nil {
		t.Error("a second record under the same id was made")
	}
}

// TestCutAnywhere: whatever was written last, every whole line before it is
// read, and at most one line is told to be bad.
func TestCutAnywhere(t *testing.T) {
	for _, name := range []string{record.BatchesFile, record.EventsFile, record.LatencyFile} {
		root, dir := write(t, nil)
		file := filepath.Join(dir, name)
		whole, err := os.ReadFile(file)
		must(t, err)
		for n := range len(whole) + 1 {
			must(t, os.WriteFile(file, whole[:n], 0o644))
			got := read(t, root)
			lines := bytes.Count(whole[:n], []byte("\n"))
			torn := 0
			if n > 0 && whole[n-1] != '\n' {
				torn = 1
			}
			count := map[string]int{record.BatchesFile: len(got.Batches), record.EventsFile: len(got.Events), record.LatencyFile: len(got.Intervals)}[name]
			if count != lines || len(got.Bad) != torn {
				t.Fatalf("%s cut at %d: %d of %d whole lines read, %d bad: %v", name, n, count, lines, len(got.Bad), got.Bad)
			}
		}
		// A killed run with a torn last line breaks no rule.
		must(t, os.WriteFile(file, whole[:len(whole)-3], 0o644))
		r, err := record.Open(root, testID)
		must(t, err)
		if err := record.Validate(r); err != nil {
			t.Errorf("%s torn: %v", name, err)
		}
		if r.Run().Status() != record.Killed {
			t.Errorf("status %s, want killed", r.Run().Status())
		}
		r.Close()
	}
}

func TestBadLineInTheMiddle(t *testing.T) {
	root, dir := write(t, nil)
	file := filepath.Join(dir, record.BatchesFile)
	whole, err := os.ReadFile(file)
	must(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for _, bad := range []string{"garbage\n", "{}\n", `{"source":"x","t":-1,"values":{}}` + "\n", strings.Repeat("x", 17<<20) + "\n"} {
		must(t, os.WriteFile(file, bytes.Join([][]byte{lines[0], []byte(bad), lines[1], lines[2]}, nil), 0o644))
		got := read(t, root)
		if len(got.Batches) != 3 || len(got.Bad) != 1 || !strings.HasPrefix(got.Bad[0], "batches.jsonl:2: ") {
			t.Errorf("%.20q: %d batches, bad %v", bad, len(got.Batches), got.Bad)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct{ name, file, line, want string }{
		{"unknown metric", record.BatchesFile, `{"source":"s","t":9,"values":{"nobody":1}}`, `"nobody" is not described`},
		{"wrong number of labels", record.BatchesFile, `{"source":"s","t":9,"values":{"g{a}":1}}`, "has 1 labels, its description 0"},
		{"not a series", record.BatchesFile, `{"source":"s","t":9,"values":{"g{":1}}`, "the brace is not closed"},
		{"time goes back", record.BatchesFile, `{"source":"operations","t":0.5,"values":{}}`, "goes back in time"},
		{"operation counter falls", record.BatchesFile, `{"source":"operations","t":9,"values":{"operations.seconds{buy\\,\\{1\\}\\\\}":1}}`, "falls from 3 to 1"},
		{"unknown phase", record.EventsFile, `{"t":9,"kind":"phase","text":"lunch"}`, `unknown phase "lunch"`},
		{"phase twice", record.EventsFile, `{"t":9,"kind":"phase","text":"idle"}`, `phase "idle" after "done"`},
		{"no histogram", record.LatencyFile, "Tag=a/b/c,0,1,1,xxxx", record.LatencyFile + ":3: "},
		{"no tag", record.LatencyFile, "0,1,1,xxxx", "not a tagged interval"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, dir := write(t, nil)
			f, err := os.OpenFile(filepath.Join(dir, c.file), os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString(c.line + "\n")
			must(t, errors.Join(err, f.Close()))
			r, err := record.Open(root, testID)
			must(t, err)
			defer r.Close()
			if err := record.Validate(r); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestParseID(t *testing.T) {
	for _, bad := range []string{
		"", ".", "..", "latest", "a/b", "20261130T212218Z-lock-7f3a/", "../20261130T212218Z-lock-7f3a", "20261130T212218Z-lock-7F3A",
		"20261130T212218Z-löck-7f3a", "20261330T212218Z-lock-7f3a", "20261130T212218Z-lock-7f3a\n", "20261130T212218Z--7f3a",
	} {
		if id, err := record.ParseID(bad); err == nil {
			t.Errorf("%q is taken for run id %s", bad, id)
		}
	}
	if _, err := record.ParseID(string(record.NewID(time.Now(), "lock"))); err != nil {
		t.Error(err)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add(string(testID))
	f.Add("../x")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := record.ParseID(s); err == nil && (string(id) != s || strings.ContainsAny(s, "/\\.\x00")) {
			t.Errorf("%q is taken for a run id", s)
		}
	})
}

func TestSeriesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z][a-z._]{0,20}`).Draw(t, "metric")
		labels := rapid.SliceOf(rapid.String()).Draw(t, "labels")
		gotName, gotLabels, err := record.ParseSeries(record.Series(name, labels...))
		if err != nil || gotName != name || len(gotLabels) != len(labels) {
			t.Fatalf("%q %q came back as %q %q (%v)", name, labels, gotName, gotLabels, err)
		}
		for i := range labels {
			if gotLabels[i] != labels[i] {
				t.Fatalf("label %q came back as %q", labels[i], gotLabels[i])
			}
		}
	})
}

// FuzzReader: no content of a record makes a reader panic, or lets it say more
// lines than there are.
func FuzzReader(f *testing.F) {
	_, dir := write(f, nil)
	for _, name := range []string{record.BatchesFile, record.EventsFile, record.LatencyFile} {
		p, err := os.ReadFile(filepath.Join(dir, name))
		must(f, err)
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		root, dir := write(t, nil)
		for _, name := range []string{record.BatchesFile, record.EventsFile, record.LatencyFile} {
			must(t, os.WriteFile(filepath.Join(dir, name), p, 0o644))
		}
		got := read(t, root)
		if lines := bytes.Count(p, []byte("\n")) + 1; len(got.Batches) > lines || len(got.Events) > lines || len(got.Intervals) > lines {
			t.Errorf("%d lines became %d batches, %d events, %d intervals", lines, len(got.Batches), len(got.Events), len(got.Intervals))
		}
	})
}
