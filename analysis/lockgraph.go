package analysis

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"chokepoint/analysis/timeline"
	"chokepoint/analysis/waits"
)

// Names that the lock-graph source writes; see collectors/mysql.
const (
	lockSamples  = "mysql.lock.samples"
	lockWaiters  = "mysql.lock.waiters"
	lockBlockers = "mysql.lock.blockers"
)

// Rows have other causes than their load where somebody else holds them, or
// where the locks are on gaps between rows.
var (
	longTransaction = waits.Cause{Layer: "row_lock", Cause: "long_transaction"}
	gapLock         = waits.Cause{Layer: "row_lock", Cause: "gap_lock"}
)

// lockGraph is what the samples of the lock graph say of the measured phase.
type lockGraph struct {
	samples float64
	index   map[string]string  // index by row
	foreign map[string]float64 // share of the samples in which a foreign transaction held the row against waiters
	waiters float64            // waiter-samples in all
	gaps    float64            // of them for gaps or insert intentions
	longest float64            // waiter-samples of the one old transaction with most
	blocker []Blocker          // the one with most waiter-samples first
}

// oldTransaction is the age, in seconds, from which a transaction that blocks
// counts as a long one: those of a load that works are over in milliseconds. The
// server tells when they began in whole seconds, so that 1 may be a moment.
const oldTransaction = 2

func readLockGraph(t *timeline.Timeline) lockGraph {
	g := lockGraph{index: map[string]string{}, foreign: map[string]float64{}}
	g.samples = float64(len(t.During(t.Get(lockSamples))))
	if g.samples == 0 {
		return g
	}
	for _, s := range t.All(lockWaiters) {
		table, index, key, mode := s.Labels[0], s.Labels[1], s.Labels[2], s.Labels[3]
		n := sum(t.During(s))
		g.index["row:"+table+"/"+key] = index
		g.waiters += n
		if strings.Contains(mode, "GAP") || strings.Contains(mode, "INSERT_INTENTION") {
			g.gaps += n
		}
	}
	g.readBlockers(t)
	return g
}

func sum(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s
}

// readBlockers adds up who blocked whom: the labels are table, index, key,
// owner, thread, query and age.
func (g *lockGraph) readBlockers(t *timeline.Timeline) {
	type total struct {
		Blocker
		waiters, old float64
	}
	by := map[string]*total{}
	for _, s := range t.All(lockBlockers) {
		l := s.Labels
		values := t.During(s)
		age, _ := strconv.ParseFloat(l[6], 64)
		thread, _ := strconv.Atoi(l[4])
		if l[3] == "foreign" {
			g.foreign["row:"+l[0]+"/"+l[2]] += float64(len(values)) / g.samples
		}
		if by[l[4]] == nil {
			by[l[4]] = &total{Blocker: Blocker{Thread: thread, Foreign: l[3] == "foreign"}}
		}
		b := by[l[4]]
		b.waiters += sum(values)
		if age >= oldTransaction {
			b.old += sum(values)
		}
		b.AgeS = max(b.AgeS, Number(age))
		for _, v := range values {
			b.Blocks = max(b.Blocks, int(v))
		}
		if l[5] != "" {
			b.Query = l[5]
		}
	}
	var all []*total
	for _, b := range by {
		g.longest = max(g.longest, b.old)
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *total) int {
		return cmp.Or(cmp.Compare(b.waiters, a.waiters), cmp.Compare(a.Thread, b.Thread))
	})
	for _, b := range all {
		if b.Foreign || b.old > 0 {
			g.blocker = append(g.blocker, b.Blocker)
		}
	}
}

// rowCause is the cause of waiting for rows, by the method's rules in their
// order.
func (g *lockGraph) rowCause(held float64, row string, length float64) waits.Cause {
	foreign := g.foreign[row] * length
	switch {
	case g.samples < minSamples || g.waiters == 0:
		return hotRow
	case foreign >= foreignHold*(held+foreign), g.longest >= longShare*g.waiters:
		return longTransaction
	case g.gaps >= gapShare*g.waiters:
		return gapLock
	}
	return hotRow
}
