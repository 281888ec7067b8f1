package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"chokepoint/workloads"
)

// What operations count of an application lock.
const (
	CountAttempts     = "lock_attempts"      // commands that asked for the lock
	CountAcquired     = "lock_acquired"      // of them those that got it
	CountLeaseExpired = "lock_lease_expired" // locks that were not ours any more at their release
	CountDoubleHeld   = "lock_double_held"   // of them those that somebody else had got meanwhile
	CountNotReleased  = "lock_not_released"  // releases that failed
)

// KeyPrefix begins all keys of ours in Redis.
const KeyPrefix = "chokepoint_"

// lockPrefix begins those of locks.
const lockPrefix = KeyPrefix + "lock:"

// releaseLock deletes the lock if it is still ours, by its token, and tells the
// number of the latest holder: if that is not ours, two held the lock at once.
var releaseLock = redis.NewScript(`local held = redis.call('GET', KEYS[1]) == ARGV[1]
if held then redis.call('DEL', KEYS[1]) end
return {held and 1 or 0, redis.call('GET', KEYS[2])}`)

// redisSpin asks Redis for a lock of the row until it gets it (SET NX PX with a
// token, deleted by a script that compares it), and then reads and writes
// without a lock in the database.
//
// The first attempt is a call of Redis like any other; who does not get the lock
// with it waits for it from then on, further attempts and pauses included.
func redisSpin(ctx context.Context, w *Workload, op *workloads.Op, id int, rnd *rand.Rand) workloads.Outcome {
	l := &spinLock{w: w, op: op, key: lockPrefix + strconv.Itoa(id), token: w.nonce + strconv.FormatUint(rnd.Uint64(), 36)}
	resource := workloads.ApplicationLock(Table + "/" + strconv.Itoa(id))
	if got := l.acquire(ctx, resource, rnd); got != workloads.OK {
		op.Enter(workloads.App)
		return got
	}
	op.Hold()
	got := l.number(ctx)
	if got == workloads.OK {
		got = readThenWrite(ctx, w, op, id, rnd)
	}
	if err := l.release(context.WithoutCancel(ctx)); err != nil { // it keeps others out until its lease ends
		op.Count(CountNotReleased)
	}
	op.Drop(resource)
	return got
}

// spinLock is one operation's way to one lock.
type spinLock struct {
	w          *Workload
	op         *workloads.Op
	key, token string
	fence      int64 // the number of this holder
}

func (l *spinLock) fenceKey() string { return l.key + ":fence" }

// acquire tries until it has the lock, its attempts are used up or ctx ends. With
// the lock the operation asks for the resource, to hold it.
func (l *spinLock) acquire(ctx context.Context, resource workloads.Resource, rnd *rand.Rand) workloads.Outcome {
	var pause time.Duration
	l.op.Enter(workloads.Redis)
	for failures := 1; ; failures++ {
		l.op.Count(CountAttempts)
		got, err := l.w.redis.SetNX(ctx, l.key, l.token, l.w.o.Lease).Result()
		if err != nil { // whether we have it is not known
			releaseLock.Run(context.WithoutCancel(ctx), l.w.redis, []string{l.key, l.fenceKey()}, l.token)
			return redisOutcome(err)
		}
		if got {
			l.op.Count(CountAcquired)
			if failures == 1 {
				l.op.Ask(workloads.AppLock, resource)
			}
			return workloads.OK
		}
		if failures > l.w.o.MaxRetries {
			return LockTimeout
		}
		if failures == 1 {
			l.op.Ask(workloads.Backoff, resource)
		} else {
			l.op.In(workloads.Backoff)
		}
		pause = l.w.o.Backoff.Delay(failures, pause, rnd)
		if !workloads.Sleep(ctx, pause) {
			return Timeout
		}
		l.op.In(workloads.AppLock)
	}
}

// number takes the holder's number, which only grows.
func (l *spinLock) number(ctx context.Context) workloads.Outcome {
	l.op.Enter(workloads.Redis)
	defer l.op.Enter(workloads.App)
	var err error
	if l.fence, err = l.w.redis.Incr(ctx, l.fenceKey()).Result(); err != nil {
		return redisOutcome(err)
	}
	return workloads.OK
}

// release gives the lock back, and counts what became of it meanwhile.
func (l *spinLock) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	l.op.Enter(workloads.Redis)
	answer, err := releaseLock.Run(ctx, l.w.redis, []string{l.key, l.fenceKey()}, l.token).Slice()
	if err != nil {
		return err
	}
	if len(answer) != 2 {
		return fmt.Errorf("the release answered %v", answer)
	}
	if answer[0] != int64(1) {
		l.op.Count(CountLeaseExpired)
	}
	if latest, _ := answer[1].(string); latest != strconv.FormatInt(l.fence, 10) {
		l.op.Count(CountDoubleHeld)
	}
	return nil
}

// releaseTimeout bounds a release after the operation's own time is up.
const releaseTimeout = time.Second

// redisOutcome names an error of Redis.
func redisOutcome(err error) workloads.Outcome {
	var network net.Error
	var server redis.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, redis.ErrPoolTimeout):
		return RedisPoolTimeout
	case errors.As(err, &network) && network.Timeout(): // the operation's limit, as a deadline of the connection
		return Timeout
	case errors.As(err, &network), errors.Is(err, redis.ErrClosed):
		return RedisLost
	case errors.As(err, &server):
		return RedisError
	}
	return RedisLost // a connection that ended in mid-answer
}
