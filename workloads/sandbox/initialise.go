package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// initialiser returns the way in which p makes a data folder.
func (k *keeper) initialiser(h host, p program) (initialiser, error) {
	command, err := initCommand(h, p)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, data, temp string, held *os.File) error {
		args := append(command[1:len(command):len(command)],
			"--datadir="+data, "--tmpdir="+temp, "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF")
		args = append(args, engineSizes(p.flavor)...)
		cmd := exec.CommandContext(ctx, command[0], args...)
		cmd.Dir = temp
		cmd.Env = environment(temp)
		cmd.ExtraFiles = []*os.File{held}
		return k.run(ctx, p.String()+": initialise", cmd)
	}, nil
}

// initCommand is what initialises a data folder, before the options that are
// the same for both flavors. MariaDB does it by a script of its package.
func initCommand(h host, p program) ([]string, error) {
	var user []string
	if os.Geteuid() == 0 {
		user = []string{"-uroot"}
	}
	if p.flavor == MySQL {
		return append(append(p.command[:len(p.command):len(p.command)],
			"--no-defaults", "--initialize-insecure", "--skip-log-bin"), user...), nil
	}
	beside := filepath.Dir(p.command[len(p.command)-1])
	h.bin = append([]string{beside, filepath.Join(beside, "..", "bin")}, h.bin...)
	scripts := h.paths("mariadb-install-db", "mysql_install_db")
	if len(scripts) == 0 {
		return nil, notInstalledServers("mariadb-install-db")
	}
	// The user is given to the server as -uroot, which the script hands on.
	// --user=root it would take for itself, and change the owner of the PAM
	// tool in the system's plugin folder.
	return append([]string{scripts[0], "--no-defaults", "--auth-root-authentication-method=normal",
		"--skip-test-db", "--skip-name-resolve", "--force"}, user...), nil
}

// run runs cmd to its end. When ctx ends it kills the command and all that it
// has started, and returns when they are gone: they are if they no longer hold
// the pipe that takes their output.
func (k *keeper) run(ctx context.Context, name string, cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	err := k.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", name, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("%s: %w%s", name, err, lastLines(out.String()))
	}
	return nil
}
