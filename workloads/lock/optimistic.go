package lock

import (
	"context"
	"math/rand/v2"
	"time"

	"chokepoint/workloads"
)

// Names of what optimistic operations count.
const CountConflicts = "conflicts"

// optimistic reads the row with its version, and writes only if the version is
// still the same; if not, somebody was faster, and it tries again after a
// backoff. No lock is held between the two statements.
func optimistic(ctx context.Context, w *Workload, op *workloads.Op, id int, rnd *rand.Rand) workloads.Outcome {
	var pause time.Duration
	for failures := 1; ; failures++ {
		got := w.tryOptimistic(ctx, op, id)
		if got != Conflict {
			return got
		}
		op.Count(CountConflicts)
		if failures > w.o.MaxRetries {
			return Conflict
		}
		op.Retry()
		op.Ask(workloads.Backoff, row(id)) // it waits for the row, in its own way
		pause = w.o.Backoff.Delay(failures, pause, rnd)
		lasts := workloads.Sleep(ctx, pause)
		op.Enter(workloads.App)
		if !lasts {
			return Timeout
		}
	}
}

// tryOptimistic makes one attempt, on a connection of its own.
func (w *Workload) tryOptimistic(ctx context.Context, op *workloads.Op, id int) workloads.Outcome {
	conn, err := w.pool.Conn(ctx, op)
	if err != nil {
		return poolOutcome(err)
	}
	defer w.pool.Release(op, conn)

	var quantity, version int64
	op.Enter(workloads.Statement)
	err = conn.QueryRowContext(ctx, "SELECT quantity, version FROM "+Table+" WHERE id = ?", id).Scan(&quantity, &version)
	op.Enter(workloads.App)
	if err != nil {
		return outcome(err)
	}
	if quantity <= 0 {
		return SoldOut
	}
	if err := w.work(ctx, op, conn); err != nil {
		return outcome(err)
	}
	op.Ask(workloads.Statement, row(id))
	result, err := conn.ExecContext(ctx, "UPDATE "+Table+" SET quantity = quantity - 1, version = version + 1 WHERE id = ? AND version = ?", id, version)
	op.Enter(workloads.App)
	if err != nil {
		return finalOutcome(err)
	}
	changed, err := result.RowsAffected()
	if err == nil && changed == 0 {
		return Conflict
	}
	return outcome(err)
}
