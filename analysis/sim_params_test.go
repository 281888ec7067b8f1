package analysis_test

import (
	"slices"
	"testing"
	"time"

	"chokepoint/workloads"
)

// Where the processors stand that a case has a shortage of. Their name is the
// name of the resource.
const (
	simDatabaseCPU = "cpu:database"  // the database's, which nobody else uses
	simAppCPU      = "go:processors" // the application's, hogs beside it
	simMachineCPU  = "cpu:machine"   // one machine for database and hogs
)

// simParams are the demands and capacities of a case; a change of the system
// is a change of them. Demands are means of Erlang-4 times.
type simParams struct {
	N     int           // workers of a closed loop
	T     time.Duration // in which operations are started
	Think time.Duration
	Rate  float64 // per second, of an open loop
	Slots int     // operations in flight of an open loop

	Pool    int           // connections, 0 is unlimited
	Timeout time.Duration // of the wait for a connection, 0 is none
	Rows    int

	Begin, Select, Update, Commit time.Duration // what the server does for a purchase
	Query                         time.Duration // what it does for the one statement of other operations
	QueryCPU                      time.Duration // on processors of the database, before Query

	Processors string // "" for a model in which no processor is short
	Cores      int
	AppCPU     time.Duration // under the row lock
	AppCPUAt   string        // the digest from whose return it is needed, or "app"
	AppWork    time.Duration // at the end, with nothing held

	Hogs               int // other processes of the machine
	HogRuns, HogPauses time.Duration

	ForeignEvery, ForeignHolds time.Duration // somebody else's transaction on the first row
	AlterAt, AlterTakes        time.Duration // an ALTER TABLE

	Mutexes int     // that admit so many queries at once
	Nested  float64 // chance that an operation wants a second connection
	Spin    simSpin
}

// simSpin is a lock in Redis that is asked for again and again.
type simSpin struct {
	Trip, Base, Cap time.Duration
	Retries         int
	Handoff         bool // the lock is handed over instead
}

// simPurchase are the demands of a purchase on an idle machine.
func simPurchase(n, pool, rows int, t time.Duration) simParams {
	return simParams{
		N: n, T: t, Pool: pool, Rows: rows,
		Begin: 100 * time.Microsecond, Select: 100 * time.Microsecond, Update: 200 * time.Microsecond, Commit: 100 * time.Microsecond,
	}
}

// simCase is a system whose trouble is known.
type simCase struct {
	name     string
	strategy string // what the record says was run
	want     string // what the method must name: layer/cause
	op       func(c *simClient) workloads.Outcome
	params   simParams
	changes  []simChange
	// x is the throughput that the reference simulation in Python printed, 0
	// if it printed none. It is erratic if another seed changes it by half.
	x       float64
	erratic bool
}

// simChange is something that somebody could do about it.
type simChange struct {
	name  string
	apply func(p *simParams)
	// gain is the ratio of throughputs that the reference simulation in Python
	// printed, 0 if it printed none.
	gain float64
}

// with returns the case after the named change.
func (c simCase) with(tb testing.TB, change string) simCase {
	tb.Helper()
	i := slices.IndexFunc(c.changes, func(ch simChange) bool { return ch.name == change })
	if i < 0 {
		tb.Fatalf("case %s has no change %q", c.name, change)
	}
	c.changes[i].apply(&c.params)
	return c
}

func simCaseNamed(tb testing.TB, name string) simCase {
	tb.Helper()
	cases := simCases()
	i := slices.IndexFunc(cases, func(c simCase) bool { return c.name == name })
	if i < 0 {
		tb.Fatalf("there is no case %q", name)
	}
	return cases[i]
}
