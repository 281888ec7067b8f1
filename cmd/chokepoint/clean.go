package main

import (
	"context"
	"fmt"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"chokepoint/cmd/chokepoint/internal/session"
	mysqlcollector "chokepoint/collectors/mysql"
	"chokepoint/workloads/lock"
)

const cleanHelp = `chokepoint clean removes from a server what runs have left there: the schemas
named chokepoint_* that bear the marker table of chokepoint, and the keys of Redis
that begin with chokepoint_ if its marker is among them. It touches nothing else.
Private servers need no cleaning: they end with the command.`

// cleanCommand removes our schemas and keys from servers.
func cleanCommand(ctx context.Context, w world, args []string) error {
	fs := flags(w, "clean", cleanHelp)
	dsn, url := newDSNFlag(fs, "to clean"), newRedisFlag(fs, "to clean")
	if err := parse(fs, args); err != nil {
		return err
	}
	cfg, err := dsn.config(w, "clean")
	if err != nil {
		return err
	}
	o, err := url.options(w, "clean")
	switch {
	case err != nil:
		return err
	case cfg == nil && o == nil:
		return usageError("clean: which server? Put its DSN into the environment variable %s (or its URL into %s), or give --mysql-dsn (--redis-url)", dsnVariable, redisVariable)
	}
	if cfg != nil {
		if err := cleanMySQL(ctx, w, cfg); err != nil {
			return advise(ctx, err)
		}
	}
	if o != nil {
		return advise(ctx, cleanRedis(ctx, w, o))
	}
	return nil
}

func cleanMySQL(ctx context.Context, w world, cfg *mysql.Config) error {
	server, err := mysqlcollector.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer server.DB.Close()
	dropped, left, err := session.Clean(ctx, server.DB)
	for _, name := range dropped {
		fmt.Fprintf(w.stdout, "dropped schema %s\n", name)
	}
	for _, name := range left {
		fmt.Fprintf(w.stderr, "chokepoint: left schema %s alone: it has no marker of ours\n", name)
	}
	if err == nil && len(dropped) == 0 {
		fmt.Fprintln(w.stdout, "no schema of ours is on this server")
	}
	return err
}

func cleanRedis(ctx context.Context, w world, o *redis.Options) error {
	ours, err := session.CleanRedis(ctx, o)
	switch {
	case err != nil:
		return err
	case ours:
		fmt.Fprintf(w.stdout, "deleted the keys that begin with %s\n", lock.KeyPrefix)
	default:
		fmt.Fprintln(w.stdout, "no keys of ours are on this Redis server")
	}
	return nil
}
