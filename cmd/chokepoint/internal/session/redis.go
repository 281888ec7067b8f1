package session

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"chokepoint/collectors"
	"chokepoint/collectors/pool"
	"chokepoint/collectors/record"
	"chokepoint/collectors/redis"
	"chokepoint/workloads/lock"
)

const (
	// redisMarker is the key by which a Redis server shows that our keys are ours.
	redisMarker = lock.KeyPrefix + "marker"
	// redisClaim is the key of the one run that works with our keys.
	redisClaim = lock.KeyPrefix + "claim"
)

// claimLease is after what time the claim of a killed run ends.
const claimLease = 15 * time.Second

// prepareRedis connects the observer, and the load where it does anything in
// Redis.
func (s *session) prepareRedis(ctx context.Context) error {
	o := s.env.Redis.Options
	if o == nil {
		return nil
	}
	var err error
	if s.redis, err = redis.Connect(ctx, o); err != nil {
		return err
	}
	if !s.plan.Lock.NeedsRedis() {
		return nil
	}
	s.locks = goredis.NewClient(loadOptions(o, s.plan.Load.Workers))
	if err := ownKeys(ctx, s.locks); err != nil {
		return err
	}
	s.unclaim, err = claimRedis(ctx, s.locks)
	return err
}

// loadOptions are those of a client of our own in the database of the URL: a
// connection for each worker, so that nobody waits for one, and no hidden second
// attempts.
func loadOptions(o *goredis.Options, workers int) *goredis.Options {
	own := *o
	own.PoolSize, own.MaxRetries, own.ContextTimeoutEnabled = workers, -1, true
	own.DisableIdentity = true
	own.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &own
}

// ownKeys marks the keys with our prefix as ours. Keys that are there without
// the marker are somebody else's.
func ownKeys(ctx context.Context, client *goredis.Client) error {
	marked, err := client.Exists(ctx, redisMarker).Result()
	if err != nil {
		return fmt.Errorf("redis: looking for our marker: %w", err)
	}
	if marked == 0 {
		keys := client.Scan(ctx, 0, lock.KeyPrefix+"*", 1000).Iterator()
		if keys.Next(ctx) {
			return fmt.Errorf("redis: there are keys that begin with %s and no key %s: they are not ours, and nothing was touched", lock.KeyPrefix, redisMarker)
		}
		if err := keys.Err(); err != nil {
			return fmt.Errorf("redis: looking for our keys: %w", err)
		}
	}
	if err := client.Set(ctx, redisMarker, "keys of chokepoint, which it deletes", 0).Err(); err != nil {
		return fmt.Errorf("redis: marking our keys: %w", err)
	}
	return nil
}

// claimRedis makes this the one run that works with our keys, until the function
// that it returns is called: another one would delete its locks.
func claimRedis(ctx context.Context, client *goredis.Client) (unclaim func(), err error) {
	token := crand.Text()
	got, err := client.SetNX(ctx, redisClaim, token, claimLease).Result()
	switch {
	case err != nil:
		return nil, fmt.Errorf("redis: claiming our keys: %w", err)
	case !got:
		return nil, fmt.Errorf("another chokepoint is working with the keys %s* of this Redis server: wait for its end (%v after it was killed)", lock.KeyPrefix, claimLease)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(claimLease / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				client.PExpire(ctx, redisClaim, claimLease) // a server that is gone has no keys to claim
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if held, _ := client.Get(end, redisClaim).Result(); held == token {
			client.Del(end, redisClaim)
		}
	}, nil
}

// CleanRedis deletes the keys with our prefix from the database of the options,
// if they have our marker, and tells whether they had. It fails while a run
// works with them.
func CleanRedis(ctx context.Context, o *goredis.Options) (ours bool, err error) {
	client := goredis.NewClient(loadOptions(o, 1))
	defer client.Close()
	marked, err := client.Exists(ctx, redisMarker).Result()
	if err != nil {
		return false, fmt.Errorf("redis: looking for our marker: %w", err)
	}
	if marked == 0 {
		return false, nil
	}
	unclaim, err := claimRedis(ctx, client)
	if err != nil {
		return true, err
	}
	keys := client.Scan(ctx, 0, lock.KeyPrefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if k := keys.Val(); k != redisMarker && k != redisClaim {
			err = errors.Join(err, client.Del(ctx, k).Err())
		}
	}
	err = errors.Join(err, keys.Err())
	unclaim()
	if err != nil {
		return true, fmt.Errorf("redis: deleting our keys: %w", err)
	}
	return true, client.Del(ctx, redisMarker).Err() // last: until then the others are known to be ours
}

func (s *session) redisClient() *goredis.Client {
	if s.redis == nil {
		return nil
	}
	return s.redis.Client
}

// redisSources read the server, and the load's own pool of connections.
func (s *session) redisSources() []collectors.Source {
	if s.redis == nil {
		return nil
	}
	all := s.redis.Sources()
	if s.locks != nil {
		all = append(all, pool.RedisSource{Client: s.locks, Label: "redis"})
	}
	return all
}

// describeRedis is the server as the record names it.
func (s *session) describeRedis() []record.Server {
	if s.redis == nil {
		return nil
	}
	srv := record.Server{Kind: "redis", Flavor: s.redis.Flavor, Version: s.redis.Version, Sandbox: s.env.Redis.Sandbox}
	if s.env.Redis.PID != 0 {
		srv.Process = s.redis.Process()
	}
	return []record.Server{srv}
}
