package redis

import (
	"context"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the slow log's metrics.
const (
	SlowlogSource  = "redis.slowlog"
	SlowlogEntries = "redis.slowlog.entries"
	SlowlogLogged  = "redis.slowlog.logged"
)

// slowlog reads how many commands took longer than slowlog-log-slower-than; it
// needs the rights +slowlog|len and +slowlog|get.
type slowlog struct{ server *Server }

func (slowlog) Name() string { return SlowlogSource }

func (slowlog) Metrics() []metric.Desc {
	return []metric.Desc{
		{Name: SlowlogEntries, Unit: metric.One, Kind: metric.Gauge, Help: "entries that the slow log holds, at most slowlog-max-len (SLOWLOG LEN)"},
		{Name: SlowlogLogged, Unit: metric.One, Kind: metric.Counter, Help: "entries since the server started, those dropped or reset included; absent while the log is empty (id of SLOWLOG GET 1, which begins at 0, and 1)"},
	}
}

// Read adds the length of the log, and the number of the newest entry. What the
// entry says is not looked at: it may hold the load's data.
func (s slowlog) Read(ctx context.Context, b *record.Batch) error {
	n, err := s.server.Client.SlowLogLen(ctx).Result()
	if err != nil {
		return s.server.explain(SlowlogSource, "+slowlog|len +slowlog|get", err)
	}
	b.Add(float64(n), SlowlogEntries)
	newest, err := s.server.Client.SlowLogGet(ctx, 1).Result()
	if err != nil {
		return s.server.explain(SlowlogSource, "+slowlog|len +slowlog|get", err)
	}
	for _, entry := range newest {
		b.Add(float64(entry.ID+1), SlowlogLogged)
	}
	return nil
}
