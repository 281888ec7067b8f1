package main

import (
	"context"
	"log/slog"
	"os"

	"chokepoint/cmd/chokepoint/internal/session"
	"chokepoint/collectors/host"
	"chokepoint/collectors/mysql"
	"chokepoint/collectors/redis"
	"chokepoint/dashboards/report"
	"chokepoint/workloads/sandbox"
)

const doctorHelp = `chokepoint doctor tells what can be observed here, what is missing, what that costs
a verdict, and the statements and settings that mend it. It reads only, works
without any rights, and prints what an administrator has to enter.

Without a DSN and a URL it looks at private servers, which it starts and ends.`

// doctorCommand looks at this machine and at the servers.
func doctorCommand(ctx context.Context, w world, args []string) error {
	fs := flags(w, "doctor", doctorHelp)
	dsn, url, which := newDSNFlag(fs, "to look at"), newRedisFlag(fs, "to look at"), newFlavorFlag(fs)
	format := fs.String("output", "text", "`format`: text or json")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *format != "text" && *format != "json" {
		return usageError("doctor: there is no output format %q; there are text and json", *format)
	}
	flavor, err := which.flavor("doctor")
	if err != nil {
		return err
	}
	cfg, err := dsn.config(w, "doctor")
	if err != nil {
		return err
	}
	o, err := url.options(w, "doctor")
	if err != nil {
		return err
	}
	var to target
	if cfg != nil || o != nil {
		to.redis = foreignRedis(o)
		if cfg != nil {
			to.mysql = foreign(cfg)
		}
	} else {
		sb, end, err := startSandbox(ctx, w, slog.New(slog.NewTextHandler(w.stderr, nil)), sandbox.Options{Flavor: flavor})
		if err != nil {
			return err
		}
		defer end()
		to = target{mysql: session.MySQL{Config: sb.MySQL().Config(), PID: sb.MySQL().PID}, redis: privateRedis(sb)}
	}
	d, err := diagnose(ctx, to)
	if err != nil {
		return advise(ctx, err)
	}
	if *format == "json" {
		return d.WriteJSON(w.stdout)
	}
	return d.WriteText(w.stdout, textStyle(w))
}

// diagnose looks at the servers that there are, and at this machine.
func diagnose(ctx context.Context, to target) (*report.Diagnosis, error) {
	d := &report.Diagnosis{Tool: build().Version}
	processes := []host.Process{{Name: "chokepoint", PID: os.Getpid()}}
	if to.mysql.Config != nil {
		s, err := mysql.Connect(ctx, to.mysql.Config)
		if err != nil {
			return nil, err
		}
		defer s.DB.Close()
		all, err := s.Findings(ctx)
		if err != nil {
			return nil, err
		}
		rights, err := s.LoadRights(ctx, session.Schema)
		if err != nil {
			return nil, err
		}
		d.Subjects = append(d.Subjects, report.Subject{Name: s.Flavor + " " + s.Text, User: to.mysql.Config.User, Findings: append(all, rights)})
		processes = append(processes, host.Process{Name: s.Process(), PID: to.mysql.PID})
	}
	if to.redis.Options != nil {
		s, err := redis.Connect(ctx, to.redis.Options)
		if err != nil {
			return nil, err
		}
		defer s.Client.Close()
		d.Subjects = append(d.Subjects, report.Subject{Name: s.Flavor + " " + s.Version, User: to.redis.Options.Username, Findings: s.Findings(ctx)})
		processes = append(processes, host.Process{Name: s.Process(), PID: to.redis.PID})
	}
	d.Subjects = append(d.Subjects, report.Subject{Name: "this machine", Findings: host.Findings(processes)})
	return d, nil
}
