package analysis

import (
	"errors"
	"strings"

	"chokepoint/analysis/timeline"
	"chokepoint/analysis/waits"
	"chokepoint/collectors/record"
)

// ErrNothingMeasured is the error for a record without a measured phase.
var ErrNothingMeasured = errors.New("the record holds no measured phase: the run ended before its load began")

// Attribute explains a record. It fails if the record cannot be read or holds
// no measured phase; everything else that is wrong with it is a warning in the
// result.
func Attribute(r *record.Reader) (*Result, error) {
	t, err := timeline.Load(r)
	if err != nil {
		return nil, err
	}
	if !t.Measured {
		return nil, ErrNothingMeasured
	}
	latencies, err := readLatencies(r, t)
	if err != nil {
		return nil, err
	}
	w := newWorld(r.Run(), t)
	w.readProfiles(r)
	// The point estimate comes first: it names the processors.
	best := w.variant(point, point)
	ends := ends{best, w.variant(lower, lower), w.variant(lower, upper), w.variant(upper, lower), w.variant(upper, upper)}

	res := &Result{Run: w.describeRun(), Load: w.load(latencies)}
	res.Budget, res.Unexplained = w.budget(best)
	res.Candidates = w.candidates(ends)
	res.Symptoms = w.symptoms(best)
	res.Statements = w.statements()
	res.Locks = w.locks(ends)
	res.AppLock = w.appLockSection(latencies)
	res.Pool = w.poolSection(best, latencies)
	res.Runtime = w.runtimeSection()
	res.Profiles = w.profileSection()
	res.Host = w.hostSection()
	res.Redis = w.redisSection()
	res.Observer = w.observerSection()
	res.Correctness = w.correctness()
	res.Windows = w.windows(best)
	res.Verdict = w.verdict(ends, res)
	res.Relief = w.relief(ends, res.Verdict)
	res.Verdict.Evidence = w.evidence(ends, res)
	res.Verdict.Summary = w.summary(best, res)
	res.Checks = w.checks(latencies)
	res.Warnings = w.warnings()
	return res, nil
}

func newWorld(run record.Run, t *timeline.Timeline) *world {
	w := &world{run: run, t: t, length: t.To - t.From, steps: t.Slices(), rowCauses: map[string]waits.Cause{}}
	w.cells = clientCells(t, w.steps)
	var server record.Server
	for _, s := range run.Servers {
		if s.Kind == "mysql" {
			server = s
		}
	}
	w.server = readServer(t, server)
	w.server.rowLocksBlind(t, sumWhere(w.cells, func(c *clientCell) bool { return c.asksRow() }))
	w.outside = readOutside(t, w.databaseProcess(), run.Host.Process)
	w.machine = readMachine(t, run)
	w.graph = readLockGraph(t)
	w.appLocks = readLockCounts(t)
	for _, s := range t.All(opFinished, 2) {
		w.ended += t.Delta(s)
		if s.Labels[1] == "ok" {
			w.ok += t.Delta(s)
		}
	}
	return w
}

// budget is the operations' time by stage, with what each stage's waiting is
// blamed on.
func (w *world) budget(v variant) ([]Stage, Number) {
	seconds := map[string]float64{}
	blamed := map[string]map[waits.Cause]float64{}
	for _, c := range v.usage.Cells {
		seconds[c.Stage] += c.Seconds
		if c.Waits == "" {
			continue
		}
		if blamed[c.Stage] == nil {
			blamed[c.Stage] = map[waits.Cause]float64{}
		}
		for end, share := range v.blame.Ends[c.Waits] {
			blamed[c.Stage][v.usage.Resources[end].Cause] += c.Seconds * share
		}
	}
	total := v.usage.Seconds()
	out := []Stage{}
	for _, stage := range bySize(seconds) {
		s := seconds[stage]
		if s == 0 {
			continue
		}
		st := Stage{Stage: stage, SecondsPerOperation: unknown(), Share: Number(s / total), BlamedOn: []BlamedOn{}}
		if w.ended > 0 {
			st.SecondsPerOperation = Number(s / w.ended)
		}
		for _, c := range causesBySize(blamed[stage]) {
			st.BlamedOn = append(st.BlamedOn, BlamedOn{Cause: c, Share: Number(blamed[stage][c] / s)})
		}
		out = append(out, st)
	}
	return out, Number(seconds[stageUnexplained] / total)
}

// candidates are the causes with their shares of all waiting, the largest
// first. The interval is the envelope of the jackknife intervals at both ends
// of what is only known within bounds.
func (w *world) candidates(ends ends) []Candidate {
	byCause := map[waits.Cause]*Candidate{}
	resource := map[waits.Cause]map[string]float64{}
	for i, v := range ends {
		num, den := w.blamedSlices(v)
		for c, n := range num {
			r := jackknife(n, den)
			got := byCause[c]
			if got == nil {
				got = &Candidate{Cause: c, ShareInterval: Interval{1, 0}}
				byCause[c] = got
			}
			if i == 0 {
				got.Share = Number(r.value)
			}
			got.ShareInterval[0] = min(got.ShareInterval[0], Number(max(0, r.lo)))
			got.ShareInterval[1] = max(got.ShareInterval[1], Number(min(1, r.hi)))
		}
		if i == 0 {
			resource = blamedResources(v)
		}
	}
	out := []Candidate{}
	sizes := map[waits.Cause]float64{}
	for c, got := range byCause {
		if !got.Share.Known() || len(resource[c]) == 0 && got.ShareInterval[1] < 0.005 {
			continue
		}
		sizes[c] = float64(got.Share)
		if names := bySize(resource[c]); len(names) > 0 {
			got.Resource = names[0]
		}
	}
	for _, c := range causesBySize(sizes) {
		got := byCause[c]
		for _, v := range ends { // a cause whose blame is zero at one end
			if num, _ := w.blamedSlices(v); num[c] == nil {
				got.ShareInterval[0] = 0
			}
		}
		out = append(out, *got)
	}
	return out
}

