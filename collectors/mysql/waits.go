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
	if err := readEvents(ctx, s.server.DB, waitsQuery, b, WaitCount, WaitTimer); err != nil {
		return fmt.Errorf("%s: %w", WaitsSource, err)
	}
	return nil
}
