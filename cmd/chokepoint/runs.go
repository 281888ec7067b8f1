package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"chokepoint/collectors/record"
)

const runsHelp = `chokepoint runs list            list the records, oldest first
chokepoint runs show ID         what was run, on what, and how it ended
chokepoint runs verify ID...    check every invariant of records
chokepoint runs bundle ID       write ID.tar.gz into this folder
chokepoint runs rm ID...        remove records
chokepoint runs prune --older-than 168h   remove old ones, but never the newest`

// runsFlag is the folder of the records.
func runsFlag(fs *flag.FlagSet, w world) *string {
	def := w.getenv("CHOKEPOINT_RUNS")
	if def == "" {
		def = "runs"
	}
	return fs.String("runs", def, "folder of the records (environment CHOKEPOINT_RUNS)")
}

// openRuns opens the folder of the records for reading.
func openRuns(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("no records here: %w (`chokepoint run lock` makes one; --runs or CHOKEPOINT_RUNS names another folder)", err)
	}
	return root, nil
}

func runsCommand(_ context.Context, w world, args []string) error {
	fs := flags(w, "runs", runsHelp)
	dir := runsFlag(fs, w)
	age := fs.Duration("older-than", 0, "what prune removes: records that began longer ago")
	verb := ""
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		verb, args = args[0], args[1:]
	}
	ids, args := words(args)
	if err := parse(fs, args); err != nil {
		return err
	}
	ids = append(ids, fs.Args()...)
	root, err := openRuns(*dir)
	if err != nil {
		return err
	}
	defer root.Close()
	switch verb {
	case "list":
		return listRuns(w, root)
	case "show":
		return eachRun(root, ids, func(r *record.Reader) error { return showRun(w, r) })
	case "verify":
		return eachRun(root, ids, func(r *record.Reader) error { return verifyRun(w, r) })
	case "bundle":
		return eachRun(root, ids, func(r *record.Reader) error { return bundleRun(w, r) })
	case "rm":
		return removeRuns(w, root, ids)
	case "prune":
		return pruneRuns(w, root, *age)
	}
	return usageError("runs: say list, show, verify, bundle, rm or prune\n%s", runsHelp)
}

// words takes the leading arguments that are no flags.
func words(args []string) (words, rest []string) {
	for len(args) > 0 && (args[0] == "" || args[0][0] != '-') {
		words, args = append(words, args[0]), args[1:]
	}
	return words, args
}

func listRuns(w world, root *os.Root) error {
	runs, errs := record.List(root)
	tw := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ID\tSTATUS\tWORKLOAD\tSTRATEGY\tSIZE\tSERVERS")
	for _, r := range runs {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Status(), r.Workload.Name, r.Workload.Strategy, sizeOf(root, r.ID), serverNames(r))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, err := range errs {
		fmt.Fprintf(w.stderr, "chokepoint: passed over: %v\n", err)
	}
	return nil
}

// sizeOf is the size of a record in words.
func sizeOf(root *os.Root, id record.ID) string {
	r, err := record.Open(root, id)
	if err != nil {
		return "-"
	}
	defer r.Close()
	n, err := r.Size()
	if err != nil {
		return "-"
	}
	return kibibytes(n)
}

func kibibytes(n int64) string { return fmt.Sprintf("%.1f KiB", float64(n)/1024) }

func serverNames(r record.Run) string {
	names := ""
	for i, s := range r.Servers {
		if i > 0 {
			names += ", "
		}
		names += s.Flavor + " " + s.Version
	}
	return names
}

// eachRun opens the records of the given ids, "latest" being the newest.
func eachRun(root *os.Root, ids []string, do func(*record.Reader) error) error {
	if len(ids) == 0 {
		return usageError("runs: which run? Give its id, or `latest`")
	}
	for _, id := range ids {
		r, err := openRun(root, id)
		if err != nil {
			return err
		}
		err = do(r)
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// openRun opens the record of an id, or the newest for "latest".
func openRun(root *os.Root, id string) (*record.Reader, error) {
	if id == "latest" {
		runs, errs := record.List(root)
		if len(runs) == 0 {
			if len(errs) > 0 {
				return nil, errs[0]
			}
			return nil, fmt.Errorf("there is no record in %s yet; `chokepoint run lock` makes one", root.Name())
		}
		return record.Open(root, runs[len(runs)-1].ID)
	}
	parsed, err := record.ParseID(id)
	if err != nil {
		return nil, usageError("%w", err)
	}
	return record.Open(root, parsed)
}

func showRun(w world, r *record.Reader) error {
	run := r.Run()
	size, err := r.Size()
	if err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', 0)
	row := func(k, format string, args ...any) { fmt.Fprintf(tw, "%s\t%s\n", k, fmt.Sprintf(format, args...)) }
	row("id", "%s", run.ID)
	row("status", "%s", run.Status())
	row("started", "%s", run.Started.Format(time.RFC3339))
	row("workload", "%s/%s", run.Workload.Name, run.Workload.Strategy)
	row("command", "chokepoint run %s %s", run.Workload.Name, joined(run.Workload.Args))
	for _, s := range run.Servers {
		row("server", "%s %s", s.Flavor, s.Version)
	}
	row("host", "%d CPUs, GOMAXPROCS %d, %s %s", run.Host.CPUs, run.Host.GOMAXPROCS, run.Host.OS, run.Host.Kernel)
	row("tool", "%s %s (%s)", run.Tool.Version, run.Tool.Revision, run.Tool.Go)
	row("size", "%s", kibibytes(size))
	if run.End != nil && run.End.Error != "" {
		row("error", "%s", run.End.Error)
	}
	return tw.Flush()
}

func verifyRun(w world, r *record.Reader) error {
	if err := record.Validate(r); err != nil {
		return fmt.Errorf("run %s: %w", r.Run().ID, err)
	}
	fmt.Fprintf(w.stdout, "run %s: ok (%s)\n", r.Run().ID, r.Run().Status())
	return nil
}
