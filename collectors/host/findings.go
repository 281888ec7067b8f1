package host

import (
	"fmt"
	"os"

	"chokepoint/collectors"
	"chokepoint/collectors/record"
)

// Findings tells what can be seen of this machine and of the given processes. A
// process without a PID is one that is not on this machine, as far as is known.
func Findings(processes []Process) []collectors.Finding {
	all := []collectors.Finding{runQueue(), pressureFinding()}
	for _, p := range processes {
		all = append(all, processFinding(p))
	}
	for i := range all {
		all[i].Fix, all[i].Settings = []string{}, append([]string{}, all[i].Settings...)
		if all[i].State == "" {
			all[i].State = collectors.Visible
		}
	}
	return all
}

func runQueue() collectors.Finding {
	f := collectors.Finding{Check: "run_queue", Found: "time ready to run without a CPU can be read (schedstat)"}
	cpu, queue, err := schedstat(os.Getpid())
	switch {
	case err != nil:
		f.State, f.Found = collectors.Hidden, err.Error()
	case cpu == 0 && queue == 0:
		f.State, f.Found = collectors.Hidden, "/proc/PID/task/*/schedstat counts nothing on this kernel"
		f.Settings = []string{"a kernel with CONFIG_SCHED_INFO"}
	}
	if f.State != "" {
		f.Costs = "waiting for a CPU cannot be told from executing, in the database and in Go"
	}
	return f
}

func pressureFinding() collectors.Finding {
	f := collectors.Finding{Check: "cpu_pressure", Found: "pressure stall information can be read (/proc/pressure/cpu)"}
	b := &record.Batch{}
	if err := pressure(b); err != nil || len(b.Values) == 0 {
		f.State, f.Found = collectors.Limited, "this kernel tells no pressure stall information"
		f.Costs = "the report cannot say for how much of the time some task of the machine waited for a CPU"
		f.Settings = []string{"boot with psi=1"}
	}
	return f
}

func processFinding(p Process) collectors.Finding {
	f := collectors.Finding{Check: "process_" + p.Name, Found: fmt.Sprintf("CPU of %s (process %d) can be read", p.Name, p.PID)}
	_, _, err := schedstat(p.PID)
	switch {
	case p.PID == 0:
		f.State, f.Found = collectors.Limited, p.Name+" is not known to be a process of this machine (it is, if it is reached by its Unix socket)"
	case err != nil:
		f.State, f.Found = collectors.Limited, err.Error()
	default:
		return f
	}
	f.Costs = "what the server's CPU does is not seen: a pool that looks too small is inconclusive then"
	return f
}
