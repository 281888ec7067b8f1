package lock

import (
	"context"
	"math/rand/v2"
	"time"

	"chokepoint/workloads"
)

// CountDeadlocks is how often an operation was the victim of a deadlock.
const CountDeadlocks = "deadlocks"

// deadlock lets operations lock two rows, in an order that chance decides: of the
// eight hottest rows, or of the two.
//
// Two that lock the same pair in opposite orders wait for each other; InnoDB ends
// one of them with error 1213, and it tries again after a jittered backoff
// (without one MariaDB livelocks). More waiting rows help, another pool does not:
// row_lock/deadlock.
func deadlock(w *Workload, f Fault) {
	rows := min(w.o.Keys, of(f, 8, 2))
	w.buy = func(ctx context.Context, w *Workload, op *workloads.Op, _ int, rnd *rand.Rand) workloads.Outcome {
		first := 1 + rnd.IntN(rows)
		second := 1 + (first-1+1+rnd.IntN(rows-1))%rows
		var pause time.Duration
		for failures := 1; ; failures++ {
			got := w.buyTwo(ctx, op, first, second)
			if got != Deadlock {
				return got
			}
			op.Count(CountDeadlocks)
			if failures > w.o.MaxRetries {
				return Deadlock
			}
			op.Retry()
			op.Ask(workloads.Backoff, row(first))
			pause = w.o.Backoff.Delay(failures, pause, rnd)
			lasts := workloads.Sleep(ctx, pause)
			op.Enter(workloads.App)
			if !lasts {
				return Timeout
			}
		}
	}
}

// buyTwo locks two rows and buys a unit of the first.
func (w *Workload) buyTwo(ctx context.Context, op *workloads.Op, first, second int) workloads.Outcome {
	conn, err := w.pool.Conn(ctx, op)
	if err != nil {
		return poolOutcome(err)
	}
	defer w.pool.Release(op, conn)
	op.Enter(workloads.Statement)
	tx, err := conn.BeginTx(ctx, nil)
	op.Enter(workloads.App)
	if err != nil {
		return outcome(err)
	}
	bought, err := w.buyLocked(ctx, tx, op, first)
	if err == nil && bought {
		var quantity int64
		op.Ask(workloads.Statement, row(second))
		if err = tx.QueryRowContext(ctx, "SELECT quantity FROM "+Table+" WHERE id = ? FOR UPDATE", second).Scan(&quantity); err == nil {
			op.Hold()
		}
	}
	if err != nil || !bought {
		op.Enter(workloads.Statement)
		tx.Rollback() // the error that matters is err
		op.Drop(row(second))
		op.Drop(row(first))
		op.Enter(workloads.App)
		if err == nil {
			return SoldOut
		}
		return outcome(err)
	}
	op.Enter(workloads.Commit)
	err = tx.Commit()
	op.Drop(row(second))
	op.Drop(row(first))
	return finalOutcome(err)
}
