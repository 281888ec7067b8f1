package timeline_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"chokepoint/analysis/timeline"
	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// made is a record as its files say.
type made struct {
	batches, events []string // lines
	without         string   // a file that is missing
}

// described are the metrics of these tests.
func described() []metric.Desc {
	return []metric.Desc{
		{Name: "c", Kind: metric.Counter, Labels: []string{"x"}},
		{Name: "w", Kind: metric.Counter, Wrap: 100},
		{Name: "g", Kind: metric.Gauge},
		{Name: "operations.seconds", Kind: metric.Counter},
	}
}

// try writes the record and loads it.
func (m made) try(dir string) (*timeline.Timeline, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	const id = record.ID("20261130T212218Z-lock-7f3a")
	w, err := record.Create(root, record.Run{ID: id, Metrics: described()})
	if err != nil {
		return nil, err
	}
	if err := w.Close(record.End{}); err != nil {
		return nil, err
	}
	for name, lines := range map[string][]string{record.BatchesFile: m.batches, record.EventsFile: m.events} {
		file := filepath.Join(dir, string(id), name)
		err := errors.Join(os.Remove(file), os.WriteFile(file, []byte(strings.Join(append(lines, ""), "\n")), 0o644))
		if err == nil && name == m.without {
			err = os.Remove(file)
		}
		if err != nil {
			return nil, err
		}
	}
	r, err := record.Open(root, id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return timeline.Load(r)
}

func (m made) load(t *testing.T) *timeline.Timeline {
	t.Helper()
	tl, err := m.try(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func batch(source string, at float64, values string) string {
	return fmt.Sprintf(`{"source":%q,"t":%g,"values":{%s}}`, source, at, values)
}

func phase(at float64, name string) string {
	return fmt.Sprintf(`{"t":%g,"kind":"phase","text":%q}`, at, name)
}

// measured opens and closes the measured phase.
func measured(from, to float64) []string { return []string{phase(from, "measure"), phase(to, "done")} }

func problems(tl *timeline.Timeline) []string {
	var out []string
	for _, p := range tl.Problems {
		out = append(out, p.Error())
	}
	return out
}

func TestDeltaOver(t *testing.T) {
	// Readings each second from 0 to 6, of 0, 1, 3, 6, 10, 15 and 21.
	m := made{events: measured(1, 5)}
	for i, v := range []int{0, 1, 3, 6, 10, 15, 21} {
		m.batches = append(m.batches, batch("s", float64(i), fmt.Sprintf(`"c{a}":%d`, v)))
	}
	tl := m.load(t)
	c := tl.Get("c", "a")
	for _, row := range []struct{ from, to, want float64 }{
		{1, 5, 14},     // on the readings: 15 - 1
		{1.5, 4.5, 14}, // between them: out to 1 and 5
		{2, 2, 0},      // no time
		{2.1, 2.9, 3},  // within one step: 6 - 3
		{-5, 99, 21},   // beyond what was read
		{6, 99, 0},     // from the last reading on
		{-9, -1, 0},    // before the first
		{0.999, 1, 1},  // a time just before a reading is before it
		{1, 1.001, 2},  // and just after it, after
		{3, 4, 4},      // and the parts of 1 to 5
		{4, 5, 5},      // add up:
		{1, 3, 5},      // 5 + 4 + 5 = 14
	} {
		if got := tl.DeltaOver(c, row.from, row.to); got != row.want {
			t.Errorf("from %v to %v: %v, want %v", row.from, row.to, got, row.want)
		}
	}
	if got := tl.Delta(c); got != 14 {
		t.Errorf("over the measured phase %v, want 14", got)
	}
	if got := tl.DeltaOver(nil, 1, 5); got != 0 {
		t.Errorf("a series that never was has grown by %v", got)
	}
}

func TestResets(t *testing.T) {
	for _, c := range []struct {
		name    string
		batches []string
		want    float64 // of c{a} and c{b} together
		told    []string
	}{
		{"two series of one source fall together: told once", []string{
			batch("s", 1, `"c{a}":10,"c{b}":20`), batch("s", 2, `"c{a}":1,"c{b}":2`), batch("s", 3, `"c{a}":4,"c{b}":2`),
		}, 3, []string{"s: counters were reset between 1.000 s and 2.000 s"}},
		{"twice in the phase: told twice", []string{
			batch("s", 1, `"c{a}":10`), batch("s", 1.5, `"c{a}":1`), batch("s", 2, `"c{a}":5`), batch("s", 3, `"c{a}":0`),
		}, 4, []string{"between 1.000 s and 1.500 s", "between 2.000 s and 3.000 s"}},
		{"two sources: told of both", []string{
			batch("s", 1, `"c{a}":10`), batch("r", 1, `"c{b}":10`), batch("s", 2, `"c{a}":0`), batch("r", 3, `"c{b}":0`), batch("s", 3, `"c{a}":2`),
		}, 2, []string{"s: counters were reset between 1.000 s and 2.000 s", "r: counters were reset between 1.000 s and 3.000 s"}},
		{"before the phase: not told", []string{
			batch("s", 0.1, `"c{a}":10`), batch("s", 0.5, `"c{a}":1`), batch("s", 1, `"c{a}":2`), batch("s", 3, `"c{a}":7`),
		}, 5, nil},
		{"a fall to zero, left out by the source, is none", []string{
			batch("s", 1, `"c{a}":10,"g":1`), batch("s", 2, `"g":1`), batch("s", 3, `"c{a}":12`),
		}, 2, nil},
		{"a gauge may fall", []string{batch("s", 1, `"g":10`), batch("s", 3, `"g":1`)}, 0, nil},
	} {
		tl := made{batches: c.batches, events: measured(1, 3)}.load(t)
		if got := tl.Delta(tl.Get("c", "a")) + tl.Delta(tl.Get("c", "b")); got != c.want {
			t.Errorf("%s: grew by %v, want %v", c.name, got, c.want)
		}
		told := problems(tl)
		if len(told) != len(c.told) {
			t.Errorf("%s: problems %q, want %d", c.name, told, len(c.told))
		}
		for _, want := range c.told {
			if !strings.Contains(strings.Join(told, "\n"), want) {
				t.Errorf("%s: problems %q do not tell %q", c.name, told, want)
			}
		}
	}
}

func TestWraps(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, next float64
		want         float64
		told         int
	}{
		{"from the upper half to the lower: 100 - 99 + 1", 99, 1, 2, 0},
		{"from just above the half to just below", 51, 49, 98, 0},
		{"within the upper half is a reset", 99, 60, 0, 1},
		{"within the lower half is a reset", 40, 10, 0, 1},
	} {
		tl := made{batches: []string{
			batch("s", 1, fmt.Sprintf(`"w":%g`, c.before)), batch("s", 2, fmt.Sprintf(`"w":%g`, c.next)),
		}, events: measured(1, 2)}.load(t)
		if got := tl.Delta(tl.Get("w")); got != c.want || len(tl.Problems) != c.told {
			t.Errorf("%s: from %v to %v is %v, want %v; problems %v", c.name, c.before, c.next, got, c.want, tl.Problems)
		}
	}
}

// TestCountersProperty: whatever a counter does, its growth is the sum of its
// steps but for those in which it fell; and it is the same in one piece or two.
func TestCountersProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.IntRange(0, 50).Draw(t, "start")
		m := made{batches: []string{batch("s", 1, fmt.Sprintf(`"c{a}":%d`, v))}}
		want := []int{0}
		for i := range rapid.IntRange(1, 20).Draw(t, "readings") {
			step := 0
			if reset := v > 0 && rapid.IntRange(0, 4).Draw(t, "reset") == 0; reset {
				v = rapid.IntRange(0, v-1).Draw(t, "restarts at")
			} else {
				step = rapid.IntRange(0, 100).Draw(t, "step")
				v += step
			}
			want = append(want, want[len(want)-1]+step)
			m.batches = append(m.batches, batch("s", float64(i+2), fmt.Sprintf(`"c{a}":%d`, v)))
		}
		last := float64(len(want))
		m.events = measured(1, last)
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		tl, err := m.try(sub)
		if err != nil {
			t.Fatal(err)
		}
		c := tl.Get("c", "a")
		if got := tl.Delta(c); got != float64(want[len(want)-1]) {
			t.Fatalf("grew by %v, want %v", got, want[len(want)-1])
		}
		cut := rapid.IntRange(1, len(want)).Draw(t, "cut")
		a, b := tl.DeltaOver(c, 1, float64(cut)), tl.DeltaOver(c, float64(cut), last)
		if a != float64(want[cut-1]) || a+b != tl.Delta(c) {
			t.Fatalf("%v before %d and %v after it, %v in all; want %d before", a, cut, b, tl.Delta(c), want[cut-1])
		}
	})
}

