// Package timeline turns the batches of a record into series that can be asked
// for differences: over the measured phase, and over its slices. It finds what
// would make a difference wrong (resets, restarts, wraps, gaps) and marks it,
// so that no rate ever comes out negative or huge.
package timeline

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sort"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Series is one series of readings in the order of their time.
type Series struct {
	Metric string
	Labels []string
	desc   metric.Desc
	source string
	t, v   []float64
}

// Timeline is a record's readings and events.
type Timeline struct {
	// From and To bound the measured phase, in seconds of the record.
	From, To float64
	// Measured is false if the record has no measured phase: it was killed
	// before, or its events are lost.
	Measured bool
	// Texts holds statement texts by digest.
	Texts map[string]string
	// Cut are the digests of statements as long as the server looks at.
	Cut map[string]bool
	// Limits are what a server does not show, by the name of the check.
	Limits map[string]record.Event
	// Events are faults, gaps and notes, in their order.
	Events []record.Event
	// Problems are what could not be read, and the marks found in the series.
	Problems []error

	series   map[string][]*Series // by metric
	bySeries map[string]*Series
	times    map[string][]float64 // reading times by source
}

// absurd is above all that is counted here: bytes of the largest memories,
// picosecond timers in seconds. Sums of smaller values stay finite.
const absurd = 1e30

const (
	// operations is the source whose readings cut the slices.
	operations = "operations"
	// digests is the source that is compared with it.
	digests = "mysql.digests"
)

// Load reads all of a record's batches and events.
func Load(r *record.Reader) (*Timeline, error) {
	t := &Timeline{
		Texts:    map[string]string{},
		Cut:      map[string]bool{},
		Limits:   map[string]record.Event{},
		series:   map[string][]*Series{},
		bySeries: map[string]*Series{},
		times:    map[string][]float64{},
	}
	descs := map[string]metric.Desc{}
	for _, d := range r.Run().Metrics {
		descs[d.Name] = d
	}
	for b, err := range r.Batches() {
		if err := t.problem(err); err != nil {
			return nil, err
		}
		if b != nil {
			t.add(b, descs)
		}
	}
	done := false
	for e, err := range r.Events() {
		if err := t.problem(err); err != nil {
			return nil, err
		}
		if e != nil {
			done = t.event(e) || done
		}
	}
	if !done {
		t.To = t.seenUntil()
	}
	t.Measured = t.Measured && t.To > t.From
	t.markResets()
	return t, nil
}

// seenUntil is where a killed run's measured phase ends: at its last reading of
// the operations, or where the server was read for the last time, so that the
// client's view and the server's are of the same time.
func (t *Timeline) seenUntil() float64 {
	times := t.times[operations]
	if len(times) == 0 {
		return 0
	}
	last := times[len(times)-1]
	if server := t.times[digests]; len(server) > 0 && server[len(server)-1] > t.From {
		i := sort.SearchFloat64s(times, server[len(server)-1])
		last = times[min(i, len(times)-1)]
	}
	return last
}

// problem keeps lines that cannot be read, and returns errors that end the
// reading. A file that is not there is a line that cannot be read.
func (t *Timeline) problem(err error) error {
	var syntax *record.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax), errors.Is(err, fs.ErrNotExist):
		t.Problems = append(t.Problems, err)
		return nil
	}
	return err
}

func (t *Timeline) add(b *record.Batch, descs map[string]metric.Desc) {
	if times := t.times[b.Source]; len(times) > 0 && b.T < times[len(times)-1] {
		t.Problems = append(t.Problems, fmt.Errorf("%s: a reading at %.3f s stands after one at %.3f s; it is left out", b.Source, b.T, times[len(times)-1]))
		return
	}
	t.times[b.Source] = append(t.times[b.Source], b.T)
	for name, v := range b.Values {
		if !(math.Abs(v) < absurd) {
			t.Problems = append(t.Problems, fmt.Errorf("%s at %.3f s: %s is %g; it is left out", b.Source, b.T, name, v))
			continue
		}
		s := t.bySeries[name]
		if s == nil {
			m, labels, err := record.ParseSeries(name)
			if err != nil {
				t.Problems = append(t.Problems, err)
				continue
			}
			s = &Series{Metric: m, Labels: labels, desc: descs[m], source: b.Source}
			if len(labels) != len(s.desc.Labels) {
				continue // not what the record says of this metric; Validate tells
			}
			t.bySeries[name] = s
			t.series[m] = append(t.series[m], s)
		}
		s.t = append(s.t, b.T)
		s.v = append(s.v, v)
	}
}

// event notes one event, and tells whether it ended the measured phase.
func (t *Timeline) event(e *record.Event) bool {
	switch e.Kind {
	case record.Phase:
		switch e.Text {
		case record.PhaseMeasure:
			t.From, t.Measured = e.T, true
		case record.PhaseDone:
			t.To = e.T
			return true
		}
	case record.Statement:
		t.Texts[e.Labels["digest"]] = e.Text
		t.Cut[e.Labels["digest"]] = e.Labels["cut"] != ""
	case record.Limit:
		t.Limits[e.Labels["check"]] = *e
	default:
		t.Events = append(t.Events, *e)
	}
	return false
}

