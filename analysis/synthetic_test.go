package analysis_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"chokepoint/analysis"
	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// synthetic is a record written from a few lines of text: what adds up over the
// measured phase, evenly unless a line says from when to when. The lines are
//
//	flavor mariadb | workers 10 | think 0.01 | rate 100 | pool 4 | phase SECONDS
//	server-hidden | killed | slices N (readings at even distances; 40)
//	cell STAGE ASKED HELD SECONDS ENTRIES [FROM TO]
//	finished OUTCOME N
//	count METRIC{LABELS} N [FROM TO]        any counter
//	gauge METRIC{LABELS} VALUE              read at each reading
//	start METRIC{LABELS} VALUE              where a counter starts
//	reset SOURCE T                          counters of a source fall to 0 at T
//	text DIGEST STATEMENT
//	raw FILE LINE                           appended to a file as it is
type synthetic struct {
	run     record.Run
	phase   float64
	slices  int
	killed  bool
	texts   map[string]string
	counts  []synthCount
	gauges  map[string]float64
	starts  map[string]float64
	resets  map[string]float64
	rawFile map[string]string
}

type synthCount struct {
	series   string
	n        float64
	from, to float64 // fractions of the phase
}

// at is the value that the counter has reached at fraction f.
func (c synthCount) at(f float64) float64 {
	return c.n * min(1, max(0, (f-c.from)/(c.to-c.from)))
}

const synthID = record.ID("20261130T212218Z-lock-7f3a")

func parseSynthetic(t *testing.T, text string) *synthetic {
	t.Helper()
	s := &synthetic{phase: 1, slices: 40, texts: map[string]string{}, gauges: map[string]float64{}, starts: map[string]float64{}, resets: map[string]float64{}, rawFile: map[string]string{}}
	s.run = record.Run{ID: synthID, Workload: record.Workload{Name: "lock", Strategy: "pessimistic", Args: []string{}},
		Host: record.Host{CPUs: 2, GOMAXPROCS: 2, Process: "chokepoint"}, Servers: []record.Server{{Kind: "mysql", Flavor: "mariadb", Version: "10.11.19-MariaDB", Process: "mariadbd"}}}
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, " #")
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			s.line(t, line, f)
		}
	}
	return s
}

func (s *synthetic) line(t *testing.T, line string, f []string) {
	t.Helper()
	num := func(i int) float64 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return v
	}
	span := func(i int) (from, to float64) {
		if len(f) > i+1 {
			return num(i), num(i + 1)
		}
		return 0, 1
	}
	rest := func(n int) string { return strings.TrimSpace(strings.SplitN(line, " ", n+1)[n]) }
	switch f[0] {
	case "flavor":
		s.run.Servers[0].Flavor = f[1]
	case "workers":
		s.run.Workload.Concurrency = int(num(1))
	case "think":
		s.run.Workload.ThinkS = num(1)
	case "rate":
		s.run.Workload.OfferedPerS = num(1)
	case "pool":
		s.run.Workload.Resources = append(s.run.Workload.Resources, record.Resource{Name: "pool:mysql", Capacity: int(num(1))})
	case "phase":
		s.phase = num(1)
	case "slices":
		s.slices = int(num(1))
	case "server-hidden":
		s.run.Servers[0].Process = ""
	case "killed":
		s.killed = true
	case "cell":
		dash := func(x string) string { return strings.TrimPrefix(x, "-") }
		from, to := span(6)
		labels := []string{"buy", f[1], dash(f[2]), dash(f[3])}
		s.counts = append(s.counts, synthCount{record.Series("operations.seconds", labels...), num(4), from, to}, synthCount{record.Series("operations.entries", labels...), num(5), from, to})
	case "finished":
		s.counts = append(s.counts, synthCount{record.Series("operations.finished", "buy", f[1]), num(2), 0, 1})
	case "count":
		from, to := span(3)
		s.counts = append(s.counts, synthCount{f[1], num(2), from, to})
	case "gauge":
		s.gauges[f[1]] = num(2)
	case "start":
		s.starts[f[1]] = num(2)
	case "reset":
		s.resets[f[1]] = num(2)
	case "text":
		s.texts[f[1]] = rest(2)
	case "raw":
		s.rawFile[f[1]] += rest(2) + "\n"
	default:
		t.Fatalf("what is %q?", line)
	}
}

