package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A server that runs but never answers ends the start at its deadline, with its
// last answer.
func TestAwaitDeadline(t *testing.T) {
	k := newKeeper()
	defer k.end()
	dir := t.TempDir()
	p, err := k.launch(program{[]string{"/bin/sh"}, Redis, "1.2"}, dir, filepath.Join(dir, "log"),
		"-c", "echo loading; exec sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it writes its log", func() bool { return strings.Contains(logTail(p.log), "loading") })
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, errors.New("too late"))
	defer cancel()
	err = p.await(ctx, func(context.Context) error { return errors.New("not yet") })
	if want := "redis 1.2: start: too late (it answers: not yet)\nlast lines of its log:\n  loading"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := p.stop(time.Minute); err != nil {
		t.Error(err)
	}
}

func TestLaunchFails(t *testing.T) {
	k := newKeeper()
	defer k.end()
	dir := t.TempDir()
	_, err := k.launch(program{[]string{filepath.Join(dir, "none")}, MySQL, "9.7"}, dir, filepath.Join(dir, "log"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "mysql 9.7") {
		t.Errorf("got %v", err)
	}
}

// What systemd set for chokepoint does not reach a server, which would act on it.
func TestEnvironment(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/run/systemd/notify")
	t.Setenv("LC_ALL", "xx_XX.UTF-8")
	t.Setenv("PATH", "/bin")
	env := environment("/t")
	for _, want := range []string{"LC_ALL=C", "TMPDIR=/t", "PATH=/bin"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in %q", want, env)
		}
	}
	if strings.Contains(strings.Join(env, " "), "NOTIFY_SOCKET") {
		t.Errorf("environment: %q", env)
	}
}

func TestLastLines(t *testing.T) {
	long := strings.Repeat("old\n", 50) + strings.Repeat("new\n", tailLines)
	for text, want := range map[string]string{
		"":       "\n(its log is empty)",
		" \n\n":  "\n(its log is empty)",
		"a\nb\n": "\nlast lines of its log:\n  a\n  b",
		long:     "\nlast lines of its log:" + strings.Repeat("\n  new", tailLines),
	} {
		if got := lastLines(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := logTail(filepath.Join(t.TempDir(), "none")); !strings.Contains(got, "no such file") {
		t.Errorf("without a log: %q", got)
	}
}
