package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"chokepoint/collectors/record"
	"chokepoint/dashboards/report"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

// secret is a password with what URLs and shells find special.
const secret = "p@ss:w/o?rd%21'\"`$"

// TestLiveForeignServer loads a server that the command did not start, as a
// user with a password and with no more rights than it needs.
func TestLiveForeignServer(t *testing.T) { sandboxtest.EachFlavor(t, testLiveForeignServer) }

func testLiveForeignServer(t *testing.T, flavor sandbox.Flavor) {
	sb := sandboxtest.Start(t, sandbox.Options{Flavor: flavor})
	root, err := sql.Open("mysql", sb.MySQL().Config().FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	exec := func(query string) {
		t.Helper()
		if _, err := root.Exec(query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	exec("CREATE USER load_user@localhost IDENTIFIED BY " + quoted(secret))
	exec("GRANT ALL ON `chokepoint\\_%`.* TO load_user@localhost")
	exec("GRANT PROCESS ON *.* TO load_user@localhost")
	exec("GRANT SELECT ON performance_schema.* TO load_user@localhost")

	before := inventory(t, root)
	cfg := sb.MySQL().Config()
	cfg.User, cfg.Passwd = "load_user", secret
	runs := t.TempDir()
	at := func(dsn string, args ...string) (string, int) {
		t.Helper()
		var out bytes.Buffer
		getenv := func(key string) string { return map[string]string{dsnVariable: dsn}[key] }
		code := run(context.Background(), world{getenv, &out, &out}, args)
		if strings.Contains(out.String(), secret) {
			t.Errorf("the password is printed: %s", out.String())
		}
		return out.String(), code
	}
	try := func(dsn string, args ...string) (string, int) {
		t.Helper()
		return at(dsn, append([]string{"run", "lock", "--runs", runs, "--concurrency", "50", "--requests", "3000"}, args...)...)
	}
	if out, code := try(cfg.FormatDSN()); code != exitUsage || !strings.Contains(out, "--allow-load") {
		t.Errorf("without --allow-load: exit %d, %s", code, out)
	}
	if out, code := try(cfg.FormatDSN(), "--allow-load"); code != exitOK || !strings.Contains(out, "VERDICT  row_lock/hot_row") || strings.Contains(out, "chokepoint doctor") {
		t.Errorf("exit %d, %s", code, out)
	}
	wrong := cfg.Clone()
	wrong.Passwd = secret + "x"
	if out, code := try(wrong.FormatDSN(), "--allow-load"); code != exitError || !strings.Contains(out, "does not accept the user and password") {
		t.Errorf("with a wrong password: exit %d, %s", code, out)
	}
	if out, code := try("load_user:"+secret+"@nonsense", "--allow-load"); code != exitUsage {
		t.Errorf("with a broken DSN: exit %d, %s", code, out)
	}
	if out, code := at("", "run", "lock", "--allow-load", "--mysql-dsn", "u:"+"hunter2"+"@tcp(127.0.0.1:1)/"); code != exitUsage || !strings.Contains(out, "list of processes") || strings.Contains(out, "hunter2") {
		t.Errorf("with a password on the command line: exit %d, %s", code, out)
	}
	nowhere(t, runs, secret)

	// Two at once would drop each other's table.
	hold, err := root.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold.ExecContext(t.Context(), "DO GET_LOCK('chokepoint_lock', 5)"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "lock", "--allow-load", "--runs", runs}, {"clean"}} {
		if out, code := at(cfg.FormatDSN(), args...); code != exitError || !strings.Contains(out, "another chokepoint is working") {
			t.Errorf("%v beside another run: exit %d, %s", args, code, out)
		}
	}
	if _, err := hold.ExecContext(t.Context(), "DO RELEASE_LOCK('chokepoint_lock')"); err != nil {
		t.Fatal(err)
	}

	// What runs leave is removed, and nothing else.
	exec("CREATE DATABASE chokepoint_notes")
	exec("CREATE TABLE chokepoint_notes.mine (n INT)")
	if out, code := at(cfg.FormatDSN(), "clean"); code != exitOK || !strings.Contains(out, "dropped schema chokepoint_lock\n") || !strings.Contains(out, "left schema chokepoint_notes alone") {
		t.Errorf("clean: exit %d, %s", code, out)
	}
	if out, code := at(cfg.FormatDSN(), "clean"); code != exitOK || !strings.Contains(out, "no schema of ours") {
		t.Errorf("clean again: exit %d, %s", code, out)
	}
	exec("DROP DATABASE chokepoint_notes")
	if d := cmp.Diff(before, inventory(t, root)); d != "" {
		t.Errorf("the server is not as it was: %s", d)
	}

	// A schema of that name that is not ours is left alone.
	exec("CREATE DATABASE chokepoint_lock")
	exec("CREATE TABLE chokepoint_lock.stock (mine INT)")
	if out, code := try(cfg.FormatDSN(), "--allow-load"); code != exitError || !strings.Contains(out, "it is not ours") {
		t.Errorf("with somebody's schema: exit %d, %s", code, out)
	}
	exec("SELECT mine FROM chokepoint_lock.stock")
	if r := latest(t, runs); r.Run().Status() != record.Complete {
		t.Errorf("runs that could not begin left a record: %s", r.Run().ID)
	}
	testDoctor(t, at, cfg, exec)
}

// TestLiveForeignRedis locks in a Redis server that the command did not start,
// as a user with a password; what that leaves is removed, and nothing else.
func TestLiveForeignRedis(t *testing.T) {
	sb := sandboxtest.Start(t, sandbox.Options{})
	own := redis.NewClient(&redis.Options{Network: "unix", Addr: sandboxtest.Redis(t, sb).Socket})
	defer own.Close()
	ctx := t.Context()
	for _, words := range [][]any{
		{"acl", "setuser", "locker", "on", ">" + secret, "~chokepoint_*", "+@all"},
	} {
		if err := own.Do(ctx, words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// In a database of its own; the same keys in database 0 are not looked at.
	u := url.URL{Scheme: "unix", User: url.UserPassword("locker", secret), Path: sb.Redis().Socket, RawQuery: "db=5"}
	zero := own
	own = redis.NewClient(&redis.Options{Network: "unix", Addr: sb.Redis().Socket, DB: 5})
	defer own.Close()
	for _, c := range []*redis.Client{zero, own} {
		if err := c.Set(ctx, "theirs", 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := zero.Set(ctx, "chokepoint_lock:1", "theirs too", 0).Err(); err != nil {
		t.Fatal(err)
	}
	runs := t.TempDir()
	at := func(args ...string) (string, int) {
		t.Helper()
		var out bytes.Buffer
		getenv := func(key string) string {
			return map[string]string{redisVariable: u.String(), dsnVariable: sb.MySQL().Config().FormatDSN()}[key]
		}
		code := run(ctx, world{getenv, &out, &out}, args)
		if strings.Contains(out.String(), secret) || strings.Contains(out.String(), url.QueryEscape(secret)) {
			t.Errorf("the password is printed: %s", out.String())
		}
		return out.String(), code
	}
	spin := []string{"run", "lock", "--runs", runs, "--strategy", "redis-spin", "--concurrency", "20", "--requests", "500"}
	if out, code := at(spin...); code != exitUsage || !strings.Contains(out, "would lock in the Redis server") {
		t.Errorf("without --allow-load: exit %d, %s", code, out)
	}
	if err := own.Set(ctx, "chokepoint_notes", "mine", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if out, code := at(append(spin, "--allow-load")...); code != exitError || !strings.Contains(out, "they are not ours, and nothing was touched") {
		t.Errorf("beside somebody's keys: exit %d, %s", code, out)
	}
	if err := own.Del(ctx, "chokepoint_notes").Err(); err != nil {
		t.Fatal(err)
	}
	if out, code := at(append(spin, "--allow-load")...); code != exitOK || !strings.Contains(out, "APPLICATION LOCKS") {
		t.Errorf("exit %d, %s", code, out)
	}
	if err := own.Set(ctx, "chokepoint_claim", "another run", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{append(spin, "--allow-load"), {"clean"}} {
		if out, code := at(args...); code != exitError || !strings.Contains(out, "another chokepoint is working with the keys") {
			t.Errorf("%v beside another run: exit %d, %s", args[0], code, out)
		}
	}
	if err := own.Del(ctx, "chokepoint_claim").Err(); err != nil {
		t.Fatal(err)
	}
	if out, code := at("doctor"); code != exitOK || !strings.Contains(out, "as user locker") && !strings.Contains(out, ", as locker") {
		t.Errorf("doctor: exit %d, %s", code, out)
	}
	if out, code := at("clean"); code != exitOK || !strings.Contains(out, "deleted the keys that begin with chokepoint_") {
		t.Errorf("clean: exit %d, %s", code, out)
	}
	if keys, err := own.Keys(ctx, "*").Result(); err != nil || len(keys) != 1 || keys[0] != "theirs" {
		t.Errorf("left: %v (%v)", keys, err)
	}
	if keys, err := zero.Keys(ctx, "*").Result(); err != nil || len(keys) != 2 {
		t.Errorf("of database 0 there are left: %v (%v)", keys, err)
	}
	nowhere(t, runs, secret)
}

// testDoctor: without rights the doctor says so and what to enter; with that,
// nothing is missing.
func testDoctor(t *testing.T, at func(string, ...string) (string, int), cfg *mysql.Config, exec func(string)) {
	t.Helper()
	exec("CREATE USER blind@localhost IDENTIFIED BY " + quoted(secret))
	blind := cfg.Clone()
	blind.User = "blind"
	out, code := at(blind.FormatDSN(), "doctor", "--output", "json")
	var got struct{ Subjects []report.Subject }
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || len(got.Subjects) != 2 {
		t.Fatalf("doctor: exit %d, %v, %s", code, err, out)
	}
	fixes := 0
	for _, f := range got.Subjects[0].Findings {
		for _, statement := range f.Fix {
			exec(statement)
			fixes++
		}
	}
	if out, code = at(blind.FormatDSN(), "doctor"); code != exitOK || fixes == 0 || strings.Contains(out, "missing ") || strings.Contains(out, "limited ") {
		t.Errorf("doctor, with what it asked for: exit %d, %s", code, out)
	}
}

// inventory is all that a server holds: schemas, tables, accounts.
func inventory(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.Query(`SELECT CONCAT('schema ', SCHEMA_NAME) AS x FROM information_schema.SCHEMATA
		UNION ALL SELECT CONCAT('table ', TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.TABLES
		UNION ALL SELECT CONCAT('account ', User, '@', Host) FROM mysql.user ORDER BY x`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func quoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

// nowhere fails if a text stands in any file below a folder.
func nowhere(t *testing.T, dir, text string) {
	t.Helper()
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("%s holds the password", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLivePerformanceSchemaOff: MariaDB's default. Row-lock waits are known from
// the status, so that a hot row gets its verdict, and the report says what is
// not known, and why.
func TestLivePerformanceSchemaOff(t *testing.T) {
	sandboxtest.EachFlavor(t, testLivePerformanceSchemaOff)
}

func testLivePerformanceSchemaOff(t *testing.T, flavor sandbox.Flavor) {
	sb := sandboxtest.Start(t, sandbox.Options{Flavor: flavor, Variables: map[string]string{"performance-schema": "OFF"}})
	p := runLive(t, t.TempDir(), append(hotRow(100), "--allow-load", "--mysql-dsn", sb.MySQL().Config().FormatDSN())...)
	if p.Verdict.Layer != "row_lock" || p.Verdict.Cause != "hot_row" {
		t.Errorf("verdict %s/%s: %s", p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Summary)
	}
	if w := strings.Join(p.Warnings, "\n"); !strings.Contains(w, "performance_schema is off: no statement digests") || !strings.Contains(w, "chokepoint doctor") {
		t.Errorf("warnings:\n%s", w)
	}
	if len(p.Statements) != 0 {
		t.Errorf("statements of nowhere: %+v", p.Statements)
	}
}
