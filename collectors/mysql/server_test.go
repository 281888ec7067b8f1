package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/mysql"
	"chokepoint/collectors/record"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

func TestVersionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.IntRange(0, 999_999)
		want := mysql.Version{Major: part.Draw(t, "major"), Minor: part.Draw(t, "minor"), Patch: part.Draw(t, "patch")}
		text := fmt.Sprintf("%d.%d.%d%s", want.Major, want.Minor, want.Patch, rapid.SampledFrom([]string{"", "-log", "-MariaDB", "-2ubuntu1", "+maria~deb12"}).Draw(t, "suffix"))
		if strings.HasPrefix(text, "5.5.5-") {
			t.Skip("MariaDB's prefix")
		}
		flavor, got, err := mysql.ParseVersion(text)
		if err != nil || got != want || (flavor == mysql.MariaDB) != strings.Contains(text, "MariaDB") {
			t.Fatalf("%s is %s %v (%v)", text, flavor, got, err)
		}
	})
}

// TestDescriptions: every metric has one description, with what a reader needs.
func TestDescriptions(t *testing.T) {
	server := &mysql.Server{}
	seen := map[string]bool{}
	for _, s := range append(server.Sources("x", nil), mysql.Ping{Server: server}, mysql.Locks{Server: server}, mysql.MetadataLocks{Server: server}, mysql.Observer{Server: server}) {
		if !strings.HasPrefix(s.Name(), "mysql.") {
			t.Errorf("source %q", s.Name())
		}
		for _, d := range s.Metrics() {
			if seen[d.Name] {
				t.Errorf("%s is described twice", d.Name)
			}
			seen[d.Name] = true
			unit := slices.Contains([]string{metric.Seconds, metric.Bytes, metric.One}, d.Unit)
			kind := d.Kind == metric.Counter || d.Kind == metric.Gauge
			if !unit || !kind || d.Help == "" || !strings.HasPrefix(d.Name, "mysql.") || d.Name != strings.ToLower(d.Name) {
				t.Errorf("%+v", d)
			}
			labels := slices.Sorted(slices.Values(d.Labels))
			if len(slices.Compact(labels)) != len(d.Labels) {
				t.Errorf("%s has a label twice: %v", d.Name, d.Labels)
			}
			// Picoseconds in 64 bits: 1.8e19 of them are 213.5 days.
			if strings.HasSuffix(d.Name, ".timer") && math.Abs(d.Wrap/86400-213.5) > 0.1 {
				t.Errorf("%s wraps after %v days", d.Name, d.Wrap/86400)
			}
		}
	}
}

func TestConnectFails(t *testing.T) {
	cfg := driver.NewConfig()
	cfg.Net, cfg.Addr = "unix", t.TempDir()+"/none"
	if s, err := mysql.Connect(t.Context(), cfg); err == nil || !strings.HasPrefix(err.Error(), "mysql: ") {
		t.Errorf("%v, %v", s, err)
	}
}

// TestOneServer looks at one server from all sides.
func TestOneServer(t *testing.T) { sandboxtest.EachFlavor(t, testOneServer) }

func testOneServer(t *testing.T, flavor sandbox.Flavor) {
	s := open(t, sandbox.Options{Flavor: flavor, Variables: map[string]string{"innodb-lock-wait-timeout": "7", "performance-schema-digests-size": "500"}})
	s.load.SetMaxIdleConns(20)
	for _, part := range []struct {
		name string
		test func(*testing.T, stage)
	}{
		{"digests by hand", digestsByHand},
		{"other schemas", otherSchemas},
		{"texts", textsOnce},
		{"threads", threads},
		{"variables", variables},
		{"ping", ping},
		{"observer", observer},
		{"deadlock", deadlock},
		{"lock timeout", lockTimeout},
		{"metadata lock", metadataLock},
		{"lock graph", lockGraph},
		{"server's own numbers", serversOwnNumbers},
		{"gone", gone}, // closes the observer's pool, so it is the last
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, s) })
	}
}

