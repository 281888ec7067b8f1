package redis

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"chokepoint/collectors/record"
)

// TestBuckets: the server adds up, and leaves out the buckets that add nothing.
func TestBuckets(t *testing.T) {
	list := func(v ...any) []any { return v }
	b := &record.Batch{}
	err := addHistograms(b, list(
		"get", list("calls", int64(25), "histogram_usec", list(int64(1), int64(20), int64(33), int64(24), int64(1056), int64(25))),
		"config|set", list("calls", int64(0), "histogram_usec", list()),
		"set", list("calls", int64(2), "histogram_usec", list(int64(2), int64(2), int64(4), int64(1))), // fewer up to 4 than up to 2
		"del", list("calls", int64(2)),
		"incr", list("histogram_usec", list(int64(1082196), int64(3))),
	))
	want := map[string]float64{
		"redis.command.latency{get,0.000001}":  20,
		"redis.command.latency{get,0.000033}":  4,
		"redis.command.latency{get,0.001056}":  1,
		"redis.command.latency{set,0.000002}":  2,
		"redis.command.latency{incr,1.082196}": 3,
	}
	if d := cmp.Diff(want, b.Values); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	const wantErr = "set: no bucket above 2 executions but 4: 1\nno histogram of a command but \"[del [calls 2]]\""
	if err == nil || err.Error() != wantErr {
		t.Errorf("%v", err)
	}
}
