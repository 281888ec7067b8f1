package analysis_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"chokepoint/analysis"
	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// synthetic is a record written from a few lines of text: what adds up over the
// measured phase, evenly unless a line says from when to when. The lines are
//
//	flavor mariadb | workers 10 | think 0.01 | rate 100 | pool 4 | phase SECONDS
//	server-hidden | killed | unmeasured | slices N (readings at even distances; 40)
//	cell STAGE ASKED HELD SECONDS ENTRIES [FROM TO]
//	again ...                               a cell of retried attempts
//	slots N                                 operations in flight that an open loop allows
//	finished OUTCOME N
//	count METRIC{LABELS} N [FROM TO]        any counter
//	gauge METRIC{LABELS} VALUE              read at each reading
//	becomes METRIC{LABELS} VALUE T          a gauge from fraction T on
//	limit CHECK COSTS                       what the server does not show
//	cut DIGEST                              its text is as long as the server looks at
//	clock AT OFFSET                         a comparison with the server's clock
//	start METRIC{LABELS} VALUE              where a counter starts
//	reset SOURCE T                          counters of a source fall to 0 at T
//	text DIGEST STATEMENT
//	latency STAGE SECONDS N                 N values of the latency log
//	books EXPECTED ACTUAL
//	every SOURCE N                          a source that is read at each Nth reading
//	raw FILE LINE                           appended to a file as it is
//	line FILE N LINE                        put in as the Nth line of a file
type synthetic struct {
	run    record.Run
	phase  float64
	slices int
	killed bool
	// unmeasured: no event opens the measured phase.
	unmeasured bool
	texts      map[string]string
	counts     []synthCount
	gauges     map[string]float64
	becomes    map[string][2]float64 // value, from when
	limits     map[string]string
	cut        map[string]bool
	starts     map[string]float64
	resets     map[string]float64
	rawFile    map[string]string
	inserts    []synthLine
	every      map[string]int
	latency    []record.Interval
	books      *record.Books
}

