package workloads_test

import (
	"fmt"
	"testing"
	"time"

	"chokepoint/workloads"
)

// meet makes a second operation wait for a row that a first one holds.
func meet(c *clock, m *workloads.Meter, key, ms int) {
	r := workloads.Row("stock", fmt.Sprint(key))
	first, second := m.Begin("buy"), m.Begin("buy")
	first.Ask(workloads.Statement, r)
	first.Hold()
	second.Ask(workloads.Statement, r)
	c.ms += ms
	first.Drop(r)
	second.Hold()
	first.End(workloads.OK)
	second.End(workloads.OK)
}

// asked is the number of times a row was asked for under the name.
func asked(m *workloads.Meter, name string) (entries uint64) {
	for _, t := range m.Read().Totals {
		if t.Asked == name {
			entries += t.Entries
		}
	}
	return entries
}

func TestKeyNeedsEightWaits(t *testing.T) {
	for _, c := range []struct {
		waits int
		named uint64 // of the asks of one further meeting
	}{
		{7, 0}, // the eighth wait only ends in it: the name is for the next
		{8, 2}, // both
	} {
		k := &clock{}
		m := workloads.NewMeter(k.now)
		for range c.waits {
			meet(k, m, 1, 10)
		}
		meet(k, m, 1, 10)
		if got := asked(m, "row:stock/1"); got != c.named {
			t.Errorf("after %d waits, %d further asks have the row's name, want %d", c.waits, got, c.named)
		}
	}
}

func TestKeyNeedsAShareOfTheWaiting(t *testing.T) {
	for _, c := range []struct {
		name  string
		ms    int // a wait for row 2, after 6,300 ms for row 1
		named bool
	}{
		// Eight waits of 12 ms are 96 of 6,396 ms: 1/66.6.
		{"a 66th of all waiting", 12, false},
		// Eight of 13 ms are 104 of 6,404 ms: 1/61.6.
		{"a 61st", 13, true},
	} {
		k := &clock{}
		m := workloads.NewMeter(k.now)
		for range 10 {
			meet(k, m, 1, 630)
		}
		for range 8 {
			meet(k, m, 2, c.ms)
		}
		meet(k, m, 2, 0)
		if got := asked(m, "row:stock/2") > 0; got != c.named {
			t.Errorf("%s: named %v, want %v", c.name, got, c.named)
		}
	}
}

// TestKeyGivenUp: a wait that was given up is a wait.
func TestKeyGivenUp(t *testing.T) {
	k := &clock{}
	m := workloads.NewMeter(k.now)
	r := workloads.Row("stock", "1")
	holder := m.Begin("buy")
	holder.Ask(workloads.Statement, r)
	holder.Hold()
	for range 8 {
		op := m.Begin("buy")
		op.Ask(workloads.Statement, r)
		k.ms += 10
		op.Enter(workloads.App) // the statement timed out
		op.End("timeout")
	}
	op := m.Begin("buy")
	op.Ask(workloads.Statement, r)
	if got := asked(m, "row:stock/1"); got != 1 {
		t.Errorf("%d asks under the row's name, want the last one", got)
	}
}

// TestUncontendedIsNoWait: statements that nobody is in the way of take time
// too, and give no row a name.
func TestUncontendedIsNoWait(t *testing.T) {
	k := &clock{}
	m := workloads.NewMeter(k.now)
	for range 100 {
		op := m.Begin("buy")
		op.Ask(workloads.Statement, workloads.Row("stock", "1"))
		k.ms += 10
		op.Hold()
		op.End(workloads.OK)
	}
	if got := asked(m, "row:stock/1"); got != 0 {
		t.Errorf("%d asks under the row's name, want none", got)
	}
}

func TestHoldWithoutAsk(t *testing.T) {
	pool := workloads.Named("pool:mysql")
	for _, c := range []struct {
		name string
		do   func(*workloads.Op)
	}{
		{"never asked", func(*workloads.Op) {}},
		{"given up", func(op *workloads.Op) { op.Ask(workloads.PoolWait, pool); op.Enter(workloads.App) }},
		{"held already", func(op *workloads.Op) { op.Ask(workloads.PoolWait, pool); op.Hold() }},
	} {
		m := workloads.NewMeter((&clock{}).now)
		op := m.Begin("buy")
		c.do(op)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", c.name)
				}
			}()
			op.Hold()
		}()
		op.End(workloads.OK) // the meter is not left locked
	}
}

// TestReadingSorted: readings of the same state are equal, cell by cell.
func TestReadingSorted(t *testing.T) {
	m := workloads.NewMeter((&clock{}).now)
	for _, name := range []string{"b", "a", "c"} {
		op := m.Begin(name)
		op.Enter(workloads.Statement)
		op.Enter(workloads.Commit)
	}
	want := "a/app a/commit a/statement b/app b/commit b/statement c/app c/commit c/statement "
	got := ""
	for _, c := range m.Read().Totals {
		got += c.Operation + "/" + string(c.Stage) + " "
	}
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// BenchmarkMeterAlone is what the meter costs one purchase when nobody else
// has its lock.
func BenchmarkMeterAlone(b *testing.B) {
	began := time.Now()
	m := workloads.NewMeter(func() time.Duration { return time.Since(began) })
	b.ReportAllocs()
	for b.Loop() {
		purchase(m)
	}
}

// BenchmarkRead is what a reading of a hundred cells costs those who wait for it.
func BenchmarkRead(b *testing.B) {
	m := workloads.NewMeter((&clock{}).now)
	for i := range 100 {
		m.Begin(fmt.Sprint(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Read()
	}
}