// settled reads the digests until the load's statement, whose text holds the
// words, has been counted that often, and returns its values.
func (s stage) settled(t *testing.T, count float64, words ...string) map[string]float64 {
	t.Helper()
	for t.Context().Err() == nil {
		values := s.read(t, mysql.DigestsSource)
		d := s.digest(words...)
		if d == "" || values[record.Series(mysql.DigestCount, d)] < count {
			continue
		}
		out := map[string]float64{}
		for series, v := range values {
			name, labels, _ := record.ParseSeries(series)
			if labels[0] == d {
				out[name] = v
			}
		}
		return out
	}
	t.Fatalf("no digest of %q", words)
	return nil
}

func digestsByHand(t *testing.T, s stage) {
	s.exec(t, "CREATE TABLE five (n INT PRIMARY KEY, m INT)")
	s.exec(t, "INSERT INTO five VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)")
	for range 7 {
		s.exec(t, "SELECT m FROM five WHERE m < 1") // all five rows, no index: 7 x 5
	}
	for i := range 2 {
		s.exec(t, fmt.Sprintf("UPDATE five SET m = %d WHERE n <= 3", i+1)) // three rows: 2 x 3
	}
	for range 4 {
		if _, err := s.load.Exec("INSERT INTO five SELECT 5, 5"); err == nil { // there is a 5: 4 errors
			t.Error("a key was there twice")
		}
	}
	for _, c := range []struct {
		words []string
		want  map[string]float64
	}{
		{[]string{"FROM `FIVE`"}, map[string]float64{mysql.DigestCount: 7, mysql.DigestRowsSent: 35, mysql.DigestRowsExamined: 35, mysql.DigestRowsAffected: 0, mysql.DigestErrors: 0}},
		{[]string{"UPDATE", "FIVE"}, map[string]float64{mysql.DigestCount: 2, mysql.DigestRowsAffected: 6, mysql.DigestRowsSent: 0, mysql.DigestErrors: 0}},
		{[]string{"INTO `FIVE` SELECT"}, map[string]float64{mysql.DigestCount: 4, mysql.DigestErrors: 4, mysql.DigestRowsAffected: 0}},
	} {
		got := s.settled(t, c.want[mysql.DigestCount], c.words...)
		for name, want := range c.want {
			if got[name] != want {
				t.Errorf("%v: %s is %v, want %v", c.words, name, got[name], want)
			}
		}
		timer, longest := got[mysql.DigestTimer], got[mysql.DigestMax]
		if timer <= 0 || longest <= 0 || longest > timer || timer > 60 {
			t.Errorf("%v: %v s in all, %v s at most", c.words, timer, longest)
		}
	}
}

