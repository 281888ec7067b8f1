package record_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"chokepoint/collectors/record"
)

// small mounts a file system of the given size, which root may only.
func small(t *testing.T, size string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("a small file system cannot be mounted: %v", err)
		}
		t.Skipf("NOT TESTED: a small file system can be mounted by root only: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func left(t *testing.T, root *os.Root) int {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(root.Name(), &s); err != nil {
		t.Fatal(err)
	}
	return int(s.Bavail) * int(s.Frsize)
}

// TestRoom: a recording ends in order while a twentieth of its file system is
// left, here 102 of 2,048 KiB; another does not begin there.
func TestRoom(t *testing.T) {
	root := small(t, "2m")
	w, err := record.Create(root, testRun())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; err == nil && n < 100_000; n++ {
		b := &record.Batch{Source: "s", T: float64(n)}
		b.Add(float64(n), "g")
		err = w.Batch(b)
	}
	if err == nil || !strings.Contains(err.Error(), "recording ended: no space left but") {
		t.Fatalf("after %d batches: %v", n, err)
	}
	if kib := left(t, root) >> 10; kib < 64 || kib > 110 { // it looks every 16 KiB
		t.Errorf("%d KiB are left, want somewhat less than 102", kib)
	}
	other := testRun()
	other.ID = "20261130T212219Z-lock-7f3b"
	if _, err := record.Create(root, other); err == nil || !strings.Contains(err.Error(), "let --runs name a folder elsewhere") {
		t.Errorf("another recording: %v", err)
	}
	if _, err := root.Stat(string(other.ID)); err == nil {
		t.Error("it left a folder")
	}
	// Closing it gives the room back that was kept for the end of run.json.
	if err := w.Close(record.End{Status: record.Complete, Error: err.Error()}); err != nil {
		t.Error(err)
	}
	r, err := record.Open(root, testRun().ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := 0
	for _, err := range r.Batches() {
		if err != nil {
			t.Error(err)
		}
		got++
	}
	if got != n-1 || r.Run().End == nil || !strings.Contains(r.Run().End.Error, "no space left") {
		t.Errorf("%d of %d batches; end %+v", got, n-1, r.Run().End)
	}
}
