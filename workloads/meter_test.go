package workloads_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chokepoint/workloads"
)

// clock is a hand-made clock in milliseconds.
type clock struct{ ms int }

func (c *clock) now() time.Duration { return time.Duration(c.ms) * time.Millisecond }

// totals turns a reading into "stage asked held" -> milliseconds and entries.
func totals(m *workloads.Meter) map[string][2]int {
	out := map[string][2]int{}
	for _, t := range m.Read().Totals {
		out[fmt.Sprintf("%s [%s] %s", t.Stage, t.Asked, t.Held)] = [2]int{int(t.Seconds*1e3 + 0.5), int(t.Entries)}
	}
	return out
}

func want(t *testing.T, m *workloads.Meter, cell string, ms, entries int) {
	t.Helper()
	if got := totals(m)[cell]; got != [2]int{ms, entries} {
		t.Errorf("%s: %v (ms, entries), want %v\nall: %v", cell, got, [2]int{ms, entries}, totals(m))
	}
}

func TestMeterAddsUp(t *testing.T) {
	c := &clock{}
	m := workloads.NewMeter(c.now)
	pool := workloads.Named("pool:mysql")
	op := m.Begin("buy") // 0..1 app
	c.ms = 1
	op.Ask(workloads.PoolWait, pool) // 1..4 pool_wait, of it 2..3 dialling
	c.ms = 2
	op.In(workloads.Dial)
	c.ms = 3
	op.In(workloads.PoolWait)
	c.ms = 4
	op.Hold() // 4..5 app
	c.ms = 5
	op.Enter(workloads.Statement) // 5..9 statement
	c.ms = 8
	want(t, m, "app [] ", 1, 1)
	want(t, m, "pool_wait [pool:mysql] ", 2, 2)
	want(t, m, "dial [pool:mysql] ", 1, 1)
	want(t, m, "app [] pool:mysql", 1, 1)
	want(t, m, "statement [] pool:mysql", 3, 1) // open: 5..8
	c.ms = 9
	op.Drop(pool) // 9..10 app
	op.Drop(pool) // not held any more: nothing happens
	c.ms = 10
	d := op.End(workloads.OK)
	want(t, m, "app [] ", 2, 2)
	want(t, m, "statement [] pool:mysql", 4, 1)
	if d.PoolHold != 5*time.Millisecond || d.End-d.Start != 10*time.Millisecond || d.Spent[workloads.Statement] != 4*time.Millisecond {
		t.Errorf("done: %+v; held the pool from 4 to 9", d)
	}
	c.ms = 99 // nothing is open: nothing grows
	want(t, m, "app [] ", 2, 2)
	if n := m.Read().Finished[workloads.Finished{Operation: "buy", Outcome: workloads.OK}]; n != 1 {
		t.Errorf("%d finished", n)
	}
}

// TestMeterRetries: time after Retry is booked apart, and counts are kept.
func TestMeterRetries(t *testing.T) {
	c := &clock{}
	m := workloads.NewMeter(c.now)
	op := m.Begin("buy")
	op.Enter(workloads.Statement) // 0..3
	c.ms = 3
	op.Retry()
	op.Count("conflicts")
	op.Enter(workloads.Backoff) // 3..7, retried
	c.ms = 7
	op.Enter(workloads.Statement) // 7..8, retried
	c.ms = 8
	op.End(workloads.OK)
	again := m.Begin("buy") // another operation is at its first attempt
	c.ms = 10
	got := map[string]float64{}
	for _, x := range m.Read().Totals {
		got[fmt.Sprint(x.Stage, " ", x.Retry)] = x.Seconds * 1e3
	}
	want := map[string]float64{"app false": 2, "statement false": 3, "backoff true": 4, "statement true": 1}
	for k, v := range want {
		if math.Abs(got[k]-v) > 1e-9 {
			t.Errorf("%s: %v ms, want %v (all: %v)", k, got[k], v, got)
		}
	}
	if n := m.Read().Counted[workloads.Counted{Operation: "buy", What: "conflicts"}]; n != 1 || len(got) != len(want) {
		t.Errorf("%d conflicts, cells %v", n, got)
	}
	again.End(workloads.OK)
}