func otherSchemas(t *testing.T, s stage) {
	conn, err := s.load.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before := s.settled(t, 1, "CREATE TABLE", "STOCK")[mysql.DigestCount]
	for _, q := range []string{"CREATE DATABASE chokepoint_other", "USE chokepoint_other", "CREATE TABLE stock (id INT PRIMARY KEY, quantity INT NOT NULL)", "SELECT 'elsewhere' FROM stock", "USE " + schema, "SELECT 1 AS marker"} {
		if _, err := conn.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	s.settled(t, 1, "MARKER") // the last one: all are counted
	if d := s.digest("FROM", "STOCK", "SELECT ? FROM"); d != "" {
		t.Error("a statement in another schema has a digest in this one")
	}
	if after := s.settled(t, 1, "CREATE TABLE", "STOCK")[mysql.DigestCount]; after != before {
		t.Errorf("the same statement in another schema counted here: %v, then %v", before, after)
	}
	// The observer's statements are counted, but in no schema.
	for where, want := range map[string]bool{"SCHEMA_NAME = '" + schema + "'": false, "SCHEMA_NAME IS NULL": true} {
		var n int
		q := `SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest WHERE ` + where + ` AND (DIGEST_TEXT LIKE '%performance_schema%' OR DIGEST_TEXT LIKE '%INNODB_%' OR DIGEST_TEXT LIKE 'SHOW GLOBAL%')`
		if err := s.server.DB.QueryRow(q).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if (n > 0) != want {
			t.Errorf("%d statements of the observer where %s", n, where)
		}
	}
}

// textsOnce: a text is told when its digest is first seen, and then no more.
func textsOnce(t *testing.T, s stage) {
	told := map[string]int{}
	src := s.server.Sources(schema, func(x mysql.Text) {
		told[x.Digest]++
		if x.Digest == "" || x.Text == "" && x.Digest != mysql.Overflow || x.Cut {
			t.Errorf("digest %q has text %q, cut %v", x.Digest, x.Text, x.Cut)
		}
	})[0]
	for range 3 {
		if err := src.Read(t.Context(), &record.Batch{}); err != nil {
			t.Fatal(err)
		}
	}
	for digest, n := range told {
		if n != 1 {
			t.Errorf("the text of %s was told %d times", digest, n)
		}
	}
	if len(told) < 5 {
		t.Errorf("%d texts", len(told))
	}
}

func threads(t *testing.T, s stage) {
	before := s.read(t, mysql.StatusSource)[mysql.ThreadsConnected]
	var conns []*sql.Conn
	idle := s.load.Stats().Idle
	for range 5 + idle {
		c, err := s.load.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	after := s.read(t, mysql.StatusSource)
	for _, c := range conns {
		c.Close()
	}
	if got := after[mysql.ThreadsConnected] - before; got != 5 {
		t.Errorf("five connections more are %v", got)
	}
	if after[mysql.ThreadsRunning] < 1 || after[mysql.Uptime] < 0 { // the one that asks runs
		t.Errorf("%v running, up for %v s", after[mysql.ThreadsRunning], after[mysql.Uptime])
	}
}

func variables(t *testing.T, s stage) {
	got, err := s.server.Variables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{ // as the server was started
		"innodb_lock_wait_timeout": "7", "performance_schema": "ON", "performance_schema_digests_size": "500",
		"innodb_flush_log_at_trx_commit": "0", "log_bin": "OFF", "slow_query_log": "OFF",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func ping(t *testing.T, s stage) {
	for range 3 {
		if v := s.read(t, mysql.PingSource)[mysql.PingSeconds]; v <= 0 {
			t.Errorf("a round trip took %v s", v)
		}
	}
}

// deadlock makes two transactions want each other's row: one of them dies.
func deadlock(t *testing.T, s stage) {
	before := s.read(t, mysql.InnodbSource)[mysql.Deadlocks]
	begin := func(row int) *sql.Tx {
		t.Helper()
		tx, err := s.load.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(fmt.Sprintf("UPDATE stock SET quantity = 0 WHERE id = %d", row)); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	a, b := begin(1), begin(2)
	ended := make(chan error, 1)
	go func() {
		_, err := a.Exec("UPDATE stock SET quantity = 1 WHERE id = 2")
		ended <- errors.Join(err, a.Rollback())
	}()
	_, err := b.Exec("UPDATE stock SET quantity = 1 WHERE id = 1")
	err = errors.Join(err, b.Rollback(), <-ended)
	if e, ok := errors.AsType[*driver.MySQLError](err); !ok || e.Number != 1213 {
		t.Fatalf("no deadlock: %v", err)
	}
	if got := s.read(t, mysql.InnodbSource)[mysql.Deadlocks] - before; got != 1 {
		t.Errorf("%v deadlocks, want 1", got)
	}
}

func lockTimeout(t *testing.T, s stage) {
	before := s.read(t, mysql.InnodbSource)[mysql.LockTimeouts]
	tx, err := s.load.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE stock SET quantity = 0 WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	conn, err := s.load.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := conn.ExecContext(t.Context(), "SET innodb_lock_wait_timeout = 1")
	_, err = conn.ExecContext(t.Context(), "UPDATE stock SET quantity = 1 WHERE id = 1")
	if e, ok := errors.AsType[*driver.MySQLError](err); !ok || e.Number != 1205 || err1 != nil {
		t.Errorf("no timeout: %v, %v", err1, err)
	}
	_, err = conn.ExecContext(t.Context(), "SET innodb_lock_wait_timeout = 7")
	if err := errors.Join(err, conn.Close(), tx.Rollback()); err != nil {
		t.Fatal(err)
	}
	if got := s.read(t, mysql.InnodbSource)[mysql.LockTimeouts] - before; got != 1 {
		t.Errorf("%v lock timeouts, want 1", got)
	}
}

// waiting waits until the server has connections in this state.
func (s stage) waiting(t *testing.T, where string, n int) {
	t.Helper()
	for got := 0; got < n; {
		if t.Context().Err() != nil {
			t.Fatal("nobody waits: ", where)
		}
		if err := s.server.DB.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND " + where).Scan(&got); err != nil {
			t.Fatal(err)
		}
	}
}

// metadataLock lets an ALTER wait for a transaction that has read the table. The
// servers count that wait in opposite places.
func metadataLock(t *testing.T, s stage) {
	s.exec(t, "CREATE TABLE altered (n INT)")
	timer := record.Series(mysql.WaitTimer, mysql.MetadataWait)
	before := s.read(t, mysql.WaitsSource)[timer]
	tx, err := s.load.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SELECT n FROM altered"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.load.Exec("ALTER TABLE altered ADD m INT")
		ended <- err
	}()
	s.waiting(t, "STATE LIKE 'Waiting for table metadata lock%'", 1)
	_, err = tx.Exec("DO SLEEP(0.3)") // by the server's own clock
	if err := errors.Join(err, tx.Commit(), <-ended); err != nil {
		t.Fatal(err)
	}
	got := s.settled(t, 1, "ALTER TABLE")
	waited := s.read(t, mysql.WaitsSource)[timer] - before
	lock := got[mysql.DigestLock]
	switch {
	case got[mysql.DigestTimer] < 0.29:
		t.Errorf("the ALTER took %v s", got[mysql.DigestTimer])
	case s.server.Flavor == mysql.MySQL && (lock > 0.05 || waited < 0.29):
		t.Errorf("MySQL: digest's lock %v s, metadata waits %v s; want under 0.05 and 0.3", lock, waited)
	case s.server.Flavor == mysql.MariaDB && lock < 0.29:
		t.Errorf("MariaDB: digest's lock %v s, want 0.3", lock)
	}
}

// observer: seven readings of the status are seven statements of the observer,
// and the reading of that itself is one more; the load's are none.
func observer(t *testing.T, s stage) {
	before := s.read(t, mysql.ObserverSource)
	for range 7 {
		s.read(t, mysql.StatusSource)
		s.exec(t, "SELECT 1")
	}
	after := s.read(t, mysql.ObserverSource)
	n, seconds := after[mysql.ObserverCount]-before[mysql.ObserverCount], after[mysql.ObserverTimer]-before[mysql.ObserverTimer]
	if n < 7 || n > 9 || seconds <= 0 || seconds > 5 {
		t.Errorf("%v statements of %v s, want 8", n, seconds)
	}
}

// lockGraph: three of the load's transactions wait for a fourth of the load.
func lockGraph(t *testing.T, s stage) {
	s.exec(t, "CREATE TABLE words (word VARCHAR(20) PRIMARY KEY, n INT)")
	s.exec(t, "INSERT INTO words VALUES ('a,{b}', 0)")
	tx, err := s.load.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE words SET n = 1 WHERE word = 'a,{b}'"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := s.load.Exec("UPDATE words SET n = n + 1 WHERE word = 'a,{b}'")
			ended <- err
		}()
	}
	s.waiting(t, "INFO LIKE 'UPDATE words SET n = n + 1%'", 3)
	// The tables are refreshed only if nobody reads them for 100 ms.
	pause := time.NewTicker(200 * time.Millisecond)
	defer pause.Stop()
	var blockers, waiters []string
	var most float64
	for most < 3 && t.Context().Err() == nil {
		<-pause.C
		blockers, waiters = nil, nil
		for series, v := range s.read(t, mysql.LocksSource) {
			switch name, labels, _ := record.ParseSeries(series); name {
			case mysql.LockBlockers:
				blockers = append(blockers, strings.Join(labels[:4], " "))
				most = max(most, v)
			case mysql.LockWaiters:
				waiters = append(waiters, fmt.Sprint(strings.Join(labels[:3], " "), " ", v))
			}
		}
	}
	if d := cmp.Diff([]string{"words PRIMARY 'a,{b}' load"}, blockers); d != "" {
		t.Errorf("who blocks: %s", d)
	}
	if d := cmp.Diff([]string{"words PRIMARY 'a,{b}' 3"}, waiters); d != "" || most != 3 {
		t.Errorf("%v wait for it: %s", most, d)
	}
	if err := errors.Join(tx.Commit(), <-ended, <-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	<-pause.C // nobody has read for a while
	if v := s.read(t, mysql.LocksSource); v[mysql.LockSamples] != 1 || len(v) != 1 {
		t.Errorf("nobody waits, and the graph is %v", v)
	}
}

// serversOwnNumbers holds a reading against a query of our own.
func serversOwnNumbers(t *testing.T, s stage) {
	values := s.settled(t, 7, "FROM `FIVE`")
	d := s.digest("FROM `FIVE`")
	var count, timer, lock, longest uint64
	const q = "SELECT COUNT_STAR, SUM_TIMER_WAIT, SUM_LOCK_TIME, MAX_TIMER_WAIT FROM performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = '" + schema + "' AND DIGEST = "
	if err := s.server.DB.QueryRow(q+"'"+d+"'").Scan(&count, &timer, &lock, &longest); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{mysql.DigestCount: float64(count), mysql.DigestTimer: float64(timer) / 1e12, mysql.DigestLock: float64(lock) / 1e12, mysql.DigestMax: float64(longest) / 1e12} {
		if math.Abs(values[name]-want) > 1e-9 {
			t.Errorf("%s is %v, the server says %v", name, values[name], want)
		}
	}
}

// gone: the error of each source names it.
func gone(t *testing.T, s stage) {
	s.server.DB.Close()
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		b := &record.Batch{}
		if err := s.all[name].Read(context.Background(), b); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
		if len(b.Values) > 0 {
			t.Errorf("%s read %v from nowhere", name, b.Values)
		}
	}
	if _, err := s.server.Variables(context.Background()); err == nil {
		t.Error("a server that has gone has variables")
	}
	if _, err := s.server.Clock(context.Background(), func() (float64, float64) { return 0, 0 }); err == nil {
		t.Error("a server that has gone has a clock")
	}
}

// TestClock sets the server's clock for the observer's sessions and gives our
// own by hand. Its time zone turns its clock back at 01:00 UTC on 25 October
// 2026, so that the local time of 00:30 UTC comes twice.
func TestClock(t *testing.T) {
	t.Setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
	sb := sandboxtest.Start(t, sandbox.Options{})
	at := func(text string) float64 {
		t.Helper()
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return float64(v.Unix())
	}
	for _, server := range []string{"2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"} {
		cfg := sb.MySQL().Config()
		cfg.Params = map[string]string{"timestamp": fmt.Sprintf("%.0f", at(server))}
		s, err := mysql.Connect(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.DB.Close()
		// We ask at 5 s of the record, an hour before the server's time, and the
		// answer comes at 5.5 s: at 5.25 s it is 3599.75 s ahead.
		since := 4.5
		now := func() (float64, float64) {
			since += 0.5
			return since, at(server) - 3600 + since - 5
		}
		got, err := s.Clock(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		want := record.Clock{Server: "mysql", AtS: 5, OffsetS: 3599.75, RTTS: 0.5}
		if got.Server != want.Server || got.AtS != want.AtS || got.RTTS != want.RTTS || math.Abs(got.OffsetS-want.OffsetS) > 1e-3 {
			t.Errorf("at %s: %+v, want %+v", server, got, want)
		}
	}
}
