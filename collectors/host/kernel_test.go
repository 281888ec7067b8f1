package host_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"chokepoint/collectors/host"
	"chokepoint/collectors/record"
)

// stopped tells whether the kernel has stopped the process: the state behind
// the name in /proc/PID/stat is T.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(rest, []byte("T"))
}

// TestAgreesWithKernel burns CPU in a child, stops it, reads it, and holds the
// reading against what the kernel bills to its parent when it has ended.
func TestAgreesWithKernel(t *testing.T) {
	child := exec.Command("sh", "-c", "echo up; while :; do :; done")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s := host.Source{Processes: []host.Process{{Name: "child", PID: child.Process.Pid}}}
	cpu := record.Series(host.ProcessCPU, "child")
	var v map[string]float64
	for v[cpu] < 0.2 {
		if v, err = read(t, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for !stopped(t, child.Process.Pid) {
		if t.Context().Err() != nil {
			t.Fatal("it does not stop")
		}
	}
	first, err := read(t, s)
	if err != nil {
		t.Fatal(err)
	}
	// One that is stopped uses nothing and waits for nothing.
	second, err := read(t, s)
	queue := record.Series(host.ProcessRunQueue, "child")
	if err != nil || first[cpu] != second[cpu] || first[queue] != second[queue] {
		t.Errorf("stopped at CPU %v and queue %v, then %v and %v (%v)", first[cpu], first[queue], second[cpu], second[queue], err)
	}
	child.Process.Kill()
	child.Wait()
	billed := (child.ProcessState.UserTime() + child.ProcessState.SystemTime()).Seconds()
	if d := billed - first[cpu]; math.Abs(d) > 0.02 { // being killed costs a little
		t.Errorf("read %v s of CPU, the kernel bills %v s", first[cpu], billed)
	}
}

// TestOneIsGone: the others are read all the same, and the error names it.
func TestOneIsGone(t *testing.T) {
	v, err := read(t, host.Source{Processes: []host.Process{{Name: "mariadbd", PID: 1 << 30}, {Name: "self", PID: os.Getpid()}}})
	if err == nil || !strings.Contains(err.Error(), "mariadbd") || strings.Contains(err.Error(), "self") {
		t.Errorf("error %v, want one of mariadbd only", err)
	}
	if v[record.Series(host.ProcessCPU, "self")] <= 0 || v[record.Series(host.CPUSeconds, "user")] <= 0 {
		t.Errorf("read %v", v)
	}
	if _, ok := v[record.Series(host.ProcessCPU, "mariadbd")]; ok {
		t.Error("a process that is gone has used CPU")
	}
}
