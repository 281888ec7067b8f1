package main

import (
	"context"
	"fmt"
	"log/slog"

	"chokepoint/workloads/sandbox"
)

const sandboxHelp = `chokepoint sandbox starts private servers, prints how to reach them, and ends them
on Ctrl-C. They listen on Unix sockets only, and keep nothing.`

// sandboxCommand keeps private servers up until it is told to end.
func sandboxCommand(ctx context.Context, w world, args []string) error {
	fs := flags(w, "sandbox", sandboxHelp)
	which := newFlavorFlag(fs)
	safe := fs.Bool("durable", false, "with the binary log on and a flush at each commit, as real servers have")
	if err := parse(fs, args); err != nil {
		return err
	}
	flavor, err := which.flavor("sandbox")
	if err != nil {
		return err
	}
	o := sandbox.Options{Flavor: flavor}
	if *safe {
		o.Variables = durable()
	}
	sb, _, err := startSandbox(ctx, w, slog.New(slog.NewTextHandler(w.stderr, nil)), o)
	if err != nil {
		return err
	}
	my := sb.MySQL()
	fmt.Fprintf(w.stdout, "%s %s\n  DSN     root@unix(%s)/\n  client  mysql --no-defaults -u root -S %s\n", my.Flavor, my.Version, my.Socket, my.Socket)
	if r := sb.Redis(); r != nil {
		fmt.Fprintf(w.stdout, "%s %s\n  URL     unix://%s\n  client  redis-cli -s %s\n", r.Flavor, r.Version, r.Socket, r.Socket)
	}
	fmt.Fprintln(w.stderr, "Ctrl-C ends them.")
	<-ctx.Done()
	return sb.Close()
}
