package analysis

import (
	"fmt"
	"math"

	"chokepoint/analysis/waits"
)

// Causes that are not blamed on a resource.
var (
	nested         = waits.Cause{Layer: "pool", Cause: "nested_acquire"}
	healthy        = waits.Cause{Layer: "none", Cause: "healthy"}
	loadLimited    = waits.Cause{Layer: "none", Cause: "load_limited"}
	tooLittleData  = waits.Cause{Layer: "inconclusive", Cause: "too_little_data"}
	tooClose       = waits.Cause{Layer: "inconclusive", Cause: "too_close"}
	tooUnexplained = waits.Cause{Layer: "inconclusive", Cause: "too_much_unexplained"}
	networkLatency = waits.Cause{Layer: "network", Cause: "latency"}
	commitFlush    = waits.Cause{Layer: "database", Cause: "commit_flush"}
	slowStatement  = waits.Cause{Layer: "database", Cause: "slow_statement"}
	runtimeGC      = waits.Cause{Layer: "runtime", Cause: "gc"}
)

// verdict applies the rules of the method in their order; the first that holds
// decides.
func (w *world) verdict(ends ends, res *Result) Verdict {
	best := ends[0]
	if r := nestedResource(best.usage); r != "" {
		return w.about(best, nested, r, res)
	}
	if why := w.tooLittle(best); why != "" {
		return w.undecided(best, tooLittleData, why, res)
	}
	if share := w.retried(); share.value >= retryShare && w.counted("conflicts") > 0 {
		out := w.about(best, conflictRetry, w.conflictRow(), res)
		out.Share, out.ShareInterval = Number(share.value), Interval{Number(share.lo), Number(share.hi)}
		return out
	}
	if !w.saturated(ends) {
		return w.workCause(best, res)
	}
	leader := res.Candidates[0]
	if inside := sumWhere(w.cells, func(c *clientCell) bool { return c.inConnection() }); inside > 0 {
		if share := w.unexplainedSeconds(best) / inside; share > maxUnexplained {
			return w.undecided(best, tooUnexplained, fmt.Sprintf("%.0f %% of the time inside connections is unexplained", 100*share), res)
		}
	}
	if second, close := rival(res.Candidates); close {
		return w.undecided(best, tooClose, fmt.Sprintf("the shares of %s/%s (%s) and %s/%s (%s) overlap",
			leader.Layer, leader.Cause.Cause, percents(leader.ShareInterval), second.Layer, second.Cause.Cause, percents(second.ShareInterval)), res)
	}
	if leader.Cause == undersized && w.databaseProcess() == "" && w.server.known {
		return w.undecided(best, tooClose, "the pool looks too small, but the database server's CPU cannot be seen, and may be what its connections wait for", res)
	}
	return w.about(best, leader.Cause, leader.Resource, res)
}

// rival is the cause whose share may be the largest beside the leader's, and
// whether their intervals meet.
func rival(all []Candidate) (second Candidate, close bool) {
	for _, c := range all[1:] {
		if c.ShareInterval[1] > second.ShareInterval[1] {
			second = c
		}
	}
	return second, len(all) > 1 && all[0].ShareInterval[0] <= second.ShareInterval[1]
}

// about is a verdict on one resource.
func (w *world) about(v variant, c waits.Cause, resource string, res *Result) Verdict {
	out := Verdict{Cause: c, Resource: resource, Share: unknown(), ShareInterval: Interval{unknown(), unknown()}, Holder: w.holder(v, resource)}
	for _, cand := range res.Candidates {
		if cand.Cause == c {
			out.Share, out.ShareInterval = cand.Share, cand.ShareInterval
		}
	}
	if c == nested { // its waiting is blamed on the pool
		for _, cand := range res.Candidates {
			if cand.Resource == resource {
				out.Share, out.ShareInterval = cand.Share, cand.ShareInterval
			}
		}
	}
	return out
}

// undecided is an inconclusive verdict; holder and resource are the leader's.
func (w *world) undecided(v variant, c waits.Cause, why string, res *Result) Verdict {
	out := Verdict{Cause: c, Share: unknown(), ShareInterval: Interval{unknown(), unknown()}, Holder: []StageShare{}, Summary: why}
	if len(res.Candidates) > 0 {
		lead := res.Candidates[0]
		out.Resource, out.Share, out.ShareInterval, out.Holder = lead.Resource, lead.Share, lead.ShareInterval, w.holder(v, lead.Resource)
	}
	return out
}

// nestedResource is the resource whose holders wait much for the same resource.
func nestedResource(u *waits.Usage) string {
	worst, name := 0.0, ""
	for _, r := range bySize(heldSeconds(u)) {
		h := u.HoldersOf(r)
		if share := h.Self / h.Total; share >= nestedShare && share > worst {
			worst, name = share, r
		}
	}
	return name
}

func heldSeconds(u *waits.Usage) map[string]float64 {
	m := map[string]float64{}
	for _, c := range u.Cells {
		for _, r := range c.Held {
			m[r] += c.Seconds
		}
	}
	return m
}

