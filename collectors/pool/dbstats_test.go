package pool_test

import (
	"database/sql"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"chokepoint/collectors/pool"
	"chokepoint/collectors/record"
)

// take opens n connections at the same time.
func take(t *testing.T, db *sql.DB, n int) []*sql.Conn {
	t.Helper()
	conns := make([]*sql.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = db.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return conns
}

// TestEveryValue makes each counter of a pool, in the bubble's time.
func TestEveryValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := sql.OpenDB(connector{})
		defer db.Close()
		db.SetMaxOpenConns(4)
		db.SetMaxIdleConns(3)
		// Four are taken; two more wait.
		conns := take(t, db, 4)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				c, err := db.Conn(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				c.Close()
			})
			synctest.Wait() // it stands in the queue
		}
		<-time.After(time.Second)
		keep := conns[0]
		conns[1].Close() // for the first who waits, who hands it on at once: both have waited for 1 s
		wg.Wait()
		conns[2].Close()
		conns[3].Close() // three are idle
		extra := take(t, db, 3)
		keep.Close()
		for _, c := range extra {
			c.Close() // the fourth is one too many to keep
		}
		keep = take(t, db, 1)[0]
		db.SetConnMaxIdleTime(10 * time.Second)
		<-time.After(time.Minute) // the two that are idle go
		keep.Close()
		db.SetConnMaxIdleTime(0)
		db.SetConnMaxLifetime(time.Second)
		<-time.After(time.Minute) // and then the one that was held, by its age
		db.SetConnMaxLifetime(0)
		last := take(t, db, 1)[0]
		defer last.Close()

		b := &record.Batch{}
		if err := (pool.Source{DB: db, Label: "my,sql"}).Read(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		want := map[string]float64{
			`pool.max_open{my\,sql}`:             4,
			`pool.open{my\,sql}`:                 1,
			`pool.in_use{my\,sql}`:               1,
			`pool.idle{my\,sql}`:                 0,
			`pool.wait_count{my\,sql}`:           2,
			`pool.wait_seconds{my\,sql}`:         2,
			`pool.closed{my\,sql,max_idle}`:      1,
			`pool.closed{my\,sql,max_idle_time}`: 2,
			`pool.closed{my\,sql,max_lifetime}`:  1,
		}
		if d := cmp.Diff(want, b.Values); d != "" {
			t.Error(d)
		}
	})
}
