package report

import (
	"math"
	"testing"

	"chokepoint/analysis"
)

// scaled checks a function that writes numbers for people.
func scaled(t *testing.T, what string, f func(analysis.Number) string, want map[float64]string) {
	t.Helper()
	for v, text := range want {
		if got := f(analysis.Number(v)); got != text {
			t.Errorf("%s of %v: %q, want %q", what, v, got, text)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := f(analysis.Number(v)); got != missing {
			t.Errorf("%s of %v: %q, want %q", what, v, got, missing)
		}
	}
}

func TestSeconds(t *testing.T) {
	scaled(t, "seconds", seconds, map[float64]string{
		0:         "0 s",
		26e-9:     "26.0 ns",
		999.7e-6:  "1.00 ms", // rounded up to the next unit
		0.9996:    "1.00 s",
		9.999:     "10.0 s",
		99.97e-3:  "100 ms",
		1e-6:      "1.00 us",
		4.1e-6:    "4.10 us",
		26.04e-6:  "26.0 us",
		999e-6:    "999 us",
		999.4e-6:  "999 us",
		1e-3:      "1.00 ms",
		1.234e-3:  "1.23 ms",
		12.34e-3:  "12.3 ms",
		123.4e-3:  "123 ms",
		0.999:     "999 ms",
		1:         "1.00 s",
		1.016:     "1.02 s",
		59.9:      "59.9 s",
		100:       "100 s",
		3600:      "3600 s",
		-0.000_25: "-250 us", // a difference
	})
}

func TestNumber(t *testing.T) {
	scaled(t, "number", number, map[float64]string{
		0:        "0",
		3000:     "3000", // counts stay whole
		1 << 40:  "1099511627776",
		8.104:    "8.10",
		12.345:   "12.3",
		183.4:    "183",
		2949.8:   "2950",
		0.05:     "0.05",
		-3:       "-3",
		123456.7: "123457",
	})
}

// TestPercent: what is not nothing is never 0 %, what is not all is never 100 %.
func TestPercent(t *testing.T) {
	scaled(t, "percent", percent, map[float64]string{
		0:          "0.0 %",
		1e-12:      "<0.1 %",
		0.00099:    "<0.1 %",
		0.001:      "0.1 %",
		0.0449:     "4.5 %",
		0.1:        "10 %",
		0.374:      "37 %",
		0.949:      "95 %",
		0.9904:     "99.0 %",
		0.999:      "99.9 %",
		0.9994:     "99.9 %",
		0.9996:     ">99.9 %",
		1 - 1e-12:  ">99.9 %",
		1:          "100 %",
		1.0 + 1e-9: "100 %", // the sum of many floats
	})
}

func TestSize(t *testing.T) {
	scaled(t, "size", size, map[float64]string{
		512:        "512 B",
		1 << 10:    "1.00 KiB",
		3452000:    "3.29 MiB",
		1536 << 20: "1.50 GiB",
		5 << 40:    "5120 GiB",
	})
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab~"}, {"█████", 3, "██~"}, {"", 3, ""}} {
		if got := cut(c.s, c.n); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.s, c.n, got, c.want)
		}
	}
}
