package pool_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"chokepoint/collectors/pool"
	"chokepoint/collectors/record"
)

// connector makes connections that do nothing.
type connector struct{}

func (connector) Connect(context.Context) (driver.Conn, error) { return conn{}, nil }
func (connector) Driver() driver.Driver                        { return nil }

type conn struct{}

func (conn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("no statements here") }
func (conn) Close() error                        { return nil }
func (conn) Begin() (driver.Tx, error)           { return nil, errors.New("no transactions here") }

func TestRead(t *testing.T) {
	db := sql.OpenDB(connector{})
	defer db.Close()
	db.SetMaxOpenConns(2)
	held, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := db.Conn(waiting)
		done <- err
	}()
	for db.Stats().WaitCount == 0 { // until it stands in the queue
		if t.Context().Err() != nil {
			t.Fatal("nobody waits")
		}
	}
	cancel()
	<-done
	other.Close()
	b := &record.Batch{}
	if err := (pool.Source{DB: db, Label: "mysql"}).Read(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	held.Close()
	for name, want := range map[string]float64{pool.MaxOpen: 2, pool.Open: 2, pool.InUse: 1, pool.Idle: 1, pool.WaitCount: 1} {
		if got := b.Values[record.Series(name, "mysql")]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if b.Values[record.Series(pool.WaitSeconds, "mysql")] <= 0 {
		t.Error("a wait that was cancelled took no time")
	}
	known := map[string]int{}
	for _, d := range (pool.Source{}).Metrics() {
		known[d.Name] = len(d.Labels)
	}
	for series := range b.Values {
		name, labels, err := record.ParseSeries(series)
		if n, ok := known[name]; err != nil || !ok || n != len(labels) {
			t.Errorf("%s is not as described", series)
		}
	}
}
