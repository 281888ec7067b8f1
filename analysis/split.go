package analysis

import (
	"math"

	"chokepoint/analysis/timeline"
)

// part is a share of a client cell's seconds that was spent in one budget
// stage, waiting for one resource ("" is work).
type part struct {
	stage, waits string
	share        float64
}

// partition gives for each client cell the parts it consists of. The shares are
// those of the whole measured phase: server counters are coarser than a slice,
// so a slice's cells are split in the proportion of the phase.
type partition [][]part

// Placeholders for resources whose name is known only when the budget is.
const (
	processors = "cpu"         // becomes cpu:<process>
	anyRow     = "row:unknown" // statements of clients that do not tell their keys
)

// outside is what the splitting needs from beside the operations and digests.
type outside struct {
	schedLatency float64 // mean time a goroutine stood runnable, s
	ping         float64 // median idle round trip, s
	serverQueue  float64 // run-queue delay of the database process, s
	serverCPU    float64 // CPU time of the database process, s
	clientCPU    float64 // CPU time of our process, s; NaN if unknown
	gcAssist     float64 // CPU time of assists, s
}

// split divides the client cells. row is the row-lock time to assume: the point
// or one of the bounds.
func split(cells []clientCell, s serverTime, o outside, row float64) partition {
	out := make(partition, len(cells))
	rowWaits := rowLockWaitsOf(cells, row)
	if !s.known {
		return splitBlind(cells, rowWaits, out)
	}
	waited := 0.0
	for _, w := range rowWaits {
		waited += w
	}
	st := restOf(cells, stageStatement, s.statement, waited)
	co := restOf(cells, stageCommit, s.commit, 0)
	shareResidual(&st, &co, o, entriesOf(cells, stagePoolWait))
	shareServer(&st, &co, s, o)
	app := appParts(cells, o)
	for i, c := range cells {
		switch c.stage {
		case stageStatement:
			wait := 0.0
			if c.seconds > 0 {
				wait = rowWaits[i] / c.seconds
			}
			if wait > 0 {
				out[i] = append(out[i], part{stageRowLock, rowOf(c), wait})
			}
			out[i] = append(out[i], st.parts(stageExec, 1-wait)...)
		case stageCommit:
			out[i] = co.parts(stageDBCommit, 1)
		case stageApp:
			out[i] = app
		default:
			out[i] = clientPart(c)
		}
	}
	return out
}

// splitBlind is the partition without statement digests: of the time inside
// statements only row-lock waits are known, from the server's status.
func splitBlind(cells []clientCell, rowWaits []float64, out partition) partition {
	for i, c := range cells {
		switch c.stage {
		case stageStatement, stageCommit:
			wait := 0.0
			if c.seconds > 0 {
				wait = rowWaits[i] / c.seconds
			}
			out[i] = []part{{stageUnexplained, "", 1 - wait}}
			if wait > 0 {
				out[i] = append(out[i], part{stageRowLock, rowOf(c), wait})
			}
		case stageApp:
			out[i] = []part{{stageCPU, "", 1}}
		default:
			out[i] = clientPart(c)
		}
	}
	return out
}

// rowOf is the row that a statement waits for.
func rowOf(c clientCell) string {
	if c.asksRow() {
		return c.asked
	}
	return anyRow
}

// clientPart is a stage that the client times whole.
func clientPart(c clientCell) []part {
	switch c.stage {
	case stageQueue, stagePoolWait, stageRedisPool, stageAppLock, stageBackoff:
		return []part{{c.stage, c.asked, 1}}
	}
	return []part{{c.stage, "", 1}}
}

// rowLockWaitsOf spreads the row-lock time over the cells that ask for a row,
// or over all statements of a client that does not tell its rows.
func rowLockWaitsOf(cells []clientCell, row float64) []float64 {
	asks := func(c *clientCell) bool { return c.asksRow() }
	if sumWhere(cells, asks) == 0 {
		asks = func(c *clientCell) bool { return c.stage == stageStatement }
	}
	seconds, entries := make([]float64, len(cells)), make([]float64, len(cells))
	for i := range cells {
		if asks(&cells[i]) {
			seconds[i], entries[i] = cells[i].seconds, cells[i].entries
		}
	}
	return spreadWaiting(seconds, entries, row)
}

// rest is what a client stage consists of beside row-lock waiting, in seconds.
type rest struct {
	total      float64 // client seconds less row-lock waiting
	server     float64 // of it in the server, by its timers
	entries    float64 // round trips
	metadata   float64 // metadata and named locks
	waits      []part  // what metadata consists of, as seconds
	dbRunnable float64
	runnable   float64
	network    float64
}

// residual is what the client saw and neither the server nor what has been
// found so far explains.
func (r *rest) residual() float64 { return max(0, r.total-r.server-r.runnable-r.network) }

func entriesOf(cells []clientCell, stage string) float64 {
	n := 0.0
	for i := range cells {
		if cells[i].stage == stage {
			n += cells[i].entries
		}
	}
	return n
}

