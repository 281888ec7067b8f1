package analysis_test

import "time"

// simTruth is what really went on in the measured phase, in seconds.
type simTruth struct {
	Resources map[string]simUse
	Digests   map[string]simDigest
	// DatabaseCPU and AppCPU are what the load used; queued is the time its
	// threads stood ready without a processor.
	DatabaseCPU, DatabaseQueued float64
	AppCPU, AppQueued           float64
	AppWaits                    uint64 // of goroutines for a processor
	Wakeups                     uint64 // of goroutines: round trips and grants
	ForeignCPU                  float64
	// RowLock is the waiting for row locks, foreign transactions included.
	RowLock float64
}

// simUse is the use of one resource in the measured phase.
type simUse struct {
	Capacity    int
	Held        float64 // unit seconds, by anybody
	Foreign     float64 // of these by others than the load
	Waited      float64 // operation seconds
	Utilisation float64 // Held by capacity and time
	WaitingMean float64 // mean number of operations that wait
	IdleWaited  float64 // share of time: free, and somebody polls all the same
}

func newSimTruth(from, to simSnapshot) simTruth {
	a, b := from.counters, to.counters
	t := simTruth{
		Resources:   map[string]simUse{},
		Digests:     map[string]simDigest{},
		DatabaseCPU: (b.dbCPU - a.dbCPU).Seconds(), DatabaseQueued: (b.dbQueued - a.dbQueued).Seconds(),
		AppCPU: (b.appCPU - a.appCPU).Seconds(), AppQueued: (b.appQueued - a.appQueued).Seconds(),
		AppWaits: b.appWaits - a.appWaits, Wakeups: b.wakeups - a.wakeups,
		ForeignCPU: (b.foreignCPU - a.foreignCPU).Seconds(),
		RowLock:    (b.rowTime - a.rowTime).Seconds(),
	}
	for i, r := range to.resources {
		t.Resources[r.name] = newSimUse(from.resources[i], r, to.at-from.at)
	}
	for name, d := range b.digests {
		t.Digests[name] = d.since(a.digests[name])
	}
	return t
}

func newSimUse(a, b simResource, took time.Duration) simUse {
	u := simUse{
		Capacity: b.capacity,
		Held:     (b.busy - a.busy).Seconds(),
		Foreign:  (b.foreign - a.foreign).Seconds(),
		Waited:   (b.waited - a.waited).Seconds(),
	}
	u.Utilisation = u.Held / float64(b.capacity) / took.Seconds()
	u.WaitingMean = u.Waited / took.Seconds()
	u.IdleWaited = (b.idleWaited - a.idleWaited).Seconds() / took.Seconds()
	return u
}

// since is the growth of d; a is nil if there was none of it before. Max is
// that of all time, as a server has it.
func (d *simDigest) since(a *simDigest) simDigest {
	if a == nil {
		return *d
	}
	return simDigest{
		Count: d.Count - a.Count, Timer: d.Timer - a.Timer, RowLock: d.RowLock - a.RowLock, RowLockWaits: d.RowLockWaits - a.RowLockWaits,
		MetadataLock: d.MetadataLock - a.MetadataLock, CPU: d.CPU - a.CPU, RunQueue: d.RunQueue - a.RunQueue, Max: d.Max,
	}
}
