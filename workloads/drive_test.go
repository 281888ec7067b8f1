package workloads_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chokepoint/workloads"
)

// sleeper is a workload whose operations take a fixed time.
type sleeper struct {
	takes time.Duration

	mu    sync.Mutex
	draws []uint64 // the first random number of each operation
	cut   int      // operations whose context ended
}

func (s *sleeper) Setup(context.Context) error { return nil }

func (s *sleeper) Do(ctx context.Context, op *workloads.Op, rnd *rand.Rand) workloads.Outcome {
	s.mu.Lock()
	s.draws = append(s.draws, rnd.Uint64())
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
		return workloads.OK
	case <-ctx.Done():
		s.mu.Lock()
		s.cut++
		s.mu.Unlock()
		return "timeout"
	}
}

// drive runs a load in virtual time and returns what it started, how many
// operations ended well, and how long it took.
func drive(ctx context.Context, s *sleeper, l workloads.Load) (started uint64, ok int, took time.Duration) {
	began := time.Now()
	m := workloads.NewMeter(func() time.Duration { return time.Since(began) })
	l.Operation = "x"
	if l.Timeout == 0 {
		l.Timeout = time.Hour
	}
	var mu sync.Mutex
	started = workloads.Drive(ctx, s, m, l, func(d workloads.Done) {
		mu.Lock()
		defer mu.Unlock()
		if d.Outcome == workloads.OK {
			ok++
		}
	})
	return started, ok, time.Since(began)
}

func TestDriveByCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 10 operations by 4 workers of 100 ms each: three rounds.
		started, ok, took := drive(t.Context(), &sleeper{takes: 100 * time.Millisecond}, workloads.Load{Workers: 4, Requests: 10})
		if started != 10 || ok != 10 || took != 300*time.Millisecond {
			t.Errorf("%d started, %d ok, %v", started, ok, took)
		}
	})
}

func TestDriveByTimeDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Starts at 0, 100, 200 ms; the load ends at 250, the third operation at 300.
		s := &sleeper{takes: 100 * time.Millisecond}
		started, ok, took := drive(t.Context(), s, workloads.Load{Workers: 2, Duration: 250 * time.Millisecond})
		if started != 6 || ok != 6 || took != 300*time.Millisecond || s.cut != 0 {
			t.Errorf("%d started, %d ok, %d cut, %v", started, ok, s.cut, took)
		}
	})
}

func TestDriveInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		s := &sleeper{takes: 100 * time.Millisecond}
		started, ok, took := drive(ctx, s, workloads.Load{Workers: 3, Requests: 1000})
		if started != 6 || ok != 6 || took != 200*time.Millisecond || s.cut != 0 {
			t.Errorf("%d started, %d ok, %d cut, %v; what runs must end by itself", started, ok, s.cut, took)
		}
	})
}

func TestDriveTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleeper{takes: time.Second}
		started, ok, took := drive(t.Context(), s, workloads.Load{Workers: 2, Requests: 4, Timeout: 50 * time.Millisecond})
		if started != 4 || ok != 0 || s.cut != 4 || took != 100*time.Millisecond {
			t.Errorf("%d started, %d ok, %d cut, %v", started, ok, s.cut, took)
		}
	})
}

func TestDriveThinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A cycle is 1 ms of work and 9 ms of thought on average: 100 s of one
		// worker hold 10,000 cycles; the standard deviation is about 90.
		started, _, _ := drive(t.Context(), &sleeper{takes: time.Millisecond}, workloads.Load{Workers: 1, Duration: 100 * time.Second, Think: 9 * time.Millisecond, Seed: 1})
		if started < 9600 || started > 10400 {
			t.Errorf("%d operations, want about 10,000", started)
		}
	})
}

// TestDriveRepeats: what an operation draws depends on the seed and its number
// only, not on which worker performs it.
func TestDriveRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draws := func(workers int, seed uint64) []uint64 {
			s := &sleeper{takes: time.Millisecond}
			drive(t.Context(), s, workloads.Load{Workers: workers, Requests: 50, Seed: seed})
			slices.Sort(s.draws)
			return s.draws
		}
		if !slices.Equal(draws(1, 7), draws(10, 7)) {
			t.Error("the same seed makes other choices with more workers")
		}
		if slices.Equal(draws(1, 7), draws(1, 8)) {
			t.Error("another seed makes the same choices")
		}
	})
}
