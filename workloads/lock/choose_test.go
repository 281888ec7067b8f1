package lock

import (
	"github.com/redis/go-redis/v9"
	"math"
	"math/rand/v2"
	"testing"
)

// TestChoose draws 100,000 rows. The standard deviation of a share p is
// sqrt(p (1-p) / 100000), at most 0.0016; five of them are allowed.
func TestChoose(t *testing.T) {
	zipf := func(keys int) []float64 {
		sum := 0.0
		for k := 1; k <= keys; k++ {
			sum += math.Pow(float64(k), -1.1)
		}
		shares := make([]float64, keys)
		for k := range shares {
			shares[k] = math.Pow(float64(k+1), -1.1) / sum
		}
		return shares
	}
	for _, c := range []struct {
		name, skew string
		want       []float64
	}{
		{"one row", Uniform, []float64{1}},
		{"one row, and popularity", Zipf, []float64{1}},
		{"four rows alike", Uniform, []float64{0.25, 0.25, 0.25, 0.25}},
		{"nothing said", "", []float64{0.5, 0.5}},
		{"row k is k^1.1 times less popular than row 1", Zipf, zipf(6)},
	} {
		w := &Workload{o: Options{Keys: len(c.want), Skew: c.skew}}
		rnd := rand.New(rand.NewPCG(1, 2))
		counts := make([]int, len(c.want))
		for range 100_000 {
			counts[w.choose(rnd)-1]++
		}
		for i, n := range counts {
			if got := float64(n) / 100_000; math.Abs(got-c.want[i]) > 0.008 {
				t.Errorf("%s: row %d is chosen for %.4f of the operations, want %.4f", c.name, i+1, got, c.want[i])
			}
		}
	}
}

func TestStrategiesHaveNames(t *testing.T) {
	if len(Strategies()) != len(strategies()) {
		t.Errorf("%d names of %d strategies", len(Strategies()), len(strategies()))
	}
	for _, name := range Strategies() {
		if w, err := New(nil, &redis.Client{}, Options{Strategy: name, Keys: 3, Stock: 7}); err != nil || w.Initial() != 21 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
