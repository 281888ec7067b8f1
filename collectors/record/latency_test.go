package record_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"chokepoint/collectors/record"
)

// FuzzLatencies: an interval that is read is one that analysis can work with:
// it has a time, and its histogram merges into one of ours.
func FuzzLatencies(f *testing.F) {
	_, dir := write(f, nil)
	p, err := os.ReadFile(filepath.Join(dir, record.LatencyFile))
	must(f, err)
	f.Add(p)
	f.Add([]byte("#[comment]\n\"legend\"\nTag=a/b/c,0.000,1.000,1.0,HISTFAAAA\n"))
	f.Fuzz(func(t *testing.T, p []byte) {
		root := folder(t)
		must(t, root.Mkdir(string(testID), 0o755))
		dir := filepath.Join(root.Name(), string(testID))
		must(t, os.WriteFile(filepath.Join(dir, record.RunFile), []byte(`{"format":1,"id":"`+string(testID)+`"}`), 0o644))
		must(t, os.WriteFile(filepath.Join(dir, record.LatencyFile), p, 0o644))
		r, err := record.Open(root, testID)
		must(t, err)
		defer r.Close()
		for iv, err := range r.Latencies() {
			if err != nil {
				continue
			}
			if !(iv.From >= 0) || !(iv.To >= iv.From) || math.IsInf(iv.To, 0) {
				t.Errorf("an interval from %v to %v", iv.From, iv.To)
			}
			h := record.NewHistogram()
			dropped := h.Merge(iv.Histogram)
			if h.TotalCount() < 0 || h.TotalCount()+dropped != iv.Histogram.TotalCount() {
				t.Errorf("of %d values %d are merged and %d dropped", iv.Histogram.TotalCount(), h.TotalCount(), dropped)
			}
			if q := h.ValueAtPercentile(99); q < 0 {
				t.Errorf("a latency of %d", q)
			}
		}
	})
}
