package profiler

import (
	"maps"
	"slices"
	"strings"

	"github.com/grafana/pyroscope-go/upstream"
)

// lastJob is an upload as the session makes it, without its interval.
type lastJob struct {
	kind string
	job  upstream.UploadJob
}

func lastJobs() []lastJob {
	average := func(units string) *upstream.SampleType {
		return &upstream.SampleType{Units: units, Aggregation: "average"}
	}
	blocking := func(kind string) map[string]*upstream.SampleType {
		return map[string]*upstream.SampleType{
			"contentions": {DisplayName: kind + "_count", Units: "lock_samples"},
			"delay":       {DisplayName: kind + "_duration", Units: "lock_nanoseconds"},
		}
	}
	goroutines := average("goroutines")
	goroutines.DisplayName = "goroutine"
	return []lastJob{
		{Goroutine, upstream.UploadJob{SpyName: "gospy", Units: "goroutines", AggregationType: "average", Format: upstream.FormatPprof,
			SampleTypeConfig: map[string]*upstream.SampleType{"goroutine": goroutines}}},
		{Mutex, upstream.UploadJob{SpyName: "gospy", Format: upstream.FormatPprof, SampleTypeConfig: blocking("mutex")}},
		{Block, upstream.UploadJob{SpyName: "gospy", Format: upstream.FormatPprof, SampleTypeConfig: blocking("block")}},
		{Heap, upstream.UploadJob{SpyName: "gospy", SampleRate: 100, Format: upstream.FormatPprof, SampleTypeConfig: map[string]*upstream.SampleType{
			"alloc_objects": {Units: "objects"}, "alloc_space": {Units: "bytes"}, "inuse_objects": average("objects"), "inuse_space": average("bytes"),
		}}},
	}
}

// name is the name of an upload: application and tags, in Pyroscope's syntax.
func (t *tee) name() string {
	var tags []string
	for _, k := range slices.Sorted(maps.Keys(t.config.Tags)) {
		tags = append(tags, k+"="+t.config.Tags[k])
	}
	return t.config.AppName + "{" + strings.Join(tags, ",") + "}"
}
