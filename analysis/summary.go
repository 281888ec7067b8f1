package analysis

import (
	"fmt"
	"strings"

	"chokepoint/analysis/waits"
)

// stageWords say what an operation does in a budget stage, for sentences.
func stageWords(stage string) string {
	words := map[string]string{
		stageQueue: "waiting for a worker", stageAppLock: "waiting for an application lock", stageBackoff: "backing off",
		stagePoolWait: "waiting for a connection", stageDial: "opening connections", stageRowLock: "waiting for a row lock",
		stageMDL: "waiting for a metadata lock", stageExec: "executing statements", stageDBCommit: "committing",
		stageDBRunnable: "waiting for a CPU in the database", stageNetwork: "on the network", stageRunnable: "waiting to be scheduled in Go",
		stageCPU: "computing in Go", stageGCAssist: "assisting the garbage collector", stageRedis: "in Redis",
		stageForeign:   "somebody else's transaction",
		stageRedisPool: "waiting for a Redis connection", stageUnexplained: "doing something unexplained",
	}
	if w := words[stage]; w != "" {
		return w
	}
	return stage
}

// ResourceWords name a lock of the database in a sentence.
func ResourceWords(resource string) string {
	kind, name, _ := strings.Cut(resource, ":")
	table := waits.Table(resource)
	switch {
	case kind == "row" && table != "":
		return fmt.Sprintf("the lock of row %s of table %s", strings.TrimPrefix(name, table+"/"), table)
	case kind == "row":
		return "a row lock"
	case resource == anyMetadata:
		return "a metadata lock"
	case kind == "mdl":
		return "the metadata lock of " + name
	case kind == "applock":
		return "the application lock of " + name
	case resource == anyNamed:
		return "a named lock (GET_LOCK)"
	case kind == "named":
		return fmt.Sprintf("the named lock %q (GET_LOCK)", name)
	}
	return resource
}

// rowWords name a row without its lock.
func rowWords(resource string) string {
	return strings.TrimPrefix(ResourceWords(resource), "the lock of ")
}

// causeWords name a cause in a sentence, with its resource.
func causeWords(c waits.Cause, resource string) string {
	switch c {
	case hotRow, longTransaction, gapLock, deadlocks, metadataLock, namedLock:
		return ResourceWords(resource)
	case redisLock:
		return ResourceWords(resource) + " in Redis"
	case lockBackoff:
		return ResourceWords(resource) + " in Redis, which is free for most of the time in which somebody waits: attempts come too rarely"
	case lockLease:
		return ResourceWords(resource) + " in Redis, whose lease ends before its holders are done"
	case undersized, nested:
		return "the connection pool"
	case databaseCPU:
		return "the CPU, of which the database has too little"
	case runtimeCPU:
		return "the CPU, of which this process has too little"
	}
	return c.Layer + " (" + c.Cause + ")"
}

// layerWords name a layer at the head of the sentence.
func layerWords(layer string) string {
	words := map[string]string{"row_lock": "Row lock", "pool": "Connection pool", "database": "Database", "runtime": "Go runtime",
		"redis": "Redis", "cache": "Cache", "network": "Network"}
	if w := words[layer]; w != "" {
		return w
	}
	return layer
}

// summary is the verdict in words that are right for somebody who reads
// nothing else.
func (w *world) summary(v variant, res *Result) string {
	switch d := res.Verdict; {
	case d.Layer == "inconclusive":
		return fmt.Sprintf("Inconclusive (%s): %s.%s", d.Cause.Cause, d.Summary, leaning(res))
	case d.Cause == loadLimited && d.Resource != "":
		return "The load's own limit of operations in flight (--concurrency) is what holds the throughput: nothing behind it is saturated."
	case d.Cause == loadLimited:
		return "Nothing holds this service back: the load is what limits the throughput."
	case d.Cause == healthy:
		return "Nothing holds this service back: no queue is worth the name, and the workers are busy with work."
	case d.Cause == conflictRetry:
		return fmt.Sprintf("Row lock: %s of the operations' time (%s) goes into attempts after a lost race for %s: %.1f conflicts for each success. What helps is a lock instead of retries (strategy atomic or pessimistic), or fewer that race for one row.",
			percent(d.Share), percents(d.ShareInterval), rowWords(d.Resource), w.counted("conflicts")/max(1, w.ok))
	case d.Cause == nested:
		return w.nestedSummary(v, res)
	case d.Cause == commitFlush, d.Cause == networkLatency, d.Cause == slowStatement, d.Cause == runtimeGC:
		return fmt.Sprintf("%s (%s): nothing queues, but %s of the operations' time goes there.", layerWords(d.Layer), d.Cause.Cause, percent(d.Share))
	default:
		return fmt.Sprintf("%s: %s of all waiting (%s) ends on %s.%s%s%s", layerWords(d.Layer), percent(d.Share), percents(d.ShareInterval),
			causeWords(d.Cause, d.Resource), holders(d), symptomWords(res), w.adviceWords(res)+reliefWords(res))
	}
}

// adviceWords say what no figure can: who has a lock that he should not have, or
// what about the locks is wrong.
func (w *world) adviceWords(res *Result) string {
	switch d := res.Verdict; d.Cause {
	case deadlocks:
		return fmt.Sprintf(" Operations take these locks in different orders: %.0f deadlocks for %.0f successes. What helps is one order for all.", max(w.counted("deadlocks"), w.outcome("deadlock")), w.ok)
	case gapLock:
		return " They are locks on gaps between rows, which range scans for update take and inserts wait for. What helps is a narrower range, an index that fits it, or READ COMMITTED."
	case longTransaction, metadataLock, namedLock:
		for _, b := range res.Locks.Blockers {
			if b.Resource == d.Resource {
				return fmt.Sprintf(" Thread %d, %s, has it: %s. What helps is to end that.", b.Thread, whose(b), statementOf(b))
			}
		}
	}
	return ""
}

