package analysis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"chokepoint/analysis/waits"
)

// change is what a relief does to the demands.
type change struct {
	text    string
	flag    string // of the command line, "" if no flag does it
	value   string
	target  waits.Cause
	settles map[string]float64         // new capacity by resource
	drops   func(r string) bool        // resources that vanish
	factor  func(c waits.Cell) float64 // what is left of a cell's time
	alone   bool                       // nobody else holds rows any more
}

// spreadRows is over how many rows the relief spreads a hot one.
const spreadRows = 1000

// relief predicts what the changes that come to mind would do. Where the
// prediction depends much on what is only known within bounds, it is the
// largest that is possible, and an upper bound.
func (w *world) relief(ends ends, verdict Verdict) []Relief {
	out := []Relief{}
	if w.ok == 0 {
		return out
	}
	for _, c := range w.changes(ends[0], verdict) {
		r, ok := w.predict(ends[0], verdict, c)
		if !ok {
			continue
		}
		least, most := r, r
		for _, v := range ends[1:] {
			other, ok := w.predict(v, verdict, c)
			switch {
			case ok && other.Ratio > most.Ratio:
				most = other
			case ok && other.Ratio < least.Ratio:
				least = other
			}
		}
		if most.Ratio-least.Ratio > reliefSpread*r.Ratio {
			r = most
			r.Bound = AtMost
		}
		out = append(out, r)
	}
	return out
}

// reliefSpread is how far apart, relative to the prediction, its values at the
// ends of the bounds may be for it to be told as one figure.
const reliefSpread = 0.2

// changes are those worth a prediction: the pool, since everybody tries it
// first, and what the verdict names.
func (w *world) changes(v variant, verdict Verdict) []change {
	switch verdict.Cause {
	case conflictRetry:
		return nil // what an attempt needs changes with how many there are: no bound holds
	case metadataLock, namedLock:
		return nil // whoever has the lock sets the throughput, and no bound tells how
	}
	var out []change
	for _, r := range w.run.Workload.Resources {
		if !strings.HasPrefix(r.Name, "pool:mysql") || r.Capacity == 0 {
			continue
		}
		for _, size := range poolSizes(r.Capacity, w.run.Workload.Concurrency, verdict.Cause == undersized) {
			out = append(out, change{
				text: fmt.Sprintf("pool of %d connections instead of %d", size, r.Capacity), flag: "--pool", value: fmt.Sprint(size),
				target: undersized, settles: map[string]float64{r.Name: float64(size)},
			})
		}
	}
	if verdict.Resource != "" && strings.HasPrefix(verdict.Resource, "row:") {
		if verdict.Cause == longTransaction {
			out = append(out, change{text: withoutOthers, target: longTransaction, alone: true})
		}
		if verdict.Cause != gapLock && verdict.Cause != deadlocks { // there the order or the range of the locks is what to change
			out = append(out, rowChanges(v, verdict)...)
		}
	}
	if strings.HasPrefix(verdict.Resource, "applock:") {
		out = append(out, change{text: "half the time the lock is held", target: verdict.Cause, factor: halfHeld(func(r string) bool { return r == verdict.Resource })})
	}
	if verdict.Resource == w.cpu && (verdict.Cause == databaseCPU || verdict.Cause == runtimeCPU) {
		out = append(out, change{text: "twice the processors", target: verdict.Cause, settles: map[string]float64{w.cpu: 2 * w.machine.cpus}})
	}
	return out
}

// withoutOthers is the change that helps against a long transaction.
const withoutOthers = "no transaction of others on the row"

// poolSizes are the sizes to predict: the double, and one for each worker where
// the pool is what holds.
func poolSizes(now, workers int, all bool) []int {
	sizes := []int{2 * now}
	if all && workers > 2*now {
		sizes = append(sizes, workers)
	}
	return sizes
}

func rowChanges(v variant, verdict Verdict) []change {
	table := waits.Table(verdict.Resource)
	isRow := func(r string) bool { return strings.HasPrefix(r, "row:"+table+"/") }
	return []change{
		{
			text: "half the time the row is held", target: hotRow, factor: halfHeld(isRow),
		},
		{
			text: fmt.Sprintf("the row spread over %d rows", spreadRows), flag: "--keys", value: fmt.Sprint(spreadRows), target: hotRow,
			drops: isRow,
		},
	}
}

// halfHeld halves the work of those that hold one of the resources.
func halfHeld(which func(string) bool) func(waits.Cell) float64 {
	return func(c waits.Cell) float64 {
		if c.Waits == "" && slices.ContainsFunc(c.Held, which) {
			return 0.5
		}
		return 1
	}
}

// constraint is an upper bound of the throughput: a resource's capacity over
// what a success demands of it, or the workers' own cycle.
type constraint struct {
	name  string
	bound float64
}

// foreignCPU: a machine on which others use a tenth as much as we do is ours.
const foreignCPU = 1.1

