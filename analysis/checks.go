package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"chokepoint/collectors/record"
)

// Tolerances of the checks.
const (
	waitTolerance   = 0.01 // client's pool waits against DBStats.WaitDuration
	clientTolerance = 0.05 // client's against the server's seconds
	countTolerance  = 0.01 // executions
	littleTolerance = 0.02 // histograms have three digits, means of them less
	// negligible: quantities below it differ by clock and scheduling noise.
	negligible = 10 * time.Millisecond
)

// checks compares numbers that a law says must agree. They are taken between
// the same two readings, at which nothing was running.
func (w *world) checks(l latencies) []Check {
	out := []Check{}
	add := func(c Check, applies bool) {
		if applies {
			out = append(out, c)
		}
	}
	add(w.checkLittle(l))
	add(w.checkPoolWait())
	add(w.checkStatements())
	add(w.checkLocking())
	add(w.checkExecutions())
	add(w.checkPoolUse())
	add(w.checkRowLock())
	add(w.checkRowLockSum())
	add(w.checkLockAttempts())
	add(w.checkBooks())
	return out
}

func agree(name string, expected, measured, tolerance float64, note string) Check {
	off := math.Abs(measured - expected)
	ok := off <= tolerance*math.Abs(expected) || off <= negligible.Seconds()
	return Check{Name: name, Expected: Number(expected), Measured: Number(measured), OK: ok, Note: note}
}

// checkLittle: the mean number of operations in flight, from the meter, is
// throughput times mean latency, from the histograms.
func (w *world) checkLittle(l latencies) (Check, bool) {
	h := l[[2]string{allOperations, record.StageTotal}]
	if h == nil || w.ended == 0 {
		return Check{}, false
	}
	inFlight := sumWhere(w.cells, func(*clientCell) bool { return true }) / w.length
	return agree("Little's law: operations in flight = throughput x latency", w.ended/w.length*h.Mean()/1e9, inFlight, littleTolerance,
		"meter against latency histograms"), true
}

func (w *world) checkPoolWait() (Check, bool) {
	s := w.t.Get("pool.wait_seconds", strings.TrimPrefix(mysqlPool, "pool:"))
	waited := sumWhere(w.cells, func(c *clientCell) bool { return c.stage == stagePoolWait })
	if s == nil {
		return Check{}, false
	}
	c := agree("pool wait, s: client = DBStats.WaitDuration", w.t.Delta(s), waited, waitTolerance, "cancelled waits included")
	// A connection that is free takes microseconds to get, which is no wait.
	c.OK = c.OK || waited >= w.t.Delta(s) && waited-w.t.Delta(s) <= freeConnection*w.entriesWhere(func(c *clientCell) bool { return c.stage == stagePoolWait })
	return c, true
}

// freeConnection is what getting a free connection takes at most, in seconds: 3
// us on average were measured, beside busy neighbours.
const freeConnection = 20e-6

// checkStatements compares all statements, the client's view and the server's.
func (w *world) checkStatements() (Check, bool) {
	server := w.server.statement + w.server.commit
	return w.clientAgainstServer("statement time, s: digests + round trips = client", server, func(c *clientCell) bool {
		return c.stage == stageStatement || c.stage == stageCommit
	})
}

// checkLocking compares the statements that ask for a row with the digest with
// the most time among those that lock rows, where there is no doubt that it is
// theirs: it was executed as often, and most of its time was waiting.
func (w *world) checkLocking() (Check, bool) {
	i := slices.IndexFunc(w.server.digests, func(d digest) bool { return d.locksRows() })
	if i < 0 {
		return Check{}, false
	}
	first := w.server.digests[i] // the longest of them
	asks := func(c *clientCell) bool { return c.asksRow() }
	if math.Abs(first.count-w.entriesWhere(asks)) > countTolerance*first.count || first.row.point < first.timer/2 {
		return Check{}, false
	}
	return w.clientAgainstServer("locking statement's time, s: digest + round trips = client", first.timer, asks)
}

func (w *world) entriesWhere(match func(*clientCell) bool) float64 {
	n := 0.0
	for i := range w.cells {
		if match(&w.cells[i]) {
			n += w.cells[i].entries
		}
	}
	return n
}

