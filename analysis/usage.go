package analysis

import (
	"maps"
	"slices"
	"strings"

	"chokepoint/analysis/timeline"
	"chokepoint/analysis/waits"
	"chokepoint/collectors/record"
)

// Causes with a rule in this package.
var (
	hotRow       = waits.Cause{Layer: "row_lock", Cause: "hot_row"}
	undersized   = waits.Cause{Layer: "pool", Cause: "undersized"}
	databaseCPU  = waits.Cause{Layer: "database", Cause: "cpu"}
	runtimeCPU   = waits.Cause{Layer: "runtime", Cause: "cpu"}
	runtimeMutex = waits.Cause{Layer: "runtime", Cause: "mutex"}
	redisPool    = waits.Cause{Layer: "redis", Cause: "pool"}
	redisLock    = waits.Cause{Layer: "redis", Cause: "lock_contention"}
	lockBackoff  = waits.Cause{Layer: "redis", Cause: "lock_backoff"}
	lockLease    = waits.Cause{Layer: "redis", Cause: "lock_lease"}
)

// machine is the CPU of the host in the measured phase.
type machine struct {
	known   bool
	cpus    float64
	busy    float64 // CPU seconds of the whole machine, idle left out
	idle    float64
	steal   float64
	ours    float64            // CPU seconds of the processes of the run
	process map[string]float64 // CPU seconds by process
	queue   map[string]float64 // run-queue delay by process
}

func readMachine(t *timeline.Timeline, run record.Run) machine {
	m := machine{known: t.Has("host"), cpus: float64(run.Host.CPUs), process: map[string]float64{}, queue: map[string]float64{}}
	for _, s := range t.All("host.cpu_seconds", 1) {
		switch d := t.Delta(s); s.Labels[0] {
		case "idle", "iowait":
			m.idle += d
		case "steal":
			m.steal += d
			m.busy += d
		default:
			m.busy += d
		}
	}
	for _, s := range t.All("host.process.cpu_seconds", 1) {
		m.process[s.Labels[0]] = t.Delta(s)
		m.ours += t.Delta(s)
	}
	for _, s := range t.All("host.process.run_queue_seconds", 1) {
		m.queue[s.Labels[0]] = t.Delta(s)
	}
	return m
}

// end chooses a bound, or the point between.
type end uint8

const (
	point end = iota
	lower
	upper
)

func (e end) of(b bounds) float64 {
	switch e {
	case lower:
		return b.lo
	case upper:
		return b.hi
	}
	return b.point
}

// world is all that the analysis computes on.
type world struct {
	run      record.Run
	t        *timeline.Timeline
	length   float64 // T, seconds
	steps    []timeline.Slice
	cells    []clientCell
	server   serverTime
	outside  outside
	machine  machine
	graph    lockGraph
	appLocks lockCounts
	profiles profiles
	cpu      string // the resource that processors are, cpu:<process>
	// rowCauses are the causes of waiting for rows, decided on the point estimate:
	// bounds tell how much waiting there is, not of what kind.
	rowCauses map[string]waits.Cause
	ok        float64
	ended     float64
}

// variant is the usage under one choice of what is only known within bounds.
type variant struct {
	usage *waits.Usage
	parts partition
	blame *waits.Blame
}

// ends are the point estimate and the variants at the ends of the bounds.
type ends []variant

// utilisation is the interval of a resource's utilisation.
func (e ends) utilisation(resource string) Interval {
	out := Interval{1, 0}
	for _, v := range e {
		u := Number(v.blame.Utilisation[resource])
		out[0], out[1] = min(out[0], u), max(out[1], u)
	}
	return out
}

// variant computes usage and blame with the row-lock time and the rows'
// utilisation at the given ends of their bounds.
func (w *world) variant(row, utilisation end) variant {
	parts := split(w.cells, w.server, w.outside, row.of(w.server.row))
	w.nameProcessors(parts)
	u := &waits.Usage{T: w.length, Resources: map[string]*waits.Resource{}}
	for i, c := range w.cells {
		unseen := w.unseenHold(c, parts[i], utilisation)
		for _, p := range parts[i] {
			cell := waits.Cell{Stage: p.stage, Waits: p.waits, Held: c.held, Seconds: c.seconds * p.share}
			if unseen > 0 && p.stage != stageRowLock {
				under := cell
				under.Held, under.Seconds = append(slices.Clone(c.held), c.asked), unseen*cell.Seconds
				cell.Seconds -= under.Seconds
				u.Cells = append(u.Cells, under)
			}
			u.Cells = append(u.Cells, cell)
		}
	}
	for name := range w.resourceNames(u) {
		u.Resources[name] = w.resource(u, name)
	}
	if utilisation == upper {
		w.addUncertainHold(u, parts)
	}
	return variant{usage: u, parts: parts, blame: waits.NewBlame(u)}
}

// unseenHold is the share of a locking statement's time beside its waiting for
// which it holds the row already. A client sees the row held from the return
// of the statement only; the server gave the lock before that, at the earliest
// when the waiting ended. An autocommit statement holds it within its own time
// only, for at least what the server's timers leave when all that can have been
// waiting is taken away.
func (w *world) unseenHold(c clientCell, parts []part, e end) float64 {
	if !c.asksRow() || strings.HasSuffix(c.asked, "/*") {
		return 0
	}
	rest := 0.0
	for _, p := range parts {
		if p.stage != stageRowLock {
			rest += c.seconds * p.share
		}
	}
	least := 0.0
	if !w.heldAfter(c.asked) && rest > 0 {
		least = min(1, w.autocommitHold(c.seconds)/rest)
	}
	return e.of(bounds{lo: least, point: (least + 1) / 2, hi: 1})
}

