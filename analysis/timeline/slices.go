package timeline

import (
	"fmt"
	"sort"

	"chokepoint/collectors/metric"
)

// Bounds of a slice: a fortieth of the measured phase, but not under 10 ms, the
// finest reading, nor over 1 s. (With 25 ms, 3,000 purchases that took under half
// a second had fewer than twenty slices, and no verdict.)
const (
	sliceParts = 40
	sliceMin   = 0.010
	sliceMax   = 1.0
)

// rounding is how far the end of the phase may lie before its own reading: the
// one went through whole nanoseconds.
const rounding = 1e-6

// Slice is one step of the analysis.
type Slice struct{ From, To float64 }

// Slices cuts the measured phase at the reading times of the operations. The
// last slice takes what is left when that is under half a step.
func (t *Timeline) Slices() []Slice {
	if !t.Measured {
		return nil
	}
	step := min(max((t.To-t.From)/sliceParts, sliceMin), sliceMax)
	times := t.times[operations]
	var out []Slice
	from := t.From
	for i := sort.SearchFloat64s(times, t.From); i < len(times) && times[i] <= t.To+rounding; i++ {
		at := min(times[i], t.To)
		if at-from < step*0.99 && at < t.To {
			continue
		}
		if at == from {
			continue
		}
		if n := len(out); n > 0 && at-from < step/2 {
			out[n-1].To = at
		} else {
			out = append(out, Slice{From: from, To: at})
		}
		from = at
	}
	return out
}

// markResets notes each counter that fell without wrapping, one line a source
// and moment.
func (t *Timeline) markResets() {
	seen := map[string]bool{}
	for _, name := range sortedKeys(t.bySeries) {
		s := t.bySeries[name]
		if s.desc.Kind != metric.Counter {
			continue
		}
		for i := 1; i < len(s.v); i++ {
			if s.v[i] >= s.v[i-1] || s.wrapped(s.v[i-1], s.v[i]) {
				continue
			}
			key := fmt.Sprintf("%s %g", s.source, s.t[i])
			if !seen[key] && s.t[i] >= t.From {
				seen[key] = true
				t.Problems = append(t.Problems, fmt.Errorf("%s: counters were reset between %.3f s and %.3f s (%s fell from %g to %g); that interval counts as nothing",
					s.source, s.t[i-1], s.t[i], name, s.v[i-1], s.v[i]))
			}
		}
	}
}

func sortedKeys(m map[string]*Series) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