// sourceOf groups metrics as the real sources do.
func sourceOf(series string) string {
	for _, p := range []struct{ prefix, source string }{
		{"operations.", "operations"}, {"mysql.digest.", "mysql.digests"}, {"mysql.statement.", "mysql.statements"}, {"mysql.ping", "mysql.ping"},
		{"mysql.", "mysql.status"}, {"host.", "host"}, {"go.", "go"}, {"pool.", "pool"},
	} {
		if strings.HasPrefix(series, p.prefix) {
			return p.source
		}
	}
	return "other"
}

// digestWrap is 2^64 picoseconds in seconds.
const digestWrap = 18446744.073709551616

func (s *synthetic) metrics() []metric.Desc {
	seen := map[string]metric.Desc{}
	add := func(series string, kind metric.Kind) {
		name, labels, err := record.ParseSeries(series)
		if err != nil {
			panic(err)
		}
		d := metric.Desc{Name: name, Unit: metric.One, Kind: kind, Labels: make([]string, len(labels))}
		if strings.HasPrefix(name, "mysql.digest.timer") {
			d.Wrap = digestWrap
		}
		seen[name] = d
	}
	for _, c := range s.counts {
		add(c.series, metric.Counter)
	}
	for g := range s.gauges {
		add(g, metric.Gauge)
	}
	var out []metric.Desc
	for _, d := range seen {
		out = append(out, d)
	}
	return out
}

