package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for _, c := range []struct {
		parse           func(string) (Flavor, string, bool)
		text            string
		flavor, version string
	}{
		// Debian's mysqld is a link to mariadbd, and says so only in the version.
		{parseMySQL, "mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)", "mariadb", "10.11.19-MariaDB-0+deb12u1"},
		{parseMySQL, "mariadbd  Ver 11.4.2-MariaDB-ubu2404 for debian-linux-gnu on x86_64 (mariadb.org binary distribution)", "mariadb", "11.4.2-MariaDB-ubu2404"},
		{parseMySQL, "/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", "mysql", "9.7.4-2"},
		{parseMySQL, "/usr/sbin/mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28, Revision 47601f19)", "mysql", "8.0.36-28"},
		{parseMySQL, "mysqld: error while loading shared libraries", "", ""},
		{parseRedis, "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a948f0", "redis", "7.0.15"},
		{parseRedis, "Valkey server v=8.1.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=0", "valkey", "8.1.1"},
		{parseRedis, "", "", ""},
	} {
		f, v, ok := c.parse(c.text)
		if string(f) != c.flavor || v != c.version || ok != (c.flavor != "") {
			t.Errorf("%q: got %q %q %v", c.text, f, v, ok)
		}
	}
}

// A server's flavor decides, not its name.
func TestFindByFlavor(t *testing.T) {
	needServers(t)
	h := thisHost()
	h.bin = append([]string{"testdata/mysql"}, h.bin...)
	for want, program := range map[Flavor]string{"": "mariadbd", MariaDB: "mariadbd", MySQL: "mysqld"} {
		p, err := h.findMySQL(t.Context(), want)
		if err != nil {
			t.Error(want, ": ", err)
			continue
		}
		if filepath.Base(p.command[0]) != program || want != "" && p.flavor != want {
			t.Errorf("%q: found %v %s", want, p.command, p)
		}
	}
}

// A broken program does not hide a good one, but is told of if it is alone.
func TestFindBroken(t *testing.T) {
	p, err := host{bin: []string{"testdata/odd", "testdata/mysql"}}.findMySQL(t.Context(), "")
	if err != nil || p.flavor != MySQL || p.version != "9.7.4-2" {
		t.Errorf("beside a broken program: %v, %v", p, err)
	}
	_, err = host{bin: []string{"testdata/odd"}}.findMySQL(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "testdata/odd/mariadbd --version: exit status 127") {
		t.Errorf("alone: %v", err)
	}
}

func TestNotInstalled(t *testing.T) {
	command := "apt-get install --no-install-recommends mariadb-server-core mariadb-client-core redis-server"
	if os.Geteuid() != 0 {
		command = "sudo " + command
	}
	h := host{bin: []string{t.TempDir()}, temp: shortTempDir(t)}
	_, err := h.start(t.Context(), Options{})
	missing, ok := errors.AsType[*NotInstalledError](err)
	if !ok || missing.Command != command || !strings.Contains(err.Error(), command) {
		t.Errorf("no server: %v", err)
	}
	if left := glob(t, h.temp, "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	_, err = h.start(t.Context(), Options{Flavor: MySQL})
	if _, ok := errors.AsType[*NotInstalledError](err); !ok || !strings.Contains(err.Error(), "mysqld of MySQL") {
		t.Errorf("no MySQL: %v", err)
	}
}

// withoutRedis is a folder with what MariaDB needs, and nothing else.
func withoutRedis(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	p, err := thisHost().findMySQL(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]string{filepath.Base(p.command[0]): p.command[0]}
	if p.flavor == MariaDB {
		script, err := exec.LookPath("mariadb-install-db")
		if err != nil {
			t.Fatal(err)
		}
		links["mariadb-install-db"] = script
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Without Redis, or with one that does not start, there is a sandbox and a
// warning that says why.
func TestWithoutRedis(t *testing.T) {
	needServers(t)
	for _, c := range []struct{ name, bin, want string }{
		{"not installed", "", "no redis-server or valkey-server found"},
		{"dies", "testdata/dying", "Fatal error: this Redis never starts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := testHost(t)
			h.bin, h.trees = []string{withoutRedis(t)}, nil
			if c.bin != "" {
				dir, err := filepath.Abs(c.bin)
				if err != nil {
					t.Fatal(err)
				}
				h.bin = append(h.bin, dir)
			}
			s := mustStart(t, h, Options{})
			if s.Redis() != nil {
				t.Error("there is a Redis")
			}
			if w := strings.Join(s.Warnings(), "\n"); !strings.Contains(w, c.want) {
				t.Errorf("warnings: %q, want %q", w, c.want)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Flavor: Redis}, "flavor"},
		{Options{MaxConnections: -1}, "MaxConnections"},
		{Options{Variables: map[string]string{"--port": "1"}}, "not the name"},
		{Options{Variables: map[string]string{"": "1"}}, "not the name"},
	} {
		if _, err := c.o.complete(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	o := Options{Variables: map[string]string{"b": "2", "a": "1"}}
	if got := strings.Join(o.arguments(), " "); got != "--a=1 --b=2" {
		t.Errorf("arguments: %s", got)
	}
}

// The script that installs servers finds those that we find.
func TestInstallScript(t *testing.T) {
	needServers(t)
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "../../scripts/install-servers.sh").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "nothing to do") {
		t.Errorf("with all servers here: %v\n%s", err, out)
	}
}

// TestRedisVersions: each Redis and Valkey server of this machine can be asked
// for, and is what starts.
func TestRedisVersions(t *testing.T) {
	all, err := RedisVersions(t.Context())
	if len(all) == 0 {
		t.Skip("no Redis here (another test fails for that in CI): ", err)
	}
	for _, version := range all {
		s, err := thisHost().open()
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.startRedis(t.Context(), thisHost(), version)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.Flavor) + " " + r.Version; got != version {
			t.Errorf("%s starts where %s was asked for", got, version)
		}
		s.redis = r
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := thisHost().findRedis(t.Context(), "redis 1.0"); err == nil {
		t.Error("there is a Redis 1.0")
	}
}
