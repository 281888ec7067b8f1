package analysis_test

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"chokepoint/collectors/goruntime"
	"chokepoint/collectors/host"
	"chokepoint/collectors/mysql"
	"chokepoint/collectors/pool"
	"chokepoint/collectors/record"
)

// simSources are all sources but the operations and the pings, in the order in
// which they are read.
func simSources() []string {
	return []string{mysql.DigestsSource, mysql.StatusSource, mysql.InnodbSource, mysql.StatementsSource, mysql.WaitsSource, "pool", "go", "host"}
}

// simReadings are the sources that the simulation plays.
func simReadings() map[string]func(w *simWorld, b *record.Batch) {
	return map[string]func(w *simWorld, b *record.Batch){
		mysql.DigestsSource:    readDigests,
		mysql.StatusSource:     readStatus,
		mysql.InnodbSource:     readInnodb,
		mysql.StatementsSource: readStatements,
		mysql.WaitsSource:      readWaits,
		mysql.LocksSource:      readLocks,
		"pool":                 readPool,
		"go":                   readGo,
		"host":                 readHost,
	}
}

// readDigests tells lock time as the flavour does: MySQL counts row locks,
// MariaDB metadata locks.
func readDigests(w *simWorld, b *record.Batch) {
	for name, d := range w.counters.digests {
		lock := d.RowLock
		if w.flavor() == mysql.MariaDB {
			lock = d.MetadataLock
		}
		changed, sent, examined := simRowCounts(name)
		n := float64(d.Count)
		b.Add(n, mysql.DigestCount, name)
		b.Add(d.Timer.Seconds(), mysql.DigestTimer, name)
		b.Add(lock.Seconds(), mysql.DigestLock, name)
		b.Add(d.Max.Seconds(), mysql.DigestMax, name)
		b.Add(0, mysql.DigestErrors, name)
		b.Add(n*changed, mysql.DigestRowsAffected, name)
		b.Add(n*sent, mysql.DigestRowsSent, name)
		b.Add(n*examined, mysql.DigestRowsExamined, name)
	}
}

// readLocks samples who waits for rows, and whether the load or somebody else
// holds them: that one, since it began.
func readLocks(w *simWorld, b *record.Batch) {
	b.Add(1, mysql.LockSamples)
	for _, row := range w.rows {
		if row.waiting == 0 {
			continue
		}
		key := strings.TrimPrefix(row.name, "row:stock/")
		owner, thread, age := "load", "7", "0"
		if row.foreignHeld > 0 {
			owner, thread, age = "foreign", "99", "1"
		}
		b.Add(float64(row.waiting), mysql.LockWaiters, "stock", "PRIMARY", key, "X")
		b.Add(float64(row.waiting), mysql.LockBlockers, "stock", "PRIMARY", key, owner, thread, "", age)
	}
}

// readWaits tells metadata-lock waits where the instrument is on by default.
func readWaits(w *simWorld, b *record.Batch) {
	var waited time.Duration
	for _, d := range w.counters.digests {
		waited += d.MetadataLock
	}
	if w.flavor() == mysql.MySQL {
		b.Add(waited.Seconds(), mysql.WaitTimer, mysql.MetadataWait)
	}
}

func simRowCounts(digest string) (changed, sent, examined float64) {
	switch digest {
	case simLock, simSelect:
		return 0, 1, 1
	case simUpdate:
		return 1, 0, 1
	case simSleep:
		return 0, 1, 0
	}
	return 0, 0, 0
}

// tell writes the texts of digests seen for the first time.
func (r *simRecorder) tell(w *simWorld) {
	for _, name := range slices.Sorted(maps.Keys(w.counters.digests)) {
		if !r.told[name] {
			r.told[name] = true
			r.event(record.Event{T: w.engine.now.Seconds(), Kind: record.Statement, Source: mysql.DigestsSource, Text: simText(w.flavor(), name), Labels: map[string]string{"digest": name}})
		}
	}
}

// simText is the text of a digest as the flavour prints it: MariaDB leaves a
// blank at the end, and writes identifiers that look like keywords bare.
func simText(flavor, digest string) string {
	id, end := "ID", " "
	if flavor == mysql.MySQL {
		id, end = "`id`", ""
	}
	switch digest {
	case simBegin:
		return "START TRANSACTION" + end
	case simLock:
		return "SELECT `quantity` FROM `stock` WHERE " + id + " = ? FOR UPDATE" + end
	case simUpdate:
		return "UPDATE `stock` SET `quantity` = `quantity` - ? WHERE " + id + " = ?" + end
	case simCommit:
		return "COMMIT" + end
	case simSelect:
		return "SELECT `quantity` FROM `stock` WHERE " + id + " = ?" + end
	case simSleep:
		return "SELECT SLEEP (?)" + end
	}
	panic("no text for digest " + digest)
}

