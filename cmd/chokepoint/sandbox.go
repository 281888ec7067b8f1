package main

import (
	"context"
	"fmt"

	"chokepoint/workloads/sandbox"
)

const sandboxHelp = `chokepoint sandbox starts private servers, prints how to reach them, and ends them
on Ctrl-C. They listen on Unix sockets only, and keep nothing.`

// sandboxCommand keeps private servers up until it is told to end.
func sandboxCommand(ctx context.Context, w world, args []string) error {
	fs := flags(w, "sandbox", sandboxHelp)
	flavor := fs.String("sandbox", "", "`flavour` of the MySQL server: mariadb or mysql; the first that is found if not given")
	safe := fs.Bool("durable", false, "with the binary log on and a flush at each commit, as real servers have")
	if err := parse(fs, args); err != nil {
		return err
	}
	o := sandbox.Options{Flavor: sandbox.Flavor(*flavor)}
	if *flavor != "" && o.Flavor != sandbox.MariaDB && o.Flavor != sandbox.MySQL {
		return usageError("sandbox: --sandbox %q: there are mariadb and mysql", *flavor)
	}
	if *safe {
		o.Variables = durable()
	}
	fmt.Fprintln(w.stderr, "starting private servers ...")
	sb, err := sandbox.Start(ctx, o)
	if err != nil {
		return err
	}
	for _, warning := range sb.Warnings() {
		fmt.Fprintf(w.stderr, "chokepoint: %s\n", warning)
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
