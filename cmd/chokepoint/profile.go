package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"chokepoint/analysis"
	"chokepoint/analysis/stacks"
	"chokepoint/collectors/record"
	"chokepoint/dashboards/report"
)

const profileHelp = `chokepoint profile --run-id ID [--type cpu|mutex|block|heap] shows the functions of
the measured phase's profiles: cpu and waiting in seconds, heap in allocated bytes.

With --with ID it shows how another run differs, per successful operation. The
files themselves (RUNS/ID/profiles/*.pb.gz) open in go tool pprof.`

// profileCommand shows a run's profiles by function, or how another's differ.
func profileCommand(_ context.Context, w world, args []string) error {
	fs := flags(w, "profile", profileHelp)
	id := fs.String("run-id", "", "`id` of the run, or \"latest\"")
	with := fs.String("with", "", "`id` of another run: show the difference from the first to it")
	kind := fs.String("type", stacks.CPU, "`type` of profile: "+strings.Join(profileTypes(), ", "))
	top := fs.Int("top", 20, "functions to show")
	dir := runsFlag(fs, w)
	if err := parse(fs, args); err != nil {
		return err
	}
	switch {
	case *id == "":
		return usageError("profile: which run? Give --run-id ID, or --run-id latest")
	case !slices.Contains(profileTypes(), *kind):
		return usageError("profile: there is no type %q; there are: %s", *kind, strings.Join(profileTypes(), ", "))
	case *top < 1:
		return usageError("profile: --top must be at least 1")
	}
	root, err := openRuns(*dir)
	if err != nil {
		return err
	}
	defer root.Close()
	one, err := profileOf(w, root, *id, *kind)
	if err != nil {
		return err
	}
	if *with == "" {
		return one.write(w, *kind, *top)
	}
	other, err := profileOf(w, root, *with, *kind)
	if err != nil {
		return err
	}
	return one.writeDiff(w, other, *kind, *top)
}

func profileTypes() []string { return []string{stacks.CPU, stacks.Mutex, stacks.Block, stacks.Heap} }

// runProfile is a profile of the measured phase of one run.
type runProfile struct {
	id        record.ID
	functions []stacks.Function
	total     float64
	ok        float64 // successful operations
}

func profileOf(w world, root *os.Root, id, kind string) (*runProfile, error) {
	r, err := openRun(root, id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	res, err := analysis.Attribute(r)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", r.Run().ID, err)
	}
	from := float64(res.Run.MeasuredFromS)
	p, err := stacks.Load(r, kind, from, from+float64(res.Run.DurationS))
	switch {
	case p == nil && err != nil:
		return nil, fmt.Errorf("run %s: %w", r.Run().ID, err)
	case p == nil:
		return nil, fmt.Errorf("run %s has no %s profile of its measured phase", r.Run().ID, kind)
	case err != nil:
		fmt.Fprintf(w.stderr, "chokepoint: left out: %v\n", err)
	}
	return &runProfile{r.Run().ID, stacks.Functions(p, kind), stacks.Total(p, kind), float64(res.Load.OK)}, nil
}

func (p *runProfile) write(w world, kind string, top int) error {
	fmt.Fprintf(w.stdout, "run %s, %s: %s in all\n", p.id, kind, amount(kind, p.total))
	tw := tabwriter.NewWriter(report.Printable(w.stdout), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "flat\tshare\twith callees\t  function")
	for _, f := range p.functions[:min(len(p.functions), top)] {
		fmt.Fprintf(tw, "%s\t%.1f %%\t%s\t  %s\n", amount(kind, f.Flat), 100*f.Flat/p.total, amount(kind, f.Cum), f.Name)
	}
	return tw.Flush()
}

func (p *runProfile) writeDiff(w world, other *runProfile, kind string, top int) error {
	if p.ok == 0 || other.ok == 0 {
		return errors.New("profile: a run without a successful operation cannot be compared by operation")
	}
	fmt.Fprintf(w.stdout, "%s, per successful operation: %s in run %s, %s in run %s\n", kind, amount(kind, p.total/p.ok), p.id, amount(kind, other.total/other.ok), other.id)
	tw := tabwriter.NewWriter(report.Printable(w.stdout), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "before\tafter\tchange\t  function")
	changes := stacks.Diff(p.functions, other.functions, p.ok, other.ok)
	for _, c := range changes[:min(len(changes), top)] {
		fmt.Fprintf(tw, "%s\t%s\t%s\t  %s\n", amount(kind, c.Before), amount(kind, c.After), signed(kind, c.After-c.Before), c.Name)
	}
	return tw.Flush()
}

func signed(kind string, v float64) string {
	if v < 0 {
		return "-" + amount(kind, -v)
	}
	return "+" + amount(kind, v)
}

// amount writes a value of a profile: seconds, or bytes of a heap.
func amount(kind string, v float64) string {
	units := []string{"ns", "us", "ms", "s"}
	base := 1e3
	if kind == stacks.Heap {
		units, base = []string{"B", "KiB", "MiB", "GiB"}, 1024
	} else {
		v *= 1e9
	}
	i := 0
	for i < len(units)-1 && math.Abs(v) >= base {
		v /= base
		i++
	}
	return fmt.Sprintf("%.3g %s", v, units[i])
}
