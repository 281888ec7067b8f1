package workloads_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"chokepoint/workloads"
)

// dialer is a connector whose connections do nothing.
type dialer struct {
	dials atomic.Int32
	hook  func()
}

func (d *dialer) Connect(context.Context) (driver.Conn, error) {
	d.dials.Add(1)
	if d.hook != nil {
		d.hook()
	}
	return idle{}, nil
}

func (*dialer) Driver() driver.Driver { return nil }

type idle struct{}

func (idle) Prepare(string) (driver.Stmt, error) { return nil, errors.New("no statements here") }
func (idle) Close() error                        { return nil }
func (idle) Begin() (driver.Tx, error)           { return nil, errors.New("no transactions here") }

func TestPoolBooksDialApart(t *testing.T) {
	c := &clock{}
	m := workloads.NewMeter(c.now)
	d := &dialer{hook: func() { c.ms += 5 }}
	p := workloads.NewPool("mysql", d, 1, 0)
	defer p.DB.Close()

	op := m.Begin("buy")
	conn, err := p.Conn(workloads.WithOp(t.Context(), op), op)
	if err != nil {
		t.Fatal(err)
	}
	c.ms += 2
	want(t, m, "dial [pool:mysql] ", 5, 1)
	want(t, m, "app [] pool:mysql", 2, 1)

	// The pool is full: another waits until its time is up, and holds nothing.
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	second := m.Begin("buy")
	if _, err := p.Conn(workloads.WithOp(ctx, second), second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a full pool gave %v", err)
	}
	if d := second.End("pool_timeout"); d.PoolHold != 0 {
		t.Errorf("held the pool for %v", d.PoolHold)
	}
	p.Release(op, conn)
	if d := op.End(workloads.OK); d.PoolHold != 2*time.Millisecond {
		t.Errorf("held the pool for %v, want 2 ms", d.PoolHold)
	}
}

func TestUnlimitedPoolIsNoResource(t *testing.T) {
	c := &clock{}
	m := workloads.NewMeter(c.now)
	p := workloads.NewPool("mysql", &dialer{}, 0, 4)
	defer p.DB.Close()
	op := m.Begin("buy")
	conn, err := p.Conn(workloads.WithOp(t.Context(), op), op)
	if err != nil {
		t.Fatal(err)
	}
	c.ms = 3
	want(t, m, "app [] ", 3, 2)
	p.Release(op, conn)
	op.End(workloads.OK)
}

func TestPoolOpensAll(t *testing.T) {
	d := &dialer{}
	p := workloads.NewPool("mysql", d, 40, 0)
	defer p.DB.Close()
	if err := p.Open(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	if st := p.DB.Stats(); d.dials.Load() != 40 || st.Idle != 40 {
		t.Errorf("%d dialled, %d idle; want 40 of both", d.dials.Load(), st.Idle)
	}
}
