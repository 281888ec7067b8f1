package analysis

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"chokepoint/analysis/timeline"
	"chokepoint/analysis/waits"
	"chokepoint/collectors/record"
)

// Names that the Redis sources write; see collectors/redis.
const (
	redisInfo           = "redis.info"
	redisUptime         = "redis.uptime"
	redisCommands       = "redis.commands"
	redisHits           = "redis.hits"
	redisMisses         = "redis.misses"
	redisMemory         = "redis.memory_used_bytes"
	redisDataset        = "redis.dataset_bytes"
	redisCPU            = "redis.cpu_seconds"
	redisMainThread     = "main"
	redisEventLoop      = "redis.eventloop_seconds"
	redisCommandCalls   = "redis.command.calls"
	redisCommandSeconds = "redis.command.seconds"
	redisCommandLatency = "redis.command.latency"
)

// maxCommands bounds the list of commands.
const maxCommands = 12

// redisSection is what the Redis server says of itself: of all its clients, the
// observer included.
func (w *world) redisSection() *Redis {
	if !w.t.Has(redisInfo) {
		return nil
	}
	hits, misses := w.t.Delta(w.t.Get(redisHits)), w.t.Delta(w.t.Get(redisMisses))
	r := &Redis{
		OpsPerS: Number(w.t.Delta(w.t.Get(redisCommands)) / w.length), Hits: Number(hits), Misses: Number(misses), HitRatio: unknown(),
		MemoryUsedBytesMax: Number(w.t.Max(w.t.Get(redisMemory))), DatasetBytesMax: Number(w.t.Max(w.t.Get(redisDataset))),
		Commands: w.redisCommands(), BusyShare: unknown(),
	}
	if hits+misses > 0 {
		r.HitRatio = Number(hits / (hits + misses))
	}
	busy := w.t.Get(redisEventLoop) // from 7.2 on
	if busy == nil {
		busy = w.t.Get(redisCPU, redisMainThread)
	}
	if busy != nil {
		r.BusyShare = Number(w.t.Delta(busy) / w.length)
	}
	return r
}

// redisCommands are the commands with most time in the server.
func (w *world) redisCommands() []RedisCommand {
	out := []RedisCommand{}
	seconds := map[string]float64{}
	for _, s := range w.t.All(redisCommandCalls, 1) {
		name, calls := s.Labels[0], w.t.Delta(s)
		if calls == 0 {
			continue
		}
		seconds[name] = w.t.Delta(w.t.Get(redisCommandSeconds, name))
		out = append(out, RedisCommand{Name: name, Calls: Number(calls), MeanS: Number(seconds[name] / calls), P99S: w.redisQuantile(name, 0.99)})
	}
	slices.SortFunc(out, func(a, b RedisCommand) int {
		return cmp.Or(cmp.Compare(seconds[b.Name], seconds[a.Name]), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), maxCommands)]
}

// redisQuantile is the upper bound of the bucket that holds the quantile of a
// command's time in the server, unknown without a histogram.
func (w *world) redisQuantile(command string, q float64) Number {
	type bucket struct{ le, n float64 }
	var all []bucket
	total := 0.0
	for _, s := range w.t.All(redisCommandLatency, 2) {
		le, err := strconv.ParseFloat(s.Labels[1], 64)
		if n := w.t.Delta(s); s.Labels[0] == command && err == nil && n > 0 {
			all = append(all, bucket{le, n})
			total += n
		}
	}
	slices.SortFunc(all, func(a, b bucket) int { return cmp.Compare(a.le, b.le) })
	seen := 0.0
	for _, b := range all {
		if seen += b.n; seen >= q*total {
			return Number(b.le)
		}
	}
	return unknown()
}

// lockCounts is what the operations counted of application locks.
type lockCounts struct {
	attempts, acquired, expired, doubled float64
	idle, waited                         float64 // seconds free with waiters, and with waiters
}

// Names that the operations source writes of application locks.
const (
	lockIdle   = "operations.lock_idle_seconds"
	lockWaited = "operations.lock_waited_seconds"
)

func readLockCounts(t *timeline.Timeline) lockCounts {
	c := lockCounts{idle: t.Delta(t.Get(lockIdle)), waited: t.Delta(t.Get(lockWaited))}
	for _, s := range t.All(opCounted, 2) {
		n := t.Delta(s)
		switch s.Labels[1] {
		case "lock_attempts":
			c.attempts += n
		case "lock_acquired":
			c.acquired += n
		case "lock_lease_expired":
			c.expired += n
		case "lock_double_held":
			c.doubled += n
		}
	}
	return c
}

// idleRatio is the share of the time in which somebody waited for a lock and
// nobody had it; unknown if nobody waited.
func (c lockCounts) idleRatio() float64 {
	if c.waited == 0 {
		return math.NaN()
	}
	return c.idle / c.waited
}

// appLockSection tells of the locks that operations agree upon outside the
// database's transactions; nil if there were none.
func (w *world) appLockSection(l latencies) *AppLock {
	c := w.appLocks
	if c.attempts == 0 {
		return nil
	}
	a := &AppLock{Acquired: Number(c.acquired), AttemptsPerAcquire: unknown(), IdleWithWaitersRatio: Number(c.idleRatio()),
		HandoffS: l.of(allOperations, record.StageHandoff).spread(), HoldS: l.of(allOperations, record.StageLockHold).spread(),
		LeaseExpired: Number(c.expired), DoubleHeld: Number(c.doubled)}
	if c.acquired > 0 {
		a.AttemptsPerAcquire = Number(c.attempts / c.acquired)
	}
	return a
}

// cause is the cause of waiting for a lock, by the method's rules in their order.
func (c lockCounts) cause() waits.Cause {
	switch {
	case c.acquired > 0 && c.expired > leaseShare*c.acquired:
		return lockLease
	case c.idleRatio() > idleShare:
		return lockBackoff
	}
	return redisLock
}
