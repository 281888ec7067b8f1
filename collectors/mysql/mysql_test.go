package mysql_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"chokepoint/collectors"
	"chokepoint/collectors/metric"
	"chokepoint/collectors/mysql"
	"chokepoint/collectors/record"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

func TestParseVersion(t *testing.T) {
	for _, c := range []struct {
		text, flavor string
		v            mysql.Version
	}{
		{"10.11.19-MariaDB-0+deb12u1", "mariadb", mysql.Version{Major: 10, Minor: 11, Patch: 19}},
		{"5.5.5-10.6.12-MariaDB-log", "mariadb", mysql.Version{Major: 10, Minor: 6, Patch: 12}}, // as old replicas see it
		{"9.7.4-2", "mysql", mysql.Version{Major: 9, Minor: 7, Patch: 4}},
		{"8.0.36-0ubuntu0.22.04.1", "mysql", mysql.Version{Major: 8, Minor: 0, Patch: 36}},
		{"11.8-MARIADB", "mariadb", mysql.Version{Major: 11, Minor: 8}},
	} {
		flavor, v, err := mysql.ParseVersion(c.text)
		if err != nil || flavor != c.flavor || v != c.v {
			t.Errorf("%s: %s %v (%v), want %s %v", c.text, flavor, v, err, c.flavor, c.v)
		}
	}
	for _, bad := range []string{"", "MariaDB", "v8.0", "8", "9999999.1"} {
		if flavor, v, err := mysql.ParseVersion(bad); err == nil {
			t.Errorf("%q is taken for %s %v", bad, flavor, v)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("10.11.19-MariaDB")
	f.Fuzz(func(t *testing.T, s string) {
		if _, v, err := mysql.ParseVersion(s); err == nil && (v.Major < 0 || v.Minor < 0 || v.Patch < 0) {
			t.Errorf("%q is version %v", s, v)
		}
	})
}

const schema = "chokepoint_test"

// stage is a server with a load's connection and the observer's view.
type stage struct {
	load   *sql.DB
	server *mysql.Server
	texts  map[string]string
	all    map[string]collectors.Source
}

func open(t *testing.T, o sandbox.Options) stage {
	t.Helper()
	sb := sandboxtest.Start(t, o)
	server, err := mysql.Connect(t.Context(), sb.MySQL().Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.DB.Close() })
	if _, err := server.DB.Exec("CREATE DATABASE " + schema); err != nil {
		t.Fatal(err)
	}
	cfg := sb.MySQL().Config()
	cfg.DBName = schema
	cfg.ConnectionAttributes = "program_name:" + mysql.ProgramName
	load, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { load.Close() })
	s := stage{load, server, map[string]string{}, map[string]collectors.Source{}}
	for _, src := range append(server.Sources(schema, func(x mysql.Text) { s.texts[x.Digest] = x.Text }), mysql.Ping{Server: server}, mysql.Locks{Server: server}, mysql.MetadataLocks{Server: server}, mysql.Observer{Server: server}) {
		s.all[src.Name()] = src
	}
	s.exec(t, "CREATE TABLE stock (id INT PRIMARY KEY, quantity INT NOT NULL)")
	s.exec(t, "INSERT INTO stock VALUES (1, 100), (2, 100)")
	return s
}

func (s stage) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := s.load.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// read takes one reading, and holds each value against the description.
func (s stage) read(t *testing.T, source string) map[string]float64 {
	t.Helper()
	src := s.all[source]
	b := &record.Batch{Source: source}
	if err := src.Read(context.WithoutCancel(t.Context()), b); err != nil {
		t.Fatal(err)
	}
	descs := map[string]metric.Desc{}
	for _, d := range src.Metrics() {
		descs[d.Name] = d
	}
	for series := range b.Values {
		name, labels, err := record.ParseSeries(series)
		if d, ok := descs[name]; err != nil || !ok || len(d.Labels) != len(labels) {
			t.Errorf("%s: series %s is not as described (%v)", source, series, err)
		}
	}
	return b.Values
}