// TestGaugeTimes: which readings of a gauge belong to the measured phase.
func TestGaugeTimes(t *testing.T) {
	m := made{events: measured(2, 4)}
	for i, v := range []float64{1, 9, 2, 3, 4, 8, 7} { // at 0, 1, ... 6
		m.batches = append(m.batches, batch("s", float64(i), fmt.Sprintf(`"g":%g`, v)))
	}
	tl := m.load(t)
	g := tl.Get("g")
	for _, c := range []struct {
		what      string
		got, want []float64
	}{
		{"before", g.Before(tl.From), []float64{1, 9}},
		{"before the first", g.Before(0), nil},
		{"during, the reading at the end left out: all have been drained by then", tl.During(g), []float64{2, 3}},
		{"all", g.Values(), []float64{1, 9, 2, 3, 4, 8, 7}},
		{"the largest from 2 to 4, and the last", []float64{tl.Max(g), tl.Last(g)}, []float64{4, 4}},
	} {
		if d := cmp.Diff(c.want, c.got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", c.what, d)
		}
	}
	var none *timeline.Series
	if none.Before(1) != nil || none.Values() != nil || tl.During(none) != nil {
		t.Error("a gauge that never was has values")
	}
}

// TestGaugeOfMinus: the largest of numbers below zero is below zero.
func TestGaugeOfMinus(t *testing.T) {
	tl := made{batches: []string{batch("s", 1, `"g":-3`), batch("s", 2, `"g":-5`)}, events: measured(1, 2)}.load(t)
	if got := tl.Max(tl.Get("g")); got != -3 {
		t.Errorf("%v, want -3", got)
	}
	empty := made{events: measured(1, 2)}.load(t)
	if !math.IsNaN(empty.Max(empty.Get("g"))) {
		t.Error("a gauge that was never read has a largest value")
	}
}

