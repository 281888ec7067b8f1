package main

import (
	"context"
	"fmt"

	"chokepoint/cmd/chokepoint/internal/session"
	"chokepoint/collectors/mysql"
)

const cleanHelp = `chokepoint clean removes from a server what runs have left there: the schemas
named chokepoint_* that bear the marker table of chokepoint. It touches nothing
else. Private servers need no cleaning: they end with the command.`

// cleanCommand removes our schemas from a server.
func cleanCommand(ctx context.Context, w world, args []string) error {
	fs := flags(w, "clean", cleanHelp)
	dsn := newDSNFlag(fs, "to clean")
	if err := parse(fs, args); err != nil {
		return err
	}
	cfg, err := dsn.config(w, "clean")
	if err != nil {
		return err
	}
	if cfg == nil {
		return usageError("clean: which server? Put its DSN into the environment variable %s, or give --mysql-dsn", dsnVariable)
	}
	server, err := mysql.Connect(ctx, cfg)
	if err != nil {
		return advise(ctx, err)
	}
	defer server.DB.Close()
	dropped, left, err := session.Clean(ctx, server.DB)
	for _, name := range dropped {
		fmt.Fprintf(w.stdout, "dropped schema %s\n", name)
	}
	for _, name := range left {
		fmt.Fprintf(w.stderr, "chokepoint: left schema %s alone: it has no marker of ours\n", name)
	}
	if err != nil {
		return advise(ctx, err)
	}
	if len(dropped) == 0 {
		fmt.Fprintln(w.stdout, "nothing of ours is on this server")
	}
	return nil
}
