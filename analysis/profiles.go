package analysis

import (
	"github.com/google/pprof/profile"

	"chokepoint/analysis/stacks"
	"chokepoint/collectors/record"
)

// profiles are those of the measured phase, nil where the record has none.
type profiles struct{ cpu, mutex, block *profile.Profile }

// readProfiles merges the profiles of the measured phase. What cannot be read is
// a problem to be told.
func (w *world) readProfiles(r *record.Reader) {
	for kind, into := range map[string]**profile.Profile{stacks.CPU: &w.profiles.cpu, stacks.Mutex: &w.profiles.mutex, stacks.Block: &w.profiles.block} {
		p, err := stacks.Load(r, kind, w.t.From, w.t.To)
		if err != nil {
			w.t.Problems = append(w.t.Problems, err)
		}
		*into = p
	}
}

// Names that the source of the observer's own statements writes; see
// collectors/mysql.
const (
	mysqlObserver = "mysql.observer"
	observerTimer = "mysql.observer.timer"
)

// Bounds of the lists.
const (
	topFunctions = 10
	topMutexes   = 5
)

// profileSection puts the profiles beside the budget; nil without a CPU profile.
func (w *world) profileSection() *Profiles {
	if w.profiles.cpu == nil {
		return nil
	}
	total := stacks.Total(w.profiles.cpu, stacks.CPU)
	by := stacks.SplitCPU(w.profiles.cpu)
	out := &Profiles{CPUS: Number(total), ByStage: []StageCPU{}, RestS: Number(by.Rest), Functions: []FunctionCPU{}, Mutexes: []MutexWait{}}
	for _, stage := range bySize(by.Stage) {
		out.ByStage = append(out.ByStage, StageCPU{stage, Number(by.Stage[stage])})
	}
	all := stacks.Functions(w.profiles.cpu, stacks.CPU)
	for _, f := range all[:min(len(all), topFunctions)] {
		if f.Flat > 0 {
			out.Functions = append(out.Functions, FunctionCPU{f.Name, Number(f.Flat), Number(f.Cum), Number(f.Flat / total)})
		}
	}
	if w.profiles.mutex != nil {
		waits := stacks.Mutexes(w.profiles.mutex)
		for _, m := range waits[:min(len(waits), topMutexes)] {
			out.Mutexes = append(out.Mutexes, MutexWait{m.Function, Number(m.Seconds), Number(m.Count), m.Stack})
		}
	}
	if w.profiles.block != nil {
		parks := stacks.PoolParks(w.profiles.block)
		out.PoolParks = &PoolParks{Number(parks.Seconds), Number(parks.Count)}
	}
	return out
}

// observerSection is what watching the run cost: by the labels of the CPU
// profile, and by the servers' own counts of its commands.
func (w *world) observerSection() *Observer {
	polls := w.t.Readings()
	o := &Observer{CPUS: unknown(), CPUShare: unknown(), StatementsS: unknown(), RedisS: unknown(), Polls: polls}
	if w.t.Has(mysqlObserver) {
		o.StatementsS = Number(w.t.Delta(w.t.Get(observerTimer)))
	}
	if w.t.Has(redisInfo) {
		o.RedisS = 0
		for _, command := range []string{"info", "latency|histogram", "slowlog|len", "slowlog|get", "hello"} { // whoever asked
			o.RedisS += Number(w.t.Delta(w.t.Get(redisCommandSeconds, command)))
		}
	}
	for _, e := range w.t.Events {
		if e.Kind == record.Fault {
			o.Faults++
		}
	}
	if w.profiles.cpu == nil {
		return o
	}
	cpu := 0.0
	for _, seconds := range stacks.SplitCPU(w.profiles.cpu).Observer {
		cpu += seconds
	}
	o.CPUS = Number(cpu)
	if w.machine.ours > 0 {
		o.CPUShare = Number(cpu / w.machine.ours)
	}
	return o
}
