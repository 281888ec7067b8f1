package analysis_test

import (
	"fmt"
	"slices"
	"time"
)

// simCases are systems whose trouble is known. Demands, throughputs and gains
// are those of a reference simulation in Python; a gain without a number was
// not printed by it, and is what the simulation here says.
func simCases() []simCase {
	return slices.Concat(simRowCases(), simPoolCases(), simDatabaseCases(), simStarvedCases(), simHealthyCases(), simForeignCases(), simProcessCases(), simSpinCases())
}

// Changes that stand in several cases.

func poolTimes2(gain float64) simChange {
	return simChange{"pool x2", func(p *simParams) { p.Pool *= 2 }, gain}
}

func poolOf(n int, gain float64) simChange {
	return simChange{fmt.Sprintf("pool %d", n), func(p *simParams) { p.Pool = n }, gain}
}

func spread(gain float64) simChange {
	return simChange{"spread to 1000 rows", func(p *simParams) { p.Rows = 1000 }, gain}
}

// briefly is a change after which so much goes on that a short time will do.
func briefly(ch simChange) simChange {
	return simChange{ch.name, func(p *simParams) {
		ch.apply(p)
		p.T = 500 * time.Millisecond
	}, ch.gain}
}

func execHalf(gain float64) simChange {
	return simChange{"exec half", func(p *simParams) { p.Begin, p.Select, p.Update = p.Begin/2, p.Select/2, p.Update/2 }, gain}
}

func queryHalf(gain float64) simChange {
	return simChange{"query half", func(p *simParams) { p.Query /= 2 }, gain}
}

func coresTimes2(gain float64) simChange {
	return simChange{"cores x2", func(p *simParams) { p.Cores *= 2 }, gain}
}

func hogsGone(gain float64) simChange {
	return simChange{"hogs gone", func(p *simParams) { p.Hogs = 0 }, gain}
}

func simRowCases() []simCase {
	rows := func(name, want string, n, pool, rows int, x float64, changes ...simChange) simCase {
		return simCase{name: name, strategy: "pessimistic", want: want, op: buy, params: simPurchase(n, pool, rows, 3*time.Second), changes: changes, x: x}
	}
	flush := rows("flush", "row_lock/hot_row", 200, 10, 1, 189, poolTimes2(0.98), spread(9.77),
		simChange{"flush gone", func(p *simParams) { p.Commit = 100 * time.Microsecond }, 13.20})
	flush.params.Commit, flush.params.T = 5*time.Millisecond, 10*time.Second
	return []simCase{
		rows("hot-row-pool-2", "inconclusive/too_close", 200, 2, 1, 2500, poolTimes2(1)),
		rows("hot-row-pool-10", "row_lock/hot_row", 200, 10, 1, 2503, poolTimes2(1), execHalf(1.60), spread(7.97)),
		rows("hot-row-pool-100", "row_lock/hot_row", 200, 100, 1, 2503, poolTimes2(1), execHalf(1.60), briefly(spread(76.97))),
		rows("hot-row-unlimited", "row_lock/hot_row", 200, 0, 1, 2515, execHalf(1.59), briefly(spread(147.30))),
		rows("hot-row-4-workers", "row_lock/hot_row", 4, 10, 1, 0, poolTimes2(0), spread(0)),
		rows("two-rows", "row_lock/hot_row", 200, 10, 2, 4728, poolTimes2(1.02), spread(4.22)),
		rows("four-rows", "row_lock/hot_row", 200, 10, 4, 8167, poolTimes2(0), spread(0)),
		rows("eight-rows", "row_lock/hot_row", 200, 10, 8, 12431, poolTimes2(1.28), spread(1.60)),
		rows("thousand-rows", "pool/undersized", 200, 10, 1000, 0, poolTimes2(0), execHalf(0)),
		flush,
	}
}

func simPoolCases() []simCase {
	remote := func(name, want string, n, pool int, t time.Duration, x float64, changes ...simChange) simCase {
		return simCase{name: name, strategy: "none", want: want, op: query(simSleep), params: simParams{N: n, T: t, Pool: pool, Query: 5 * time.Millisecond}, changes: changes, x: x}
	}
	open := remote("open-loop", "pool/undersized", 0, 4, 10*time.Second, 797, poolTimes2(0), queryHalf(0))
	open.params.Rate, open.params.Slots = 1200, 100
	return []simCase{
		remote("pool-4-of-40", "pool/undersized", 40, 4, 10*time.Second, 796, poolOf(8, 2.01), poolOf(40, 10.06), queryHalf(2.01)),
		remote("knee-4-of-6", "pool/undersized", 6, 4, 20*time.Second, 794, poolOf(8, 1.51)),
		remote("pool-10-of-6-remote", "none/healthy", 6, 10, 5*time.Second, 0, poolTimes2(0)),
		open,
	}
}

