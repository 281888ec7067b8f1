package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"chokepoint/collectors"
)

// Names of the findings that an analysis acts upon.
const (
	CheckPerformanceSchema = "performance_schema"
	CheckSlowLogTable      = "slow_log_table"
	CheckMetadataLocks     = "metadata_locks"
)

// findings looks at one server; what goes wrong with its questions is a finding
// too, so that only a server that is gone is an error.
type findings struct {
	s    *Server
	vars map[string]string
	user string // CURRENT_USER(), quoted for a GRANT
	all  []collectors.Finding
}

// Findings tells what the user of this connection can observe of the server,
// what is missing, what that costs a verdict, and what would mend it. It reads
// only. The error is that of a server that does not answer.
func (s *Server) Findings(ctx context.Context) ([]collectors.Finding, error) {
	f := &findings{s: s}
	var err error
	if f.vars, err = s.Variables(ctx); err != nil {
		return nil, err
	}
	if f.user, err = s.account(ctx); err != nil {
		return nil, err
	}
	if f.performanceSchema() {
		f.digests(ctx)
		f.digestTable(ctx)
		f.digestTexts(ctx)
		f.metadataLocks(ctx)
		f.connectionAttributes(ctx)
		f.preparedStatements(ctx)
	}
	f.slowLogTable()
	f.rowLockCounters(ctx)
	f.lockGraph(ctx)
	f.innodbCounters(ctx)
	f.connections(ctx)
	return f.all, ctx.Err()
}

// account is the account of this connection, as GRANT writes it.
func (s *Server) account(ctx context.Context) (string, error) {
	var user string
	if err := s.DB.QueryRowContext(ctx, "SELECT CURRENT_USER()").Scan(&user); err != nil {
		return "", fmt.Errorf("mysql: %w", err)
	}
	return quotedAccount(user), nil
}

// quotedAccount turns mon@10.0.0.% into 'mon'@'10.0.0.%'. User names may hold an
// @, host names may not.
func quotedAccount(user string) string {
	at := strings.LastIndexByte(user, '@')
	if at < 0 {
		return quoted(user)
	}
	return quoted(user[:at]) + "@" + quoted(user[at+1:])
}

func quoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
}

func (f *findings) add(x collectors.Finding) {
	if x.State == "" {
		x.State = collectors.Visible
	}
	x.Fix, x.Settings = append([]string{}, x.Fix...), append([]string{}, x.Settings...)
	f.all = append(f.all, x)
}

// section is the head under which the server's own settings stand.
func (f *findings) section() string {
	if f.s.Flavor == MariaDB {
		return "[mariadb]"
	}
	return "[mysqld]"
}

func (f *findings) setting(line string) []string { return []string{f.section(), line} }

func (f *findings) grantPerformanceSchema() []string {
	return []string{"GRANT SELECT ON performance_schema.* TO " + f.user + ";"}
}

func (f *findings) grantProcess() []string {
	return []string{"GRANT PROCESS ON *.* TO " + f.user + ";"}
}

// oneLine is an error without the driver's words around it.
func oneLine(err error) string {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return fmt.Sprintf("error %d: %s", e.Number, short(e.Message))
	}
	return short(err.Error())
}

// number reads one number.
func (f *findings) number(ctx context.Context, query string, args ...any) (int64, error) {
	var n sql.NullInt64
	err := f.s.DB.QueryRowContext(ctx, query, args...).Scan(&n)
	return n.Int64, err
}

// performanceSchema tells whether it is on: if not, its tables are there, and
// empty.
func (f *findings) performanceSchema() bool {
	x := collectors.Finding{Check: CheckPerformanceSchema, Found: "on"}
	on := f.vars["performance_schema"] == "ON"
	if !on {
		x.State, x.Found = collectors.Hidden, "performance_schema is off"
		x.Costs = "no statement digests: of the time inside statements only row-lock waits can be told; execution, commit and network stay unexplained"
		x.Settings = f.setting("performance_schema=ON")
	}
	f.add(x)
	return on
}

const digestsCosts = "the time inside statements cannot be split into execution, row locks and network"

