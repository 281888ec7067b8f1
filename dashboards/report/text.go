package report

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"chokepoint/analysis"
)

// Style says how text is written.
type Style struct {
	Width int  // columns, at least minWidth
	Color bool // bold headings
}

const (
	minWidth = 80
	maxWidth = 160 // longer lines are hard to follow
)

// WriteText writes the page for a terminal: the verdict first, then where the
// time went, then the numbers behind it.
func (p *Page) WriteText(out io.Writer, s Style) error {
	s.Width = min(max(s.Width, minWidth), maxWidth)
	t := &text{w: bufio.NewWriter(out), Style: s}
	r := p.Result
	t.title(r)
	t.verdict(r)
	t.budget(r)
	t.load(r)
	t.statements(r)
	t.locks(r)
	t.appLock(r)
	t.pool(r)
	t.runtime(r)
	t.profiles(r)
	t.host(r)
	t.redis(r)
	t.relief(r)
	t.checks(r)
	t.observer(r)
	t.windows(r)
	t.warnings(r)
	t.next(r)
	return t.w.Flush()
}

type text struct {
	w *bufio.Writer
	Style
}

func (t *text) printf(format string, args ...any) { fmt.Fprintf(Printable(t.w), format, args...) }

func (t *text) heading(s string) {
	t.printf("\n")
	if t.Color {
		fmt.Fprint(t.w, "\x1b[1m")
		t.printf("%s", s)
		fmt.Fprint(t.w, "\x1b[0m\n")
	} else {
		t.printf("%s\n", s)
	}
}

// wrap writes words in lines of the width, each indented.
func (t *text) wrap(indent, hang, s string) {
	line, first := indent, true
	for _, word := range strings.Fields(s) {
		if !first && width(line)+1+width(word) > t.Width {
			t.printf("%s\n", line)
			line, first = hang, true
		}
		if !first {
			line += " "
		}
		line, first = line+word, false
	}
	t.printf("%s\n", line)
}

func width(s string) int { return len([]rune(s)) }

func (t *text) title(r *analysis.Result) {
	servers := []string{}
	for _, s := range r.Run.Servers {
		servers = append(servers, s.Flavor+" "+s.Version)
	}
	head := r.Run.Workload + "/" + r.Run.Strategy
	if len(servers) > 0 {
		head += " on " + strings.Join(servers, ", ")
	}
	t.wrap("", "  ", fmt.Sprintf("run %s: %s, %s, %s", r.Run.ID, head, seconds(r.Run.DurationS), r.Run.Status))
}

func (t *text) verdict(r *analysis.Result) {
	v := r.Verdict
	head := "VERDICT  " + v.Layer + "/" + v.Cause.Cause
	if v.Resource != "" {
		head += "  " + v.Resource
	}
	share := ""
	if v.Share.Known() {
		share = "  share " + percent(v.Share)
		if v.ShareInterval[0] != v.ShareInterval[1] {
			share += fmt.Sprintf(" (%s to %s)", percent(v.ShareInterval[0]), percent(v.ShareInterval[1]))
		}
	}
	if width(head)+width(share) <= t.Width {
		t.heading(head + share)
	} else {
		t.heading(head)
		t.printf("%s\n", share)
	}
	t.wrap("  ", "  ", v.Summary)
	for _, e := range v.Evidence {
		t.wrap("  * ", "    ", fmt.Sprintf("%s: %s [%s; %s]", e.Claim, value(e.Value, e.Unit), e.Metric, e.Source))
	}
}

func value(n analysis.Number, unit string) string {
	if unit == "s" {
		return seconds(n)
	}
	return number(n)
}

