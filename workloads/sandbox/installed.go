package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// NotInstalledError says that a program was not found on this machine.
type NotInstalledError struct {
	Program string // what was looked for: "mariadbd or mysqld"
	Command string // what installs it on Debian and Ubuntu
}

// Error names the command.
func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("no %s found; on Debian or Ubuntu, install with: %s", e.Program, e.Command)
}

func notInstalled(what string, packages ...string) *NotInstalledError {
	command := "apt-get install --no-install-recommends " + strings.Join(packages, " ")
	if os.Geteuid() != 0 {
		command = "sudo " + command
	}
	return &NotInstalledError{Program: what, Command: command}
}

func notInstalledServers(what string) *NotInstalledError {
	return notInstalled(what, "mariadb-server-core", "mariadb-client-core", "redis-server")
}

// program is a server that can be started.
type program struct {
	// command is what goes before the arguments: the path of the program. A
	// server from an unpacked tree has its tree's loader there, then its path.
	command []string
	flavor  Flavor
	version string
}

// String is what messages call the server.
func (p program) String() string { return string(p.flavor) + " " + p.version }

// Installed tells whether a server of the flavor can be started here; if not,
// how to get one.
func Installed(ctx context.Context, want Flavor) (missing *NotInstalledError, err error) {
	_, err = thisHost().findMySQL(ctx, want)
	if missing, ok := errors.AsType[*NotInstalledError](err); ok {
		return missing, nil
	}
	return nil, err
}

// findMySQL returns the first server of the flavor that is wanted; of either,
// if none is named.
func (h host) findMySQL(ctx context.Context, want Flavor) (program, error) {
	p, err := h.find(ctx, parseMySQL, want, "mariadbd", "mysqld")
	if err != nil || len(p.command) > 0 {
		return p, err
	}
	if want == MySQL {
		return p, &NotInstalledError{
			Program: "mysqld of MySQL (MariaDB's will not do)",
			Command: "apt-get install mysql-server-core-8.0 (Ubuntu), or scripts/install-tree.sh mysql (Debian: unpacks it into the cache folder)",
		}
	}
	return p, notInstalledServers("mariadbd or mysqld")
}

// findRedis returns the Redis or Valkey server of that version, the first if
// none is named.
func (h host) findRedis(ctx context.Context, version string) (program, error) {
	all, err := h.redisPrograms(ctx)
	for _, p := range all {
		if version == "" || version == p.String() {
			return p, nil
		}
	}
	if err != nil {
		return program{}, err
	}
	return program{}, notInstalledServers("redis-server or valkey-server")
}

// redisPrograms are all Redis and Valkey servers of this machine, each version
// once. The error is of those that cannot tell their version.
func (h host) redisPrograms(ctx context.Context) ([]program, error) {
	var all []program
	var errs []error
	names := []string{"redis-server", "valkey-server"}
	for _, command := range append(h.commands(names...), h.treeCommands(names...)...) {
		p, err := identify(ctx, command, parseRedis)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !slices.ContainsFunc(all, func(q program) bool { return q.String() == p.String() }):
			all = append(all, p)
		}
	}
	return all, errors.Join(errs...)
}

// RedisVersions are the Redis and Valkey servers that can be started here, such
// as "redis 7.0.15"; see Options.Redis.
func RedisVersions(ctx context.Context) ([]string, error) {
	all, err := thisHost().redisPrograms(ctx)
	var out []string
	for _, p := range all {
		out = append(out, p.String())
	}
	return out, err
}

// find asks each program of these names for its version, until one has the
// wanted flavor: a name proves nothing, Debian's mysqld is MariaDB. A program
// that cannot tell its version is an error only if no other can. Without any the
// result has no command.
func (h host) find(ctx context.Context, parse func(string) (Flavor, string, bool), want Flavor, names ...string) (program, error) {
	var errs []error
	for _, command := range append(h.commands(names...), h.treeCommands(names...)...) {
		p, err := identify(ctx, command, parse)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if want == "" || p.flavor == want {
			return p, nil
		}
	}
	return program{}, errors.Join(errs...)
}

// identify asks a program for its version.
func identify(ctx context.Context, command []string, parse func(string) (Flavor, string, bool)) (program, error) {
	out, err := versionOf(ctx, command)
	if err != nil {
		return program{}, err
	}
	flavor, version, ok := parse(out)
	if !ok {
		return program{}, fmt.Errorf("%s --version: not understood: %q", command[len(command)-1], out)
	}
	return program{command, flavor, version}, nil
}

// commands are the paths as commands.
func (h host) commands(names ...string) [][]string {
	var out [][]string
	for _, path := range h.paths(names...) {
		out = append(out, []string{path})
	}
	return out
}

// treeCommands start the programs of unpacked trees (scripts/install-tree.sh):
// they were built for another release's libraries, which lie beside them, and
// run by the tree's own loader.
func (h host) treeCommands(names ...string) [][]string {
	var out [][]string
	for _, tree := range h.trees {
		loaders, _ := filepath.Glob(filepath.Join(tree, "lib*", "ld-linux-*.so.*"))
		libs, _ := filepath.Glob(filepath.Join(tree, "usr", "lib", "*-linux-gnu*"))
		if len(loaders) == 0 || len(libs) == 0 {
			continue
		}
		libs = append(libs, filepath.Join(tree, "usr", "lib", "mysql", "private"))
		for _, name := range names {
			for _, dir := range []string{"sbin", "bin"} {
				if path, err := exec.LookPath(filepath.Join(tree, "usr", dir, name)); err == nil {
					out = append(out, []string{loaders[0], "--library-path", strings.Join(libs, ":"), path})
				}
			}
		}
	}
	return out
}

// paths are the executables of these names, each name in all folders before the
// next.
func (h host) paths(names ...string) []string {
	var found []string
	for _, name := range names {
		for _, dir := range h.bin {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				found = append(found, path)
			}
		}
	}
	return found
}

func versionOf(ctx context.Context, command []string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], "--version")...)
	cmd.Env = environment(os.TempDir())
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", command[len(command)-1], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// parseMySQL reads what `mysqld --version` prints:
//
//	mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)
//	/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))
func parseMySQL(s string) (Flavor, string, bool) {
	m := regexp.MustCompile(`\bVer (\d+\.\d+\S*)`).FindStringSubmatch(s)
	if m == nil {
		return "", "", false
	}
	if strings.Contains(s, "MariaDB") {
		return MariaDB, m[1], true
	}
	return MySQL, m[1], true
}

// parseRedis reads what `redis-server --version` prints:
//
//	Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a948f0
func parseRedis(s string) (Flavor, string, bool) {
	m := regexp.MustCompile(`^(Redis|Valkey) server v=(\d+\.\d+\S*)`).FindStringSubmatch(s)
	if m == nil {
		return "", "", false
	}
	return Flavor(strings.ToLower(m[1])), m[2], true
}
