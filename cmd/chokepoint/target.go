package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-sql-driver/mysql"

	"chokepoint/cmd/chokepoint/internal/session"
	"chokepoint/workloads/sandbox"
)

// dsnVariable is where a DSN may stand instead of on the command line, which
// every user of the machine can read.
const dsnVariable = "CHOKEPOINT_MYSQL_DSN"

// target starts what the load runs against: the server of the DSN that was
// given, or a sandbox. The function that it returns ends it.
func (f *runFlags) target(ctx context.Context, w world, log *slog.Logger, p session.Plan) (session.MySQL, func(), error) {
	dsn := *f.dsn
	if dsn == "" {
		dsn = w.getenv(dsnVariable)
	}
	if dsn == "" {
		return f.startSandbox(ctx, w, log, p)
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil { // the driver's errors do not repeat the DSN
		return session.MySQL{}, nil, usageError("run: --mysql-dsn: %w (such as user:password@unix(/run/mysqld/mysqld.sock)/ or user:password@tcp(127.0.0.1:3306)/)", err)
	}
	if !*f.allow {
		return session.MySQL{}, nil, usageError("run: this would load the server at %s, which chokepoint did not start; if that is what you want, say --allow-load (it works in schema %s only)", cfg.Addr, session.Schema)
	}
	if *f.sandbox != "" || *f.durable {
		return session.MySQL{}, nil, usageError("run: --sandbox and --durable are for private servers, and a DSN is given")
	}
	return session.MySQL{Config: cfg}, func() {}, nil
}

// startSandbox starts private servers.
func (f *runFlags) startSandbox(ctx context.Context, w world, log *slog.Logger, p session.Plan) (session.MySQL, func(), error) {
	fmt.Fprintln(w.stderr, "starting private servers ...")
	need := p.Pool
	if need == 0 {
		need = p.Concurrency
	}
	o := sandbox.Options{Flavor: sandbox.Flavor(*f.sandbox), MaxConnections: need}
	if *f.durable {
		o.Variables = durable()
	}
	sb, err := sandbox.Start(ctx, o)
	if err != nil {
		return session.MySQL{}, nil, err
	}
	for _, warning := range sb.Warnings() {
		log.Warn(warning)
	}
	my := sb.MySQL()
	return session.MySQL{Config: my.Config(), Sandbox: true, PID: my.PID}, func() {
		if err := sb.Close(); err != nil {
			log.Warn("ending the sandbox", "error", firstLine(err))
		}
	}, nil
}

// firstLine is an error without the log lines that may follow.
func firstLine(err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(text)
}
