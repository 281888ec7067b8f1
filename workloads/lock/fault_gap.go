package lock

import (
	"context"
	"math/rand/v2"

	"chokepoint/workloads"
)

// gap mixes inserts behind the last row with scans of that range FOR UPDATE,
// which lock the gap for 2 ms, or 8: one operation in forty scans, or in eight,
// and never two at a time.
//
// An insert into a locked gap waits, though no row is there; spreading the load
// over more rows does not help, another isolation level or index does:
// row_lock/gap_lock.
func gap(w *Workload, f Fault) {
	hold, every := of(f, 0.002, 0.008), of(f, 40, 8)
	scanning := make(chan struct{}, 1)
	last := w.o.Keys
	w.sellsNothing = true
	w.buy = func(ctx context.Context, w *Workload, op *workloads.Op, _ int, rnd *rand.Rand) workloads.Outcome {
		if rnd.IntN(every) == 0 {
			select {
			case scanning <- struct{}{}:
				defer func() { <-scanning }()
				return w.scan(ctx, op, last, hold)
			default: // another one is at it
			}
		}
		// Far apart, so that no two inserts meet but by chance.
		return w.insert(ctx, op, int64(last)+1+rnd.Int64N(1<<50))
	}
}

// behind is the gap behind the last row, as a resource.
func behind() workloads.Resource { return workloads.Row(Table, "supremum") }

// scan locks the range behind the last row for a time.
func (w *Workload) scan(ctx context.Context, op *workloads.Op, last int, hold float64) workloads.Outcome {
	conn, err := w.pool.Conn(ctx, op)
	if err != nil {
		return poolOutcome(err)
	}
	defer w.pool.Release(op, conn)
	op.Enter(workloads.Statement)
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return outcome(err)
	}
	op.Ask(workloads.Statement, behind())
	_, err = tx.ExecContext(ctx, "DELETE FROM "+Table+" WHERE id > ?", last)
	if err == nil {
		op.Hold()
		op.Enter(workloads.Statement)
		_, err = tx.ExecContext(ctx, "DO SLEEP(?)", hold)
	}
	if err != nil {
		op.Enter(workloads.Statement)
		tx.Rollback() // the error that matters is err
		op.Drop(behind())
		return outcome(err)
	}
	op.Enter(workloads.Commit)
	err = tx.Commit()
	op.Drop(behind())
	return finalOutcome(err)
}

// insert adds a row without stock behind the last one.
func (w *Workload) insert(ctx context.Context, op *workloads.Op, id int64) workloads.Outcome {
	conn, err := w.pool.Conn(ctx, op)
	if err != nil {
		return poolOutcome(err)
	}
	defer w.pool.Release(op, conn)
	op.Ask(workloads.Statement, behind())
	_, err = conn.ExecContext(ctx, "INSERT INTO "+Table+" (id, quantity) VALUES (?, 0)", id)
	op.Enter(workloads.App)
	return finalOutcome(err)
}
