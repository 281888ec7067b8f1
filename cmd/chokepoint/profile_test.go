package main

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"chokepoint/collectors/record"
)

// TestLiveProfiles: a run is profiled: the files open in go tool pprof, the
// report has CPU by stage, a Pyroscope server received as many profiles as are
// kept, and what watching cost is told.
func TestLiveProfiles(t *testing.T) {
	var mu sync.Mutex
	names := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		names[r.URL.Query().Get("name")]++
	}))
	defer s.Close()
	runs := t.TempDir()
	p := runLive(t, runs, append(hotRow(10), "--pyroscope", s.URL)...)
	files, err := filepath.Glob(filepath.Join(runs, p.Run.ID, record.ProfilesDir, "*.pb.gz"))
	if err != nil || len(files) < 10 { // five types in each of two phases
		t.Fatalf("profiles %v (%v)", files, err)
	}
	for _, file := range files {
		if out, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount", "3", file).CombinedOutput(); err != nil {
			t.Errorf("go tool pprof %s: %v\n%s", filepath.Base(file), err, out)
		}
	}
	pushed, measured := 0, 0
	for name, n := range names {
		pushed += n
		if strings.Contains(name, "phase=measure") && strings.Contains(name, "run_id="+p.Run.ID) && strings.Contains(name, "strategy=pessimistic") {
			measured += n
		}
	}
	if pushed != len(files) || measured < 5 {
		t.Errorf("%d profiles are kept, %d were pushed, %d of the measured phase", len(files), pushed, measured)
	}
	stages := map[string]float64{}
	for _, x := range p.Profiles.ByStage {
		stages[x.Stage] = x.CPUS
	}
	if stages["statement"] <= 0 || p.Profiles.CPUS <= 0 || len(p.Profiles.Functions) == 0 {
		t.Errorf("profiles %+v", p.Profiles)
	}
	o := p.Observer
	t.Logf("CPU of the load %.2f s by its profile; watching: %.3f s of CPU, share %.4f of the run's, %d readings, statements %.3f s", p.Profiles.CPUS, o.CPUS, o.CPUShare, o.Polls, o.StatementsS)
	if o.Polls < 20 || o.StatementsS <= 0 || o.CPUShare < 0 || o.CPUShare > 0.2 {
		t.Errorf("observer %+v", o)
	}
	show, stderr, code := chokepoint(t, "profile", "--run-id", "latest", "--runs", runs)
	if code != exitOK || !strings.Contains(show, "cpu: ") || !strings.Contains(show, "syscall") {
		t.Errorf("profile: exit %d, %s%s", code, show, stderr)
	}
	diff, stderr, code := chokepoint(t, "profile", "--run-id", "latest", "--with", "latest", "--runs", runs)
	if code != exitOK || !strings.Contains(diff, "per successful operation") {
		t.Errorf("profile --with: exit %d, %s%s", code, diff, stderr)
	}
}

// TestLiveDeadPyroscope: a server that is not there disturbs nothing, and is
// named.
func TestLiveDeadPyroscope(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	runs := t.TempDir()
	p := runLive(t, runs, append(hotRow(10), "--pyroscope", s.URL)...)
	if p.Load.OK != p.Load.Operations || !strings.Contains(strings.Join(p.Warnings, "\n"), "did not reach the Pyroscope server") {
		t.Errorf("outcomes %v, warnings %v", p.Load.Outcomes, p.Warnings)
	}
	if files, _ := filepath.Glob(filepath.Join(runs, p.Run.ID, record.ProfilesDir, "*.pb.gz")); len(files) < 10 {
		t.Errorf("profiles %v", files)
	}
}
