package record

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Range and precision of the latency histograms: 1 us to 1 h in nanoseconds,
// to three significant digits.
const (
	latencyMin    = 1e3
	latencyMax    = 3600e9
	latencyDigits = 3
)

// Pseudo-stages of the latency log, beside the client stages.
const (
	// StageTotal is a whole operation.
	StageTotal = "total"
	// StagePoolHold is the time for which an operation held a connection.
	StagePoolHold = "pool_hold"
	// StageLockHold is the time for which it held an application lock, and
	// StageHandoff for how long that had been free, with operations waiting.
	StageLockHold = "lock_hold"
	StageHandoff  = "lock_handoff"
)

// Interval holds how long the operations that ended in one interval spent in
// one stage. Values are nanoseconds, and for percentiles only: sums and means
// come from the source operations.
type Interval struct {
	Operation, Stage, Outcome string
	From, To                  float64 // seconds since the start of the record
	Histogram                 *hdr.Histogram
}

// NewHistogram makes a histogram of the kind that latency.hlog holds.
func NewHistogram() *hdr.Histogram { return hdr.New(latencyMin, latencyMax, latencyDigits) }

// Latency appends one interval to the latency log.
func (w *Writer) Latency(iv Interval) error {
	var line strings.Builder
	h := iv.Histogram
	h.SetTag(iv.Operation + "/" + iv.Stage + "/" + iv.Outcome)
	h.SetStartTimeMs(int64(math.Round(iv.From * 1e3)))
	h.SetEndTimeMs(int64(math.Round(iv.To * 1e3)))
	if err := hdr.NewHistogramLogWriter(&line).OutputIntervalHistogram(h); err != nil {
		return fmt.Errorf("record: %s: %w", LatencyFile, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.append(w.latency, []byte(line.String()))
}

// Latencies reads the latency log in the order of the file, like Batches.
func (r *Reader) Latencies() iter.Seq2[*Interval, error] {
	return lines(r.dir, LatencyFile, parseInterval)
}

// parseInterval reads "Tag=op/stage/outcome,start,length,max,payload".
// Note: the library has a reader of whole logs, but it passes over what it
// cannot read without a word.
func parseInterval(line []byte) (*Interval, error) {
	if len(line) == 0 || line[0] == '#' || line[0] == '"' {
		return nil, nil // comment or legend
	}
	f := strings.SplitN(string(line), ",", 5)
	if len(f) != 5 || !strings.HasPrefix(f[0], "Tag=") {
		return nil, errors.New("not a tagged interval histogram")
	}
	tag := strings.Split(strings.TrimPrefix(f[0], "Tag="), "/")
	if len(tag) != 3 {
		return nil, fmt.Errorf("tag %q is not operation/stage/outcome", f[0])
	}
	from, err1 := strconv.ParseFloat(f[1], 64)
	length, err2 := strconv.ParseFloat(f[2], 64)
	if err := errors.Join(err1, err2); err != nil || !(from >= 0 && length >= 0) || math.IsInf(from+length, 0) {
		return nil, fmt.Errorf("not an interval: %s,%s", f[1], f[2])
	}
	h, err := hdr.Decode([]byte(f[4]))
	if err != nil {
		return nil, err
	}
	if h.LowestTrackableValue() != latencyMin || h.HighestTrackableValue() > 2*latencyMax {
		return nil, errors.New("a histogram of another range than this format's")
	}
	return &Interval{Operation: tag[0], Stage: tag[1], Outcome: tag[2], From: from, To: from + length, Histogram: h}, nil
}
