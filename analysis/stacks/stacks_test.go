package stacks_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/pprof/profile"

	"chokepoint/analysis/stacks"
	"chokepoint/collectors/record"
)

// builder makes profiles by hand.
type builder struct {
	p         *profile.Profile
	functions map[string]*profile.Location
}

func build(types ...*profile.ValueType) *builder {
	return &builder{&profile.Profile{SampleType: types, PeriodType: types[0], Period: 1}, map[string]*profile.Location{}}
}

// sample adds a stack, the innermost function first.
func (b *builder) sample(labels map[string][]string, values []int64, stack ...string) *builder {
	s := &profile.Sample{Value: values, Label: labels}
	for _, name := range stack {
		l := b.functions[name]
		if l == nil {
			id := uint64(len(b.functions) + 1)
			f := &profile.Function{ID: id, Name: name}
			l = &profile.Location{ID: id, Line: []profile.Line{{Function: f}}}
			b.functions[name] = l
			b.p.Function, b.p.Location = append(b.p.Function, f), append(b.p.Location, l)
		}
		s.Location = append(s.Location, l)
	}
	b.p.Sample = append(b.p.Sample, s)
	return b
}

var (
	samples    = &profile.ValueType{Type: "samples", Unit: "count"}
	cpu        = &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
	count      = &profile.ValueType{Type: "contentions", Unit: "count"}
	delay      = &profile.ValueType{Type: "delay", Unit: "nanoseconds"}
	ms         = int64(1e6)
	approx     = cmpopts.EquateApprox(0, 1e-12)
	statement  = map[string][]string{"stage": {"statement"}, "operation": {"buy"}}
	commit     = map[string][]string{"stage": {"commit"}, "operation": {"buy"}}
	byObserver = map[string][]string{"chokepoint_observer": {"host"}, "stage": {"statement"}}
)

// cpuProfile: main calls read for 30 ms and write for 20, write calls read for
// 10 more, a recursion counts once, and the collector takes 40.
func cpuProfile() *profile.Profile {
	return build(samples, cpu).
		sample(statement, []int64{3, 30 * ms}, "read", "main").
		sample(commit, []int64{2, 20 * ms}, "write", "main").
		sample(statement, []int64{1, 10 * ms}, "read", "write", "write", "main").
		sample(byObserver, []int64{1, 10 * ms}, "poll").
		sample(nil, []int64{4, 40 * ms}, "gc").p
}

func TestCPU(t *testing.T) {
	p := cpuProfile()
	want := []stacks.Function{{"gc", 0.04, 0.04}, {"read", 0.04, 0.04}, {"write", 0.02, 0.03}, {"poll", 0.01, 0.01}, {"main", 0, 0.06}}
	if d := cmp.Diff(want, stacks.Functions(p, stacks.CPU), approx); d != "" {
		t.Errorf("functions (-want +got): %s", d)
	}
	by := stacks.SplitCPU(p)
	wantBy := stacks.CPUBy{Stage: map[string]float64{"statement": 0.04, "commit": 0.02}, Observer: map[string]float64{"host": 0.01}, Rest: 0.04}
	if d := cmp.Diff(wantBy, by, approx); d != "" {
		t.Errorf("by label (-want +got): %s", d)
	}
	if total := stacks.Total(p, stacks.CPU); math.Abs(total-0.11) > 1e-12 {
		t.Errorf("total %v, want 0.11", total)
	}
}

// TestSampleTypesReversed: what a value is is told by its name, not its place.
func TestSampleTypesReversed(t *testing.T) {
	forward := build(count, delay).sample(nil, []int64{3, 5 * ms}, "sync.(*Mutex).Unlock", "work").p
	reversed := build(delay, count).sample(nil, []int64{5 * ms, 3}, "sync.(*Mutex).Unlock", "work").p
	for _, p := range []*profile.Profile{forward, reversed} {
		if d := cmp.Diff([]stacks.Wait{{"work", 0.005, 3, []string{"sync.(*Mutex).Unlock", "work"}}}, stacks.Mutexes(p), approx); d != "" {
			t.Errorf("(-want +got): %s", d)
		}
	}
	if got := stacks.Functions(forward, stacks.CPU); got != nil {
		t.Errorf("a mutex profile has no CPU, but %v", got)
	}
	empty := build(count, delay).p
	if n := len(stacks.Mutexes(empty)) + len(stacks.Functions(empty, stacks.Mutex)); n != 0 || stacks.Total(empty, stacks.Mutex) != 0 {
		t.Errorf("a profile without samples has %d", n)
	}
}

