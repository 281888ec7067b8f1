package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"chokepoint/collectors/record"
)

// removeRuns deletes the records of the given ids, each by its own name:
// "latest" is not one, for it is another run a moment later.
func removeRuns(w world, root *os.Root, ids []string) error {
	if len(ids) == 0 {
		return usageError("runs rm: which runs? Give their ids (`chokepoint runs list`)")
	}
	for _, s := range ids {
		id, err := record.ParseID(s)
		if err != nil {
			return usageError("%w", err)
		}
		if _, err := root.Lstat(string(id)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no run %s here", id)
		}
		if err := root.RemoveAll(string(id)); err != nil {
			return fmt.Errorf("run %s: %w", id, err)
		}
		fmt.Fprintf(w.stdout, "removed %s\n", id)
	}
	return nil
}

// pruneRuns deletes the records that began longer ago than the given age, but
// never the newest.
func pruneRuns(w world, root *os.Root, age time.Duration) error {
	if age <= 0 {
		return usageError("runs prune: how old? Give --older-than, such as 168h for a week")
	}
	runs, errs := record.List(root)
	for _, err := range errs {
		fmt.Fprintf(w.stderr, "chokepoint: left alone: %v\n", err)
	}
	var old []string
	for i, r := range runs {
		if i < len(runs)-1 && time.Since(r.Started) > age {
			old = append(old, string(r.ID))
		}
	}
	if len(old) == 0 {
		fmt.Fprintf(w.stdout, "nothing to remove: no run but the newest is older than %s\n", age)
		return nil
	}
	return removeRuns(w, root, old)
}

// bundleRun writes a record as one file ID.tar.gz into the current folder, to be
// attached to a report.
func bundleRun(w world, r *record.Reader) error {
	id := string(r.Run().ID)
	name := id + ".tar.gz"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("runs bundle: %w", err)
	}
	zip := gzip.NewWriter(f)
	archive := tar.NewWriter(zip)
	err = errors.Join(r.Archive(archive), archive.Close(), zip.Close(), f.Close())
	if err != nil {
		os.Remove(name)
		return fmt.Errorf("runs bundle: %w", err)
	}
	fmt.Fprintf(w.stdout, "wrote %s\n", name)
	return nil
}
