package main

import (
	"database/sql"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

// children are our own MySQL-flavoured servers.
func children(t *testing.T) []serverProcess {
	t.Helper()
	return slices.DeleteFunc(serverProcesses(t), func(p serverProcess) bool { return p.parent != os.Getpid() || p.socket() == "" })
}

// socket is the socket of a MySQL-flavoured server.
func (p serverProcess) socket() string {
	for _, arg := range p.command {
		if s, ok := strings.CutPrefix(arg, "--socket="); ok {
			return s
		}
	}
	return ""
}

// during runs a load and does something to its server when it is measured for
// the given time.
func during(t *testing.T, after time.Duration, do func(p serverProcess), args ...string) page {
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
		for _, p := range children(t) {
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
		<-time.After(2500 * time.Millisecond)
		signalTo(t, s.pid, syscall.SIGCONT)
	}, "--concurrency", "50", "--duration", "6s")
	if p.Verdict.Layer != "row_lock" {
		t.Errorf("verdict %s/%s: %s", p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Summary)
	}
	warnings := strings.Join(p.Warnings, "\n")
	if !strings.Contains(warnings, "no operation ended between") || !strings.Contains(warnings, "no reading for") {
		t.Errorf("the standstill is not named:\n%s", warnings)
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

// TestLiveLongTransaction: a stranger's transaction holds the row for most of
// the run; the verdict says so, and who it is.
func TestLiveLongTransaction(t *testing.T) { sandboxtest.EachFlavor(t, testLiveLongTransaction) }

func testLiveLongTransaction(t *testing.T, flavor sandbox.Flavor) {
	thread := make(chan int, 1)
	p := during(t, 500*time.Millisecond, func(s serverProcess) {
		db, err := sql.Open("mysql", "root@unix("+s.socket()+")/chokepoint_lock")
		if err != nil {
			t.Error(err)
			return
		}
		defer db.Close()
		tx, err := db.Begin()
		if err != nil {
			t.Error(err)
			return
		}
		var id int
		err = errors.Join(tx.QueryRow("SELECT CONNECTION_ID()").Scan(&id), second(tx.Exec("UPDATE stock SET quantity = quantity WHERE id = 1")),
			second(tx.Exec("DO SLEEP(3)")), tx.Rollback())
		if err != nil {
			t.Error(err)
		}
		thread <- id
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

func second(_ sql.Result, err error) error { return err }
