package stacks

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// Wait is where goroutines waited: for a mutex by the function that held it up,
// otherwise by the function of a package of the program that waits.
type Wait struct {
	Function string
	Seconds  float64
	Count    float64
	// Stack is the stack with most of it, the innermost function first.
	Stack []string
}

// maxStack bounds the frames that a Wait keeps.
const maxStack = 16

// poolWait is the function of database/sql in which callers wait for a
// connection.
const poolWait = "database/sql.(*DB).conn"

// PoolParks is the time for which goroutines were parked waiting for a
// connection of database/sql, by the block profile: the counterpart of a
// thread's park in a flight recording.
func PoolParks(block *profile.Profile) Wait {
	out := Wait{Function: poolWait}
	eachWait(block, func(stack []string, seconds, count float64) {
		if slices.Contains(stack, poolWait) {
			out.Seconds += seconds
			out.Count += count
		}
	})
	return out
}

// Mutexes are the places that let others wait for a mutex, the longest first: a
// mutex profile books the waiting on the one who unlocks.
func Mutexes(mutex *profile.Profile) []Wait {
	by, most := map[string]*Wait{}, map[string]float64{}
	eachWait(mutex, func(stack []string, seconds, count float64) {
		name := caller(stack)
		if by[name] == nil {
			by[name] = &Wait{Function: name}
		}
		if by[name].Stack == nil || seconds > most[name] {
			by[name].Stack, most[name] = stack[:min(len(stack), maxStack)], seconds
		}
		by[name].Seconds += seconds
		by[name].Count += count
	})
	out := []Wait{}
	for _, w := range by {
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Function, b.Function))
	})
	return out
}

func eachWait(p *profile.Profile, do func(stack []string, seconds, count float64)) {
	delay, count := index(p, "delay", "nanoseconds"), index(p, "contentions", "count")
	if delay < 0 || count < 0 {
		return
	}
	for _, s := range p.Sample {
		do(frames(s), float64(s.Value[delay])*1e-9, float64(s.Value[count]))
	}
}

// caller is the innermost function that is not of the runtime or sync itself.
func caller(stack []string) string {
	for _, name := range stack {
		if !strings.HasPrefix(name, "sync.") && !strings.HasPrefix(name, "runtime.") && !strings.HasPrefix(name, "internal/") {
			return name
		}
	}
	return "the Go runtime"
}

func sorted(by map[string]*Function) []Function {
	out := make([]Function, 0, len(by))
	for _, f := range by {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Flat, a.Flat), cmp.Compare(b.Cum, a.Cum), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Change is a function in two profiles, each by its own unit of work.
type Change struct {
	Name          string
	Before, After float64 // flat, per unit
}

// Diff compares two profiles by function, per operation (or whatever the two
// numbers count), the largest change first.
func Diff(before, after []Function, unitsBefore, unitsAfter float64) []Change {
	by := map[string]*Change{}
	add := func(all []Function, units float64, into func(*Change) *float64) {
		for _, f := range all {
			if by[f.Name] == nil {
				by[f.Name] = &Change{Name: f.Name}
			}
			*into(by[f.Name]) += f.Flat / units
		}
	}
	add(before, unitsBefore, func(c *Change) *float64 { return &c.Before })
	add(after, unitsAfter, func(c *Change) *float64 { return &c.After })
	out := []Change{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, *by[name])
	}
	size := func(c Change) float64 { return max(c.After-c.Before, c.Before-c.After) }
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(size(b), size(a)) })
	return out
}
