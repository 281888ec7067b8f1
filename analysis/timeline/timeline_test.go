package timeline_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"chokepoint/analysis/timeline"
	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// reading is a value of one series at one time.
type reading struct {
	source, metric string
	t, v           float64
}

// load makes a record of readings and phases and loads it. The metric "c" is a
// counter that wraps at 100, "g" a gauge.
func load(t *testing.T, from, to float64, readings ...reading) *timeline.Timeline {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const id = record.ID("20261130T212218Z-lock-7f3a")
	w, err := record.Create(root, record.Run{ID: id, Metrics: []metric.Desc{
		{Name: "c", Kind: metric.Counter, Wrap: 100}, {Name: "g", Kind: metric.Gauge}, {Name: "operations.seconds", Kind: metric.Counter},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readings {
		b := &record.Batch{Source: r.source, T: r.t}
		b.Add(r.v, r.metric)
		w.Batch(b)
	}
	if from >= 0 {
		w.Event(record.Event{T: from, Kind: record.Phase, Text: record.PhaseMeasure})
	}
	if to >= 0 {
		w.Event(record.Event{T: to, Kind: record.Phase, Text: record.PhaseDone})
	}
	r, err := record.Open(root, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tl, err := timeline.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func TestDelta(t *testing.T) {
	for _, c := range []struct {
		name     string
		readings []reading
		want     float64
		problem  string
	}{
		{"from the last reading before to the first after", []reading{{"s", "c", 0, 1}, {"s", "c", 0.9, 2}, {"s", "c", 1.5, 5}, {"s", "c", 2.2, 9}, {"s", "c", 3, 50}}, 7, ""},
		{"a reset counts as nothing: 4 before it, 2 after", []reading{{"s", "c", 1, 10}, {"s", "c", 1.3, 14}, {"s", "c", 1.6, 3}, {"s", "c", 2, 5}}, 6, "counters were reset between 1.300 s and 1.600 s"},
		{"a wrap at 100: from 90 to 10 are 20", []reading{{"s", "c", 1, 90}, {"s", "c", 2, 10}}, 20, ""},
		{"first seen in mid-run: it was 0 before", []reading{{"s", "g", 1, 0}, {"s", "c", 1.5, 3}, {"s", "c", 2, 4}}, 4, ""},
		{"read once", []reading{{"s", "c", 1.5, 3}}, 0, ""},
		{"never read", nil, 0, ""},
	} {
		tl := load(t, 1, 2, c.readings...)
		if got := tl.Delta(tl.Get("c")); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		told := ""
		for _, p := range tl.Problems {
			told += p.Error()
		}
		if (c.problem == "") != (told == "") || !strings.Contains(told, c.problem) {
			t.Errorf("%s: problems %q, want %q", c.name, told, c.problem)
		}
	}
}

func TestGauges(t *testing.T) {
	tl := load(t, 1, 2, reading{"s", "g", 0.5, 99}, reading{"s", "g", 1, 3}, reading{"s", "g", 1.5, 8}, reading{"s", "g", 2, 5}, reading{"s", "g", 3, 77})
	g := tl.Get("g")
	if tl.Max(g) != 8 || tl.Last(g) != 5 || len(g.Before(1)) != 1 || len(tl.During(g)) != 2 {
		t.Errorf("max %v, last %v, before %v, during %v", tl.Max(g), tl.Last(g), g.Before(1), tl.During(g))
	}
	if !math.IsNaN(tl.Max(nil)) || !math.IsNaN(tl.Last(nil)) {
		t.Error("a gauge that was never read has a value")
	}
}

// operations are readings every step from..to.
func operations(from, to, step float64) []reading {
	var out []reading
	for i := 0; ; i++ {
		at := from + float64(i)*step
		if at > to+1e-9 {
			return out
		}
		out = append(out, reading{"operations", "operations.seconds", at, at})
	}
}

func TestKilled(t *testing.T) {
	tl := load(t, 5, -1, operations(5, 7.5, 0.1)...)
	if !tl.Measured || tl.To != 7.5 {
		t.Errorf("measured %v, until %v; want what was seen until 7.5", tl.Measured, tl.To)
	}
	if tl := load(t, -1, -1, operations(5, 7.5, 0.1)...); tl.Measured {
		t.Error("a record without a measured phase has one")
	}
}
