package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"chokepoint/analysis"
	"chokepoint/collectors/record"
	"chokepoint/dashboards/report"
)

func analyzeCommand(_ context.Context, w world, args []string) error {
	fs := flags(w, "analyze", "chokepoint analyze --run-id ID explains the record of a run; it needs no server.")
	id := fs.String("run-id", "", "`id` of the run, or \"latest\"")
	dir := runsFlag(fs, w)
	output := outputFlag(fs)
	expect := fs.String("expect", "", "fail (exit 3) unless this `comparison` holds, such as layer==row_lock; fields: layer, cause, resource; == or !=")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *id == "" {
		return usageError("analyze: which run? Give --run-id ID, or --run-id latest")
	}
	if err := output.check(); err != nil {
		return err
	}
	want, err := parseExpectation(*expect)
	if err != nil {
		return err
	}
	root, err := openRuns(*dir)
	if err != nil {
		return err
	}
	defer root.Close()
	r, err := openRun(root, *id)
	if err != nil {
		return err
	}
	defer r.Close()
	res, err := explain(w, r, output)
	if err != nil {
		return err
	}
	return want.check(res.Verdict)
}

// explain analyses a record and prints the report.
func explain(w world, r *record.Reader, o *output) (*analysis.Result, error) {
	res, err := analysis.Attribute(r)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", r.Run().ID, err)
	}
	page := &report.Page{Tool: build().Version, Result: res}
	switch o.format {
	case "json":
		return res, page.WriteJSON(w.stdout)
	case "markdown":
		return res, page.WriteMarkdown(w.stdout)
	}
	return res, page.WriteText(w.stdout, textStyle(w))
}

// textStyle fits the terminal; what goes elsewhere is 80 columns without colour.
func textStyle(w world) report.Style {
	s := report.Style{}
	if f, ok := w.stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.Color = w.getenv("NO_COLOR") == ""
		s.Width, _, _ = term.GetSize(int(f.Fd()))
	}
	if n, err := strconv.Atoi(w.getenv("COLUMNS")); err == nil && s.Width == 0 {
		s.Width = n
	}
	return s
}

// expectation is a comparison that a verdict must meet; the zero one is met by
// all.
type expectation struct{ text, field, op, value string }

func parseExpectation(s string) (expectation, error) {
	if s == "" {
		return expectation{}, nil
	}
	for _, op := range []string{"==", "!="} {
		field, value, ok := strings.Cut(s, op)
		field, value = strings.TrimSpace(field), strings.TrimSpace(value)
		if !ok {
			continue
		}
		known, listed := map[string][]string{"layer": analysis.Layers(), "cause": analysis.Causes(), "resource": nil}[field]
		switch {
		case listed && known != nil && !slices.Contains(known, value):
			return expectation{}, usageError("--expect %q: there is no %s %q; there are: %s", s, field, value, strings.Join(known, ", "))
		case listed:
			return expectation{s, field, op, value}, nil
		}
		return expectation{}, usageError("--expect %q: there is no field %q; there are layer, cause and resource", s, field)
	}
	return expectation{}, usageError("--expect %q: compare with == or !=, such as layer==row_lock", s)
}

// check returns nil if the verdict meets the expectation. An inconclusive
// verdict decides nothing, unless that is what was asked about.
func (e expectation) check(v analysis.Verdict) error {
	if e.field == "" {
		return nil
	}
	got := map[string]string{"layer": v.Layer, "cause": v.Cause.Cause, "resource": v.Resource}[e.field]
	if (got == e.value) == (e.op == "==") && v.Layer != "inconclusive" || e.op == "==" && got == e.value {
		return nil
	}
	err := fmt.Errorf("expected %s; the verdict is %s/%s", e.text, v.Layer, v.Cause.Cause)
	if v.Layer == "inconclusive" {
		return exitCode{exitUndecided, err}
	}
	return exitCode{exitUnmet, err}
}

// output is the flag that chooses a format.
type output struct{ format string }

func outputFlag(fs interface {
	StringVar(*string, string, string, string)
}) *output {
	o := &output{}
	fs.StringVar(&o.format, "output", "text", "`format` of the report: text, json or markdown")
	return o
}

func (o *output) check() error {
	if !slices.Contains([]string{"text", "json", "markdown"}, o.format) {
		return usageError("there is no output format %q; there are text, json and markdown", o.format)
	}
	return nil
}
