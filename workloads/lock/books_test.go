package lock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chokepoint/workloads"
	"chokepoint/workloads/lock"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

// counters are the server's own counts of statements.
func (s sale) counters(t *testing.T) map[string]int {
	t.Helper()
	rows, err := s.pool.DB.Query(`SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_begin', 'Com_commit', 'Com_rollback', 'Com_select', 'Com_update')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			t.Fatal(err)
		}
		if out[name], err = strconv.Atoi(value); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// entries are the times that operations entered each stage.
func (s sale) entries() map[workloads.Stage]int {
	out := map[workloads.Stage]int{}
	for _, c := range s.meter.Read().Totals {
		out[c.Stage] += int(c.Entries)
	}
	return out
}

// TestBooksAndServer: twenty workers buy 300 times each, of one row. The books
// are exact, and the server ran what the meter says that operations waited for.
func TestBooksAndServer(t *testing.T) {
	const n = 20 * 300
	server := sandboxtest.Start(t, sandbox.Options{})
	for _, c := range []struct {
		strategy           string
		statements, commit int // stages entered by one operation
		ran                map[string]int
	}{
		// BEGIN, SELECT FOR UPDATE, UPDATE; COMMIT.
		{"pessimistic", 3, 1, map[string]int{"Com_begin": n, "Com_commit": n, "Com_rollback": 0, "Com_select": n, "Com_update": n}},
		// One UPDATE, which commits by itself.
		{"atomic", 1, 0, map[string]int{"Com_begin": 0, "Com_commit": 0, "Com_rollback": 0, "Com_select": 0, "Com_update": n}},
	} {
		s := open(t, server, "chokepoint_"+c.strategy, lock.Options{Strategy: c.strategy, Keys: 1, Stock: 10_000})
		before := s.counters(t)
		out := s.drive(t, 20, n, time.Minute)
		ran := s.counters(t)
		for name := range ran {
			ran[name] -= before[name]
		}
		if d := cmp.Diff(map[workloads.Outcome]int64{workloads.OK: n}, out); d != "" {
			t.Errorf("%s: outcomes %s", c.strategy, d)
		}
		if b := s.audit(t); b != (lock.Books{Left: 10_000 - n}) {
			t.Errorf("%s: books %+v, want %d left", c.strategy, b, 10_000-n)
		}
		if d := cmp.Diff(c.ran, ran); d != "" {
			t.Errorf("%s: the server ran %s", c.strategy, d)
		}
		if e := s.entries(); e[workloads.Statement] != c.statements*n || e[workloads.Commit] != c.commit*n {
			t.Errorf("%s: the meter says %v, want %d statements and %d commits", c.strategy, e, c.statements*n, c.commit*n)
		}
	}
}

// TestSetupAndAudit: many rows need several INSERTs, and the audit is
// arithmetic on what the table holds.
func TestSetupAndAudit(t *testing.T) {
	s := open(t, sandboxtest.Start(t, sandbox.Options{}), "chokepoint_rows", lock.Options{Strategy: "atomic", Keys: 2500, Stock: 3})
	exec := func(query string) {
		t.Helper()
		if _, err := s.pool.DB.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, want lock.Books) {
		t.Helper()
		if got := s.audit(t); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	var rows, first, last int
	if err := s.pool.DB.QueryRow("SELECT COUNT(*), MIN(id), MAX(id) FROM "+lock.Table).Scan(&rows, &first, &last); err != nil {
		t.Fatal(err)
	}
	if rows != 2500 || first != 1 || last != 2500 {
		t.Errorf("%d rows from %d to %d", rows, first, last)
	}
	check("full", lock.Books{Left: 7500})
	exec("UPDATE stock SET quantity = -2 WHERE id IN (7, 8)") // 5 less and 2 too many, each
	check("oversold", lock.Books{Left: 7490, Oversold: 4})
	exec("DELETE FROM stock")
	check("nothing there", lock.Books{})
	if err := s.Setup(t.Context()); err != nil { // makes it new
		t.Fatal(err)
	}
	check("made new", lock.Books{Left: 7500})
	exec("DROP TABLE stock")
	if _, err := s.Audit(t.Context()); err == nil {
		t.Error("a table that is not there has books")
	}
}

// hold locks the row 1 until the returned function is called.
func (s sale) hold(t *testing.T) (release func()) {
	t.Helper()
	tx, err := s.pool.DB.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SELECT quantity FROM stock WHERE id = 1 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

// TestRowHeld: what operations make of a row that another one keeps. None of
// them sells anything for certain, and afterwards the pool works.
func TestRowHeld(t *testing.T) { sandboxtest.EachFlavor(t, testRowHeld) }

func testRowHeld(t *testing.T, flavor sandbox.Flavor) {
	server := sandboxtest.Start(t, sandbox.Options{Flavor: flavor, Variables: map[string]string{"innodb-lock-wait-timeout": "1"}})
	for _, c := range []struct {
		name, strategy string
		limit          time.Duration
		want           workloads.Outcome
	}{
		{"the operation's limit comes before the commit", "pessimistic", 200 * time.Millisecond, lock.Timeout},
		{"it comes in the statement that commits", "atomic", 200 * time.Millisecond, lock.CommitUnknown},
		{"the server's limit comes first", "pessimistic", 10 * time.Second, lock.LockWaitTimeout},
		{"the server's answer is known", "atomic", 10 * time.Second, lock.LockWaitTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, server, "chokepoint_held_"+strconv.Itoa(int(c.limit.Milliseconds()))+c.strategy, lock.Options{Strategy: c.strategy, Keys: 1, Stock: 10})
			release := s.hold(t)
			if out := s.drive(t, 3, 3, c.limit); out[c.want] != 3 {
				t.Errorf("outcomes %v, want 3 of %s", out, c.want)
			}
			release()
			for _, cell := range s.meter.Read().Totals {
				if cell.Open != 0 {
					t.Errorf("still open: %+v", cell)
				}
			}
			if out := s.drive(t, 3, 6, 10*time.Second); out[workloads.OK] != 6 {
				t.Errorf("afterwards: outcomes %v, want 6 ok", out)
			}
			// An answer that never came leaves open whether the sale was made.
			unknown := int64(0)
			if c.want == lock.CommitUnknown {
				unknown = 3
			}
			if b := s.audit(t); b.Left > 10-6 || b.Left < 10-6-unknown || b.Oversold != 0 {
				t.Errorf("%+v, want 4 left, or up to %d fewer", b, unknown)
			}
		})
	}
}

// TestPoolUsedUp: an operation that gets no connection in its time says so.
func TestPoolUsedUp(t *testing.T) {
	s := open(t, sandboxtest.Start(t, sandbox.Options{}), "chokepoint_pool", lock.Options{Strategy: "pessimistic", Keys: 1, Stock: 10})
	s.pool.DB.SetMaxOpenConns(1)
	release := s.hold(t)
	if out := s.drive(t, 2, 2, 50*time.Millisecond); out[lock.PoolTimeout] != 2 {
		t.Errorf("outcomes %v, want 2 of %s", out, lock.PoolTimeout)
	}
	release()
	if out := s.drive(t, 2, 2, 10*time.Second); out[workloads.OK] != 2 {
		t.Errorf("afterwards: outcomes %v, want 2 ok", out)
	}
}

// TestConnectionKilled: the server ends the connection of an operation that
// waits for a row. It is told as lost or, where the server still had time to say
// so, by the code of an interrupted query; the pool works on.
func TestConnectionKilled(t *testing.T) { sandboxtest.EachFlavor(t, testConnectionKilled) }

func testConnectionKilled(t *testing.T, flavor sandbox.Flavor) {
	s := open(t, sandboxtest.Start(t, sandbox.Options{Flavor: flavor}), "chokepoint_killed", lock.Options{Strategy: "pessimistic", Keys: 1, Stock: 10})
	release := s.hold(t)
	killed := make(chan error, 1)
	go func() { killed <- s.killWaiter(t) }()
	out := s.drive(t, 1, 1, 10*time.Second)
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	if out[lock.ConnectionLost]+out["mysql_1317"]+out["mysql_1927"] != 1 {
		t.Errorf("outcomes %v, want a lost connection", out)
	}
	release()
	if out := s.drive(t, 2, 4, 10*time.Second); out[workloads.OK] != 4 {
		t.Errorf("afterwards: outcomes %v, want 4 ok", out)
	}
	if b := s.audit(t); b.Left != 6 {
		t.Errorf("%+v, want 6 left", b)
	}
}

// killWaiter kills the connection that stands in a SELECT ... FOR UPDATE, once
// there is one.
func (s sale) killWaiter(t *testing.T) error {
	const find = `SELECT IFNULL(MAX(ID), 0) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND INFO LIKE 'SELECT quantity%FOR UPDATE'`
	for t.Context().Err() == nil {
		var id int
		if err := s.pool.DB.QueryRow(find).Scan(&id); err != nil {
			return err
		}
		if id != 0 {
			_, err := s.pool.DB.Exec("KILL " + strconv.Itoa(id))
			return err
		}
	}
	return t.Context().Err()
}

// TestOptimistic: the books are exact, and each conflict that was counted is an
// UPDATE that the server ran without effect.
func TestOptimistic(t *testing.T) {
	const n = 20 * 50
	server := sandboxtest.Start(t, sandbox.Options{})
	s := open(t, server, "chokepoint_optimistic", lock.Options{Strategy: "optimistic", Keys: 1, Stock: 10_000, MaxRetries: 1000,
		Backoff: workloads.BackoffPolicy{Base: time.Millisecond, Cap: 20 * time.Millisecond, Jitter: workloads.FullJitter}})
	before := s.counters(t)
	out := s.drive(t, 20, n, time.Minute)
	ran := s.counters(t)
	if d := cmp.Diff(map[workloads.Outcome]int64{workloads.OK: n}, out); d != "" {
		t.Errorf("outcomes %s", d)
	}
	if b := s.audit(t); b != (lock.Books{Left: 10_000 - n}) {
		t.Errorf("books %+v, want %d left", b, 10_000-n)
	}
	r := s.meter.Read()
	conflicts := int(r.Counted[workloads.Counted{Operation: lock.Operation, What: lock.CountConflicts}])
	if updates := ran["Com_update"] - before["Com_update"]; conflicts == 0 || updates != n+conflicts {
		t.Errorf("%d conflicts were counted; the server ran %d updates for %d sales", conflicts, updates, n)
	}
	var retried, all float64
	for _, c := range r.Totals {
		all += c.Seconds
		if c.Retry {
			retried += c.Seconds
		}
	}
	t.Logf("%d conflicts for %d sales; %.0f %% of the time in retried attempts", conflicts, n, 100*retried/all)
	if retried == 0 || retried >= all {
		t.Errorf("%.3f of %.3f s are retried attempts", retried, all)
	}
}

// TestOptimisticGivesUp: without retries a lost race is the end.
func TestOptimisticGivesUp(t *testing.T) {
	server := sandboxtest.Start(t, sandbox.Options{})
	s := open(t, server, "chokepoint_optimistic", lock.Options{Strategy: "optimistic", Keys: 1, Stock: 10_000,
		Backoff: workloads.BackoffPolicy{Jitter: workloads.NoJitter}})
	out := s.drive(t, 20, 1000, time.Minute)
	if out[lock.Conflict] == 0 || out[workloads.OK] == 0 || out[lock.Conflict]+out[workloads.OK] != 1000 {
		t.Errorf("outcomes %v", out)
	}
	if b := s.audit(t); b.Left != 10_000-out[workloads.OK] {
		t.Errorf("books %+v after %d sales", b, out[workloads.OK])
	}
}
