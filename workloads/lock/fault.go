package lock

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"chokepoint/workloads"
)

// Fault is something that goes wrong on purpose, with a known cause.
type Fault struct {
	Name   string
	Strong bool // else mild
}

// String writes the fault as ParseFaults reads it.
func (f Fault) String() string {
	if f.Strong {
		return f.Name + ":strong"
	}
	return f.Name + ":mild"
}

// of chooses between the strengths.
func of[T any](f Fault, mild, strong T) T {
	if f.Strong {
		return strong
	}
	return mild
}

// faults are what each fault does to the workload: a file each.
func faults() map[string]func(w *Workload, f Fault) {
	return map[string]func(*Workload, Fault){
		"long-transaction": longTransaction,
		"metadata":         metadataLock,
		"holder-cpu":       holderCPU,
		"holder-redis":     holderRedis,
		"deadlock":         deadlock,
		"gap":              gap,
	}
}

// Faults names the faults.
func Faults() []string { return slices.Sorted(maps.Keys(faults())) }

// ParseFaults reads NAME[:mild|:strong][,NAME...]; without a strength a fault is
// strong. The empty text is no fault.
func ParseFaults(s string) ([]Fault, error) {
	if s == "" {
		return nil, nil
	}
	var out []Fault
	for part := range strings.SplitSeq(s, ",") {
		name, strength, given := strings.Cut(strings.TrimSpace(part), ":")
		switch {
		case faults()[name] == nil:
			return nil, fmt.Errorf("there is no fault %q; there are: %s", name, strings.Join(Faults(), ", "))
		case given && strength != "mild" && strength != "strong":
			return nil, fmt.Errorf("fault %s: there is no strength %q; there are mild and strong", name, strength)
		case slices.ContainsFunc(out, func(f Fault) bool { return f.Name == name }):
			return nil, fmt.Errorf("fault %s is named twice", name)
		}
		out = append(out, Fault{name, strength != "mild"})
	}
	return out, nil
}

// fits tells whether the faults go with the strategy and with each other.
func fits(o Options) error {
	for _, f := range o.Faults {
		replaces := f.Name == "deadlock" || f.Name == "gap"
		switch {
		case replaces && len(o.Faults) > 1:
			return fmt.Errorf("fault %s is an operation of its own, and goes with no other", f.Name)
		case o.Strategy != "pessimistic" && f.Name != "metadata":
			return fmt.Errorf("fault %s needs strategy pessimistic", f.Name)
		case f.Name == "deadlock" && o.Keys < 2:
			return fmt.Errorf("fault deadlock needs two rows or more (--keys)")
		}
	}
	return nil
}

// step is something that an operation does while it holds its row.
type step func(ctx context.Context, op *workloads.Op) error

// intruder does something to the server on a connection that is not the load's,
// until ctx ends.
type intruder func(ctx context.Context, db *sql.DB, table string) error

// Intrude runs the strangers of the faults until ctx ends, on connections of a
// pool that must bear neither the load's name nor its schema, so that their
// statements do not stand among the load's. It returns when all have ended.
func (w *Workload) Intrude(ctx context.Context, db *sql.DB, schema string) error {
	errs := make(chan error, len(w.intruders))
	for _, in := range w.intruders {
		go func() { errs <- in(ctx, db, schema+"."+Table) }()
	}
	var first error
	for range w.intruders {
		if err := <-errs; first == nil && ctx.Err() == nil {
			first = err
		}
	}
	return first
}

// Intrudes tells whether there are any.
func (w *Workload) Intrudes() bool { return len(w.intruders) > 0 }

// repeat runs statements on one connection again and again, with a pause between
// the rounds, until ctx ends; the last statement is run even then.
func repeat(ctx context.Context, db *sql.DB, pause time.Duration, statements ...string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	last := len(statements) - 1
	for workloads.Sleep(ctx, pause) {
		for _, q := range statements[:last] {
			if _, err := conn.ExecContext(ctx, q); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
		if _, err := conn.ExecContext(context.WithoutCancel(ctx), statements[last]); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", statements[last], err)
		}
	}
	return nil
}
