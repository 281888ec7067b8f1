package session

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"chokepoint/collectors/profiler"
	"chokepoint/collectors/record"
	"chokepoint/workloads"
)

// latencies gathers how long operations spent in each stage, and writes an
// interval a second into the record.
type latencies struct {
	w   *record.Writer
	now func() time.Duration

	mu   sync.Mutex
	from time.Duration
	tags map[tag]*hdr.Histogram
}

type tag struct{ operation, stage, outcome string }

func newLatencies(w *record.Writer, now func() time.Duration) *latencies {
	return &latencies{w: w, now: now, from: now(), tags: map[tag]*hdr.Histogram{}}
}

func (l *latencies) observe(d workloads.Done) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(d, record.StageTotal, d.End-d.Start)
	for stage, spent := range d.Spent {
		l.add(d, string(stage), spent)
	}
	l.addSome(d, record.StagePoolHold, d.PoolHold)
	l.addSome(d, record.StageLockHold, d.LockHold)
	l.addSome(d, record.StageHandoff, d.Handoff)
}

// addSome adds a time that most operations may not have.
func (l *latencies) addSome(d workloads.Done, stage string, spent time.Duration) {
	if spent > 0 {
		l.add(d, stage, spent)
	}
}

func (l *latencies) add(d workloads.Done, stage string, spent time.Duration) {
	t := tag{d.Operation, stage, string(d.Outcome)}
	h := l.tags[t]
	if h == nil {
		h = record.NewHistogram()
		l.tags[t] = h
	}
	h.RecordValue(min(int64(spent), h.HighestTrackableValue()))
}

// flushEverySecond writes intervals until ctx ends, and a last one then; the
// function it returns waits for that.
func (l *latencies) flushEverySecond(ctx context.Context) (wait func()) {
	done := make(chan struct{})
	go profiler.Observe(ctx, "latencies", func(ctx context.Context) {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.flush()
			case <-ctx.Done():
				l.flush()
				return
			}
		}
	})
	return func() { <-done }
}

// flush writes what was gathered. The histograms are swapped out first, so that
// operations do not wait for the encoding.
func (l *latencies) flush() {
	l.mu.Lock()
	tags, from, to := l.tags, l.from, l.now()
	l.tags, l.from = map[tag]*hdr.Histogram{}, to
	l.mu.Unlock()
	order := slices.SortedFunc(maps.Keys(tags), func(a, b tag) int {
		return cmp.Or(cmp.Compare(a.operation, b.operation), cmp.Compare(a.stage, b.stage), cmp.Compare(a.outcome, b.outcome))
	})
	for _, t := range order {
		l.w.Latency(record.Interval{Operation: t.operation, Stage: t.stage, Outcome: t.outcome, From: from.Seconds(), To: to.Seconds(), Histogram: tags[t]})
	}
}