func whose(b Blocker) string {
	if b.Foreign {
		return "not of this load"
	}
	return "of this load"
}

func statementOf(b Blocker) string {
	if b.Query == "" {
		return "with no statement at the moment"
	}
	return beginning(b.Query)
}

func leaning(res *Result) string {
	if len(res.Candidates) == 0 {
		return ""
	}
	c := res.Candidates[0]
	return fmt.Sprintf(" The largest share of waiting (%s) ends on %s.", percent(c.Share), causeWords(c.Cause, c.Resource))
}

func (w *world) nestedSummary(v variant, res *Result) string {
	h := v.usage.HoldersOf(res.Verdict.Resource)
	return fmt.Sprintf("Connection pool: operations that hold a connection wait for a second one, for %.0f %% of the time they hold it (on average %.1f of %.0f connections wait so). They block each other; take the second connection after giving the first back, or use one for both.",
		100*h.Self/h.Total, h.Self/w.length, v.usage.Resources[res.Verdict.Resource].Capacity)
}

// holders says what those do that hold the resource.
func holders(d Verdict) string {
	var parts []string
	for _, h := range d.Holder {
		if h.Share >= 0.1 && len(parts) < 3 {
			parts = append(parts, fmt.Sprintf("%s (%s)", stageWords(h.Stage), percent(h.Share)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " Its holders are " + list(parts) + "."
}

func symptomWords(res *Result) string {
	var parts []string
	for _, s := range res.Symptoms {
		if s.Layer != res.Verdict.Layer {
			parts = append(parts, fmt.Sprintf("%s (%s of the operations' time)", stageWords(s.Stage), percent(s.Share)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + capital(list(parts)) + " is a symptom of it."
}

// helps is the least gain that a reader would call help.
const helps = 1.1

func reliefWords(res *Result) string {
	var no, yes []string
	for _, r := range res.Relief {
		gain := fmt.Sprintf("%.1fx", float64(r.Ratio))
		switch {
		case r.Bound == AtMost && strings.HasPrefix(r.LimitedBy, "cpu:"):
			gain = "at most " + gain + ", for the CPU comes next"
		case r.Bound == AtMost:
			gain = "at most " + gain
		}
		if float64(r.Ratio) < helps {
			no = append(no, fmt.Sprintf("%s (%s)", r.Change, gain))
		} else {
			yes = append(yes, fmt.Sprintf("%s (%s)", r.Change, gain))
		}
	}
	out := ""
	if len(no) > 0 {
		out += " Will not help: " + strings.Join(no, "; ") + "."
	}
	if len(yes) > 0 {
		out += " Will help: " + strings.Join(yes, "; ") + "."
	}
	return out
}

// percent writes a share for a sentence: what is not all is never 100 %.
func percent(n Number) string {
	if v := 100 * float64(n); v > 99 && v < 100 {
		return fmt.Sprintf("%.1f %%", min(v, 99.9))
	}
	return fmt.Sprintf("%.0f %%", 100*float64(n))
}

func percents(i Interval) string { return percent(i[0]) + " to " + percent(i[1]) }

func list(parts []string) string {
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// evidence are the numbers that carry the verdict, each with its source.
func (w *world) evidence(ends ends, res *Result) []Evidence {
	v := ends[0]
	from, to := Number(0), Number(w.length) // of the measured phase, as in windows
	out := []Evidence{}
	add := func(claim, metric string, value float64, unit, source string) {
		out = append(out, Evidence{claim, metric, Number(value), unit, source, from, to})
	}
	d := res.Verdict
	if r := v.usage.Resources[d.Resource]; r != nil {
		add("operations waiting for it, on average", "waiting("+d.Resource+")", v.usage.Waiting()[d.Resource]/w.length, "1", w.sourceOf(d.Resource))
		if !r.Opaque {
			add("its utilisation"+between(ends.utilisation(d.Resource)), "U("+d.Resource+")", v.blame.Utilisation[d.Resource], "1", w.sourceOf(d.Resource))
			add("the same without the time in which its holders wait for something else", "U'("+d.Resource+")", v.blame.Net[d.Resource], "1", "holders in operations.seconds")
		}
	}
	for _, s := range res.Symptoms {
		add("a symptom: share of the operations' time in stage "+s.Stage, "operations.seconds", float64(s.Share), "1", "operations (client's clock)")
	}
	if w.server.known && strings.HasPrefix(d.Resource, "row:") {
		add("row-lock waiting in all, between "+fmt.Sprintf("%.3f and %.3f s", w.server.row.lo, w.server.row.hi), "row_lock", w.server.row.point, "s", w.server.source+" ("+w.server.method+")")
	}
	return out
}

// between tells the bounds of what is not known better.
func between(i Interval) string {
	if i[1]-i[0] < 0.005 {
		return ""
	}
	return fmt.Sprintf(", between %.2f and %.2f", float64(i[0]), float64(i[1]))
}

// sourceOf names where the waiting for a resource was read.
func (w *world) sourceOf(resource string) string {
	switch kind, _, _ := strings.Cut(resource, ":"); kind {
	case "row":
		return w.server.source + "; key from operations (client)"
	case "cpu":
		return "/proc/PID/task/*/schedstat, /sched/latencies"
	case "mdl", "named":
		return w.server.mdlSource
	}
	return "operations (client's clock)"
}