// clientAgainstServer: what the client saw is what the server's timers say, and
// for each round trip at least what a ping takes on the idle server and at most
// what the observer's pings took under the load (they find a colder path than
// the load's connections, and so are an upper bound).
func (w *world) clientAgainstServer(name string, server float64, match func(*clientCell) bool) (Check, bool) {
	client, trips := sumWhere(w.cells, match), w.entriesWhere(match)
	if !w.server.known || trips == 0 || server == 0 {
		return Check{}, false
	}
	least, most := server+trips*w.outside.ping, math.Inf(1)
	loaded := mean(w.t.During(w.t.Get(pingSeconds)))
	if !math.IsNaN(loaded) {
		most = server + trips*loaded
	}
	c := agree(name, min(max(client, least), most), client, clientTolerance, "")
	c.Expected = Number(least)
	c.Note = fmt.Sprintf("digests %.3f s, client %+.1f %%: %.0f round trips took %.0f us each outside the server's timers; a ping takes %.0f us idle",
		server, 100*(client/server-1), trips, 1e6*(client-server)/trips, 1e6*w.outside.ping)
	if !math.IsNaN(loaded) {
		c.Note += fmt.Sprintf(", %.0f us on average under this load", 1e6*loaded)
	}
	return c, true
}

// checkExecutions: the server executed what the client sent.
func (w *world) checkExecutions() (Check, bool) {
	if !w.server.known {
		return Check{}, false
	}
	var sent, executed float64
	for i := range w.cells {
		if c := &w.cells[i]; c.stage == stageStatement || c.stage == stageCommit {
			sent += c.entries
		}
	}
	for _, d := range w.server.digests {
		executed += d.count
	}
	return agree("statements: sent = executed by digests", sent, executed, countTolerance, ""), true
}

func (w *world) checkPoolUse() (Check, bool) {
	held := sumWhere(w.cells, func(c *clientCell) bool { return slices.Contains(c.held, mysqlPool) })
	for _, r := range w.run.Workload.Resources {
		if r.Name == mysqlPool && r.Capacity > 0 {
			u := held / (float64(r.Capacity) * w.length)
			return Check{Name: "pool utilisation <= 1", Expected: 1, Measured: Number(u), OK: u <= 1.001, Note: ""}, true
		}
	}
	return Check{}, false
}

// checkRowLock: operations cannot have waited for rows longer than their
// locking statements took.
func (w *world) checkRowLock() (Check, bool) {
	asked := sumWhere(w.cells, func(c *clientCell) bool { return c.asksRow() })
	if !w.server.known || asked == 0 {
		return Check{}, false
	}
	c := Check{Name: "row-lock wait, s: server <= client's locking statements", Expected: Number(asked), Measured: Number(w.server.row.point),
		OK: w.server.row.lo <= asked*(1+waitTolerance)+negligible.Seconds(), Note: w.server.method + ", " + w.server.source}
	return c, true
}

// checkRowLockSum: on MySQL the digests' lock time is InnoDB's own counter.
func (w *world) checkRowLockSum() (Check, bool) {
	if !w.server.known || w.server.method != exact || w.server.flavor == "" {
		return Check{}, false
	}
	return agree("row-lock wait, s: Innodb_row_lock_time = digests' SUM_LOCK_TIME", w.server.global, w.server.row.point, waitTolerance, ""), true
}

// checkLockAttempts: each attempt to get a lock in Redis was a SET that Redis
// counted. Other clients' SETs are counted too.
func (w *world) checkLockAttempts() (Check, bool) {
	sets := w.t.Get(redisCommandCalls, "set")
	if sets == nil || w.appLocks.attempts == 0 {
		return Check{}, false
	}
	return agree("attempts to get a lock: client's = Redis' SET calls", w.t.Delta(sets), w.appLocks.attempts, countTolerance, ""), true
}

func (w *world) checkBooks() (Check, bool) {
	if w.run.End == nil || w.run.End.Books == nil {
		return Check{}, false
	}
	b := w.run.End.Books
	unknownCommits := w.outcome("commit_unknown")
	c := Check{Name: "books: " + b.What, Expected: Number(b.Expected), Measured: Number(b.Actual), OK: b.Actual == b.Expected && b.Oversold == 0}
	switch {
	case unknownCommits > 0:
		c.OK = float64(b.Expected)-unknownCommits <= float64(b.Actual) && b.Actual <= b.Expected
		c.Note = fmt.Sprintf("%.0f commits whose answer never came may or may not have been made", unknownCommits)
	case b.LostUpdates > 0:
		c.Note = fmt.Sprintf("%d lost updates", b.LostUpdates)
	}
	return c, true
}