// All returns the series of a metric that have so many labels or more, ordered by
// them. A record's own descriptions cannot be trusted to give as many as its
// reader needs.
func (t *Timeline) All(metric string, labels int) []*Series {
	var all []*Series
	for _, s := range t.series[metric] {
		if len(s.Labels) >= labels {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *Series) int { return slices.Compare(a.Labels, b.Labels) })
	return all
}

// Get returns one series, or nil.
func (t *Timeline) Get(metric string, labels ...string) *Series {
	return t.bySeries[record.Series(metric, labels...)]
}

// Has tells whether the source was read at least twice, so that differences
// exist.
func (t *Timeline) Has(source string) bool { return len(t.times[source]) >= 2 }

// Readings are how many readings were taken in the measured phase.
func (t *Timeline) Readings() int {
	n := 0
	for _, times := range t.times {
		n += sort.SearchFloat64s(times, math.Nextafter(t.To, math.Inf(1))) - sort.SearchFloat64s(times, t.From)
	}
	return n
}

// span finds the reading times between which a source's difference over
// [from, to] is taken: the last reading not after from and the first not
// before to, since servers book a wait only when it ends.
func (t *Timeline) span(source string, from, to float64) (lo, hi float64) {
	times := t.times[source]
	if len(times) == 0 {
		return from, to
	}
	i := sort.SearchFloat64s(times, math.Nextafter(from, math.Inf(1))) - 1
	j := sort.SearchFloat64s(times, to)
	return times[max(i, 0)], times[min(j, len(times)-1)]
}

// Delta is the increase of counter s over the measured phase. A nil series has
// not increased.
func (t *Timeline) Delta(s *Series) float64 { return t.DeltaOver(s, t.From, t.To) }

// DeltaOver is the increase of counter s between the readings around from and
// to. Where the counter fell, the fall counts as nothing, apart from wraps.
func (t *Timeline) DeltaOver(s *Series, from, to float64) float64 {
	if s == nil {
		return 0
	}
	lo, hi := t.span(s.source, from, to)
	sum := 0.0
	before := s.at(lo)
	for i := sort.SearchFloat64s(s.t, math.Nextafter(lo, math.Inf(1))); i < len(s.t) && s.t[i] <= hi; i++ {
		sum += s.step(before, s.v[i])
		before = s.v[i]
	}
	return sum
}

// at is the value at time t: the last one read, 0 before the first. Sources
// leave out series that are still 0.
func (s *Series) at(t float64) float64 {
	i := sort.SearchFloat64s(s.t, math.Nextafter(t, math.Inf(1))) - 1
	if i < 0 {
		return 0
	}
	return s.v[i]
}

// step is the increase from one reading to the next. A counter that falls from
// the upper half of its range into the lower half has wrapped; any other fall
// is a reset, over which nothing is known.
func (s *Series) step(before, after float64) float64 {
	switch d := after - before; {
	case d >= 0:
		return d
	case s.wrapped(before, after):
		return d + s.desc.Wrap
	default:
		return 0
	}
}

func (s *Series) wrapped(before, after float64) bool {
	return s.desc.Wrap > 0 && before > s.desc.Wrap/2 && after < s.desc.Wrap/2
}

// Max is the largest value of a gauge in the measured phase, NaN if none.
func (t *Timeline) Max(s *Series) float64 {
	return t.fold(s, math.NaN(), func(a, v float64) float64 {
		if math.IsNaN(a) {
			return v
		}
		return math.Max(a, v)
	})
}

// Last is the last value of a gauge up to the readings at the end of the
// measured phase, NaN if there is none.
func (t *Timeline) Last(s *Series) float64 {
	return t.fold(s, math.NaN(), func(_, v float64) float64 { return v })
}

func (t *Timeline) fold(s *Series, start float64, f func(float64, float64) float64) float64 {
	if s == nil {
		return start
	}
	lo, hi := t.span(s.source, t.From, t.To)
	for i, at := range s.t {
		if at >= lo && at <= hi {
			start = f(start, s.v[i])
		}
	}
	return start
}

// Before returns the values of a gauge that were read before the given time.
func (s *Series) Before(t float64) []float64 {
	if s == nil {
		return nil
	}
	return s.v[:sort.SearchFloat64s(s.t, t)]
}

// Changes are the times in the measured phase at which any series of a counter
// was read to have grown, in order.
func (t *Timeline) Changes(metric string) []float64 {
	var out []float64
	for _, s := range t.series[metric] {
		before := 0.0
		for i, at := range s.t {
			if s.v[i] != before && at > t.From && at <= t.To {
				out = append(out, at)
			}
			before = s.v[i]
		}
	}
	slices.Sort(out)
	return out
}

// Fall is where a gauge became less from one reading to the next.
type Fall struct{ From, To, Value float64 }

// Falls are the falls of a gauge, in their order.
func (s *Series) Falls() []Fall {
	var out []Fall
	for i := 1; s != nil && i < len(s.t); i++ {
		if s.v[i] < s.v[i-1] {
			out = append(out, Fall{s.t[i-1], s.t[i], s.v[i]})
		}
	}
	return out
}

// Values returns all values of a gauge.
func (s *Series) Values() []float64 {
	if s == nil {
		return nil
	}
	return s.v
}

// During returns the values of a gauge that were read in the measured phase.
func (t *Timeline) During(s *Series) []float64 {
	if s == nil {
		return nil
	}
	return s.v[sort.SearchFloat64s(s.t, t.From):sort.SearchFloat64s(s.t, t.To)]
}