func restOf(cells []clientCell, stage string, server, waited float64) rest {
	r := rest{}
	for _, c := range cells {
		if c.stage == stage {
			r.total += c.seconds
			r.entries += c.entries
		}
	}
	r.total = max(0, r.total-waited)
	r.server = min(max(0, server-waited), r.total)
	return r
}

// shareResidual explains what lies between client and server. A round trip and
// a grant of a pooled connection each wake a goroutine, which stands in the run
// queue of the Go scheduler for the mean latency; the network takes the idle
// round trip of each. What is left is unexplained.
//
// Note: the run-queue delay of our process' threads (schedstat) is not used. It
// could explain all that is left, on a busy machine: a goroutine that a socket
// wakes is counted by the Go scheduler only once a thread has polled the
// network. But it is time of threads, of which any number of operations may
// have waited for one, and taken as the operations' time it made a busy
// neighbour the cause of a hot row's queue.
func shareResidual(st, co *rest, o outside, grants float64) {
	delay := (st.entries + co.entries + grants) * o.schedLatency
	residual := st.residual() + co.residual()
	for _, r := range []*rest{st, co} {
		if residual > 0 {
			r.runnable = min(delay/residual, 1) * r.residual()
		}
		r.network = min(r.residual(), r.entries*o.ping)
	}
}

// shareServer takes metadata locks and the server's own run-queue delay out of
// its execution time. That time is CPU, run queue or I/O, and the CPU time is
// known: the run queue is at most the rest, for much of the delay lies outside
// the timers (a packet that arrives wakes a thread) or in row-lock waits (a
// lock that is granted does too).
func shareServer(st, co *rest, s serverTime, o outside) {
	st.metadata = min(s.metadata+s.named, st.server)
	if all := s.metadata + s.named; all > 0 {
		st.waits = []part{{stageMDL, s.mdl, s.metadata * st.metadata / all}, {stageMDL, s.namedLock, s.named * st.metadata / all}}
	}
	inside := st.server - st.metadata + co.server
	queue := min(o.serverQueue, max(0, inside-o.serverCPU))
	if inside <= 0 {
		return
	}
	for _, r := range []*rest{st, co} {
		r.dbRunnable = queue * (r.server - r.metadata) / inside
		r.server -= r.dbRunnable
	}
}

// parts are the shares of the rest, scaled to the given share of a cell.
func (r *rest) parts(exec string, of float64) []part {
	if r.total == 0 {
		return []part{{exec, "", of}}
	}
	explained := r.server + r.dbRunnable + r.runnable + r.network
	all := []part{
		{exec, "", r.server - r.metadata},
		{stageDBRunnable, processors, r.dbRunnable},
		{stageRunnable, processors, r.runnable},
		{stageNetwork, "", r.network},
		{stageUnexplained, "", max(0, r.total-explained)},
	}
	var out []part
	for _, p := range append(all, r.waits...) {
		if p.share > 0 {
			p.share *= of / r.total
			out = append(out, p)
		}
	}
	return out
}

// appParts splits the operations' own code. They cannot have computed for
// longer than our process had a CPU: the rest they stood runnable.
func appParts(cells []clientCell, o outside) []part {
	total := sumWhere(cells, func(c *clientCell) bool { return c.stage == stageApp })
	if total == 0 {
		return []part{{stageCPU, "", 1}}
	}
	cpu := total
	if !math.IsNaN(o.clientCPU) {
		cpu = min(cpu, o.clientCPU)
	}
	assist := min(cpu, o.gcAssist)
	var out []part
	for _, p := range []part{{stageCPU, "", cpu - assist}, {stageGCAssist, "", assist}, {stageRunnable, processors, total - cpu}} {
		if p.share > 0 {
			p.share /= total
			out = append(out, p)
		}
	}
	return out
}

// readOutside reads what the splitting needs beside operations and digests.
func readOutside(t *timeline.Timeline, server, client string) outside {
	h := readHistogram(t, "go.sched_latency")
	o := outside{
		schedLatency: h.mean(),
		serverQueue:  t.Delta(t.Get("host.process.run_queue_seconds", server)),
		serverCPU:    t.Delta(t.Get("host.process.cpu_seconds", server)),
		clientCPU:    math.NaN(),
		gcAssist:     t.Delta(t.Get("go.cpu_seconds", "gc_assist")),
	}
	if s := t.Get("host.process.cpu_seconds", client); s != nil {
		o.clientCPU = t.Delta(s)
	}
	o.ping = idlePing(t)
	return o
}

// idlePing is the median round trip before the load, or the fastest of the run
// where none was taken before.
func idlePing(t *timeline.Timeline) float64 {
	s := t.Get(pingSeconds)
	if before := s.Before(t.From); len(before) > 0 {
		return median(before)
	}
	fastest := 0.0
	for i, v := range s.Values() {
		if i == 0 || v < fastest {
			fastest = v
		}
	}
	return fastest
}
