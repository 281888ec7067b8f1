package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

// children are our own servers, those of MySQL's kind or those of Redis'.
func children(t *testing.T, redis bool) []serverProcess {
	t.Helper()
	return slices.DeleteFunc(serverProcesses(t), func(p serverProcess) bool { return p.parent != os.Getpid() || p.isRedis() != redis })
}

// socket is the socket of a server. Redis changes its command line to tell it.
func (p serverProcess) socket() string {
	for _, arg := range p.command {
		for _, prefix := range []string{"--socket=", "unixsocket:"} {
			if _, s, ok := strings.Cut(arg, prefix); ok {
				return s
			}
		}
	}
	return ""
}

func (p serverProcess) isRedis() bool { return strings.HasSuffix(p.socket(), "redis.sock") }

// during runs a load and does something to its database server when it is
// measured for the given time.
func during(t *testing.T, after time.Duration, do func(p serverProcess), args ...string) page {
	t.Helper()
	return duringOf(t, false, after, do, args...)
}

// duringOf is during, for the database or for Redis.
func duringOf(t *testing.T, redis bool, after time.Duration, do func(p serverProcess), args ...string) page {
	t.Helper()
	runs := t.TempDir()
	done := make(chan struct{})
	ctx := t.Context()
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for !measuring(runs) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
		<-time.After(after)
		for _, p := range children(t, redis) {
			do(p)
		}
	}()
	p := runLive(t, runs, args...)
	<-done
	return p
}

func signalTo(t *testing.T, pid int, s syscall.Signal) {
	if err := syscall.Kill(pid, s); err != nil {
		t.Errorf("signal %v to the server: %v", s, err)
	}
}

// TestLiveServerStops: a server that stands still for seconds does not end the
// run; the time is named, and the verdict of the rest stands.
func TestLiveServerStops(t *testing.T) {
	p := during(t, time.Second, func(s serverProcess) {
		signalTo(t, s.pid, syscall.SIGSTOP)
		<-time.After(5 * time.Second)
		signalTo(t, s.pid, syscall.SIGCONT)
	}, "--concurrency", "50", "--duration", "9s")
	if p.Verdict.Layer != "row_lock" {
		t.Errorf("verdict %s/%s: %s", p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Summary)
	}
	warnings := strings.Join(p.Warnings, "\n")
	if !strings.Contains(warnings, "no operation ended between") || !strings.Contains(warnings, "no reading for") {
		t.Errorf("the standstill is not named:\n%s", warnings)
	}
	rest := 0.0
	for _, w := range p.Windows {
		if w.Layer == "row_lock" && w.Cause == "hot_row" {
			rest += w.ToS - w.FromS
		}
	}
	if rest < 3 { // of the 4 s in which the server ran
		t.Errorf("the windows %+v; the row lock is the cause for some 4 s", p.Windows)
	}
	if p.Load.OK != p.Load.Operations {
		t.Errorf("outcomes %v; nothing had to fail", p.Load.Outcomes)
	}
}

// TestLiveServerKilled: a server that dies is counted by outcome and named, and
// the run ends in order.
func TestLiveServerKilled(t *testing.T) {
	p := during(t, 1500*time.Millisecond, func(s serverProcess) { signalTo(t, s.pid, syscall.SIGKILL) }, "--concurrency", "50", "--duration", "4s")
	if p.Load.Outcomes["connection_lost"] == 0 || p.Load.OK == 0 || p.Run.Status != "complete" {
		t.Errorf("status %s, outcomes %v", p.Run.Status, p.Load.Outcomes)
	}
	if w := strings.Join(p.Warnings, "\n"); !strings.Contains(w, "operations lost their connection") || !strings.Contains(w, "connection refused") {
		t.Errorf("the death is not named:\n%s", w)
	}
}

// TestLiveServerRestarted: a server that dies and comes back is named, its
// counters are not made up, and what ran before and after has its verdict.
func TestLiveServerRestarted(t *testing.T) {
	p := during(t, time.Second, func(s serverProcess) {
		signalTo(t, s.pid, syscall.SIGKILL)
		gone(s.pid)
		os.Remove(s.socket() + ".lock")
		args := slices.DeleteFunc(s.command, func(arg string) bool { return arg == "" })
		cmd := exec.Command(args[0], args[1:]...)
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
	}, "--concurrency", "50", "--duration", "6s", "--timeout", "2s")
	if p.Load.Outcomes["connection_lost"] == 0 || p.Run.Status != "complete" {
		t.Errorf("status %s, outcomes %v", p.Run.Status, p.Load.Outcomes)
	}
	warnings := strings.Join(p.Warnings, "\n")
	if !strings.Contains(warnings, "the database server was restarted between") || !strings.Contains(warnings, "readings work again") {
		t.Errorf("the restart is not named:\n%s", warnings)
	}
	late := false
	for _, w := range p.Windows {
		late = late || w.Cause == "hot_row" && w.ToS > 5
	}
	if !late {
		t.Errorf("the load did not come back to its row: windows %+v\n%s", p.Windows, warnings)
	}
	for _, c := range p.Checks {
		if c.Measured < 0 || c.Expected < 0 {
			t.Errorf("%s: expected %v, measured %v", c.Name, c.Expected, c.Measured)
		}
	}
}