func readStatus(w *simWorld, b *record.Batch) {
	c := w.counters
	mill := uint64(c.rowTime / time.Millisecond)
	if w.flavor() == mysql.MariaDB {
		mill = c.rowTimeMill
	}
	b.Add(math.Floor(w.engine.now.Seconds())+60, mysql.Uptime)
	b.Add(float64(mill)/1e3, mysql.RowLockTime)
	b.Add(float64(c.rowWaits), mysql.RowLockWaits)
	b.Add(float64(c.rowWaiting), mysql.RowLockCurrent)
	b.Add(0, mysql.DigestLost)
	b.Add(float64(w.connections()+simConns), mysql.ThreadsConnected)
	b.Add(float64(c.running+1), mysql.ThreadsRunning) // the observer's SHOW STATUS too
	b.Add(0, mysql.AbortedClients)
}

func readInnodb(_ *simWorld, b *record.Batch) {
	b.Add(0, mysql.Deadlocks)
	b.Add(0, mysql.LockTimeouts)
}

func readStatements(_ *simWorld, b *record.Batch) {
	b.Add(0, mysql.StatementCount, mysql.ExecuteStatement)
	b.Add(0, mysql.StatementTimer, mysql.ExecuteStatement)
}

// connections are those that the load's pool keeps open.
func (w *simWorld) connections() int {
	if w.params.Pool > 0 {
		return w.params.Pool
	}
	return w.params.N
}

func readPool(w *simWorld, b *record.Batch) {
	used := w.counters.unpooled
	if w.params.Pool > 0 {
		used = w.pool.held
	}
	b.Add(float64(w.params.Pool), pool.MaxOpen, "mysql")
	b.Add(float64(w.connections()), pool.Open, "mysql")
	b.Add(float64(used), pool.InUse, "mysql")
	b.Add(float64(w.connections()-used), pool.Idle, "mysql")
	b.Add(float64(w.pool.waits), pool.WaitCount, "mysql")
	b.Add(w.pool.ended.Seconds(), pool.WaitSeconds, "mysql")
	for _, reason := range []string{"max_idle", "max_idle_time", "max_lifetime"} {
		b.Add(0, pool.Closed, "mysql", reason)
	}
}

func readGo(w *simWorld, b *record.Batch) {
	c := w.counters
	for i, n := range c.sched {
		lower, upper := simBucketBounds(i)
		b.Add(float64(n), goruntime.SchedLatency, simBound(lower), simBound(upper))
	}
	b.Add(c.appCPU.Seconds(), goruntime.CPUSeconds, "user")
	for _, class := range []string{"gc", "gc_assist", "scavenge"} {
		b.Add(0, goruntime.CPUSeconds, class)
	}
	b.Add(max(0, w.engine.now.Seconds()*float64(w.cpus())-c.appCPU.Seconds()), goruntime.CPUSeconds, "idle")
	b.Add(0, goruntime.GCCycles)
	b.Add(c.mutexWait.Seconds(), goruntime.MutexWait)
	b.Add(float64(w.active+simGoroutines), goruntime.Goroutines)
	b.Add(4<<20, goruntime.HeapBytes)
	b.Add(float64(w.cpus()), goruntime.GOMAXPROCS)
}

// simBound writes the bound of a bucket as the source "go" does.
func simBound(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// readHost tells the CPU of the application's machine. A database that is not
// seen runs on another one, unless the case has them share theirs.
//
// A goroutine that waits for a processor which other processes have stands in
// the queue of the kernel and is runnable for the Go scheduler: both sources
// tell of it.
func readHost(w *simWorld, b *record.Batch) {
	c := w.counters
	busy := c.appCPU + c.foreignCPU
	if !w.options.hidden || w.params.Processors == simMachineCPU {
		busy += c.dbCPU
	}
	user := ticks(busy.Seconds())
	b.Add(user, host.CPUSeconds, "user")
	b.Add(max(0, ticks(w.engine.now.Seconds()*float64(w.cpus())-user)), host.CPUSeconds, "idle")
	for _, mode := range []string{"nice", "system", "iowait", "irq", "softirq", "steal"} {
		b.Add(0, host.CPUSeconds, mode)
	}
	b.Add(c.appCPU.Seconds(), host.ProcessCPU, simProcess)
	b.Add(c.appQueued.Seconds(), host.ProcessRunQueue, simProcess)
	if name := w.database(); name != "" {
		b.Add(c.dbCPU.Seconds(), host.ProcessCPU, name)
		b.Add(c.dbQueued.Seconds(), host.ProcessRunQueue, name)
	}
}

// ticks cuts down to the steps of /proc/stat.
func ticks(seconds float64) float64 { return math.Floor(seconds*100) / 100 }
