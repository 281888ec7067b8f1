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

// What somebody waits for, with all who wait for it or have it. Whoever waits for
// the same thing himself, to change his lock, is in the way too, but not the one
// to look for. The table is filled only where the instrument of metadata locks
// is on: MariaDB's default is off.
const metadataQuery = `SELECT m.OBJECT_TYPE, IFNULL(m.OBJECT_SCHEMA, ''), IFNULL(m.OBJECT_NAME, ''), m.LOCK_STATUS = 'PENDING',
	IFNULL(t.PROCESSLIST_ID, 0), IFNULL(t.PROCESSLIST_INFO, ''), IFNULL(t.PROCESSLIST_TIME, 0)
FROM performance_schema.metadata_locks m
LEFT JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID
WHERE EXISTS (SELECT 1 FROM performance_schema.metadata_locks p WHERE p.LOCK_STATUS = 'PENDING' AND p.OBJECT_TYPE = m.OBJECT_TYPE
	AND p.OBJECT_SCHEMA <=> m.OBJECT_SCHEMA AND p.OBJECT_NAME <=> m.OBJECT_NAME)
LIMIT 5000`

// MetadataLocks samples who waits for a metadata or named lock, and who has it.
type MetadataLocks struct{ Server *Server }

// Name implements collectors.Source.
func (MetadataLocks) Name() string { return MetadataSource }

// Metrics implements collectors.Source.
func (MetadataLocks) Metrics() []metric.Desc {
	return []metric.Desc{
		{Name: MetadataSamples, Unit: metric.One, Kind: metric.Gauge, Help: "1 for each sample of the metadata locks that was taken"},
		{Name: MetadataWaiters, Unit: metric.One, Kind: metric.Gauge, Labels: []string{"type", "schema", "object", "owner"},
			Help: "connections that wait for this metadata lock now; a named lock has the type USER LEVEL LOCK; owner is load, foreign or unknown (metadata_locks)"},
		{Name: MetadataBlockers, Unit: metric.One, Kind: metric.Gauge, Labels: []string{"type", "schema", "object", "owner", "thread", "query", "age"},
			Help: "connections that one which has the lock keeps waiting now; owner is load, foreign or unknown, age the seconds in its present state (metadata_locks, threads)"},
	}
}

// lockedThing is what a metadata lock is on.
type lockedThing struct{ kind, schema, object string }

// lockUser is a connection that has a metadata lock or waits for it.
type lockUser struct {
	thread int64
	query  string
	age    float64
}

// Read samples the locks that somebody waits for.
func (s MetadataLocks) Read(ctx context.Context, b *record.Batch) error {
	waiting, having := map[lockedThing]map[int64]bool{}, map[lockedThing][]lockUser{}
	err := each(ctx, s.Server.DB, s.Server.limited(metadataQuery), nil, func(scan func(...any) error) error {
		var l lockedThing
		var u lockUser
		var pending bool
		err := scan(&l.kind, &l.schema, &l.object, &pending, &u.thread, &u.query, &u.age)
		if !pending {
			having[l] = append(having[l], u)
			return err
		}
		if waiting[l] == nil {
			waiting[l] = map[int64]bool{}
		}
		waiting[l][u.thread] = true
		return err
	})
	var ours threads
	if err == nil && len(waiting) > 0 {
		ours, err = s.Server.loadThreads(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", MetadataSource, err)
	}
	b.Add(1, MetadataSamples)
	for l, threads := range waiting {
		owners := map[string]int{}
		for thread := range threads {
			owners[ours.owner(thread)]++
		}
		for owner, n := range owners {
			b.Add(float64(n), MetadataWaiters, l.kind, l.schema, l.object, owner)
		}
		for _, u := range having[l] {
			if u.thread != 0 && !threads[u.thread] {
				b.Add(float64(len(threads)), MetadataBlockers, l.kind, l.schema, l.object, ours.owner(u.thread), fmt.Sprint(u.thread), short(u.query), fmt.Sprintf("%.0f", u.age))
			}
		}
	}
	return nil
}
