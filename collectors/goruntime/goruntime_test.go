package goruntime_test

import (
	"runtime"
	"testing"

	"chokepoint/collectors/goruntime"
	"chokepoint/collectors/record"
)

func TestRead(t *testing.T) {
	read := func() map[string]float64 {
		b := &record.Batch{}
		if err := (goruntime.Source{}).Read(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return b.Values
	}
	before := read()
	runtime.GC()
	after := read()
	if after[goruntime.GCCycles]-before[goruntime.GCCycles] < 1 {
		t.Error("a garbage collection was not counted")
	}
	if got := after[goruntime.GOMAXPROCS]; got != float64(runtime.GOMAXPROCS(0)) {
		t.Errorf("GOMAXPROCS %v", got)
	}
	known := map[string]int{}
	for _, d := range (goruntime.Source{}).Metrics() {
		known[d.Name] = len(d.Labels)
	}
	pauses := 0.0
	for series, v := range after {
		name, labels, err := record.ParseSeries(series)
		if n, ok := known[name]; err != nil || !ok || n != len(labels) {
			t.Errorf("%s is not as described", series)
		}
		if name == goruntime.GCPauses {
			pauses += v
		}
	}
	if pauses < 2 { // a collection stops the world twice
		t.Errorf("%v pauses", pauses)
	}
}