// digests tells whether statements are counted and can be read.
func (f *findings) digests(ctx context.Context) {
	x := collectors.Finding{Check: "statement_digests", Found: "performance_schema.events_statements_summary_by_digest can be read"}
	if _, err := f.number(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM performance_schema.events_statements_summary_by_digest LIMIT 1) t"); err != nil {
		x.State, x.Found, x.Costs, x.Fix = collectors.Hidden, oneLine(err), digestsCosts, f.grantPerformanceSchema()
		f.add(x)
		return
	}
	off, err := f.texts(ctx, `SELECT NAME FROM performance_schema.setup_consumers
		WHERE NAME IN ('global_instrumentation', 'thread_instrumentation', 'statements_digest') AND ENABLED = 'NO'`)
	if err == nil && len(off) > 0 {
		x.State, x.Found, x.Costs = collectors.Hidden, "switched off: consumer "+strings.Join(off, ", "), digestsCosts
		for _, name := range off {
			x.Fix = append(x.Fix, "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = "+quoted(name)+";")
		}
		f.add(x)
		return
	}
	n, err := f.number(ctx, "SELECT COUNT(*) FROM performance_schema.setup_instruments WHERE NAME LIKE 'statement/sql/%' AND (ENABLED = 'NO' OR TIMED = 'NO')")
	if err == nil && n > 0 {
		x.State, x.Found, x.Costs = collectors.Limited, fmt.Sprintf("%d kinds of statements are not timed", n), "these statements stand in no digest"
		x.Fix = []string{"UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'statement/%';"}
	}
	f.add(x)
}

func (f *findings) texts(ctx context.Context, query string, args ...any) ([]string, error) {
	var out []string
	err := each(ctx, f.s.DB, query, args, func(scan func(...any) error) error {
		var s string
		err := scan(&s)
		out = append(out, s)
		return err
	})
	return out, err
}

// digestTable tells whether statements were added to the row for all others.
func (f *findings) digestTable(ctx context.Context) {
	rows, err := f.number(ctx, "SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest")
	if err != nil {
		return // told by digests
	}
	lost, _ := f.number(ctx, "SELECT SUM(COUNT_STAR) FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST IS NULL")
	size := f.vars["performance_schema_digests_size"]
	x := collectors.Finding{Check: "digest_table", Found: fmt.Sprintf("%d of %s rows in use", rows, size)}
	if lost > 0 {
		x.State = collectors.Limited
		x.Found = fmt.Sprintf("full: all %s rows are in use, and %d statements stand in one row without a text", size, lost)
		x.Costs = "statements that came after it was full cannot be told apart"
		n, _ := strconv.Atoi(size)
		x.Settings = f.setting(fmt.Sprintf("performance_schema_digests_size=%d", max(20_000, 2*n)))
	}
	f.add(x)
}

// digestTexts tells of statements that are as long as the server looks at.
func (f *findings) digestTexts(ctx context.Context) {
	limit := digestLimit(f.vars)
	// Monitors, this one too, have no default schema.
	texts, err := f.texts(ctx, "SELECT DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest WHERE LENGTH(DIGEST_TEXT) > ? AND SCHEMA_NAME IS NOT NULL", limit/3)
	if err != nil {
		return
	}
	cut := 0
	for _, text := range texts {
		if textCut(text, limit) {
			cut++
		}
	}
	x := collectors.Finding{Check: "digest_length", Found: fmt.Sprintf("no statement is longer than max_digest_length (%d)", limit)}
	if cut > 0 {
		x.State = collectors.Limited
		x.Found = fmt.Sprintf("digests whose statements are longer than max_digest_length (%d): %d", limit, cut)
		x.Costs = "statements that differ only behind that length are counted as one"
		x.Settings = f.setting("max_digest_length=4096")
		x.Settings = append(x.Settings, "performance_schema_max_digest_length=4096")
	}
	f.add(x)
}

// slowLogTable tells of the slow log in a table, which leaks into SUM_LOCK_TIME.
func (f *findings) slowLogTable() {
	x := collectors.Finding{Check: CheckSlowLogTable, Found: "the slow log does not go to a table"}
	if f.vars["slow_query_log"] == "ON" && strings.Contains(f.vars["log_output"], "TABLE") {
		x.State, x.Found = collectors.Limited, "slow_query_log=ON with log_output="+f.vars["log_output"]
		x.Costs = "the statements' lock time (SUM_LOCK_TIME) holds some of the writing of the log"
		if f.s.Flavor == MariaDB {
			x.Costs = "MariaDB's SUM_LOCK_TIME is then nearly the whole time of each statement: metadata locks can be told by their wait instrument only"
		}
		x.Fix = []string{"SET GLOBAL log_output = 'FILE';"}
	}
	f.add(x)
}

