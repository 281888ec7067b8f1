package mysql_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"chokepoint/collectors"
	"chokepoint/collectors/mysql"
	"chokepoint/collectors/record"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

// look returns the findings by their check.
func look(t *testing.T, s *mysql.Server) map[string]collectors.Finding {
	t.Helper()
	all, err := s.Findings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]collectors.Finding{}
	for _, f := range all {
		out[f.Check] = f
		if f.State != collectors.Visible && (f.Costs == "" || f.Found == "") {
			t.Errorf("%+v does not say what it costs", f)
		}
	}
	return out
}

// user makes an account and returns the observer's view as that user.
func user(t *testing.T, sb *sandbox.Sandbox, root *sql.DB, name string) *mysql.Server {
	t.Helper()
	if _, err := root.Exec("CREATE USER \"" + name + "\"@localhost IDENTIFIED BY ''"); err != nil {
		t.Fatal(err)
	}
	cfg := sb.MySQL().Config()
	cfg.User = name
	s, err := mysql.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.DB.Close() })
	return s
}

// TestLeastPrivilege: a user without any rights is told what is missing; with
// just the statements that this prints, all sources can be read.
func TestLeastPrivilege(t *testing.T) { sandboxtest.EachFlavor(t, testLeastPrivilege) }

func testLeastPrivilege(t *testing.T, flavor sandbox.Flavor) {
	sb := sandboxtest.Start(t, sandbox.Options{Flavor: flavor})
	root, err := sql.Open("mysql", sb.MySQL().Config().FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	nobody := user(t, sb, root, "o'bre@dy")

	fixes := map[string]bool{}
	for check, f := range look(t, nobody) {
		if visible := slices.Contains([]string{"performance_schema", "slow_log_table", "row_lock_counters", "connections"}, check); (f.State == collectors.Visible) != visible {
			t.Errorf("without rights: %+v", f)
		}
		for _, statement := range f.Fix {
			fixes[statement] = true
		}
	}
	if len(fixes) != 2 {
		t.Errorf("fixes %v, want PROCESS and SELECT on performance_schema", fixes)
	}
	for statement := range fixes {
		if _, err := root.Exec(statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	nobody.DB.SetMaxIdleConns(0) // rights of a global level hold from the next connection on
	for _, f := range look(t, nobody) {
		if f.State != collectors.Visible {
			t.Errorf("with the rights that were printed: %+v", f)
		}
	}
	for _, src := range append(nobody.Sources(schema, func(mysql.Text) {}), mysql.Ping{Server: nobody}, mysql.Locks{Server: nobody}, mysql.MetadataLocks{Server: nobody}, mysql.Observer{Server: nobody}) {
		if err := src.Read(t.Context(), &record.Batch{}); err != nil {
			t.Error(err)
		}
	}

	rights, err := nobody.LoadRights(t.Context(), "chokepoint_lock")
	if err != nil || rights.State != collectors.Limited || len(rights.Fix) != 1 {
		t.Fatalf("rights to load: %+v (%v)", rights, err)
	}
	if _, err := root.Exec(rights.Fix[0]); err != nil {
		t.Fatalf("%s: %v", rights.Fix[0], err)
	}
	if rights, err = nobody.LoadRights(t.Context(), "chokepoint_lock"); err != nil || rights.State != collectors.Visible {
		t.Errorf("with the rights that were printed: %+v (%v)", rights, err)
	}
	if other, _ := nobody.LoadRights(t.Context(), "chokepointXlock"); other.State == collectors.Visible {
		t.Error("the grant holds for schemas that are not ours")
	}
	if _, err := nobody.DB.Exec("CREATE DATABASE chokepoint_lock"); err != nil {
		t.Error(err)
	}
}

// TestFindings: each trap of a server is found on a server that has it.
func TestFindings(t *testing.T) { sandboxtest.EachFlavor(t, testFindings) }

func testFindings(t *testing.T, flavor sandbox.Flavor) {
	t.Run("performance_schema off", func(t *testing.T) {
		s := open(t, sandbox.Options{Flavor: flavor, Variables: map[string]string{"performance-schema": "OFF"}})
		f := look(t, s.server)
		if got := f["performance_schema"]; got.State != collectors.Hidden || !slices.Contains(got.Settings, "performance_schema=ON") {
			t.Errorf("%+v", got)
		}
		if f["row_lock_counters"].State != collectors.Visible {
			t.Errorf("%+v", f["row_lock_counters"])
		}
		for name := range s.all {
			s.read(t, name) // nothing fails
		}
	})
	t.Run("others", func(t *testing.T) {
		s := open(t, sandbox.Options{Flavor: flavor, Variables: map[string]string{
			"slow-query-log": "ON", "log-output": "TABLE",
			"performance-schema-instrument":                 "wait/lock/metadata/sql/mdl=OFF",
			"performance-schema-session-connect-attrs-size": "0",
		}})
		long := "SELECT " + strings.Repeat("id AS a_name_of_some_length, ", 60) + "1 FROM stock WHERE "
		s.exec(t, long+"id = 1")
		s.exec(t, long+"quantity = 1")
		f := look(t, s.server)
		for _, check := range []string{"slow_log_table", "digest_length", "metadata_locks"} {
			if f[check].State != collectors.Limited {
				t.Errorf("%s: %+v", check, f[check])
			}
		}
		if f["connection_attributes"].State != collectors.Hidden {
			t.Errorf("%+v", f["connection_attributes"])
		}
		for _, statement := range slices.Concat(f["slow_log_table"].Fix, f["metadata_locks"].Fix) {
			s.exec(t, statement)
		}
		f = look(t, s.server)
		for _, check := range []string{"slow_log_table", "metadata_locks"} {
			if f[check].State != collectors.Visible {
				t.Errorf("mended, %s: %+v", check, f[check])
			}
		}
		mergedTexts(t, s)
	})
	t.Run("full", func(t *testing.T) {
		s := open(t, sandbox.Options{Flavor: flavor, MaxConnections: 1, Variables: map[string]string{"performance-schema-digests-size": "3", "max-connections": "12"}})
		for _, q := range []string{"SELECT 1", "SELECT 1, 2", "SELECT 1 + 1", "SELECT 'a' AS b", "SELECT id FROM stock"} {
			s.exec(t, q)
		}
		f := look(t, s.server)
		if got := f["digest_table"]; got.State != collectors.Limited || !strings.Contains(got.Found, "full") {
			t.Errorf("%+v", got)
		}
		if got := f["connections"]; got.State != collectors.Limited {
			t.Errorf("%+v", got)
		}
	})
}

// mergedTexts: two long statements that differ at their end are one digest, and
// that is told; the short ones are not.
func mergedTexts(t *testing.T, s stage) {
	cut := map[string]bool{}
	src := s.server.Sources(schema, func(x mysql.Text) { cut[x.Digest] = x.Cut })[0]
	b := &record.Batch{}
	if err := src.Read(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	n := 0
	for digest, is := range cut {
		if is {
			n++
			if count := b.Values[record.Series(mysql.DigestCount, digest)]; count != 2 {
				t.Errorf("the long statements were counted %v times in one digest, want 2", count)
			}
		}
	}
	if n != 1 || len(cut) < 3 {
		t.Errorf("%d of %d digests are told to be cut, want 1", n, len(cut))
	}
}

// TestMetadataLocks: a stranger has a table and a name; who waits for them is
// shown with who has them.
func TestMetadataLocks(t *testing.T) { sandboxtest.EachFlavor(t, testMetadataLocks) }

func testMetadataLocks(t *testing.T, flavor sandbox.Flavor) {
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
	for _, q := range []string{"USE " + schema, "DO GET_LOCK('door', 1)", "LOCK TABLES stock WRITE"} {
		if _, err := stranger.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	waiters := make(chan error, 2)
	for _, q := range []string{"UPDATE stock SET quantity = 1 WHERE id = 1", "DO GET_LOCK('door', 20)"} {
		go func() {
			_, err := s.load.ExecContext(context.WithoutCancel(t.Context()), q)
			waiters <- err
		}()
	}
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	want := []string{"TABLE stock foreign " + thread, "USER LEVEL LOCK door foreign " + thread}
	var got []string
	for len(got) < len(want) {
		select {
		case <-pause.C:
		case <-t.Context().Done():
			t.Fatalf("the locks are %q", got)
		}
		got = nil
		for series, v := range s.read(t, mysql.MetadataSource) {
			if name, labels, _ := record.ParseSeries(series); name == mysql.MetadataBlockers && v == 1 {
				got = append(got, strings.Join(append(labels[:1:1], labels[2:5]...), " "))
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the locks are %q, want %q", got, want)
	}
	if _, err := stranger.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Error(err)
	}
	if _, err := stranger.ExecContext(t.Context(), "DO RELEASE_LOCK('door')"); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-waiters; err != nil {
			t.Error(err)
		}
	}
}
