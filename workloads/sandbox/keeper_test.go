package sandbox

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// onMortalThread runs f on a thread that ends after it. The first thread of a
// process never does: it is kept busy meanwhile, so that f gets another.
func onMortalThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if syscall.Gettid() != os.Getpid() {
			f()
			return // still locked: the thread ends with the goroutine
		}
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		onMortalThread(func() {
			defer close(done)
			f()
		})
		<-done
	}()
}

// A child outlives the thread that asked for it.
func TestKeeperOutlivesThread(t *testing.T) {
	k := newKeeper()
	defer k.end()
	cmd := exec.Command("cat")
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	thread, started := make(chan int, 1), make(chan error, 1)
	onMortalThread(func() {
		thread <- syscall.Gettid()
		started <- k.start(cmd)
	})
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	tid := <-thread
	eventually(t, "the thread ends", func() bool {
		return errors.Is(syscall.Tgkill(os.Getpid(), tid, 0), syscall.ESRCH)
	})
	// A child that is being killed runs no more, so it cannot answer.
	if _, err := io.WriteString(stdin, "alive\n"); err != nil {
		t.Error(err)
	}
	if got, err := bufio.NewReader(stdout).ReadString('\n'); got != "alive\n" {
		t.Errorf("the child answers %q, %v", got, err)
	}
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
