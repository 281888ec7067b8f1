// Chokepoint says what holds a service's throughput back, and proves it.
//
// It runs known workloads on MySQL or MariaDB, keeps what it saw as a record,
// and explains where the operations' time went. `chokepoint help` lists the
// commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Exit codes.
const (
	exitOK        = 0
	exitError     = 1
	exitUsage     = 2
	exitUnmet     = 3 // an expectation was not met
	exitUndecided = 4 // an expectation could not be decided
	exitKilled    = 130
)

// world is what a command sees of its surroundings.
type world struct {
	getenv func(string) string
	stdout io.Writer
	stderr io.Writer
}

// command is one subcommand: it parses its own arguments.
type command struct {
	name, args, short string
	run               func(ctx context.Context, w world, args []string) error
}

func commands() []command {
	return []command{
		{"run", "WORKLOAD [flags]", "run a workload and explain where its time went", runCommand},
		{"analyze", "--run-id ID", "explain the record of a run", analyzeCommand},
		{"profile", "--run-id ID", "show the functions of a run's profiles, or how another's differ", profileCommand},
		{"runs", "list|show|verify|...", "list, show, check, pack and remove records", runsCommand},
		{"selftest", "", "inject known faults, and score what the analysis makes of them", selftestCommand},
		{"doctor", "", "what can be observed here, what is missing, and the GRANTs to mend it", doctorCommand},
		{"clean", "", "remove from a server what runs have left there", cleanCommand},
		{"sandbox", "", "start private servers, print their addresses, end on Ctrl-C", sandboxCommand},
		{"version", "", "print the version of this build", versionCommand},
	}
}

// exitCode is an error that asks for a certain exit code.
type exitCode struct {
	code int
	err  error
}

func (e exitCode) Error() string { return e.err.Error() }
func (e exitCode) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return exitCode{exitUsage, fmt.Errorf(format, args...)}
}

func main() {
	redis.SetLogger(silence{}) // its errors come back, and are outcomes and faults
	ctx, stop := interruptible(context.Background())
	code := run(ctx, world{os.Getenv, os.Stdout, os.Stderr}, os.Args[1:])
	stop()
	os.Exit(code)
}

// silence is what go-redis logs to: it has one logger a process.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// interruptible ends ctx at the first Ctrl-C or SIGTERM and the process at the
// second. Servers of a sandbox end with the process.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitKilled)
	}()
	return ctx, cancel
}

// run performs one command line and returns its exit code.
func run(ctx context.Context, w world, args []string) int {
	if len(args) == 0 {
		usage(w.stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(w.stdout)
		return exitOK
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return finish(w, c.run(ctx, w, args[1:]))
		}
	}
	fmt.Fprintf(w.stderr, "chokepoint: there is no command %q; `chokepoint help` lists them\n", args[0])
	return exitUsage
}

// finish prints an error and turns it into an exit code.
func finish(w world, err error) int {
	var e exitCode
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &e):
		fmt.Fprintf(w.stderr, "chokepoint: %v\n", err)
		return e.code
	default:
		fmt.Fprintf(w.stderr, "chokepoint: %v\n", err)
		return exitError
	}
}

func usage(out io.Writer) {
	fmt.Fprint(out, "chokepoint says what holds a service on MySQL and Redis back, and proves it.\n\nUsage:\n")
	for _, c := range commands() {
		fmt.Fprintf(out, "  chokepoint %-8s %-22s %s\n", c.name, c.args, c.short)
	}
	fmt.Fprint(out, "\n`chokepoint COMMAND -h` explains a command. Try first: chokepoint run lock\n")
}

// flags makes the flag set of a command; help goes to stdout, since it was
// asked for.
func flags(w world, name, head string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(w.stdout)
	fs.Usage = func() {
		fmt.Fprintf(w.stdout, "%s\n\nFlags:\n", head)
		fs.PrintDefaults()
	}
	return fs
}

// parse reads the flags; what is wrong with them is a usage error, and words
// that are no flags are too.
func parse(fs *flag.FlagSet, args []string) error {
	help, usage := fs.Output(), fs.Usage
	fs.SetOutput(io.Discard) // the error comes back, and is printed once
	fs.Usage = func() {}
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(help)
		usage()
		return err
	case err != nil:
		return usageError("%s: %v (`chokepoint %s -h` lists the flags)", fs.Name(), err, fs.Name())
	case fs.NArg() > 0:
		return usageError("%s: what is %q? Flags begin with --%s", fs.Name(), fs.Arg(0), swallowed(fs))
	}
	return nil
}

// swallowed tells of a flag that took the next flag for its value.
func swallowed(fs *flag.FlagSet) (hint string) {
	fs.Visit(func(f *flag.Flag) {
		if strings.HasPrefix(f.Value.String(), "--") {
			hint = fmt.Sprintf(", and --%s wants a value", f.Name)
		}
	})
	return hint
}
