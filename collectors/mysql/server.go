// Package mysql reads a MySQL or MariaDB server: one source a file, the SQL
// above the struct of its row.
//
// The observer has connections of its own, without a default schema, so that
// its statements never stand among those of the load's schema.
package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"chokepoint/collectors"
	"chokepoint/collectors/record"
)

// Flavors of the server.
const (
	MariaDB = "mariadb"
	MySQL   = "mysql"
)

// Version is a server's version, compared part by part.
type Version struct{ Major, Minor, Patch int }

var versionPattern = regexp.MustCompile(`^(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?`)

// ParseVersion reads what VERSION() says, such as
// "10.11.19-MariaDB-0+deb12u1", and tells the flavour.
func ParseVersion(s string) (flavor string, v Version, err error) {
	s = strings.TrimPrefix(s, "5.5.5-") // MariaDB's prefix for old replication clients
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return "", Version{}, fmt.Errorf("mysql: version %q begins with no number", s)
	}
	v.Major, _ = strconv.Atoi(m[1]) // digits only, by the pattern
	v.Minor, _ = strconv.Atoi(m[2])
	v.Patch, _ = strconv.Atoi(m[3])
	flavor = MySQL
	if strings.Contains(strings.ToLower(s), "mariadb") {
		flavor = MariaDB
	}
	return flavor, v, nil
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// less tells whether v is before w.
func (v Version) less(w Version) bool {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch)) < 0
}

// Server is the observer's view of one server.
type Server struct {
	DB      *sql.DB
	Flavor  string
	Version Version
	Text    string // VERSION() whole
}

// Process is the usual name of the server's process.
func (s *Server) Process() string {
	if s.Flavor == MariaDB {
		return "mariadbd"
	}
	return "mysqld"
}

// observerConns is enough for the sources that are read at the same moment, and
// for one connection that is kept.
const observerConns = 6

// Connect opens the observer's own pool to the server of cfg.
func Connect(ctx context.Context, cfg *mysql.Config) (*Server, error) {
	own := cfg.Clone()
	own.DBName = ""
	own.ConnectionAttributes = "program_name:" + observerProgram
	own.InterpolateParams = true
	// Ages of transactions are the differences of NOW() and times of the system.
	own.Params = maps.Clone(own.Params)
	if own.Params == nil {
		own.Params = map[string]string{}
	}
	own.Params["time_zone"] = "'SYSTEM'"
	own.Logger = &mysql.NopLogger{} // errors come back, and are faults in the record
	c, err := mysql.NewConnector(own)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	s := &Server{DB: sql.OpenDB(c)}
	s.DB.SetMaxOpenConns(observerConns)
	s.DB.SetMaxIdleConns(observerConns)
	if err := s.DB.QueryRowContext(ctx, "SELECT VERSION()").Scan(&s.Text); err != nil {
		s.DB.Close()
		return nil, fmt.Errorf("mysql: %w", err)
	}
	if s.Flavor, s.Version, err = ParseVersion(s.Text); err != nil {
		s.DB.Close()
		return nil, err
	}
	return s, nil
}

// Sources are those that read what a load in the given schema does. onText
// is told of each digest once, when it is first seen.
func (s *Server) Sources(schema string, onText func(Text)) []collectors.Source {
	return []collectors.Source{
		&digests{server: s, schema: schema, onText: onText, seen: map[string]bool{}},
		status{s},
		innodb{s},
		statements{s},
		waits{s},
	}
}

// variables are the settings that a reader of a record may need.
const variablesQuery = `SHOW GLOBAL VARIABLES WHERE Variable_name IN (
	'performance_schema', 'performance_schema_digests_size', 'max_digest_length', 'performance_schema_max_digest_length',
	'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_doublewrite',
	'innodb_lock_wait_timeout', 'innodb_deadlock_detect', 'innodb_buffer_pool_size',
	'transaction_isolation', 'tx_isolation', 'autocommit', 'max_connections', 'thread_handling',
	'slow_query_log', 'log_output', 'long_query_time')`

// Variables reads the server's settings that matter.
func (s *Server) Variables(ctx context.Context) (map[string]string, error) {
	return pairs(ctx, s.DB, variablesQuery)
}

// Clock compares the server's clock with ours, given as the time since the
// record's start and the wall clock then.
func (s *Server) Clock(ctx context.Context, now func() (since float64, wall float64)) (record.Clock, error) {
	from, wall := now()
	var server float64
	if err := s.DB.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1e6").Scan(&server); err != nil {
		return record.Clock{}, fmt.Errorf("mysql: clock: %w", err)
	}
	to, _ := now()
	rtt := to - from
	return record.Clock{Server: "mysql", AtS: from, OffsetS: server - (wall + rtt/2), RTTS: rtt}, nil
}

// pairs reads a result of two text columns.
func pairs(ctx context.Context, db *sql.DB, query string) (map[string]string, error) {
	m := map[string]string{}
	err := each(ctx, db, query, nil, func(scan func(...any) error) error {
		var k, v string
		err := scan(&k, &v)
		m[k] = v
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	return m, nil
}

// each runs a query and calls row for each row of its result.
func each(ctx context.Context, db *sql.DB, query string, args []any, row func(scan func(...any) error) error) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