// gone waits until a killed child has been reaped.
func gone(pid int) {
	for syscall.Kill(pid, 0) == nil {
		<-time.After(10 * time.Millisecond)
	}
}

// spinning is a load that locks in Redis.
func spinning(args ...string) []string {
	return append([]string{"--strategy", "redis-spin", "--concurrency", "50", "--backoff-base", "5ms", "--timeout", "2s"}, args...)
}

// TestLiveRedisKilled: without Redis no operation succeeds that locks there;
// they are counted, and the run ends in order. Others do not notice.
func TestLiveRedisKilled(t *testing.T) {
	kill := func(s serverProcess) { signalTo(t, s.pid, syscall.SIGKILL) }
	p := duringOf(t, true, 1500*time.Millisecond, kill, spinning("--duration", "4s")...)
	if p.Load.Outcomes["redis_connection_lost"] == 0 || p.Load.OK == 0 || p.Run.Status != "complete" {
		t.Errorf("status %s, outcomes %v", p.Run.Status, p.Load.Outcomes)
	}
	if w := strings.Join(p.Warnings, "\n"); !strings.Contains(w, "operations lost their connection to Redis") || !strings.Contains(w, "redis.info") {
		t.Errorf("the death is not named:\n%s", w)
	}
	p = duringOf(t, true, time.Second, kill, "--concurrency", "50", "--duration", "3s")
	if p.Load.OK != p.Load.Operations || p.Verdict.Layer != "row_lock" || !strings.Contains(strings.Join(p.Warnings, "\n"), "redis.info") {
		t.Errorf("a load without Redis: verdict %s, outcomes %v\n%s", p.Verdict.Layer, p.Load.Outcomes, strings.Join(p.Warnings, "\n"))
	}
}

// TestLiveRedisStops: Redis stands still for 3 s: the run survives, the time is
// named, and the verdict of the rest stands.
func TestLiveRedisStops(t *testing.T) {
	p := duringOf(t, true, time.Second, func(s serverProcess) {
		signalTo(t, s.pid, syscall.SIGSTOP)
		<-time.After(3 * time.Second)
		signalTo(t, s.pid, syscall.SIGCONT)
	}, spinning("--duration", "7s")...)
	if p.Verdict.Layer != "redis" || p.Load.Outcomes["timeout"] == 0 {
		t.Errorf("verdict %s/%s, outcomes %v", p.Verdict.Layer, p.Verdict.Cause, p.Load.Outcomes)
	}
	if w := strings.Join(p.Warnings, "\n"); !strings.Contains(w, "redis.info: no reading for") && !strings.Contains(w, "redis.info, ") || !strings.Contains(w, "no reading for") {
		t.Errorf("the standstill is not named:\n%s", w)
	}
}

// TestLiveRedisRestarted: Redis dies and comes back empty; that is named, and
// the load goes on.
func TestLiveRedisRestarted(t *testing.T) {
	p := duringOf(t, true, 2*time.Second, func(s serverProcess) {
		signalTo(t, s.pid, syscall.SIGKILL)
		gone(s.pid)
		cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", s.socket(), "--dir", filepath.Dir(s.socket()), "--save", "")
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
	}, spinning("--duration", "5s")...)
	if p.Verdict.Layer != "redis" || p.Load.OK == 0 {
		t.Errorf("verdict %s/%s, outcomes %v", p.Verdict.Layer, p.Verdict.Cause, p.Load.Outcomes)
	}
	if w := strings.Join(p.Warnings, "\n"); !strings.Contains(w, "the Redis server was restarted between") {
		t.Errorf("the restart is not named:\n%s", w)
	}
}

