package analysis

import (
	"cmp"
	"maps"
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
	deadlocks       = waits.Cause{Layer: "row_lock", Cause: "deadlock"}
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
	// metadata is the share of the samples in which somebody waited for the
	// resource, a metadata or named lock, and so somebody had it; strange is the
	// part of it in which that was not the load.
	metadata, strange map[string]float64
}

// oldTransaction is the age, in seconds, from which a transaction that blocks
// counts as a long one: those of a load that works are over in milliseconds. The
// server tells when they began in whole seconds, so that 1 may be a moment.
const oldTransaction = 2

func readLockGraph(t *timeline.Timeline) lockGraph {
	g := lockGraph{index: map[string]string{}, foreign: map[string]float64{}, metadata: map[string]float64{}, strange: map[string]float64{}}
	g.readMetadata(t)
	g.samples = float64(len(t.During(t.Get(lockSamples))))
	for _, s := range t.All(lockWaiters, 4) {
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

// blocked is one transaction or connection that keeps others waiting.
type blocked struct {
	Blocker
	waiters, old float64 // waiter-samples, and those of them behind an old one
}

// blockers are they by thread.
type blockers map[string]*blocked

// add adds the samples of one series: how many waited for the resource behind
// the thread, while it was of the given age and at the given query.
func (b blockers) add(resource, owner, thread, query, age string, samples []float64) {
	x := b[thread]
	if x == nil {
		id, _ := strconv.Atoi(thread)
		x = &blocked{Blocker: Blocker{Thread: id, Foreign: owner == foreignOwner, Resource: resource}}
		b[thread] = x
	}
	seconds, _ := strconv.ParseFloat(age, 64)
	x.waiters += sum(samples)
	if seconds >= oldTransaction {
		x.old += sum(samples)
	}
	x.AgeS = max(x.AgeS, Number(seconds))
	for _, v := range samples {
		x.Blocks = max(x.Blocks, int(v))
	}
	if query != "" {
		x.Query = query
	}
}

// foreignOwner marks a connection that is not the load's.
const foreignOwner = "foreign"

// readBlockers adds up who blocked whom at rows (labels table, index, key,
// owner, thread, query, age) and at metadata locks (type, object, owner,
// thread, query, age).
func (g *lockGraph) readBlockers(t *timeline.Timeline) {
	by := blockers{}
	for _, s := range t.All(lockBlockers, 7) {
		l, samples := s.Labels, t.During(s)
		row := "row:" + l[0] + "/" + l[2]
		if l[3] == foreignOwner {
			g.foreign[row] = min(1, g.foreign[row]+float64(len(samples))/g.samples)
		}
		by.add(row, l[3], l[4], l[5], l[6], samples)
	}
	for _, b := range by {
		g.longest = max(g.longest, b.old)
	}
	for _, s := range t.All(metadataBlockers, 7) {
		l := s.Labels
		by.add(metadataResource(l[0], l[2]), l[3], l[4], l[5], l[6], t.During(s))
	}
	all := slices.SortedFunc(maps.Values(by), func(a, b *blocked) int {
		return cmp.Or(cmp.Compare(b.waiters, a.waiters), cmp.Compare(a.Thread, b.Thread))
	})
	for _, b := range all {
		if b.waiters > 0 && (b.Foreign || b.old > 0) {
			g.blocker = append(g.blocker, b.Blocker)
		}
	}
}

// rowCause is the cause of waiting for rows, by the method's rules in their
// order. victims is how many deadlocks an operation had on average.
func (g *lockGraph) rowCause(held float64, row string, length, victims float64) waits.Cause {
	foreign := g.foreign[row] * length
	switch {
	case victims >= victimShare && (g.samples < minSamples || g.waiters == 0):
		return deadlocks
	case g.samples < minSamples || g.waiters == 0:
		return hotRow
	case foreign >= foreignHold*(held+foreign), g.longest >= longShare*g.waiters:
		return longTransaction
	case g.gaps >= gapShare*g.waiters:
		return gapLock
	case victims >= victimShare:
		return deadlocks
	}
	return hotRow
}
