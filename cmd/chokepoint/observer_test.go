package main

import (
	"flag"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"chokepoint/analysis"
	"chokepoint/cmd/chokepoint/internal/session"
	"chokepoint/collectors/record"
	"chokepoint/workloads"
	"chokepoint/workloads/lock"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

var pairs = flag.Int("pairs", 12, "how many pairs of runs BenchmarkObserver makes")

// BenchmarkObserver measures what watching costs: the same load with everything
// on and with everything off, in turn on the same servers, and the ratio of
// their throughputs. It is a result, not a test: nothing is asserted of it.
func BenchmarkObserver(b *testing.B) {
	for _, c := range []struct {
		name string
		plan session.Plan
	}{
		{"hot row, pool 10", session.Plan{Lock: lock.Options{Strategy: "pessimistic", Keys: 1, Stock: 1e9}, Pool: 10, Load: workloads.Load{Workers: 200}}},
		{"100,000 rows, atomic, pool 10", session.Plan{Lock: lock.Options{Strategy: "atomic", Keys: 100_000, Stock: 1e6}, Pool: 10, Load: workloads.Load{Workers: 20}}},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkObserver(b, c.plan) })
	}
}

func benchmarkObserver(b *testing.B, p session.Plan) {
	p.Lock.Skew = lock.Uniform
	p.Load.Operation, p.Load.Duration, p.Load.Timeout, p.Load.Seed = lock.Operation, 3*time.Second, 10*time.Second, 1
	p.Warmup, p.Args, p.Parameters = 500*time.Millisecond, []string{}, map[string]string{}
	sb := sandboxtest.Start(b, sandbox.Options{})
	env := session.Env{MySQL: session.MySQL{Config: sb.MySQL().Config(), Sandbox: true, PID: sb.MySQL().PID}, Redis: privateRedis(sb), Log: slog.New(slog.DiscardHandler)}
	var err error
	if env.Runs, err = os.OpenRoot(b.TempDir()); err != nil {
		b.Fatal(err)
	}
	defer env.Runs.Close()
	for b.Loop() {
		var ratios, shares []float64
		for i := range *pairs {
			var x [2]float64 // with, without
			for j := range x {
				side := (i + j) % 2 // each goes first in half of the pairs
				plan := p
				plan.Unobserved = side == 1
				res := measured(b, env, plan)
				x[side] = float64(res.Load.ThroughputPerS)
				if side == 0 && res.Observer.CPUShare.Known() {
					shares = append(shares, float64(res.Observer.CPUShare))
				}
			}
			ratios = append(ratios, x[0]/x[1])
		}
		mid, lo, hi, confidence := median(ratios)
		share, least, most, _ := median(shares)
		fmt.Printf("%s: throughput with/without watching: median %.3f, %.1f %% interval %.3f to %.3f, n = %d pairs of 3 s; the observer's CPU: %.2f %% of the run's (%.2f to %.2f)\n",
			b.Name(), mid, 100*confidence, lo, hi, len(ratios), 100*share, 100*least, 100*most)
		b.ReportMetric(mid, "ratio")
	}
}

func measured(b *testing.B, env session.Env, p session.Plan) *analysis.Result {
	b.Helper()
	id, err := session.Run(b.Context(), env, p)
	if err != nil {
		b.Fatal(err)
	}
	r, err := record.Open(env.Runs, id)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	res, err := analysis.Attribute(r)
	if err != nil {
		b.Fatal(err)
	}
	return res
}

// median is the median with the narrowest interval of order statistics that
// holds it with 95 % confidence or more (binomial, n >= 6), and that confidence.
func median(v []float64) (mid, lo, hi, confidence float64) {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	if n == 0 {
		return math.NaN(), math.NaN(), math.NaN(), 0
	}
	mid = (s[(n-1)/2] + s[n/2]) / 2
	k, outside := 0, 0.0 // the k smallest and k largest are left out
	term := math.Pow(0.5, float64(n))
	for 2*(outside+term) <= 0.05 {
		outside += term
		term *= float64(n-k) / float64(k+1)
		k++
	}
	k = max(k-1, 0)
	return mid, s[k], s[n-1-k], 1 - 2*tail(n, k)
}

// tail is the probability of at most k heads in n throws.
func tail(n, k int) float64 {
	sum, term := 0.0, math.Pow(0.5, float64(n))
	for i := 0; i <= k; i++ {
		sum += term
		term *= float64(n-i) / float64(i+1)
	}
	return sum
}

// TestMedian: the classic table for the sign test: of 10 values the second and
// the ninth bound the median with 97.9 %, of 6 the first and last with 96.9 %.
func TestMedian(t *testing.T) {
	for _, c := range []struct {
		n                       int
		mid, lo, hi, confidence float64
	}{{10, 5.5, 2, 9, 0.9785}, {6, 3.5, 1, 6, 0.96875}, {12, 6.5, 3, 10, 0.9614}} {
		var v []float64
		for i := range c.n {
			v = append(v, float64(c.n-i))
		}
		mid, lo, hi, confidence := median(v)
		if mid != c.mid || lo != c.lo || hi != c.hi || math.Abs(confidence-c.confidence) > 1e-3 {
			t.Errorf("n = %d: %v, %v to %v with %v; want %+v", c.n, mid, lo, hi, confidence, c)
		}
	}
}
