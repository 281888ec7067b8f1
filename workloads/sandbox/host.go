package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// socketPathMax is how many bytes the kernel takes for a Unix socket's path.
const socketPathMax = 107

// host is where a sandbox finds what it needs and puts what it makes.
type host struct {
	bin    []string // folders searched for programs, in this order
	trees  []string // unpacked servers, see treeCommands
	caches []string // folders for templates, the first usable one is taken
	temp   string   // folder for sandboxes
}

func thisHost() host {
	temp := os.TempDir()
	h := host{temp: temp}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) { // a relative entry is whatever folder we happen to be in
			h.bin = append(h.bin, dir)
		}
	}
	h.bin = append(h.bin, "/usr/sbin", "/usr/local/sbin", "/usr/libexec")
	if tree := os.Getenv("CHOKEPOINT_MYSQL_TREE"); tree != "" {
		h.trees = append(h.trees, tree)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		h.caches = append(h.caches, filepath.Join(cache, "chokepoint"))
		for _, name := range []string{"mysql-tree", "redis-tree"} {
			h.trees = append(h.trees, filepath.Join(cache, "chokepoint", name))
		}
	}
	h.caches = append(h.caches, filepath.Join(temp, "chokepoint-"+strconv.Itoa(os.Geteuid())))
	return h
}

// shortTemp is the folder for sandboxes: temp, or /tmp if the sockets' paths
// would not fit below it.
func (h host) shortTemp() string {
	temp, err := filepath.Abs(h.temp)
	longest := filepath.Join(temp, folderPrefix+"4294967295", redisSocket)
	if err != nil || len(longest) > socketPathMax {
		return "/tmp"
	}
	return temp
}

// cache returns a folder for templates that we own and may write to. The user's
// cache folder may be none of this: a service has no home, and sudo may leave
// HOME pointing to someone else's.
func (h host) cache() (string, error) {
	var errs []error
	for _, dir := range h.caches {
		err := ownFolder(dir)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no folder for templates: %w", errors.Join(errs...))
}

// ownFolder makes dir if it is missing, and makes sure that it is ours: what is
// in it will be run as a server's data.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !ours(info) || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s: not a folder that only we may write to", dir)
	}
	const writable = 2
	if err := syscall.Access(dir, writable); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// ours reports whether info is of a folder, not a link to one, that belongs to
// this process' user.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(stat.Uid) == os.Geteuid()
}
