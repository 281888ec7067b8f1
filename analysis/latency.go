package analysis

import (
	"errors"
	"io/fs"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"chokepoint/analysis/timeline"
	"chokepoint/collectors/record"
)

// latencies are the merged histograms of the measured phase, by operation and
// stage, all outcomes together.
type latencies map[[2]string]*hdr.Histogram

// allOperations is the operation name under which everything is merged.
const allOperations = ""

func readLatencies(r *record.Reader, t *timeline.Timeline) (latencies, error) {
	l := latencies{}
	for iv, err := range r.Latencies() {
		var syntax *record.SyntaxError
		switch {
		case errors.As(err, &syntax), errors.Is(err, fs.ErrNotExist):
			t.Problems = append(t.Problems, err)
			continue
		case err != nil:
			return nil, err
		}
		for _, key := range [][2]string{{iv.Operation, iv.Stage}, {allOperations, iv.Stage}} {
			if l[key] == nil {
				l[key] = record.NewHistogram()
			}
			l[key].Merge(iv.Histogram)
		}
	}
	return l, nil
}

func (l latencies) of(operation, stage string) Latency {
	h := l[[2]string{operation, stage}]
	if h == nil || h.TotalCount() == 0 {
		u := unknown()
		return Latency{u, u, u, u, u, u, u}
	}
	q := func(p float64) Number { return Number(float64(h.ValueAtPercentile(p)) / 1e9) }
	return Latency{Number(h.Mean() / 1e9), q(50), q(90), q(95), q(99), q(99.9), Number(float64(h.Max()) / 1e9)}
}

func (l Latency) spread() Spread { return Spread{Mean: l.Mean, P95: l.P95, P99: l.P99, Max: l.Max} }
