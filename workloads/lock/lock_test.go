package lock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"chokepoint/workloads"
	"chokepoint/workloads/lock"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

// sale is a workload on a private server.
type sale struct {
	*lock.Workload
	pool  *workloads.Pool
	redis *redis.Client // nil where the strategy needs none
	meter *workloads.Meter
}

func open(t *testing.T, s *sandbox.Sandbox, schema string, o lock.Options) sale {
	t.Helper()
	cfg := s.MySQL().Config()
	cfg.InterpolateParams = true
	connect := func() *workloads.Pool {
		c, err := mysql.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p := workloads.NewPool("mysql", c, 10, 0)
		t.Cleanup(func() { p.DB.Close() })
		return p
	}
	if _, err := connect().DB.ExecContext(t.Context(), "CREATE DATABASE "+schema); err != nil {
		t.Fatal(err)
	}
	cfg = cfg.Clone()
	cfg.DBName = schema
	p := connect()
	var client *redis.Client
	if o.NeedsRedis() {
		client = redis.NewClient(&redis.Options{Network: "unix", Addr: sandboxtest.Redis(t, s).Socket, PoolSize: 64, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true})
		t.Cleanup(func() { client.Close() })
	}
	w, err := lock.New(p, client, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	return sale{w, p, client, workloads.NewMeter(func() time.Duration { return time.Since(began) })}
}

// drive sells and returns the outcomes.
func (s sale) drive(t *testing.T, workers int, requests uint64, timeout time.Duration) map[workloads.Outcome]int64 {
	t.Helper()
	out := map[workloads.Outcome]int64{}
	var mu sync.Mutex
	workloads.Drive(t.Context(), s, s.meter, workloads.Load{Operation: lock.Operation, Workers: workers, Requests: requests, Timeout: timeout, Seed: 1}, func(d workloads.Done) {
		mu.Lock()
		defer mu.Unlock()
		out[d.Outcome]++
	})
	return out
}

func (s sale) audit(t *testing.T) lock.Books {
	t.Helper()
	b, err := s.Audit(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSales(t *testing.T) { sandboxtest.EachFlavor(t, testSales) }

func testSales(t *testing.T, flavor sandbox.Flavor) {
	server := sandboxtest.Start(t, sandbox.Options{Flavor: flavor})
	t.Run("exact", func(t *testing.T) {
		for _, strategy := range []string{"atomic", "pessimistic"} {
			s := open(t, server, "chokepoint_"+strategy, lock.Options{Strategy: strategy, Keys: 3, Stock: 1000})
			out := s.drive(t, 20, 600, 10*time.Second)
			if b := s.audit(t); out[workloads.OK] != 600 || b.Left != 3*1000-600 || b.Oversold != 0 {
				t.Errorf("%s: outcomes %v, books %+v", strategy, out, b)
			}
		}
	})
	t.Run("lost", func(t *testing.T) {
		s := open(t, server, "chokepoint_none", lock.Options{Strategy: "none", Keys: 1, Stock: 1000})
		out := s.drive(t, 20, 600, 10*time.Second)
		if b := s.audit(t); out[workloads.OK] != 600 || b.Left <= 1000-600 {
			t.Errorf("outcomes %v, books %+v: twenty workers on one row must lose updates", out, b)
		}
	})
	t.Run("sold out", func(t *testing.T) {
		for _, strategy := range []string{"atomic", "pessimistic"} {
			s := open(t, server, "chokepoint_out_"+strategy, lock.Options{Strategy: strategy, Keys: 1, Stock: 5})
			out := s.drive(t, 8, 50, 10*time.Second)
			if b := s.audit(t); out[workloads.OK] != 5 || out[lock.SoldOut] != 45 || b.Left != 0 {
				t.Errorf("%s: outcomes %v, books %+v; 5 units, 50 buyers", strategy, out, b)
			}
		}
	})
	t.Run("held by another", func(t *testing.T) {
		s := open(t, server, "chokepoint_held", lock.Options{Strategy: "pessimistic", Keys: 1, Stock: 5})
		tx, err := s.pool.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("UPDATE stock SET quantity = quantity WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		if out := s.drive(t, 2, 2, 200*time.Millisecond); out[lock.Timeout] != 2 {
			t.Errorf("outcomes %v, want 2 timeouts", out)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if out := s.drive(t, 2, 4, 10*time.Second); out[workloads.OK] != 4 {
			t.Errorf("afterwards: outcomes %v, want 4 ok", out)
		}
	})
}

func TestUnknownStrategy(t *testing.T) {
	if _, err := lock.New(nil, nil, lock.Options{Strategy: "hope"}); err == nil {
		t.Error("there is a strategy hope")
	}
	if _, err := lock.New(nil, nil, lock.Options{Strategy: "redis-spin"}); err == nil {
		t.Error("redis-spin goes without Redis")
	}
}