// budget draws a bar a stage, with the blamed layer beside it.
func (t *text) budget(r *analysis.Result) {
	if len(r.Budget) == 0 {
		return
	}
	mean := analysis.Number(0)
	for _, s := range r.Budget {
		mean += s.SecondsPerOperation
	}
	t.heading("WHERE AN AVERAGE OPERATION'S TIME WENT (" + seconds(mean) + "), and what waiting is blamed on")
	note := 23 // columns for the longest layer/cause
	if t.Width >= 110 {
		note = 50 // for two of them, with shares
	}
	bar := t.Width - 2 - 16 - 1 - 9 - 1 - 7 - 2 - note
	for _, s := range r.Budget {
		if s.Share < 0.0005 {
			continue
		}
		n := int(float64(s.Share)*float64(bar) + 0.5)
		line := fmt.Sprintf("  %-15s %s%s %9s %7s  %s", s.Stage, strings.Repeat("█", max(0, min(n, bar))), strings.Repeat("·", max(0, min(bar-n, bar))), seconds(s.SecondsPerOperation), percent(s.Share), blamed(s))
		t.printf("%s\n", strings.TrimRight(cut(line, t.Width), " "))
	}
}

// blamed names the causes that a stage's waiting is blamed on, with their
// shares where there are several.
func blamed(s analysis.Stage) string {
	parts := []string{}
	for _, b := range s.BlamedOn {
		part := b.Layer + "/" + b.Cause.Cause
		if b.Share < 0.995 {
			part = percent(b.Share) + " " + part
		}
		if b.Share >= 0.05 {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "~"
	}
	return s
}

func (t *text) load(r *analysis.Result) {
	l := r.Load
	if l == nil {
		return
	}
	t.heading("LOAD")
	t.wrap("  ", "  ", fmt.Sprintf("%d operations, %d ok (%s), %s ok/s%s", l.Operations, l.OK, percent(l.SuccessRatio), number(l.ThroughputPerS), offered(l)))
	lat := l.LatencyS
	t.wrap("  ", "    ", fmt.Sprintf("latency: mean %s, p50 %s, p90 %s, p99 %s, p99.9 %s, max %s",
		seconds(lat.Mean), seconds(lat.P50), seconds(lat.P90), seconds(lat.P99), seconds(lat.P999), seconds(lat.Max)))
	parts := []string{}
	for _, o := range slices.Sorted(maps.Keys(l.Outcomes)) {
		parts = append(parts, fmt.Sprintf("%s %d", o, l.Outcomes[o]))
	}
	t.wrap("  ", "    ", "outcomes: "+strings.Join(parts, ", "))
	if c := r.Correctness; c != nil {
		t.wrap("  ", "    ", fmt.Sprintf("books (%s): expected %d, found %d; lost updates %d, oversold %d", c.What, c.Expected, c.Actual, c.LostUpdates, c.Oversold))
	}
}

func offered(l *analysis.Load) string {
	if !l.OfferedPerS.Known() {
		return ""
	}
	return ", offered " + number(l.OfferedPerS) + "/s"
}

func (t *text) statements(r *analysis.Result) {
	if len(r.Statements) == 0 {
		return
	}
	t.heading("STATEMENTS (performance_schema; lock is row-lock waiting per execution)")
	t.printf("  %7s %8s %25s %7s %8s %7s  %s\n", "count", "mean", "lock (bounds)", "ratio", "max", "share", "statement")
	for _, s := range r.Statements {
		if s.Share < 0.001 && s.Errors == 0 {
			continue
		}
		line := fmt.Sprintf("  %7d %8s %25s %7s %8s %7s  ", s.Count, seconds(s.MeanS), lock(s), percent(s.LockRatio), seconds(s.MaxS), percent(s.Share))
		if room := t.Width - width(line); room >= 40 {
			t.printf("%s%s\n", line, cut(statementText(s), room))
		} else {
			t.printf("%s\n%s%s\n", strings.TrimRight(line, " "), strings.Repeat(" ", 10), cut(statementText(s), t.Width-10))
		}
	}
	if s := r.Statements[0]; s.LockMethod != "" {
		t.wrap("  ", "  ", "row-lock time: "+lockSource(r.Statements))
	}
	t.wrap("  ", "  ", "max is since the server first saw the statement, warm-up included")
}

// statementText is the text as far as the server keeps it, with its errors.
func statementText(s analysis.Statement) string {
	text := s.Text
	if text == "" {
		text = "(no text: the server's digest table is full, or it was lost)"
	}
	if s.Errors > 0 {
		text = fmt.Sprintf("(%d errors) %s", s.Errors, text)
	}
	return text
}

func lockSource(all []analysis.Statement) string {
	for _, s := range all {
		if s.LockS.Hi > 0 {
			return s.LockMethod + ", from " + s.LockSource
		}
	}
	return "none seen"
}

func lock(s analysis.Statement) string {
	l := s.LockS
	if l.Lo == l.Hi {
		return seconds(l.Point)
	}
	return fmt.Sprintf("%s (%s..%s)", seconds(l.Point), seconds(l.Lo), strings.Replace(seconds(l.Hi), " ", "", 1))
}

func (t *text) locks(r *analysis.Result) {
	l := r.Locks
	if l == nil {
		return
	}
	t.heading("LOCKS")
	for _, h := range l.HotRows {
		index := ""
		if h.Index != "" {
			index = ", index " + h.Index
		}
		t.wrap("  ", "    ", fmt.Sprintf("hot row %s of %s%s: %s waiting on average (at most %s in a slice), held %s to %s of the time",
			h.Key, h.Table, index, number(h.WaitersMean), number(h.WaitersMax), percent(h.Utilisation[0]), percent(h.Utilisation[1])))
	}
	for _, m := range l.Metadata {
		t.wrap("  ", "    ", fmt.Sprintf("%s: %s waiting on average", analysis.ResourceWords(m.Resource), number(m.WaitersMean)))
	}
	for _, b := range l.Blockers {
		whose := "of this load"
		if b.Foreign {
			whose = "not of this load"
		}
		query := b.Query
		if query == "" {
			query = "no statement at the moment"
		}
		t.wrap("  ", "    ", fmt.Sprintf("blocker: thread %d, %s, has %s, up to %s old, blocks up to %d: %s",
			b.Thread, whose, analysis.ResourceWords(b.Resource), seconds(b.AgeS), b.Blocks, query))
	}
	t.wrap("  ", "    ", fmt.Sprintf("deadlocks %s, lock wait timeouts %s, conflicts of versions %s", number(l.Deadlocks), number(l.Timeouts), number(l.Conflicts)))
}

func (t *text) appLock(r *analysis.Result) {
	a := r.AppLock
	if a == nil {
		return
	}
	t.heading("APPLICATION LOCKS (in Redis)")
	t.wrap("  ", "    ", fmt.Sprintf("acquired %s times, %s attempts each; free for %s of the time in which somebody waited",
		number(a.Acquired), number(a.AttemptsPerAcquire), percent(a.IdleWithWaitersRatio)))
	t.spread("hold", a.HoldS)
	t.spread("handoff (free while somebody waited)", a.HandoffS)
	t.wrap("  ", "    ", fmt.Sprintf("leases that ended before their release: %s; of them with another holder meanwhile: %s", number(a.LeaseExpired), number(a.DoubleHeld)))
}

// redis shows what the server says of itself. Without a load of ours in it that
// is a line.
func (t *text) redis(r *analysis.Result) {
	s := r.Redis
	if s == nil {
		return
	}
	t.heading("REDIS (all its clients, this observer included)")
	t.wrap("  ", "    ", fmt.Sprintf("%s commands/s, main thread busy %s of the time; hit ratio %s (%s of %s); memory at most %s, of it data %s",
		number(s.OpsPerS), percent(s.BusyShare), percent(s.HitRatio), number(s.Hits), number(s.Hits+s.Misses), size(s.MemoryUsedBytesMax), size(s.DatasetBytesMax)))
	if r.AppLock == nil {
		return
	}
	for _, c := range s.Commands[:min(len(s.Commands), shownCommands)] {
		t.printf("  %-20s %10s calls  mean %9s  p99 %9s\n", c.Name, number(c.Calls), seconds(c.MeanS), seconds(c.P99S))
	}
}

// shownCommands bounds the list in the text; the JSON has more.
const shownCommands = 5

func (t *text) pool(r *analysis.Result) {
	p := r.Pool
	if p == nil {
		return
	}
	limit := "unlimited"
	if p.MaxOpen > 0 {
		limit = fmt.Sprintf("%d connections", p.MaxOpen)
	}
	t.heading("POOL (" + limit + ")")
	t.wrap("  ", "    ", fmt.Sprintf("in use %s (max %s), idle %s, pending %s (max %s), utilisation %s; %s waits, %d timeouts",
		number(p.InUseMean), number(p.InUseMax), number(p.IdleMean), number(p.PendingMean), number(p.PendingMax), percent(p.Utilisation), number(p.Waits), p.Timeouts))
	t.spread("wait", p.WaitS)
	t.spread("hold", p.HoldS)
}

func (t *text) spread(name string, s analysis.Spread) {
	t.wrap("  ", "    ", fmt.Sprintf("%s: mean %s, p95 %s, p99 %s, max %s", name, seconds(s.Mean), seconds(s.P95), seconds(s.P99), seconds(s.Max)))
}

func (t *text) runtime(r *analysis.Result) {
	g := r.Runtime
	if g == nil {
		return
	}
	t.heading(fmt.Sprintf("GO RUNTIME (GOMAXPROCS %d)", g.GOMAXPROCS))
	row := func(name, format string, args ...any) {
		t.wrap(fmt.Sprintf("  %-18s", name), strings.Repeat(" ", 19), fmt.Sprintf(format, args...))
	}
	row("CPU", "%s of GOMAXPROCS", percent(g.CPUShare))
	row("garbage collector", "%s of that; %s pauses, max %s, total %s", percent(g.GCCPUShare), number(g.GCPauses), seconds(g.GCPauseMaxS), seconds(g.GCPauseTotalS))
	row("heap, goroutines", "at most %s and %s when looked at", size(g.HeapPeakBytes), number(g.GoroutinesMax))
	row("scheduling delay", "mean %s, p50 %s, p99 %s", seconds(g.SchedLatencyS.Mean), seconds(g.SchedLatencyS.P50), seconds(g.SchedLatencyS.P99))
	row("mutex contention", "%s%s", seconds(g.MutexWaitS), mostContended(r.Profiles))
	if p := r.Profiles; p != nil && p.PoolParks != nil {
		row("pool parks", "%s in %s waits for a connection (block profile, sampled)", seconds(p.PoolParks.Seconds), number(p.PoolParks.Waits))
	}
}

// mostContended names the function that others waited for longest.
func mostContended(p *analysis.Profiles) string {
	if p == nil || len(p.Mutexes) == 0 || p.Mutexes[0].Seconds == 0 {
		return ""
	}
	return ", most of it behind " + p.Mutexes[0].Function
}

// shownFunctions bounds the list in the text; the JSON has more.
const shownFunctions = 6

func (t *text) profiles(r *analysis.Result) {
	p := r.Profiles
	if p == nil {
		return
	}
	t.heading(fmt.Sprintf("CPU PROFILE OF THE LOAD (%s; `chokepoint profile` shows more)", seconds(p.CPUS)))
	var parts []string
	for _, s := range p.ByStage {
		parts = append(parts, fmt.Sprintf("%s %s", s.Stage, seconds(s.CPUS)))
	}
	parts = append(parts, "no operation's (collector, scheduler) "+seconds(p.RestS))
	t.wrap("  ", "    ", "by stage: "+strings.Join(parts, ", "))
	for _, f := range p.Functions[:min(len(p.Functions), shownFunctions)] {
		t.printf("  %9s %6s  %s\n", seconds(f.FlatS), percent(f.Share), cut(f.Function, t.Width-20))
	}
}

func (t *text) observer(r *analysis.Result) {
	o := r.Observer
	if o == nil {
		return
	}
	t.heading("WHAT WATCHING COST")
	parts := []string{fmt.Sprintf("%d readings, %d faults of the recording", o.Polls, o.Faults)}
	if o.CPUS.Known() {
		parts = append(parts, fmt.Sprintf("CPU %s, %s of that of the load and its servers", seconds(o.CPUS), percent(o.CPUShare)))
	}
	if o.StatementsS.Known() {
		parts = append(parts, "statements of "+seconds(o.StatementsS)+" in the database server")
	}
	if o.RedisS.Known() {
		parts = append(parts, "commands of "+seconds(o.RedisS)+" in Redis")
	}
	t.wrap("  ", "    ", strings.Join(parts, "; "))
}

func (t *text) host(r *analysis.Result) {
	h := r.Host
	if h == nil {
		return
	}
	t.heading(fmt.Sprintf("HOST (%d CPUs)", h.CPUs))
	t.wrap("  ", "    ", fmt.Sprintf("busy %s, stolen by the hypervisor %s, some task waited for a CPU %s of the time", percent(h.BusyShare), percent(h.StealShare), percent(h.CPUPressure)))
	for _, p := range h.Processes {
		t.wrap("  ", "    ", fmt.Sprintf("%s: CPU %s, ready without a CPU %s", p.Name, seconds(p.CPUS), seconds(p.RunQueueS)))
	}
}

func (t *text) relief(r *analysis.Result) {
	if len(r.Relief) == 0 {
		return
	}
	t.heading("WHAT A CHANGE WOULD BRING (predicted throughput)")
	for _, x := range r.Relief {
		gain := fmt.Sprintf("%.2fx", float64(x.Ratio))
		if x.Bound == analysis.AtMost {
			gain = "at most " + gain
		}
		t.wrap(fmt.Sprintf("  %15s  ", gain), strings.Repeat(" ", 19), x.Change+"; limited by "+x.LimitedBy)
	}
}

func (t *text) checks(r *analysis.Result) {
	if len(r.Checks) == 0 {
		return
	}
	t.heading("CHECKS")
	for _, c := range r.Checks {
		mark := "ok  "
		if !c.OK {
			mark = "FAIL"
		}
		line := fmt.Sprintf("%s: expected %s, measured %s", c.Name, number(c.Expected), number(c.Measured))
		if c.Note != "" {
			line += " (" + c.Note + ")"
		}
		t.wrap("  "+mark+" ", "       ", line)
	}
}

// windows shows when the bottleneck moved.
func (t *text) windows(r *analysis.Result) {
	if len(r.Windows) < 2 {
		return
	}
	t.heading("WHO LED WHEN")
	for _, w := range r.Windows {
		t.printf("  %6.1f to %6.1f s  %s/%s, %s of the waiting\n", float64(w.FromS), float64(w.ToS), w.Layer, w.Cause.Cause, percent(w.Share))
	}
}

func (t *text) warnings(r *analysis.Result) {
	if len(r.Warnings) == 0 {
		return
	}
	t.heading("WARNINGS")
	for _, w := range r.Warnings {
		t.wrap("  - ", "    ", w)
	}
}

// next names the command to try next: the change that promises most.
// elsewhere reminds of a server that the command does not name: DSNs are not
// recorded.
func elsewhere(r *analysis.Result) string {
	for _, s := range r.Run.Servers {
		if s.Kind == "mysql" && !s.Sandbox {
			return " (with the DSN as before)"
		}
	}
	return ""
}

func (t *text) next(r *analysis.Result) {
	best := -1
	for i, x := range r.Relief {
		if x.Command != "" && x.Ratio >= 1.1 && (best < 0 || x.Ratio > r.Relief[best].Ratio) {
			best = i
		}
	}
	if best < 0 {
		return
	}
	t.heading("TRY NEXT" + elsewhere(r))
	t.printf("  %s\n", r.Relief[best].Command)
}
