package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"chokepoint/workloads"
)

// modelOp is an operation as the words define it: in one stage, asking for one
// resource or none, holding some.
type modelOp struct {
	op           *workloads.Op
	stage, asked string
	held         []string
	ms, holdMS   int // open, and holding connections
	spent        map[string]int
}

func (o *modelOp) cell() string {
	held := slices.Sorted(slices.Values(o.held))
	return fmt.Sprintf("%s [%s] %s", o.stage, o.asked, strings.Join(held, "+"))
}

// model keeps the books of a meter by hand: a step of time is added to the
// cell of each open operation.
type model struct {
	open     map[int]*modelOp
	ms       map[string]int
	entries  map[string]int
	finished map[string]int
}

func (m *model) pass(ms int) {
	for _, o := range m.open {
		m.ms[o.cell()] += ms
		o.ms += ms
		o.spent[o.stage] += ms
		for _, h := range o.held {
			if strings.HasPrefix(h, "pool:") {
				o.holdMS += ms
			}
		}
	}
}

func (m *model) enter(o *modelOp, stage string) {
	o.stage = stage
	m.entries[o.cell()]++
	m.ms[o.cell()] += 0
}

// check holds a reading of the meter against the model.
func (m *model) check(t *rapid.T, meter *workloads.Meter) {
	open := map[string]int{}
	for _, o := range m.open {
		open[o.cell()]++
	}
	type books struct{ MS, Entries, Open map[string]int }
	got := books{map[string]int{}, map[string]int{}, map[string]int{}}
	r := meter.Read()
	for _, c := range r.Totals {
		name := fmt.Sprintf("%s [%s] %s", c.Stage, c.Asked, c.Held)
		got.MS[name] = int(c.Seconds*1e3 + 0.5)
		got.Entries[name] = int(c.Entries)
		if c.Open != 0 {
			got.Open[name] = c.Open
		}
	}
	if d := cmp.Diff(books{m.ms, m.entries, open}, got); d != "" {
		t.Fatal(d)
	}
	finished := map[string]int{}
	for f, n := range r.Finished {
		finished[string(f.Outcome)] = int(n)
	}
	if d := cmp.Diff(m.finished, finished); d != "" {
		t.Fatal(d)
	}
}

// TestMeterModel: after any sequence of marks, each cell of the meter holds
// what a clerk would have written down.
func TestMeterModel(t *testing.T) {
	resources := []string{"pool:a", "pool:b", "applock:k"}
	stages := []workloads.Stage{workloads.App, workloads.Statement, workloads.Backoff}
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{ms: 5}
		meter := workloads.NewMeter(c.now)
		m := &model{map[int]*modelOp{}, map[string]int{}, map[string]int{}, map[string]int{}}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			ms := rapid.IntRange(0, 9).Draw(t, "ms")
			c.ms += ms
			m.pass(ms)
			i := rapid.IntRange(0, 2).Draw(t, "operation")
			r := rapid.SampledFrom(resources).Draw(t, "resource")
			s := rapid.SampledFrom(stages).Draw(t, "stage")
			o := m.open[i]
			if o == nil {
				o = &modelOp{op: meter.Begin("x"), spent: map[string]int{}}
				m.open[i] = o
				m.enter(o, "app")
				continue
			}
			switch action := rapid.IntRange(0, 5).Draw(t, "action"); {
			case action == 0:
				o.op.Ask(s, workloads.Named(r))
				o.asked = r
				m.enter(o, string(s))
			case action == 1 && o.asked != "":
				o.op.Hold()
				o.held, o.asked = append(o.held, o.asked), ""
				m.enter(o, "app")
			case action == 2:
				o.op.Drop(workloads.Named(r))
				if k := slices.Index(o.held, r); k >= 0 {
					o.held = slices.Delete(o.held, k, k+1)
					m.enter(o, "app")
				}
			case action == 3:
				o.op.Enter(s)
				o.asked = ""
				m.enter(o, string(s))
			case action == 4:
				o.op.In(s)
				m.enter(o, string(s))
			default:
				m.end(t, i, workloads.Outcome(rapid.SampledFrom([]string{"ok", "timeout"}).Draw(t, "outcome")))
			}
			m.check(t, meter)
		}
		for _, i := range slices.Collect(maps.Keys(m.open)) {
			m.end(t, i, workloads.OK)
		}
		m.check(t, meter)
	})
}

func (m *model) end(t *rapid.T, i int, outcome workloads.Outcome) {
	o := m.open[i]
	delete(m.open, i)
	m.finished[string(outcome)]++
	d := o.op.End(outcome)
	spent := map[string]int{}
	for s, v := range d.Spent {
		if v != 0 {
			spent[string(s)] = int(v / time.Millisecond)
		}
	}
	maps.DeleteFunc(o.spent, func(_ string, ms int) bool { return ms == 0 })
	hold, length := int(d.PoolHold/time.Millisecond), int((d.End-d.Start)/time.Millisecond)
	if diff := cmp.Diff(o.spent, spent); diff != "" || hold != o.holdMS || length != o.ms {
		t.Fatalf("open for %d ms, want %d; held connections for %d ms, want %d; stages: %s", length, o.ms, hold, o.holdMS, diff)
	}
}
