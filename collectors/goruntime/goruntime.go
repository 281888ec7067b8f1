// Package goruntime reads runtime/metrics of this process.
package goruntime

import (
	"context"
	"fmt"
	"math"
	"runtime/metrics"
	"strconv"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the metrics.
const (
	CPUSeconds   = "go.cpu_seconds"
	SchedLatency = "go.sched_latency"
	GCPauses     = "go.gc_pauses"
	GCCycles     = "go.gc_cycles"
	MutexWait    = "go.mutex_wait_seconds"
	Goroutines   = "go.goroutines"
	HeapBytes    = "go.heap_bytes"
	GOMAXPROCS   = "go.gomaxprocs"
)

// scalar is a runtime/metrics sample that is one number.
type scalar struct {
	sample string
	name   string
	labels []string
}

func scalars() []scalar {
	return []scalar{
		{"/cpu/classes/user:cpu-seconds", CPUSeconds, []string{"user"}},
		{"/cpu/classes/gc/total:cpu-seconds", CPUSeconds, []string{"gc"}},
		{"/cpu/classes/gc/mark/assist:cpu-seconds", CPUSeconds, []string{"gc_assist"}},
		{"/cpu/classes/scavenge/total:cpu-seconds", CPUSeconds, []string{"scavenge"}},
		{"/cpu/classes/idle:cpu-seconds", CPUSeconds, []string{"idle"}},
		{"/gc/cycles/total:gc-cycles", GCCycles, nil},
		{"/sync/mutex/wait/total:seconds", MutexWait, nil},
		{"/sched/goroutines:goroutines", Goroutines, nil},
		{"/memory/classes/heap/objects:bytes", HeapBytes, nil},
		{"/sched/gomaxprocs:threads", GOMAXPROCS, nil},
	}
}

// histogram is a runtime/metrics sample that is a histogram of seconds.
type histogram struct{ sample, name string }

func histograms() []histogram {
	return []histogram{
		{"/sched/latencies:seconds", SchedLatency},
		{"/sched/pauses/total/gc:seconds", GCPauses},
	}
}

// Source reads this process.
type Source struct{}

// Name implements collectors.Source.
func (Source) Name() string { return "go" }

// Metrics implements collectors.Source.
func (Source) Metrics() []metric.Desc {
	return []metric.Desc{
		{Name: CPUSeconds, Unit: metric.Seconds, Kind: metric.Counter, Labels: []string{"class"},
			Help: "estimated CPU time by class; the runtime updates it at each garbage collection only (/cpu/classes)"},
		{Name: SchedLatency, Unit: metric.One, Kind: metric.Counter, Labels: []string{"lower", "upper"},
			Help: "goroutines by the time they stood runnable before they ran, in buckets of seconds (/sched/latencies)"},
		{Name: GCPauses, Unit: metric.One, Kind: metric.Counter, Labels: []string{"lower", "upper"},
			Help: "stop-the-world pauses of the garbage collector, in buckets of seconds (/sched/pauses/total/gc)"},
		{Name: GCCycles, Unit: metric.One, Kind: metric.Counter, Help: "garbage collections that have ended (/gc/cycles/total)"},
		{Name: MutexWait, Unit: metric.Seconds, Kind: metric.Counter, Help: "time goroutines waited for a mutex or the runtime's locks (/sync/mutex/wait/total)"},
		{Name: Goroutines, Unit: metric.One, Kind: metric.Gauge, Help: "live goroutines (/sched/goroutines)"},
		{Name: HeapBytes, Unit: metric.Bytes, Kind: metric.Gauge, Help: "memory of live and not yet swept objects (/memory/classes/heap/objects)"},
		{Name: GOMAXPROCS, Unit: metric.One, Kind: metric.Gauge, Help: "processors of the Go scheduler (/sched/gomaxprocs)"},
	}
}

// Read implements collectors.Source. It fails if this Go has not got a sample.
func (Source) Read(_ context.Context, b *record.Batch) error {
	ss, hs := scalars(), histograms()
	samples := make([]metrics.Sample, 0, len(ss)+len(hs))
	for _, s := range ss {
		samples = append(samples, metrics.Sample{Name: s.sample})
	}
	for _, h := range hs {
		samples = append(samples, metrics.Sample{Name: h.sample})
	}
	metrics.Read(samples)
	for i, s := range ss {
		v, err := number(samples[i])
		if err != nil {
			return err
		}
		b.Add(v, s.name, s.labels...)
	}
	for i, h := range hs {
		s := samples[len(ss)+i]
		if s.Value.Kind() != metrics.KindFloat64Histogram {
			return fmt.Errorf("go: the runtime has no histogram %s", s.Name)
		}
		addHistogram(b, h.name, s.Value.Float64Histogram())
	}
	return nil
}

func number(s metrics.Sample) (float64, error) {
	switch s.Value.Kind() {
	case metrics.KindUint64:
		return float64(s.Value.Uint64()), nil
	case metrics.KindFloat64:
		return s.Value.Float64(), nil
	}
	return 0, fmt.Errorf("go: the runtime has no metric %s", s.Name)
}

// addHistogram writes the buckets that hold something; an absent one is 0.
func addHistogram(b *record.Batch, name string, h *metrics.Float64Histogram) {
	for i, n := range h.Counts {
		if n > 0 {
			b.Add(float64(n), name, bound(h.Buckets[i]), bound(h.Buckets[i+1]))
		}
	}
}

func bound(v float64) string {
	if math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64) // "+Inf", "-Inf"
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
