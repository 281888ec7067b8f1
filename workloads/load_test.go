package workloads_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"chokepoint/workloads"
)

// probe is a workload that writes down what its operations are given.
type probe struct {
	takes func(n int) time.Duration // of the n-th operation that began, from 1

	mu     sync.Mutex
	starts []time.Duration
	limits []time.Duration // until the operation's deadline
	draws  []uint64
	strays int // contexts that do not carry the operation
	began  time.Time
}

func (p *probe) Setup(context.Context) error { return nil }

func (p *probe) Do(ctx context.Context, op *workloads.Op, rnd *rand.Rand) workloads.Outcome {
	p.mu.Lock()
	p.starts = append(p.starts, time.Since(p.began))
	n := len(p.starts)
	deadline, _ := ctx.Deadline()
	p.limits = append(p.limits, time.Until(deadline))
	p.draws = append(p.draws, rnd.Uint64())
	if workloads.OpOf(ctx) != op {
		p.strays++
	}
	p.mu.Unlock()
	if p.takes != nil {
		<-time.After(p.takes(n)) // the bubble's clock
	}
	return workloads.OK
}

// run drives the load in virtual time and returns what was started and seen to
// end.
func (p *probe) run(ctx context.Context, l workloads.Load) (started uint64, done []workloads.Done) {
	p.began = time.Now()
	m := workloads.NewMeter(func() time.Duration { return time.Since(p.began) })
	l.Operation = "x"
	if l.Timeout == 0 {
		l.Timeout = time.Hour
	}
	var mu sync.Mutex
	started = workloads.Drive(ctx, p, m, l, func(d workloads.Done) {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, d)
	})
	return started, done
}

func fixed(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// TestDriveBounds: exact numbers of operations of 100 ms, in virtual time.
func TestDriveBounds(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		l    workloads.Load
		ends time.Duration // when the context ends, never if 0
		want uint64
		took time.Duration
	}{
		{"one", workloads.Load{Workers: 1, Requests: 1}, 0, 1, 100 * ms},
		{"fewer than workers", workloads.Load{Workers: 50, Requests: 7}, 0, 7, 100 * ms},
		{"seven by two: four rounds", workloads.Load{Workers: 2, Requests: 7}, 0, 7, 400 * ms},
		{"no workers", workloads.Load{Requests: 7}, 0, 0, 0},
		{"the count comes first", workloads.Load{Workers: 1, Requests: 2, Duration: time.Second}, 0, 2, 200 * ms},
		{"the time comes first: starts at 0, 100, 200 ms", workloads.Load{Workers: 1, Requests: 9, Duration: 250 * ms}, 0, 3, 300 * ms},
		{"the context comes first", workloads.Load{Workers: 1, Requests: 9, Duration: time.Second}, 150 * ms, 2, 200 * ms},
		{"it has ended before", workloads.Load{Workers: 3, Requests: 9}, -1, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.ends > 0 {
				time.AfterFunc(c.ends, cancel)
			} else if c.ends < 0 {
				cancel()
			}
			p := &probe{takes: fixed(100 * ms)}
			started, done := p.run(ctx, c.l)
			if took := time.Since(p.began); started != c.want || uint64(len(done)) != c.want || took != c.took {
				t.Errorf("%s: %d started, %d ended, in %v; want %d in %v", c.name, started, len(done), took, c.want, c.took)
			}
		})
	}
}

// TestDriveOperation: what an operation is given, and what is told of it.
func TestDriveOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe{takes: func(n int) time.Duration { return time.Duration(n) * time.Second }}
		_, done := p.run(t.Context(), workloads.Load{Workers: 1, Requests: 3, Timeout: 30 * time.Second})
		if d := cmp.Diff([]time.Duration{0, time.Second, 3 * time.Second}, p.starts); d != "" {
			t.Errorf("starts: %s", d)
		}
		if d := cmp.Diff([]time.Duration{30 * time.Second, 30 * time.Second, 30 * time.Second}, p.limits); d != "" {
			t.Errorf("limits: %s", d)
		}
		if p.strays > 0 {
			t.Errorf("%d contexts without their operation", p.strays)
		}
		var got []workloads.Done
		for i, s := range []time.Duration{0, 1, 3} {
			got = append(got, workloads.Done{
				Operation: "x", Outcome: workloads.OK, Start: s * time.Second, End: (s + time.Duration(i) + 1) * time.Second,
				Spent: map[workloads.Stage]time.Duration{workloads.App: time.Duration(i+1) * time.Second},
			})
		}
		if d := cmp.Diff(got, done); d != "" {
			t.Errorf("told: %s", d)
		}
	})
}

