package analysis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"chokepoint/collectors/record"
)

func (w *world) warnings() []string {
	out := []string{}
	if s := w.run.Status(); s != record.Complete {
		out = append(out, map[string]string{
			record.Killed:      "the run was killed: what was recorded until then is analysed",
			record.Interrupted: "the run was interrupted before its planned end",
		}[s])
	}
	for _, s := range w.run.Servers {
		if s.Sandbox && s.Variables["innodb_flush_log_at_trx_commit"] == "0" {
			out = append(out, fmt.Sprintf("durability is off on the sandbox's %s (innodb_flush_log_at_trx_commit=0): commits here are faster than a real server's", s.Flavor))
		}
	}
	if all := w.machine.busy + w.machine.idle; all > 0 && w.machine.ours > 0 {
		if others := (w.machine.busy - w.machine.ours) / all; others >= othersCPU {
			out = append(out, fmt.Sprintf("processes other than the load and its servers took %s of the machine's CPU: throughput and waiting are not those of a machine of their own", percent(Number(others))))
		}
	}
	out = append(out, w.limitWarnings()...)
	out = append(out, w.digestWarnings()...)
	out = append(out, w.restartWarnings()...)
	out = append(out, w.clockWarnings()...)
	out = append(out, w.stallWarnings()...)
	out = append(out, w.eventWarnings()...)
	for _, p := range w.t.Problems {
		out = append(out, p.Error())
	}
	if e := w.run.End; e != nil && e.Error != "" {
		out = append(out, e.Error)
	}
	return out
}

// together is within what time events of one kind are told in one line.
const together = 1.0

// othersCPU is what share of the machine others may take without a word.
const othersCPU = 0.25

// maxEvents bounds how many lines of events a report has.
const maxEvents = 50

// eventWarnings tell faults, gaps and notes, those of one kind from several
// sources that come together in one line.
func (w *world) eventWarnings() []string {
	type group struct {
		first   record.Event
		sources []string
	}
	var all []*group
	open := map[string]*group{} // by kind
	for _, e := range w.t.Events {
		if e.Kind == record.Note && e.T < w.t.From {
			continue
		}
		g := open[e.Kind]
		if g == nil || e.T-g.first.T > together {
			g = &group{first: e}
			open[e.Kind] = g
			all = append(all, g)
		}
		if !slices.Contains(g.sources, e.Source) && len(g.sources) < maxEvents {
			g.sources = append(g.sources, e.Source)
		}
	}
	var out []string
	for _, g := range all[:min(len(all), maxEvents)] {
		text := strings.TrimPrefix(g.first.Text, g.first.Source+": ")
		out = append(out, fmt.Sprintf("%s at %.1f s: %s: %s", g.first.Kind, g.first.T, strings.Join(g.sources, ", "), text))
	}
	if n := len(all) - maxEvents; n > 0 {
		out = append(out, fmt.Sprintf("%d more faults, gaps and notes stand in the record (events.jsonl)", n))
	}
	return out
}

// stall is for how long no operation may end before it is told; not so where
// they usually end farther apart (ten times that is none), or are so long that
// workers in step end none for as long (twice their mean).
const (
	stall          = 1.0
	stallDistances = 10
	stallLatencies = 2
)

// stallWarnings tell the times in which no operation ended, though by their
// usual distance and length many should have.
func (w *world) stallWarnings() []string {
	var out []string
	long := stall
	if w.ended > 0 {
		inFlight := sumWhere(w.cells, func(*clientCell) bool { return true }) / w.length
		rate := w.ended / w.length
		long = max(stall, stallDistances/rate, stallLatencies*inFlight/rate) // Little: mean latency is the mean in flight by the rate
	}
	from := w.t.From
	for _, at := range w.t.Changes(opFinished) {
		if at-from > long {
			out = append(out, fmt.Sprintf("no operation ended between %.1f and %.1f s: the server, or this process, stood still", from, at))
		}
		from = at
	}
	if n := w.outcome("redis_connection_lost"); n > 0 {
		out = append(out, fmt.Sprintf("%.0f operations lost their connection to Redis: the server went away, or closed it", n))
	}
	if n := w.outcome("connection_lost") + w.outcome("commit_unknown"); n > 0 {
		out = append(out, fmt.Sprintf("%.0f operations lost their connection: the server went away, or closed it", n))
	}
	if w.t.To-from > long {
		out = append(out, fmt.Sprintf("no operation ended from %.1f s to the end at %.1f s", from, w.t.To))
	}
	return out
}

