package workloads_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chokepoint/workloads"
)

// slowDialer takes a time, of the bubble's clock, for each connection, and
// fails from the dial with number fails on, if that is not 0.
type slowDialer struct {
	takes time.Duration
	fails int

	mu             sync.Mutex
	dials, at, max int // all; going on now; at most
}

var errRefused = errors.New("refused")

func (d *slowDialer) Connect(ctx context.Context) (driver.Conn, error) {
	d.mu.Lock()
	d.dials++
	n := d.dials
	d.at++
	d.max = max(d.max, d.at)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.at--
		d.mu.Unlock()
	}()
	select {
	case <-time.After(d.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.fails > 0 && n >= d.fails {
		return nil, errRefused
	}
	return idle{}, nil
}

func (*slowDialer) Driver() driver.Driver { return nil }

// bubble is a pool and a meter on the clock of the bubble.
func bubble(d *slowDialer, size, keep int) (*workloads.Pool, *workloads.Meter) {
	began := time.Now()
	return workloads.NewPool("mysql", d, size, keep), workloads.NewMeter(func() time.Duration { return time.Since(began) })
}

func conn(t *testing.T, p *workloads.Pool, op *workloads.Op) *sql.Conn {
	t.Helper()
	c, err := p.Conn(workloads.WithOp(t.Context(), op), op)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPoolWaits: a pool of one. The first operation dials for 5 ms and holds
// for 10; the second, 1 ms later, waits for 14 and dials nothing.
func TestPoolWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDialer{takes: 5 * time.Millisecond}
		p, m := bubble(d, 1, 0)
		defer p.DB.Close()
		var wg sync.WaitGroup
		wg.Go(func() {
			op := m.Begin("buy")
			c := conn(t, p, op)
			<-time.After(10 * time.Millisecond)
			p.Release(op, c)
			op.End(workloads.OK)
		})
		wg.Go(func() {
			<-time.After(time.Millisecond)
			op := m.Begin("buy")
			c := conn(t, p, op)
			<-time.After(2 * time.Millisecond)
			p.Release(op, c)
			if d := op.End(workloads.OK); d.PoolHold != 2*time.Millisecond || d.Spent[workloads.PoolWait] != 14*time.Millisecond {
				t.Errorf("the second: %+v", d)
			}
		})
		wg.Wait()
		want(t, m, "dial [pool:mysql] ", 5, 1)
		want(t, m, "pool_wait [pool:mysql] ", 14, 3) // the first before and after its dial, for no time
		want(t, m, "app [] pool:mysql", 12, 2)
		if st := p.DB.Stats(); d.dials != 1 || st.WaitCount != 1 || st.WaitDuration != 14*time.Millisecond {
			t.Errorf("%d dials; database/sql says: %+v", d.dials, st)
		}
	})
}

// TestDialFails: the operation's dial is booked, and nothing is held.
func TestDialFails(t *testing.T) {
	for _, size := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			p, m := bubble(&slowDialer{takes: 5 * time.Millisecond, fails: 1}, size, 1)
			defer p.DB.Close()
			op := m.Begin("buy")
			if _, err := p.Conn(workloads.WithOp(t.Context(), op), op); !errors.Is(err, errRefused) {
				t.Errorf("size %d: %v", size, err)
			}
			<-time.After(time.Millisecond)
			d := op.End("error")
			if d.Spent[workloads.Dial] != 5*time.Millisecond || d.Spent[workloads.App] != time.Millisecond || d.PoolHold != 0 {
				t.Errorf("size %d: %+v", size, d)
			}
			for _, c := range m.Read().Totals {
				if c.Held != "" {
					t.Errorf("size %d: held %s", size, c.Held)
				}
			}
		})
	}
}

// TestUnlimitedPool: four at once have their connections without waiting, and
// none of them holds a resource. It keeps as many as it was told.
func TestUnlimitedPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDialer{takes: 5 * time.Millisecond}
		p, m := bubble(d, 0, 3)
		defer p.DB.Close()
		if p.Resource != (workloads.Resource{}) {
			t.Errorf("an unlimited pool is resource %v", p.Resource)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				op := m.Begin("buy")
				c := conn(t, p, op)
				<-time.After(10 * time.Millisecond)
				p.Release(op, c)
				op.End(workloads.OK)
			})
		}
		wg.Wait()
		want(t, m, "dial [] ", 20, 4)
		want(t, m, "pool_wait [] ", 0, 8)
		want(t, m, "app [] ", 40, 8) // before and after
		if st := p.DB.Stats(); st.Idle != 3 {
			t.Errorf("%d connections kept, want 3", st.Idle)
		}
	})
}

// TestConnectWithoutOperation: the pool may dial for nobody in particular.
func TestConnectWithoutOperation(t *testing.T) {
	c, err := workloads.MeteredConnector(&dialer{}).Connect(t.Context())
	if err != nil || c == nil {
		t.Errorf("%v, %v", c, err)
	}
	if op := workloads.OpOf(t.Context()); op != nil {
		t.Errorf("a bare context carries %v", op)
	}
}

func TestPoolOpen(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		fails int
		idle  int
		took  time.Duration
	}{
		{"none", 0, 0, 0, 0},
		{"fifteen at once", 15, 0, 15, 10 * time.Millisecond},
		{"forty, sixteen at a time: three rounds", 40, 0, 40, 30 * time.Millisecond},
		{"those from the 21st on are refused", 40, 21, 20, 30 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &slowDialer{takes: 10 * time.Millisecond, fails: c.fails}
			p, _ := bubble(d, 40, 0)
			defer p.DB.Close()
			began := time.Now()
			err := p.Open(t.Context(), c.n)
			if (c.fails > 0) != errors.Is(err, errRefused) {
				t.Errorf("%s: %v", c.name, err)
			}
			st := p.DB.Stats()
			if took := time.Since(began); st.Idle != c.idle || st.InUse != 0 || took != c.took || d.max > 16 {
				t.Errorf("%s: %d idle, %d in use, %d dialled at once, in %v; want %d and none, at most 16, in %v", c.name, st.Idle, st.InUse, d.max, took, c.idle, c.took)
			}
		})
	}
}
