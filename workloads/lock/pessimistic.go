package lock

import (
	"context"
	"database/sql"
	"math/rand/v2"

	"chokepoint/workloads"
)

// pessimistic locks the row before it reads it, and holds the lock from there
// until COMMIT has returned: SELECT ... FOR UPDATE, UPDATE, COMMIT.
func pessimistic(ctx context.Context, w *Workload, op *workloads.Op, id int, _ *rand.Rand) workloads.Outcome {
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
	bought, err := w.buyLocked(ctx, tx, op, id)
	if err != nil || !bought {
		op.Enter(workloads.Statement)
		tx.Rollback() // the error that matters is err; a lost connection rolls back by itself
		op.Drop(row(id))
		op.Enter(workloads.App)
		if err == nil {
			return SoldOut
		}
		return outcome(err)
	}
	op.Enter(workloads.Commit)
	err = tx.Commit()
	op.Drop(row(id))
	return finalOutcome(err)
}

// buyLocked locks the row and takes one unit, if there is one.
func (w *Workload) buyLocked(ctx context.Context, tx *sql.Tx, op *workloads.Op, id int) (bool, error) {
	var quantity int64
	op.Ask(workloads.Statement, row(id))
	err := tx.QueryRowContext(ctx, "SELECT quantity FROM "+Table+" WHERE id = ? FOR UPDATE", id).Scan(&quantity)
	if err != nil {
		op.Enter(workloads.App)
		return false, err
	}
	op.Hold()
	if quantity <= 0 {
		return false, nil
	}
	if err := w.work(ctx, op, tx); err != nil {
		return false, err
	}
	op.Enter(workloads.Statement)
	_, err = tx.ExecContext(ctx, "UPDATE "+Table+" SET quantity = quantity - 1 WHERE id = ?", id)
	op.Enter(workloads.App)
	return err == nil, err
}
