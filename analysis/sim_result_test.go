package analysis_test

import (
	"cmp"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"chokepoint/collectors/record"
	"chokepoint/workloads"
)

// simTally adds up the operations of one phase as they end.
type simTally struct {
	until     time.Duration // no operation starts after
	ok        int
	failed    int
	steady    int // successes before until
	total     time.Duration
	spent     map[workloads.Stage]time.Duration
	latencies map[simLatency]*hdr.Histogram
}

// simLatency names a histogram of the latency log.
type simLatency struct {
	stage   string
	outcome workloads.Outcome
}

func newSimTally(until time.Duration) *simTally {
	return &simTally{until: until, spent: map[workloads.Stage]time.Duration{}, latencies: map[simLatency]*hdr.Histogram{}}
}

func (t *simTally) add(d workloads.Done) error {
	switch {
	case d.Outcome != workloads.OK:
		t.failed++
	case d.End <= t.until:
		t.steady++
		fallthrough
	default:
		t.ok++
	}
	t.total += d.End - d.Start
	for s, v := range d.Spent {
		t.spent[s] += v
	}
	err := t.record(d, record.StageTotal, d.End-d.Start)
	if waited, ok := d.Spent[workloads.PoolWait]; ok {
		err = cmp.Or(err, t.record(d, string(workloads.PoolWait), waited))
	}
	if d.PoolHold > 0 {
		err = cmp.Or(err, t.record(d, record.StagePoolHold, d.PoolHold))
	}
	return err
}

func (t *simTally) record(d workloads.Done, stage string, spent time.Duration) error {
	return t.histogram(simLatency{stage, d.Outcome}).RecordValue(int64(spent))
}

func (t *simTally) histogram(l simLatency) *hdr.Histogram {
	h := t.latencies[l]
	if h == nil {
		h = record.NewHistogram()
		t.latencies[l] = h
	}
	return h
}

// simResult is what a run came to.
type simResult struct {
	// Throughput counts the successes of the whole measured phase, its end
	// without new operations included, as a reader of the record does.
	Throughput float64
	// Steady counts the successes within the measured time, as the reference
	// simulation does. The true gain of a change is a ratio of these.
	Steady   float64
	Finished int // operations that ended well
	Failed   int
	Latency  float64 // mean seconds of those that ended, either way
	Seconds  float64 // of the measured phase
	Spent    map[workloads.Stage]time.Duration
	Truth    simTruth
}

func newSimResult(t *simTally, started time.Duration, from, to simSnapshot) simResult {
	r := simResult{
		Steady:   float64(t.steady) / started.Seconds(),
		Finished: t.ok, Failed: t.failed,
		Seconds: (to.at - from.at).Seconds(),
		Spent:   t.spent,
		Truth:   newSimTruth(from, to),
	}
	r.Throughput = float64(r.Finished) / r.Seconds
	if n := t.ok + t.failed; n > 0 {
		r.Latency = t.total.Seconds() / float64(n)
	}
	return r
}
