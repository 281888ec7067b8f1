package main

import (
	"context"
	"log/slog"
	"os"

	"chokepoint/cmd/chokepoint/internal/session"
	"chokepoint/collectors/host"
	"chokepoint/collectors/mysql"
	"chokepoint/dashboards/report"
	"chokepoint/workloads/sandbox"
)

const doctorHelp = `chokepoint doctor tells what can be observed here, what is missing, what that costs
a verdict, and the statements and settings that mend it. It reads only, works
without any rights, and prints what an administrator has to enter.

Without a DSN it looks at private servers, which it starts and ends.`

// doctorCommand looks at this machine and at the servers.
func doctorCommand(ctx context.Context, w world, args []string) error {
	fs := flags(w, "doctor", doctorHelp)
	dsn, which := newDSNFlag(fs, "to look at instead of a private one"), newFlavorFlag(fs)
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
	var server session.MySQL
	if cfg != nil {
		server = foreign(cfg)
	} else {
		sb, end, err := startSandbox(ctx, w, slog.New(slog.NewTextHandler(w.stderr, nil)), sandbox.Options{Flavor: flavor})
		if err != nil {
			return err
		}
		defer end()
		server = session.MySQL{Config: sb.MySQL().Config(), PID: sb.MySQL().PID}
	}
	d, err := diagnose(ctx, server)
	if err != nil {
		return advise(ctx, err)
	}
	if *format == "json" {
		return d.WriteJSON(w.stdout)
	}
	return d.WriteText(w.stdout, textStyle(w))
}

// diagnose looks at a server and at this machine.
func diagnose(ctx context.Context, server session.MySQL) (*report.Diagnosis, error) {
	s, err := mysql.Connect(ctx, server.Config)
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
	name := s.Flavor + " " + s.Text
	machine := host.Findings([]host.Process{{Name: "chokepoint", PID: os.Getpid()}, {Name: s.Process(), PID: server.PID}})
	return &report.Diagnosis{Tool: build().Version, Subjects: []report.Subject{
		{Name: name, User: server.Config.User, Findings: append(all, rights)},
		{Name: "this machine", Findings: machine},
	}}, nil
}
