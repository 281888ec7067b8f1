package pool

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Timeouts is of pools of go-redis only.
const Timeouts = "pool.timeouts"

// RedisSource reads one pool of go-redis, which is the resource "pool:<label>".
// Its metrics are those of Source, and Timeouts.
type RedisSource struct {
	Client *redis.Client
	Label  string
}

// Name implements collectors.Source.
func (RedisSource) Name() string { return "pool.redis" }

// Metrics implements collectors.Source. Those of Source are described there.
func (RedisSource) Metrics() []metric.Desc {
	return []metric.Desc{{Name: Timeouts, Unit: metric.One, Kind: metric.Counter, Labels: []string{"pool"}, Help: "waits for a connection that ended by the pool's own time limit (PoolStats.Timeouts)"}}
}

// Read implements collectors.Source.
func (s RedisSource) Read(_ context.Context, b *record.Batch) error {
	st := s.Client.PoolStats()
	b.Add(float64(s.Client.Options().PoolSize), MaxOpen, s.Label)
	b.Add(float64(st.TotalConns), Open, s.Label)
	b.Add(float64(st.TotalConns)-float64(st.IdleConns), InUse, s.Label)
	b.Add(float64(st.IdleConns), Idle, s.Label)
	b.Add(float64(st.WaitCount), WaitCount, s.Label)
	b.Add(time.Duration(st.WaitDurationNs).Seconds(), WaitSeconds, s.Label)
	b.Add(float64(st.Timeouts), Timeouts, s.Label)
	return nil
}
