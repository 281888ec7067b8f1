package analysis_test

import (
	"fmt"
	"iter"
	"testing"
	"time"
)

// The simulation is the oracle of the analysis: it knows why a system of
// workers, pools, locks and processors is slow, and what a change would bring,
// since it runs the changed system too.
//
// simEngine runs processes in virtual time. A process is a coroutine: exactly
// one runs at any moment, so nothing here needs a lock, and equal times are
// served in the order in which they were scheduled, so a run depends on its
// seed alone.
type simEngine struct {
	now    time.Duration
	seq    uint64
	live   int        // processes that have not ended
	events []simEvent // a binary heap, the next event first
}

// simEvent resumes p, unless p was resumed otherwise in the meantime.
type simEvent struct {
	at      time.Duration
	seq     uint64
	p       *simProc
	resumes uint64
}

func (a simEvent) before(b simEvent) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// simProc is one process. Its methods are for its own body only.
type simProc struct {
	e       *simEngine
	foreign bool // not of the measured load
	next    func() (struct{}, bool)
	yield   func(struct{}) bool
	resumes uint64
}

// Spawn starts a process at the present time.
func (e *simEngine) Spawn(foreign bool, body func(p *simProc)) *simProc {
	p := &simProc{e: e, foreign: foreign}
	// Nobody calls stop: run goes on until each body has returned by itself.
	p.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		body(p)
	})
	e.live++
	e.wake(p, 0)
	return p
}

// Run ends when no event is left. Processes that still wait then would wait
// for ever, which is a fault of the model.
func (e *simEngine) Run() error {
	for len(e.events) > 0 {
		ev := e.pop()
		if ev.resumes != ev.p.resumes {
			continue // such as the timer of a wait that was granted
		}
		e.now = ev.at
		ev.p.resumes++
		if _, more := ev.p.next(); !more {
			e.live--
		}
	}
	if e.live > 0 {
		return fmt.Errorf("%d processes wait for ever at %v", e.live, e.now)
	}
	return nil
}

func (e *simEngine) wake(p *simProc, in time.Duration) {
	e.seq++
	e.push(simEvent{at: e.now + in, seq: e.seq, p: p, resumes: p.resumes})
}

// block gives the processor of the simulation away until an event of p is due.
func (p *simProc) block() { p.yield(struct{}{}) }

// Work lets d pass.
func (p *simProc) Work(d time.Duration) {
	if d <= 0 {
		return
	}
	e := p.e
	if len(e.events) == 0 || e.events[0].at > e.now+d {
		e.now += d // nothing happens before: spare the switch
		return
	}
	e.wake(p, d)
	p.block()
}

func (e *simEngine) push(ev simEvent) {
	e.events = append(e.events, ev)
	h := e.events
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !ev.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = ev
}

func (e *simEngine) pop() simEvent {
	h := e.events
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	e.events = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(last) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return top
}

// A resource of one, asked for by three: the first to ask is the first to get
// it, a wait that is given up is passed over, and the sums are exact.
func TestSimEngine(t *testing.T) {
	e := &simEngine{}
	r := newSimResource("r", 1)
	var log []string
	user := func(name string, at, hold, patience time.Duration) {
		e.Spawn(false, func(p *simProc) {
			p.Work(at)
			if !p.AcquireTimeout(r, patience) {
				log = append(log, fmt.Sprintf("%s gave up at %v", name, e.now))
				return
			}
			log = append(log, fmt.Sprintf("%s has it at %v", name, e.now))
			p.Work(hold)
			p.Release(r)
		})
	}
	user("a", 0, 10*time.Millisecond, time.Second)
	user("b", time.Millisecond, 10*time.Millisecond, 2*time.Millisecond)
	user("c", 2*time.Millisecond, 5*time.Millisecond, time.Second)
	if err := e.Run(); err != nil {
		t.Fatal(err)
	}
	want := []string{"a has it at 0s", "b gave up at 3ms", "c has it at 10ms"}
	if got := fmt.Sprint(log); got != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", log, want)
	}
	r.tick(e.now)
	if e.now != 15*time.Millisecond || r.busy != 15*time.Millisecond || r.waited != 10*time.Millisecond || r.ended != 10*time.Millisecond || r.waits != 2 {
		t.Errorf("now %v, busy %v, waited %v, ended %v, waits %d", e.now, r.busy, r.waited, r.ended, r.waits)
	}
}

// Two processes that each want 3 ms of one processor take turns of a quantum.
func TestSimCPU(t *testing.T) {
	e := &simEngine{}
	r := newSimResource("cpu", 1)
	var queued [2]time.Duration
	for i := range queued {
		e.Spawn(false, func(p *simProc) {
			p.CPU(r, 3*time.Millisecond, func(waited, _ time.Duration) { queued[i] += waited })
		})
	}
	if err := e.Run(); err != nil {
		t.Fatal(err)
	}
	if e.now != 6*time.Millisecond || queued != [2]time.Duration{2 * time.Millisecond, 3 * time.Millisecond} {
		t.Errorf("ended at %v, queued %v", e.now, queued)
	}
}

// A process that nobody will ever wake is reported, not waited for.
func TestSimDeadlock(t *testing.T) {
	e := &simEngine{}
	r := newSimResource("r", 1)
	e.Spawn(false, func(p *simProc) { p.Acquire(r) }) // and never gives it back
	e.Spawn(false, func(p *simProc) { p.Acquire(r) })
	if err := e.Run(); err == nil {
		t.Error("a process waits for ever, and nobody says so")
	}
}
