package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// startTimeout bounds a start on a busy machine, a first initialisation
	// included; an idle one takes a second or four.
	startTimeout = 2 * time.Minute
	// stopGrace is how long a server may take to end by itself.
	stopGrace = 10 * time.Second
)

// Sandbox is a set of private servers.
type Sandbox struct {
	folder   *folder
	keeper   *keeper
	mysql    *MySQLServer
	redis    *Server
	warnings []string
	grace    time.Duration
	close    func() error
}

// Start starts a MariaDB or MySQL server and, if one is found, a Redis or Valkey
// server. It first removes what sandboxes of killed processes left behind.
// Without a MySQL server it fails, with a *NotInstalledError where there is none
// to start; without a Redis server it goes on, see Warnings.
//
// Ending ctx ends a start, not a sandbox that has started: that takes Close.
func Start(ctx context.Context, o Options) (*Sandbox, error) {
	s, err := thisHost().start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return s, nil
}

func (h host) start(ctx context.Context, o Options) (*Sandbox, error) {
	began := time.Now()
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready within %v", startTimeout))
	defer cancel()
	server, err := h.findMySQL(ctx, o.Flavor)
	if err != nil {
		return nil, err
	}
	s, err := h.open()
	if err != nil {
		return nil, err
	}
	if err := s.startServers(ctx, cancel, h, server, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	o.Log.Info("sandbox ready", "folder", s.folder.path, "mysql", server.String(),
		"redis", s.redis != nil, "took", time.Since(began).Round(time.Millisecond))
	return s, nil
}

// open makes a sandbox without servers.
func (h host) open() (*Sandbox, error) {
	temp := h.shortTemp()
	s := &Sandbox{grace: stopGrace}
	for _, err := range sweep(temp) {
		s.warnings = append(s.warnings, err.Error())
	}
	var err error
	if s.folder, err = newFolder(temp); err != nil {
		return nil, err
	}
	s.keeper = newKeeper()
	s.close = sync.OnceValue(s.end)
	return s, nil
}

// startServers starts both servers at the same time. A failure of the first is
// the start's, so it ends the other's start too.
func (s *Sandbox) startServers(ctx context.Context, cancel func(), h host, server program, o Options) error {
	var redisErr, mysqlErr error
	var wg sync.WaitGroup
	wg.Go(func() { s.redis, redisErr = s.startRedis(ctx, h, o.Redis) })
	wg.Go(func() {
		if s.mysql, mysqlErr = s.startMySQL(ctx, h, server, o); mysqlErr != nil {
			cancel()
		}
	})
	wg.Wait()
	if mysqlErr != nil {
		return mysqlErr
	}
	if redisErr != nil {
		s.warnings = append(s.warnings, "no Redis: "+redisErr.Error())
	}
	w, err := s.mysql.shortOfConnections(ctx, o.MaxConnections)
	if w != "" {
		s.warnings = append(s.warnings, w)
	}
	return err
}

// MySQL returns the MariaDB or MySQL server.
func (s *Sandbox) MySQL() *MySQLServer { return s.mysql }

// Redis returns the Redis or Valkey server, nil if there is none.
func (s *Sandbox) Redis() *Server { return s.redis }

// Warnings returns what is less than was asked for: no Redis, fewer
// connections, a left-behind folder that could not be removed.
func (s *Sandbox) Warnings() []string { return slices.Clone(s.warnings) }

// Close ends the servers and removes their folder. It returns once both are
// gone, and tells if a server had ended before it was asked to. Further calls
// return what the first did.
func (s *Sandbox) Close() error { return s.close() }

func (s *Sandbox) end() error {
	var mysqlErr, redisErr error
	var wg sync.WaitGroup
	if s.mysql != nil {
		wg.Go(func() { mysqlErr = s.mysql.process.stop(s.grace) })
	}
	if s.redis != nil {
		wg.Go(func() { redisErr = s.redis.process.stop(s.grace) })
	}
	wg.Wait()
	s.keeper.end()
	if err := errors.Join(mysqlErr, redisErr, s.folder.remove()); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}
