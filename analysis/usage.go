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
	metadataLock = waits.Cause{Layer: "database", Cause: "metadata_lock"}
	runtimeCPU   = waits.Cause{Layer: "runtime", Cause: "cpu"}
	runtimeMutex = waits.Cause{Layer: "runtime", Cause: "mutex"}
	redisPool    = waits.Cause{Layer: "redis", Cause: "pool"}
	redisLock    = waits.Cause{Layer: "redis", Cause: "lock_contention"}
	slotCause    = waits.Cause{Layer: "runtime", Cause: "scheduler"}
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
	for _, s := range t.All("host.cpu_seconds") {
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
	for _, s := range t.All("host.process.cpu_seconds") {
		m.process[s.Labels[0]] = t.Delta(s)
		m.ours += t.Delta(s)
	}
	for _, s := range t.All("host.process.run_queue_seconds") {
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
	run     record.Run
	t       *timeline.Timeline
	length  float64 // T, seconds
	steps   []timeline.Slice
	cells   []clientCell
	server  serverTime
	outside outside
	machine machine
	cpu     string // the resource that processors are, cpu:<process>
	ok      float64
	ended   float64
}

// variant is the usage under one choice of what is only known within bounds.
type variant struct {
	usage *waits.Usage
	parts partition
	blame *waits.Blame
}

// variant computes usage and blame with the row-lock time and the rows'
// utilisation at the given ends of their bounds.
func (w *world) variant(row, utilisation end) variant {
	parts := split(w.cells, w.server, w.outside, row.of(w.server.row))
	w.nameProcessors(parts)
	u := &waits.Usage{T: w.length, Resources: map[string]*waits.Resource{}}
	for i, c := range w.cells {
		for _, p := range parts[i] {
			u.Cells = append(u.Cells, waits.Cell{Stage: p.stage, Waits: p.waits, Held: c.held, Seconds: c.seconds * p.share})
		}
	}
	for name := range w.resourceNames(u) {
		u.Resources[name] = w.resource(u, name, utilisation)
	}
	return variant{usage: u, parts: parts, blame: waits.NewBlame(u)}
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

// resource describes one resource, with a row's hold at the given end.
func (w *world) resource(u *waits.Usage, name string, e end) *waits.Resource {
	r := &waits.Resource{Name: name, Cause: w.causeOf(name), Capacity: 1}
	for _, known := range w.run.Workload.Resources {
		if known.Name == name {
			r.Capacity = float64(known.Capacity)
		}
	}
	kind, _, _ := strings.Cut(name, ":")
	switch {
	case name == w.cpu:
		r.CPU, r.Capacity, r.Held, r.Foreign = true, w.machine.cpus, w.machine.ours, max(0, w.machine.busy-w.machine.ours)
	case kind == "row" && strings.HasSuffix(name, "/*"), name == anyRow, kind == "mdl":
		r.Opaque = true
	case kind == "row":
		b := w.rowHold(u, name)
		b.point = (b.lo + b.hi) / 2
		r.Held = e.of(b)
	default:
		r.Held = u.HoldersOf(name).Total
	}
	return r
}

// rowHold bounds the time for which our operations hold a row. A client sees
// the row held from the return of the locking statement; the server gave the
// lock before that, at the earliest when the waiting ended. An autocommit
// statement holds it for its own execution only, which the server's timers tell.
func (w *world) rowHold(u *waits.Usage, name string) bounds {
	after := u.HoldersOf(name).Total
	var asked, waited float64
	for _, c := range w.cells {
		if c.asked == name && c.asksRow() {
			asked += c.seconds
		}
	}
	for _, c := range u.Cells {
		if c.Waits == name {
			waited += c.Seconds
		}
	}
	lo := after
	if after == 0 {
		lo = w.autocommitHold(asked)
	}
	return bounds{lo: min(lo, w.length), hi: min(after+max(0, asked-waited), w.length)}
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
	case "mutex":
		return runtimeMutex
	case "applock":
		return redisLock
	}
	return slotCause
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
