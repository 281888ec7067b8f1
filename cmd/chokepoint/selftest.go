package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"chokepoint/cmd/chokepoint/internal/selftest"
	"chokepoint/cmd/chokepoint/internal/session"
	"chokepoint/workloads/sandbox"
)

const selftestHelp = `chokepoint selftest runs faults with a known cause, and healthy services, on private
servers, lets the analysis explain each run, and prints how often it was right: the
confusion matrix, accuracy with Wilson intervals, and what was wrong. Parameters and
order come from the seed. The records stay, to look at.`

// Targets of a self-test: below them it fails (exit code 3).
const (
	targetLayers = 0.90
	fullRounds   = 3
)

// selftestCommand scores the analysis on faults that are known.
func selftestCommand(ctx context.Context, w world, args []string) error {
	fs := flags(w, "selftest", selftestHelp)
	server := fs.String("server", "mariadb", "`flavour` of the private server: mariadb or mysql")
	names := fs.String("faults", "", "`LIST` of cases to run, separated by commas; all if empty")
	quick := fs.Bool("quick", false, "each case once at each strength (30 runs, about two minutes) instead of three times")
	seed := fs.Uint64("seed", 1, "seed of parameters and order")
	format := fs.String("output", "text", "`format`: text or json")
	dir := runsFlag(fs, w)
	if err := parse(fs, args); err != nil {
		return err
	}
	o := selftest.Options{Server: *server, Rounds: fullRounds, Seed: *seed}
	if *quick {
		o.Rounds = 1
	}
	if *names != "" {
		o.Names = strings.Split(*names, ",")
	}
	switch {
	case *server != string(sandbox.MariaDB) && *server != string(sandbox.MySQL):
		return usageError("selftest: --server %q: there are mariadb and mysql", *server)
	case *format != "text" && *format != "json":
		return usageError("selftest: there is no output format %q; there are text and json", *format)
	}
	if err := o.Check(); err != nil {
		return usageError("selftest: %w", err)
	}
	root, err := makeRuns(*dir)
	if err != nil {
		return err
	}
	defer root.Close()
	sb, end, err := startSandbox(ctx, w, slog.New(slog.NewTextHandler(w.stderr, nil)), sandbox.Options{Flavor: sandbox.Flavor(*server)})
	if err != nil {
		return err
	}
	defer end()
	env := session.Env{Runs: root, Log: slog.New(slog.DiscardHandler), Redis: privateRedis(sb),
		MySQL: session.MySQL{Config: sb.MySQL().Config(), Sandbox: true, PID: sb.MySQL().PID}}
	score, err := selftest.Run(ctx, env, o, build(), func(done, all int, last selftest.Outcome) { tellOutcome(w, done, all, last) })
	if err != nil {
		return err
	}
	return judge(w, score, *format)
}

func tellOutcome(w world, done, all int, o selftest.Outcome) {
	mark := "ok  "
	switch {
	case !o.LayerRight():
		mark = "BAD "
	case !o.CauseRight(), o.Holder != "" && o.GotHolder != o.Holder:
		mark = "part"
	}
	fmt.Fprintf(w.stderr, "%3d/%d %s %-17s %-6s %s/%s\n", done, all, mark, o.Name, o.Strength, o.GotLayer, o.GotCause)
}

// judge prints the score, and fails if it is below the target.
func judge(w world, s selftest.Score, format string) error {
	if format == "json" {
		e := json.NewEncoder(w.stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(s); err != nil {
			return err
		}
	} else if err := writeScore(w.stdout, s); err != nil {
		return err
	}
	switch {
	case s.Runs == 0:
		return errors.New("selftest: interrupted before a run had ended")
	case s.FalseAlarms > 0:
		return exitCode{exitUnmet, fmt.Errorf("selftest: %d false alarms on healthy services", s.FalseAlarms)}
	case s.Runs > s.HealthyRuns && s.LayerAccuracy < targetLayers:
		return exitCode{exitUnmet, fmt.Errorf("selftest: the layer was right in %.0f %% of the runs; the target is %.0f %%", 100*s.LayerAccuracy, 100*targetLayers)}
	}
	return nil
}

func writeScore(out io.Writer, s selftest.Score) error {
	fmt.Fprintf(out, "%d runs with a fault and %d healthy ones in %v, seed %d\n\n", s.Runs-s.HealthyRuns, s.HealthyRuns, time.Duration(s.Seconds*1e9).Round(time.Second), s.Seed)
	if err := writeConfusion(out, s.Faults); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nlayer  right in %s\ncause  right in %s\n", percentOf(s.LayerAccuracy, s.LayerInterval), percentOf(s.CauseAccuracy, s.CauseInterval))
	fmt.Fprintf(out, "holder right in %.0f %% of the %d runs that ask for one\n", 100*s.HolderAccuracy, s.HolderRuns)
	fmt.Fprintf(out, "wrong layers %d, of these named with confidence %d; false alarms on healthy services %d of %d\n", s.Wrong, s.WrongConclusive, s.FalseAlarms, s.HealthyRuns)
	for _, o := range s.Faults {
		if !o.CauseRight() || o.Holder != "" && o.GotHolder != o.Holder {
			fmt.Fprintf(out, "\n%s, %s, on %s: %s\n  %s\n  chokepoint analyze --run-id %s\n", o.Name, o.Strength, o.Server, wanted(o), o.Summary, o.RunID)
		}
	}
	return nil
}

func wanted(o selftest.Outcome) string {
	want := o.Layer + "/" + o.Cause
	if o.Cause == "" {
		want = o.Layer
	}
	if o.Holder != "" {
		want += " with holder " + o.Holder
	}
	return fmt.Sprintf("wanted %s, got %s/%s with holder %q", want, o.GotLayer, o.GotCause, o.GotHolder)
}

func percentOf(p float64, interval [2]float64) string {
	return fmt.Sprintf("%.0f %% of the runs with a fault (Wilson 95 %%: %.0f to %.0f %%)", 100*p, 100*interval[0], 100*interval[1])
}

// writeConfusion is a row for each cause that was injected, with what it was
// called how often.
func writeConfusion(out io.Writer, all []selftest.Outcome) error {
	rows := map[string]map[string]int{}
	for _, o := range all {
		want, got := strings.TrimSuffix(o.Layer+"/"+o.Cause, "/"), o.GotLayer+"/"+o.GotCause
		if rows[want] == nil {
			rows[want] = map[string]int{}
		}
		rows[want][got]++
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "injected\tcalled (runs)")
	for _, want := range slices.Sorted(maps.Keys(rows)) {
		var parts []string
		for _, got := range slices.Sorted(maps.Keys(rows[want])) {
			parts = append(parts, fmt.Sprintf("%s (%d)", got, rows[want][got]))
		}
		fmt.Fprintf(tw, "%s\t%s\n", want, strings.Join(parts, ", "))
	}
	return tw.Flush()
}
