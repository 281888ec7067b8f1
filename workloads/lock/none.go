package lock

import (
	"context"
	"math/rand/v2"

	"chokepoint/workloads"
)

// readThenWrite reads the quantity and writes it less one, with nothing to
// keep two operations from reading the same value: it loses updates.
func readThenWrite(ctx context.Context, w *Workload, op *workloads.Op, id int, _ *rand.Rand) workloads.Outcome {
	conn, err := w.pool.Conn(ctx, op)
	if err != nil {
		return poolOutcome(err)
	}
	defer w.pool.Release(op, conn)

	var quantity int64
	op.Enter(workloads.Statement)
	err = conn.QueryRowContext(ctx, "SELECT quantity FROM "+Table+" WHERE id = ?", id).Scan(&quantity)
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
	_, err = conn.ExecContext(ctx, "UPDATE "+Table+" SET quantity = ? WHERE id = ?", quantity-1, id)
	op.Enter(workloads.App)
	return finalOutcome(err)
}
