package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"chokepoint/workloads/sandbox"
)

func TestStart(t *testing.T) {
	var folder string
	t.Run("inner", func(t *testing.T) {
		s := Start(t, sandbox.Options{MaxConnections: 10})
		folder = s.MySQL().Socket
		if _, err := os.Stat(folder); err != nil {
			t.Error(err)
		}
		if r := Redis(t, s); r.PID == 0 {
			t.Error("Redis without a process")
		}
	})
	if folder == "" {
		t.Skip("NOT TESTED: the sandbox did not start")
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the test: %v, want no socket", err)
	}
}

// verdict is a TB that notes how the test was ended.
type verdict struct {
	testing.TB
	how, log string
}

func (v *verdict) Helper()                    {}
func (v *verdict) Skip(args ...any)           { v.end("skip", args) }
func (v *verdict) Fatal(args ...any)          { v.end("fail", args) }
func (v *verdict) Error(args ...any)          { v.how, v.log = "error", v.log+fmt.Sprint(args...) }
func (v *verdict) Failed() bool               { return true }
func (v *verdict) Logf(f string, args ...any) { v.log += fmt.Sprintf(f, args...) }

func (v *verdict) end(how string, args []any) {
	v.how, v.log = how, fmt.Sprint(args...)
	runtime.Goexit()
}

// watch runs f, which may end its goroutine, with a verdict.
func watch(t *testing.T, f func(testing.TB)) *verdict {
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(v)
	}()
	<-done
	return v
}

func TestRefuse(t *testing.T) {
	missing := fmt.Errorf("sandbox: %w", &sandbox.NotInstalledError{Program: "mysqld", Command: "apt-get install x"})
	for _, c := range []struct {
		name, ci string
		err      error
		how, log string
	}{
		{"at home a missing server skips, loudly", "", missing, "skip", "NOT TESTED"},
		{"and tells how to get one", "", missing, "skip", "apt-get install x"},
		{"in CI it fails", "true", missing, "fail", "CI is set"},
		{"another error always fails", "", errors.New("disk full"), "fail", "disk full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("CI", c.ci)
			v := watch(t, func(tb testing.TB) { refuse(tb, c.err) })
			if v.how != c.how || !strings.Contains(v.log, c.log) {
				t.Errorf("got %s %q, want %s %q", v.how, v.log, c.how, c.log)
			}
		})
	}
}

func TestNoRedis(t *testing.T) {
	t.Setenv("CI", "")
	v := watch(t, func(tb testing.TB) { Redis(tb, new(sandbox.Sandbox)) })
	if v.how != "skip" || !strings.Contains(v.log, "needs Redis") {
		t.Errorf("got %s %q", v.how, v.log)
	}
}

func TestLogsOfFailedTest(t *testing.T) {
	s, err := sandbox.Start(t.Context(), sandbox.Options{})
	if err != nil {
		refuse(t, err)
	}
	v := watch(t, func(tb testing.TB) { end(tb, s) })
	if !strings.Contains(v.log, "ready for connections") || v.how != "" {
		t.Errorf("got %s %q, want the server's log", v.how, v.log)
	}
}
