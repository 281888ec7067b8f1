package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"chokepoint/analysis"
)

// WriteMarkdown writes the page for a ticket or a pull request: the verdict, and
// tables of what carries it.
func (p *Page) WriteMarkdown(out io.Writer) error {
	m := &markdown{bufio.NewWriter(out)}
	r := p.Result
	v := r.Verdict
	m.printf("# %s/%s: %s/%s\n\n", r.Run.Workload, r.Run.Strategy, v.Layer, v.Cause.Cause)
	m.printf("%s\n\nRun `%s`, %s, %s: `%s`\n", escape(v.Summary), r.Run.ID, seconds(r.Run.DurationS), r.Run.Status, r.Run.Command)
	m.budget(r)
	m.load(r)
	m.statements(r)
	m.relief(r)
	m.checks(r)
	if len(r.Warnings) > 0 {
		m.printf("\n## Warnings\n\n")
		for _, w := range r.Warnings {
			m.printf("- %s\n", escape(w))
		}
	}
	return m.w.Flush()
}

type markdown struct{ w *bufio.Writer }

func (m *markdown) printf(format string, args ...any) { fmt.Fprintf(m.w, format, args...) }

// table begins a table; columns that start with '>' are aligned to the right.
func (m *markdown) table(title string, columns ...string) {
	m.printf("\n## %s\n\n", title)
	head, line := []string{}, []string{}
	for _, c := range columns {
		name, right := strings.CutPrefix(c, ">")
		head = append(head, name)
		if right {
			line = append(line, "---:")
		} else {
			line = append(line, "---")
		}
	}
	m.printf("| %s |\n| %s |\n", strings.Join(head, " | "), strings.Join(line, " | "))
}

func (m *markdown) row(cells ...string) {
	for i := range cells {
		cells[i] = escape(cells[i])
	}
	m.printf("| %s |\n", strings.Join(cells, " | "))
}

// escape keeps text from being read as markup: statements come from servers.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", ">", "&gt;", "[", `\[`, "\n", " ").Replace(s)
}

func (m *markdown) budget(r *analysis.Result) {
	if len(r.Budget) == 0 {
		return
	}
	m.table("Where an average operation's time went", "stage", ">time", ">share", "blamed on")
	for _, s := range r.Budget {
		if s.Share >= 0.0005 {
			m.row(s.Stage, seconds(s.SecondsPerOperation), percent(s.Share), blamed(s))
		}
	}
}

func (m *markdown) load(r *analysis.Result) {
	if l := r.Load; l != nil {
		m.table("Load", ">operations", ">ok", ">ok/s", ">mean", ">p50", ">p99", ">max")
		m.row(fmt.Sprint(l.Operations), percent(l.SuccessRatio), number(l.ThroughputPerS), seconds(l.LatencyS.Mean), seconds(l.LatencyS.P50), seconds(l.LatencyS.P99), seconds(l.LatencyS.Max))
	}
}

func (m *markdown) statements(r *analysis.Result) {
	if len(r.Statements) == 0 {
		return
	}
	m.table("Statements", "statement", ">count", ">mean", ">row-lock wait", ">share")
	for _, s := range r.Statements {
		m.row(s.Text, fmt.Sprint(s.Count), seconds(s.MeanS), lock(s), percent(s.Share))
	}
}

func (m *markdown) relief(r *analysis.Result) {
	if len(r.Relief) == 0 {
		return
	}
	m.table("What a change would bring", "change", ">throughput", "limited by")
	for _, x := range r.Relief {
		gain := fmt.Sprintf("%.2fx", float64(x.Ratio))
		if x.Bound == analysis.AtMost {
			gain = "at most " + gain
		}
		m.row(x.Change, gain, x.LimitedBy)
	}
}

func (m *markdown) checks(r *analysis.Result) {
	if len(r.Checks) == 0 {
		return
	}
	m.table("Checks", "check", ">expected", ">measured", "")
	for _, c := range r.Checks {
		ok := "ok"
		if !c.OK {
			ok = "FAIL"
		}
		m.row(c.Name, number(c.Expected), number(c.Measured), ok)
	}
}