func TestChanges(t *testing.T) {
	tl := made{batches: []string{
		batch("s", 0.5, `"c{a}":1`),          // before the phase
		batch("s", 1, `"c{a}":2`),            // at its start: nothing of it yet
		batch("s", 1.5, `"c{a}":2,"c{b}":1`), // b is new
		batch("s", 2, `"c{a}":3,"c{b}":1`),   // a grows
		batch("s", 3, `"c{a}":4,"c{b}":2`),   // both, at the end
		batch("s", 4, `"c{a}":9`),            // after it
	}, events: measured(1, 3)}.load(t)
	if d := cmp.Diff([]float64{1.5, 2, 3, 3}, tl.Changes("c")); d != "" {
		t.Error(d)
	}
	if got := tl.Changes("nobody"); len(got) != 0 {
		t.Errorf("a metric that never was has changed at %v", got)
	}
}

// TestBadLines: what cannot be read is a problem, and the rest is there.
func TestBadLines(t *testing.T) {
	good := []string{batch("s", 1, `"c{b}":1,"c{a}":1`), batch("s", 3, `"c{b}":3,"c{a}":6`)}
	for _, c := range []struct {
		name string
		m    made
		told string // "" if nothing is
	}{
		{"nothing bad", made{batches: good, events: measured(1, 3)}, ""},
		{"garbage among the batches", made{batches: []string{good[0], "garbage", good[1]}, events: measured(1, 3)}, "batches.jsonl:2: "},
		{"garbage among the events", made{batches: good, events: append([]string{"{"}, measured(1, 3)...)}, "events.jsonl:1: "},
		{"no series", made{batches: append(good, batch("r", 3, `"c{":1`)), events: measured(1, 3)}, "the brace is not closed"},
	} {
		tl := c.m.load(t)
		if told := problems(tl); c.told == "" && len(told) > 0 || c.told != "" && (len(told) != 1 || !strings.Contains(told[0], c.told)) {
			t.Errorf("%s: problems %q, want %q", c.name, told, c.told)
		}
		var labels []string
		for _, s := range tl.All("c", 0) {
			labels = append(labels, s.Labels...)
		}
		if d := cmp.Diff([]string{"a", "b"}, labels); d != "" || tl.Delta(tl.Get("c", "a")) != 5 || !tl.Measured {
			t.Errorf("%s: measured %v, c{a} grew by %v, want 5; %s", c.name, tl.Measured, tl.Delta(tl.Get("c", "a")), d)
		}
	}
}

