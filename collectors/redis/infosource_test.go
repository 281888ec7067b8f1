package redis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"chokepoint/analysis/timeline"
	"chokepoint/collectors/record"
)

// reading is what the source makes of a file of testdata, at a time.
func reading(t *testing.T, file string, at float64) *record.Batch {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	i, err := ParseInfo(string(text))
	if err != nil {
		t.Fatal(err)
	}
	b := &record.Batch{Source: InfoSource, T: at}
	i.add(b)
	return b
}

// TestReading: what an old and a new server tell, in base units; what they do
// not tell is absent.
func TestReading(t *testing.T) {
	for _, c := range []struct {
		file string
		want map[string]float64
	}{
		{"redis_5.txt", map[string]float64{
			"redis.uptime":               1000,
			"redis.total_connections":    28,
			"redis.commands":             90,
			"redis.hits":                 11,
			"redis.misses":               22,
			"redis.expired_keys":         2,
			"redis.evicted_keys":         3,
			"redis.connected_clients":    4,
			"redis.blocked_clients":      1,
			"redis.memory_used_bytes":    850000,
			"redis.dataset_bytes":        13000,
			"redis.cpu_seconds{all}":     9.75, // 8.5 + 1.25; the main thread's is not told
			"redis.command.calls{get}":   33,
			"redis.command.seconds{get}": 66e-6,
			"redis.keys{db0}":            6,
		}},
		{"valkey_9.txt", map[string]float64{
			"redis.uptime":                    900,
			"redis.commands":                  605,
			"redis.connected_clients":         2,
			"redis.blocked_clients":           0,
			"redis.cpu_seconds{all}":          2.25, // 1.5 + 0.75
			"redis.cpu_seconds{main}":         1.75, // 1.25 + 0.5
			"redis.eventloop_seconds":         0.075,
			"redis.eventloop_command_seconds": 0.025,
			"redis.command.calls{get}":        0,
			"redis.command.seconds{get}":      0,
			"redis.command.rejected{get}":     100,
			"redis.command.failed{get}":       0,
			"redis.command.calls{evalsha}":    100,
			"redis.command.seconds{evalsha}":  56e-6,
			"redis.command.rejected{evalsha}": 0,
			"redis.command.failed{evalsha}":   90,
			"redis.errors{NOSCRIPT}":          90,
			"redis.keys{db0}":                 1,
		}},
	} {
		if d := cmp.Diff(c.want, reading(t, c.file, 0).Values, cmpopts.EquateApprox(0, 1e-12)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.file, d)
		}
	}
}

// TestFieldsAreRead: a field that the table asks for and the parser leaves out
// would be absent for ever.
func TestFieldsAreRead(t *testing.T) {
	for _, f := range infoFields() {
		for _, name := range f.fields {
			if k := fieldKind(name); k == ignored || k == words {
				t.Errorf("%s: %s is not read as a number", f.desc.Name, name)
			}
		}
	}
	for _, i := range infoItems() {
		if itemKind(i.item) != whole {
			t.Errorf("%s: %s is not read as a number", i.desc.Name, i.item)
		}
	}
}

// TestRestart puts two readings into a record, between which the server began
// anew: 40000 hits at first, then 30. Nothing comes out negative, the restart
// is told, and the uptime that was read shows it.
func TestRestart(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const id = record.ID("20261130T212218Z-cache-7f3a")
	w, err := record.Create(root, record.Run{ID: id, Metrics: info{}.Metrics()})
	if err != nil {
		t.Fatal(err)
	}
	w.Event(record.Event{T: 1, Kind: record.Phase, Text: record.PhaseMeasure})
	w.Batch(reading(t, "crlf_before.txt", 1))
	w.Batch(reading(t, "crlf_restarted.txt", 2))
	w.Event(record.Event{T: 2, Kind: record.Phase, Text: record.PhaseDone})
	r, err := record.Open(root, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tl, err := timeline.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Hits, Misses, Commands, CommandCalls, CommandSeconds} {
		for _, s := range tl.All(name, 0) {
			if got := tl.Delta(s); got != 0 || len(s.Values()) != 2 {
				t.Errorf("%s grew by %v over a restart, of %v", name, got, s.Values())
			}
		}
		if len(tl.All(name, 0)) != 1 {
			t.Errorf("%s: %d series", name, len(tl.All(name, 0)))
		}
	}
	if len(tl.Problems) != 1 || !strings.Contains(tl.Problems[0].Error(), "redis.info: counters were reset between 1.000 s and 2.000 s") {
		t.Errorf("told of the restart: %v", tl.Problems)
	}
	if d := cmp.Diff([]float64{3600, 5}, tl.Get(Uptime).Values()); d != "" {
		t.Errorf("uptime: %s", d)
	}
}
