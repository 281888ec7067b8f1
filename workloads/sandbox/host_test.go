package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestShortTemp(t *testing.T) {
	fits := "/" + strings.Repeat("x", socketPathMax-len("/chokepoint-sandbox-4294967295/mysql.sock")-1)
	for temp, want := range map[string]string{
		"/tmp":      "/tmp",
		"/var/tmp/": "/var/tmp",
		fits:        fits,
		fits + "x":  "/tmp",
	} {
		if got := (host{temp: temp}).shortTemp(); got != want {
			t.Errorf("%s: got %s, want %s", temp, got, want)
		}
	}
}

func TestThisHost(t *testing.T) {
	t.Setenv("PATH", "/a:relative::/b")
	t.Setenv("XDG_CACHE_HOME", "/cache")
	t.Setenv("TMPDIR", "/some/tmp")
	h := thisHost()
	if got := strings.Join(h.bin, ":"); got != "/a:/b:/usr/sbin:/usr/local/sbin:/usr/libexec" {
		t.Errorf("programs are searched in %s", got)
	}
	if len(h.caches) != 2 || h.caches[0] != "/cache/chokepoint" || !strings.HasPrefix(h.caches[1], "/some/tmp/chokepoint-") {
		t.Errorf("caches: %q", h.caches)
	}
}

func TestCache(t *testing.T) {
	base := t.TempDir()
	file := write(t, "", base, "file")
	shared := mkdir(t, base, "shared")
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(base, "new", "chokepoint")
	link := filepath.Join(base, "link")
	if err := os.Symlink(mkdir(t, base, "target"), link); err != nil {
		t.Fatal(err)
	}
	got, err := host{caches: []string{filepath.Join(file, "below"), shared, link, good}}.cache()
	if err != nil || got != good {
		t.Errorf("got %s, %v; want %s", got, err, good)
	}
	info, err := os.Stat(good)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode of a new cache folder: %v, %v", info.Mode(), err)
	}
	_, err = host{caches: []string{shared, link}}.cache()
	if err == nil || !strings.Contains(err.Error(), shared) || !strings.Contains(err.Error(), link) {
		t.Errorf("without a usable folder: %v", err)
	}
}
