package report

import (
	"fmt"
	"math"
	"strconv"

	"chokepoint/analysis"
)

// missing stands for a number that is not known.
const missing = "-"

// seconds writes a time with three significant digits and its unit.
func seconds(n analysis.Number) string {
	if !n.Known() {
		return missing
	}
	v := float64(n)
	switch a := math.Abs(v); {
	case a == 0:
		return "0 s"
	case a < 0.9995e-6:
		return digits(v*1e9) + " ns"
	case a < 0.9995e-3:
		return digits(v*1e6) + " us"
	case a < 0.9995:
		return digits(v*1e3) + " ms"
	}
	return digits(v) + " s"
}

// digits writes three significant digits without an exponent.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func number(n analysis.Number) string {
	if !n.Known() {
		return missing
	}
	if v := float64(n); v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return digits(float64(n))
}

// percent writes a share. What is not 0 never reads as 0, what is not all
// never as 100 %.
func percent(n analysis.Number) string {
	switch v := 100 * float64(n); {
	case !n.Known():
		return missing
	case v > 0 && v < 0.1:
		return "<0.1 %"
	case v < 10, v > 99 && v < 99.95:
		return fmt.Sprintf("%.1f %%", v)
	case v >= 99.95 && v < 100:
		return ">99.9 %"
	default:
		return fmt.Sprintf("%.0f %%", v)
	}
}

func size(n analysis.Number) string {
	if !n.Known() {
		return missing
	}
	v := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if v < 1024 {
			return digits(v) + " " + unit
		}
		v /= 1024
	}
	return digits(v) + " GiB"
}
