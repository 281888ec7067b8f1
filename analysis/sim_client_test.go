package analysis_test

import (
	"math"
	"math/rand/v2"
	"time"

	"chokepoint/workloads"
)

const simTimeout workloads.Outcome = "timeout"

// simErlang draws a time of the given mean: the sum of four exponential ones.
func simErlang(rnd *rand.Rand, mean time.Duration) time.Duration {
	product := 1.0
	for range 4 {
		product *= 1 - rnd.Float64()
	}
	return time.Duration(-math.Log(product) / 4 * float64(mean))
}

// simClient performs one operation: it marks the stages that a real client
// would, and its server books what no client can see.
type simClient struct {
	w    *simWorld
	p    *simProc
	op   *workloads.Op
	stmt simDigest // the statement that is at the server
}

// connect takes a connection, as workloads.Pool does.
func (c *simClient) connect() bool {
	w := c.w
	if w.params.Pool == 0 {
		c.op.Enter(workloads.PoolWait)
		w.counters.unpooled++
		c.op.Enter(workloads.App)
		return true
	}
	c.op.Ask(workloads.PoolWait, workloads.Named(w.pool.name))
	waits := w.pool.Full()
	if limit := w.params.Timeout; limit == 0 {
		c.p.Acquire(w.pool)
	} else if !c.p.AcquireTimeout(w.pool, limit) {
		c.op.Enter(workloads.App)
		return false
	}
	if waits {
		c.wakeup(0)
	}
	c.op.Hold()
	return true
}

func (c *simClient) disconnect() {
	if c.w.params.Pool == 0 {
		c.w.counters.unpooled--
		return
	}
	c.p.Release(c.w.pool)
	c.op.Drop(workloads.Named(c.w.pool.name))
}

// statement is a statement in which the operation asks for nothing.
func (c *simClient) statement(digest string, server func()) {
	c.op.Enter(workloads.Statement)
	c.trip(digest, server, func() { c.op.Enter(workloads.App) })
}

// trip is one round trip, in the stage that the client has marked; back marks
// the stage after it. It comes when the client's goroutine runs again, and
// that may take a processor.
func (c *simClient) trip(digest string, server, back func()) {
	w := c.w
	c.p.Work(w.options.network / 2)
	from := w.engine.now
	c.stmt = simDigest{}
	w.counters.running++
	server()
	w.counters.running--
	c.stmt.Timer = w.engine.now - from
	w.counters.ended(digest, &c.stmt)
	c.p.Work(w.options.network - w.options.network/2)
	if w.params.AppCPUAt == digest {
		c.compute(w.draw(w.params.AppCPU), back)
		return
	}
	c.wakeup(0)
	back()
}

// compute uses processors of the application; runs is called once the first
// is there.
func (c *simClient) compute(d time.Duration, runs func()) {
	first := true
	c.p.CPU(c.w.appCPU, max(d, 1), func(queued, used time.Duration) {
		if first {
			c.w.counters.wakeups++
			runs()
		}
		if first || queued > 0 {
			c.w.counters.woke(queued)
		}
		first = false
		c.w.counters.appCPU += used
	})
}

func (c *simClient) wakeup(queued time.Duration) {
	c.w.counters.wakeups++
	c.w.counters.woke(queued)
}

// work is time in the server that needs no processor.
func (c *simClient) work(mean time.Duration) { c.p.Work(c.w.draw(mean)) }

// cpu is time in the server on a processor.
func (c *simClient) cpu(mean time.Duration) {
	n := c.w.counters
	c.p.CPU(c.w.dbCPU, c.w.draw(mean), func(queued, used time.Duration) {
		c.stmt.CPU += used
		c.stmt.RunQueue += queued
		n.dbCPU += used
		n.dbQueued += queued
	})
}

// lockRow waits in the server for the lock of the row.
func (c *simClient) lockRow(row *simResource) {
	c.stmt.RowLock, c.stmt.RowLockWaits = c.w.counters.rowWait(c.p, row)
}

// metadata waits in the server while an ALTER TABLE has the table.
func (c *simClient) metadata() {
	if c.w.mdl.held == 0 {
		return // statements do not wait for each other
	}
	c.stmt.MetadataLock = c.p.Acquire(c.w.mdl)
	c.p.Release(c.w.mdl)
}