func TestWaits(t *testing.T) {
	p := build(count, delay).
		sample(nil, []int64{4, 8 * ms}, "runtime.selectgo", "database/sql.(*DB).conn", "database/sql.(*DB).Conn", "buy").
		sample(nil, []int64{1, 2 * ms}, "runtime.chanrecv1", "driver.read", "buy").
		sample(nil, []int64{2, 1 * ms}, "", "runtime.unlock", "runtime.goschedImpl").p
	if d := cmp.Diff(stacks.Wait{"database/sql.(*DB).conn", 0.008, 4, nil}, stacks.PoolParks(p), approx); d != "" {
		t.Errorf("parked for a connection (-want +got): %s", d)
	}
	want := []stacks.Wait{
		{"database/sql.(*DB).conn", 0.008, 4, []string{"runtime.selectgo", "database/sql.(*DB).conn", "database/sql.(*DB).Conn", "buy"}},
		{"driver.read", 0.002, 1, []string{"runtime.chanrecv1", "driver.read", "buy"}},
		{"the Go runtime", 0.001, 2, []string{"runtime.unlock", "runtime.goschedImpl"}},
	}
	if d := cmp.Diff(want, stacks.Mutexes(p), approx); d != "" {
		t.Errorf("(-want +got): %s", d)
	}
}

// TestDiff: per operation, read went from 4 to 2 ms, and copy is new.
func TestDiff(t *testing.T) {
	before := []stacks.Function{{"read", 0.4, 0.4}, {"main", 0, 1}}
	after := []stacks.Function{{"read", 0.4, 0.4}, {"copy", 0.1, 0.1}}
	want := []stacks.Change{{"read", 0.004, 0.002}, {"copy", 0, 0.0005}, {"main", 0, 0}}
	if d := cmp.Diff(want, stacks.Diff(before, after, 100, 200), approx); d != "" {
		t.Errorf("(-want +got): %s", d)
	}
}

// TestLoad: of a record's profiles those count that lie in the phase; a torn file
// is an error beside the others.
func TestLoad(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const id = record.ID("20261130T212218Z-lock-7f3a")
	w, err := record.Create(root, record.Run{ID: id, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := cpuProfile().Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, from := range []float64{0, 1, 6, 11} { // warm-up, two of the phase from 1 to 11 s, and one behind it
		if err := w.Profile(stacks.CPU, from, from+5, b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Profile(stacks.Mutex, 1, 6, b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(record.End{Status: record.Complete}); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(root, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := stacks.Load(r, stacks.CPU, 3, 11)
	if err != nil || math.Abs(stacks.Total(p, stacks.CPU)-2*0.11) > 1e-12 {
		t.Fatalf("%v (%v), want the CPU of two profiles", p, err)
	}
	if p, err := stacks.Load(r, stacks.Block, 0, 99); p != nil || err != nil {
		t.Errorf("there is a block profile: %v (%v)", p, err)
	}
	torn := filepath.Join(root.Name(), string(id), record.ProfilesDir, "cpu-1.000-6.000.pb.gz")
	if err := os.Chmod(torn, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(torn, int64(b.Len()/2)); err != nil {
		t.Fatal(err)
	}
	p, err = stacks.Load(r, stacks.CPU, 3, 11)
	if err == nil || !strings.Contains(err.Error(), "cpu-1.000-6.000.pb.gz") || p == nil || math.Abs(stacks.Total(p, stacks.CPU)-0.11) > 1e-12 {
		t.Errorf("with a torn file: %v, %v", p, err)
	}
}
