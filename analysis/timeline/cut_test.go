package timeline_test

import (
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"chokepoint/analysis/timeline"
)

// readAt is a record of operations that were read at these times, each reading
// being its own time.
func readAt(from, to float64, times ...float64) made {
	m := made{events: measured(from, to)}
	for _, at := range times {
		m.batches = append(m.batches, fmt.Sprintf(`{"source":"operations","t":%v,"values":{"operations.seconds":%v}}`, at, at))
	}
	return m
}

func TestSlicesByHand(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to float64
		times    []float64
		want     []float64 // the cuts
	}{
		// A fortieth of 4 s is 0.1 s.
		{"the readings are wider apart than a slice", 1, 5, []float64{1, 2, 3, 4, 5}, []float64{1, 2, 3, 4, 5}},
		{"a gap makes one long slice", 0, 4, []float64{0, 0.1, 0.2, 3.9, 4}, []float64{0, 0.1, 0.2, 3.9, 4}},
		{"a reading between two cuts cuts nothing", 0, 4, []float64{0, 0.0625, 0.125, 0.1875, 0.25, 4}, []float64{0, 0.125, 0.25, 4}},
		{"a rest under half a slice joins the last one", 0, 4, []float64{0, 2, 3.97, 4}, []float64{0, 2, 4}},
		{"a longer rest is a slice", 0, 4, []float64{0, 2, 3.94, 4}, []float64{0, 2, 3.94, 4}},
		{"readings outside the phase cut nothing", 1, 5, []float64{0, 0.5, 1, 3, 5, 6}, []float64{1, 3, 5}},
		{"the first is a little late", 1, 5, []float64{1.0625, 3, 5}, []float64{1, 3, 5}},
		{"none but at the ends", 0, 4, []float64{0, 4}, []float64{0, 4}},
		{"the end a hair before its reading, as times of nanoseconds may be", 0, 4, []float64{0, 2, 4.000000001}, []float64{0, 2, 4}},
		{"no readings", 0, 4, nil, nil},
	} {
		tl := readAt(c.from, c.to, c.times...).load(t)
		var cuts []float64
		for i, s := range tl.Slices() {
			if i == 0 {
				cuts = append(cuts, s.From)
			}
			cuts = append(cuts, s.To)
		}
		if d := cmp.Diff(c.want, cuts, cmpopts.EquateApprox(0, 1e-6)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestSliceCounts(t *testing.T) {
	for _, c := range []struct {
		name           string
		phase, reading float64
		want           int
	}{
		{"a fortieth of 1 s is 25 ms", 1, 0.025, 40},
		{"half a second, read every 10 ms: a step of 12.5 ms takes two readings", 0.5, 0.01, 25},
		{"a fifth of a second: not under 10 ms", 0.2, 0.01, 20},
		{"10 s, read every 100 ms: a step of 250 ms takes three readings, the last gets the rest", 10, 0.1, 33},
		{"0.3 s: not under 10 ms", 0.3, 0.01, 30},
		{"100 s: not over 1 s", 100, 0.1, 100},
		{"an hour", 3600, 1, 3600},
		{"40 s in slices of 1 s", 40, 0.1, 40},
		{"10 ms are one slice", 0.01, 0.01, 1},
	} {
		var times []float64
		for i := range int(math.Round(c.phase/c.reading)) + 1 {
			times = append(times, 3+float64(i)*c.reading)
		}
		tl := readAt(3, 3+c.phase, times...).load(t)
		if got := len(tl.Slices()); got != c.want {
			t.Errorf("%s: %d slices, want %d", c.name, got, c.want)
		}
	}
}

// TestSlicesProperty: slices tile the measured phase in order, none but a
// rest is shorter than a step, and what the operations did in them adds up to
// what they did in the phase.
func TestSlicesProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		at := float64(rapid.IntRange(0, 100).Draw(t, "from, s"))
		times := []float64{at}
		for range rapid.IntRange(1, 100).Draw(t, "readings") {
			at += float64(rapid.IntRange(1, 1000).Draw(t, "step, ms")) / 1000
			times = append(times, at)
		}
		from, to := times[0], at
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		tl, err := readAt(from, to, times...).try(sub)
		if err != nil {
			t.Fatal(err)
		}
		slices := tl.Slices()
		step := min(max((to-from)/40, 0.010), 1)
		end, sum := from, 0.0
		for i, s := range slices {
			if s.From != end || s.To <= s.From {
				t.Fatalf("slice %d is %v, the one before it ends at %v", i, s, end)
			}
			if i < len(slices)-1 && s.To-s.From < 0.99*step {
				t.Fatalf("slice %d is %v, a step is %v", i, s, step)
			}
			end = s.To
			sum += tl.DeltaOver(tl.Get("operations.seconds"), s.From, s.To)
		}
		if end != to {
			t.Fatalf("slices end at %v, the phase at %v", end, to)
		}
		if whole := tl.Delta(tl.Get("operations.seconds")); math.Abs(sum-whole) > 1e-9 || math.Abs(whole-(to-from)) > 1e-9 {
			t.Fatalf("%v in the slices, %v in the phase of %v s", sum, whole, to-from)
		}
	})
}

// BenchmarkSlices is the cutting of a run of ten minutes.
func BenchmarkSlices(b *testing.B) {
	var times []float64
	for i := range 6001 {
		times = append(times, float64(i)/10)
	}
	tl, err := readAt(0, 600, times...).try(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	var s []timeline.Slice
	for b.Loop() {
		s = tl.Slices()
	}
	if len(s) != 600 {
		b.Errorf("%d slices, want 600", len(s))
	}
}
