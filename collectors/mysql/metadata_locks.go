package mysql

import (
	"context"
	"fmt"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the metadata-lock metrics.
const (
	MetadataSource   = "mysql.metadata_locks"
	MetadataWaiters  = "mysql.metadata_lock.waiters"
	MetadataBlockers = "mysql.metadata_lock.blockers"
	MetadataSamples  = "mysql.metadata_lock.samples"
)

// What is locked, with who waits for it and who has it. Whoever waits for the
// same thing himself, to change his lock or behind somebody else, is in the way
// too, but not the one to look for. The table is filled only where the
// instrument of metadata locks is on: MariaDB's default is off.
const metadataQuery = `SELECT p.OBJECT_TYPE, IFNULL(p.OBJECT_NAME, IFNULL(p.OBJECT_SCHEMA, '')), IFNULL(b.PROCESSLIST_ID, 0), IFNULL(b.PROCESSLIST_INFO, ''),
	IFNULL(b.PROCESSLIST_TIME, 0), COUNT(DISTINCT p.OWNER_THREAD_ID)
FROM performance_schema.metadata_locks p
LEFT JOIN performance_schema.metadata_locks g ON g.LOCK_STATUS = 'GRANTED' AND g.OBJECT_TYPE = p.OBJECT_TYPE
	AND g.OBJECT_SCHEMA <=> p.OBJECT_SCHEMA AND g.OBJECT_NAME <=> p.OBJECT_NAME AND g.OWNER_THREAD_ID <> p.OWNER_THREAD_ID
	AND g.OWNER_THREAD_ID NOT IN (SELECT OWNER_THREAD_ID FROM performance_schema.metadata_locks WHERE LOCK_STATUS = 'PENDING')
LEFT JOIN performance_schema.threads b ON b.THREAD_ID = g.OWNER_THREAD_ID
WHERE p.LOCK_STATUS = 'PENDING'
GROUP BY p.OBJECT_TYPE, p.OBJECT_SCHEMA, p.OBJECT_NAME, b.PROCESSLIST_ID, b.PROCESSLIST_INFO, b.PROCESSLIST_TIME
LIMIT 200`

// MetadataLocks samples who waits for a metadata or named lock, and who has it.
type MetadataLocks struct{ Server *Server }

// Name implements collectors.Source.
func (MetadataLocks) Name() string { return MetadataSource }

// Metrics implements collectors.Source.
func (MetadataLocks) Metrics() []metric.Desc {
	return []metric.Desc{
		{Name: MetadataSamples, Unit: metric.One, Kind: metric.Gauge, Help: "1 for each sample of the metadata locks that was taken"},
		{Name: MetadataWaiters, Unit: metric.One, Kind: metric.Gauge, Labels: []string{"type", "object"},
			Help: "connections that wait for this metadata lock now; a named lock has the type USER LEVEL LOCK (metadata_locks)"},
		{Name: MetadataBlockers, Unit: metric.One, Kind: metric.Gauge, Labels: []string{"type", "object", "owner", "thread", "query", "age"},
			Help: "connections that one which has the lock keeps waiting now; owner is load, foreign or unknown, age the seconds in its present state (metadata_locks, threads)"},
	}
}

// Read samples the locks.
func (s MetadataLocks) Read(ctx context.Context, b *record.Batch) error {
	type blocker struct {
		kind, object, query string
		thread              int64
		age                 float64
		waiters             int
	}
	var all []blocker
	err := each(ctx, s.Server.DB, s.Server.limited(metadataQuery), nil, func(scan func(...any) error) error {
		var x blocker
		err := scan(&x.kind, &x.object, &x.thread, &x.query, &x.age, &x.waiters)
		all = append(all, x)
		return err
	})
	var ours threads
	if err == nil && len(all) > 0 {
		ours, err = s.Server.loadThreads(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", MetadataSource, err)
	}
	b.Add(1, MetadataSamples)
	waiters := map[[2]string]int{}
	for _, x := range all {
		k := [2]string{x.kind, x.object}
		waiters[k] = max(waiters[k], x.waiters)
		if x.thread != 0 {
			b.Add(float64(x.waiters), MetadataBlockers, x.kind, x.object, ours.owner(x.thread), fmt.Sprint(x.thread), short(x.query), fmt.Sprintf("%.0f", x.age))
		}
	}
	for k, n := range waiters {
		b.Add(float64(n), MetadataWaiters, k[0], k[1])
	}
	return nil
}
