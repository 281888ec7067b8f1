package operations_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chokepoint/collectors/operations"
	"chokepoint/collectors/record"
	"chokepoint/workloads"
)

func TestRead(t *testing.T) {
	now := time.Duration(0)
	m := workloads.NewMeter(func() time.Duration { return now })
	op := m.Begin("buy") // 1 s of its own code, then 2 s so far of waiting for the pool
	now = time.Second
	op.Ask(workloads.PoolWait, workloads.Named("pool:mysql"))
	m.Begin("buy").End(workloads.OK)
	now = 3 * time.Second
	b := &record.Batch{T: 99}
	if err := (operations.Source{Meter: m}).Read(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"operations.seconds{buy,app,,,}":                 1,
		"operations.entries{buy,app,,,}":                 2,
		"operations.seconds{buy,pool_wait,pool:mysql,,}": 2,
		"operations.entries{buy,pool_wait,pool:mysql,,}": 1,
		"operations.open{buy,pool_wait,pool:mysql,,}":    1,
		"operations.finished{buy,ok}":                    1,
	}
	if d := cmp.Diff(want, b.Values); d != "" {
		t.Error(d)
	}
	if b.T != 3 { // the meter's own time, taken under its lock
		t.Errorf("the batch is of %v s, want 3", b.T)
	}
	known := map[string]int{}
	for _, d := range (operations.Source{}).Metrics() {
		known[d.Name] = len(d.Labels)
	}
	for series := range b.Values {
		name, labels, err := record.ParseSeries(series)
		if n, ok := known[name]; err != nil || !ok || n != len(labels) {
			t.Errorf("%s is not as described", series)
		}
	}
}