// synthLine is a line to put into a file.
type synthLine struct {
	file, text string
	number     int
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
	s := &synthetic{phase: 1, slices: 40, texts: map[string]string{}, gauges: map[string]float64{}, becomes: map[string][2]float64{}, limits: map[string]string{}, cut: map[string]bool{}, starts: map[string]float64{}, resets: map[string]float64{}, rawFile: map[string]string{}, every: map[string]int{}}
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
	case "unmeasured":
		s.unmeasured = true
	case "slots":
		s.run.Workload.Resources = append(s.run.Workload.Resources, record.Resource{Name: "slot", Capacity: int(num(1))})
	case "cell", "again":
		attempt := map[string]string{"again": "retry"}[f[0]]
		dash := func(x string) string { return strings.TrimPrefix(x, "-") }
		from, to := span(6)
		labels := []string{"buy", f[1], dash(f[2]), dash(f[3]), attempt}
		s.counts = append(s.counts, synthCount{record.Series("operations.seconds", labels...), num(4), from, to}, synthCount{record.Series("operations.entries", labels...), num(5), from, to})
	case "finished":
		s.counts = append(s.counts, synthCount{record.Series("operations.finished", "buy", f[1]), num(2), 0, 1})
	case "count":
		from, to := span(3)
		s.counts = append(s.counts, synthCount{f[1], num(2), from, to})
	case "gauge":
		last := len(f) - 1 // labels may hold spaces
		s.gauges[strings.Join(f[1:last], " ")] = num(last)
	case "becomes":
		s.becomes[f[1]] = [2]float64{num(2), num(3)}
	case "limit":
		s.limits[f[1]] = rest(2)
	case "cut":
		s.cut[f[1]] = true
	case "clock":
		s.run.Clocks = append(s.run.Clocks, record.Clock{Server: "mysql", AtS: num(1), OffsetS: num(2), RTTS: 0.001})
	case "start":
		s.starts[f[1]] = num(2)
	case "reset":
		s.resets[f[1]] = num(2)
	case "text":
		s.texts[f[1]] = rest(2)
	case "latency":
		h := record.NewHistogram()
		h.RecordValues(int64(num(2)*1e9), int64(num(3)))
		s.latency = append(s.latency, record.Interval{Operation: "buy", Stage: f[1], Outcome: "ok", From: 1, To: 2, Histogram: h})
	case "books":
		s.books = &record.Books{What: "units", Expected: int64(num(1)), Actual: int64(num(2))}
	case "every":
		s.every[f[1]] = int(num(2))
	case "line":
		s.inserts = append(s.inserts, synthLine{file: f[1], number: int(num(2)), text: rest(3)})
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
		{"mysql.", "mysql.status"}, {"redis.command.latency", "redis.latency"}, {"redis.", "redis.info"}, {"host.", "host"}, {"go.", "go"}, {"pool.", "pool"},
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

// write makes the record below a new folder, lets the edits change its files,
// and opens it.
func (s *synthetic) write(t *testing.T, edits ...func(t *testing.T, dir string)) *record.Reader {
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
		labels := map[string]string{"digest": d}
		if s.cut[d] {
			labels["cut"] = "true"
		}
		event(record.Event{T: 0.6, Kind: record.Statement, Text: text, Labels: labels})
	}
	for check, costs := range s.limits {
		event(record.Event{T: 0.7, Kind: record.Limit, Text: "found: " + check, Labels: map[string]string{"check": check, "costs": costs}})
	}
	if !s.unmeasured {
		event(record.Event{T: from, Kind: record.Phase, Text: record.PhaseMeasure})
	}
	for i := range s.slices + 1 {
		f := float64(i) / float64(s.slices)
		s.reading(w, i, from+f*s.phase, f)
	}
	for _, iv := range s.latency {
		w.Latency(iv)
	}
	if !s.killed {
		event(record.Event{T: from + s.phase, Kind: record.Phase, Text: record.PhaseDone})
		w.Close(record.End{AtS: from + s.phase, Status: record.Complete, Books: s.books})
	}
	for _, edit := range append([]func(*testing.T, string){s.damage}, edits...) {
		edit(t, filepath.Join(dir, string(synthID)))
	}
	r, err := record.Open(root, synthID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// damage puts in and appends the lines that no writer would have written.
func (s *synthetic) damage(t *testing.T, dir string) {
	for _, in := range s.inserts {
		editFile(t, filepath.Join(dir, in.file), func(text string) string {
			lines := strings.SplitAfter(text, "\n")
			return strings.Join(slices.Insert(lines, in.number-1, in.text+"\n"), "")
		})
	}
	for file, lines := range s.rawFile {
		editFile(t, filepath.Join(dir, file), func(text string) string {
			return text + strings.TrimSuffix(lines, "\n") // the last line is torn
		})
	}
}

func editFile(t *testing.T, name string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = os.Chmod(name, 0o644)
	}
	if err == nil {
		err = os.WriteFile(name, []byte(change(string(text))), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *synthetic) reading(w *record.Writer, i int, at, f float64) {
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
		if b, ok := s.becomes[g]; ok && f >= b[1] {
			v = b[0]
		}
		put(g, v)
	}
	for _, source := range slices.Sorted(maps.Keys(batches)) {
		if last := i == s.slices && !s.killed; last || i%max(1, s.every[source]) == 0 {
			w.Batch(batches[source])
		}
	}
}

// eachSynthetic runs a test on each testdata/runs/*.txtar.
func eachSynthetic(t *testing.T, test func(t *testing.T, expect, record string)) {
	t.Helper()
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
			test(t, sections["expect"], sections["record"])
		})
	}
}

func explain(t *testing.T, r *record.Reader) *analysis.Result {
	t.Helper()
	res, err := analysis.Attribute(r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestSynthetic holds the analysis of each synthetic record against the answers
// in its section "expect", which are worked out by hand there.
func TestSynthetic(t *testing.T) {
	eachSynthetic(t, func(t *testing.T, expected, text string) {
		res := explain(t, parseSynthetic(t, text).write(t))
		for _, line := range strings.Split(expected, "\n") {
			if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
				expect(t, res, line, f)
			}
		}
		checkNumbers(t, res)
	})
}

// TestSyntheticOrder: a record says the same whatever the order of the values
// in a batch, and of batches of different sources.
func TestSyntheticOrder(t *testing.T) {
	eachSynthetic(t, func(t *testing.T, _, text string) {
		s := parseSynthetic(t, text)
		want := toJSON(t, explain(t, s.write(t)))
		edits := map[string]func(string) string{"values": reverseValues}
		if len(s.inserts) == 0 && len(s.rawFile) == 0 { // warnings name lines
			edits["batches"] = bySource
		}
		for what, change := range edits {
			got := toJSON(t, explain(t, s.write(t, func(t *testing.T, dir string) {
				editFile(t, filepath.Join(dir, record.BatchesFile), change)
			})))
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("with the %s in another order: %s", what, d)
			}
		}
	})
}

