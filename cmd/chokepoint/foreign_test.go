package main

import (
	"bytes"
	"context"
	"database/sql"
	"io/fs"
	"os"
	"strings"
	"testing"

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

	cfg := sb.MySQL().Config()
	cfg.User, cfg.Passwd = "load_user", secret
	runs := t.TempDir()
	try := func(dsn string, args ...string) (string, int) {
		t.Helper()
		var out bytes.Buffer
		getenv := func(key string) string { return map[string]string{dsnVariable: dsn}[key] }
		code := run(context.Background(), world{getenv, &out, &out}, append([]string{"run", "lock", "--runs", runs, "--concurrency", "50", "--requests", "3000"}, args...))
		if strings.Contains(out.String(), secret) {
			t.Errorf("the password is printed: %s", out.String())
		}
		return out.String(), code
	}
	if out, code := try(cfg.FormatDSN()); code != exitUsage || !strings.Contains(out, "--allow-load") {
		t.Errorf("without --allow-load: exit %d, %s", code, out)
	}
	if out, code := try(cfg.FormatDSN(), "--allow-load"); code != exitOK || !strings.Contains(out, "VERDICT  row_lock/hot_row") {
		t.Errorf("exit %d, %s", code, out)
	}
	wrong := cfg.Clone()
	wrong.Passwd = secret + "x"
	if out, code := try(wrong.FormatDSN(), "--allow-load"); code != exitError || !strings.Contains(out, "Access denied") {
		t.Errorf("with a wrong password: exit %d, %s", code, out)
	}
	if out, code := try("load_user:"+secret+"@nonsense", "--allow-load"); code != exitUsage {
		t.Errorf("with a broken DSN: exit %d, %s", code, out)
	}
	nowhere(t, runs, secret)

	// A schema of that name that is not ours is left alone.
	exec("DROP DATABASE chokepoint_lock")
	exec("CREATE DATABASE chokepoint_lock")
	exec("CREATE TABLE chokepoint_lock.stock (mine INT)")
	if out, code := try(cfg.FormatDSN(), "--allow-load"); code != exitError || !strings.Contains(out, "it is not ours") {
		t.Errorf("with somebody's schema: exit %d, %s", code, out)
	}
	exec("SELECT mine FROM chokepoint_lock.stock")
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
