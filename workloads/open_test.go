package workloads_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"chokepoint/workloads"
)

// open drives an open loop in virtual time and returns each operation's latency
// and outcome, in the order of their ends, and what was started.
func openLoop(ctx context.Context, s *sleeper, l workloads.Load) (started uint64, done []workloads.Done, m *workloads.Meter) {
	began := time.Now()
	m = workloads.NewMeter(func() time.Duration { return time.Since(began) })
	l.Operation, l.Timeout = "x", time.Hour
	var mu sync.Mutex
	started = workloads.Drive(ctx, s, m, l, func(d workloads.Done) {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, d)
	})
	return started, done, m
}

// TestOpenLoop: one operation in 10 ms comes due, and one slot serves one in 15:
// operation n waits 5n ms, and its latency counts from when it was due.
func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := workloads.Load{Workers: 1, Rate: 100, Arrival: workloads.Constant, Requests: 20}
		started, done, m := openLoop(t.Context(), &sleeper{takes: 15 * time.Millisecond}, l)
		if started != 20 || len(done) != 20 {
			t.Fatalf("%d started, %d ended", started, len(done))
		}
		for n, d := range done {
			if want := time.Duration(15+5*n) * time.Millisecond; d.End-d.Start != want || d.Spent[workloads.Queue] != want-15*time.Millisecond || d.Outcome != workloads.OK {
				t.Errorf("operation %d: %v, of it %v in the queue, %s; want %v", n, d.End-d.Start, d.Spent[workloads.Queue], d.Outcome, want)
			}
		}
		// 20 x 15 ms with the slot; 5 x (0 + 1 + ... + 19) ms in the queue for it.
		want(t, m, "app [] slot", 300, 20)
		want(t, m, "queue [slot] ", 950, 20)
	})
}

// TestOpenLoopEnds: when the time is up, what runs ends by itself, and what
// still stands in the queue was never started.
func TestOpenLoopEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Due at 0, 10, ... 90 ms; one slot of 30 ms starts at 0, 30, 60 and 90.
		l := workloads.Load{Workers: 1, Rate: 100, Arrival: workloads.Constant, Duration: 95 * time.Millisecond}
		s := &sleeper{takes: 30 * time.Millisecond}
		started, done, m := openLoop(t.Context(), s, l)
		outcomes := map[workloads.Outcome]int{}
		for _, d := range done {
			outcomes[d.Outcome]++
		}
		if started != 4 || outcomes[workloads.OK] != 4 || outcomes[workloads.NeverStarted] != 6 || s.cut != 0 {
			t.Errorf("%d started, outcomes %v", started, outcomes)
		}
		if at := m.Read().At; at != 120*time.Millisecond {
			t.Errorf("it ended after %v", at)
		}
	})
}

// TestOpenLoopLosesNone: whatever comes due as the time is up ends in some way.
func TestOpenLoopLosesNone(t *testing.T) {
	for range 100 {
		l := workloads.Load{Workers: 4, Rate: 150_000, Arrival: workloads.Constant, Duration: 5 * time.Millisecond}
		started, done, m := openLoop(t.Context(), &sleeper{}, l)
		ok := 0
		for _, d := range done {
			if d.Outcome == workloads.OK {
				ok++
			}
		}
		open := 0
		for _, c := range m.Read().Totals {
			open += c.Open
		}
		if open != 0 || ok != int(started) {
			t.Fatalf("%d are open for ever; %d were started, %d ended well", open, started, ok)
		}
	}
}

// TestOpenLoopFree: with enough slots nothing waits, whatever came before: a
// service that is slow does not slow its callers down.
func TestOpenLoopFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := workloads.Load{Workers: 100, Rate: 1000, Arrival: workloads.Constant, Requests: 500}
		_, done, _ := openLoop(t.Context(), &sleeper{takes: 50 * time.Millisecond}, l)
		for _, d := range done {
			if d.End-d.Start != 50*time.Millisecond {
				t.Fatalf("an operation took %v", d.End-d.Start)
			}
		}
	})
}

// TestPoisson: distances are exponential: their mean and standard deviation are
// both 1/rate, to within 5 standard errors of 10,000 draws.
func TestPoisson(t *testing.T) {
	const n, rate = 10_000, 250.0
	schedule := workloads.NewSchedule(workloads.Poisson, rate, 7)
	var sum, squares float64
	last := time.Duration(0)
	for i := range uint64(n) {
		due := schedule(i)
		d := (due - last).Seconds() * rate
		sum, squares, last = sum+d, squares+d*d, due
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean-1) > 0.05 || math.Abs(deviation-1) > 0.07 {
		t.Errorf("distances have mean %.3f and deviation %.3f of 1/rate, want 1 and 1", mean, deviation)
	}
}

// TestSchedules: a schedule is the same for the same seed, never goes back, and
// an even one counts exactly.
func TestSchedules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.1, 1e6).Draw(t, "rate")
		seed := rapid.Uint64().Draw(t, "seed")
		for _, arrival := range workloads.Arrivals() {
			a, b := workloads.NewSchedule(arrival, rate, seed), workloads.NewSchedule(arrival, rate, seed)
			var all []time.Duration
			for n := range uint64(100) {
				all = append(all, a(n))
				if b(n) != all[n] {
					t.Fatalf("%s: the same seed gives %v and another time", arrival, all[n])
				}
			}
			if !slices.IsSorted(all) || all[0] < 0 {
				t.Fatalf("%s goes back: %v", arrival, all)
			}
			if want := 99 / rate; arrival == workloads.Constant && math.Abs(all[99].Seconds()-want) > 1e-6*want+2e-9 {
				t.Fatalf("the hundredth is due at %v, want %v s", all[99], want)
			}
		}
	})
}