// write makes the record below a new folder and opens it.
func (s *synthetic) write(t *testing.T) *record.Reader {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	s.run.Metrics = s.metrics()
	w, err := record.Create(root, s.run)
	if err != nil {
		t.Fatal(err)
	}
	const from = 1.0
	event := func(e record.Event) { w.Event(e) }
	event(record.Event{T: 0.5, Kind: record.Phase, Text: record.PhaseIdle})
	for d, text := range s.texts {
		event(record.Event{T: 0.6, Kind: record.Statement, Text: text, Labels: map[string]string{"digest": d}})
	}
	event(record.Event{T: from, Kind: record.Phase, Text: record.PhaseMeasure})
	for i := range s.slices + 1 {
		f := float64(i) / float64(s.slices)
		s.reading(w, from+f*s.phase, f)
	}
	if !s.killed {
		event(record.Event{T: from + s.phase, Kind: record.Phase, Text: record.PhaseDone})
		w.Close(record.End{AtS: from + s.phase, Status: record.Complete})
	}
	for file, lines := range s.rawFile {
		name := filepath.Join(dir, string(synthID), file)
		os.Chmod(name, 0o644)
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(strings.TrimSuffix(lines, "\n")) // the last line is torn
		f.Close()
	}
	r, err := record.Open(root, synthID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func (s *synthetic) reading(w *record.Writer, at, f float64) {
	batches := map[string]*record.Batch{}
	put := func(series string, v float64) {
		source := sourceOf(series)
		b := batches[source]
		if b == nil {
			b = &record.Batch{Source: source, T: at, Values: map[string]float64{}}
			batches[source] = b
		}
		b.Values[series] += v
	}
	for _, c := range s.counts {
		v := c.at(f)
		if reset, ok := s.resets[sourceOf(c.series)]; ok && f >= reset {
			v -= c.at(reset)
		} else if f >= 0 {
			v += s.starts[c.series]
		}
		if strings.HasPrefix(c.series, "mysql.digest.timer") {
			v = math.Mod(v, digestWrap)
		}
		put(c.series, v)
	}
	for g, v := range s.gauges {
		put(g, v)
	}
	for _, b := range batches {
		w.Batch(b)
	}
}

// TestSynthetic holds the analysis of each testdata/runs/*.txtar against the
// answers in its section "expect", which are worked out by hand there.
func TestSynthetic(t *testing.T) {
	files, err := filepath.Glob("testdata/runs/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no synthetic records", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sections := map[string]string{}
			for _, f := range a.Files {
				sections[f.Name] = string(f.Data)
			}
			res, err := analysis.Attribute(parseSynthetic(t, sections["record"]).write(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(sections["expect"], "\n") {
				if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
					expect(t, res, line, f)
				}
			}
			checkNumbers(t, res)
		})
	}
}

// expect checks one line of an expect section.
func expect(t *testing.T, res *analysis.Result, line string, f []string) {
	t.Helper()
	near := func(what string, got analysis.Number, bounds string) {
		lo, hi, interval := strings.Cut(bounds, "..")
		l, err1 := strconv.ParseFloat(lo, 64)
		h := l
		var err2 error
		if interval {
			h, err2 = strconv.ParseFloat(hi, 64)
		}
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if v := float64(got); !(v >= l-1e-6-1e-6*math.Abs(l) && v <= h+1e-6+1e-6*math.Abs(h)) {
			t.Errorf("%s: %s is %v", line, what, v)
		}
	}
	same := func(what, got, want string) {
		if got != want {
			t.Errorf("%s is %q, want %q (%s)", what, got, want, res.Verdict.Summary)
		}
	}
	switch f[0] {
	case "verdict":
		same("verdict", name(res.Verdict.Layer, res.Verdict.Cause.Cause), f[1])
	case "resource":
		same("resource", res.Verdict.Resource, f[1])
	case "status":
		same("status", res.Run.Status, f[1])
	case "share":
		near("share", res.Verdict.Share, f[1])
	case "budget":
		i := slices.IndexFunc(res.Budget, func(s analysis.Stage) bool { return s.Stage == f[1] })
		if i < 0 {
			t.Fatalf("%s: no such stage in %v", line, res.Budget)
		}
		near("share of "+f[1], res.Budget[i].Share, f[2])
	case "lock": // lock DIGEST LO POINT HI
		i := slices.IndexFunc(res.Statements, func(s analysis.Statement) bool { return s.Digest == f[1] })
		near("lo", res.Statements[i].LockS.Lo, f[2])
		near("point", res.Statements[i].LockS.Point, f[3])
		near("hi", res.Statements[i].LockS.Hi, f[4])
	case "relief": // relief COMMAND-END RATIO BOUND
		i := slices.IndexFunc(res.Relief, func(r analysis.Relief) bool { return strings.HasSuffix(r.Command, strings.ReplaceAll(f[1], "=", " ")) })
		if i < 0 {
			t.Fatalf("%s: not in %v", line, res.Relief)
		}
		near("ratio", res.Relief[i].Ratio, f[2])
		same("bound", res.Relief[i].Bound, f[3])
	case "holder":
		i := slices.IndexFunc(res.Verdict.Holder, func(h analysis.StageShare) bool { return h.Stage == f[1] })
		if i < 0 {
			t.Fatalf("%s: holders are %v", line, res.Verdict.Holder)
		}
		near("share", res.Verdict.Holder[i].Share, f[2])
	case "warning", "summary":
		text := res.Verdict.Summary
		if f[0] == "warning" {
			text = strings.Join(res.Warnings, "\n")
		}
		if re := strings.TrimSpace(strings.TrimPrefix(line, f[0])); !regexp.MustCompile(re).MatchString(text) {
			t.Errorf("%s: not in %q", line, text)
		}
	case "windows":
		got := ""
		for _, w := range res.Windows {
			got += fmt.Sprintf(" %s/%s@%.1f-%.1f", w.Layer, w.Cause.Cause, float64(w.FromS), float64(w.ToS))
		}
		same("windows", strings.TrimSpace(got), strings.Join(f[1:], " "))
	default:
		t.Fatalf("what is %q?", line)
	}
}

// checkNumbers: the JSON holds no negative share or time, and nothing that is
// not a number.
func checkNumbers(t *testing.T, res *analysis.Result) {
	t.Helper()
	p, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(p, &v); err != nil {
		t.Fatal(err)
	}
	walk("", v, func(path string, n float64) {
		if strings.Contains(path, "share") && n > 1.000001 || n < -1e-9 {
			t.Errorf("%s is %v", path, n)
		}
	})
}

func walk(path string, v any, visit func(string, float64)) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			walk(path+"."+k, x, visit)
		}
	case []any:
		for i, x := range v {
			walk(fmt.Sprintf("%s[%d]", path, i), x, visit)
		}
	case float64:
		visit(path, v)
	}
}

func TestNothingMeasured(t *testing.T) {
	s := parseSynthetic(t, "phase 0")
	r := s.write(t)
	if _, err := analysis.Attribute(r); !errors.Is(err, analysis.ErrNothingMeasured) {
		t.Errorf("got %v", err)
	}
}
