package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const folderPrefix = "chokepoint-sandbox-"

// folder is the private folder of a sandbox. It belongs to whoever holds the
// flock on the folder itself, for as long as that process lives.
//
// Note: a lock file inside the folder was the other way. It has a hole: while
// the file is missing, just after the folder is made or just before it is gone,
// two processes may each make one and both believe that they own the folder.
// The folder's own inode cannot be made twice. Besides, systemd-tmpfiles leaves
// a folder in /tmp alone, however old, while an flock is held on it.
type folder struct {
	path string
	held *os.File // the open, locked folder
}

// newFolder makes a folder below base, mode 0700, and holds it.
//
// Between making and locking it, a sweep by another process may take it for a
// left-behind one. Then claim fails here, whatever the order: the sweep has the
// lock, or it has removed the folder. We leave that one to it and make another.
func newFolder(base string) (*folder, error) {
	const tries = 100
	for range tries {
		path, err := os.MkdirTemp(base, folderPrefix)
		if err != nil {
			return nil, err
		}
		f, err := claim(path)
		if f != nil || err != nil {
			return f, err
		}
	}
	return nil, fmt.Errorf("%s: each of %d new folders was taken away at once", base, tries)
}

// claim takes the lock of the folder at path. It returns nil if another has it
// or if the folder is gone: locked, but no longer the one at path, is gone.
func claim(path string) (*folder, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	locked, err := tryLock(dir, syscall.LOCK_EX)
	if locked && isAt(dir, path) {
		return &folder{path, dir}, nil
	}
	dir.Close()
	return nil, err
}

// isAt reports whether the open file is what path names now.
func isAt(f *os.File, path string) bool {
	opened, err1 := f.Stat()
	now, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(opened, now)
}

// remove removes the folder while its lock is held, then gives the lock back.
func (f *folder) remove() error {
	return errors.Join(os.RemoveAll(f.path), f.held.Close())
}

// sweep removes the folders below base that killed processes of this user left
// behind, and returns what it could not do.
func sweep(base string) []error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return []error{err}
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		info, err := e.Info()
		if err != nil || !ours(info) { // an error: it has gone since
			continue
		}
		f, err := claim(filepath.Join(base, e.Name()))
		if f != nil {
			err = f.remove()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("left-behind folder: %w", err))
		}
	}
	return errs
}