// TestMeterLocks follows one application lock: a holds it from 0 to 10, b waits
// from 2 on and polls, gets it at 14; c asks at 20, when nobody has it, and
// gives up at 23.
func TestMeterLocks(t *testing.T) {
	c := &clock{}
	m := workloads.NewMeter(c.now)
	lock := workloads.ApplicationLock("stock/1")
	a, b := m.Begin("buy"), m.Begin("buy")
	a.Ask(workloads.AppLock, lock)
	a.Hold()
	c.ms = 2
	b.Ask(workloads.AppLock, lock)
	c.ms = 5
	b.In(workloads.Backoff)
	c.ms = 10
	da := a.End(workloads.OK) // which drops it
	c.ms = 12
	if r := m.Read(); ms(r.LockIdle) != 2 || ms(r.LockWaited) != 10 {
		t.Errorf("at 12: idle %v, waited %v ms, want 2 (from 10) and 10 (from 2)", ms(r.LockIdle), ms(r.LockWaited))
	}
	c.ms = 14
	b.Hold()
	c.ms = 17
	db := b.End(workloads.OK)
	c.ms = 20
	x := m.Begin("buy")
	x.Ask(workloads.AppLock, lock)
	c.ms = 23
	x.Enter(workloads.App)
	dx := x.End("lock_timeout")
	c.ms = 99
	if r := m.Read(); ms(r.LockIdle) != 4+3 || ms(r.LockWaited) != 12+3 {
		t.Errorf("in all: idle %v, waited %v ms, want 7 and 15", ms(r.LockIdle), ms(r.LockWaited))
	}
	if da.LockHold != 10*time.Millisecond || da.Handoff != 0 || db.LockHold != 3*time.Millisecond || db.Handoff != 4*time.Millisecond || dx.LockHold != 0 || dx.Handoff != 0 {
		t.Errorf("holds %v, %v, %v, want 10, 3, 0 ms; handoffs %v, %v, %v, want 0, 4, 0 ms", da.LockHold, db.LockHold, dx.LockHold, da.Handoff, db.Handoff, dx.Handoff)
	}
}

// ms rounds seconds to whole milliseconds.
func ms(seconds float64) int { return int(math.Round(seconds * 1e3)) }

func TestMeterHoldsTwice(t *testing.T) {
	c := &clock{}
	m := workloads.NewMeter(c.now)
	op := m.Begin("buy")
	for range 2 {
		op.Ask(workloads.PoolWait, workloads.Named("pool:mysql"))
		op.Hold()
	}
	c.ms = 7
	want(t, m, "app [] pool:mysql+pool:mysql", 7, 1)
	op.End("timeout") // drops both
	c.ms = 8
	op = m.Begin("buy")
	c.ms = 9
	want(t, m, "app [] ", 1, 2)
	defer func() {
		if recover() == nil {
			t.Error("holding what was not asked for did not panic")
		}
	}()
	op.Hold()
}

// contend makes two operations meet on a key: the second waits for 10 ms.
func contend(c *clock, m *workloads.Meter, r workloads.Resource) {
	first, second := m.Begin("buy"), m.Begin("buy")
	first.Ask(workloads.Statement, r)
	first.Hold()
	second.Ask(workloads.Statement, r)
	c.ms += 10
	first.End(workloads.OK)
	second.Hold()
	second.End(workloads.OK)
}

