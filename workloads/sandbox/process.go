package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// pollEvery is how often a server that is starting is asked whether it is ready.
const pollEvery = 10 * time.Millisecond

// process is a server that was started.
type process struct {
	name   string // what errors call it
	log    string // path of the file with its output
	cmd    *exec.Cmd
	exited chan struct{} // closed once it has ended
	result error         // how it ended, to be read after exited
}

// launch starts a server that works in dir and writes to log.
func (k *keeper) launch(p program, dir, log string, args ...string) (*process, error) {
	// O_APPEND: the server's stdout and stderr are one file and must not
	// overwrite each other.
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(p.command[0], append(p.command[1:len(p.command):len(p.command)], args...)...)
	cmd.Dir = dir
	cmd.Env = environment(dir)
	cmd.Stdout, cmd.Stderr = out, out
	if err := k.start(cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	proc := &process{name: p.String(), log: log, cmd: cmd, exited: make(chan struct{})}
	go func() {
		proc.result = cmd.Wait()
		close(proc.exited)
	}()
	return proc, nil
}

// environment is the little that a server gets of ours: what systemd or a shell
// set for chokepoint (NOTIFY_SOCKET, LISTEN_FDS, MYSQL_HOME) is not meant for
// it, and Redis refuses to start in a locale that the machine does not have.
func environment(temp string) []string {
	env := []string{"LC_ALL=C", "TMPDIR=" + temp}
	for _, name := range []string{"PATH", "HOME", "TZ", "LD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// await asks ready until it is. It returns at once if the process ends. The
// context that ready gets ends with ctx and with the process.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		select {
		case <-p.exited:
		case <-asking.Done():
		}
	}()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ready(asking)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-asking.Done():
			return p.notReady(ctx, err)
		}
	}
}

// notReady says why the process did not get ready, last being how it answered.
func (p *process) notReady(ctx context.Context, last error) error {
	if ctx.Err() == nil {
		<-p.exited
		return fmt.Errorf("%s: ended while starting: %s%s", p.name, p.ending(), logTail(p.log))
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%s: start: %w", p.name, context.Cause(ctx))
	}
	return fmt.Errorf("%s: start: %w (it answers: %w)%s", p.name, context.Cause(ctx), last, logTail(p.log))
}

// ending is how the process ended.
func (p *process) ending() string {
	if p.result == nil {
		return "exit status 0"
	}
	return p.result.Error()
}

// stop ends the process, by force if it takes longer than grace. It is an error
// if the process had ended before.
func (p *process) stop(grace time.Duration) error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s: ended by itself: %s%s", p.name, p.ending(), logTail(p.log))
	default:
	}
	// An error of these signals means that it is just ending.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	return nil
}

// kill ends the process at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}
