package sandbox

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

func open(t *testing.T, m *MySQLServer) *sql.DB {
	t.Helper()
	c, err := mysql.NewConnector(m.Config())
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	t.Cleanup(func() { db.Close() })
	return db
}

func variable(t *testing.T, db *sql.DB, name string) string {
	t.Helper()
	var v sql.NullString
	if err := db.QueryRowContext(t.Context(), "SELECT @@"+name).Scan(&v); err != nil {
		t.Fatal(name, ": ", err)
	}
	return v.String
}

func TestStart(t *testing.T) {
	needServers(t)
	t.Parallel()
	h := testHost(t)
	s := mustStart(t, h, Options{
		MaxConnections: 100,
		Variables:      map[string]string{"innodb-lock-wait-timeout": "7", "lock_wait_timeout": "8"},
	})
	if w := s.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %q", w)
	}
	t.Run("folder", func(t *testing.T) { testPrivate(t, s, h.temp) })
	t.Run("mysql", func(t *testing.T) { testMySQL(t, s.MySQL()) })
	t.Run("redis", func(t *testing.T) { testRedis(t, s.Redis()) })
}

// testPrivate: nobody else can reach the servers, and Ctrl-C does not.
func testPrivate(t *testing.T, s *Sandbox, temp string) {
	dir := filepath.Dir(s.MySQL().Socket)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 || filepath.Dir(dir) != temp || !strings.HasPrefix(info.Name(), "chokepoint-sandbox-") {
		t.Errorf("folder %s, mode %v", dir, info.Mode())
	}
	for _, server := range []*Server{&s.MySQL().Server, s.Redis()} {
		if len(server.Socket) > socketPathMax || filepath.Dir(server.Socket) != dir {
			t.Errorf("socket %s", server.Socket)
		}
		if parent, group := parentAndGroup(t, server.PID); parent != os.Getpid() || group != server.PID {
			t.Errorf("%s: parent %d, group %d; want our child %d in its own group", server.Flavor, parent, group, server.PID)
		}
		if text, err := os.ReadFile(server.LogFile); err != nil || len(text) == 0 {
			t.Errorf("log of %s: %d bytes, %v", server.Flavor, len(text), err)
		}
	}
}

