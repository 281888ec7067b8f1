package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// StatementsSource is the name of the source of statement kinds.
const StatementsSource = "mysql.statements"

// On MariaDB a prepared statement stands in no digest row; this is the one
// place where its time is counted.
const statementsQuery = `SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT
FROM performance_schema.events_statements_summary_global_by_event_name
WHERE EVENT_NAME IN ('statement/com/Execute', 'statement/com/Prepare')`

// eventRow is a row of a summary by event name.
type eventRow struct {
	event        string
	count, timer uint64
}

// statements reads how much ran as prepared statements, in the whole server.
type statements struct{ server *Server }

func (statements) Name() string { return StatementsSource }

func (statements) Metrics() []metric.Desc {
	labels := []string{"event"}
	return []metric.Desc{
		{Name: StatementCount, Unit: metric.One, Kind: metric.Counter, Labels: labels, Help: "statements of this kind that have ended, in the whole server (COUNT_STAR)"},
		{Name: StatementTimer, Unit: metric.Seconds, Kind: metric.Counter, Labels: labels, Wrap: wrap, Help: "their time in the server (SUM_TIMER_WAIT)"},
	}
}

func (s statements) Read(ctx context.Context, b *record.Batch) error {
	if err := readEvents(ctx, s.server.DB, statementsQuery, b, StatementCount, StatementTimer); err != nil {
		return fmt.Errorf("%s: %w", StatementsSource, err)
	}
	return nil
}

// readEvents reads rows of event, COUNT_STAR and SUM_TIMER_WAIT into two metrics
// labelled by the event.
func readEvents(ctx context.Context, db *sql.DB, query string, b *record.Batch, count, timer string) error {
	return each(ctx, db, query, nil, func(scan func(...any) error) error {
		var r eventRow
		err := scan(&r.event, &r.count, &r.timer)
		b.Add(float64(r.count), count, r.event)
		b.Add(float64(r.timer)*picoseconds, timer, r.event)
		return err
	})
}
