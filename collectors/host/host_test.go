package host_test

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"chokepoint/collectors/host"
	"chokepoint/collectors/record"
)

func read(t *testing.T, s host.Source) (map[string]float64, error) {
	t.Helper()
	b := &record.Batch{}
	err := s.Read(t.Context(), b)
	return b.Values, err
}

// TestProcess reads a child that computes until it has used a tenth of a second
// by the shell's own clock of its CPU time.
func TestProcess(t *testing.T) {
	child := exec.Command("sh", "-c", "echo up; while :; do :; done")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		child.Process.Kill()
		child.Wait()
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s := host.Source{Processes: []host.Process{{Name: "child", PID: child.Process.Pid}, {Name: "self", PID: os.Getpid()}}}
	cpu := record.Series(host.ProcessCPU, "child")
	first, err := read(t, s)
	if err != nil {
		t.Fatal(err)
	}
	last := first
	for last[cpu] < first[cpu]+0.1 { // it computes: this ends
		if last, err = read(t, s); err != nil {
			t.Fatal(err)
		}
	}
	if q := record.Series(host.ProcessRunQueue, "child"); last[q] < first[q] {
		t.Errorf("run-queue delay fell from %v to %v", first[q], last[q])
	}
	busy := func(v map[string]float64) float64 {
		return v[record.Series(host.CPUSeconds, "user")] + v[record.Series(host.CPUSeconds, "system")]
	}
	if d := busy(last) - busy(first); d < 0.05 { // 10 ms steps
		t.Errorf("the machine was busy for %v s meanwhile, the child for 0.1", d)
	}
}

func TestProcessGone(t *testing.T) {
	v, err := read(t, host.Source{Processes: []host.Process{{Name: "gone", PID: 1 << 30}}})
	if err == nil || len(v) < 8 {
		t.Errorf("got %v and %v; want the machine's eight modes at least, and an error", v, err)
	}
}

func TestDescribed(t *testing.T) {
	v, err := read(t, host.Source{Processes: []host.Process{{Name: "self", PID: os.Getpid()}}})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]int{}
	for _, d := range (host.Source{}).Metrics() {
		known[d.Name] = len(d.Labels)
	}
	for series := range v {
		name, labels, err := record.ParseSeries(series)
		if n, ok := known[name]; err != nil || !ok || n != len(labels) {
			t.Errorf("%s is not as described", series)
		}
	}
}
