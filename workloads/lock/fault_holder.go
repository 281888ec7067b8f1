package lock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"chokepoint/workloads"
)

// holderCPU lets each operation compute in Go while it holds its row: for 1 ms,
// or 4.
//
// The row's hold H grows by that, and one row serves 1/H operations a second,
// however many connections wait: row_lock/hot_row, holder cpu.
func holderCPU(w *Workload, f Fault) {
	d := of(f, time.Millisecond, 4*time.Millisecond)
	w.steps = append(w.steps, func(_ context.Context, op *workloads.Op) error {
		op.Enter(workloads.App)
		for x, began := uint64(1), time.Now(); time.Since(began) < d; {
			for range 1000 {
				x = x*6364136223846793005 + 1442695040888963407
			}
			spent(x)
		}
		return nil
	})
}

// spent keeps the compiler from dropping a computation.
//
//go:noinline
func spent(uint64) {}

// busyScript keeps Redis busy: ARGV[1] turns of a loop, a million of which take
// some ten milliseconds.
var busyScript = redis.NewScript(`local x = 0 for i = 1, tonumber(ARGV[1]) do x = x + i end return 1`)

// holderRedis lets each operation make a slow call of Redis while it holds its
// row: a script of 100,000 turns, or 400,000 (about 1 ms, or 4).
//
// As for holderCPU, with holder redis.
func holderRedis(w *Workload, f Fault) {
	turns := of(f, 100_000, 400_000)
	w.steps = append(w.steps, func(ctx context.Context, op *workloads.Op) error {
		op.Enter(workloads.Redis)
		err := busyScript.Run(ctx, w.redis, nil, turns).Err()
		op.Enter(workloads.App)
		return err
	})
}
