package record

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"chokepoint/collectors/metric"
)

// Validate checks every invariant of a record and returns all breaches joined:
// lines that do not parse, series of unknown metrics or with the wrong number
// of labels, times that run backwards within a source, operation counters that
// fall, phases out of order, and a latency log that cannot be read. The torn
// last line of a killed run is no breach.
func Validate(r *Reader) error {
	v := validator{run: r.Run(), descs: map[string]metric.Desc{}, last: map[string]float64{}, values: map[string]float64{}}
	for _, d := range v.run.Metrics {
		v.descs[d.Name] = d
	}
	for b, err := range r.Batches() {
		if !v.ok(err) {
			v.batch(b)
		}
	}
	for e, err := range r.Events() {
		if !v.ok(err) {
			v.event(e)
		}
	}
	for _, err := range r.Latencies() {
		v.ok(err)
	}
	if v.run.End != nil && len(v.phases) > 0 && v.phases[len(v.phases)-1] != PhaseDone && v.run.End.Status == Complete {
		v.add("events: a complete run that never reached phase %q", PhaseDone)
	}
	return errors.Join(v.errs...)
}

type validator struct {
	run    Run
	descs  map[string]metric.Desc
	last   map[string]float64 // time of the last batch, by source
	values map[string]float64 // last value of operation counters, by series
	phases []string
	errs   []error
}

// maxErrors bounds what a hostile record can make us say.
const maxErrors = 100

func (v *validator) add(format string, args ...any) {
	if len(v.errs) < maxErrors {
		v.errs = append(v.errs, fmt.Errorf(format, args...))
	}
}

// ok notes an error of the reader, and tells whether there was one.
func (v *validator) ok(err error) bool {
	if err == nil {
		return false
	}
	var syntax *SyntaxError
	torn := errors.As(err, &syntax) && syntax.Msg == tornLine && v.run.End == nil
	if !torn {
		v.add("%w", err)
	}
	return true
}

func (v *validator) batch(b *Batch) {
	if last, seen := v.last[b.Source]; seen && b.T < last {
		v.add("batches: source %s goes back in time from %.6f s to %.6f s", b.Source, last, b.T)
	}
	v.last[b.Source] = b.T
	for series, value := range b.Values {
		name, labels, err := ParseSeries(series)
		if err != nil {
			v.add("batches: source %s at %.3f s: %w", b.Source, b.T, err)
			continue
		}
		d, known := v.descs[name]
		switch {
		case !known:
			v.add("batches: source %s at %.3f s: metric %q is not described in %s", b.Source, b.T, name, RunFile)
		case len(labels) != len(d.Labels):
			v.add("batches: source %s at %.3f s: %s has %d labels, its description %d", b.Source, b.T, series, len(labels), len(d.Labels))
		case math.IsNaN(value) || math.IsInf(value, 0):
			v.add("batches: source %s at %.3f s: %s is not a number", b.Source, b.T, series)
		}
		if b.Source == "operations" && d.Kind == metric.Counter {
			if before, seen := v.values[series]; seen && value < before-1e-9 {
				v.add("batches: %s falls from %g to %g at %.3f s", series, before, value, b.T)
			}
			v.values[series] = value
		}
	}
}

func (v *validator) event(e *Event) {
	if e.Kind != Phase {
		return
	}
	order := []string{PhaseIdle, PhaseWarmup, PhaseMeasure, PhaseDone}
	at := slices.Index(order, e.Text)
	if at < 0 {
		v.add("events: unknown phase %q at %.3f s", e.Text, e.T)
		return
	}
	if n := len(v.phases); n > 0 && slices.Index(order, v.phases[n-1]) >= at {
		v.add("events: phase %q after %q", e.Text, v.phases[n-1])
	}
	v.phases = append(v.phases, e.Text)
}