// blamedSlices gives, slice by slice, the waiting that ends on each cause, and
// all waiting.
func (w *world) blamedSlices(v variant) (num map[waits.Cause][]float64, den []float64) {
	den = make([]float64, len(w.steps))
	num = map[waits.Cause][]float64{}
	for i, c := range w.cells {
		for _, p := range v.parts[i] {
			if p.waits == "" {
				continue
			}
			for end, share := range v.blame.Ends[p.waits] {
				cause := v.usage.Resources[end].Cause
				if num[cause] == nil {
					num[cause] = make([]float64, len(w.steps))
				}
				for s, seconds := range c.slices {
					num[cause][s] += seconds * p.share * share
				}
			}
			for s, seconds := range c.slices {
				den[s] += seconds * p.share
			}
		}
	}
	return num, den
}

// blamedResources is the waiting that ends on each resource, by cause.
func blamedResources(v variant) map[waits.Cause]map[string]float64 {
	out := map[waits.Cause]map[string]float64{}
	for r, seconds := range v.usage.Waiting() {
		for end, share := range v.blame.Ends[r] {
			c := v.usage.Resources[end].Cause
			if out[c] == nil {
				out[c] = map[string]float64{}
			}
			out[c][end] += seconds * share
		}
	}
	return out
}

// symptoms are the waiting stages whose blame went elsewhere.
func (w *world) symptoms(v variant) []Symptom {
	total := v.usage.Seconds()
	type waiting struct{ stage, resource string }
	seconds := map[string]float64{}
	moved := map[string]map[waits.Cause]float64{}
	layer := map[string]string{}
	for _, c := range v.usage.Cells {
		if c.Waits == "" {
			continue
		}
		own := v.usage.Resources[c.Waits].Cause
		seconds[c.Stage] += c.Seconds
		layer[c.Stage] = own.Layer
		if moved[c.Stage] == nil {
			moved[c.Stage] = map[waits.Cause]float64{}
		}
		for end, share := range v.blame.Ends[c.Waits] {
			if cause := v.usage.Resources[end].Cause; cause != own {
				moved[c.Stage][cause] += c.Seconds * share
			}
		}
	}
	out := []Symptom{}
	for _, stage := range bySize(seconds) {
		causes := causesBySize(moved[stage])
		if seconds[stage] < symptomShare*total || len(causes) == 0 || moved[stage][causes[0]] < seconds[stage]/2 {
			continue
		}
		out = append(out, Symptom{Stage: stage, Layer: layer[stage], Share: Number(seconds[stage] / total), CausedBy: causes[0]})
	}
	return out
}

// windows are the runs of slices in which one cause leads and something waits.
func (w *world) windows(v variant) []Window {
	num, den := w.blamedSlices(v)
	leader := make([]waits.Cause, len(w.steps))
	for i, s := range w.steps {
		if den[i] < minWaiters*(s.To-s.From) {
			continue
		}
		most := map[waits.Cause]float64{}
		for c := range num {
			most[c] = num[c][i]
		}
		leader[i] = causesBySize(most)[0]
	}
	out := []Window{}
	for i := 0; i < len(leader); {
		j := i
		var n, d float64
		for ; j < len(leader) && leader[j] == leader[i]; j++ {
			d += den[j]
			if num[leader[i]] != nil {
				n += num[leader[i]][j]
			}
		}
		if j-i >= windowSlices && leader[i] != (waits.Cause{}) {
			out = append(out, Window{FromS: Number(w.steps[i].From - w.t.From), ToS: Number(w.steps[j-1].To - w.t.From), Cause: leader[i], Share: Number(n / d)})
		}
		i = j
	}
	return out
}

func (w *world) describeRun() Run {
	r := w.run
	out := Run{
		ID: string(r.ID), Workload: r.Workload.Name, Strategy: r.Workload.Strategy, Variant: r.Workload.Variant, Fault: r.Workload.Fault,
		Started: r.Started, DurationS: Number(w.length), MeasuredFromS: Number(w.t.From), Status: r.Status(), Servers: []Server{},
		Command: command(r.Workload, "", ""),
	}
	for _, s := range r.Servers {
		out.Servers = append(out.Servers, Server{s.Kind, s.Flavor, s.Version, s.Sandbox})
	}
	return out
}

// command is the command line that runs the workload again, with one flag set
// to another value.
func command(wl record.Workload, flag, value string) string {
	args := []string{"chokepoint", "run", wl.Name}
	found := flag == ""
	for i := 0; i < len(wl.Args); i++ {
		if i+1 < len(wl.Args) && wl.Args[i] == flag {
			args, found = append(args, flag, value), true
			i++
			continue
		}
		args = append(args, wl.Args[i])
	}
	if !found {
		args = append(args, flag, value)
	}
	return strings.Join(args, " ")
}
