package mysql

import (
	"context"
	"fmt"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the wait metrics.
const (
	WaitsSource = "mysql.waits"
	WaitCount   = "mysql.wait.count"
	WaitTimer   = "mysql.wait.timer"
	// MetadataWait is the event of metadata and user-level locks; its
	// instrument is on by default on MySQL and off on MariaDB.
	MetadataWait = "wait/lock/metadata/sql/mdl"
	// TableIOWait is the event of all work in storage engines, row-lock waits
	// included.
	TableIOWait = "wait/io/table/sql/handler"
)

const waitsQuery = `SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT
FROM performance_schema.events_waits_summary_global_by_event_name
WHERE EVENT_NAME IN ('wait/lock/metadata/sql/mdl', 'wait/io/table/sql/handler')`

type waitRow struct {
	event        string
	count, timer uint64
}

// waits reads how long sessions waited for metadata locks and for storage
// engines, in the whole server.
type waits struct{ server *Server }

func (waits) Name() string { return WaitsSource }

func (waits) Metrics() []metric.Desc {
	labels := []string{"event"}
	return []metric.Desc{
		{Name: WaitCount, Unit: metric.One, Kind: metric.Counter, Labels: labels, Help: "waits of this event that have ended, in the whole server (COUNT_STAR)"},
		{Name: WaitTimer, Unit: metric.Seconds, Kind: metric.Counter, Labels: labels, Wrap: wrap, Help: "their time (SUM_TIMER_WAIT)"},
	}
}

func (s waits) Read(ctx context.Context, b *record.Batch) error {
	rows, err := s.server.DB.QueryContext(ctx, waitsQuery)
	if err != nil {
		return fmt.Errorf("%s: %w", WaitsSource, err)
	}
	defer rows.Close()
	for rows.Next() {
		var r waitRow
		if err := rows.Scan(&r.event, &r.count, &r.timer); err != nil {
			return fmt.Errorf("%s: %w", WaitsSource, err)
		}
		b.Add(float64(r.count), WaitCount, r.event)
		b.Add(float64(r.timer)*picoseconds, WaitTimer, r.event)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", WaitsSource, err)
	}
	return nil
}