func toJSON(t *testing.T, res *analysis.Result) string {
	t.Helper()
	p, err := json.MarshalIndent(res, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// reverseValues writes the keys of each batch, and of its values, in the
// reverse of their order. What is no batch stays as it is.
func reverseValues(batches string) string {
	lines := strings.SplitAfter(batches, "\n")
	for i, line := range lines {
		if r, ok := reverseKeys(line); ok && strings.HasSuffix(line, "\n") {
			lines[i] = r + "\n"
		}
	}
	return strings.Join(lines, "")
}

func reverseKeys(object string) (string, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(object), &fields) != nil {
		return "", false
	}
	var out []string
	for _, k := range slices.Backward(slices.Sorted(maps.Keys(fields))) {
		v := string(fields[k])
		if inner, ok := reverseKeys(v); ok {
			v = inner
		}
		out = append(out, strconv.Quote(k)+":"+v)
	}
	return "{" + strings.Join(out, ",") + "}", true
}

// bySource puts all batches of one source before those of the next.
func bySource(batches string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(batches, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	source := func(line string) string {
		var b record.Batch
		json.Unmarshal([]byte(line), &b)
		return b.Source
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(source(b), source(a)) })
	return strings.Join(lines, "")
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
	case "interval": // interval LO HI
		near("the share's lower end", res.Verdict.ShareInterval[0], f[1])
		near("the share's upper end", res.Verdict.ShareInterval[1], f[2])
	case "candidate": // candidate LAYER/CAUSE SHARE
		i := slices.IndexFunc(res.Candidates, func(c analysis.Candidate) bool { return name(c.Layer, c.Cause.Cause) == f[1] })
		if i < 0 {
			t.Fatalf("%s: candidates are %v", line, res.Candidates)
		}
		near("share", res.Candidates[i].Share, f[2])
	case "symptom": // symptom STAGE LAYER/CAUSE
		i := slices.IndexFunc(res.Symptoms, func(s analysis.Symptom) bool { return s.Stage == f[1] })
		if i < 0 {
			t.Fatalf("%s: symptoms are %v", line, res.Symptoms)
		}
		same("cause of "+f[1], name(res.Symptoms[i].CausedBy.Layer, res.Symptoms[i].CausedBy.Cause), f[2])
	case "row": // row KEY WAITERS UTILISATION-LO UTILISATION-HI
		i := slices.IndexFunc(res.Locks.HotRows, func(r analysis.HotRow) bool { return r.Key == f[1] })
		if i < 0 {
			t.Fatalf("%s: rows are %v", line, res.Locks.HotRows)
		}
		near("waiters", res.Locks.HotRows[i].WaitersMean, f[2])
		near("least utilisation", res.Locks.HotRows[i].Utilisation[0], f[3])
		near("most utilisation", res.Locks.HotRows[i].Utilisation[1], f[4])
	case "statement": // statement DIGEST COUNT MEAN
		i := slices.IndexFunc(res.Statements, func(s analysis.Statement) bool { return s.Digest == f[1] })
		if i < 0 {
			t.Fatalf("%s: statements are %v", line, res.Statements)
		}
		near("count", analysis.Number(res.Statements[i].Count), f[2])
		near("mean", res.Statements[i].MeanS, f[3])
	case "check": // check holds|fails EXPECTED MEASURED BEGINNING OF ITS NAME
		beginning := strings.Join(f[4:], " ")
		i := slices.IndexFunc(res.Checks, func(c analysis.Check) bool { return strings.HasPrefix(c.Name, beginning) })
		if i < 0 {
			t.Fatalf("%s: checks are %v", line, res.Checks)
		}
		same(beginning, map[bool]string{true: "holds", false: "fails"}[res.Checks[i].OK], f[1])
		near("expected", res.Checks[i].Expected, f[2])
		near("measured", res.Checks[i].Measured, f[3])
	case "change": // change RATIO BOUND LIMITED-BY BEGINNING OF ITS TEXT
		beginning := strings.Join(f[4:], " ")
		i := slices.IndexFunc(res.Relief, func(r analysis.Relief) bool { return strings.HasPrefix(r.Change, beginning) })
		if i < 0 {
			t.Fatalf("%s: not in %v", line, res.Relief)
		}
		near("ratio", res.Relief[i].Ratio, f[1])
		same("bound", res.Relief[i].Bound, f[2])
		same("what limits it", res.Relief[i].LimitedBy, f[3])
	case "budget":
		i := slices.IndexFunc(res.Budget, func(s analysis.Stage) bool { return s.Stage == f[1] })
		if i < 0 {
			t.Fatalf("%s: no such stage in %v", line, res.Budget)
		}
		near("share of "+f[1], res.Budget[i].Share, f[2])
	case "nothing": // nothing STAGE: it is not in the budget
		if i := slices.IndexFunc(res.Budget, func(s analysis.Stage) bool { return s.Stage == f[1] }); i >= 0 {
			t.Errorf("%s: it has %v of the time", line, res.Budget[i].Share)
		}
	case "conflicts":
		near("conflicts", res.Locks.Conflicts, f[1])
	case "applock": // applock ACQUIRED ATTEMPTS-EACH IDLE-RATIO EXPIRED DOUBLED
		a := res.AppLock
		for i, got := range []analysis.Number{a.Acquired, a.AttemptsPerAcquire, a.IdleWithWaitersRatio, a.LeaseExpired, a.DoubleHeld} {
			near(fmt.Sprint("number ", i+1), got, f[i+1])
		}
	case "redis": // redis OPS-PER-S HIT-RATIO BUSY-SHARE
		for i, got := range []analysis.Number{res.Redis.OpsPerS, res.Redis.HitRatio, res.Redis.BusyShare} {
			near(fmt.Sprint("number ", i+1), got, f[i+1])
		}
	case "command": // command NAME CALLS MEAN P99
		i := slices.IndexFunc(res.Redis.Commands, func(c analysis.RedisCommand) bool { return c.Name == f[1] })
		near("calls", res.Redis.Commands[i].Calls, f[2])
		near("mean", res.Redis.Commands[i].MeanS, f[3])
		near("p99", res.Redis.Commands[i].P99S, f[4])
	case "outcome": // outcome NAME N
		near(f[1], analysis.Number(res.Load.Outcomes[f[1]]), f[2])
	case "blocker": // blocker THREAD BLOCKS RESOURCE
		b := res.Locks.Blockers
		if len(b) == 0 {
			t.Fatalf("%s: no blockers", line)
		}
		same("the first blocker", fmt.Sprintf("%d %d %s", b[0].Thread, b[0].Blocks, b[0].Resource), strings.Join(f[1:4], " "))
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

// checkNumbers: the JSON parses, shares lie between 0 and 1, nothing is
// negative, lists are never null, and candidates are sorted.
func checkNumbers(t *testing.T, res *analysis.Result) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(toJSON(t, res)), &v); err != nil {
		t.Fatal(err)
	}
	walk("", v, func(path string, n float64) {
		if n < 0 {
			t.Errorf("%s is %v", path, n)
		}
		if (strings.Contains(path, "share") || strings.Contains(path, "utilisation")) && n > 1.000001 {
			t.Errorf("%s is %v", path, n)
		}
	})
	for list, empty := range map[string]bool{
		"candidates": res.Candidates == nil, "symptoms": res.Symptoms == nil, "budget": res.Budget == nil, "relief": res.Relief == nil, "checks": res.Checks == nil,
		"windows": res.Windows == nil, "warnings": res.Warnings == nil, "holder": res.Verdict.Holder == nil, "evidence": res.Verdict.Evidence == nil,
	} {
		if empty {
			t.Errorf("%s is null, not []", list)
		}
	}
	for i, c := range res.Candidates {
		if i > 0 && c.Share > res.Candidates[i-1].Share {
			t.Errorf("candidates are not sorted: %v", res.Candidates)
		}
		if !(c.ShareInterval[0] <= c.Share && c.Share <= c.ShareInterval[1]) {
			t.Errorf("%s/%s: share %v is not in %v", c.Layer, c.Cause.Cause, c.Share, c.ShareInterval)
		}
	}
	sum := 0.0
	for _, s := range res.Budget {
		sum += float64(s.Share)
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the shares of the budget sum to %v", sum)
	}
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

// TestNothingMeasured: without load there is no answer, and not a wrong one.
func TestNothingMeasured(t *testing.T) {
	const load = "\nworkers 4\ncell app - - 4 400\nfinished ok 400"
	for what, text := range map[string]string{
		"the phase ends as it begins":          "phase 0" + load,
		"no event tells when the load began":   "unmeasured" + load,
		"killed before the load, while set up": "killed\nunmeasured" + load,
		"killed, and nothing was read":         "killed",
	} {
		s := parseSynthetic(t, text)
		if _, err := analysis.Attribute(s.write(t)); !errors.Is(err, analysis.ErrNothingMeasured) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