// TestLiveTooManyConnections: a server that takes fewer connections than the
// pool has is told before the run begins.
func TestLiveTooManyConnections(t *testing.T) {
	sb := sandboxtest.Start(t, sandbox.Options{Variables: map[string]string{"max-connections": "12"}})
	_, stderr, code := chokepoint(t, "run", "lock", "--runs", t.TempDir(), "--allow-load", "--pool", "30", "--mysql-dsn", sb.MySQL().Config().FormatDSN())
	if code != exitError || !strings.Contains(stderr, "opening 30 connections") || !strings.Contains(stderr, "lower --pool") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestLiveTLS: the options of the DSN are kept: accounts that must use TLS can
// load the server with them, and not without.
func TestLiveTLS(t *testing.T) { sandboxtest.EachFlavor(t, testLiveTLS) }

func testLiveTLS(t *testing.T, flavor sandbox.Flavor) {
	o := sandbox.Options{Flavor: flavor, Variables: certificate(t)}
	if flavor == sandbox.MariaDB {
		o.Variables["ssl"] = "ON"
	}
	sb := sandboxtest.Start(t, o)
	db, err := sql.Open("mysql", sb.MySQL().Config().FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{"CREATE USER tls_user@localhost IDENTIFIED BY '' REQUIRE SSL", "GRANT ALL ON *.* TO tls_user@localhost"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	cfg := sb.MySQL().Config()
	cfg.User = "tls_user"
	dsn := cfg.FormatDSN()
	args := []string{"run", "lock", "--runs", t.TempDir(), "--allow-load", "--requests", "500", "--mysql-dsn"}
	if _, stderr, code := chokepoint(t, append(args, dsn)...); code != exitError || !strings.Contains(stderr, "Access denied") {
		t.Errorf("without TLS: exit %d, %s", code, stderr)
	}
	if _, stderr, code := chokepoint(t, append(args, dsn+"?tls=skip-verify")...); code != exitOK {
		t.Errorf("with TLS: exit %d, %s", code, stderr)
	}
}

// certificate makes a server's certificate of its own, as options of mysqld.
func certificate(t *testing.T) map[string]string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secretKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return map[string]string{"ssl-cert": write("cert.pem", "CERTIFICATE", cert), "ssl-key": write("key.pem", "PRIVATE KEY", secretKey)}
}

// TestLiveMetadataLock: a stranger locks the table for most of the run; on both
// flavours the verdict says what is waited for, and who has it.
func TestLiveMetadataLock(t *testing.T) { sandboxtest.EachFlavor(t, testLiveMetadataLock) }

func testLiveMetadataLock(t *testing.T, flavor sandbox.Flavor) {
	thread := make(chan int, 1)
	p := during(t, 500*time.Millisecond, func(s serverProcess) {
		thread <- stranger(t, s, "LOCK TABLES stock WRITE", "DO SLEEP(3)", "UNLOCK TABLES")
	}, "--concurrency", "50", "--duration", "4s", "--sandbox", string(flavor))
	if p.Verdict.Layer != "database" || p.Verdict.Cause != "metadata_lock" || p.Verdict.Resource != "mdl:stock" {
		t.Errorf("verdict %s/%s of %s: %s", p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Resource, p.Verdict.Summary)
	}
	id := <-thread
	if b := p.Locks.Blockers; len(b) == 0 || b[0].Thread != id || !b[0].Foreign || b[0].Resource != "mdl:stock" {
		t.Errorf("blockers %+v, want thread %d with the lock of stock", b, id)
	}
}

// stranger runs statements on a connection that is not the load's, and returns
// its thread.
func stranger(t *testing.T, s serverProcess, statements ...string) int {
	db, err := sql.Open("mysql", "root@unix("+s.socket()+")/chokepoint_lock")
	if err != nil {
		t.Error(err)
		return 0
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var id int
	if err := db.QueryRow("SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Error(err)
	}
	for _, q := range statements {
		if _, err := db.Exec(q); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
	return id
}

// TestLiveLongTransaction: a stranger's transaction holds the row for most of
// the run; the verdict says so, and who it is.
func TestLiveLongTransaction(t *testing.T) { sandboxtest.EachFlavor(t, testLiveLongTransaction) }

func testLiveLongTransaction(t *testing.T, flavor sandbox.Flavor) {
	thread := make(chan int, 1)
	p := during(t, 500*time.Millisecond, func(s serverProcess) {
		thread <- stranger(t, s, "BEGIN", "UPDATE stock SET quantity = quantity WHERE id = 1", "DO SLEEP(3)", "ROLLBACK")
	}, "--concurrency", "50", "--duration", "4s", "--sandbox", string(flavor))
	if p.Verdict.Layer != "row_lock" || p.Verdict.Cause != "long_transaction" {
		t.Errorf("verdict %s/%s: %s", p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Summary)
	}
	if h := p.Verdict.Holder; len(h) == 0 || h[0].Stage != "foreign" || h[0].Share < 0.5 {
		t.Errorf("holders %v; a stranger held the row for 3 of 4 s", h)
	}
	id := <-thread
	if b := p.Locks.Blockers; len(b) == 0 || b[0].Thread != id || !b[0].Foreign || !strings.Contains(b[0].Query, "SLEEP") {
		t.Errorf("blockers %+v, want thread %d with its DO SLEEP", b, id)
	}
}
