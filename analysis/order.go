package analysis

import (
	"cmp"
	"maps"
	"slices"

	"chokepoint/analysis/waits"
)

// bySize orders the keys of m, the largest value first.
func bySize(m map[string]float64) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
}

// causesBySize orders the causes of m, the largest value first.
func causesBySize(m map[waits.Cause]float64) []waits.Cause {
	return slices.SortedFunc(maps.Keys(m), func(a, b waits.Cause) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Cause, b.Cause))
	})
}
