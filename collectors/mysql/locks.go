package mysql

import (
	"context"
	"fmt"
	"strings"
	"time"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the lock-graph metrics.
const (
	LocksSource  = "mysql.locks"
	LockWaiters  = "mysql.lock.waiters"
	LockBlockers = "mysql.lock.blockers"
	LockSamples  = "mysql.lock.samples"
)

// statementLimit is how long the server may work on one sample.
const statementLimit = 500 * time.Millisecond

// limited lets the server itself end a SELECT that takes too long: a client
// that goes away does not end it.
func (s *Server) limited(query string) string {
	rest := strings.TrimPrefix(query, "SELECT")
	if s.Flavor == MariaDB {
		return fmt.Sprintf("SET STATEMENT max_statement_time=%g FOR SELECT%s", statementLimit.Seconds(), rest)
	}
	return fmt.Sprintf("SELECT /*+ MAX_EXECUTION_TIME(%d) */%s", statementLimit.Milliseconds(), rest)
}

// lockGraphSafe tells whether the lock tables can be read without stopping all
// transactions meanwhile: until 8.0.40, 8.4.3 and 9.1.0 MySQL held a global
// latch (bugs 111082 and 112035). MariaDB keeps a copy for its readers.
func (s *Server) lockGraphSafe() bool {
	if s.Flavor == MariaDB {
		return true
	}
	switch v := s.Version; {
	case v.less(Version{8, 1, 0}):
		return !v.less(Version{8, 0, 40})
	case v.less(Version{8, 5, 0}):
		return !v.less(Version{8, 4, 3})
	default:
		return !v.less(Version{9, 1, 0})
	}
}

// ProgramName is the connection attribute by which the load's own connections
// are told from others.
const ProgramName = "chokepoint-load"

// MariaDB keeps no table of edges that is cheap: INNODB_LOCK_WAITS has a row for
// each pair, half the square of the waiters. INNODB_LOCKS has a row for each
// waiter and for each lock waited for, and the lock's id tells the record.
const locksQueryMariaDB = `SELECT l.lock_id, l.lock_table, IFNULL(l.lock_index, ''), IFNULL(l.lock_data, ''), l.lock_mode,
	t.trx_state = 'LOCK WAIT' AND IFNULL(t.trx_requested_lock_id, '') = l.lock_id,
	t.trx_mysql_thread_id, IFNULL(t.trx_query, ''), GREATEST(0, TIMESTAMPDIFF(SECOND, t.trx_started, NOW()))
FROM information_schema.INNODB_LOCKS l JOIN information_schema.INNODB_TRX t ON t.trx_id = l.lock_trx_id
LIMIT 2000`

// MySQL's edges are pairs too, but grouping them happens in the server: one row
// for each record and transaction that blocks and does not itself wait.
const locksQueryMySQL = `SELECT l.OBJECT_SCHEMA, l.OBJECT_NAME, IFNULL(l.INDEX_NAME, ''), IFNULL(l.LOCK_DATA, ''), l.LOCK_MODE,
	t.trx_mysql_thread_id, IFNULL(t.trx_query, ''), GREATEST(0, TIMESTAMPDIFF(SECOND, t.trx_started, NOW())), COUNT(DISTINCT w.REQUESTING_ENGINE_TRANSACTION_ID)
FROM performance_schema.data_lock_waits w
JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID
JOIN information_schema.INNODB_TRX t ON t.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID
WHERE t.trx_state <> 'LOCK WAIT'
GROUP BY l.OBJECT_SCHEMA, l.OBJECT_NAME, l.INDEX_NAME, l.LOCK_DATA, l.LOCK_MODE, t.trx_mysql_thread_id, t.trx_query, t.trx_started
LIMIT 2000`

// The threads of the load: its connections give their program a name.
const oursQuery = `SELECT PROCESSLIST_ID FROM performance_schema.session_connect_attrs WHERE ATTR_NAME = 'program_name' AND ATTR_VALUE = '` + ProgramName + `'`

// lockEdge is a transaction that blocks others at one record.
type lockEdge struct {
	table, index, key, mode string
	thread                  int64
	query                   string
	age                     float64
	waiters                 int
}

// Locks samples who waits for whom. INNODB_TRX and its like are refreshed only
// if nobody read them for 100 ms, so there is one poller, and it reads no
// oftener than every 250 ms. Where reading is unsafe it reads nothing; Findings
// say so.
type Locks struct{ Server *Server }

// Name implements collectors.Source.
func (Locks) Name() string { return LocksSource }

// Metrics implements collectors.Source.
func (Locks) Metrics() []metric.Desc {
	record := []string{"table", "index", "key"}
	return []metric.Desc{
		{Name: LockSamples, Unit: metric.One, Kind: metric.Gauge, Help: "1 for each sample of the lock graph that was taken"},
		{Name: LockWaiters, Unit: metric.One, Kind: metric.Gauge, Labels: append(record, "mode"),
			Help: "transactions that wait for a lock on this record now, by the mode they ask for (data_lock_waits; INNODB_LOCKS)"},
		{Name: LockBlockers, Unit: metric.One, Kind: metric.Gauge, Labels: append(record, "owner", "thread", "query", "age"),
			Help: "transactions that a transaction blocks at this record now; owner is load, foreign or unknown, age in seconds (INNODB_TRX)"},
	}
}

// Read samples the graph.
func (s Locks) Read(ctx context.Context, b *record.Batch) error {
	if !s.Server.lockGraphSafe() {
		return nil
	}
	edges, err := s.edges(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", LocksSource, err)
	}
	b.Add(1, LockSamples)
	if len(edges) == 0 {
		return nil
	}
	ours, err := s.Server.loadThreads(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", LocksSource, err)
	}
	waiters, blockers := map[[4]string]int{}, map[[7]string]int{}
	for _, e := range edges {
		waiters[[4]string{e.table, e.index, e.key, e.mode}] = max(waiters[[4]string{e.table, e.index, e.key, e.mode}], e.waiters)
		// One that blocks waiters of several modes is an edge for each.
		blockers[[7]string{e.table, e.index, e.key, ours.owner(e.thread), fmt.Sprint(e.thread), short(e.query), fmt.Sprintf("%.0f", e.age)}] += e.waiters
	}
	for k, n := range blockers {
		b.Add(float64(n), LockBlockers, k[:]...)
	}
	for k, n := range waiters {
		b.Add(float64(n), LockWaiters, k[0], k[1], k[2], k[3])
	}
	return nil
}

// shortQuery is how much of a statement is kept.
const shortQuery = 200

func short(query string) string {
	query = strings.Join(strings.Fields(strings.ToValidUTF8(query, "?")), " ")
	if r := []rune(query); len(r) > shortQuery {
		return string(r[:shortQuery]) + "..."
	}
	return query
}

// threads are connections by their id.
type threads map[int64]bool

// owner says whose a connection is: these are the load's.
func (t threads) owner(id int64) string {
	switch {
	case len(t) == 0:
		return "unknown" // the server does not keep connection attributes
	case t[id]:
		return "load"
	}
	return "foreign"
}

func (s *Server) loadThreads(ctx context.Context) (threads, error) {
	out := threads{}
	err := each(ctx, s.DB, oursQuery, nil, func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		out[id] = true
		return err
	})
	return out, err
}