func testMySQL(t *testing.T, m *MySQLServer) {
	db := open(t, m)
	if v := variable(t, db, "version"); !strings.HasPrefix(v, m.Version) {
		t.Errorf("version %q, told as %q", v, m.Version)
	}
	for name, want := range map[string]string{
		"skip_networking":                "1",
		"performance_schema":             "1",
		"skip_name_resolve":              "1",
		"log_bin":                        "0",
		"innodb_flush_log_at_trx_commit": "0",
		"max_connections":                "116",
		"innodb_lock_wait_timeout":       "7",
		"lock_wait_timeout":              "8",
		"pid_file":                       filepath.Join(filepath.Dir(m.Socket), "mysqld.pid"),
	} {
		if got := variable(t, db, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if v := variable(t, db, "innodb_doublewrite"); v != "0" && v != "OFF" {
		t.Errorf("innodb_doublewrite = %q", v)
	}
	for _, q := range []string{
		"CREATE DATABASE chokepoint_x",
		"CREATE TABLE chokepoint_x.t (id INT PRIMARY KEY) ENGINE=InnoDB",
		"INSERT INTO chokepoint_x.t VALUES (1)",
	} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
	m.Config().User = "someone"
	if m.Config().User != "root" {
		t.Error("Config is not a fresh copy")
	}
}

func testRedis(t *testing.T, r *Server) {
	if r.Flavor != Redis && r.Flavor != Valkey || r.Version == "" {
		t.Errorf("flavor %q, version %q", r.Flavor, r.Version)
	}
	if err := pingRedis(t.Context(), r.Socket); err != nil {
		t.Error(err)
	}
	if err := pingRedis(t.Context(), r.Socket+"x"); err == nil {
		t.Error("ping of no socket succeeds")
	}
}

func TestClose(t *testing.T) {
	needServers(t)
	t.Parallel()
	s := mustStart(t, testHost(t), Options{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if !gone(s.MySQL().PID) || !gone(s.Redis().PID) {
				t.Error("Close returned before the servers had ended")
			}
			if _, err := os.Stat(s.folder.path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("folder after Close: %v", err)
			}
		})
	}
	wg.Wait()
}

// A server that does not heed SIGTERM is killed.
func TestCloseStuck(t *testing.T) {
	needServers(t)
	t.Parallel()
	s := mustStart(t, testHost(t), Options{})
	s.grace = 50 * time.Millisecond
	if err := syscall.Kill(s.Redis().PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !gone(s.Redis().PID) {
		t.Error("the stopped server is still there")
	}
}

// A server that crashed in a run is not passed over.
func TestCloseTellsOfCrash(t *testing.T) {
	needServers(t)
	t.Parallel()
	s := mustStart(t, testHost(t), Options{})
	if err := syscall.Kill(s.MySQL().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.mysql.process.exited
	err := s.Close()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{s.MySQL().Version, "ended by itself: signal: killed", "ready for connections"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestServerDiesWhileStarting(t *testing.T) {
	needServers(t)
	t.Parallel()
	began := time.Now()
	_, err := testHost(t).start(t.Context(), Options{Variables: map[string]string{"no-such-variable": "1"}})
	if err == nil {
		t.Fatal("started with an unknown variable")
	}
	for _, want := range []string{"ended while starting: exit status", "last lines of its log", "no-such-variable"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if took := time.Since(began); took > startTimeout/2 {
		t.Errorf("noticed after %v", took)
	}
}

func TestConnectionsCut(t *testing.T) {
	needServers(t)
	t.Parallel()
	s := mustStart(t, testHost(t), Options{Variables: map[string]string{"max-connections": "20"}})
	if w := strings.Join(s.Warnings(), "\n"); !strings.Contains(w, "takes 20 connections, not 500") {
		t.Errorf("warnings: %q", w)
	}
}

func TestCancelStart(t *testing.T) {
	needServers(t)
	for _, c := range []struct{ name, when string }{
		{"initialising", "cache/*.new-*/data/ibdata1"},
		{"copying or starting", folderPrefix + "*/data"},
		{"starting", folderPrefix + "*/" + mysqlLog},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := testHost(t)
			if c.name == "initialising" {
				h.caches = []string{filepath.Join(h.temp, "cache")}
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := h.start(ctx, Options{})
				ended <- err
			}()
			eventually(t, c.when, func() bool { return len(glob(t, h.temp, c.when)) > 0 })
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want it cancelled", err)
			}
			if left := glob(t, h.temp, "cache/*.new-*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Starts at the same time, on a machine without a template, make one.
func TestColdStarts(t *testing.T) {
	needServers(t)
	t.Parallel()
	h := testHost(t)
	h.caches = []string{filepath.Join(h.temp, "cache")}
	var log bytes.Buffer
	o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			s, err := h.start(t.Context(), o)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(log.String(), "initialising a data folder"); n != 1 {
		t.Errorf("initialised %d times, want once:\n%s", n, &log)
	}
	if got := glob(t, h.temp, "cache/*.new-*"); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func BenchmarkStart(b *testing.B) {
	run := func(b *testing.B, caches func() []string) {
		for b.Loop() {
			b.StopTimer()
			h := thisHost()
			if c := caches(); c != nil {
				h.caches = c
			}
			b.StartTimer()
			s, err := h.start(b.Context(), Options{})
			b.StopTimer()
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
	b.Run("warm", func(b *testing.B) { run(b, func() []string { return nil }) })
	b.Run("cold", func(b *testing.B) { run(b, func() []string { return []string{b.TempDir()} }) })
}
