package sandbox

import (
	"os/exec"
	"runtime"
	"syscall"
)

// keeper forks the children of a sandbox, all from one thread that lives until
// end: the kernel kills them when that thread is gone (see the package comment).
type keeper struct{ work chan func() }

func newKeeper() *keeper {
	k := &keeper{work: make(chan func())}
	go k.loop()
	return k
}

func (k *keeper) loop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for f := range k.work {
		f()
	}
}

// start starts cmd in a process group of its own, to be killed when this
// process ends.
func (k *keeper) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	k.work <- func() { started <- cmd.Start() }
	return <-started
}

// end lets the thread go. It must come after the last child's end.
func (k *keeper) end() { close(k.work) }
