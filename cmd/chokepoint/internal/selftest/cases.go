// Package selftest injects faults with a known cause, lets the analysis explain
// the runs, and scores it.
package selftest

import (
	"math/rand/v2"
	"time"

	"chokepoint/cmd/chokepoint/internal/session"
	"chokepoint/workloads"
	"chokepoint/workloads/lock"
)

// Case is a fault, or a healthy service, and what it must be called.
type Case struct {
	Name          string
	Layer, Cause  string // Cause is empty where any of the layer will do
	Holder        string // the stage that must lead, empty where it is not asked
	plan          func(p *session.Plan, strong bool, rnd *rand.Rand)
	needsRedis    bool
	leastDuration time.Duration // more than the usual one
}

// Healthy tells whether nothing is wrong.
func (c Case) Healthy() bool { return c.Layer == "none" }

// Plan makes the plan of a run, with parameters that chance chooses.
func (c Case) Plan(strong bool, rnd *rand.Rand) session.Plan {
	p := session.Plan{
		Lock: lock.Options{Strategy: "pessimistic", Keys: 1, Skew: lock.Uniform, Stock: 1_000_000, MaxRetries: 10, Lease: 5 * time.Second,
			Backoff: workloads.BackoffPolicy{Base: 5 * time.Millisecond, Cap: 100 * time.Millisecond, Jitter: workloads.FullJitter}},
		Load: workloads.Load{Operation: lock.Operation, Workers: between(rnd, 40, 120), Timeout: 10 * time.Second, Seed: rnd.Uint64(),
			Duration: max(2500*time.Millisecond, c.leastDuration)},
		Warmup: 300 * time.Millisecond,
		Pool:   between(rnd, 8, 16),
		Args:   []string{}, Parameters: map[string]string{},
	}
	c.plan(&p, strong, rnd)
	return p
}

// between is evenly distributed in [lo, hi].
func between(rnd *rand.Rand, lo, hi int) int { return lo + rnd.IntN(hi-lo+1) }

// fault makes a plan with a fault of the lock workload.
func fault(name string, change func(p *session.Plan, rnd *rand.Rand)) func(*session.Plan, bool, *rand.Rand) {
	return func(p *session.Plan, strong bool, rnd *rand.Rand) {
		p.Lock.Faults = []lock.Fault{{Name: name, Strong: strong}}
		if change != nil {
			change(p, rnd)
		}
	}
}

// Cases are all of them: faults first, each a mechanism with its law in the file
// of its name in workloads/lock, then healthy services.
func Cases() []Case {
	return append(faultCases(), healthyCases()...)
}

func faultCases() []Case {
	const (
		foreign = 7 * time.Second // the strangers' rhythm is of seconds
		sampled = 4 * time.Second // what is told by samples of the lock graph
	)
	return []Case{
		{Name: "hot-row", Layer: "row_lock", Cause: "hot_row", plan: hotRow},
		{Name: "holder-cpu", Layer: "row_lock", Cause: "hot_row", Holder: "cpu", plan: fault("holder-cpu", nil)},
		{Name: "holder-redis", Layer: "row_lock", Cause: "hot_row", Holder: "redis", needsRedis: true, plan: fault("holder-redis", nil)},
		{Name: "deadlock", Layer: "row_lock", Cause: "deadlock", plan: fault("deadlock", func(p *session.Plan, rnd *rand.Rand) { p.Lock.Keys = between(rnd, 10, 1000) })},
		{Name: "gap", Layer: "row_lock", Cause: "gap_lock", leastDuration: sampled, plan: fault("gap", func(p *session.Plan, rnd *rand.Rand) { p.Lock.Keys = between(rnd, 1, 1000) })},
		{Name: "long-transaction", Layer: "row_lock", Cause: "long_transaction", Holder: "foreign", leastDuration: foreign, plan: fault("long-transaction", nil)},
		{Name: "metadata", Layer: "database", Cause: "metadata_lock", leastDuration: foreign,
			plan: fault("metadata", func(p *session.Plan, rnd *rand.Rand) { p.Lock.Keys = between(rnd, 500, 5000) })},
		{Name: "conflict-retry", Layer: "row_lock", Cause: "conflict_retry", plan: conflicts},
		{Name: "redis-spin", Layer: "redis", Cause: "lock_contention", needsRedis: true, plan: spin},
		{Name: "redis-lease", Layer: "redis", Cause: "lock_lease", needsRedis: true, plan: lease},
		{Name: "redis-backoff", Layer: "redis", Cause: "lock_backoff", needsRedis: true, plan: backoff},
		{Name: "undersized", Layer: "pool", Cause: "undersized", Holder: "db_exec", plan: undersized},
	}
}

