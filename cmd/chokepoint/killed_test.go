package main

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"chokepoint/analysis"
	"chokepoint/collectors/record"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

var kills = flag.Int("kills", 5, "how many runs TestLiveKilled kills")

// TestLiveKilled kills runs at random moments of their measured phase: each
// leaves a record that is explained, with at most a second lost, and nothing
// else.
func TestLiveKilled(t *testing.T) {
	sandboxtest.Start(t, sandbox.Options{}) // skips where there are no servers
	bin := binary(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range *kills {
		runs := t.TempDir()
		killedAt := startAndKill(t, bin, runs, time.Duration(rnd.IntN(2000))*time.Millisecond)
		checkKilled(t, runs, killedAt)
	}
	nothingLeft(t)
}

// nothingLeft starts a sandbox, which removes what others have left, and looks.
func nothingLeft(t *testing.T) {
	t.Helper()
	sb := sandboxtest.Start(t, sandbox.Options{})
	own := filepath.Dir(sb.MySQL().Socket)
	for _, p := range serverProcesses(t) {
		line := strings.Join(p.command, " ")
		if p.parent == 1 && !strings.Contains(line, own) { // nobody looks after it any more
			t.Errorf("a server outlived its run: %s", line)
		}
	}
}

// startAndKill kills a run that long after its measured phase has begun, and
// returns when.
func startAndKill(t *testing.T, bin, runs string, after time.Duration) time.Time {
	t.Helper()
	s := start(t, exec.Command(bin, "run", "lock", "--concurrency", "50", "--duration", "60s", "--warmup", "200ms", "--runs", runs))
	s.measuring(t, runs)
	<-time.After(after)
	at := time.Now()
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	return at
}

func measuring(runs string) bool {
	files, _ := filepath.Glob(filepath.Join(runs, "*", record.EventsFile))
	if len(files) == 0 {
		return false
	}
	text, _ := os.ReadFile(files[0])
	return strings.Contains(string(text), `"text":"measure"`)
}

func checkKilled(t *testing.T, runs string, killedAt time.Time) {
	t.Helper()
	r := latest(t, runs)
	if s := r.Run().Status(); s != record.Killed {
		t.Errorf("status %s, want killed", s)
	}
	if err := record.Validate(r); err != nil {
		t.Error(err)
	}
	last := 0.0
	for b, err := range r.Batches() {
		if err == nil {
			last = max(last, b.T)
		}
	}
	if lost := killedAt.Sub(r.Run().Started).Seconds() - last; lost > 1 {
		t.Errorf("the last %.2f s are lost", lost)
	}
	res, err := analysis.Attribute(r)
	if err != nil {
		t.Error(err)
		return
	}
	t.Logf("killed after %.2f s of measuring: %s/%s, %d operations", float64(res.Run.DurationS), res.Verdict.Layer, res.Verdict.Cause.Cause, res.Load.Operations)
}

// serverProcess is a server of some sandbox, ours or not.
type serverProcess struct {
	pid, parent int
	command     []string
}

// serverProcesses are the servers of all sandboxes of this machine.
func serverProcesses(t *testing.T) []serverProcess {
	t.Helper()
	var out []serverProcess
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range procs {
		cmdline, err1 := os.ReadFile(filepath.Join(dir, "cmdline"))
		stat, err2 := os.ReadFile(filepath.Join(dir, "stat"))
		if err1 != nil || err2 != nil || !strings.Contains(string(cmdline), "chokepoint-sandbox-") {
			continue // it has just ended, or is something else
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // behind the name: state, parent
		pid, _ := strconv.Atoi(filepath.Base(dir))
		parent, _ := strconv.Atoi(strings.Fields(rest)[1])
		out = append(out, serverProcess{pid, parent, strings.Split(string(cmdline), "\x00")})
	}
	return out
}