func simDatabaseCases() []simCase {
	mixed := func(name, want string, pool int, t time.Duration, x float64, changes ...simChange) simCase {
		return simCase{name: name, strategy: "none", want: want, op: query(simSelect), x: x, changes: changes,
			params: simParams{N: 40, T: t, Pool: pool, QueryCPU: 2 * time.Millisecond, Query: 3 * time.Millisecond, Processors: simDatabaseCPU, Cores: 2}}
	}
	cpu := func(name string, pool int, x float64, changes ...simChange) simCase {
		return simCase{name: name, strategy: "none", want: "database/cpu", op: query(simSelect), x: x, changes: changes,
			params: simParams{N: 200, T: 5 * time.Second, Pool: pool, QueryCPU: 2 * time.Millisecond, Processors: simDatabaseCPU, Cores: 2}}
	}
	return []simCase{
		mixed("mixed-pool-4", "pool/undersized", 4, 10*time.Second, 728, poolOf(8, 1.36), poolOf(40, 1.38)),
		mixed("mixed-pool-8", "database/cpu", 8, 5*time.Second, 976, poolTimes2(0), coresTimes2(0)),
		cpu("database-cpu-pool-3", 3, 997, poolTimes2(1), coresTimes2(1.50)),
		cpu("database-cpu-pool-10", 10, 997, poolTimes2(1), coresTimes2(2.01)),
		cpu("database-cpu-pool-200", 200, 0, poolTimes2(0), coresTimes2(0)),
	}
}

// simStarvedCases have row holders that wait for a processor: on return from
// the UPDATE, from the locking statement (which the client then still counts
// as asking for the row), or in the application's own code.
func simStarvedCases() []simCase {
	starved := func(name string, hogs int, at string, t time.Duration, x float64, changes ...simChange) simCase {
		p := simPurchase(200, 10, 1, t)
		p.Begin = 0
		p.Processors, p.Cores, p.AppCPU, p.AppCPUAt = simAppCPU, 2, 50*time.Microsecond, at
		p.Hogs, p.HogRuns = hogs, 10*time.Millisecond
		return simCase{name: name, strategy: "pessimistic", want: "runtime/cpu", op: buy, params: p, changes: changes, x: x}
	}
	return []simCase{
		starved("starved-20-hogs", 20, simUpdate, 20*time.Second, 10, hogsGone(223.50), poolTimes2(1)),
		starved("starved-3-hogs", 3, simUpdate, 10*time.Second, 99, hogsGone(0), poolTimes2(0)),
		starved("starved-20-hogs-lock", 20, simLock, 20*time.Second, 10, hogsGone(223.50), poolTimes2(1)),
		starved("starved-20-hogs-app", 20, "app", 20*time.Second, 10, hogsGone(223.50), poolTimes2(1)),
	}
}

func simHealthyCases() []simCase {
	healthy := simCase{name: "healthy", strategy: "pessimistic", want: "none/load_limited", op: buy, params: simPurchase(4, 50, 1000, 10*time.Second), x: 730,
		changes: []simChange{poolTimes2(0)}}
	healthy.params.Think = 5 * time.Millisecond
	cases := []simCase{healthy}
	light := simParams{N: 4, T: 10 * time.Second, Think: 5 * time.Millisecond, Pool: 50, QueryCPU: 300 * time.Microsecond, Query: 400 * time.Microsecond,
		Processors: simMachineCPU, Cores: 2, HogRuns: time.Millisecond, HogPauses: 2 * time.Millisecond}
	for _, n := range []struct {
		hogs int
		x    float64
	}{{0, 699}, {2, 693}, {4, 673}, {6, 624}} {
		p := light
		p.Hogs = n.hogs
		cases = append(cases, simCase{name: fmt.Sprintf("healthy-beside-%d", n.hogs), strategy: "none", want: "none/load_limited", op: query(simSelect), params: p, x: n.x,
			changes: []simChange{poolTimes2(0), hogsGone(0)}})
	}
	busy := light
	busy.N, busy.Pool, busy.Think = 6, 10, 0
	return append(cases, simCase{name: "pool-10-of-6-cpu", strategy: "none", want: "database/cpu", op: query(simSelect), params: busy, x: 6489,
		changes: []simChange{poolTimes2(0), coresTimes2(0)}})
}

