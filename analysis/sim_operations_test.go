package analysis_test

import (
	"time"

	"chokepoint/workloads"
)

// buy is a purchase under a pessimistic lock. The row is asked for from sending
// the locking statement; the server has given it away when COMMIT ends there,
// the client drops it when COMMIT has returned.
func buy(c *simClient) workloads.Outcome {
	p, op := &c.w.params, c.op
	if !c.connect() {
		return simTimeout
	}
	if p.Begin > 0 {
		c.statement(simBegin, func() { c.work(p.Begin) })
	}
	row, key := c.w.pickRow()
	op.Ask(workloads.Statement, key)
	c.trip(simLock, func() { c.lockRow(row); c.work(p.Select) }, op.Hold)
	c.statement(simUpdate, func() { c.work(p.Update) })
	if p.AppCPUAt == "app" {
		c.compute(c.w.draw(p.AppCPU), func() {})
	}
	op.Enter(workloads.Commit)
	c.trip(simCommit, func() { c.work(p.Commit); c.p.Release(row) }, func() { op.Drop(key) })
	c.disconnect()
	return workloads.OK
}

// query is one statement of the given digest on a pooled connection: first on
// a processor of the database, then elsewhere.
func query(digest string) func(c *simClient) workloads.Outcome {
	return func(c *simClient) workloads.Outcome {
		if !c.connect() {
			return simTimeout
		}
		c.statement(digest, c.serve)
		c.disconnect()
		return workloads.OK
	}
}

func (c *simClient) serve() {
	c.metadata()
	if c.w.params.QueryCPU > 0 {
		c.cpu(c.w.params.QueryCPU)
	}
	c.work(c.w.params.Query)
}

// mutexOverQuery holds a mutex of the process while it asks the database.
func mutexOverQuery(c *simClient) workloads.Outcome {
	mutex := workloads.Named(c.w.mutex.name)
	c.op.Ask(workloads.AppLock, mutex)
	if waited := c.p.Acquire(c.w.mutex); waited > 0 {
		c.w.counters.mutexWait += waited
		c.wakeup(0)
	}
	c.op.Hold()
	query(simSelect)(c)
	c.p.Release(c.w.mutex)
	c.op.Drop(mutex)
	d := c.w.draw(c.w.params.AppWork)
	c.w.counters.appCPU += d
	c.p.Work(d)
	return workloads.OK
}

// nested wants a second connection while it has one.
func nested(c *simClient) workloads.Outcome {
	if !c.connect() {
		return simTimeout
	}
	defer c.disconnect()
	c.statement(simSelect, c.serve)
	if c.w.rnd.Float64() >= c.w.params.Nested {
		return workloads.OK
	}
	if !c.connect() {
		return simTimeout
	}
	defer c.disconnect()
	c.statement(simSelect, c.serve)
	return workloads.OK
}

// spin asks Redis for a lock until it gets it, and then the database for rows.
func spin(c *simClient) workloads.Outcome {
	lock := workloads.Named(c.w.lock.name)
	c.op.Ask(workloads.AppLock, lock)
	if !c.spinLock() {
		c.op.Enter(workloads.App)
		return simTimeout
	}
	c.op.Hold()
	query(simSelect)(c)
	c.p.Release(c.w.lock)
	c.op.Drop(lock)
	return workloads.OK
}

func (c *simClient) spinLock() bool {
	lock, s := c.w.lock, &c.w.params.Spin
	if s.Handoff {
		c.p.Acquire(lock)
		c.p.Work(s.Trip)
		return true
	}
	c.p.Poll(lock, 1)
	defer c.p.Poll(lock, -1)
	for try := 0; ; try++ {
		c.p.Work(s.Trip)
		c.wakeup(0)
		if c.p.TryAcquire(lock) {
			return true
		}
		if try >= s.Retries {
			return false
		}
		c.op.In(workloads.Backoff)
		pause := min(s.Cap, s.Base<<min(try, 30))
		c.p.Work(time.Duration(c.w.rnd.Float64() * float64(pause)))
		c.op.In(workloads.AppLock)
	}
}
