package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"chokepoint/collectors/record"
)

// TestLiveFullDisk: where the folder for records is full, the recording ends
// with a clear fault, and the run goes on; what was recorded is explained.
func TestLiveFullDisk(t *testing.T) {
	runs := t.TempDir()
	if err := syscall.Mount("tmpfs", runs, "tmpfs", 0, "size=192k"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("a small file system cannot be mounted: %v", err)
		}
		t.Skipf("NOT TESTED: a small file system can be mounted by root only: %v", err)
	}
	defer syscall.Unmount(runs, syscall.MNT_DETACH)
	stdout, stderr, code := chokepoint(t, "run", "lock", "--runs", runs, "--output", "json", "--concurrency", "50", "--duration", "6s")
	if code != exitOK && strings.Contains(stderr, "apt-get install") && os.Getenv("CI") == "" {
		t.Skipf("NO SERVER HERE, NOTHING IS TESTED: %s", stderr)
	}
	if code != exitOK || !strings.Contains(stderr, "no space left") {
		t.Fatalf("exit %d, stderr: %s", code, stderr)
	}
	p := parsePage(t, stdout)
	if p.Load.Operations == 0 || p.Verdict.Layer == "" {
		t.Errorf("%d operations, verdict %q", p.Load.Operations, p.Verdict.Layer)
	}
	r := latest(t, runs)
	for _, err := range r.Batches() {
		if err != nil {
			t.Errorf("a line is not whole: %v", err)
		}
	}
	t.Logf("status %s, verdict %s/%s", r.Run().Status(), p.Verdict.Layer, p.Verdict.Cause)
	if end := r.Run().End; end == nil || end.Status != record.Complete || !strings.Contains(end.Error, "no space left") {
		t.Errorf("the record says that it ended so: %+v", end)
	}
}
