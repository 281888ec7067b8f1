package workloads_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chokepoint/workloads"
)

// TestBackoffBounds: what each kind of jitter may give after the given number of
// failures, with a base of 10 ms and a cap of 50.
func TestBackoffBounds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		jitter   string
		failures int
		last     int // ms
		lo, hi   int // ms
	}{
		{workloads.NoJitter, 1, 0, 10, 10},
		{workloads.NoJitter, 2, 10, 20, 20},
		{workloads.NoJitter, 3, 20, 40, 40},
		{workloads.NoJitter, 4, 40, 50, 50},
		{workloads.NoJitter, 1000, 50, 50, 50},
		{workloads.EqualJitter, 3, 0, 20, 40},
		{workloads.FullJitter, 3, 0, 0, 40},
		{workloads.FullJitter, 63, 0, 0, 50},
		{workloads.Decorrelated, 1, 0, 10, 30},
		{workloads.Decorrelated, 2, 12, 10, 36},
		{workloads.Decorrelated, 9, 50, 10, 50}, // 3 x 50 is cut at the cap
	} {
		b := workloads.BackoffPolicy{Base: 10 * time.Millisecond, Cap: 50 * time.Millisecond, Jitter: c.jitter}
		least, most := time.Hour, time.Duration(0)
		for range 2000 {
			d := b.Delay(c.failures, time.Duration(c.last)*time.Millisecond, rnd)
			least, most = min(least, d), max(most, d)
		}
		lo, hi := time.Duration(c.lo)*time.Millisecond, time.Duration(c.hi)*time.Millisecond
		if slack := (hi - lo) / 50; least < lo || most > hi || least > lo+slack || most < hi-slack {
			t.Errorf("%s after %d failures: %v to %v, want %v to %v", c.jitter, c.failures, least, most, lo, hi)
		}
	}
}

func TestBackoffNeverBeyond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "base"))
		b := workloads.BackoffPolicy{Base: base, Cap: base + time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "more")),
			Jitter: rapid.SampledFrom(workloads.Jitters()).Draw(t, "jitter")}
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		last := time.Duration(0)
		for failures := 1; failures < 200; failures++ {
			last = b.Delay(failures, last, rnd)
			if last < 0 || last > max(b.Cap, 4) {
				t.Fatalf("%+v after %d failures: %v", b, failures, last)
			}
		}
	})
}

func TestBackoffCheck(t *testing.T) {
	for _, b := range []workloads.BackoffPolicy{{Jitter: "some"}, {Base: 2, Cap: 1, Jitter: workloads.NoJitter}, {Base: -1, Jitter: workloads.NoJitter}} {
		if b.Check() == nil {
			t.Errorf("%+v is taken", b)
		}
	}
}
