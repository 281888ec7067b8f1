package sandbox

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// After kill -9 of the owner no server is left, and the next start removes the
// folder.
func TestOwnerKilled(t *testing.T) {
	needServers(t)
	t.Parallel()
	h := testHost(t)
	c := startChild(t, h.temp, nil)
	held := c.ready(t)
	if n := len(processesNaming(t, held.Folder)); n != 2 {
		t.Errorf("%d processes name the folder, want both servers", n)
	}
	c.kill(t)
	eventually(t, "the servers are gone", func() bool { return len(processesNaming(t, held.Folder)) == 0 })
	if _, err := os.Stat(held.Folder); err != nil {
		t.Error("the folder of the killed owner: ", err)
	}
	s := mustStart(t, h, Options{})
	if _, err := os.Stat(held.Folder); !os.IsNotExist(err) {
		t.Errorf("after the next start: %v, want no folder", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A start leaves the sandbox of a living process alone.
func TestOwnerLives(t *testing.T) {
	needServers(t)
	t.Parallel()
	h := testHost(t)
	c := startChild(t, h.temp, nil)
	held := c.ready(t)
	s := mustStart(t, h, Options{})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := len(processesNaming(t, held.Folder)); n != 2 {
		t.Errorf("%d processes name the folder, want both servers", n)
	}
	c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Error("child: ", err)
	}
	if !gone(held.MySQL) || !gone(held.Redis) {
		t.Error("the servers are still there")
	}
}

// Ctrl-C goes to the whole process group of the terminal; the servers are not
// in it, so their owner can still work with them.
func TestInterrupt(t *testing.T) {
	needServers(t)
	t.Parallel()
	c := startChild(t, testHost(t).temp, &syscall.SysProcAttr{Setpgid: true})
	c.ready(t)
	if err := syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if line, err := c.out.ReadString('\n'); line != "answers: true\n" {
		t.Errorf("after the interrupt: %q, %v", line, err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Error("child: ", err)
	}
}

// A killed initialisation leaves nothing that is used later.
func TestInitialisationKilled(t *testing.T) {
	needServers(t)
	t.Parallel()
	h := testHost(t)
	home := filepath.Join(h.temp, "home")
	h.caches = []string{filepath.Join(home, "chokepoint")}
	c := startChild(t, h.temp, nil, "XDG_CACHE_HOME="+home)
	const half = "home/chokepoint/*.new-*"
	eventually(t, "an initialisation starts", func() bool { return len(glob(t, h.temp, half+"/data/ibdata1")) > 0 })
	c.kill(t)
	killed := glob(t, h.temp, half)
	if len(killed) == 0 {
		t.Log("the initialisation was done before it was killed")
	}
	s := mustStart(t, h, Options{})
	if err := s.mysql.ping(t.Context()); err != nil {
		t.Error(err)
	}
	if left := glob(t, h.temp, half); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Any user can start a sandbox, without a home, too.
func TestOtherUser(t *testing.T) {
	needServers(t)
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("CI is set, and only root can be another user")
		}
		t.Skip("NOT TESTED: only root can be another user")
	}
	t.Parallel()
	const nobody = 65534
	h := testHost(t)
	if err := os.Chown(h.temp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, h.temp, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}},
		"HOME=/nonexistent", "XDG_CACHE_HOME=")
	held := c.ready(t)
	info, err := os.Stat(held.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != nobody {
		t.Errorf("the folder belongs to %d", uid)
	}
	cache, err := os.Stat(filepath.Join(h.temp, "chokepoint-65534"))
	if err != nil {
		t.Fatal(err)
	}
	if cache.Mode().Perm() != 0o700 {
		t.Errorf("mode of %s is %v", cache.Name(), cache.Mode())
	}
	c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Error("child: ", err)
	}
}
