package sandbox

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func mkdir(t *testing.T, elem ...string) string {
	t.Helper()
	dir := filepath.Join(elem...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, text string, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestSweep(t *testing.T) {
	base := t.TempDir()
	left := mkdir(t, base, folderPrefix+"left")
	write(t, "x", mkdir(t, left, "data", "mysql"), "user.frm")
	other := mkdir(t, base, "something-else")
	linked := mkdir(t, base, "linked")
	link := filepath.Join(base, folderPrefix+"link")
	if err := os.Symlink(linked, link); err != nil {
		t.Fatal(err)
	}
	file := write(t, "x", base, folderPrefix+"file")
	foreign := mkdir(t, base, folderPrefix+"foreign")
	if os.Geteuid() == 0 {
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	held, err := newFolder(base)
	if err != nil {
		t.Fatal(err)
	}
	if errs := sweep(base); len(errs) > 0 {
		t.Errorf("sweep: %v", errs)
	}
	for _, c := range []struct {
		what, path string
		want       bool
	}{
		{"a left-behind folder goes, with all that is in it", left, false},
		{"a held one stays", held.path, true},
		{"a folder of another name stays", other, true},
		{"a link stays", link, true},
		{"what a link leads to stays", linked, true},
		{"a file stays", file, true},
		{"another user's folder stays", foreign, os.Geteuid() == 0},
	} {
		if got := exists(c.path); got != c.want {
			t.Errorf("%s: exists is %v", c.what, got)
		}
	}
	if err := held.remove(); err != nil {
		t.Error(err)
	}
	if exists(held.path) {
		t.Error("a removed folder is still there")
	}
}

func TestSweepWithoutFolder(t *testing.T) {
	if errs := sweep(filepath.Join(t.TempDir(), "none")); len(errs) != 1 {
		t.Errorf("got %v, want one error", errs)
	}
}

// However makers and sweepers meet, a folder that was made stays until its
// maker removes it, and one that was given up goes.
func TestMakeAgainstSweep(t *testing.T) {
	base := t.TempDir()
	var done atomic.Bool
	var sweepers, makers sync.WaitGroup
	for range 4 {
		sweepers.Go(func() {
			for !done.Load() {
				for _, err := range sweep(base) {
					t.Error(err)
				}
			}
		})
	}
	for range 4 {
		makers.Go(func() {
			for range 100 {
				f, err := newFolder(base)
				if err != nil {
					t.Error(err)
					return
				}
				write(t, "x", f.path, "file")
				if !exists(filepath.Join(f.path, "file")) || !isAt(f.held, f.path) {
					t.Errorf("%s was taken away", f.path)
				}
				if err := f.remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	makers.Wait()
	done.Store(true)
	sweepers.Wait()
	if errs := sweep(base); len(errs) > 0 {
		t.Error(errs)
	}
	if left := glob(t, base, "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
