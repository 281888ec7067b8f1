// Package collectors reads subsystems while a run lasts. A Source reads one of
// them once; Poll reads it on a grid and writes the batches into the record.
// What cannot be read is a fault in the record, and the other sources go on.
package collectors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Source takes a reading of one subsystem. It keeps no state between readings.
type Source interface {
	// Name is lower case and dotted, such as "mysql.digests".
	Name() string
	Metrics() []metric.Desc
	// Read adds raw counters and gauges to b, never rates.
	Read(ctx context.Context, b *record.Batch) error
}

// Recorder writes readings into one record, on one clock.
type Recorder struct {
	W *record.Writer
	// Now is the time since the start of the record.
	Now func() time.Duration
}

// Event writes an event of now.
func (r Recorder) Event(kind, source, text string) {
	r.W.Event(record.Event{T: r.Now().Seconds(), Kind: kind, Source: source, Text: text})
}

// Read takes one reading of s. A failure is written as a fault, and told.
func (r Recorder) Read(ctx context.Context, s Source) bool {
	err := r.read(ctx, s)
	if err != nil {
		r.Event(record.Fault, s.Name(), err.Error())
	}
	return err == nil
}

// read takes one reading and writes what it brought, whole or not.
func (r Recorder) read(ctx context.Context, s Source) error {
	from := r.Now()
	b := &record.Batch{Source: s.Name(), T: from.Seconds()}
	err := s.Read(ctx, b)
	b.Took = (r.Now() - from).Seconds()
	if len(b.Values) > 0 {
		err = errors.Join(err, r.W.Batch(b))
	}
	return err
}

// Every is how often to read: by each step in turn until its time of the polling
// has passed, by the last one for ever. A reading may take Timeout.
type Every struct {
	Steps   []Step
	Timeout time.Duration
	// Rest is for how many times the length of a reading none follows it: what
	// is dear to the server is read less often when it takes long.
	Rest float64
}

// Step is a distance of readings, kept until a time of the polling.
type Step struct{ Every, Until time.Duration }

// at is the distance of readings after the given time of polling.
func (e Every) at(t time.Duration) time.Duration {
	last := len(e.Steps) - 1
	for _, s := range e.Steps[:last] {
		if t < s.Until {
			return s.Every
		}
	}
	return e.Steps[last].Every
}

// Poll reads s until ctx ends. A reading that comes late by more than a slot
// skips the slots it missed, and the gap is written down. Readings that fail
// are written as a fault once, when they begin to fail and when they work again.
func (r Recorder) Poll(ctx context.Context, s Source, every Every) {
	began := r.Now()
	due := began
	failing := false
	for {
		step := every.at(r.Now() - began)
		due += step
		if late := r.Now() - due; late > step {
			r.Event(record.Gap, s.Name(), fmt.Sprintf("no reading for %.3f s", (late+step).Seconds()))
			due = r.Now()
		}
		if !sleep(ctx, due-r.Now()) {
			return
		}
		from := r.Now()
		failing = r.poll(ctx, s, every.Timeout, failing)
		if rest := time.Duration(every.Rest * float64(r.Now()-from)); rest > step {
			due = r.Now() + rest - every.at(r.Now()-began)
		}
	}
}

// poll takes one reading, and tells whether the source fails.
func (r Recorder) poll(run context.Context, s Source, timeout time.Duration, failing bool) bool {
	ctx, cancel := context.WithTimeout(run, timeout)
	defer cancel()
	err := r.read(ctx, s)
	switch {
	case err != nil && run.Err() != nil:
		return failing // the end of the run cut the reading off, no fault
	case err != nil && !failing:
		r.Event(record.Fault, s.Name(), err.Error())
	case err == nil && failing:
		r.Event(record.Note, s.Name(), "readings work again")
	}
	return err != nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
