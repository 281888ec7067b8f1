package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"chokepoint/analysis/timeline"
	"chokepoint/collectors/record"
)

// Names that the MySQL sources write; see collectors/mysql.
const (
	digestsSource    = "mysql.digests"
	digestCount      = "mysql.digest.count"
	digestTimer      = "mysql.digest.timer"
	digestLock       = "mysql.digest.lock"
	digestErrors     = "mysql.digest.errors"
	digestMax        = "mysql.digest.max_timer"
	digestSent       = "mysql.digest.rows_sent"
	digestExamined   = "mysql.digest.rows_examined"
	digestOverflow   = "overflow"
	rowLockTime      = "mysql.innodb.row_lock_time"
	rowLockWaits     = "mysql.innodb.row_lock_waits"
	innodbDeadlocks  = "mysql.innodb.deadlocks"
	innodbTimeouts   = "mysql.innodb.lock_timeouts"
	digestLost       = "mysql.digest_lost"
	statementCount   = "mysql.statement.count"
	statementTimer   = "mysql.statement.timer"
	executeStatement = "statement/com/Execute"
	pingSeconds      = "mysql.ping"
	statusSource     = "mysql.status"
	uptime           = "mysql.uptime"
	waitTimer        = "mysql.wait.timer"
	metadataWait     = "wait/lock/metadata/sql/mdl"
	slowLogTable     = "slow_log_table" // a limit

	flavorMariaDB = "mariadb"
)

// bounds is a figure with what it can be at least and at most.
type bounds struct{ lo, point, hi float64 }

// digest is one statement digest over the measured phase.
type digest struct {
	id, text       string
	count, timer   float64
	lock           float64 // the server's own lock column
	errors, max    float64
	sent, examined float64
	row            bounds // row-lock time in it
}

// normal is the text as it is compared: flavours differ in quotes, case and a
// trailing blank. MySQL's prepared statements repeat the text behind EXECUTE.
func normal(text string) string {
	text = strings.ToLower(strings.TrimSpace(strings.ReplaceAll(text, "`", "")))
	return strings.TrimPrefix(text, "execute ")
}

func (d *digest) commits() bool { return strings.HasPrefix(normal(d.text), "commit") }

// locksRows tells whether the statement can wait for a row lock.
func (d *digest) locksRows() bool {
	if d.id == prepared {
		return true // some of them may
	}
	text := normal(d.text)
	if text == "" {
		return true // its text is lost, or it is the row of a full table: it may
	}
	if strings.HasPrefix(text, "prepare ") || strings.HasPrefix(text, "deallocate ") {
		return false
	}
	for _, verb := range []string{"update ", "delete ", "insert ", "replace "} {
		if strings.HasPrefix(text, verb) {
			return true
		}
	}
	return strings.Contains(text, " for update") || strings.Contains(text, " for share") || strings.Contains(text, " lock in share mode")
}

// serverTime is what the server says of the measured phase.
type serverTime struct {
	known     bool // its digests were read
	flavor    string
	digests   []digest // the longest first
	statement float64  // timers of all digests but COMMIT
	commit    float64  // timers of COMMIT
	row       bounds   // row-lock waits of all
	metadata  float64  // metadata-lock waits, where the flavour tells
	named     float64  // waits for named locks (GET_LOCK), where they are timed
	mdl       string   // the resource that metadata-lock waits are for
	namedLock string   // the same of named locks
	mdlSource string   // where both were read
	waits     float64  // row-lock waits that began
	global    float64  // Innodb_row_lock_time, where it is exact
	method    string   // exact or bounded
	source    string
}

// How a lock time is known.
const (
	exact   = "exact"
	bounded = "bounded"
)

// roundingPerWait is what MariaDB cuts off each row-lock wait at most: it adds
// whole milliseconds only. On average it is half of that.
const roundingPerWait = 1e-3

// openingTables is what SUM_LOCK_TIME holds on MariaDB for opening and locking
// the tables of one execution, without any wait: 8 to 16 us were measured.
const openingTables = 20e-6

