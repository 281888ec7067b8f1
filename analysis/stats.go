package analysis

import (
	"math"
	"slices"
	"strconv"

	"chokepoint/analysis/timeline"
)

// ratio is a ratio of sums over slices, with the interval in which it lies with
// 95 % confidence.
type ratio struct{ value, lo, hi float64 }

// jackknife computes sum(num)/sum(den) and its delete-one-slice jackknife
// interval: a slice is a batch, so that what is correlated within one does not
// narrow the interval. A sum of den of 0 gives NaN.
func jackknife(num, den []float64) ratio {
	var n, d float64
	for i := range num {
		n += num[i]
		d += den[i]
	}
	theta := n / d
	k := float64(len(num))
	if d == 0 || k < 2 {
		return ratio{theta, theta, theta}
	}
	var without []float64
	mean := 0.0
	for i := range num {
		if den[i] > 0 && d-den[i] <= 0 {
			return ratio{theta, 0, 1} // all of it in one slice: nothing is known of its spread
		}
		v := (n - num[i]) / (d - den[i])
		without = append(without, v)
		mean += v
	}
	mean /= float64(len(without))
	sum := 0.0
	for _, v := range without {
		sum += (v - mean) * (v - mean)
	}
	e := student(k-1) * math.Sqrt((k-1)/k*sum)
	return ratio{theta, theta - e, theta + e}
}

// student is the 97.5 % quantile of Student's t, by the first two terms of its
// Cornish-Fisher expansion around the normal (Abramowitz and Stegun 26.7.5):
// within 1 % for 5 degrees of freedom and more.
func student(df float64) float64 {
	const z = 1.959964
	z3, z5 := z*z*z, z*z*z*z*z
	return z + (z3+z)/(4*df) + (5*z5+16*z3+3*z)/(96*df*df)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Clone(v)
	slices.Sort(s)
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// histogram is the increase of a bucketed counter over the measured phase.
type histogram []bucket

type bucket struct{ lower, upper, count float64 }

func readHistogram(t *timeline.Timeline, name string) histogram {
	var h histogram
	for _, s := range t.All(name, 2) {
		lower, err1 := strconv.ParseFloat(s.Labels[0], 64)
		upper, err2 := strconv.ParseFloat(s.Labels[1], 64)
		if n := t.Delta(s); n > 0 && err1 == nil && err2 == nil {
			h = append(h, bucket{max(0, lower), upper, n})
		}
	}
	slices.SortFunc(h, func(a, b bucket) int { return int(math.Copysign(1, a.lower-b.lower)) })
	return h
}

func (h histogram) count() float64 {
	n := 0.0
	for _, b := range h {
		n += b.count
	}
	return n
}

// sum takes each value at the middle of its bucket.
func (h histogram) sum() float64 {
	sum := 0.0
	for _, b := range h {
		sum += b.count * b.middle()
	}
	return sum
}

func (b bucket) middle() float64 {
	if math.IsInf(b.upper, 1) {
		return b.lower
	}
	return (b.lower + b.upper) / 2
}

func (h histogram) mean() float64 {
	if n := h.count(); n > 0 {
		return h.sum() / n
	}
	return 0
}

// quantile is the upper bound of the bucket in which quantile q lies.
func (h histogram) quantile(q float64) float64 {
	left := q * h.count()
	for _, b := range h {
		if left -= b.count; left <= 0 {
			if math.IsInf(b.upper, 1) {
				return b.lower
			}
			return b.upper
		}
	}
	return math.NaN()
}

// largest is the upper bound of the last bucket that holds something.
func (h histogram) largest() float64 { return h.quantile(1) }
