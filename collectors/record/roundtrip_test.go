package record_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// folder makes an empty folder for records.
func folder(tb testing.TB) *os.Root {
	tb.Helper()
	root, err := os.OpenRoot(tb.TempDir())
	must(tb, err)
	tb.Cleanup(func() { root.Close() })
	return root
}

// scratch hands out folders to properties, which have no TempDir of their own.
func scratch(t *testing.T) func(*rapid.T) *os.Root {
	t.Helper()
	dir := t.TempDir()
	return func(rt *rapid.T) *os.Root {
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			rt.Fatal(err)
		}
		root, err := os.OpenRoot(sub)
		if err != nil {
			rt.Fatal(err)
		}
		rt.Cleanup(func() {
			root.Close()
			os.RemoveAll(sub)
		})
		return root
	}
}

func check(t *rapid.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func finite() *rapid.Generator[float64] {
	return rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64)
}

func batches() *rapid.Generator[record.Batch] {
	return rapid.Custom(func(t *rapid.T) record.Batch {
		b := record.Batch{
			Source: rapid.StringMatching(`[a-z]{1,8}(\.[a-z]{1,8})?`).Draw(t, "source"),
			T:      rapid.Float64Range(0, 1e6).Draw(t, "t"),
			Took:   rapid.Float64Range(0, 10).Draw(t, "took"),
		}
		for range rapid.IntRange(0, 5).Draw(t, "values") {
			labels := rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "labels")
			b.Add(finite().Draw(t, "value"), rapid.SampledFrom([]string{"a", "b.c"}).Draw(t, "metric"), labels...)
		}
		return b
	})
}

func events() *rapid.Generator[record.Event] {
	return rapid.Custom(func(t *rapid.T) record.Event {
		return record.Event{
			T:      rapid.Float64Range(0, 1e6).Draw(t, "t"),
			Kind:   rapid.SampledFrom([]string{record.Phase, record.Fault, record.Gap, record.Note, record.Statement}).Draw(t, "kind"),
			Source: rapid.String().Draw(t, "source"),
			Text:   rapid.String().Draw(t, "text"), // line ends and quotes included
			Labels: rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "labels"),
		}
	})
}