func readServer(t *timeline.Timeline, server record.Server) serverTime {
	flavor := server.Flavor
	s := serverTime{known: t.Has(digestsSource), flavor: flavor, mdl: anyMetadata, namedLock: anyNamed}
	for _, series := range t.All(digestTimer, 1) {
		id := series.Labels[0]
		d := digest{id: id, text: t.Texts[id],
			timer:    t.Delta(series),
			count:    t.Delta(t.Get(digestCount, id)),
			lock:     t.Delta(t.Get(digestLock, id)),
			errors:   t.Delta(t.Get(digestErrors, id)),
			sent:     t.Delta(t.Get(digestSent, id)),
			examined: t.Delta(t.Get(digestExamined, id)),
			max:      t.Last(t.Get(digestMax, id)),
		}
		if d.count == 0 {
			continue
		}
		s.digests = append(s.digests, d)
		if d.commits() {
			s.commit += d.timer
		} else {
			s.statement += d.timer
		}
	}
	if flavor == flavorMariaDB {
		s.addPrepared(t)
	}
	slices.SortStableFunc(s.digests, func(a, b digest) int { return cmp.Compare(b.timer, a.timer) })
	s.waits = t.Delta(t.Get(rowLockWaits))
	if flavor == flavorMariaDB {
		s.boundRowLocks(t.Delta(t.Get(rowLockTime)))
	} else {
		s.exactRowLocks()
		s.global = t.Delta(t.Get(rowLockTime))
	}
	s.metadataLocks(t, server.Variables[record.MetadataInstrument] == "ON")
	return s
}

// rowLocksBlind bounds the row-lock time where no digests tell of statements:
// by the server's status, and by the client's time in statements that can have
// waited.
func (s *serverTime) rowLocksBlind(t *timeline.Timeline, most float64) {
	if s.known || !t.Has(statusSource) {
		return
	}
	l, missing := t.Delta(t.Get(rowLockTime)), 0.0
	if s.flavor == flavorMariaDB {
		missing = roundingPerWait * s.waits
	}
	s.method, s.source = bounded, "Innodb_row_lock_time"
	s.row = bounds{lo: min(l, most), point: min(l+missing/2, most), hi: min(l+missing, most)}
}

// prepared is the id of the row that stands for MariaDB's prepared statements,
// which have no digest: their time is known as a sum, of the whole server.
const prepared = "prepared"

func (s *serverTime) addPrepared(t *timeline.Timeline) {
	d := digest{id: prepared, text: "(prepared statements: MariaDB gives their sum only)",
		count: t.Delta(t.Get(statementCount, executeStatement)), timer: t.Delta(t.Get(statementTimer, executeStatement)), max: math.NaN()}
	if d.count > 0 {
		s.digests = append(s.digests, d)
		s.statement += d.timer
	}
}

// exactRowLocks takes MySQL's SUM_LOCK_TIME, which is the time of row-lock
// waits to within 0.01 % of Innodb_row_lock_time.
func (s *serverTime) exactRowLocks() {
	s.method, s.source = exact, "performance_schema digests SUM_LOCK_TIME"
	for i := range s.digests {
		d := &s.digests[i]
		d.row = bounds{d.lock, d.lock, d.lock}
		s.row.lo += d.lock
	}
	s.row.point, s.row.hi = s.row.lo, s.row.lo
}

// boundRowLocks bounds MariaDB's row-lock time, for its SUM_LOCK_TIME has none:
// it holds metadata locks. Innodb_row_lock_time, l, misses up to a millisecond
// a wait and is global, so a statement's part is bounded by the timers.
func (s *serverTime) boundRowLocks(l float64) {
	s.method, s.source = bounded, "Innodb_row_lock_time, bounded by digest timers"
	timers := 0.0
	var seconds, counts []float64 // of those that lock rows, 0 for the others
	for i := range s.digests {
		d := &s.digests[i]
		seconds, counts = append(seconds, 0), append(counts, 0)
		if d.locksRows() {
			timers += d.timer
			seconds[i], counts[i] = d.timer, d.count
		}
	}
	s.row = bounds{
		lo:    min(l, timers),
		point: min(l+roundingPerWait/2*s.waits, timers),
		hi:    min(l+roundingPerWait*s.waits, timers),
	}
	points := spreadWaiting(seconds, counts, s.row.point)
	for i := range s.digests {
		d := &s.digests[i]
		if !d.locksRows() || timers == 0 {
			continue
		}
		d.row = bounds{
			lo:    min(d.timer, max(0, l-(timers-d.timer))),
			point: points[i],
			hi:    min(d.timer, l+roundingPerWait*s.waits),
		}
	}
}

// spreadWaiting spreads a time of waiting over places where executions spent
// seconds: what an execution costs beside its wait is taken to be the same for
// all, the rest is waiting.
//
// Note: in proportion to the seconds alone, an UPDATE of a row that its
// transaction already holds would be said to wait for most of its time.
func spreadWaiting(seconds, counts []float64, waiting float64) []float64 {
	var all, n float64
	for i := range seconds {
		all += seconds[i]
		n += counts[i]
	}
	out := make([]float64, len(seconds))
	waiting = min(waiting, all)
	if waiting <= 0 || n == 0 {
		return out
	}
	each := (all - waiting) / n
	sum := 0.0
	for i := range seconds {
		out[i] = max(0, seconds[i]-each*counts[i])
		sum += out[i]
	}
	for i := range out {
		if sum > 0 {
			out[i] *= waiting / sum
		}
	}
	return out
}
