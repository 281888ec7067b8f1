package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childEnv makes the test binary a process that holds a sandbox.
const childEnv = "CHOKEPOINT_TEST_HOLDS_SANDBOX"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		m.Run()
		return
	}
	if err := hold(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// holding is what the child prints when its sandbox is ready.
type holding struct {
	Folder string
	MySQL  int // pid
	Redis  int // pid, 0 without Redis
}

// hold holds a sandbox until stdin ends or an interrupt comes; after the
// interrupt it says whether the servers still answer.
func hold() error {
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	s, err := Start(context.Background(), Options{})
	if err != nil {
		return err
	}
	ready := holding{Folder: s.folder.path, MySQL: s.mysql.PID}
	if s.redis != nil {
		ready.Redis = s.redis.PID
	}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
	case <-interrupt:
		err := errors.Join(s.mysql.ping(context.Background()), pingRedis(context.Background(), s.redis.Socket))
		fmt.Println("answers:", err == nil)
	}
	return s.Close()
}

// child is a running child process.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

// startChild starts a child whose temporary folder is temp, with further
// settings of the environment.
func startChild(t *testing.T, temp string, as *syscall.SysProcAttr, env ...string) *child {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = as
	cmd.Env = append(os.Environ(), append(env, childEnv+"=1", "TMPDIR="+temp)...)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &child{cmd, stdin, bufio.NewReader(stdout)}
}

// ready waits until the child has its sandbox.
func (c *child) ready(t *testing.T) holding {
	t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		t.Fatal("child: ", err)
	}
	var h holding
	if err := json.Unmarshal(line, &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// kill kills the child as kill -9 does.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.cmd.Wait()
}

// needServers skips the test without servers, or fails it where CI is set.
func needServers(t *testing.T) {
	t.Helper()
	h := thisHost()
	_, mysqlErr := h.findMySQL(t.Context(), "")
	_, redisErr := h.findRedis(t.Context(), "")
	err := errors.Join(mysqlErr, redisErr)
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal("CI is set, and ", err)
	default:
		t.Skip("NOT TESTED: ", err)
	}
}

// testHost is this machine with a temporary folder of the test's own, which the
// test must leave without a sandbox and without a process that works in it.
func testHost(t *testing.T) host {
	t.Helper()
	h := thisHost()
	h.temp = shortTempDir(t)
	t.Cleanup(func() {
		if left := glob(t, h.temp, folderPrefix+"*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if left := processesNaming(t, h.temp); len(left) > 0 {
			t.Errorf("processes left behind: %v", left)
		}
	})
	return h
}

// shortTempDir is t.TempDir with a path that leaves room for a socket's name.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// mustStart starts a sandbox and closes it after the test.
func mustStart(t *testing.T, h host, o Options) *Sandbox {
	t.Helper()
	s, err := h.start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(60 * time.Second)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// processesNaming returns the command lines of processes that name path.
func processesNaming(t *testing.T, path string) []string {
	t.Helper()
	var found []string
	for _, file := range glob(t, "/proc", "[0-9]*/cmdline") {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), path) { // an error: it has ended
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// parentAndGroup reads ppid and pgrp from /proc/PID/stat.
func parentAndGroup(t *testing.T, pid int) (parent, group int) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	parent, err1 := strconv.Atoi(f[1])
	group, err2 := strconv.Atoi(f[2])
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return parent, group
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