// cycle is the name of the constraint that workers working without any waiting
// make.
const cycle = "workers"

// predict is the throughput ratio of a change: the smallest bound after it over
// the present throughput, where the present bottleneck's bound is first made
// to agree with what was measured. Demands are the hold of a success net of
// waits for other resources.
//
// The processors are a constraint only if they are the present bottleneck, for
// demands are not constant on a contended CPU. Where they would be next, the
// prediction is the next smaller bound, and at most.
func (w *world) predict(v variant, verdict Verdict, c change) (Relief, bool) {
	x := w.ok / w.length
	present := w.constraints(v, change{}, verdict)
	if len(present) == 0 {
		return Relief{}, false
	}
	neck := present[0]
	for _, p := range present {
		if p.name == verdict.Resource {
			neck = p
		}
	}
	scale := scales(present, neck.name, x, verdict)
	next := constraint{"", math.Inf(1)}
	for _, a := range w.constraints(v, c, verdict) {
		if s, ok := scale[a.name]; ok {
			a.bound *= s
		}
		if a.bound < next.bound {
			next = a
		}
	}
	r := Relief{Change: c.text, Target: c.target, Ratio: Number(next.bound / x), Bound: Figure, LimitedBy: next.name}
	if math.IsInf(next.bound, 1) {
		return Relief{}, false
	}
	if cpu := w.cpuBound(v, c); neck.name != w.cpu && cpu < next.bound {
		r.Bound, r.LimitedBy = AtMost, w.cpu
	}
	// What holds it back is not known, or others would use more processors too.
	if verdict.Layer == "inconclusive" || neck.name == w.cpu && w.machine.busy > w.machine.ours*foreignCPU {
		r.Bound = AtMost
	}
	if c.flag != "" {
		r.Command = command(w.run.Workload, c.flag, c.value)
	}
	return r, true
}

// scales make the present bounds agree with the measured throughput x: that of
// the bottleneck is x, and none is below it, for it was reached. (A hold can be
// overrated, where holding and waiting are told apart by bounds only.) Where the
// bottleneck is not known, no bound is scaled down to it.
func scales(present []constraint, neck string, x float64, verdict Verdict) map[string]float64 {
	out := map[string]float64{}
	for _, p := range present {
		out[p.name] = max(1, x/p.bound)
		if p.name == neck && verdict.Layer != "inconclusive" {
			out[p.name] = x / p.bound
		}
	}
	return out
}

// constraints are the bounds under a change, the smallest first.
func (w *world) constraints(v variant, c change, verdict Verdict) []constraint {
	factor := c.factor
	if factor == nil {
		factor = func(waits.Cell) float64 { return 1 }
	}
	var out []constraint
	for _, name := range slices.Sorted(maps.Keys(v.usage.Resources)) {
		r := v.usage.Resources[name]
		if r.Opaque || c.drops != nil && c.drops(name) || r.CPU && verdict.Resource != name {
			continue
		}
		demand := w.demand(v, r, factor)
		if demand <= 0 {
			continue
		}
		capacity := r.Capacity
		if s, ok := c.settles[name]; ok {
			capacity = s
		}
		foreign := r.Foreign / w.length
		if c.alone && strings.HasPrefix(name, "row:") {
			foreign = 0
		}
		out = append(out, constraint{name, max(1e-12, capacity-foreign) / demand})
	}
	if n := w.run.Workload.Concurrency; n > 0 {
		work := 0.0
		for _, cell := range v.usage.Cells {
			if cell.Waits == "" {
				work += cell.Seconds * factor(cell)
			}
		}
		out = append(out, constraint{cycle, float64(n) / (work/w.ok + w.run.Workload.ThinkS)})
	}
	if offered := w.run.Workload.OfferedPerS; offered > 0 {
		out = append(out, constraint{"offered load", offered})
	}
	slices.SortStableFunc(out, func(a, b constraint) int { return int(math.Copysign(1, a.bound-b.bound)) })
	return out
}

// demand is what one success holds of r, in seconds, waits for other resources
// left out.
func (w *world) demand(v variant, r *waits.Resource, factor func(waits.Cell) float64) float64 {
	if r.CPU {
		return r.Held / w.ok
	}
	sum := 0.0
	for _, c := range v.usage.Cells {
		if c.Waits == "" && slices.Contains(c.Held, r.Name) {
			sum += c.Seconds * factor(c)
		}
	}
	return sum / w.ok
}

func (w *world) cpuBound(v variant, c change) float64 {
	if !w.machine.known || w.machine.ours == 0 {
		return math.Inf(1)
	}
	cpus := w.machine.cpus
	if s, ok := c.settles[w.cpu]; ok {
		cpus = s
	}
	foreign := max(0, w.machine.busy-w.machine.ours) / w.length
	return max(1e-12, cpus-foreign) / (w.machine.ours / w.ok)
}
