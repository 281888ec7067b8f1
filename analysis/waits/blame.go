package waits

import "sort"

// Thresholds of the blame. They are ours, not nature's.
const (
	// minWaiting is how much of their hold a resource's holders must spend
	// waiting for a cause before waiting moves there: below it the wait is too
	// small a part of the hold to explain the queue.
	minWaiting = 0.10
	// cpuWaiting is how much of their hold holders must wait for processors
	// before the use of the processors by others counts: else a busy neighbour
	// turns a small pool or a hot row into a CPU problem. Holders that are
	// starved wait more than nine tenths (simulated, 3 and 20 hogs on two
	// processors); those of a hot row beside busy neighbours were seen at up to
	// 64 %, where the row was worth more than the neighbours (2.6x against
	// 1.3x to 1.8x).
	cpuWaiting = 0.75
	// cpuSaturated is how much of the processors our own operations must use
	// before waiting moves there for their own use alone. A machine that is
	// kept busy by others leaves a hot row's holders waiting for a CPU for a
	// third of their hold, while our use is half of it: there the row is
	// deeper. Databases that are out of CPU use nine tenths and more.
	cpuSaturated = 0.80
)

// Blame says on which resources the waiting for each resource ends.
type Blame struct {
	// Utilisation and Net are U and U' of each resource: U' leaves out the
	// share of the hold in which its holders wait for something else.
	Utilisation, Net map[string]float64
	// Ends gives, for each resource waited for, the shares of that waiting by
	// the resource on which it ends. They sum to 1.
	Ends map[string]map[string]float64
}

// NewBlame computes the blame of u.
//
// From a resource r, waiting moves only to resources with a higher U' that r's
// holders wait for, in proportion to their waiting, and only if they spend
// minWaiting of their hold on that cause; else it stays. U' rises at each step,
// so there is no cycle. This is cascaded redistribution (wPerf, OSDI 2018)
// directed by net utilisation: the resource with the highest U' is the one
// with the smallest c/D' (Denning and Buzen 1978).
func NewBlame(u *Usage) *Blame {
	b := &blamer{u: u, holders: map[string]Holders{}, out: &Blame{
		Utilisation: map[string]float64{}, Net: map[string]float64{}, Ends: map[string]map[string]float64{},
	}}
	for name, r := range u.Resources {
		h := u.HoldersOf(name)
		b.holders[name] = h
		b.out.Utilisation[name] = u.Utilisation(r)
		b.out.Net[name] = u.Utilisation(r) * (1 - h.waiting())
	}
	for name := range u.Waiting() {
		b.ends(name)
	}
	return b.out
}

type blamer struct {
	u       *Usage
	holders map[string]Holders
	out     *Blame
}

// ends computes where waiting for r ends, once.
func (b *blamer) ends(r string) map[string]float64 {
	if e, ok := b.out.Ends[r]; ok {
		return e
	}
	e := map[string]float64{}
	targets := b.targets(r)
	total := 0.0
	for _, v := range targets {
		total += v
	}
	if total == 0 {
		e[r] = 1
	}
	for _, q := range sorted(targets) {
		for end, share := range b.ends(q) {
			e[end] += share * targets[q] / total
		}
	}
	b.out.Ends[r] = e
	return e
}

// targets are the resources to which waiting for r moves, with the time that
// r's holders waited for them.
func (b *blamer) targets(r string) map[string]float64 {
	res, h := b.u.Resources[r], b.holders[r]
	if res == nil || res.CPU || h.Total == 0 {
		return nil
	}
	byCause := map[Cause]float64{}
	for q, v := range h.Waits {
		if t := b.u.Resources[q]; t != nil {
			byCause[t.Cause] += v
		}
	}
	out := map[string]float64{}
	for q, v := range h.Waits {
		t := b.u.Resources[q]
		if t == nil || v == 0 || byCause[t.Cause] < minWaiting*h.Total || b.net(t, v/h.Total) <= b.out.Net[r] {
			continue
		}
		out[q] = v
	}
	return out
}

// net is U' of t as seen by holders that wait for it for the given share of
// their hold: of processors, only our own use counts unless they wait much.
func (b *blamer) net(t *Resource, waiting float64) float64 {
	if !t.CPU || waiting >= cpuWaiting {
		return b.out.Net[t.Name]
	}
	if own := b.u.Utilisation(&Resource{Capacity: t.Capacity, Held: t.Held}); own >= cpuSaturated {
		return own
	}
	return 0
}

func sorted(m map[string]float64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
