package analysis

import (
	"math"
	"testing"
)

// TestStudentOfManySlices: a verdict has 20 slices or more, and there the
// expansion is within a thousandth of the printed tables.
func TestStudentOfManySlices(t *testing.T) {
	for df, want := range map[float64]float64{20: 2.086, 30: 2.042, 40: 2.021, 60: 2.000, 100: 1.984, 1000: 1.962} {
		near(t, "t", student(df), want, 0.001*want)
	}
}

// TestJackknifeUnequal: the ratio of sums is 6/10. Without each slice it is 5/8,
// 6/9, 3/6 and 4/7; their mean is 0.590774, the squares of what they differ from
// it sum to 0.0155453, and the variance is 3/4 of that.
func TestJackknifeUnequal(t *testing.T) {
	r := jackknife([]float64{1, 0, 3, 2}, []float64{2, 1, 4, 3})
	near(t, "value", r.value, 0.6, 1e-12)
	near(t, "standard error", (r.hi-r.value)/student(3), 0.107977, 1e-6)
	near(t, "middle", (r.hi+r.lo)/2, 0.6, 1e-12)
}

func TestJackknifeEdges(t *testing.T) {
	for _, c := range []struct {
		name     string
		num, den []float64
		want     ratio
	}{
		{"the same ratio in every slice", []float64{1, 2, 3}, []float64{2, 4, 6}, ratio{0.5, 0.5, 0.5}},
		{"all of it", []float64{2, 4, 6}, []float64{2, 4, 6}, ratio{1, 1, 1}},
		{"none of it", []float64{0, 0, 0}, []float64{2, 4, 6}, ratio{0, 0, 0}},
		{"one slice tells no spread", []float64{1}, []float64{4}, ratio{0.25, 0.25, 0.25}},
	} {
		if r := jackknife(c.num, c.den); math.Abs(r.value-c.want.value)+math.Abs(r.lo-c.want.lo)+math.Abs(r.hi-c.want.hi) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, r, c.want)
		}
	}
	if r := jackknife([]float64{0, 0}, []float64{0, 0}); !math.IsNaN(r.value) {
		t.Errorf("a share of nothing is %v", r)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{9, 1, 5, 2}, 3.5}} {
		near(t, "median", median(c.v), c.want, 0)
	}
	v := []float64{2, 1}
	if median(v); v[0] != 2 {
		t.Error("median sorts what it was given")
	}
	if !math.IsNaN(median(nil)) {
		t.Error("the median of nothing is a number")
	}
}

// TestHistogramEdges: quantiles are upper bounds of buckets, a bucket without an
// upper bound counts at its lower one.
func TestHistogramEdges(t *testing.T) {
	h := histogram{{0, 1e-6, 90}, {1e-6, 3e-6, 9}, {4e-3, math.Inf(1), 1}}
	near(t, "count", h.count(), 100, 0)
	near(t, "sum", h.sum(), 90*0.5e-6+9*2e-6+4e-3, 1e-15) // 45 + 18 + 4000 us
	near(t, "median", h.quantile(0.5), 1e-6, 0)
	near(t, "90 %", h.quantile(0.9), 1e-6, 0)
	near(t, "99 %", h.quantile(0.99), 3e-6, 0)
	near(t, "largest", h.largest(), 4e-3, 0)
	var none histogram
	near(t, "mean of nothing", none.mean(), 0, 0)
	if !math.IsNaN(none.quantile(0.5)) {
		t.Error("the median of no counts is a number")
	}
}
