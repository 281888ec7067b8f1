package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// children are the pids of our own MySQL-flavoured servers.
func children(t *testing.T) []int {
	t.Helper()
	var out []int
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		cmdline, _ := os.ReadFile(p)
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(p), "stat"))
		if err != nil || !strings.Contains(string(cmdline), "mysql.sock") {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if strings.Fields(rest)[1] == strconv.Itoa(os.Getpid()) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			out = append(out, pid)
		}
	}
	return out
}

// during runs a load and does something to its server when it is measured for
// the given time.
func during(t *testing.T, after time.Duration, do func(pid int), args ...string) page {
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
		for _, pid := range children(t) {
			do(pid)
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
	p := during(t, time.Second, func(pid int) {
		signalTo(t, pid, syscall.SIGSTOP)
		<-time.After(2500 * time.Millisecond)
		signalTo(t, pid, syscall.SIGCONT)
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
	p := during(t, 1500*time.Millisecond, func(pid int) { signalTo(t, pid, syscall.SIGKILL) }, "--concurrency", "50", "--duration", "4s")
	if p.Load.Outcomes["connection_lost"] == 0 || p.Load.OK == 0 || p.Run.Status != "complete" {
		t.Errorf("status %s, outcomes %v", p.Run.Status, p.Load.Outcomes)
	}
	if w := strings.Join(p.Warnings, "\n"); !strings.Contains(w, "operations lost their connection") || !strings.Contains(w, "connection refused") {
		t.Errorf("the death is not named:\n%s", w)
	}
}