// until reads a source until the series reaches a value: the server counts a
// statement just after it has sent the answer.
func (s stage) until(t *testing.T, source, series string, want float64) map[string]float64 {
	t.Helper()
	for {
		values := s.read(t, source)
		if values[series] >= want || t.Context().Err() != nil {
			return values
		}
	}
}

// digest finds the digest whose text holds all the words.
func (s stage) digest(words ...string) string {
	for d, text := range s.texts {
		all := true
		for _, w := range words {
			all = all && strings.Contains(strings.ToUpper(text), w)
		}
		if all {
			return d
		}
	}
	return ""
}

func TestSources(t *testing.T) { sandboxtest.EachFlavor(t, testSources) }

func testSources(t *testing.T, flavor sandbox.Flavor) {
	s := open(t, sandbox.Options{Flavor: flavor})
	for name := range s.all {
		if v := s.read(t, name); len(v) == 0 && name != mysql.StatementsSource {
			t.Errorf("%s read nothing", name)
		}
	}
	before := s.read(t, mysql.DigestsSource)
	for range 7 {
		s.exec(t, "UPDATE stock SET quantity = quantity - 1 WHERE id = 2")
	}
	s.read(t, mysql.DigestsSource)
	d := s.digest("UPDATE", "QUANTITY")
	after := s.until(t, mysql.DigestsSource, record.Series(mysql.DigestCount, d), 7)
	delta := func(metric string) float64 {
		return after[record.Series(metric, d)] - before[record.Series(metric, d)]
	}
	if delta(mysql.DigestCount) != 7 || delta(mysql.DigestRowsAffected) != 7 || delta(mysql.DigestErrors) != 0 || delta(mysql.DigestTimer) <= 0 {
		t.Errorf("7 updates of a row: count %v, rows %v, timer %v s", delta(mysql.DigestCount), delta(mysql.DigestRowsAffected), delta(mysql.DigestTimer))
	}
	for _, text := range s.texts {
		if strings.Contains(text, "performance_schema") || strings.Contains(strings.ToUpper(text), "SHOW GLOBAL") {
			t.Errorf("the observer's own statement stands in the load's schema: %s", text)
		}
	}
	began := time.Now()
	c, err := s.server.Clock(t.Context(), func() (float64, float64) {
		now := time.Now()
		return now.Sub(began).Seconds(), float64(now.UnixNano()) / 1e9
	})
	if err != nil || c.OffsetS < -0.05-c.RTTS || c.OffsetS > 0.05+c.RTTS { // one machine, one clock
		t.Errorf("clock %+v (%v)", c, err)
	}
}

// TestRowLockTime holds a row for a time that the server itself measures, and
// looks where the wait is counted: on MariaDB not in SUM_LOCK_TIME.
func TestRowLockTime(t *testing.T) { sandboxtest.EachFlavor(t, testRowLockTime) }

func testRowLockTime(t *testing.T, flavor sandbox.Flavor) {
	s := open(t, sandbox.Options{Flavor: flavor})
	tx, err := s.load.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE stock SET quantity = 1 WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	before := s.read(t, mysql.StatusSource)
	waiter := make(chan error, 1)
	go func() {
		_, err := s.load.Exec("DELETE FROM stock WHERE id = 1")
		waiter <- err
	}()
	for s.read(t, mysql.StatusSource)[mysql.RowLockCurrent] == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nobody waits")
		}
	}
	if _, err := tx.Exec("DO SLEEP(0.3)"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiter; err != nil {
		t.Fatal(err)
	}
	after := s.read(t, mysql.StatusSource)
	waits, waited := after[mysql.RowLockWaits]-before[mysql.RowLockWaits], after[mysql.RowLockTime]-before[mysql.RowLockTime]
	if waits != 1 || waited < 0.29 {
		t.Errorf("%v waits of %v s, want 1 of 0.3 s and more", waits, waited)
	}
	s.read(t, mysql.DigestsSource)
	d := s.digest("DELETE FROM")
	values := s.until(t, mysql.DigestsSource, record.Series(mysql.DigestCount, d), 1)
	timer, lock := values[record.Series(mysql.DigestTimer, d)], values[record.Series(mysql.DigestLock, d)]
	switch {
	case timer < 0.29:
		t.Errorf("the DELETE took %v s by its timer", timer)
	case s.server.Flavor == mysql.MariaDB && lock > 0.05:
		t.Errorf("MariaDB's SUM_LOCK_TIME is %v s: it held no row locks before", lock)
	case s.server.Flavor == mysql.MySQL && lock < 0.29:
		t.Errorf("MySQL's SUM_LOCK_TIME is %v s, want the row lock in it", lock)
	}
}

