package workloads

import (
	"cmp"
	"context"
	"maps"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxNamedKeys bounds how many keys of rows get a name of their own in a run.
const maxNamedKeys = 16

// A key gets its name once it carries this share of all the waiting for keyed
// resources so far, and this many waits for it have ended. The share is below
// 1/maxNamedKeys, so that sixteen equally hot keys all get one; the count keeps
// chance collisions among many cold keys from using up the names.
const (
	nameShare = 1.0 / 64
	nameWaits = 8
)

// Meter adds up the time that operations spend, per operation, stage, resource
// asked for and resources held. Reading it includes the operations that are
// still open. All methods are safe for concurrent use.
//
// The state of one operation is a cell that many operations share; a cell
// keeps how many are in it and the sum of the times they entered, so that a
// reading costs a step per cell and not per operation.
//
// A goroutine that performs an operation bears the labels OperationLabel and
// StageLabel, by which a CPU profile can be read.
type Meter struct {
	now func() time.Duration

	mu       sync.Mutex
	cells    map[Cell]*cell
	joins    map[string]string // interned lists of held resources
	finished map[Finished]uint64
	counted  map[Counted]uint64
	keys     map[string]*key // keyed resources in use, or waited for
	named    map[string]bool // keys with a name of their own
	waited   time.Duration   // all ended waiting for keyed resources
	locks    lockWatch
	buf      []byte
}

// Labels of goroutines in CPU profiles.
const (
	OperationLabel = "operation"
	StageLabel     = "stage"
)

// mark labels the goroutine by the operation's state. Only the operation's own
// goroutine calls its methods, so that its cell needs no lock here.
func (o *Op) mark() { pprof.SetGoroutineLabels(o.cell.labels) }

// Cell is one combination of what an operation can be doing.
type Cell struct {
	Operation string
	Stage     Stage
	Asked     string // the resource asked for, "" if none
	Held      string // the resources held, sorted and joined with '+'
	Retry     bool   // an earlier attempt of the operation has failed
}

type cell struct {
	Cell
	labels  context.Context // pprof labels of the operation and its stage
	closed  time.Duration   // of stays that have ended
	entries uint64
	open    int           // operations in the cell now
	entered time.Duration // sum of the times at which those entered
}

// Finished counts operations by how they ended.
type Finished struct {
	Operation string
	Outcome   Outcome
}

// Counted counts what happened inside operations, such as lost races.
type Counted struct {
	Operation string
	What      string
}

type key struct {
	users  int // operations that ask for the key or hold it
	waits  int
	waited time.Duration
}

// NewMeter makes a meter on the given clock, which must never go back.
func NewMeter(now func() time.Duration) *Meter {
	return &Meter{
		now:      now,
		cells:    map[Cell]*cell{},
		joins:    map[string]string{},
		finished: map[Finished]uint64{},
		counted:  map[Counted]uint64{},
		keys:     map[string]*key{},
		named:    map[string]bool{},
		locks:    lockWatch{locks: map[string]*lockState{}},
	}
}

// Total is what a Cell has added up to.
type Total struct {
	Cell
	Seconds float64 // of all stays, open ones included
	Entries uint64
	Open    int // operations in the cell now
}

// Reading is the meter at one moment.
type Reading struct {
	At       time.Duration
	Totals   []Total // sorted by cell
	Finished map[Finished]uint64
	Counted  map[Counted]uint64
	// LockIdle is for how many seconds application locks were free while
	// operations waited for them, LockWaited for how many operations waited:
	// sums over the locks.
	LockIdle, LockWaited float64
}

// Read takes a reading.
func (m *Meter) Read() Reading {
	m.mu.Lock()
	at := m.now()
	r := Reading{At: at, Totals: make([]Total, 0, len(m.cells)), Finished: maps.Clone(m.finished), Counted: maps.Clone(m.counted)}
	for _, c := range m.cells {
		spent := c.closed + time.Duration(c.open)*at - c.entered
		r.Totals = append(r.Totals, Total{Cell: c.Cell, Seconds: spent.Seconds(), Entries: c.entries, Open: c.open})
	}
	idle, waited := m.locks.read(at)
	m.mu.Unlock()
	r.LockIdle, r.LockWaited = idle.Seconds(), waited.Seconds()
	slices.SortFunc(r.Totals, func(a, b Total) int { return compareCells(a.Cell, b.Cell) })
	return r
}

func compareCells(a, b Cell) int {
	return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Asked, b.Asked), cmp.Compare(a.Held, b.Held), compareBools(a.Retry, b.Retry))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Op is one operation under the meter. Its methods are for one goroutine at a
