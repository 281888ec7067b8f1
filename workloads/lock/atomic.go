package lock

import (
	"context"
	"math/rand/v2"

	"chokepoint/workloads"
)

// atomic lets one statement check and write: the row lock lasts for that
// statement only.
func atomic(ctx context.Context, w *Workload, op *workloads.Op, id int, _ *rand.Rand) workloads.Outcome {
	conn, err := w.pool.Conn(ctx, op)
	if err != nil {
		return poolOutcome(err)
	}
	defer w.pool.Release(op, conn)

	op.Ask(workloads.Statement, row(id))
	result, err := conn.ExecContext(ctx, "UPDATE "+Table+" SET quantity = quantity - 1 WHERE id = ? AND quantity > 0", id)
	op.Enter(workloads.App)
	if err != nil {
		return finalOutcome(err)
	}
	changed, err := result.RowsAffected()
	if err == nil && changed == 0 {
		return SoldOut
	}
	return outcome(err)
}
