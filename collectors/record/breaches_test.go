package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chokepoint/collectors/record"
)

// append puts lines behind a file of a record.
func appendTo(tb testing.TB, dir, file, text string) {
	tb.Helper()
	name := filepath.Join(dir, file)
	must(tb, os.Chmod(name, 0o644))
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	must(tb, err)
	_, err = f.WriteString(text)
	must(tb, errors.Join(err, f.Close()))
}

func validate(tb testing.TB, root *os.Root) error {
	tb.Helper()
	r, err := record.Open(root, testID)
	must(tb, err)
	defer r.Close()
	return record.Validate(r)
}

// TestValidateEnds: what a finished record must have, and a killed one need not.
func TestValidateEnds(t *testing.T) {
	complete := &record.End{Status: record.Complete}
	remove := func(file string) func(testing.TB, string) {
		return func(tb testing.TB, dir string) { must(tb, os.Remove(filepath.Join(dir, file))) }
	}
	add := func(file, text string) func(testing.TB, string) {
		return func(tb testing.TB, dir string) { appendTo(tb, dir, file, text) }
	}
	undone := func(tb testing.TB, dir string) {
		must(tb, os.Chmod(filepath.Join(dir, record.EventsFile), 0o644))
		must(tb, os.WriteFile(filepath.Join(dir, record.EventsFile), []byte(`{"t":1,"kind":"phase","text":"measure"}`+"\n"), 0o644))
	}
	for _, c := range []struct {
		name   string
		end    *record.End
		change func(testing.TB, string)
		want   string // "" if it is a good record
	}{
		{"complete", complete, nil, ""},
		{"killed", nil, nil, ""},
		{"killed in the measured phase", nil, undone, ""},
		{"interrupted in the measured phase", &record.End{Status: record.Interrupted}, undone, ""},
		{"complete, and never done", complete, undone, `never reached phase "done"`},
		{"killed, batches torn", nil, add(record.BatchesFile, `{"sour`), ""},
		{"killed, events torn", nil, add(record.EventsFile, `{`), ""},
		{"killed, latencies torn", nil, add(record.LatencyFile, "Tag=a/b"), ""},
		{"complete, and torn", complete, add(record.BatchesFile, `{"sour`), "batches.jsonl:4: the last line is torn"},
		{"no batches", nil, remove(record.BatchesFile), record.BatchesFile},
		{"no events", nil, remove(record.EventsFile), record.EventsFile},
		{"no latencies", nil, remove(record.LatencyFile), record.LatencyFile},
		{"an event without a kind", nil, add(record.EventsFile, `{"t":9}`+"\n"), "events.jsonl:4: an event without a kind"},
		{"a batch without a source", nil, add(record.BatchesFile, `{"t":9}`+"\n"), "batches.jsonl:4: a batch without a source"},
		{"a reading that took a negative time", nil, add(record.BatchesFile, `{"source":"s","t":9,"took":-1}`+"\n"), "batches.jsonl:4: a batch with a negative time"},
		{"a value that is no number", nil, add(record.BatchesFile, `{"source":"s","t":9,"values":{"g":"1"}}`+"\n"), "batches.jsonl:4: "},
		{"two values on a line", nil, add(record.EventsFile, `{"kind":"note"}{"kind":"note"}`+"\n"), "events.jsonl:4: "},
		{"a legend in the latency log", nil, add(record.LatencyFile, "#[comment]\n\"StartTimestamp\",\"Interval_Length\"\n"), ""},
		{"a tag of two parts", nil, add(record.LatencyFile, "Tag=a/b,0,1,1,xxxx\n"), "latency.hlog:3: tag \"Tag=a/b\" is not operation/stage/outcome"},
		{"an interval that is no time", nil, add(record.LatencyFile, "Tag=a/b/c,x,1,1,xxxx\n"), "latency.hlog:3: not an interval"},
		{"an interval of a negative length", nil, add(record.LatencyFile, "Tag=a/b/c,0,-1,1,xxxx\n"), "latency.hlog:3: not an interval"},
		{"other sources' counters may be reset", nil, add(record.BatchesFile,
			`{"source":"s","t":9,"values":{"operations.seconds{x}":5}}`+"\n"+`{"source":"s","t":10,"values":{"operations.seconds{x}":1}}`+"\n"), ""},
		{"a gauge of the operations may fall", nil, add(record.BatchesFile,
			`{"source":"operations","t":9,"values":{"g":5}}`+"\n"+`{"source":"operations","t":10,"values":{"g":1}}`+"\n"), ""},
		{"two sources at their own times", nil, add(record.BatchesFile,
			`{"source":"s","t":9}`+"\n"+`{"source":"operations","t":8}`+"\n"+`{"source":"s","t":9}`+"\n"), ""},
	} {
		root, dir := write(t, c.end)
		if c.change != nil {
			c.change(t, dir)
		}
		err := validate(t, root)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestIntervalOfNoTime: NaN and infinity are read by ParseFloat, and are no times.
func TestIntervalOfNoTime(t *testing.T) {
	root, dir := write(t, nil)
	whole, err := os.ReadFile(filepath.Join(dir, record.LatencyFile))
	must(t, err)
	line, _, _ := strings.Cut(string(whole), "\n")
	f := strings.SplitN(line, ",", 4) // tag, start, length, the rest
	for _, c := range []struct{ start, length string }{{"NaN", "1"}, {"0", "NaN"}, {"+Inf", "1"}, {"0", "Inf"}} {
		must(t, os.WriteFile(filepath.Join(dir, record.LatencyFile), []byte(strings.Join([]string{f[0], c.start, c.length, f[3]}, ",")+"\n"), 0o644))
		if got := read(t, root); len(got.Intervals) != 0 || len(got.Bad) != 1 {
			t.Errorf("an interval from %s of %s is read as %v", c.start, c.length, got.Intervals)
		}
	}
}

// TestValidateAllBreaches: one bad line does not hide another, and a hostile
// record does not make us say a million things.
func TestValidateAllBreaches(t *testing.T) {
	root, dir := write(t, nil)
	appendTo(t, dir, record.BatchesFile, "garbage\n"+`{"source":"s","t":9,"values":{"nobody":1}}`+"\n")
	appendTo(t, dir, record.EventsFile, `{"t":9,"kind":"phase","text":"lunch"}`+"\n")
	err := validate(t, root)
	for _, want := range []string{"batches.jsonl:4: ", `"nobody"`, `"lunch"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell %s", err, want)
		}
	}
	appendTo(t, dir, record.BatchesFile, strings.Repeat("garbage\n", 1000))
	if err := validate(t, root); strings.Count(err.Error(), "\n") > 200 {
		t.Errorf("a thousand bad lines make %d lines of errors", strings.Count(err.Error(), "\n"))
	}
}

// FuzzValidate: no run.json and no batches make Open or Validate panic.
func FuzzValidate(f *testing.F) {
	_, dir := write(f, &record.End{Status: record.Complete})
	run, err1 := os.ReadFile(filepath.Join(dir, record.RunFile))
	batches, err2 := os.ReadFile(filepath.Join(dir, record.BatchesFile))
	events, err3 := os.ReadFile(filepath.Join(dir, record.EventsFile))
	must(f, errors.Join(err1, err2, err3))
	f.Add(run, batches, events)
	f.Add(run, []byte(`{"source":"operations","t":1,"values":{"operations.seconds{a}":-1e308}}`+"\n"), []byte(`{"kind":"phase","text":"done"}`))
	f.Add([]byte(`{"format":1,"id":"`+string(testID)+`"}`), []byte("{}\n"), []byte("{}\n"))
	f.Fuzz(func(t *testing.T, run, batches, events []byte) {
		root := folder(t)
		must(t, root.Mkdir(string(testID), 0o755))
		dir := filepath.Join(root.Name(), string(testID))
		must(t, os.WriteFile(filepath.Join(dir, record.RunFile), run, 0o644))
		must(t, os.WriteFile(filepath.Join(dir, record.BatchesFile), batches, 0o644))
		must(t, os.WriteFile(filepath.Join(dir, record.EventsFile), events, 0o644))
		r, err := record.Open(root, testID)
		if err != nil {
			return
		}
		defer r.Close()
		if err := record.Validate(r); err == nil {
			t.Error("a record without a latency log is valid")
		}
	})
}