// tooLittle says what is missing for a verdict, or nothing.
func (w *world) tooLittle(v variant) string {
	if w.ok == 0 && w.ended > 0 {
		return fmt.Sprintf("none of %.0f operations succeeded (their outcomes say why)", w.ended)
	}
	if n := len(w.steps); n < minSlices {
		return fmt.Sprintf("the measured phase has %d slices; a verdict needs %d", n, minSlices)
	}
	if w.ended >= minFinished {
		return ""
	}
	_, den := w.blamedSlices(v)
	for i, s := range w.steps {
		if den[i] < minWaiters*(s.To-s.From) {
			return fmt.Sprintf("%.0f operations have ended; a verdict needs %d", w.ended, minFinished)
		}
	}
	return ""
}

// saturated tells whether any cause has a queue worth the name. Of what is
// only known within bounds it takes the end that says so: this rule guards
// against verdicts on services that nothing holds back.
func (w *world) saturated(ends ends) bool {
	for _, v := range ends {
		waiting := v.usage.Waiting()
		total := 0.0
		queue := map[waits.Cause]float64{}
		use := map[waits.Cause]float64{}
		for r, seconds := range waiting {
			c := v.usage.Resources[r].Cause
			total += seconds
			queue[c] += seconds / w.length
			use[c] = max(use[c], v.blame.Net[r])
		}
		share := total / v.usage.Seconds()
		for c, q := range queue {
			if q >= minWaiters && (use[c] >= minUtilisation || share >= minWaitShare) {
				return true
			}
		}
	}
	return false
}

// workCause is the verdict where nothing is saturated: the work itself may take
// long, or nothing is wrong.
func (w *world) workCause(v variant, res *Result) Verdict {
	share := map[string]float64{}
	for _, s := range res.Budget {
		share[s.Stage] = float64(s.Share)
	}
	of := func(c waits.Cause, stage string) Verdict {
		return Verdict{Cause: c, Share: Number(share[stage]), ShareInterval: Interval{Number(share[stage]), Number(share[stage])}, Holder: []StageShare{}}
	}
	commits := 0.0
	for _, c := range w.cells {
		if c.stage == stageCommit {
			commits += c.entries
		}
	}
	total := v.usage.Seconds()
	switch {
	case share[stageNetwork] >= networkShare && w.outside.ping >= networkPing:
		return of(networkLatency, stageNetwork)
	case share[stageDBCommit] >= commitShare && commits > 0 && share[stageDBCommit]*total/commits >= commitMean:
		return of(commitFlush, stageDBCommit)
	case w.gcShare() >= gcShare:
		return Verdict{Cause: runtimeGC, Share: Number(w.gcShare()), ShareInterval: Interval{Number(w.gcShare()), Number(w.gcShare())}, Holder: []StageShare{}}
	}
	for _, d := range w.server.digests {
		if d.timer/total >= statementShare && d.examined >= examinedPerSent*max(1, d.sent) {
			s := Number(d.timer / total)
			return Verdict{Cause: slowStatement, Share: s, ShareInterval: Interval{s, s}, Holder: []StageShare{}}
		}
	}
	out := Verdict{Cause: healthy, Share: unknown(), ShareInterval: Interval{unknown(), unknown()}, Holder: []StageShare{}}
	if w.loadLimited(total) {
		out.Cause = loadLimited
	}
	return out
}

// loadLimited tells whether the load, and not the service, sets the throughput:
// an offered rate that was met, or workers that think half the time or more.
func (w *world) loadLimited(busy float64) bool {
	wl := w.run.Workload
	if wl.OfferedPerS > 0 {
		return w.ended-w.outcome(neverStarted) >= offeredMet*w.ended // of what came due: arrivals are random
	}
	return wl.Concurrency > 0 && 1-busy/(float64(wl.Concurrency)*w.length) >= thinkShare
}

// gcShare is the garbage collector's share of our CPU time, NaN if unknown.
func (w *world) gcShare() float64 {
	gc := w.t.Delta(w.t.Get("go.cpu_seconds", "gc"))
	if w.outside.clientCPU > 0 {
		return gc / w.outside.clientCPU
	}
	return math.NaN()
}

func (w *world) unexplainedSeconds(v variant) float64 {
	sum := 0.0
	for _, c := range v.usage.Cells {
		if c.Stage == stageUnexplained {
			sum += c.Seconds
		}
	}
	return sum
}

// holder says what the holders of a resource do, the largest share first.
func (w *world) holder(v variant, resource string) []StageShare {
	h := v.usage.HoldersOf(resource)
	total := h.Total
	if r := v.usage.Resources[resource]; r != nil && !r.CPU && r.Foreign > 0 {
		h.Stage[stageForeign] = r.Foreign
		total += r.Foreign
	}
	out := []StageShare{}
	for _, stage := range bySize(h.Stage) {
		if share := h.Stage[stage] / total; share >= 0.005 {
			out = append(out, StageShare{stage, Number(share)})
		}
	}
	return out
}