// metadataLocks tells whether waits for metadata and named locks are timed.
func (f *findings) metadataLocks(ctx context.Context) {
	x := collectors.Finding{Check: CheckMetadataLocks, Found: MetadataWait + " is timed"}
	n, err := f.number(ctx, "SELECT COUNT(*) FROM performance_schema.setup_instruments WHERE NAME = ? AND ENABLED = 'YES' AND TIMED = 'YES'", MetadataWait)
	switch {
	case err != nil:
		x.State, x.Found, x.Fix = collectors.Hidden, oneLine(err), f.grantPerformanceSchema()
	case n == 0:
		x.State, x.Found = collectors.Limited, "instrument "+MetadataWait+" is off"
		x.Fix = []string{"UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME = '" + MetadataWait + "';"}
		x.Settings = f.setting("performance-schema-instrument='" + MetadataWait + "=ON'")
	}
	if x.State != "" {
		x.Costs = "waiting for metadata locks cannot be told from execution, nor who blocks them"
		if f.s.Flavor == MariaDB {
			x.Costs = "waiting for named locks (GET_LOCK) cannot be told from execution, nor who blocks a metadata lock"
		}
	}
	f.add(x)
}

func (f *findings) connectionAttributes(ctx context.Context) {
	x := collectors.Finding{Check: "connection_attributes", Found: "the load's own connections can be told from others"}
	n, err := f.number(ctx, "SELECT COUNT(*) FROM performance_schema.session_connect_attrs")
	switch {
	case err != nil:
		x.State, x.Found, x.Fix = collectors.Hidden, oneLine(err), f.grantPerformanceSchema()
	case n == 0:
		x.State, x.Found = collectors.Hidden, "the server keeps no connection attributes"
		x.Settings = f.setting("performance_schema_session_connect_attrs_size=512")
	}
	if x.State != "" {
		x.Costs = "a transaction that blocks rows cannot be told to be the load's own or a stranger's"
	}
	f.add(x)
}

// preparedStatements matter on MariaDB, whose digests are blind to them.
func (f *findings) preparedStatements(ctx context.Context) {
	if f.s.Flavor != MariaDB {
		return
	}
	n, err := f.number(ctx, "SELECT SUM(COUNT_STAR) FROM performance_schema.events_statements_summary_global_by_event_name WHERE EVENT_NAME = ?", ExecuteStatement)
	if err != nil {
		return // told by digests
	}
	x := collectors.Finding{Check: "prepared_statements", Found: "no prepared statements have run"}
	if n > 0 {
		x.State, x.Found = collectors.Limited, fmt.Sprintf("%d executions of prepared statements since the server started", n)
		x.Costs = "MariaDB's digests are blind to prepared statements: only their sum is known (a Go client avoids them with interpolateParams=true)"
	}
	f.add(x)
}

func (f *findings) rowLockCounters(ctx context.Context) {
	x := collectors.Finding{Check: "row_lock_counters", Found: "Innodb_row_lock_time can be read"}
	if f.s.Flavor == MariaDB {
		x.Found += " (each wait cut down to whole milliseconds)"
	}
	if values, err := pairs(ctx, f.s.DB, statusQuery); err != nil || values["Innodb_row_lock_time"] == "" {
		x.State, x.Found, x.Costs = collectors.Hidden, "SHOW GLOBAL STATUS has no Innodb_row_lock_time", "row-lock waiting cannot be bounded"
	}
	f.add(x)
}

// lockGraph tells whether one can see who blocks whom.
func (f *findings) lockGraph(ctx context.Context) {
	x := collectors.Finding{Check: "lock_graph", Found: "who blocks whom can be sampled"}
	_, err := f.number(ctx, "SELECT COUNT(*) FROM information_schema.INNODB_TRX")
	if err != nil {
		x.State, x.Found, x.Fix = collectors.Hidden, oneLine(err), f.grantProcess()
	}
	if f.s.Flavor == MySQL {
		if _, e := f.number(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM performance_schema.data_lock_waits LIMIT 1) t"); e != nil {
			x.State = collectors.Hidden
			x.Fix = append(x.Fix, f.grantPerformanceSchema()...)
			if err == nil {
				x.Found = oneLine(e)
			}
		}
	}
	if x.State == "" && !f.s.lockGraphSafe() {
		x.State, x.Found = collectors.Hidden, "reading data_locks stops all transactions of MySQL "+f.s.Version.String()+" while it lasts (bug 111082; mended in 8.0.40, 8.4.3 and 9.1.0): not sampled"
	}
	if x.State != "" {
		x.Costs = "no hot rows by index, no blockers; a stranger's long transaction and gap locks look like a hot row"
	}
	f.add(x)
}

