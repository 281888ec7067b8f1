package workloads

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Workload is what a run does again and again.
type Workload interface {
	// Setup prepares the servers. It is called once, before any Do.
	Setup(ctx context.Context) error
	// Do performs operation n and marks its stages on op, which it must not
	// end. It is called from many goroutines. rnd belongs to the operation and
	// is seeded by the run's seed and n, so that a run can be repeated.
	Do(ctx context.Context, op *Op, rnd *rand.Rand) Outcome
}

// Load says how operations are started. In a closed loop each worker starts its
// next operation when the last one has ended and it has thought. With a Rate the
// loop is open: operations come due by a schedule, whatever becomes of those
// before them.
type Load struct {
	Operation string        // the name of the operations
	Workers   int           // concurrent operations
	Rate      float64       // operations due a second; 0 is a closed loop
	Arrival   string        // of an open loop: Poisson or Constant
	Think     time.Duration // of a closed loop: mean pause between operations, exponentially distributed
	Requests  uint64        // ends the load after so many operations, if not 0
	Duration  time.Duration // ends it after this time, if not 0
	Timeout   time.Duration // of one operation
	Seed      uint64
	First     uint64 // number of the first operation: warm-up comes before
}

// Drive performs the load on w and returns how many operations it started,
// once all of them have ended. Ending ctx stops it from starting more; those
// that run are left to end by themselves or by their timeout, so that no
// operation is cut in half. observe is called for each that has ended, from
// many goroutines.
func Drive(ctx context.Context, w Workload, m *Meter, l Load, observe func(Done)) uint64 {
	var cancel context.CancelFunc = func() {}
	if l.Duration > 0 {
		ctx, cancel = context.WithTimeout(ctx, l.Duration)
	}
	defer cancel()
	if l.Rate > 0 {
		return driveOpen(ctx, w, m, l, observe)
	}
	return driveClosed(ctx, w, m, l, observe)
}

func driveClosed(ctx context.Context, w Workload, m *Meter, l Load, observe func(Done)) uint64 {
	var started atomic.Uint64
	var wg sync.WaitGroup
	for i := range l.Workers {
		wg.Go(func() {
			think := rand.New(rand.NewPCG(l.Seed, ^uint64(i)))
			if !pause(ctx, l.Think, think) { // spread the workers' first operations
				return
			}
			for ctx.Err() == nil {
				n := started.Add(1)
				if l.Requests > 0 && n > l.Requests {
					started.Add(^uint64(0))
					return
				}
				perform(context.WithoutCancel(ctx), w, m.Begin(l.Operation), l, l.First+n-1, observe)
				if !pause(ctx, l.Think, think) {
					return
				}
			}
		})
	}
	wg.Wait()
	return started.Load()
}

func perform(ctx context.Context, w Workload, op *Op, l Load, n uint64, observe func(Done)) {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	ctx = WithOp(ctx, op)
	observe(op.End(w.Do(ctx, op, rand.New(rand.NewPCG(l.Seed, n)))))
}

// pause waits an exponentially distributed time, and tells whether ctx lasts.
func pause(ctx context.Context, mean time.Duration, rnd *rand.Rand) bool {
	return Sleep(ctx, time.Duration(rnd.ExpFloat64()*float64(mean)))
}

type opKey struct{}

// WithOp puts op into the context, for code that sees the context only: a
// connector that dials on behalf of an operation.
func WithOp(ctx context.Context, op *Op) context.Context { return context.WithValue(ctx, opKey{}, op) }

// OpOf returns the operation on whose behalf ctx is, or nil.
func OpOf(ctx context.Context) *Op {
	op, _ := ctx.Value(opKey{}).(*Op)
	return op
}
