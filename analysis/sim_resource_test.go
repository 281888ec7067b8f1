package analysis_test

import "time"

// simUnlimited is the capacity of a resource that nobody waits for.
const simUnlimited = 1 << 30

// simQuantum is how long a process keeps a processor that others wait for.
const simQuantum = time.Millisecond

// simResource is something held and waited for. It is handed over directly, to
// the one who has waited longest.
type simResource struct {
	name     string
	capacity int

	held        int // by anybody
	foreignHeld int
	queue       []*simWaiter
	head        int // of the queue
	waiting     int // processes of the load that wait, or poll

	// Integrals over time, up to last.
	last       time.Duration
	busy       time.Duration // of units held
	foreign    time.Duration // of those held by others than the load
	waited     time.Duration // of the waiting
	idleWaited time.Duration // of time in which somebody polls and some are free

	waits uint64        // that have begun, of the load
	ended time.Duration // time of those that have ended
}

type simWaiter struct {
	p             *simProc
	from          time.Duration
	granted, gone bool
}

func newSimResource(name string, capacity int) *simResource {
	return &simResource{name: name, capacity: capacity}
}

// tick brings the integrals up to now, before the state changes.
func (r *simResource) tick(now time.Duration) {
	d := now - r.last
	r.last = now
	r.busy += time.Duration(r.held) * d
	r.foreign += time.Duration(r.foreignHeld) * d
	r.waited += time.Duration(r.waiting) * d
	if r.waiting > 0 && r.held < r.capacity {
		r.idleWaited += d
	}
}

// Full tells whether an Acquire would have to wait.
func (r *simResource) Full() bool { return r.held >= r.capacity }

// Acquire waits for r and tells how long.
func (p *simProc) Acquire(r *simResource) time.Duration {
	from := p.e.now
	if !p.TryAcquire(r) {
		r.enqueue(p)
		p.block()
	}
	return p.e.now - from
}

// AcquireTimeout waits for r for no longer than limit, and tells whether p has
// it.
func (p *simProc) AcquireTimeout(r *simResource, limit time.Duration) bool {
	if p.TryAcquire(r) {
		return true
	}
	w := r.enqueue(p)
	p.e.wake(p, limit)
	p.block()
	if !w.granted {
		r.tick(p.e.now)
		w.gone = true
		r.dequeued(w, p.e.now)
	}
	return w.granted
}

// TryAcquire takes r if it is free.
func (p *simProc) TryAcquire(r *simResource) bool {
	if r.Full() {
		return false
	}
	r.tick(p.e.now)
	r.count(p, 1)
	return true
}

// Release gives r to the next in the queue, who runs as soon as all else that
// is due now has run.
func (p *simProc) Release(r *simResource) {
	r.tick(p.e.now)
	r.count(p, -1)
	w := r.dequeue()
	if w == nil {
		return
	}
	w.granted = true
	r.dequeued(w, p.e.now)
	r.count(w.p, 1)
	p.e.wake(w.p, 0)
}

// Poll says that p begins (1) or ceases (-1) to wait for r by asking for it
// again and again.
func (p *simProc) Poll(r *simResource, n int) {
	r.tick(p.e.now)
	r.waiting += n
}

// CPU uses d of the processors r in quanta. Before each one it waits, and then
// tells for how long and how much it is about to use.
func (p *simProc) CPU(r *simResource, d time.Duration, runs func(queued, used time.Duration)) {
	for d > 0 {
		queued, used := p.Acquire(r), min(d, simQuantum)
		runs(queued, used)
		p.Work(used)
		p.Release(r)
		d -= used
	}
}

func (r *simResource) count(p *simProc, n int) {
	r.held += n
	if p.foreign {
		r.foreignHeld += n
	}
}

func (r *simResource) enqueue(p *simProc) *simWaiter {
	r.tick(p.e.now)
	if !p.foreign {
		r.waiting++
		r.waits++
	}
	w := &simWaiter{p: p, from: p.e.now}
	r.queue = append(r.queue, w)
	return w
}

// dequeue returns the one who has waited longest and waits still, or nil.
func (r *simResource) dequeue() *simWaiter {
	for r.head < len(r.queue) {
		w := r.queue[r.head]
		r.queue[r.head] = nil
		r.head++
		if 2*r.head > len(r.queue) {
			r.queue = r.queue[:copy(r.queue, r.queue[r.head:])]
			r.head = 0
		}
		if !w.gone {
			return w
		}
	}
	return nil
}

func (r *simResource) dequeued(w *simWaiter, now time.Duration) {
	if !w.p.foreign {
		r.waiting--
		r.ended += now - w.from
	}
}
