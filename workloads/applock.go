package workloads

import "time"

// lockWatch follows the application locks of all operations: how long they are
// free while somebody waits, which is what polling for a lock costs.
type lockWatch struct {
	locks  map[string]*lockState
	idle   time.Duration // free with waiters, of intervals that have ended
	waited time.Duration // with waiters, the same
}

// lockState is one lock as the operations see it.
type lockState struct {
	waiting, holding int
	since            time.Duration // of the present state
	free             time.Duration // for how long it has been free with waiters
}

// change books the time in the state before, and makes the new one. It returns
// for how long the lock has been free with waiters by then.
func (w *lockWatch) change(name string, at time.Duration, waiting, holding int) (free time.Duration) {
	l := w.locks[name]
	if l == nil {
		l = &lockState{since: at}
		w.locks[name] = l
	}
	idle, waited := l.spent(at)
	w.idle, w.waited = w.idle+idle, w.waited+waited
	free = l.free + idle
	l.waiting, l.holding, l.since, l.free = l.waiting+waiting, l.holding+holding, at, free
	if l.waiting == 0 || l.holding > 0 {
		l.free = 0
	}
	if l.waiting == 0 && l.holding == 0 {
		delete(w.locks, name)
	}
	return free
}

// spent is the time in the present state: free with waiters, and with waiters.
func (l *lockState) spent(at time.Duration) (idle, waited time.Duration) {
	if l.waiting == 0 {
		return 0, 0
	}
	waited = at - l.since
	if l.holding == 0 {
		idle = waited
	}
	return idle, waited
}

// read is what has added up until now, open intervals included.
func (w *lockWatch) read(at time.Duration) (idle, waited time.Duration) {
	idle, waited = w.idle, w.waited
	for _, l := range w.locks {
		i, d := l.spent(at)
		idle, waited = idle+i, waited+d
	}
	return idle, waited
}
