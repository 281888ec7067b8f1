package analysis

import "chokepoint/analysis/waits"

// conflictRetry: operations that lost a race and tried again take most of the
// time.
var conflictRetry = waits.Cause{Layer: "row_lock", Cause: "conflict_retry"}

// opCounted counts what happened inside operations; see collectors/operations.
const opCounted = "operations.counted"

// neverStarted is the outcome of operations of an open loop that were still in
// the queue when the load ended.
const neverStarted = "never_started"

// retried is the share of the operations' time that went into attempts after
// one that had failed, the waiting for a connection and the backoff included.
func (w *world) retried() ratio {
	num, den := make([]float64, len(w.steps)), make([]float64, len(w.steps))
	for i := range w.cells {
		for s, seconds := range w.cells[i].slices {
			den[s] += seconds
			if w.cells[i].retry {
				num[s] += seconds
			}
		}
	}
	return jackknife(num, den)
}

// counted is how often something happened inside operations.
func (w *world) counted(what string) float64 {
	n := 0.0
	for _, s := range w.t.All(opCounted, 2) {
		if s.Labels[1] == what {
			n += w.t.Delta(s)
		}
	}
	return n
}

// victims is how many deadlocks an operation was the victim of on average: those
// that it counted and got over, and those that ended it.
func (w *world) victims() float64 {
	if w.ended == 0 {
		return 0
	}
	return max(w.counted("deadlocks"), w.outcome("deadlock")) / w.ended
}

// conflictRow is the row that those spent most time on that tried again.
func (w *world) conflictRow() string {
	rows := map[string]float64{}
	for i := range w.cells {
		if c := &w.cells[i]; c.retry && waits.Table(c.asked) != "" {
			rows[c.asked] += c.seconds
		}
	}
	for _, name := range bySize(rows) {
		return name
	}
	return ""
}