// TestWriteReadIdentity: batches and events come back bit by bit.
func TestWriteReadIdentity(t *testing.T) {
	newRoot := scratch(t)
	rapid.Check(t, func(t *rapid.T) {
		root := newRoot(t)
		wantBatches := rapid.SliceOfN(batches(), 0, 5).Draw(t, "batches")
		wantEvents := rapid.SliceOfN(events(), 0, 5).Draw(t, "events")
		w, err := record.Create(root, testRun())
		check(t, err)
		for _, b := range wantBatches {
			check(t, w.Batch(&b))
		}
		for _, e := range wantEvents {
			check(t, w.Event(e))
		}
		check(t, w.Close(record.End{}))
		r, err := record.Open(root, testID)
		check(t, err)
		defer r.Close()
		var gotBatches []record.Batch
		for b, err := range r.Batches() {
			check(t, err)
			gotBatches = append(gotBatches, *b)
		}
		var gotEvents []record.Event
		for e, err := range r.Events() {
			check(t, err)
			gotEvents = append(gotEvents, *e)
		}
		if d := cmp.Diff(wantBatches, gotBatches, cmpopts.EquateEmpty()) + cmp.Diff(wantEvents, gotEvents, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

// TestLatencyIdentity: intervals come back with their times, and their values
// to three significant digits (a bucket of the histogram is at most 1/1024 of
// its values wide; the smallest value it tells apart is the unit of 512 ns).
func TestLatencyIdentity(t *testing.T) {
	newRoot := scratch(t)
	rapid.Check(t, func(t *rapid.T) {
		root := newRoot(t)
		values := rapid.SliceOfN(rapid.Int64Range(1e3, 3600e9), 1, 20).Draw(t, "ns")
		fromMS := rapid.IntRange(0, 100_000).Draw(t, "from, ms")
		lengthMS := rapid.IntRange(0, 10_000).Draw(t, "length, ms")
		want := record.Interval{
			Operation: "buy", Stage: rapid.SampledFrom([]string{record.StageTotal, "pool_wait"}).Draw(t, "stage"), Outcome: "ok",
			From: float64(fromMS) / 1e3, To: float64(fromMS+lengthMS) / 1e3, Histogram: record.NewHistogram(),
		}
		for _, v := range values {
			check(t, want.Histogram.RecordValue(v))
		}
		w, err := record.Create(root, testRun())
		check(t, err)
		check(t, w.Latency(want), w.Close(record.End{}))
		r, err := record.Open(root, testID)
		check(t, err)
		defer r.Close()
		var got []*record.Interval
		for iv, err := range r.Latencies() {
			check(t, err)
			got = append(got, iv)
		}
		if len(got) != 1 || got[0].Operation != want.Operation || got[0].Stage != want.Stage || got[0].Outcome != want.Outcome {
			t.Fatalf("got %+v, want one of %+v", got, want)
		}
		// To the millisecond that the log keeps; see TestIntervalTimes.
		if iv := got[0]; math.Abs(iv.From-want.From) > 1.001e-3 || math.Abs(iv.To-want.To) > 1.001e-3 {
			t.Fatalf("an interval of %d ms from %d ms came back as %v to %v s", lengthMS, fromMS, iv.From, iv.To)
		}
		h := got[0].Histogram
		if h.TotalCount() != int64(len(values)) {
			t.Fatalf("%d values, want %d", h.TotalCount(), len(values))
		}
		var bars []hdr.Bar
		for _, bar := range h.Distribution() {
			if bar.Count > 0 {
				bars = append(bars, bar)
			}
		}
		for _, v := range values {
			near := func(bar hdr.Bar) bool { return bar.To >= v-v/1000-512 && bar.From <= v+v/1000+512 }
			if !slices.ContainsFunc(bars, near) {
				t.Fatalf("nothing within 0.1 %% of %d ns", v)
			}
		}
	})
}

// TestIntervalTimes: the log has whole milliseconds, so those come back.
func TestIntervalTimes(t *testing.T) {
	root := folder(t)
	w, err := record.Create(root, testRun())
	must(t, err)
	// 1.001 and 4.004, times 1000 and cut down to an integer, are 1000 and 4003.
	for _, s := range []float64{0, 0.5, 1.001, 4.004} {
		h := record.NewHistogram()
		must(t, w.Latency(record.Interval{Operation: "a", Stage: "b", Outcome: "c", From: s, To: s + 1, Histogram: h}))
	}
	var got []float64
	r, err := record.Open(root, testID)
	must(t, err)
	defer r.Close()
	for iv, err := range r.Latencies() {
		must(t, err)
		got = append(got, iv.From)
	}
	if d := cmp.Diff([]float64{0, 0.5, 1.001, 4.004}, got); d != "" {
		t.Error(d)
	}
}

// fullRun has something in each field, so that a lost one is seen.
func fullRun() record.Run {
	return record.Run{
		ID: testID, Tool: record.Tool{Version: "v1", Revision: "abc", Go: "go1.26"},
		Started: time.Date(2026, 11, 30, 21, 22, 18, 123456789, time.UTC),
		Workload: record.Workload{
			Name: "lock", Strategy: "atomic", Variant: "v", Fault: "f", Seed: math.MaxUint64, Concurrency: 4, ThinkS: 0.5, OfferedPerS: 10,
			Args: []string{"--pool", "10"}, Parameters: map[string]string{"pool": "10"}, Resources: []record.Resource{{Name: "pool:mysql", Capacity: 10}},
		},
		Host: record.Host{OS: "linux", Kernel: "6.1", CPUs: 2, GOMAXPROCS: 1, MemoryBytes: 1 << 40, Process: "p"},
		Servers: []record.Server{{
			Kind: "mysql", Flavor: "mariadb", Version: "10.11", Sandbox: true, Process: "mariadbd", Schema: "s", Variables: map[string]string{"autocommit": "ON"},
		}},
		Clocks:  []record.Clock{{Server: "mysql", AtS: 1, OffsetS: -0.25, RTTS: 0.001}},
		Metrics: []metric.Desc{{Name: "m", Unit: metric.Seconds, Help: "h", Kind: metric.Counter, Labels: []string{"l"}, Wrap: 1 << 24}},
	}
}

func TestRunIdentity(t *testing.T) {
	root := folder(t)
	w, err := record.Create(root, fullRun())
	must(t, err)
	want := fullRun()
	want.Format = record.Format
	see := func(status string) {
		t.Helper()
		r, err := record.Open(root, testID)
		must(t, err)
		defer r.Close()
		if d := cmp.Diff(want, r.Run()); d != "" {
			t.Error(d)
		}
		if got := r.Run().Status(); got != status {
			t.Errorf("status %q, want %q", got, status)
		}
		if d := cmp.Diff(want, w.Run()); d != "" {
			t.Errorf("the writer says: %s", d)
		}
	}
	see(record.Killed) // for all that a reader knows
	must(t, w.Update(func(r *record.Run) { r.Clocks = append(r.Clocks, record.Clock{Server: "redis"}) }))
	want.Clocks = append(want.Clocks, record.Clock{Server: "redis"})
	see(record.Killed)
	want.End = &record.End{AtS: 3, Status: record.Interrupted, Error: "e", Books: &record.Books{What: "w", Expected: 1, Actual: 2, LostUpdates: 3, Oversold: 4}}
	must(t, w.Close(*want.End))
	see(record.Interrupted)
	names, err := fs.Glob(root.FS(), string(testID)+"/*")
	must(t, err)
	for i, n := range names {
		names[i] = filepath.Base(n)
	}
	if d := cmp.Diff([]string{"batches.jsonl", "events.jsonl", "latency.hlog", "run.json"}, names); d != "" {
		t.Errorf("a finished record holds: %s", d)
	}
}

// TestNotANumber: a source that reads a NaN fails alone; the recording goes on.
func TestNotANumber(t *testing.T) {
	root := folder(t)
	w, err := record.Create(root, testRun())
	must(t, err)
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		b := &record.Batch{Source: "s"}
		b.Add(v, "g")
		if err := w.Batch(b); err == nil {
			t.Errorf("%v was written", v)
		}
	}
	b := &record.Batch{Source: "s"}
	b.Add(1, "g")
	must(t, errors.Join(w.Batch(b), w.Err(), w.Close(record.End{})))
	if got := read(t, root); len(got.Batches) != 1 || len(got.Bad) != 0 {
		t.Errorf("%+v, want one batch", got)
	}
}

// TestWriteConcurrently: lines of many writers stay whole.
func TestWriteConcurrently(t *testing.T) {
	root := folder(t)
	w, err := record.Create(root, testRun())
	must(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				b := &record.Batch{Source: "s"}
				b.Add(1, "g")
				h := record.NewHistogram()
				err := errors.Join(w.Batch(b), w.Event(record.Event{Kind: record.Note}), h.RecordValue(1e6),
					w.Latency(record.Interval{Operation: "a", Stage: "b", Outcome: "c", Histogram: h}))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	must(t, w.Close(record.End{}))
	if got := read(t, root); len(got.Batches) != 400 || len(got.Events) != 400 || len(got.Intervals) != 400 || len(got.Bad) != 0 {
		t.Errorf("%d batches, %d events, %d intervals; want 400 each; bad %v", len(got.Batches), len(got.Events), len(got.Intervals), got.Bad)
	}
}
