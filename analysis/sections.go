package analysis

import (
	"math"
	"slices"
	"strings"

	"chokepoint/analysis/waits"
	"chokepoint/collectors/record"
)

const okOutcome = "ok"

func (w *world) load(l latencies) *Load {
	out := &Load{OfferedPerS: unknown(), ByOperation: map[string]Totals{}}
	if o := w.run.Workload.OfferedPerS; o > 0 {
		out.OfferedPerS = Number(o)
	}
	outcomes := map[string]map[string]int{allOperations: {}}
	for _, s := range w.t.All(opFinished, 2) {
		n := int(math.Round(w.t.Delta(s)))
		op, outcome := s.Labels[0], s.Labels[1]
		if n == 0 {
			continue
		}
		if outcomes[op] == nil {
			outcomes[op] = map[string]int{}
		}
		outcomes[op][outcome] += n
		outcomes[allOperations][outcome] += n
	}
	for op, o := range outcomes {
		t := w.totals(o, l.of(op, record.StageTotal))
		if op == allOperations {
			out.Totals = t
		} else {
			out.ByOperation[op] = t
		}
	}
	return out
}

func (w *world) totals(outcomes map[string]int, l Latency) Totals {
	t := Totals{OK: outcomes[okOutcome], LatencyS: l, Outcomes: outcomes, SuccessRatio: unknown()}
	for _, n := range outcomes {
		t.Operations += n
	}
	t.ThroughputPerS = Number(float64(t.OK) / w.length)
	if t.Operations > 0 {
		t.SuccessRatio = Number(float64(t.OK) / float64(t.Operations))
	}
	return t
}

func (w *world) statements() []Statement {
	total := w.server.statement + w.server.commit
	var out []Statement
	for _, d := range w.server.digests {
		s := Statement{
			Digest: d.id, Text: strings.TrimSpace(d.text), Count: int(d.count), MeanS: Number(d.timer / d.count),
			LockS: Bounds{Number(d.row.lo / d.count), Number(d.row.point / d.count), Number(d.row.hi / d.count)},
			MaxS:  Number(d.max), Share: Number(d.timer / total), Errors: int(d.errors),
			LockSource: w.server.source, LockMethod: w.server.method, LockRatio: Number(d.row.point / d.timer),
		}
		if !d.locksRows() {
			s.LockSource, s.LockMethod = "the statement takes no row lock", exact
			if w.server.flavor != flavorMariaDB {
				s.LockSource = w.server.source
			}
		}
		out = append(out, s)
	}
	return out
}

// maxHotRows bounds the list of hot rows.
const maxHotRows = 8

func (w *world) locks(ends ends) *Locks {
	v := ends[0]
	if !w.server.known && !w.t.Has(statusSource) {
		return nil
	}
	out := &Locks{HotRows: []HotRow{}, Metadata: []MetadataLock{}, Deadlocks: unknown(), Timeouts: unknown(), Blockers: []Blocker{}}
	if s := w.t.Get(innodbDeadlocks); s != nil {
		out.Deadlocks = Number(w.t.Delta(s))
	}
	if s := w.t.Get(innodbTimeouts); s != nil {
		out.Timeouts = Number(w.t.Delta(s))
	}
	out.Conflicts = Number(w.counted("conflicts"))
	out.Blockers = append(out.Blockers, w.graph.blocker[:min(len(w.graph.blocker), maxHotRows)]...)
	waiting := v.usage.Waiting()
	for _, name := range bySize(waiting) {
		if kind, _, _ := strings.Cut(name, ":"); (kind == "mdl" || kind == "named") && waiting[name] >= minWaiters*w.length {
			out.Metadata = append(out.Metadata, MetadataLock{name, Number(waiting[name] / w.length)})
		}
	}
	rowWaits := map[string]float64{}
	for _, name := range rows(v.usage) {
		rowWaits[name] = waiting[name]
	}
	for _, name := range bySize(rowWaits) {
		if len(out.HotRows) == maxHotRows || rowWaits[name] == 0 {
			break
		}
		table := waits.Table(name)
		out.HotRows = append(out.HotRows, HotRow{
			Table: table, Index: w.graph.index[name], Key: strings.TrimPrefix(name, "row:"+table+"/"),
			WaitersMean: Number(rowWaits[name] / w.length), WaitersMax: w.maxWaiters(v, name),
			Utilisation: ends.utilisation(name),
		})
	}
	return out
}

// maxWaiters is the largest mean number of waiters of a slice.
func (w *world) maxWaiters(v variant, resource string) Number {
	most := 0.0
	for s, step := range w.steps {
		sum := 0.0
		for i, c := range w.cells {
			for _, p := range v.parts[i] {
				if p.waits == resource {
					sum += c.slices[s] * p.share
				}
			}
		}
		most = max(most, sum/(step.To-step.From))
	}
	return Number(most)
}

