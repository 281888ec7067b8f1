package analysis_test

import (
	"cmp"
	"math/rand/v2"
	"strconv"
	"time"

	"chokepoint/workloads"
)

// simTable and simOperation are what the load works on, and is called.
const (
	simTable     = "stock"
	simOperation = "buy"
)

// simOptions say how a case is run and seen; the zero value will do.
type simOptions struct {
	seed uint64 // 0 is 1
	// flavor is that of the database, "mariadb" or "mysql"; "" is mariadb. The
	// truth is the same, what the server tells of it is not.
	flavor string
	// hidden says that the database runs elsewhere, where nobody sees its CPU.
	hidden bool
	// network is what each round trip takes beside its time in the server.
	network time.Duration
	warmup  time.Duration // 0 is a fifth of the measured time, at most 1 s
}

// simWorld is one system that runs.
type simWorld struct {
	engine  *simEngine
	rnd     *rand.Rand
	params  simParams
	options simOptions
	op      func(c *simClient) workloads.Outcome

	pool, slot, mutex, lock, mdl *simResource
	rows                         []*simResource
	dbCPU, appCPU                *simResource

	meter    *workloads.Meter
	counters *simCounters
	rec      *simRecorder // nil if nobody writes it down

	active int // operations and workers that the driver waits for
	driver *simProc
	until  time.Duration // no operation starts after
	over   bool
	tally  *simTally // of the present phase
	err    error
}

func newSimWorld(c simCase, o simOptions) *simWorld {
	if o.seed == 0 {
		o.seed = 1
	}
	p := c.params
	e := &simEngine{}
	w := &simWorld{
		engine: e, rnd: rand.New(rand.NewPCG(o.seed, 0)), params: p, options: o, op: c.op,
		meter: workloads.NewMeter(func() time.Duration { return e.now }), counters: newSimCounters(),
		pool:  newSimResource("pool:mysql", capacity(p.Pool)),
		slot:  newSimResource("slot", capacity(p.Slots)),
		mutex: newSimResource("mutex:price", capacity(p.Mutexes)),
		lock:  newSimResource("applock:sale", 1),
		mdl:   newSimResource("mdl:"+simTable, 1),
		rows:  make([]*simResource, p.Rows),
	}
	for i := range w.rows {
		w.rows[i] = newSimResource("row:"+simTable+"/"+strconv.Itoa(i+1), 1)
	}
	w.addProcessors(p)
	return w
}

func capacity(n int) int {
	if n == 0 {
		return simUnlimited
	}
	return n
}

func (w *simWorld) addProcessors(p simParams) {
	switch p.Processors {
	case simDatabaseCPU:
		w.dbCPU = newSimResource(p.Processors, p.Cores)
	case simAppCPU:
		w.appCPU = newSimResource(p.Processors, p.Cores)
	case simMachineCPU:
		w.dbCPU = newSimResource(p.Processors, p.Cores)
		w.appCPU = w.dbCPU
	}
}

// resources are those that the case has.
func (w *simWorld) resources() []*simResource {
	all := append([]*simResource{w.mdl}, w.rows...)
	for _, r := range []*simResource{w.pool, w.slot, w.mutex, w.lock} {
		if r.capacity < simUnlimited {
			all = append(all, r)
		}
	}
	if w.dbCPU != nil {
		all = append(all, w.dbCPU)
	}
	if w.appCPU != nil && w.appCPU != w.dbCPU {
		all = append(all, w.appCPU)
	}
	return all
}

func (w *simWorld) draw(mean time.Duration) time.Duration { return simErlang(w.rnd, mean) }

func (w *simWorld) pickRow() (*simResource, workloads.Resource) {
	i := w.rnd.IntN(len(w.rows))
	return w.rows[i], workloads.Row(simTable, strconv.Itoa(i+1))
}

// load starts operations for d and returns when the last one has ended.
func (w *simWorld) load(p *simProc, d time.Duration) {
	w.until = w.engine.now + d
	w.tally = newSimTally(w.until)
	if w.params.Rate > 0 {
		w.join(w.arrivals)
	}
	for range w.params.N {
		w.join(w.worker)
	}
	for w.active > 0 {
		p.block()
	}
}

// join starts a process for which load waits.
func (w *simWorld) join(body func(p *simProc)) {
	w.active++
	w.engine.Spawn(false, func(p *simProc) {
		body(p)
		if w.active--; w.active == 0 {
			w.engine.wake(w.driver, 0)
		}
	})
}

func (w *simWorld) open() bool { return w.engine.now < w.until }

func (w *simWorld) worker(p *simProc) {
	for w.open() {
		if p.Work(w.draw(w.params.Think)); !w.open() {
			return
		}
		w.perform(p, w.op)
	}
}

func (w *simWorld) arrivals(p *simProc) {
	for {
		p.Work(time.Duration(w.rnd.ExpFloat64() / w.params.Rate * float64(time.Second)))
		if !w.open() {
			return
		}
		w.join(func(p *simProc) { w.perform(p, w.queued) })
	}
}

// queued is an operation of an open loop, which waits for a slot first.
func (w *simWorld) queued(c *simClient) workloads.Outcome {
	slot := workloads.Named(w.slot.name)
	c.op.Ask(workloads.Queue, slot)
	c.p.Acquire(w.slot)
	c.op.Hold()
	outcome := w.op(c)
	c.p.Release(w.slot)
	c.op.Drop(slot)
	return outcome
}

func (w *simWorld) perform(p *simProc, op func(c *simClient) workloads.Outcome) {
	c := &simClient{w: w, p: p, op: w.meter.Begin(simOperation)}
	w.err = cmp.Or(w.err, w.tally.add(c.op.End(op(c))))
}

// foreigners starts what is not of the load. They begin with the measured
// phase, so that their times are those of the phase, and end with it.
func (w *simWorld) foreigners() {
	for range w.params.Hogs {
		w.engine.Spawn(true, w.hog)
	}
	if w.params.ForeignHolds > 0 {
		w.engine.Spawn(true, w.longTransaction)
	}
	if w.params.AlterTakes > 0 {
		w.engine.Spawn(true, w.alter)
	}
}

func (w *simWorld) hog(p *simProc) {
	for !w.over {
		p.Acquire(w.appCPU)
		p.Work(w.params.HogRuns)
		w.counters.foreignCPU += w.params.HogRuns
		p.Release(w.appCPU)
		p.Work(w.draw(w.params.HogPauses))
	}
}

func (w *simWorld) longTransaction(p *simProc) {
	for {
		p.Work(w.params.ForeignEvery - w.params.ForeignHolds)
		if w.over {
			return
		}
		w.counters.rowWait(p, w.rows[0])
		p.Work(w.params.ForeignHolds)
		p.Release(w.rows[0])
	}
}

func (w *simWorld) alter(p *simProc) {
	p.Work(w.params.AlterAt)
	p.Acquire(w.mdl)
	p.Work(w.params.AlterTakes)
	p.Release(w.mdl)
}
