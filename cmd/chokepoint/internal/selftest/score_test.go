package selftest

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestWilson: textbook values (Newcombe 1998, table I: 81 of 263 gives 0.2553 to
// 0.3662; 0 of 20 gives 0 to 0.1611).
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n   int
		lo, hi float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {29, 29, 0.8830, 1}} {
		got := wilson(c.k, c.n)
		if math.Abs(got[0]-c.lo) > 1e-4 || math.Abs(got[1]-c.hi) > 1e-4 {
			t.Errorf("%d of %d: %v, want %v to %v", c.k, c.n, got, c.lo, c.hi)
		}
	}
}

func TestScore(t *testing.T) {
	all := []Outcome{
		{Layer: "pool", Cause: "undersized", Holder: "db_exec", GotLayer: "pool", GotCause: "undersized", GotHolder: "db_exec"},
		{Layer: "row_lock", Cause: "gap_lock", GotLayer: "row_lock", GotCause: "hot_row"},                  // the layer only
		{Layer: "row_lock", Cause: "hot_row", Holder: "cpu", GotLayer: "runtime", GotCause: "cpu"},         // wrong, and sure of it
		{Layer: "redis", Cause: "lock_lease", Holder: "", GotLayer: "inconclusive", GotCause: "too_close"}, // wrong
		{Layer: "none", GotLayer: "none", GotCause: "healthy"},                                             // right
		{Layer: "none", GotLayer: "inconclusive", GotCause: "too_little_data"},                             // no alarm
		{Layer: "none", GotLayer: "pool", GotCause: "undersized"},                                          // a false one
	}
	s := NewScore(7, all, 1)
	if s.Runs != 7 || s.Wrong != 2 || s.WrongConclusive != 1 || s.LayerAccuracy != 0.5 || s.CauseAccuracy != 0.25 ||
		s.HolderRuns != 2 || s.HolderAccuracy != 0.5 || s.HealthyRuns != 3 || s.FalseAlarms != 1 {
		t.Errorf("%+v", s)
	}
}

// TestPlans: each case makes plans that can be run, others for another seed.
func TestPlans(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Cases() {
		if names[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		names[c.Name] = true
		for _, strong := range []bool{false, true} {
			a := c.Plan(strong, rand.New(rand.NewPCG(1, 1)))
			b := c.Plan(strong, rand.New(rand.NewPCG(2, 1)))
			if err := a.Lock.Check(); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			if err := a.Lock.Backoff.Check(); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			if a.Load.Seed == b.Load.Seed || a.Load.Workers < 1 || a.Load.Duration <= 0 || a.Lock.NeedsRedis() && !c.needsRedis {
				t.Errorf("%s: %+v", c.Name, a)
			}
		}
	}
}
