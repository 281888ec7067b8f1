package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"chokepoint/cmd/chokepoint/internal/session"
	collector "chokepoint/collectors/redis"
	"chokepoint/workloads/sandbox"
)

// dsnVariable is where a DSN may stand instead of on the command line, which
// every user of the machine can read.
const dsnVariable = "CHOKEPOINT_MYSQL_DSN"

// flavorFlag chooses the private server.
type flavorFlag struct{ name string }

func newFlavorFlag(fs *flag.FlagSet) *flavorFlag {
	f := &flavorFlag{}
	fs.StringVar(&f.name, "sandbox", "", "`flavour` of the private server: mariadb or mysql; the first that is found if not given")
	return f
}

func (f *flavorFlag) flavor(command string) (sandbox.Flavor, error) {
	switch got := sandbox.Flavor(f.name); got {
	case "", sandbox.MariaDB, sandbox.MySQL:
		return got, nil
	}
	return "", usageError("%s: --sandbox %q: there are mariadb and mysql", command, f.name)
}

// dsnFlag is the flag, or the environment's variable, that names a server.
type dsnFlag struct{ dsn string }

func newDSNFlag(fs *flag.FlagSet, purpose string) *dsnFlag {
	f := &dsnFlag{}
	fs.StringVar(&f.dsn, "mysql-dsn", "", "`DSN` of a server "+purpose+", as the Go driver writes it; one with a password belongs into the environment variable "+dsnVariable)
	return f
}

// config is the DSN that was given, nil if none was.
func (f *dsnFlag) config(w world, command string) (*mysql.Config, error) {
	if f.dsn != "" {
		cfg, err := parseDSN(f.dsn)
		if err == nil && cfg.Passwd != "" {
			err = fmt.Errorf("it holds a password, which every user of this machine can read in the list of processes: put the DSN into the environment variable %s", dsnVariable)
		}
		if err != nil {
			return nil, usageError("%s: --mysql-dsn: %w", command, err)
		}
		return cfg, nil
	}
	dsn := w.getenv(dsnVariable)
	if dsn == "" {
		return nil, nil
	}
	cfg, err := parseDSN(dsn)
	if err != nil {
		return nil, usageError("%s: %s: %w", command, dsnVariable, err)
	}
	return cfg, nil
}

// redisVariable is where the URL of a Redis server may stand.
const redisVariable = "CHOKEPOINT_REDIS_URL"

// redisFlag is the flag, or the environment's variable, that names a Redis
// server.
type redisFlag struct{ url string }

func newRedisFlag(fs *flag.FlagSet, purpose string) *redisFlag {
	f := &redisFlag{}
	fs.StringVar(&f.url, "redis-url", "", "`URL` of a Redis server "+purpose+": redis://, rediss:// or unix://; one with a password belongs into the environment variable "+redisVariable)
	return f
}

// options are those of the URL that was given, nil if none was.
func (f *redisFlag) options(w world, command string) (*redis.Options, error) {
	if f.url != "" {
		o, err := collector.ParseURL(f.url)
		if err == nil && o.Password != "" {
			err = fmt.Errorf("it holds a password, which every user of this machine can read in the list of processes: put the URL into the environment variable %s", redisVariable)
		}
		if err != nil {
			return nil, usageError("%s: --redis-url: %w", command, err)
		}
		return o, nil
	}
	url := w.getenv(redisVariable)
	if url == "" {
		return nil, nil
	}
	o, err := collector.ParseURL(url)
	if err != nil {
		return nil, usageError("%s: %s: %w", command, redisVariable, err)
	}
	return o, nil
}

// foreignRedis is the server of a URL.
func foreignRedis(o *redis.Options) session.Redis {
	r := session.Redis{Options: o}
	if o != nil && o.Network == "unix" {
		r.PID = peer(o.Addr)
	}
	return r
}

// privateRedis is the Redis server of a sandbox, if it has one.
func privateRedis(sb *sandbox.Sandbox) session.Redis {
	s := sb.Redis()
	if s == nil {
		return session.Redis{}
	}
	return session.Redis{Options: &redis.Options{Network: "unix", Addr: s.Socket}, Sandbox: true, PID: s.PID}
}

// parseDSN reads a DSN. The driver's own errors are not passed on: they quote
// what they take for the network's name, which may be a piece of a password.
func parseDSN(dsn string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, errors.New("this is no DSN of the Go driver; it looks like user:password@unix(/run/mysqld/mysqld.sock)/ or user:password@tcp(127.0.0.1:3306)/ (the slash at the end is needed)")
	}
	return cfg, nil
}

// foreign is the server of a DSN. On this machine its process is known by the
// Unix socket, so that its CPU can be seen.
func foreign(cfg *mysql.Config) session.MySQL {
	m := session.MySQL{Config: cfg}
	if cfg.Net == "unix" {
		m.PID = peer(cfg.Addr)
	}
	return m
}

// peer is the process that listens at a Unix socket, 0 if that is no server (a
// service manager that keeps its socket) or cannot be told (it runs in another
// container).
func peer(socket string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 0
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	for _, name := range []string{"mariadbd", "mysqld", "redis-server", "valkey-server", "ld-linux"} {
		if strings.HasPrefix(string(comm), name) {
			return pid
		}
	}
	return 0
}

// startSandbox starts private servers. The function that it returns ends them.
func startSandbox(ctx context.Context, w world, log *slog.Logger, o sandbox.Options) (*sandbox.Sandbox, func(), error) {
	fmt.Fprintln(w.stderr, "starting private servers ...")
	sb, err := sandbox.Start(ctx, o)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, errors.New("interrupted before the servers were ready")
	case err != nil:
		return nil, nil, err
	}
	for _, warning := range sb.Warnings() {
		log.Warn(warning)
	}
	return sb, func() {
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
