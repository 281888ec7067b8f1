package workloads

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// How the operations of an open loop come due.
const (
	Poisson  = "poisson"  // at random and independently, as those of many users do
	Constant = "constant" // at even distances
)

// Arrivals names them.
func Arrivals() []string { return []string{Poisson, Constant} }

// Slot is what operations of an open loop wait for when as many are in flight as
// the load allows.
func Slot() Resource { return Named("slot") }

// NeverStarted is the outcome of an operation that came due and was still in the
// queue when the load ended.
const NeverStarted Outcome = "never_started"

// Schedule tells when operation n, counted from 0, is due after the start.
type Schedule func(n uint64) time.Duration

// NewSchedule makes the schedule of a rate, which must be called with n = 0, 1,
// 2 and so on.
func NewSchedule(arrival string, rate float64, seed uint64) Schedule {
	if arrival == Constant {
		return func(n uint64) time.Duration { return time.Duration(float64(n) / rate * float64(time.Second)) }
	}
	rnd := rand.New(rand.NewPCG(seed, openSeed))
	due := 0.0
	return func(uint64) time.Duration {
		due += rnd.ExpFloat64() / rate
		return time.Duration(due * float64(time.Second))
	}
}

// openSeed sets the schedule's random numbers apart from those of operations.
const openSeed = 0x6f70656e

// driveOpen starts operations when they are due, as far as there is a free slot;
// the rest stand in the queue. An operation's time counts from when it was due,
// so that a service that falls behind cannot hide it (coordinated omission).
func driveOpen(ctx context.Context, w Workload, m *Meter, l Load, observe func(Done)) uint64 {
	q := newQueue()
	var dropped uint64
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		for _, x := range q.drop() {
			dropped++
			observe(x.op.End(NeverStarted))
		}
	})
	var wg sync.WaitGroup
	for range l.Workers {
		wg.Go(func() {
			for x, ok := q.take(); ok; x, ok = q.take() {
				x.op.Hold()
				perform(context.WithoutCancel(ctx), w, x.op, l, x.n, observe)
			}
		})
	}
	due, late := arrive(ctx, m, l, q)
	q.close()
	wg.Wait()
	if !stop() {
		<-done
	}
	if late != nil {
		dropped++
		observe(late.End(NeverStarted))
	}
	return due - dropped
}

// arrive puts operations into the queue when they are due, until ctx or their
// number ends, and returns how many came due. late is one that came due as the
// queue was dropped, and is not in it.
func arrive(ctx context.Context, m *Meter, l Load, q *queue) (due uint64, late *Op) {
	schedule, began := NewSchedule(l.Arrival, l.Rate, l.Seed), m.now()
	for n := uint64(0); l.Requests == 0 || n < l.Requests; n++ {
		at := began + schedule(n)
		if !Sleep(ctx, at-m.now()) {
			return n, nil
		}
		if op := m.BeginDue(l.Operation, at, Slot()); !q.put(queued{op, l.First + n}) {
			return n + 1, op
		}
	}
	return l.Requests, nil
}

// queued is an operation that is due.
type queued struct {
	op *Op
	n  uint64
}

// queue holds what is due and not started, in order and without limit: what is
// offered beyond the capacity must be seen, not refused.
type queue struct {
	mu     sync.Mutex
	more   *sync.Cond
	all    []queued
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.more = sync.NewCond(&q.mu)
	return q
}

// put adds one, unless the queue is closed.
func (q *queue) put(x queued) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.all = append(q.all, x)
	q.more.Signal()
	return true
}

// take waits for the next one; there is none in a closed queue that is empty.
func (q *queue) take() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.all) == 0 && !q.closed {
		q.more.Wait()
	}
	if len(q.all) == 0 {
		return queued{}, false
	}
	x := q.all[0]
	q.all = q.all[1:]
	return x, true
}

// close says that nothing more will come.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
}

// drop closes the queue and returns what is still in it.
func (q *queue) drop() []queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := q.all
	q.all, q.closed = nil, true
	q.more.Broadcast()
	return rest
}
