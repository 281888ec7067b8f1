package sandbox

import (
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
)

const (
	defaultConnections = 500
	// observers is the head-room above Options.MaxConnections for those who
	// watch: collectors, a readiness query, a person with a client.
	observers = 16
)

// Options says what a sandbox must hold. The zero value is a good one.
type Options struct {
	// Flavor is MySQL or MariaDB; empty takes the first that is found.
	Flavor Flavor
	// Redis is the Redis or Valkey server to take, one of RedisVersions; empty
	// takes the first.
	Redis string
	// MaxConnections is how many connections the workload may open to MySQL;
	// the server gets a few more for observers. 0 means 500.
	MaxConnections int
	// Variables are further options of mysqld, by name without the dashes:
	// {"innodb-lock-wait-timeout": "5"}. They come last, so they win.
	Variables map[string]string
	// Log hears about progress; nil is silence.
	Log *slog.Logger
}

// complete checks the options and fills in the defaults.
func (o Options) complete() (Options, error) {
	switch o.Flavor {
	case "", MySQL, MariaDB:
	default:
		return o, fmt.Errorf("flavor %q is neither %s nor %s", o.Flavor, MySQL, MariaDB)
	}
	if o.MaxConnections < 0 {
		return o, fmt.Errorf("MaxConnections is %d", o.MaxConnections)
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = defaultConnections
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	name := regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]*$`)
	for v := range o.Variables {
		if !name.MatchString(v) {
			return o, fmt.Errorf("%q is not the name of a server variable", v)
		}
	}
	return o, nil
}

// arguments are the variables as mysqld takes them, in a stable order.
func (o Options) arguments() []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(o.Variables)) {
		args = append(args, "--"+name+"="+o.Variables[name])
	}
	return args
}