// time; they panic if the calls do not fit together (holding what was not
// asked for), since that is a fault of the workload's code.
type Op struct {
	m         *Meter
	operation string
	began     time.Duration
	cell      *cell
	since     time.Duration
	asked     ask
	held      []hold
	retry     bool
	spent     map[Stage]time.Duration
	poolHold  time.Duration
	lockHold  time.Duration
	handoff   time.Duration
}

type ask struct {
	r         Resource
	label     string
	at        time.Duration
	contended bool
}

type hold struct {
	r     Resource
	label string
	since time.Duration
}

// Done is an operation that has ended.
type Done struct {
	Operation string
	Outcome   Outcome
	Start     time.Duration
	End       time.Duration
	// Spent is the time in each stage that the operation was in.
	Spent map[Stage]time.Duration
	// PoolHold is the time for which it held pooled connections.
	PoolHold time.Duration
	// LockHold is the time for which it held application locks, and Handoff for
	// how long those were free, with operations waiting, before it got them.
	LockHold, Handoff time.Duration
}

// Begin starts an operation, in stage App.
func (m *Meter) Begin(operation string) *Op {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.now()
	o := &Op{m: m, operation: operation, began: at, since: at, spent: make(map[Stage]time.Duration, 6)}
	o.move(at, App)
	o.mark()
	return o
}

// BeginDue starts an operation that was due at a time that has passed, in stage
// Queue, where it asks for r: its time counts from when it was due.
func (m *Meter) BeginDue(operation string, due time.Duration, r Resource) *Op {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := &Op{m: m, operation: operation, began: due, since: due, spent: make(map[Stage]time.Duration, 6)}
	o.asked = ask{r: r, at: due, label: m.label(r)}
	o.move(due, Queue)
	return o
}

// Retry says that an attempt of the operation has failed, and that all that
// follows is for another one.
func (o *Op) Retry() {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.retry = true
}

// Count counts something that happened in the operation, under a name.
func (o *Op) Count(what string) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.m.counted[Counted{o.operation, what}]++
}

// Enter puts the operation into a stage in which it asks for nothing. A
// resource it was asking for is given up.
func (o *Op) Enter(s Stage) {
	defer o.mark()
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	at := o.m.now()
	o.giveUp(at)
	o.move(at, s)
}

// In changes the stage only: what is asked for stays asked for, such as a pool
// whose connection is being dialled.
func (o *Op) In(s Stage) {
	defer o.mark()
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.move(o.m.now(), s)
}

// Ask puts the operation into a stage in which it asks for r, until Hold, Enter
// or End.
func (o *Op) Ask(s Stage, r Resource) {
	defer o.mark()
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	at := o.m.now()
	o.giveUp(at)
	o.asked = ask{r: r, at: at, label: o.m.label(r)}
	if r.rest != "" {
		k := o.m.key(r)
		o.asked.contended = k.users > 0
		k.users++
	}
	if r.isAppLock() {
		o.m.locks.change(r.name, at, 1, 0)
	}
	o.move(at, s)
}

// Hold says that the operation has what it asked for, and is in its own code.
func (o *Op) Hold() {
	defer o.mark()
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	at := o.m.now()
	if o.asked.r == (Resource{}) {
		panic("workloads: Hold without Ask")
	}
	r := o.asked.r
	if r.rest != "" {
		o.m.keys[r.name].users++ // giveUp takes the asker's use away
	}
	if r.isAppLock() {
		o.handoff += o.m.locks.change(r.name, at, 0, 1)
	}
	o.giveUp(at)
	o.held = append(o.held, hold{r: r, label: o.m.label(r), since: at})
	o.move(at, App)
}

// Drop says that the operation holds r no more, and is in its own code.
// Dropping what is not held does nothing, so that cleaning up is simple.
func (o *Op) Drop(r Resource) {
	defer o.mark()
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	at := o.m.now()
	for i := len(o.held) - 1; i >= 0; i-- {
		if o.held[i].r == r {
			o.drop(at, i)
			o.move(at, App)
			return
		}
	}
}

