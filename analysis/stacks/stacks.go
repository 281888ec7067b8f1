// Package stacks reads the profiles of a record: how much CPU each stage took,
// which functions took it, and where goroutines waited for mutexes and for each
// other.
package stacks

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/pprof/profile"

	"chokepoint/collectors/record"
)

// Types of profiles, as records name them; see collectors/profiler.
const (
	CPU   = "cpu"
	Mutex = "mutex"
	Block = "block"
	Heap  = "heap"
)

// Labels of CPU samples; see workloads.Meter and collectors/profiler.
const (
	stageLabel    = "stage"
	observerLabel = "chokepoint_observer"
)

// Bounds of what an untrusted record may make us read: a profile's size when it
// is unpacked, which Pyroscope bounds alike and which parsing multiplies by up
// to 70, and how many there may be of a type.
const (
	maxProfile  = 4 << 20
	maxProfiles = 2000
)

// Load merges the profiles of a type that lie, by their middle, between two
// times of the record. It returns nil if there are none. Files that cannot be
// read are errors beside what could be.
func Load(r *record.Reader, kind string, from, to float64) (*profile.Profile, error) {
	all, err := r.Profiles()
	if err != nil {
		return nil, err
	}
	var merged *profile.Profile
	var errs []error
	read := 0
	for _, p := range all {
		if mid := (p.From + p.To) / 2; p.Type != kind || mid < from || mid > to {
			continue
		}
		if read++; read > maxProfiles {
			errs = append(errs, fmt.Errorf("%s: more than %d profiles; the rest is left out", kind, maxProfiles))
			break
		}
		x, err := parse(r, p)
		if err == nil && merged != nil {
			x, err = profile.Merge([]*profile.Profile{merged, x})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.Name, err))
			continue
		}
		merged = x
	}
	return merged, errors.Join(errs...)
}

// parse reads one file, whose size and content nobody vouches for.
func parse(r *record.Reader, p record.Profile) (*profile.Profile, error) {
	f, err := r.OpenProfile(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(z, maxProfile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxProfile:
		return nil, fmt.Errorf("it is larger than %d MiB", maxProfile>>20)
	}
	x, err := profile.ParseUncompressed(data)
	if err != nil {
		return nil, err
	}
	return x, x.CheckValid()
}

// index finds a sample type by its name and unit: their order differs between
// writers.
func index(p *profile.Profile, kind, unit string) int {
	return slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == kind && t.Unit == unit })
}

// Values of the types: their names and units in pprof files, and what makes
// seconds (or bytes) of them.
func valueOf(kind string) (name, unit string, scale float64) {
	switch kind {
	case CPU:
		return "cpu", "nanoseconds", 1e-9
	case Heap:
		return "alloc_space", "bytes", 1
	}
	return "delay", "nanoseconds", 1e-9
}

// Function is what one function took.
type Function struct {
	Name string
	Flat float64 // by itself
	Cum  float64 // with all that it called
}

// Functions adds up a profile by function, the largest flat value first, in
// seconds, or in bytes for a heap.
func Functions(p *profile.Profile, kind string) []Function {
	name, unit, scale := valueOf(kind)
	at := index(p, name, unit)
	if at < 0 {
		return nil
	}
	by := map[string]*Function{}
	get := func(name string) *Function {
		if by[name] == nil {
			by[name] = &Function{Name: name}
		}
		return by[name]
	}
	for _, s := range p.Sample {
		v := float64(s.Value[at]) * scale
		seen := map[string]bool{}
		for i, name := range frames(s) {
			if i == 0 {
				get(name).Flat += v
			}
			if !seen[name] {
				seen[name] = true
				get(name).Cum += v
			}
		}
	}
	return sorted(by)
}

// frames are the functions of a sample's stack, the innermost first.
func frames(s *profile.Sample) []string {
	var out []string
	for _, l := range s.Location {
		for _, line := range l.Line {
			if line.Function != nil && line.Function.Name != "" { // the runtime's own locks have a frame without a name
				out = append(out, line.Function.Name)
			}
		}
		if len(l.Line) == 0 {
			out = append(out, fmt.Sprintf("0x%x", l.Address))
		}
	}
	return out
}

// Total is the sum of a profile, in seconds or bytes.
func Total(p *profile.Profile, kind string) float64 {
	name, unit, scale := valueOf(kind)
	at, sum := index(p, name, unit), 0.0
	for _, s := range p.Sample {
		if at >= 0 {
			sum += float64(s.Value[at]) * scale
		}
	}
	return sum
}

// CPUBy is the CPU time of the operations by their stage, of the observer by its
// part, and of the rest (the garbage collector, the scheduler).
type CPUBy struct {
	Stage    map[string]float64
	Observer map[string]float64
	Rest     float64
}

// SplitCPU splits a CPU profile by the labels of its samples.
func SplitCPU(p *profile.Profile) CPUBy {
	out := CPUBy{Stage: map[string]float64{}, Observer: map[string]float64{}}
	name, unit, scale := valueOf(CPU)
	at := index(p, name, unit)
	if at < 0 {
		return out
	}
	for _, s := range p.Sample {
		v := float64(s.Value[at]) * scale
		switch {
		case len(s.Label[observerLabel]) > 0:
			out.Observer[s.Label[observerLabel][0]] += v
		case len(s.Label[stageLabel]) > 0:
			out.Stage[s.Label[stageLabel][0]] += v
		default:
			out.Rest += v
		}
	}
	return out
}
