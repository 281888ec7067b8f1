package session

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"chokepoint/collectors"
	"chokepoint/collectors/pool"
	"chokepoint/collectors/record"
	"chokepoint/collectors/redis"
	"chokepoint/workloads/lock"
)

// redisMarker is the key by which a Redis server shows that our keys are ours.
const redisMarker = lock.KeyPrefix + "marker"

// prepareRedis connects the observer, and the load where its strategy locks in
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
	if err := ownKeys(ctx, s.redis.Client); err != nil {
		return err
	}
	s.locks = goredis.NewClient(loadOptions(o, s.plan.Load.Workers))
	if err := s.locks.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// loadOptions are those of the load's own client: a connection for each worker,
// so that nobody waits for one, and no hidden second attempts.
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

// CleanRedis deletes our keys, if the server has our marker, and tells whether
// it had.
func CleanRedis(ctx context.Context, client *goredis.Client) (bool, error) {
	marked, err := client.Exists(ctx, redisMarker).Result()
	if err != nil {
		return false, fmt.Errorf("redis: looking for our marker: %w", err)
	}
	if marked == 0 {
		return false, nil
	}
	if err := lock.Clean(ctx, client); err != nil {
		return true, err
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