func (s Locks) edges(ctx context.Context) ([]lockEdge, error) {
	if s.Server.Flavor == MariaDB {
		return s.edgesMariaDB(ctx)
	}
	var out []lockEdge
	err := each(ctx, s.Server.DB, s.Server.limited(locksQueryMySQL), nil, func(scan func(...any) error) error {
		var e lockEdge
		var schema string
		err := scan(&schema, &e.table, &e.index, &e.key, &e.mode, &e.thread, &e.query, &e.age, &e.waiters)
		e.mode = strings.Replace(e.mode, ",REC_NOT_GAP", "", 1)
		out = append(out, e)
		return err
	})
	return out, err
}

// edgesMariaDB joins waiters and holders of the same record: the lock's id is
// the transaction's id and the record's place, "228820:5:3:2".
func (s Locks) edgesMariaDB(ctx context.Context) ([]lockEdge, error) {
	holders := map[string][]lockEdge{}
	waiters := map[string]map[int64]bool{}
	modes := map[string]string{}
	err := each(ctx, s.Server.DB, s.Server.limited(locksQueryMariaDB), nil, func(scan func(...any) error) error {
		var e lockEdge
		var id string
		var waits bool
		err := scan(&id, &e.table, &e.index, &e.key, &e.mode, &waits, &e.thread, &e.query, &e.age)
		_, place, _ := strings.Cut(id, ":")
		e.table = e.table[strings.LastIndexByte(e.table, '.')+1:]
		e.table = strings.Trim(e.table, "`")
		if !waits {
			holders[place] = append(holders[place], e)
			return err
		}
		if waiters[place] == nil {
			waiters[place] = map[int64]bool{}
		}
		waiters[place][e.thread], modes[place] = true, e.mode
		return err
	})
	var out []lockEdge
	for place, all := range holders {
		for _, e := range all {
			if n := len(waiters[place]); n > 0 {
				e.waiters, e.mode = n, modes[place]
				out = append(out, e)
			}
		}
	}
	return out, err
}