// TestDriveDraws: an operation's choices hang on the seed and its number, which
// is counted on from First.
func TestDriveDraws(t *testing.T) {
	draws := func(l workloads.Load) []uint64 {
		var out []uint64
		synctest.Test(t, func(t *testing.T) {
			p := &probe{takes: fixed(time.Millisecond)}
			p.run(t.Context(), l)
			out = slices.Sorted(slices.Values(p.draws))
		})
		return out
	}
	same := func(what string, a, b workloads.Load, want bool) {
		t.Helper()
		if got := slices.Equal(draws(a), draws(b)); got != want {
			t.Errorf("%s: the same draws %v, want %v", what, got, want)
		}
	}
	base := workloads.Load{Workers: 3, Requests: 10, Seed: 7}
	with := func(change func(*workloads.Load)) workloads.Load {
		l := base
		change(&l)
		return l
	}
	same("more workers", base, with(func(l *workloads.Load) { l.Workers = 10 }), true)
	same("thinking between", base, with(func(l *workloads.Load) { l.Think = time.Second }), true)
	same("another seed", base, with(func(l *workloads.Load) { l.Seed = 8 }), false)
	same("other numbers", base, with(func(l *workloads.Load) { l.First = 1 << 32 }), false)
	// Operations 5 to 9 of one load are operations 0 to 4 of one that begins at 5.
	all, tail := draws(base), draws(with(func(l *workloads.Load) { l.First, l.Requests = 5, 5 }))
	for _, d := range tail {
		if !slices.Contains(all, d) {
			t.Errorf("operation of First + n draws %d, which none of the whole load drew", d)
		}
	}
}

// TestDriveThinkTimes: the pauses of one worker are exponential: of 4,000 with
// a mean of 10 ms the mean is 10 ms +- 0.16 (one standard deviation), and 1/e of
// them are over 10 ms (36.8 % +- 0.8 %). Five deviations are allowed.
func TestDriveThinkTimes(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			p := &probe{}
			p.run(t.Context(), workloads.Load{Workers: 1, Requests: 4000, Think: 10 * time.Millisecond, Seed: seed})
			last, long := time.Duration(0), 0
			for _, s := range p.starts {
				if s-last > 10*time.Millisecond {
					long++
				}
				last = s
			}
			mean, share := last/4000, float64(long)/4000
			if mean < 9200*time.Microsecond || mean > 10800*time.Microsecond || share < 0.33 || share > 0.41 {
				t.Errorf("seed %d: mean pause %v, %.3f of them over 10 ms", seed, mean, share)
			}
		})
	}
}

// TestDriveThinkSpreads: workers think before their first operation too, each
// for its own time, so that they do not start together.
func TestDriveThinkSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe{}
		p.run(t.Context(), workloads.Load{Workers: 20, Requests: 20, Think: time.Second, Seed: 1})
		starts := slices.Compact(slices.Sorted(slices.Values(p.starts)))
		if len(starts) != 20 || starts[0] == 0 {
			t.Errorf("%d different starts from %v on, want 20 and none at 0", len(starts), starts[0])
		}
	})
}

// TestDriveThinkEnds: a worker that thinks does not hold up the end.
func TestDriveThinkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe{}
		started, _ := p.run(t.Context(), workloads.Load{Workers: 5, Duration: time.Second, Think: time.Hour, Seed: 1})
		if took := time.Since(p.began); took != time.Second || started > 1 {
			t.Errorf("%d started, in %v; want 1 s", started, took)
		}
	})
}
