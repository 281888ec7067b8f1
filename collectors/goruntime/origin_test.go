package goruntime_test

import (
	"math"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"chokepoint/collectors/goruntime"
	"chokepoint/collectors/record"
)

func values(t *testing.T) map[string]float64 {
	t.Helper()
	b := &record.Batch{}
	if err := (goruntime.Source{}).Read(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b.Values
}

// until makes work until the value has grown: the runtime updates some of them
// now and then.
func until(t *testing.T, series string, work func()) {
	t.Helper()
	before := values(t)[series]
	for values(t)[series] <= before {
		if t.Context().Err() != nil {
			t.Fatalf("%s stays at %v", series, before)
		}
		work()
	}
}

func TestGauges(t *testing.T) {
	before := values(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { <-stop })
	}
	ballast := make([]byte, 64<<20)
	after := values(t)
	close(stop)
	wg.Wait()
	if d := after[goruntime.Goroutines] - before[goruntime.Goroutines]; d < 90 { // some other may have ended
		t.Errorf("a hundred goroutines more are %v", d)
	}
	if d := after[goruntime.HeapBytes] - before[goruntime.HeapBytes]; d < 32<<20 { // there was garbage before
		t.Errorf("64 MiB more are %v bytes", d)
	}
	runtime.KeepAlive(ballast)
}

func TestCounters(t *testing.T) {
	sum := 0
	until(t, record.Series(goruntime.CPUSeconds, "user"), func() {
		for i := range 10_000_000 {
			sum += i
		}
		runtime.GC()
	})
	until(t, record.Series(goruntime.CPUSeconds, "gc"), runtime.GC)
	var mu sync.Mutex
	until(t, goruntime.MutexWait, func() {
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				mu.Lock()
				defer mu.Unlock()
				runtime.Gosched() // the others come and wait
			})
		}
		wg.Wait()
	})
}

// TestHistograms: buckets do not overlap, and their counts never fall.
func TestHistograms(t *testing.T) {
	before := values(t)
	runtime.GC()
	after := values(t)
	total := map[string]float64{}
	for series, n := range after {
		name, labels, err := record.ParseSeries(series)
		if err != nil {
			t.Fatal(err)
		}
		if name != goruntime.SchedLatency && name != goruntime.GCPauses {
			continue
		}
		lower, err1 := strconv.ParseFloat(labels[0], 64)
		upper, err2 := strconv.ParseFloat(labels[1], 64)
		if err1 != nil || err2 != nil || lower >= upper || math.IsNaN(lower) {
			t.Errorf("%s is no bucket", series)
		}
		if n < before[series] || n != math.Trunc(n) {
			t.Errorf("%s went from %v to %v", series, before[series], n)
		}
		total[name] += n
	}
	if total[goruntime.GCPauses] == 0 || total[goruntime.SchedLatency] == 0 {
		t.Errorf("nothing in the buckets: %v", total)
	}
}