func TestMeterNamesHotKeys(t *testing.T) {
	c := &clock{}
	m := workloads.NewMeter(c.now)
	hot := workloads.Row("stock", "1")
	for range 8 { // eight waits of 10 ms under the common name
		contend(c, m, hot)
	}
	want(t, m, "statement [row:stock/*] ", 80, 16)
	contend(c, m, hot) // now by its own
	want(t, m, "statement [row:stock/1] ", 10, 2)
	// A key with one wait of 10 ms in 100 ms is hot enough but has too few
	// waits; a thousand keys that nobody waits for are not kept.
	contend(c, m, workloads.Row("stock", "2"))
	for i := range 1000 {
		op := m.Begin("buy")
		op.Ask(workloads.Statement, workloads.Row("stock", fmt.Sprint(100+i)))
		op.Hold()
		op.End(workloads.OK)
	}
	want(t, m, "statement [row:stock/*] ", 90, 16+2+1000)
}

func TestMeterNamesAtMostSixteen(t *testing.T) {
	c := &clock{}
	m := workloads.NewMeter(c.now)
	for range 20 {
		for key := range 20 {
			contend(c, m, workloads.Row("stock", fmt.Sprint(key)))
		}
	}
	names := 0
	for _, total := range m.Read().Totals {
		if total.Asked != "" && total.Asked != "row:stock/*" && total.Held == "" {
			names++
		}
	}
	if names != 16 { // 20 keys of 1/20 of the waiting each, over 1/64
		t.Errorf("%d keys have a name, want 16", names)
	}
}

// TestMeterLosesNothing: whatever operations do, the cells hold the time for
// which operations were open, and never fall.
func TestMeterLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{}
		m := workloads.NewMeter(c.now)
		open := map[int]*workloads.Op{}
		asked := map[int]bool{}
		openMS, last := 0, 0.0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			step := rapid.IntRange(0, 9).Draw(t, "ms")
			c.ms += step
			openMS += step * len(open)
			i := rapid.IntRange(0, 3).Draw(t, "operation")
			op := open[i]
			r := workloads.Row("t", fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "key")))
			switch action := rapid.IntRange(0, 4).Draw(t, "action"); {
			case op == nil:
				open[i], asked[i] = m.Begin("x"), false
			case action == 0:
				op.Ask(workloads.Statement, r)
				asked[i] = true
			case action == 1 && asked[i]:
				op.Hold()
				asked[i] = false
			case action == 2:
				op.Drop(r)
			case action == 3:
				op.Enter(workloads.App)
				asked[i] = false
			default:
				op.End(workloads.OK)
				delete(open, i)
			}
			sum := 0.0
			for _, total := range m.Read().Totals {
				sum += total.Seconds
			}
			if ms := int(sum*1e3 + 0.5); ms != openMS || sum < last-1e-9 {
				t.Fatalf("cells hold %d ms (before %g s), operations were open for %d ms", ms, last, openMS)
			}
			last = sum
		}
	})
}

func TestMeterConcurrently(t *testing.T) {
	began := time.Now()
	m := workloads.NewMeter(func() time.Duration { return time.Since(began) })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				purchase(m)
				m.Read()
			}
		})
	}
	wg.Wait()
	open := 0
	for _, total := range m.Read().Totals {
		open += total.Open
	}
	if n := m.Read().Finished[workloads.Finished{Operation: "buy", Outcome: workloads.OK}]; n != 1600 || open != 0 {
		t.Errorf("%d finished, %d open; want 1600 and 0", n, open)
	}
}

// purchase marks what a pessimistic purchase marks.
func purchase(m *workloads.Meter) {
	pool, row := workloads.Named("pool:mysql"), workloads.Row("stock", "1")
	op := m.Begin("buy")
	op.Ask(workloads.PoolWait, pool)
	op.Hold()
	op.Enter(workloads.Statement)
	op.Enter(workloads.App)
	op.Ask(workloads.Statement, row)
	op.Hold()
	op.Enter(workloads.Statement)
	op.Enter(workloads.App)
	op.Enter(workloads.Commit)
	op.Drop(row)
	op.Drop(pool)
	op.End(workloads.OK)
}

// BenchmarkMeter is what the meter costs one purchase.
func BenchmarkMeter(b *testing.B) {
	began := time.Now()
	m := workloads.NewMeter(func() time.Duration { return time.Since(began) })
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			purchase(m)
		}
	})
}