func simForeignCases() []simCase {
	var cases []simCase
	for _, n := range []struct {
		hogs               int
		x, pool, neighbour float64
	}{{0, 796, 1.99, 0}, {2, 722, 2.00, 1.10}, {3, 692, 1.98, 1.15}, {4, 615, 1.98, 1.29}} {
		p := simParams{N: 40, T: 10 * time.Second, Pool: 4, QueryCPU: 50 * time.Microsecond, Query: 5 * time.Millisecond,
			Processors: simMachineCPU, Cores: 2, Hogs: n.hogs, HogRuns: time.Millisecond}
		cases = append(cases, simCase{name: fmt.Sprintf("pool-4-beside-%d", n.hogs), strategy: "none", want: "pool/undersized", op: query(simSleep), params: p, x: n.x,
			changes: []simChange{poolTimes2(n.pool), hogsGone(n.neighbour)}})
	}
	long := simCase{name: "long-transaction", strategy: "pessimistic", want: "row_lock/long_transaction", op: buy, params: simPurchase(200, 10, 1, 20*time.Second), x: 1256,
		changes: []simChange{poolTimes2(1), {"foreign gone", func(p *simParams) { p.ForeignHolds = 0 }, 1.99}}}
	long.params.ForeignEvery, long.params.ForeignHolds = 2*time.Second, time.Second
	return append(cases, long,
		simMetadataCase("metadata-5-of-20", "database/metadata_lock", 5*time.Second, 18753, poolTimes2(1), noAlter(1.33)),
		simMetadataCase("metadata-1-of-20", "none/healthy", time.Second, 0, noAlter(0)))
}

func noAlter(gain float64) simChange {
	return briefly(simChange{"no ALTER", func(p *simParams) { p.AlterTakes = 0 }, gain})
}

func simMetadataCase(name, want string, takes time.Duration, x float64, changes ...simChange) simCase {
	return simCase{name: name, strategy: "none", want: want, op: query(simSelect), x: x, changes: changes,
		params: simParams{N: 50, T: 20 * time.Second, Pool: 60, Query: 2 * time.Millisecond, AlterAt: 5 * time.Second, AlterTakes: takes}}
}

func simProcessCases() []simCase {
	overQuery := simCase{name: "mutex-over-query", strategy: "mutex", want: "runtime/mutex", op: mutexOverQuery, x: 492,
		params:  simParams{N: 50, T: 10 * time.Second, Pool: 10, Mutexes: 1, Query: 2 * time.Millisecond, AppWork: 200 * time.Microsecond},
		changes: []simChange{{"no mutex", func(p *simParams) { p.Mutexes = 0 }, 10.16}, queryHalf(2.01), poolTimes2(1.01)}}
	// Their throughput is that of the escapes from a deadlock by timeout: a few
	// a second, and never twice the same.
	second := func(name string, n int, x float64, changes ...simChange) simCase {
		return simCase{name: name, strategy: "none", want: "pool/nested_acquire", op: nested, changes: changes, x: x, erratic: true,
			params: simParams{N: n, T: 20 * time.Second, Pool: 10, Nested: 1, Query: 2 * time.Millisecond, Timeout: time.Second}}
	}
	return []simCase{
		overQuery,
		second("nested-12", 12, 11, poolTimes2(277.19), poolOf(13, 155.76)),
		second("nested-200", 200, 4, poolTimes2(2.04), briefly(poolOf(201, 6804.73))),
	}
}

func simSpinCases() []simCase {
	spinning := func(name string, n, retries int, limit time.Duration, x float64, gains [3]float64) simCase {
		return simCase{name: name, strategy: "redis-spin", want: "redis/lock_contention", op: spin, x: x,
			params: simParams{N: n, T: 30 * time.Second, Pool: 10, Query: 1500 * time.Microsecond,
				Spin: simSpin{Trip: 300 * time.Microsecond, Base: 50 * time.Millisecond, Cap: limit, Retries: retries}},
			changes: []simChange{{"no idle", func(p *simParams) { p.Spin.Handoff = true }, gains[0]}, queryHalf(gains[1]), poolTimes2(gains[2])}}
	}
	return []simCase{
		spinning("spin-200ms", 200, 10, 200*time.Millisecond, 584, [3]float64{0.95, 1.80, 1}),
		spinning("spin-500ms", 200, 15, 500*time.Millisecond, 568, [3]float64{0.98, 1.78, 1}),
		spinning("spin-10-workers", 10, 10, 200*time.Millisecond, 554, [3]float64{1, 1.73, 1}),
	}
}
