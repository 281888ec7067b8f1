package analysis_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chokepoint/analysis"
	"chokepoint/collectors/record"
	"chokepoint/dashboards/report"
)

// hostile writes a record from its files, and explains it.
func hostile(t *testing.T, files map[string]string) (*analysis.Result, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), string(synthID))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r, err := record.Open(root, synthID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	res, err := analysis.Attribute(r)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	page := &report.Page{Result: res}
	return res, errors.Join(page.WriteText(&b, report.Style{}), page.WriteJSON(&b), page.WriteMarkdown(&b))
}

// TestHostileRecords: a record that describes its metrics with fewer labels than
// they have, or holds numbers that no counter reaches, is explained or refused,
// and crashes nothing.
func TestHostileRecords(t *testing.T) {
	const events = `{"t":1,"kind":"phase","text":"measure"}` + "\n" + `{"t":2,"kind":"phase","text":"done"}` + "\n"
	metrics := []string{"operations.seconds", "operations.entries", "operations.finished", "operations.counted", "mysql.digest.timer", "mysql.digest.count",
		"mysql.lock.blockers", "mysql.lock.waiters", "mysql.metadata_lock.waiters", "mysql.metadata_lock.blockers", "redis.command.calls", "redis.command.latency",
		"host.cpu_seconds", "host.process.cpu_seconds", "go.sched_latency", "go.gc_pauses"}
	var descs, values []string
	for _, m := range metrics {
		descs = append(descs, `{"name":"`+m+`","unit":"1","kind":"counter"}`)
		values = append(values, `"`+m+`":5`)
	}
	run := func(descs string) string {
		return `{"format":1,"id":"` + string(synthID) + `","workload":{"name":"lock"},"servers":[{"kind":"mysql","flavor":"mysql"}],"metrics":[` + descs + `]}`
	}
	batch := func(source, t, values string) string {
		return `{"source":"` + source + `","t":` + t + `,"values":{` + values + `}}` + "\n"
	}
	all := strings.Join(values, ",")
	bare := batch("operations", "1", all) + batch("operations", "2", strings.ReplaceAll(all, ":5", ":9"))
	if _, err := hostile(t, map[string]string{record.RunFile: run(strings.Join(descs, ",")), record.BatchesFile: bare, record.EventsFile: events}); err != nil {
		t.Logf("refused: %v", err)
	}
	cell := `{"name":"operations.seconds","unit":"s","kind":"counter","labels":["operation","stage","asked","held"]}`
	huge := batch("operations", "1", `"operations.seconds{buy,app,,}":0`) +
		batch("operations", "2", `"operations.seconds{buy,app,,}":1.7e308,"operations.seconds{buy,statement,,}":1.7e308,"operations.seconds{buy,commit,,}":1e29`)
	if _, err := hostile(t, map[string]string{record.RunFile: run(cell), record.BatchesFile: huge, record.EventsFile: events}); err != nil {
		t.Logf("refused: %v", err)
	}
}
