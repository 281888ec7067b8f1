package analysis_test

import (
	"maps"
	"math"
	"time"
)

// Digests of the statements that the cases run.
const (
	simBegin  = "begin"
	simLock   = "select_for_update"
	simUpdate = "update"
	simCommit = "commit"
	simSelect = "select"
	simSleep  = "sleep"
)

// simDigest is what the server knows of one kind of statement. Like a real
// server it adds a statement when it has ended.
type simDigest struct {
	Count        uint64
	Timer        time.Duration
	RowLock      time.Duration // waiting for row locks
	RowLockWaits uint64
	MetadataLock time.Duration // waiting for metadata locks
	CPU          time.Duration
	RunQueue     time.Duration // ready to run without a processor
	Max          time.Duration
}

func (d *simDigest) add(s *simDigest) {
	d.Count++
	d.Timer += s.Timer
	d.RowLock += s.RowLock
	d.RowLockWaits += s.RowLockWaits
	d.MetadataLock += s.MetadataLock
	d.CPU += s.CPU
	d.RunQueue += s.RunQueue
	d.Max = max(d.Max, s.Timer)
}

// simCounters are the truth that no client sees, since the start.
type simCounters struct {
	digests map[string]*simDigest
	running int // statements in the server now

	// InnoDB's own counters, waits of foreign transactions included.
	rowWaits    uint64 // begun
	rowWaiting  int
	rowTime     time.Duration // ended, exact
	rowTimeMill uint64        // ended, each cut down to whole milliseconds

	dbCPU, dbQueued   time.Duration
	appCPU, appQueued time.Duration
	appWaits          uint64 // for a processor, of the application's goroutines
	wakeups           uint64 // of goroutines: round trips and grants
	sched             map[int]uint64
	mutexWait         time.Duration
	foreignCPU        time.Duration
	unpooled          int // operations that have a connection of an unlimited pool
}

func newSimCounters() *simCounters {
	return &simCounters{digests: map[string]*simDigest{}, sched: map[int]uint64{}}
}

func (c *simCounters) clone() *simCounters {
	n := *c
	n.sched = maps.Clone(c.sched)
	n.digests = make(map[string]*simDigest, len(c.digests))
	for name, d := range c.digests {
		copied := *d
		n.digests[name] = &copied
	}
	return &n
}

func (c *simCounters) ended(digest string, s *simDigest) {
	d := c.digests[digest]
	if d == nil {
		d = &simDigest{}
		c.digests[digest] = d
	}
	d.add(s)
}

// rowWait takes the row for p, and tells how long p waited and whether.
func (c *simCounters) rowWait(p *simProc, row *simResource) (time.Duration, uint64) {
	if p.TryAcquire(row) {
		return 0, 0
	}
	c.rowWaits++
	c.rowWaiting++
	waited := p.Acquire(row)
	c.rowWaiting--
	c.rowTime += waited
	c.rowTimeMill += uint64(waited / time.Millisecond)
	return waited, 1
}

// simWakeup is how long a goroutine stands runnable on an idle machine.
const simWakeup = 5 * time.Microsecond

// woke books how long a goroutine stood runnable before it ran.
func (c *simCounters) woke(queued time.Duration) {
	if queued > 0 {
		c.appQueued += queued
		c.appWaits++
	} else {
		queued = simWakeup
	}
	c.sched[simBucket(queued)]++
}

// Four buckets to a doubling, as fine as those of the Go runtime.
const simBucketsPerOctave = 4

func simBucket(d time.Duration) int {
	return int(math.Floor(simBucketsPerOctave * math.Log2(d.Seconds())))
}

func simBucketBounds(i int) (lower, upper float64) {
	return math.Exp2(float64(i) / simBucketsPerOctave), math.Exp2(float64(i+1) / simBucketsPerOctave)
}
