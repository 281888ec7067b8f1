package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the metrics of the observer's own statements.
const (
	ObserverSource  = "mysql.observer"
	ObserverTimer   = "mysql.observer.timer"
	ObserverCount   = "mysql.observer.count"
	observerProgram = "chokepoint-observer"
)

// The sums are by thread, of those whose connections bear the observer's name.
const observerQuery = `SELECT SUM(e.SUM_TIMER_WAIT), SUM(e.COUNT_STAR)
FROM performance_schema.session_connect_attrs a
JOIN performance_schema.threads t ON t.PROCESSLIST_ID = a.PROCESSLIST_ID
JOIN performance_schema.events_statements_summary_by_thread_by_event_name e ON e.THREAD_ID = t.THREAD_ID
WHERE a.ATTR_NAME = 'program_name' AND a.ATTR_VALUE = '` + observerProgram + `'`

// Observer reads what the observer's own statements took in the server, of the
// connections that it has now. It looks at a row for each thread and kind of
// statement, and so is read at both ends of a run only.
type Observer struct{ Server *Server }

// Name implements collectors.Source.
func (Observer) Name() string { return ObserverSource }

// Metrics implements collectors.Source.
func (Observer) Metrics() []metric.Desc {
	return []metric.Desc{
		{Name: ObserverTimer, Unit: metric.Seconds, Kind: metric.Counter, Wrap: wrap, Help: "time in the server of the observer's own statements (SUM_TIMER_WAIT of its threads)"},
		{Name: ObserverCount, Unit: metric.One, Kind: metric.Counter, Help: "the observer's own statements (COUNT_STAR of its threads)"},
	}
}

// Read implements collectors.Source. A server that keeps no connection
// attributes tells nothing.
func (s Observer) Read(ctx context.Context, b *record.Batch) error {
	var timer, count sql.NullFloat64
	if err := s.Server.DB.QueryRowContext(ctx, s.Server.limited(observerQuery)).Scan(&timer, &count); err != nil {
		return fmt.Errorf("%s: %w", ObserverSource, err)
	}
	if count.Valid {
		b.Add(timer.Float64*picoseconds, ObserverTimer)
		b.Add(count.Float64, ObserverCount)
	}
	return nil
}
