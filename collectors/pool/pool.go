// Package pool reads the counters of database/sql connection pools.
package pool

import (
	"context"
	"database/sql"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the metrics.
const (
	MaxOpen     = "pool.max_open"
	Open        = "pool.open"
	InUse       = "pool.in_use"
	Idle        = "pool.idle"
	WaitCount   = "pool.wait_count"
	WaitSeconds = "pool.wait_seconds"
	Closed      = "pool.closed"
)

// Source reads one pool, which is the resource "pool:<label>".
type Source struct {
	DB    *sql.DB
	Label string
}

// Name implements collectors.Source.
func (Source) Name() string { return "pool" }

// Metrics implements collectors.Source.
func (Source) Metrics() []metric.Desc {
	labels := []string{"pool"}
	return []metric.Desc{
		{Name: MaxOpen, Unit: metric.One, Kind: metric.Gauge, Labels: labels, Help: "limit of open connections, 0 is none (DBStats.MaxOpenConnections)"},
		{Name: Open, Unit: metric.One, Kind: metric.Gauge, Labels: labels, Help: "open connections (DBStats.OpenConnections)"},
		{Name: InUse, Unit: metric.One, Kind: metric.Gauge, Labels: labels, Help: "connections in use (DBStats.InUse)"},
		{Name: Idle, Unit: metric.One, Kind: metric.Gauge, Labels: labels, Help: "idle connections (DBStats.Idle)"},
		{Name: WaitCount, Unit: metric.One, Kind: metric.Counter, Labels: labels, Help: "waits for a connection that have begun (DBStats.WaitCount)"},
		{Name: WaitSeconds, Unit: metric.Seconds, Kind: metric.Counter, Labels: labels, Help: "waits for a connection that have ended, cancelled ones included (DBStats.WaitDuration)"},
		{Name: Closed, Unit: metric.One, Kind: metric.Counter, Labels: []string{"pool", "reason"}, Help: "connections closed by the pool's limits (DBStats.Max*Closed)"},
	}
}

// Read implements collectors.Source.
func (s Source) Read(_ context.Context, b *record.Batch) error {
	st := s.DB.Stats()
	b.Add(float64(st.MaxOpenConnections), MaxOpen, s.Label)
	b.Add(float64(st.OpenConnections), Open, s.Label)
	b.Add(float64(st.InUse), InUse, s.Label)
	b.Add(float64(st.Idle), Idle, s.Label)
	b.Add(float64(st.WaitCount), WaitCount, s.Label)
	b.Add(st.WaitDuration.Seconds(), WaitSeconds, s.Label)
	b.Add(float64(st.MaxIdleClosed), Closed, s.Label, "max_idle")
	b.Add(float64(st.MaxIdleTimeClosed), Closed, s.Label, "max_idle_time")
	b.Add(float64(st.MaxLifetimeClosed), Closed, s.Label, "max_lifetime")
	return nil
}
