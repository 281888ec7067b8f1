// Package host reads Linux' /proc: the CPU time of the machine, and the CPU
// time and run-queue delay of this process and of the servers beside it.
package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the metrics.
const (
	CPUSeconds      = "host.cpu_seconds"
	ProcessCPU      = "host.process.cpu_seconds"
	ProcessRunQueue = "host.process.run_queue_seconds"
	CPUPressure     = "host.cpu_pressure_seconds"
)

// userHz is the unit of /proc/stat: 100 ticks a second on every Linux that Go
// runs on (USER_HZ; the kernel scales to it whatever its own rate is).
const userHz = 100

// Process is a process to read, under the name to report it by.
type Process struct {
	Name string
	PID  int
}

// Source reads the machine and some processes on it.
type Source struct{ Processes []Process }

// Name implements collectors.Source.
func (Source) Name() string { return "host" }

// Metrics implements collectors.Source.
func (Source) Metrics() []metric.Desc {
	return []metric.Desc{
		{Name: CPUSeconds, Unit: metric.Seconds, Kind: metric.Counter, Labels: []string{"mode"}, Help: "CPU time of the whole machine by mode (/proc/stat, 10 ms steps)"},
		{Name: CPUPressure, Unit: metric.Seconds, Kind: metric.Counter, Help: "time in which some task of the machine waited for a CPU (/proc/pressure/cpu, some; absent where the kernel has no PSI)"},
		{Name: ProcessCPU, Unit: metric.Seconds, Kind: metric.Counter, Labels: []string{"process"}, Help: "CPU time of the threads the process has now (/proc/PID/task/*/schedstat)"},
		{Name: ProcessRunQueue, Unit: metric.Seconds, Kind: metric.Counter, Labels: []string{"process"}, Help: "time the threads the process has now stood ready to run without a CPU (/proc/PID/task/*/schedstat)"},
	}
}

// Read implements collectors.Source. A process that has gone is an error; what
// could be read is in the batch all the same.
func (s Source) Read(_ context.Context, b *record.Batch) error {
	if err := machine(b); err != nil {
		return err
	}
	var errs []error
	if err := pressure(b); err != nil {
		errs = append(errs, err)
	}
	for _, p := range s.Processes {
		cpu, queue, err := schedstat(p.PID)
		if err != nil {
			errs = append(errs, fmt.Errorf("host: process %s: %w", p.Name, err))
			continue
		}
		b.Add(cpu, ProcessCPU, p.Name)
		b.Add(queue, ProcessRunQueue, p.Name)
	}
	return errors.Join(errs...)
}

func machine(b *record.Batch) error {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	sc := bufio.NewScanner(bytes.NewReader(text))
	if !sc.Scan() {
		return errors.New("host: /proc/stat is empty")
	}
	f := strings.Fields(sc.Text())
	modes := []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"} // guest time is part of user
	if len(f) < 1+len(modes) || f[0] != "cpu" {
		return fmt.Errorf("host: /proc/stat begins with %q", sc.Text())
	}
	for i, mode := range modes {
		ticks, err := strconv.ParseUint(f[1+i], 10, 64)
		if err != nil {
			return fmt.Errorf("host: /proc/stat: %w", err)
		}
		b.Add(float64(ticks)/userHz, CPUSeconds, mode)
	}
	return nil
}

// pressure reads a line like "some avg10=0.00 avg60=0.00 avg300=0.00
// total=1795777", in microseconds. A kernel without PSI has no such file.
func pressure(b *record.Batch) error {
	text, err := os.ReadFile("/proc/pressure/cpu")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	_, total, ok := strings.Cut(line, "total=")
	us, err := strconv.ParseUint(total, 10, 64)
	if !ok || err != nil || !strings.HasPrefix(line, "some ") {
		return fmt.Errorf("host: /proc/pressure/cpu begins with %q", line)
	}
	b.Add(float64(us)/1e6, CPUPressure)
	return nil
}

// schedstat adds up the threads of a process: "time on the CPU, time in the
// run queue" in ns, and the number of time slices (the kernel's
// Documentation/scheduler/sched-stats). /proc/PID/schedstat itself has the
// first thread only.
func schedstat(pid int) (cpu, queue float64, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, err
	}
	for _, t := range tasks {
		text, err := os.ReadFile(filepath.Join(dir, t.Name(), "schedstat"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has just ended
		}
		if err != nil {
			return 0, 0, err
		}
		var onCPU, waited, slices uint64
		if _, err := fmt.Sscan(string(text), &onCPU, &waited, &slices); err != nil {
			return 0, 0, fmt.Errorf("%s/%s/schedstat: %w", dir, t.Name(), err)
		}
		cpu += float64(onCPU) / 1e9
		queue += float64(waited) / 1e9
	}
	return cpu, queue, nil
}
