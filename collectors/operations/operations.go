// Package operations reads the meter of a workload: the cumulative seconds of
// all operations, open ones included.
package operations

import (
	"context"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
	"chokepoint/workloads"
)

// Name is the name of the source.
const Name = "operations"

// Names of its metrics.
const (
	Seconds  = "operations.seconds"
	Entries  = "operations.entries"
	Open     = "operations.open"
	Finished = "operations.finished"
	Counted  = "operations.counted"
	// LockIdle and LockWaited are of application locks.
	LockIdle   = "operations.lock_idle_seconds"
	LockWaited = "operations.lock_waited_seconds"
)

// Retried is the label of time that came after a failed attempt; that of first
// attempts is empty.
const Retried = "retry"

// Source reads one meter.
type Source struct{ Meter *workloads.Meter }

// Name implements collectors.Source.
func (Source) Name() string { return Name }

// Metrics implements collectors.Source.
func (Source) Metrics() []metric.Desc {
	cell := []string{"operation", "stage", "asked", "held", "attempt"}
	return []metric.Desc{
		{Name: Seconds, Unit: metric.Seconds, Kind: metric.Counter, Labels: cell,
			Help: "time of all operations, open ones included, by client stage, resource asked for, resources held (joined with +), and whether an earlier attempt had failed"},
		{Name: Entries, Unit: metric.One, Kind: metric.Counter, Labels: cell, Help: "times an operation entered this state"},
		{Name: Open, Unit: metric.One, Kind: metric.Gauge, Labels: cell, Help: "operations in this state now; absent is 0"},
		{Name: Finished, Unit: metric.One, Kind: metric.Counter, Labels: []string{"operation", "outcome"}, Help: "operations that have ended"},
		{Name: Counted, Unit: metric.One, Kind: metric.Counter, Labels: []string{"operation", "what"}, Help: "what happened inside operations, such as conflicts and attempts"},
		{Name: LockIdle, Unit: metric.Seconds, Kind: metric.Counter, Help: "time in which an application lock was free while operations waited for it, summed over the locks"},
		{Name: LockWaited, Unit: metric.Seconds, Kind: metric.Counter, Help: "time in which operations waited for an application lock, however many, summed over the locks"},
	}
}

// Read implements collectors.Source. The batch's time is the meter's own, taken
// under its lock.
func (s Source) Read(_ context.Context, b *record.Batch) error {
	r := s.Meter.Read()
	b.T = r.At.Seconds()
	for _, t := range r.Totals {
		labels := []string{t.Operation, string(t.Stage), t.Asked, t.Held, ""}
		if t.Retry {
			labels[4] = Retried
		}
		b.Add(t.Seconds, Seconds, labels...)
		b.Add(float64(t.Entries), Entries, labels...)
		if t.Open > 0 {
			b.Add(float64(t.Open), Open, labels...)
		}
	}
	for f, n := range r.Finished {
		b.Add(float64(n), Finished, f.Operation, string(f.Outcome))
	}
	for c, n := range r.Counted {
		b.Add(float64(n), Counted, c.Operation, c.What)
	}
	if r.LockWaited > 0 {
		b.Add(r.LockIdle, LockIdle)
		b.Add(r.LockWaited, LockWaited)
	}
	return nil
}