func healthyCases() []Case {
	return []Case{
		{Name: "idle", Layer: "none", plan: func(p *session.Plan, _ bool, rnd *rand.Rand) {
			quiet(p, rnd, between(rnd, 2, 6), 20*time.Millisecond)
		}},
		{Name: "moderate", Layer: "none", plan: func(p *session.Plan, _ bool, rnd *rand.Rand) {
			quiet(p, rnd, between(rnd, 8, 20), 15*time.Millisecond)
		}},
		{Name: "open loop", Layer: "none", plan: func(p *session.Plan, _ bool, rnd *rand.Rand) {
			quiet(p, rnd, 50, 0)
			p.Load.Rate, p.Load.Arrival = float64(between(rnd, 150, 400)), workloads.Poisson
		}},
	}
}

// hotRow: all buy the one product.
func hotRow(p *session.Plan, strong bool, rnd *rand.Rand) {
	if strong {
		p.Load.Workers = between(rnd, 100, 200)
	}
}

// conflicts: many write one row by its version.
func conflicts(p *session.Plan, strong bool, _ *rand.Rand) {
	p.Lock.Strategy = "optimistic"
	if strong {
		p.Load.Workers *= 2
	}
}

// spin: a lock in Redis that is asked for often enough.
func spin(p *session.Plan, strong bool, rnd *rand.Rand) {
	p.Lock.Strategy = "redis-spin"
	p.Lock.Hold = time.Duration(between(rnd, 1000, 2000)) * time.Microsecond
	if strong {
		p.Load.Workers = between(rnd, 150, 250)
		p.Lock.Backoff.Base, p.Lock.Backoff.Cap = 30*time.Millisecond, 200*time.Millisecond
	}
}

// lease: the same with a lease that is shorter than the hold.
func lease(p *session.Plan, strong bool, rnd *rand.Rand) {
	spin(p, false, rnd)
	p.Lock.Hold, p.Lock.Lease = 4*time.Millisecond, 3*time.Millisecond
	if strong {
		p.Lock.Lease = time.Millisecond
	}
}

// backoff: it is held for a third of the time, and who finds it held pauses for
// much longer than that lasts.
func backoff(p *session.Plan, strong bool, rnd *rand.Rand) {
	p.Lock.Strategy = "redis-spin"
	p.Load.Workers, p.Load.Think = between(rnd, 5, 7), 30*time.Millisecond
	pause := time.Duration(between(rnd, 100, 150)) * time.Millisecond
	if strong {
		pause *= 2
	}
	p.Lock.Hold = 2 * time.Millisecond
	p.Lock.Backoff = workloads.BackoffPolicy{Base: pause, Cap: pause, Jitter: workloads.NoJitter}
}

// undersized: connections are held for work elsewhere (SLEEP), and nothing else is
// scarce.
func undersized(p *session.Plan, strong bool, rnd *rand.Rand) {
	p.Lock.Strategy, p.Lock.Keys = "none", 100_000
	p.Lock.Hold = time.Duration(between(rnd, 8, 15)) * time.Millisecond
	p.Pool, p.Load.Workers = between(rnd, 4, 6), 20
	if strong {
		p.Load.Workers = between(rnd, 60, 100)
	}
}

// quiet: more of everything than the load needs.
func quiet(p *session.Plan, rnd *rand.Rand, workers int, think time.Duration) {
	p.Lock.Keys = between(rnd, 50_000, 100_000)
	p.Load.Workers, p.Load.Think, p.Pool = workers, think, 50
}
