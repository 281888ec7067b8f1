package main

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

// binary builds the command into a folder that every user may read.
func binary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chokepoint-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "chokepoint")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// started is a command that runs.
type started struct {
	*exec.Cmd
	out   bytes.Buffer
	ended chan error
}

func start(t *testing.T, cmd *exec.Cmd) *started {
	t.Helper()
	s := &started{Cmd: cmd, ended: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = &s.out, &s.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- cmd.Wait() }()
	return s
}

// measuring waits until the run measures.
func (s *started) measuring(t *testing.T, runs string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !measuring(runs) {
		select {
		case err := <-s.ended:
			t.Fatalf("the run ended by itself: %v\n%s", err, s.out.String())
		case <-tick.C:
		}
	}
}

// TestLiveSecondInterrupt: while a run drains behind a server that stands still,
// a second signal ends it at once, with nothing left behind.
func TestLiveSecondInterrupt(t *testing.T) {
	sandboxtest.Start(t, sandbox.Options{}) // skips where there are no servers
	runs := t.TempDir()
	s := start(t, exec.Command(binary(t), "run", "lock", "--concurrency", "20", "--duration", "60s", "--warmup", "100ms", "--runs", runs))
	s.measuring(t, runs)
	for _, p := range serverProcesses(t) {
		if p.parent == s.Process.Pid {
			signalTo(t, p.pid, syscall.SIGSTOP)
		}
	}
	signalTo(t, s.Process.Pid, syscall.SIGINT)
	signalTo(t, s.Process.Pid, syscall.SIGTERM) // two of one kind may become one
	var exit *exec.ExitError
	if err := <-s.ended; !errors.As(err, &exit) || exit.ExitCode() != exitKilled {
		t.Errorf("it ended with %v, want exit code %d\n%s", err, exitKilled, s.out.String())
	}
	nothingLeft(t)
}

// TestLiveOrdinaryUser drops root: a user without rights makes a run.
func TestLiveOrdinaryUser(t *testing.T) {
	sandboxtest.Start(t, sandbox.Options{}) // skips where there are no servers
	if os.Geteuid() != 0 {
		t.Skip("these tests run as an ordinary user already")
	}
	const nobody = 65534
	home, err := os.MkdirTemp("", "chokepoint-home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "run", "lock", "--concurrency", "50", "--requests", "1000", "--sandbox", "mariadb")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	s := start(t, cmd)
	if err := <-s.ended; err != nil || !strings.Contains(s.out.String(), "books (units left in stock)") {
		t.Errorf("%v\n%s", err, s.out.String())
	}
}

// TestLiveSecretInProcesses: the password of a DSN does not come into the list
// of processes, nor into the environment of any child.
func TestLiveSecretInProcesses(t *testing.T) {
	sb := sandboxtest.Start(t, sandbox.Options{})
	db, err := sql.Open("mysql", sb.MySQL().Config().FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{"CREATE USER load_user@localhost IDENTIFIED BY " + quoted(secret), "GRANT ALL ON *.* TO load_user@localhost"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	cfg := sb.MySQL().Config()
	cfg.User, cfg.Passwd = "load_user", secret
	runs := t.TempDir()
	cmd := exec.Command(binary(t), "run", "lock", "--allow-load", "--concurrency", "20", "--duration", "1s", "--runs", runs)
	cmd.Env = append(os.Environ(), dsnVariable+"="+cfg.FormatDSN())
	s := start(t, cmd)
	s.measuring(t, runs)
	seen := 0
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		seen++
		if strings.Contains(string(text), secret) {
			t.Errorf("%s holds the password: %q", file, text)
		}
	}
	if err := <-s.ended; err != nil || seen < 3 || strings.Contains(s.out.String(), secret) {
		t.Errorf("%v, %d processes seen\n%s", err, seen, s.out.String())
	}
	nowhere(t, runs, secret)
}