func TestMissingFiles(t *testing.T) {
	good := []string{batch("s", 1, `"c{a}":1`), batch("s", 3, `"c{a}":6`)}
	for _, file := range []string{record.BatchesFile, record.EventsFile} {
		tl := made{batches: good, events: measured(1, 3), without: file}.load(t)
		if len(tl.Problems) != 1 || !errors.Is(tl.Problems[0], fs.ErrNotExist) {
			t.Errorf("without %s: problems %v", file, tl.Problems)
		}
		if tl.Measured != (file == record.BatchesFile) {
			t.Errorf("without %s: measured %v", file, tl.Measured)
		}
	}
}

// TestStrangeSeries: series that the record does not describe so are no series,
// and readings out of their order are no readings. Validate tells of both.
func TestStrangeSeries(t *testing.T) {
	tl := made{batches: []string{
		batch("s", 1, `"c{a}":1,"c":1,"c{a,b}":1,"nobody{x}":1`),
		batch("s", 3, `"c{a}":5`),
		batch("s", 2, `"c{a}":100`),
	}, events: measured(1, 3)}.load(t)
	if n := len(tl.All("c", 0)); n != 1 || tl.Get("c") != nil || tl.Get("c", "a", "b") != nil || tl.Get("nobody", "x") != nil {
		t.Errorf("%d series, want only c{a}", n)
	}
	if got := tl.Delta(tl.Get("c", "a")); got != 4 {
		t.Errorf("grew by %v, want 4", got)
	}
}

func TestHasAndEvents(t *testing.T) {
	tl := made{
		batches: []string{batch("twice", 1, ""), batch("once", 1, ""), batch("twice", 2, "")},
		events: append(measured(1, 2), `{"t":1,"kind":"fault","source":"s","text":"gone"}`,
			`{"t":1,"kind":"statement","text":"SELECT ?","labels":{"digest":"d1"}}`, `{"t":2,"kind":"note","text":"n"}`),
	}.load(t)
	if !tl.Has("twice") || tl.Has("once") || tl.Has("never") {
		t.Error("a source has differences if it was read twice")
	}
	if d := cmp.Diff(map[string]string{"d1": "SELECT ?"}, tl.Texts); d != "" {
		t.Error(d)
	}
	want := []record.Event{{T: 1, Kind: record.Fault, Source: "s", Text: "gone"}, {T: 2, Kind: record.Note, Text: "n"}}
	if d := cmp.Diff(want, tl.Events); d != "" {
		t.Error(d)
	}
}

// TestKilledBesideServer: without an end the phase lasts to the operations'
// first reading after the server's last, so that both are of the same time.
func TestKilledBesideServer(t *testing.T) {
	var ops []string // each quarter of a second from 5 to 7.5
	for i := range 11 {
		at := 5 + float64(i)/4
		ops = append(ops, batch("operations", at, fmt.Sprintf(`"operations.seconds":%g`, at)))
	}
	for _, c := range []struct {
		name    string
		server  []float64
		without bool // of operations
		to      float64
		ok      bool
	}{
		{"no server: to the last reading", nil, false, 7.5, true},
		{"the server last at 7.1: to 7.25", []float64{5.1, 6.1, 7.1}, false, 7.25, true},
		{"at a reading of the operations: to that", []float64{5, 6.5}, false, 6.5, true},
		{"after all of them: to the last", []float64{5, 9}, false, 7.5, true},
		{"only before the phase: as if there were none", []float64{4, 5}, false, 7.5, true},
		{"no operations: nothing was measured", []float64{5, 6}, true, 0, false},
	} {
		m := made{events: []string{phase(5, "measure")}}
		if !c.without {
			m.batches = append(m.batches, ops...)
		}
		for _, at := range c.server {
			m.batches = append(m.batches, batch("mysql.digests", at, ""))
		}
		tl := m.load(t)
		if tl.Measured != c.ok || tl.To != c.to {
			t.Errorf("%s: measured %v, until %v; want %v, %v", c.name, tl.Measured, tl.To, c.ok, c.to)
		}
		if !c.ok && tl.Slices() != nil {
			t.Errorf("%s: slices %v", c.name, tl.Slices())
		}
	}
}
