// Package metric describes what a reading holds. It is the leaf that every
// other package shares: collectors return descriptions, records keep them (so
// that an old record explains itself), reports and dashboards label with them.
package metric

// Kind says how the values of a metric relate to time.
type Kind string

const (
	// Counter only grows, apart from resets and wraps of its origin.
	Counter Kind = "counter"
	// Gauge is a value of the moment.
	Gauge Kind = "gauge"
)

// Units, written as UCUM does: base units only, scaled once, in the report.
const (
	Seconds = "s"
	Bytes   = "By"
	One     = "1"
)

// Desc describes one metric.
type Desc struct {
	// Name is dotted and lower case, such as "mysql.digest.timer".
	Name string `json:"name"`
	// Unit is one of the unit constants of this package.
	Unit string `json:"unit"`
	// Help says in a sentence what the value is and where it comes from.
	Help string `json:"help"`
	Kind Kind   `json:"kind"`
	// Labels names the positional labels of the metric's series.
	Labels []string `json:"labels,omitempty"`
	// Wrap is the value, in Unit, at which the origin of a counter starts
	// again from zero; 0 where it never does in practice.
	Wrap float64 `json:"wrap,omitempty"`
}
