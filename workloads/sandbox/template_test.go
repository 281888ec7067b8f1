package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// counted is an initialiser that makes a small data folder, and counts.
func counted(n *atomic.Int32) initialiser {
	return func(_ context.Context, data, temp string, held *os.File) error {
		n.Add(1)
		return errors.Join(os.MkdirAll(filepath.Join(data, "mysql"), 0o700),
			os.WriteFile(filepath.Join(data, "ibdata1"), []byte("pages"), 0o600),
			os.WriteFile(filepath.Join(data, "auto.cnf"), []byte("server-uuid"), 0o600),
			os.WriteFile(filepath.Join(temp, "scratch"), nil, 0o600))
	}
}

func testTemplate(t *testing.T) template {
	return newTemplate(t.TempDir(), program{flavor: MariaDB, version: "10.11.19-MariaDB-0+deb12u1"})
}

func TestTemplateName(t *testing.T) {
	for version, want := range map[string]string{
		"10.11.19-MariaDB-0+deb12u1": "mariadb-10.11.19-MariaDB-0+deb12u1-1",
		"11.0/../x y":                "mariadb-11.0_.._x_y-1",
	} {
		if got := newTemplate("/c", program{flavor: MariaDB, version: version}).dir; got != "/c/"+want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}

func TestTemplateMadeOnce(t *testing.T) {
	tmpl := testTemplate(t)
	var made atomic.Int32
	var wg sync.WaitGroup
	copies := t.TempDir()
	for i := range 8 {
		wg.Go(func() {
			data := filepath.Join(copies, string(rune('a'+i)))
			if err := tmpl.copyTo(t.Context(), data, counted(&made)); err != nil {
				t.Error(err)
			}
			if got, err := listFiles(data); err != nil || got != "0 .\n5 ibdata1\n0 mysql\n" {
				t.Errorf("copy: %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("initialised %d times", n)
	}
	if got, err := listFiles(tmpl.dir); err != nil || strings.Contains(got, "tmp") || strings.Contains(got, "auto.cnf") {
		t.Errorf("template: %q, %v", got, err)
	}
}

func TestTemplateDamaged(t *testing.T) {
	for name, damage := range map[string]func(t template) error{
		"a file is missing":     func(t template) error { return os.Remove(filepath.Join(t.data(), "ibdata1")) },
		"a file is cut":         func(t template) error { return os.Truncate(filepath.Join(t.data(), "ibdata1"), 2) },
		"a folder is missing":   func(t template) error { return os.Remove(filepath.Join(t.data(), "mysql")) },
		"the manifest is empty": func(t template) error { return os.Truncate(t.manifest(), 0) },
		"the data is missing":   func(t template) error { return os.RemoveAll(t.data()) },
	} {
		t.Run(name, func(t *testing.T) {
			tmpl := testTemplate(t)
			var made atomic.Int32
			for i, want := range []int32{1, 2, 2} {
				data := filepath.Join(t.TempDir(), "data")
				if err := tmpl.copyTo(t.Context(), data, counted(&made)); err != nil {
					t.Fatal(err)
				}
				if n := made.Load(); n != want || !exists(filepath.Join(data, "ibdata1")) {
					t.Errorf("copy %d: initialised %d times, want %d", i, n, want)
				}
				if i == 0 {
					if err := damage(tmpl); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// What an earlier, killed initialisation has left is removed, not used.
func TestTemplateHalf(t *testing.T) {
	tmpl := testTemplate(t)
	half := mkdir(t, tmpl.dir+".new-1")
	write(t, "half", mkdir(t, half, "data"), "ibdata1")
	var made atomic.Int32
	if err := tmpl.copyTo(t.Context(), filepath.Join(t.TempDir(), "data"), counted(&made)); err != nil {
		t.Error(err)
	}
	if made.Load() != 1 || exists(half) {
		t.Errorf("initialised %d times; the half-made one is there: %v", made.Load(), exists(half))
	}
}

func TestTemplateFails(t *testing.T) {
	tmpl := testTemplate(t)
	broken := errors.New("disk full")
	err := tmpl.copyTo(t.Context(), filepath.Join(t.TempDir(), "data"),
		func(_ context.Context, data, _ string, _ *os.File) error {
			return errors.Join(os.Mkdir(data, 0o700), broken)
		})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if left := glob(t, filepath.Dir(tmpl.dir), "*"); len(left) != 1 { // the lock
		t.Errorf("left behind: %v", left)
	}
}

// A lock that another holds is waited for until the context ends, no longer.
func TestLockWaitEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := lockFile(t.Context(), path, syscall.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := lockFile(ctx, path, syscall.LOCK_SH); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
	if err := unlock(held); err != nil {
		t.Error(err)
	}
	again, err := lockFile(t.Context(), path, syscall.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(again); err != nil {
		t.Error(err)
	}
}
