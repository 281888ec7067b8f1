package mysql

import (
	"context"
	"fmt"
	"strconv"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the status metrics.
const (
	StatusSource     = "mysql.status"
	Uptime           = "mysql.uptime"
	RowLockTime      = "mysql.innodb.row_lock_time"
	RowLockWaits     = "mysql.innodb.row_lock_waits"
	RowLockCurrent   = "mysql.innodb.row_lock_current_waits"
	DigestLost       = "mysql.digest_lost"
	ThreadsConnected = "mysql.threads_connected"
	ThreadsRunning   = "mysql.threads_running"
	AbortedClients   = "mysql.aborted_clients"
	Deadlocks        = "mysql.innodb.deadlocks"
	LockTimeouts     = "mysql.innodb.lock_timeouts"
	StatementCount   = "mysql.statement.count"
	StatementTimer   = "mysql.statement.timer"
	PingSeconds      = "mysql.ping"
	ExecuteStatement = "statement/com/Execute"
	milliseconds     = 1e-3
)

const statusQuery = `SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime',
	'Innodb_row_lock_time', 'Innodb_row_lock_waits', 'Innodb_row_lock_current_waits',
	'Performance_schema_digest_lost', 'Threads_connected', 'Threads_running', 'Aborted_clients')`

// statusVariable is a line of SHOW GLOBAL STATUS and what it becomes.
type statusVariable struct {
	variable string
	scale    float64
	desc     metric.Desc
}

func statusVariables() []statusVariable {
	return []statusVariable{
		{"Uptime", 1, metric.Desc{Name: Uptime, Unit: metric.Seconds, Kind: metric.Gauge, Help: "time since the server started"}},
		{"Innodb_row_lock_time", milliseconds, metric.Desc{Name: RowLockTime, Unit: metric.Seconds, Kind: metric.Counter,
			Help: "row-lock waits that have ended; MariaDB cuts each down to whole milliseconds (Innodb_row_lock_time)"}},
		{"Innodb_row_lock_waits", 1, metric.Desc{Name: RowLockWaits, Unit: metric.One, Kind: metric.Counter, Help: "row-lock waits that have begun (Innodb_row_lock_waits)"}},
		{"Innodb_row_lock_current_waits", 1, metric.Desc{Name: RowLockCurrent, Unit: metric.One, Kind: metric.Gauge, Help: "transactions that wait for a row lock now (Innodb_row_lock_current_waits)"}},
		{"Performance_schema_digest_lost", 1, metric.Desc{Name: DigestLost, Unit: metric.One, Kind: metric.Counter, Help: "statements without a digest row, since the table was full (Performance_schema_digest_lost)"}},
		{"Threads_connected", 1, metric.Desc{Name: ThreadsConnected, Unit: metric.One, Kind: metric.Gauge, Help: "open connections (Threads_connected)"}},
		{"Threads_running", 1, metric.Desc{Name: ThreadsRunning, Unit: metric.One, Kind: metric.Gauge, Help: "connections that run a statement now (Threads_running)"}},
		{"Aborted_clients", 1, metric.Desc{Name: AbortedClients, Unit: metric.One, Kind: metric.Counter, Help: "connections whose client went away without closing them (Aborted_clients)"}},
	}
}

// status reads the server's global status; any user may.
type status struct{ server *Server }

func (status) Name() string { return StatusSource }

func (status) Metrics() []metric.Desc {
	var ds []metric.Desc
	for _, v := range statusVariables() {
		ds = append(ds, v.desc)
	}
	return ds
}

func (s status) Read(ctx context.Context, b *record.Batch) error {
	values, err := pairs(ctx, s.server.DB, statusQuery)
	if err != nil {
		return fmt.Errorf("%s: %w", StatusSource, err)
	}
	for _, v := range statusVariables() {
		text, ok := values[v.variable]
		if !ok {
			continue // a server without performance_schema has no digest_lost
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", StatusSource, v.variable, err)
		}
		b.Add(f*v.scale, v.desc.Name)
	}
	return nil
}
