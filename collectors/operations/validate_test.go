package operations_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"chokepoint/collectors/operations"
	"chokepoint/collectors/record"
	"chokepoint/workloads"
)

// TestRecordIsValid: a record of readings at uneven times, some of them while
// operations are open, breaks no rule of the format: its counters never fall,
// by no bit.
func TestRecordIsValid(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	id := record.NewID(time.Now(), "lock")
	w, err := record.Create(root, record.Run{ID: id, Metrics: operations.Source{}.Metrics()})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	m := workloads.NewMeter(func() time.Duration { return now })
	s := operations.Source{Meter: m}
	rnd := rand.New(rand.NewPCG(1, 2))
	pass := func() { now += time.Duration(rnd.Int64N(int64(time.Second))) }
	pool := workloads.Named("pool:my,{sql}") // the characters that a series escapes
	want := 0.0
	for range 100 {
		began := now
		op := m.Begin("buy")
		pass()
		op.Ask(workloads.PoolWait, pool)
		pass()
		b := &record.Batch{Source: operations.Name}
		if err := s.Read(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := w.Batch(b); err != nil {
			t.Fatal(err)
		}
		op.Hold()
		pass()
		op.End(workloads.OK)
		want += (now - began).Seconds()
	}
	b := &record.Batch{Source: operations.Name}
	if err := s.Read(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := w.Batch(b); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for series, v := range b.Values {
		if strings.HasPrefix(series, operations.Seconds+"{") {
			sum += v
		}
		if strings.HasPrefix(series, operations.Open+"{") {
			t.Errorf("%s is %v, and nothing is open", series, v)
		}
	}
	if sum < want-1e-6 || sum > want+1e-6 {
		t.Errorf("operations were open for %v s, their series hold %v", want, sum)
	}
	if err := w.Close(record.End{Status: record.Complete}); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(root, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := record.Validate(r); err != nil {
		t.Error(err)
	}
	var labels []string
	for b, err := range r.Batches() {
		if err != nil {
			t.Fatal(err)
		}
		for series := range b.Values {
			if _, l, err := record.ParseSeries(series); err == nil && len(l) == 5 {
				labels = append(labels, l[2])
			}
		}
	}
	if !slices.Contains(labels, "pool:my,{sql}") {
		t.Errorf("the resource came back as one of %q", slices.Compact(slices.Sorted(slices.Values(labels))))
	}
}