// End finishes the operation; whatever it still asks for or holds is dropped.
func (o *Op) End(outcome Outcome) Done {
	pprof.SetGoroutineLabels(context.Background())
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	at := o.m.now()
	o.giveUp(at)
	for len(o.held) > 0 {
		o.drop(at, len(o.held)-1)
	}
	o.leave(at)
	o.cell = nil
	o.m.finished[Finished{o.operation, outcome}]++
	return Done{Operation: o.operation, Outcome: outcome, Start: o.began, End: at, Spent: o.spent, PoolHold: o.poolHold, LockHold: o.lockHold, Handoff: o.handoff}
}

func (o *Op) drop(at time.Duration, i int) {
	h := o.held[i]
	if h.r.rest != "" {
		o.m.release(h.r)
	}
	if strings.HasPrefix(h.r.name, "pool:") {
		o.poolHold += at - h.since
	}
	if h.r.isAppLock() {
		o.lockHold += at - h.since
		o.m.locks.change(h.r.name, at, 0, -1)
	}
	o.held = slices.Delete(o.held, i, i+1)
}

// giveUp ends an open ask, and books its waiting on the key.
func (o *Op) giveUp(at time.Duration) {
	a := o.asked
	o.asked = ask{}
	if a.r.rest == "" {
		return
	}
	if a.r.isAppLock() {
		o.m.locks.change(a.r.name, at, -1, 0)
	}
	if a.contended {
		o.m.waitedFor(a.r, at-a.at)
	}
	o.m.release(a.r)
}

// move books the time in the present cell and enters the one that the
// operation's state now says.
func (o *Op) move(at time.Duration, s Stage) {
	if o.cell != nil {
		o.leave(at)
	}
	c := o.m.cell(Cell{Operation: o.operation, Stage: s, Asked: o.asked.label, Held: o.m.join(o.held), Retry: o.retry})
	c.entries++
	c.open++
	c.entered += at
	o.cell, o.since = c, at
}

func (o *Op) leave(at time.Duration) {
	c := o.cell
	c.open--
	c.entered -= o.since
	c.closed += at - o.since
	o.spent[c.Stage] += at - o.since
}

func (m *Meter) cell(id Cell) *cell {
	c := m.cells[id]
	if c == nil {
		c = &cell{Cell: id, labels: pprof.WithLabels(context.Background(), pprof.Labels(OperationLabel, id.Operation, StageLabel, string(id.Stage)))}
		m.cells[id] = c
	}
	return c
}

// join interns the sorted names of what is held, each as often as it is held.
func (m *Meter) join(held []hold) string {
	switch len(held) {
	case 0:
		return ""
	case 1:
		return held[0].label
	}
	labels := make([]string, len(held))
	for i, h := range held {
		labels[i] = h.label
	}
	slices.Sort(labels)
	m.buf = m.buf[:0]
	for i, l := range labels {
		if i > 0 {
			m.buf = append(m.buf, '+')
		}
		m.buf = append(m.buf, l...)
	}
	s, ok := m.joins[string(m.buf)]
	if !ok {
		s = string(m.buf)
		m.joins[s] = s
	}
	return s
}

func (m *Meter) label(r Resource) string {
	if r.rest != "" && !m.named[r.name] {
		return r.rest
	}
	return r.name
}

func (m *Meter) key(r Resource) *key {
	k := m.keys[r.name]
	if k == nil {
		k = &key{}
		m.keys[r.name] = k
	}
	return k
}

// release takes one use of a key away, and forgets keys that nobody ever
// waited for: a run may touch millions.
func (m *Meter) release(r Resource) {
	k := m.keys[r.name]
	if k.users--; k.users == 0 && k.waits == 0 {
		delete(m.keys, r.name)
	}
}

func (m *Meter) waitedFor(r Resource, d time.Duration) {
	k := m.keys[r.name]
	k.waits++
	k.waited += d
	m.waited += d
	if k.waits >= nameWaits && len(m.named) < maxNamedKeys && float64(k.waited) >= nameShare*float64(m.waited) {
		m.named[r.name] = true
	}
}
