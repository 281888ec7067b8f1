package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the latency metrics.
const (
	LatencySource  = "redis.latency"
	CommandLatency = "redis.command.latency"
)

// latency reads how long commands took, by bucket: LATENCY HISTOGRAM, of 7.0
// and later; it needs the right +latency|histogram.
//
// Note: the server adds the buckets up and leaves out those that add nothing,
// so that a bucket which appears between two readings already holds all the
// executions below it. Such a series, 0 before it appears, would have a wrong
// difference; the executions of each bucket alone have a right one.
type latency struct{ server *Server }

func (latency) Name() string { return LatencySource }

func (latency) Metrics() []metric.Desc {
	return []metric.Desc{{Name: CommandLatency, Unit: metric.One, Kind: metric.Counter, Labels: []string{"command", "le"},
		Help: "executions that took at most le seconds and more than the bucket below: time in the main thread only; none with latency-tracking off (LATENCY HISTOGRAM)"}}
}

func (s latency) Read(ctx context.Context, b *record.Batch) error {
	reply, err := s.server.Client.Do(ctx, "latency", "histogram").Slice()
	if code(err) == "ERR" { // it knows no such command, or no such word behind it
		err = fmt.Errorf("LATENCY HISTOGRAM needs Redis 7.0 or Valkey: %w", err)
	}
	if err != nil {
		return s.server.explain(LatencySource, "+latency|histogram", err)
	}
	if err := addHistograms(b, reply); err != nil {
		return fmt.Errorf("%s: %w", LatencySource, err)
	}
	return nil
}

// addHistograms reads pairs of a command and its histogram.
func addHistograms(b *record.Batch, reply []any) error {
	var errs []error
	for i := 0; i+1 < len(reply); i += 2 {
		command, named := reply[i].(string)
		buckets, found := field(reply[i+1], "histogram_usec")
		if !named || !found {
			errs = append(errs, fmt.Errorf("no histogram of a command but %.100q", fmt.Sprint(reply[i:i+2])))
			continue
		}
		if err := addBuckets(b, command, buckets); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", command, err))
		}
	}
	return errors.Join(errs...)
}

// field finds a list by its name among pairs of name and value.
func field(pairs any, name string) (list []any, ok bool) {
	p, _ := pairs.([]any)
	for i := 0; i+1 < len(p); i += 2 {
		if p[i] == name {
			list, ok = p[i+1].([]any)
		}
	}
	return list, ok
}

// addBuckets reads pairs of a bucket's upper bound in microseconds and the
// number of executions up to it.
func addBuckets(b *record.Batch, command string, pairs []any) error {
	var below int64
	for i := 0; i+1 < len(pairs); i += 2 {
		bound, ok1 := pairs[i].(int64)
		upTo, ok2 := pairs[i+1].(int64)
		if !ok1 || !ok2 || upTo < below {
			return fmt.Errorf("no bucket above %d executions but %v: %v", below, pairs[i], pairs[i+1])
		}
		// Dividing, unlike multiplying, gives the number whose text is short.
		le := strconv.FormatFloat(float64(bound)/1e6, 'f', -1, 64)
		b.Add(float64(upTo-below), CommandLatency, command, le)
		below = upTo
	}
	return nil
}
