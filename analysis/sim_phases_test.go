package analysis_test

import (
	"fmt"
	"time"

	"chokepoint/collectors/mysql"
	"chokepoint/collectors/operations"
	"chokepoint/collectors/record"
)

// Before the load, the server is pinged.
const (
	simPings     = 20
	simLocks     = 250 * time.Millisecond // between samples of the lock graph
	simPingTakes = time.Microsecond
)

// simReading is how long a reading takes. Nothing runs while all sources are
// read, so that client and server can be compared.
const simReading = 100 * time.Microsecond

// How often the sources are read: operations and pings more often at first.
const (
	simFast      = 25 * time.Millisecond
	simFastUntil = 4 * time.Second
	simSlow      = 100 * time.Millisecond
	simOthers    = time.Second
)

// simSnapshot is the truth at one moment.
type simSnapshot struct {
	at        time.Duration
	counters  *simCounters
	resources []simResource
}

func (w *simWorld) snapshot() simSnapshot {
	s := simSnapshot{at: w.engine.now, counters: w.counters.clone()}
	for _, r := range w.resources() {
		r.tick(w.engine.now)
		s.resources = append(s.resources, *r)
	}
	return s
}

// run is one whole run, from the idle servers to the last reading.
func (w *simWorld) run(p *simProc) (r simResult) {
	w.event(record.PhaseIdle)
	for range simPings {
		w.ping(p)
	}
	ended := false
	w.poll("others", &ended, simOthers, simOthers, func(*simProc) { w.readAll() })
	w.event(record.PhaseWarmup)
	w.load(p, w.warmup())
	w.border(p)
	w.read(operations.Name)
	w.event(record.PhaseMeasure)
	before := w.snapshot()
	w.measure(p)
	w.over = true
	w.read(operations.Name)
	w.event(record.PhaseDone)
	r = newSimResult(w.tally, w.params.T, before, w.snapshot())
	ended = true
	w.border(p)
	w.close(before.at, r)
	return r
}

// measure puts on the load and what is not of it, and reads meanwhile.
func (w *simWorld) measure(p *simProc) {
	ended := false
	w.poll(operations.Name, &ended, simFast, simSlow, func(*simProc) { w.read(operations.Name) })
	w.poll(mysql.PingSource, &ended, simFast, simSlow, func(p *simProc) { w.pingLoaded(p, &ended) })
	w.poll(mysql.LocksSource, &ended, simLocks, simLocks, func(*simProc) { w.read(mysql.LocksSource) })
	w.foreigners()
	w.load(p, w.params.T)
	ended = true
}

// close ends the record: the clock goes on for processes that have yet to see
// that the run is over.
func (w *simWorld) close(measured time.Duration, r simResult) {
	if w.rec != nil {
		w.rec.latencies(w.tally, measured.Seconds(), measured.Seconds()+r.Seconds)
		w.rec.note(w.rec.w.Close(record.End{AtS: w.engine.now.Seconds(), Status: record.Complete}))
	}
}

func (w *simWorld) warmup() time.Duration {
	if w.options.warmup > 0 {
		return w.options.warmup
	}
	return min(w.params.T/5, time.Second)
}

// poll reads every fast, and after a while every slow, until ended. A reading
// that comes late by more than a slot skips the slots it missed, and the gap
// is written down.
func (w *simWorld) poll(source string, ended *bool, fast, slow time.Duration, read func(p *simProc)) {
	if w.rec == nil {
		return
	}
	w.engine.Spawn(true, func(p *simProc) {
		began, due := p.e.now, p.e.now
		for {
			step := slow
			if p.e.now-began < simFastUntil {
				step = fast
			}
			due += step
			if late := p.e.now - due; late > step {
				w.rec.event(record.Event{T: p.e.now.Seconds(), Kind: record.Gap, Source: source, Text: fmt.Sprintf("no reading for %.3f s", (late + step).Seconds())})
				due = p.e.now
			}
			if p.Work(due - p.e.now); *ended {
				return
			}
			read(p)
		}
	})
}

// border reads all sources but the operations, one after another.
func (w *simWorld) border(p *simProc) {
	for _, s := range simSources() {
		w.read(s)
		p.Work(simReading)
	}
}

// readAll reads them at once: what is read goes on meanwhile.
func (w *simWorld) readAll() {
	for _, s := range simSources() {
		w.read(s)
	}
}

// ping takes one round trip to the idle server.
func (w *simWorld) ping(p *simProc) {
	from := p.e.now
	p.Work(simPingTakes + w.options.network)
	w.pinged(from)
}

// pingLoaded needs processors like any round trip, if next to nothing of them.
func (w *simWorld) pingLoaded(p *simProc, ended *bool) {
	from := p.e.now
	p.Work(simPingTakes + w.options.network)
	for _, cpu := range []*simResource{w.dbCPU, w.appCPU} {
		if cpu != nil {
			p.Acquire(cpu)
			p.Release(cpu)
		}
	}
	if !*ended {
		w.pinged(from)
	}
}

func (w *simWorld) pinged(from time.Duration) {
	if w.rec == nil {
		return
	}
	took := (w.engine.now - from).Seconds()
	b := &record.Batch{Source: mysql.PingSource, T: from.Seconds(), Took: took}
	b.Add(took, mysql.PingSeconds)
	w.rec.note(w.rec.w.Batch(b))
}

func (w *simWorld) read(source string) {
	if w.rec != nil {
		w.rec.read(w, source)
	}
}

func (w *simWorld) event(phase string) {
	if w.rec != nil {
		w.rec.event(record.Event{T: w.engine.now.Seconds(), Kind: record.Phase, Text: phase})
	}
}
