package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// templateFormat is part of a template's name. It is raised when the
// way of initialising changes, so that older ones are not used.
const templateFormat = 1

// template is an initialised data folder that is kept to be copied: dir/data,
// and dir/manifest with the size of each file. Nothing in it ever changes. It is
// read under a shared and made under an exclusive lock of the file dir.lock.
type template struct{ dir string }

func newTemplate(cache string, p program) template {
	unsafe := regexp.MustCompile(`[^A-Za-z0-9.+~-]`)
	name := fmt.Sprintf("%s-%s-%d", p.flavor, unsafe.ReplaceAllString(p.version, "_"), templateFormat)
	return template{filepath.Join(cache, name)}
}

func (t template) data() string     { return filepath.Join(t.dir, "data") }
func (t template) manifest() string { return filepath.Join(t.dir, "manifest") }

// initialiser makes the data folder at data, with temp for what it needs on the
// way. Every process that it starts inherits held.
type initialiser func(ctx context.Context, data, temp string, held *os.File) error

// copyTo makes data a copy of the template, which it makes first if need be.
func (t template) copyTo(ctx context.Context, data string, run initialiser) error {
	ok, err := t.copyIfWhole(ctx, data)
	if ok || err != nil {
		return err
	}
	lock, err := lockFile(ctx, t.dir+".lock", syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer unlock(lock)
	if !t.whole() { // else another was first
		if err := t.make(ctx, run, lock); err != nil {
			return err
		}
	}
	return os.CopyFS(data, os.DirFS(t.data()))
}

func (t template) copyIfWhole(ctx context.Context, data string) (bool, error) {
	lock, err := lockFile(ctx, t.dir+".lock", syscall.LOCK_SH)
	if err != nil {
		return false, err
	}
	defer unlock(lock)
	if !t.whole() {
		return false, nil
	}
	return true, os.CopyFS(data, os.DirFS(t.data()))
}

// whole reports whether the template is there and has all its files. Part of
// them may be missing after a power cut or a cleaner's visit.
func (t template) whole() bool {
	want, err := os.ReadFile(t.manifest())
	if err != nil {
		return false
	}
	got, err := listFiles(t.data())
	return err == nil && got == string(want)
}

// make initialises the template in a folder beside it and renames that when it
// is whole, so that a killed initialisation leaves nothing that is ever used.
// The exclusive lock is held; the processes of the initialisation inherit it,
// so that one which outlives us still keeps others out until it has ended. What
// is found half-made is therefore nobody's.
func (t template) make(ctx context.Context, run initialiser, held *os.File) error {
	const mark = ".new-"
	halves, err := filepath.Glob(t.dir + mark + "*")
	if err != nil {
		return err
	}
	for _, old := range append(halves, t.dir) {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	temp, err := os.MkdirTemp(filepath.Dir(t.dir), filepath.Base(t.dir)+mark)
	if err != nil {
		return err
	}
	if err := fill(ctx, template{temp}, run, held); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return os.Rename(temp, t.dir)
}

// fill initialises t, a template that nobody else sees.
func fill(ctx context.Context, t template, run initialiser, held *os.File) error {
	work := filepath.Join(t.dir, "tmp")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	if err := run(ctx, t.data(), work, held); err != nil {
		return err
	}
	// auto.cnf is a MySQL server's identity: each copy makes its own.
	err := errors.Join(os.RemoveAll(work), os.RemoveAll(filepath.Join(t.data(), "auto.cnf")))
	if err != nil {
		return err
	}
	list, err := listFiles(t.data())
	if err != nil {
		return err
	}
	return os.WriteFile(t.manifest(), []byte(list), 0o600)
}