// heldAfter tells whether operations hold the row beyond the locking statement.
func (w *world) heldAfter(row string) bool {
	return slices.ContainsFunc(w.cells, func(c clientCell) bool { return slices.Contains(c.held, row) })
}

// addUncertainHold adds to the rows what is taken as waiting here and may have
// been holding: waiting and holding are only known to lie between the same two
// moments, so the largest hold goes with the least waiting.
func (w *world) addUncertainHold(u *waits.Usage, parts partition) {
	least := rowLockWaitsOf(w.cells, w.server.row.lo)
	for i, c := range w.cells {
		r := u.Resources[c.asked]
		if r == nil || r.Opaque || !c.asksRow() {
			continue
		}
		for _, p := range parts[i] {
			if p.stage == stageRowLock {
				r.Held += max(0, c.seconds*p.share-least[i])
			}
		}
	}
}

// nameProcessors names the machine's processors by the process with most
// run-queue delay inside operations: there is one such resource a machine.
func (w *world) nameProcessors(parts partition) {
	var server, client float64
	for i, c := range w.cells {
		for _, p := range parts[i] {
			switch p.stage {
			case stageDBRunnable:
				server += c.seconds * p.share
			case stageRunnable:
				client += c.seconds * p.share
			}
		}
	}
	if w.cpu == "" { // the point estimate is made first, and names it
		w.cpu = "cpu:" + w.run.Host.Process
		if server > client {
			w.cpu = "cpu:" + w.databaseProcess()
		}
	}
	for i := range parts {
		for j := range parts[i] {
			if parts[i][j].waits == processors {
				parts[i][j].waits = w.cpu
			}
		}
	}
}

func (w *world) databaseProcess() string {
	for _, s := range w.run.Servers {
		if s.Kind == "mysql" {
			return s.Process
		}
	}
	return ""
}

func (w *world) resourceNames(u *waits.Usage) map[string]bool {
	names := map[string]bool{}
	for _, c := range u.Cells {
		if c.Waits != "" {
			names[c.Waits] = true
		}
		for _, h := range c.Held {
			names[h] = true
		}
	}
	if w.machine.known {
		names[w.cpu] = true
	}
	return names
}

// resource describes one resource.
func (w *world) resource(u *waits.Usage, name string) *waits.Resource {
	r := &waits.Resource{Name: name, Cause: w.causeOf(name), Capacity: 1, Held: u.HoldersOf(name).Total}
	for _, known := range w.run.Workload.Resources {
		if known.Name == name {
			r.Capacity = float64(known.Capacity)
		}
	}
	switch kind, _, _ := strings.Cut(name, ":"); {
	case name == w.cpu:
		r.CPU, r.Capacity, r.Held, r.Foreign = true, w.machine.cpus, w.machine.ours, max(0, w.machine.busy-w.machine.ours)
	case strings.HasSuffix(name, "*"), name == anyRow: // keys without a name of their own
		r.Opaque = true
	case kind == "mdl", kind == "named":
		r.Opaque = w.graph.metadata[name] == 0 // nobody was seen to have it
		r.Foreign = w.graph.strange[name] * w.length
		r.Held = w.graph.metadata[name]*w.length - r.Foreign
	case kind == "row":
		r.Foreign = w.graph.foreign[name] * w.length
		if _, ok := w.rowCauses[name]; !ok {
			w.rowCauses[name] = w.graph.rowCause(r.Held, name, w.length, w.victims())
		}
		r.Cause = w.rowCauses[name]
	}
	return r
}

// autocommitHold is the least time for which autocommit statements, which took
// the given client seconds, can have held their rows: their part of the timers
// less all that may have been waiting.
func (w *world) autocommitHold(asked float64) float64 {
	var timers, most float64
	for _, d := range w.server.digests {
		if d.locksRows() {
			timers += d.timer
			most += d.row.hi
		}
	}
	all := sumWhere(w.cells, func(c *clientCell) bool { return c.asksRow() })
	if all == 0 {
		return 0
	}
	return max(0, timers-most) * asked / all
}

// causeOf is the cause of waiting for a resource, by what the resource is.
func (w *world) causeOf(name string) waits.Cause {
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "row":
		return hotRow
	case "pool":
		if rest == "redis" {
			return redisPool
		}
		return undersized
	case "cpu":
		if rest == w.run.Host.Process {
			return runtimeCPU
		}
		return databaseCPU
	case "mdl":
		return metadataLock
	case "named":
		return namedLock
	case "mutex":
		return runtimeMutex
	case "applock":
		return w.appLocks.cause()
	case "slot":
		return loadLimited
	}
	return tooUnexplained // a kind that this version does not know
}

// rows are the named rows of the usage, in order.
func rows(u *waits.Usage) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(u.Resources)) {
		if strings.HasPrefix(name, "row:") && !u.Resources[name].Opaque {
			out = append(out, name)
		}
	}
	return out
}