func TestDigestTableFull(t *testing.T) { sandboxtest.EachFlavor(t, testDigestTableFull) }

func testDigestTableFull(t *testing.T, flavor sandbox.Flavor) {
	s := open(t, sandbox.Options{Flavor: flavor, Variables: map[string]string{"performance-schema-digests-size": "3"}})
	for _, q := range []string{"SELECT 1", "SELECT 1, 2", "SELECT 1 + 1", "SELECT 'a' AS b", "SELECT id FROM stock"} {
		s.exec(t, q)
	}
	values := s.until(t, mysql.DigestsSource, record.Series(mysql.DigestCount, mysql.Overflow), 3)
	if n := values[record.Series(mysql.DigestCount, mysql.Overflow)]; n < 3 {
		t.Errorf("%v statements in the overflow row, want 3 and more: %v", n, values)
	}
}

// TestPreparedStatements: MariaDB counts them in no digest.
func TestPreparedStatements(t *testing.T) { sandboxtest.EachFlavor(t, testPreparedStatements) }

func testPreparedStatements(t *testing.T, flavor sandbox.Flavor) {
	s := open(t, sandbox.Options{Flavor: flavor})
	for range 5 {
		var n int
		if err := s.load.QueryRow("SELECT quantity FROM stock WHERE id = ?", 1).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	s.read(t, mysql.DigestsSource)
	if s.server.Flavor == mysql.MariaDB && s.digest("SELECT", "QUANTITY") != "" {
		t.Error("MariaDB has a digest of a prepared statement")
	}
	executed := record.Series(mysql.StatementCount, mysql.ExecuteStatement)
	if n := s.until(t, mysql.StatementsSource, executed, 5)[executed]; n != 5 {
		t.Errorf("%v executions of prepared statements, want 5", n)
	}
}

// TestLockGraph holds a known row by a stranger's transaction: the graph names
// table, index, key, waiter and blocker.
func TestLockGraph(t *testing.T) { sandboxtest.EachFlavor(t, testLockGraph) }

func testLockGraph(t *testing.T, flavor sandbox.Flavor) {
	s := open(t, sandbox.Options{Flavor: flavor})
	stranger, err := s.server.DB.Conn(t.Context()) // without the load's name
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	var thread string
	if err := stranger.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&thread); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"USE " + schema, "BEGIN", "UPDATE stock SET quantity = 7 WHERE id = 2"} {
		if _, err := stranger.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	waiter := make(chan error, 1)
	go func() {
		_, err := s.load.Exec("UPDATE stock SET quantity = 8 WHERE id = 2")
		waiter <- err
	}()
	// The server refreshes its tables only if nobody reads them for 100 ms.
	pause := time.NewTicker(200 * time.Millisecond)
	defer pause.Stop()
	var found []string
	for len(found) == 0 {
		select {
		case <-pause.C:
		case <-t.Context().Done():
			t.Fatal("nobody waits")
		}
		for series, v := range s.read(t, mysql.LocksSource) {
			if name, labels, _ := record.ParseSeries(series); name == mysql.LockBlockers && v == 1 {
				found = labels[:5]
			}
		}
	}
	if got, want := strings.Join(found, " "), "stock PRIMARY 2 foreign "+thread; got != want {
		t.Errorf("the graph says %q, want %q", got, want)
	}
	if _, err := stranger.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-waiter; err != nil {
		t.Fatal(err)
	}
}
