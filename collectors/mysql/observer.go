package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

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

// In two steps, since the table of the sums has no index in MariaDB: it is read
// once, not once for each of the observer's connections.
const (
	observerThreads = `SELECT t.THREAD_ID
FROM performance_schema.session_connect_attrs a
JOIN performance_schema.threads t ON t.PROCESSLIST_ID = a.PROCESSLIST_ID
WHERE a.ATTR_NAME = 'program_name' AND a.ATTR_VALUE = '` + observerProgram + `'`
	observerSums = `SELECT SUM(SUM_TIMER_WAIT), SUM(COUNT_STAR)
FROM performance_schema.events_statements_summary_by_thread_by_event_name
WHERE THREAD_ID IN (%s)`
)

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
	threads, err := s.threads(ctx)
	if err != nil || len(threads) == 0 {
		return err
	}
	var timer, count sql.NullFloat64
	query := fmt.Sprintf(observerSums, strings.Join(threads, ","))
	if err := s.Server.DB.QueryRowContext(ctx, s.Server.limited(query)).Scan(&timer, &count); err != nil {
		return fmt.Errorf("%s: %w", ObserverSource, err)
	}
	if count.Valid {
		b.Add(timer.Float64*picoseconds, ObserverTimer)
		b.Add(count.Float64, ObserverCount)
	}
	return nil
}

func (s Observer) threads(ctx context.Context) ([]string, error) {
	rows, err := s.Server.DB.QueryContext(ctx, s.Server.limited(observerThreads))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ObserverSource, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id uint64
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("%s: %w", ObserverSource, err)
		}
		all = append(all, strconv.FormatUint(id, 10))
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", ObserverSource, err)
	}
	return all, nil
}