func (f *findings) innodbCounters(ctx context.Context) {
	x := collectors.Finding{Check: "innodb_counters", Found: "deadlocks and lock wait timeouts are counted"}
	counted := "STATUS = 'enabled'"
	if f.s.Flavor == MariaDB {
		counted = "ENABLED = 1"
	}
	n, err := f.number(ctx, "SELECT COUNT(*) FROM information_schema.INNODB_METRICS WHERE NAME IN ('lock_deadlocks', 'lock_timeouts') AND "+counted)
	switch {
	case err != nil:
		x.State, x.Found, x.Fix = collectors.Hidden, oneLine(err), f.grantProcess()
	case n < 2:
		x.State, x.Found = collectors.Limited, "INNODB_METRICS does not count lock_deadlocks or lock_timeouts"
		x.Fix = []string{"SET GLOBAL innodb_monitor_enable = 'lock_deadlocks';", "SET GLOBAL innodb_monitor_enable = 'lock_timeouts';"}
	}
	if x.State != "" {
		x.Costs = "deadlocks and timeouts of others than the load are not seen"
	}
	f.add(x)
}

// fewConnections is less than a default run takes: its pool and the observer.
const fewConnections = 10 + observerConns

// LoadRights tells whether the user may make and fill the schema of the given
// name, which only a load needs. Rights by way of a role are not looked for.
func (s *Server) LoadRights(ctx context.Context, schema string) (collectors.Finding, error) {
	x := collectors.Finding{Check: "load_rights", State: collectors.Visible, Found: "may make and fill schema " + schema, Fix: []string{}, Settings: []string{}}
	var user string
	if err := s.DB.QueryRowContext(ctx, "SELECT CURRENT_USER()").Scan(&user); err != nil {
		return x, fmt.Errorf("mysql: %w", err)
	}
	at := strings.LastIndexByte(user, '@')
	grantee := "'" + user[:max(at, 0)] + "'@'" + user[at+1:] + "'"
	var n int
	if err := s.DB.QueryRowContext(ctx, loadRightsQuery, grantee, grantee, schema).Scan(&n); err != nil {
		return x, fmt.Errorf("mysql: %w", err)
	}
	if n < loadRights {
		x.State, x.Found = collectors.Limited, "may not make and fill schema "+schema+" (as far as direct grants tell)"
		x.Costs = "`chokepoint run` cannot load this server; to observe it no more is needed"
		x.Fix = []string{"GRANT ALL ON `chokepoint\\_%`.* TO " + quotedAccount(user) + ";"}
	}
	return x, nil
}

// loadRights is how many rights loadRightsQuery asks for.
const loadRights = 5

const loadRightsQuery = `SELECT COUNT(*) FROM (
	SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = ?
	UNION SELECT PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE = ? AND ? LIKE TABLE_SCHEMA) p
WHERE PRIVILEGE_TYPE IN ('CREATE', 'DROP', 'SELECT', 'INSERT', 'UPDATE')`

func (f *findings) connections(ctx context.Context) {
	values, err := pairs(ctx, f.s.DB, statusQuery)
	used, err2 := strconv.Atoi(values["Threads_connected"])
	most, err3 := strconv.Atoi(f.vars["max_connections"])
	if errors.Join(err, err2, err3) != nil {
		return
	}
	x := collectors.Finding{Check: "connections", Found: fmt.Sprintf("%d of max_connections=%d in use", used, most)}
	if most-used < fewConnections {
		x.State, x.Costs = collectors.Limited, fmt.Sprintf("a run takes its --pool and %d more for the observer", observerConns)
		x.Settings = f.setting(fmt.Sprintf("max_connections=%d", most+100))
	}
	f.add(x)
}