// outcome counts the operations of the measured phase that ended so.
func (w *world) outcome(name string) float64 {
	n := 0.0
	for _, s := range w.t.All(opFinished, 2) {
		if s.Labels[1] == name {
			n += w.t.Delta(s)
		}
	}
	return n
}

// limitWarnings tell what the server does not show, and what that costs.
func (w *world) limitWarnings() []string {
	var out []string
	for _, check := range slices.Sorted(maps.Keys(w.t.Limits)) {
		e := w.t.Limits[check]
		out = append(out, fmt.Sprintf("%s: %s (`chokepoint doctor` says what mends it)", e.Text, e.Labels["costs"]))
	}
	return out
}

// digestWarnings tell where the digests do not hold all statements.
func (w *world) digestWarnings() []string {
	var out []string
	if !w.server.known {
		_, off := w.t.Limits["performance_schema"]
		if _, denied := w.t.Limits["statement_digests"]; off || denied {
			return nil // they say why
		}
		return []string{"no statement digests were read: the time inside statements cannot be split"}
	}
	for _, d := range w.server.digests {
		switch {
		case d.id == digestOverflow:
			out = append(out, fmt.Sprintf("the server's digest table is full: %.0f statements stand in one row without a text (raise performance_schema_digests_size)", d.count))
		case w.t.Cut[d.id]:
			out = append(out, fmt.Sprintf("a statement is as long as the server looks at (max_digest_length): those that differ only behind that are one, with %.0f executions: %s", d.count, beginning(d.text)))
		}
	}
	if lost := w.t.Delta(w.t.Get(digestLost)); lost > 0 {
		out = append(out, fmt.Sprintf("%.0f statements have no digest row: the digest table is full", lost))
	}
	if n := w.t.Delta(w.t.Get(statementCount, executeStatement)); n > 0 && w.server.flavor == flavorMariaDB {
		seconds := w.t.Delta(w.t.Get(statementTimer, executeStatement))
		out = append(out, fmt.Sprintf("MariaDB's digests are blind to prepared statements: %.0f executions, %.3f s, stand in no digest (use interpolateParams=true)", n, seconds))
	}
	return out
}

// beginning is enough of a statement to know it by.
func beginning(text string) string {
	const enough = 60
	if r := []rune(text); len(r) > enough {
		return string(r[:enough]) + "..."
	}
	return text
}

// restartWarnings tell where a server's uptime fell: it was started anew, or its
// clock was set back.
func (w *world) restartWarnings() []string {
	return append(w.restarts("the database server", uptime), w.restarts("the Redis server", redisUptime)...)
}

func (w *world) restarts(server, metric string) []string {
	var out []string
	for _, f := range w.t.Get(metric).Falls() {
		if f.Value <= f.To-f.From+uptimeSlack {
			out = append(out, fmt.Sprintf("%s was restarted between %.1f and %.1f s: what it had counted since the reading before that is lost", server, f.From, f.To))
			continue
		}
		out = append(out, fmt.Sprintf("the uptime of %s fell to %.0f s between %.1f and %.1f s without a restart: its clock was set back", server, f.Value, f.From, f.To))
	}
	return out
}

// uptimeSlack: uptime is in whole seconds, and a server may have started
// somewhat before it answered.
const uptimeSlack = 3

// clockJump is from what change of the difference between two clocks on one of
// them was set: clocks drift by less than a millisecond a second.
const clockJump = 0.25

// clockWarnings tell of a clock that was set. The record's own times are of a
// clock that cannot be set.
func (w *world) clockWarnings() []string {
	var out []string
	last := map[string]record.Clock{}
	for _, c := range w.run.Clocks {
		before, ok := last[c.Server]
		last[c.Server] = c
		if moved := c.OffsetS - before.OffsetS; ok && math.Abs(moved) > clockJump+c.RTTS+before.RTTS {
			out = append(out, fmt.Sprintf("the clocks of this machine and of %s moved by %.1f s against each other between %.1f and %.1f s: one of them was set (times in this report are not affected)",
				c.Server, moved, before.AtS, c.AtS))
		}
	}
	return out
}
