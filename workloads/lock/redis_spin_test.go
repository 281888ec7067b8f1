package lock_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"chokepoint/workloads"
	"chokepoint/workloads/lock"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

// calls is how often Redis itself says that a command was called.
func (s sale) calls(t *testing.T, command string) int {
	t.Helper()
	text, err := s.redis.Info(context.WithoutCancel(t.Context()), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // digits only, by the pattern
	return n
}

func (s sale) counted(what string) int {
	return int(s.meter.Read().Counted[workloads.Counted{Operation: lock.Operation, What: what}])
}

// TestRedisSpin: under the lock, reading and then writing loses no update; each
// attempt is a SET, each sale one lock and one release, by Redis' own count.
func TestRedisSpin(t *testing.T) { sandboxtest.EachRedis(t, testRedisSpin) }

func testRedisSpin(t *testing.T, version string) {
	const n = 20 * 25
	server := sandboxtest.Start(t, sandbox.Options{Redis: version})
	s := open(t, server, "chokepoint_spin", lock.Options{Strategy: "redis-spin", Keys: 1, Stock: 10_000, MaxRetries: 10_000, Lease: 10 * time.Second,
		Backoff: workloads.BackoffPolicy{Base: time.Millisecond, Cap: 5 * time.Millisecond, Jitter: workloads.FullJitter}})
	out := s.drive(t, 20, n, time.Minute)
	if out[workloads.OK] != n {
		t.Errorf("outcomes %v", out)
	}
	if b := s.audit(t); b != (lock.Books{Left: 10_000 - n}) {
		t.Errorf("books %+v, want %d left", b, 10_000-n)
	}
	attempts, acquired := s.counted(lock.CountAttempts), s.counted(lock.CountAcquired)
	if sets := s.calls(t, "set"); sets != attempts || acquired != n || attempts <= n {
		t.Errorf("%d attempts, %d acquired; Redis ran SET %d times", attempts, acquired, sets)
	}
	if dels := s.calls(t, "del"); dels != n || s.counted(lock.CountLeaseExpired) != 0 || s.counted(lock.CountDoubleHeld) != 0 {
		t.Errorf("%d locks were deleted; %d leases expired, %d double holds", dels, s.counted(lock.CountLeaseExpired), s.counted(lock.CountDoubleHeld))
	}
	r := s.meter.Read()
	if r.LockWaited <= 0 || r.LockIdle <= 0 || r.LockIdle > r.LockWaited {
		t.Errorf("the lock was free for %v of the %v s in which somebody waited", r.LockIdle, r.LockWaited)
	}
	if keys, err := s.redis.Keys(t.Context(), "*").Result(); err != nil || len(keys) != 1 || keys[0] != "chokepoint_lock:1:fence" {
		t.Errorf("keys %v (%v)", keys, err)
	}
	if err := s.redis.Set(t.Context(), "other", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := lock.Clean(t.Context(), s.redis); err != nil {
		t.Fatal(err)
	}
	if keys, err := s.redis.Keys(t.Context(), "*").Result(); err != nil || len(keys) != 1 || keys[0] != "other" {
		t.Errorf("after cleaning: keys %v (%v)", keys, err)
	}
}

// TestLeaseTooShort: a holder that works for longer than its lease finds that
// out, and that somebody else had the lock meanwhile.
func TestLeaseTooShort(t *testing.T) {
	server := sandboxtest.Start(t, sandbox.Options{})
	s := open(t, server, "chokepoint_lease", lock.Options{Strategy: "redis-spin", Keys: 1, Stock: 100, MaxRetries: 10_000, Lease: 30 * time.Millisecond,
		Backoff: workloads.BackoffPolicy{Base: time.Millisecond, Cap: 2 * time.Millisecond, Jitter: workloads.FullJitter}})
	release := s.hold(t) // the database lets no holder write
	done := make(chan map[workloads.Outcome]int64, 1)
	go func() { done <- s.drive(t, 3, 3, time.Minute) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.counted(lock.CountAcquired) < 3 { // each gets it when the lease before ends
		<-tick.C
	}
	release()
	if out := <-done; out[workloads.OK] != 3 {
		t.Errorf("outcomes %v", out)
	}
	// The last of the three may or may not have been in time.
	if e := s.counted(lock.CountLeaseExpired); e < 2 || e > 3 {
		t.Errorf("%d leases expired, want 2 or 3", e)
	}
	if d := s.counted(lock.CountDoubleHeld); d != 2 {
		t.Errorf("%d double holds, want those of the first two", d)
	}
	if b := s.audit(t); b.Left <= 97 {
		t.Errorf("books %+v: three that read the same value must lose updates", b)
	}
}

// TestRedisGone: without Redis no sale is made, and none is lost.
func TestRedisGone(t *testing.T) {
	server := sandboxtest.Start(t, sandbox.Options{})
	s := open(t, server, "chokepoint_gone", lock.Options{Strategy: "redis-spin", Keys: 1, Stock: 100, Lease: time.Second})
	if err := s.redis.Close(); err != nil {
		t.Fatal(err)
	}
	if out := s.drive(t, 4, 8, time.Minute); out[lock.RedisLost] != 8 {
		t.Errorf("outcomes %v, want 8 lost connections", out)
	}
	if b := s.audit(t); b.Left != 100 {
		t.Errorf("books %+v", b)
	}
}

// TestLockTimeout: who does not get the lock in all attempts says so.
func TestLockTimeout(t *testing.T) {
	server := sandboxtest.Start(t, sandbox.Options{})
	s := open(t, server, "chokepoint_timeout", lock.Options{Strategy: "redis-spin", Keys: 1, Stock: 100, MaxRetries: 3, Lease: time.Minute,
		Backoff: workloads.BackoffPolicy{Jitter: workloads.NoJitter}})
	if err := s.redis.Set(t.Context(), "chokepoint_lock:1", "a stranger", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if out := s.drive(t, 2, 6, time.Minute); out[lock.LockTimeout] != 6 || s.counted(lock.CountAttempts) != 6*4 {
		t.Errorf("outcomes %v after %d attempts, want 6 after 24", out, s.counted(lock.CountAttempts))
	}
	if held, err := s.redis.Get(t.Context(), "chokepoint_lock:1").Result(); err != nil || held != "a stranger" {
		t.Errorf("the stranger's lock is %q (%v)", held, err)
	}
}
