package mysql

import (
	"context"
	"fmt"
	"time"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// PingSource is the name of the source of round-trip times.
const PingSource = "mysql.ping"

// Ping times one round trip of the observer (COM_PING). While the server is
// idle, that is what the network costs a statement; under load, what a
// statement costs outside the server's timers, scheduling delays included.
type Ping struct{ Server *Server }

// Name implements collectors.Source.
func (Ping) Name() string { return PingSource }

// Metrics implements collectors.Source.
func (Ping) Metrics() []metric.Desc {
	return []metric.Desc{{Name: PingSeconds, Unit: metric.Seconds, Kind: metric.Gauge, Help: "one round trip of the observer's own connection (COM_PING)"}}
}

// Read implements collectors.Source.
func (p Ping) Read(ctx context.Context, b *record.Batch) error {
	conn, err := p.Server.DB.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", PingSource, err)
	}
	defer conn.Close()
	from := time.Now()
	if err := conn.PingContext(ctx); err != nil {
		return fmt.Errorf("%s: %w", PingSource, err)
	}
	b.Add(time.Since(from).Seconds(), PingSeconds)
	return nil
}