const mysqlPool = "pool:mysql"

func (w *world) poolSection(v variant, l latencies) *Pool {
	if !w.t.Has("pool") {
		return nil
	}
	label := strings.TrimPrefix(mysqlPool, "pool:")
	p := &Pool{WaitS: l.of(allOperations, stagePoolWait).spread(), HoldS: l.of(allOperations, record.StagePoolHold).spread(), Utilisation: unknown()}
	if s := w.t.Get("pool.max_open", label); s != nil {
		p.MaxOpen = int(w.t.Max(s))
	}
	inUse := func(c *clientCell) bool { return slices.Contains(c.held, mysqlPool) }
	pending := func(c *clientCell) bool { return c.stage == stagePoolWait }
	if p.MaxOpen == 0 { // unlimited: no resource, so that holding it is not booked
		inUse = func(c *clientCell) bool { return c.inConnection() }
	}
	p.InUseMean, p.InUseMax = w.meanAndMax(inUse)
	p.PendingMean, p.PendingMax = w.meanAndMax(pending)
	p.IdleMean = Number(mean(w.t.Get("pool.open", label).Values())) - p.InUseMean
	p.IdleMean = max(0, p.IdleMean)
	p.Waits = Number(w.t.Delta(w.t.Get("pool.wait_count", label)))
	if r := v.usage.Resources[mysqlPool]; r != nil && p.MaxOpen > 0 {
		p.Utilisation = Number(v.usage.Utilisation(r))
	}
	p.Timeouts = int(w.outcome("pool_timeout")) // their limit ended while they waited for a connection
	return p
}

// meanAndMax are the mean number of operations in the matching cells, and the
// largest mean of a slice.
func (w *world) meanAndMax(match func(*clientCell) bool) (avg, most Number) {
	perSlice := make([]float64, len(w.steps))
	sum := 0.0
	for i := range w.cells {
		if c := &w.cells[i]; match(c) {
			sum += c.seconds
			for s := range perSlice {
				perSlice[s] += c.slices[s]
			}
		}
	}
	for s, step := range w.steps {
		most = max(most, Number(perSlice[s]/(step.To-step.From)))
	}
	return Number(sum / w.length), most
}

func mean(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func (w *world) runtimeSection() *Runtime {
	if !w.t.Has("go") {
		return nil
	}
	pauses, sched := readHistogram(w.t, "go.gc_pauses"), readHistogram(w.t, "go.sched_latency")
	r := &Runtime{
		GOMAXPROCS: w.run.Host.GOMAXPROCS,
		CPUShare:   unknown(), GCCPUShare: Number(w.gcShare()),
		GCPauses: Number(pauses.count()), GCPauseTotalS: Number(pauses.sum()), GCPauseMaxS: 0,
		HeapPeakBytes: Number(w.t.Max(w.t.Get("go.heap_bytes"))), GoroutinesMax: Number(w.t.Max(w.t.Get("go.goroutines"))),
		MutexWaitS:    Number(w.t.Delta(w.t.Get("go.mutex_wait_seconds"))),
		SchedLatencyS: SchedLatency{Number(sched.mean()), Number(sched.quantile(0.5)), Number(sched.quantile(0.99))},
	}
	if pauses.count() > 0 {
		r.GCPauseMaxS = Number(pauses.largest())
	}
	if p := float64(r.GOMAXPROCS); p > 0 {
		r.CPUShare = Number(w.outside.clientCPU / (p * w.length))
	}
	return r
}

func (w *world) hostSection() *Host {
	if !w.machine.known {
		return nil
	}
	h := &Host{CPUs: w.run.Host.CPUs, Processes: []Process{}, BusyShare: unknown(), StealShare: unknown(), CPUPressure: unknown()}
	if all := w.machine.busy + w.machine.idle; all > 0 {
		h.BusyShare, h.StealShare = Number(w.machine.busy/all), Number(w.machine.steal/all)
	}
	if s := w.t.Get("host.cpu_pressure_seconds"); s != nil {
		h.CPUPressure = Number(w.t.Delta(s) / w.length)
	}
	for _, name := range bySize(w.machine.process) {
		h.Processes = append(h.Processes, Process{name, Number(w.machine.process[name]), Number(w.machine.queue[name])})
	}
	return h
}

func (w *world) correctness() *Correctness {
	if w.run.End == nil || w.run.End.Books == nil {
		return nil
	}
	b := w.run.End.Books
	return &Correctness{b.What, b.LostUpdates, b.Oversold, b.Expected, b.Actual}
}
