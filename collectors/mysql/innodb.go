package mysql

import (
	"context"
	"fmt"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// InnodbSource is the name of the source of InnoDB's own counters.
const InnodbSource = "mysql.innodb"

// Both counters are on by default on both flavours. Deadlocks are no status
// variable on MySQL.
const innodbQuery = `SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE NAME IN ('lock_deadlocks', 'lock_timeouts')`

// innodb reads INNODB_METRICS; it needs the PROCESS privilege.
type innodb struct{ server *Server }

func (innodb) Name() string { return InnodbSource }

func (innodb) Metrics() []metric.Desc {
	return []metric.Desc{
		{Name: Deadlocks, Unit: metric.One, Kind: metric.Counter, Help: "deadlocks found (INNODB_METRICS lock_deadlocks)"},
		{Name: LockTimeouts, Unit: metric.One, Kind: metric.Counter, Help: "row-lock waits ended by innodb_lock_wait_timeout (INNODB_METRICS lock_timeouts)"},
	}
}

func (s innodb) Read(ctx context.Context, b *record.Batch) error {
	err := each(ctx, s.server.DB, innodbQuery, nil, func(scan func(...any) error) error {
		var name string
		var count float64
		err := scan(&name, &count)
		switch name {
		case "lock_deadlocks":
			b.Add(count, Deadlocks)
		case "lock_timeouts":
			b.Add(count, LockTimeouts)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", InnodbSource, err)
	}
	return nil
}
