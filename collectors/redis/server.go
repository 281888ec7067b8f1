// Package redis reads a Redis or Valkey server: one source a file, the fields
// it reads beside what they become.
//
// The observer has connections of its own, which ask for nothing but what the
// sources read. Its commands stand in the server's counters all the same:
// INFO, LATENCY HISTOGRAM, SLOWLOG LEN and SLOWLOG GET are its own.
package redis

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"chokepoint/collectors"
)

// Flavors of the server.
const (
	Redis  = "redis"
	Valkey = "valkey"
)

// Server is the observer's view of one server.
type Server struct {
	Client  *redis.Client
	Flavor  string
	Version string // the flavour's own, such as "7.0.15"

	// oneSection is true for servers that refuse INFO with several sections.
	oneSection bool
}

// observerConns is enough for a source that is slow and one that is not.
const observerConns = 2

// Connect opens the observer's own pool to the server of o, of which it takes
// the address, the credentials (Username and Password only), TLS and timeouts.
// A reading that fails is a fault in the record, so nothing is tried twice. The
// caller closes the Client.
//
// Note: go-redis tells of a dial that failed on stderr as well, twice until the
// server is back. Its logger belongs to the whole process, and is main's.
func Connect(ctx context.Context, o *redis.Options) (*Server, error) {
	s := &Server{Client: redis.NewClient(observer(o))}
	if err := s.identify(ctx); err != nil {
		s.Client.Close()
		return nil, err
	}
	return s, nil
}

// observer are the options of the observer's own connections. They send as
// little as they can: each command beside HELLO needs a right of its own
// (SELECT, CLIENT SETNAME), and those that a server does not know count as its
// errors (CLIENT SETINFO before 7.2; CLIENT MAINT_NOTIFICATIONS, which go-redis
// sends with RESP3 only). RESP2 gives every server's answers one shape, too.
func observer(o *redis.Options) *redis.Options {
	return &redis.Options{
		Network:               o.Network,
		Addr:                  o.Addr,
		Dialer:                o.Dialer,
		TLSConfig:             o.TLSConfig,
		Username:              o.Username,
		Password:              o.Password,
		DialTimeout:           o.DialTimeout,
		ReadTimeout:           o.ReadTimeout,
		WriteTimeout:          o.WriteTimeout,
		Protocol:              2,
		PoolSize:              observerConns,
		MaxActiveConns:        observerConns,
		PipelinePoolSize:      -1,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	}
}

// identify finds out how to ask the server, and which one it is. Numbers that
// cannot be read are no matter here: the source tells of them.
func (s *Server) identify(ctx context.Context) error {
	text, err := s.info(ctx)
	if code(err) == "ERR" { // a syntax error, or too many words
		s.oneSection = true
		text, err = s.info(ctx)
	}
	if err != nil {
		return s.explain("redis", "+info", err)
	}
	info, err := ParseInfo(text)
	s.Flavor, s.Version = flavor(info)
	if s.Version == "" {
		return errors.Join(errors.New("redis: INFO names no version: is this a Redis or Valkey server?"), err)
	}
	return nil
}

// flavor tells whose server it is. Valkey goes on telling a redis_version of
// 7.2.4, for clients that look at it.
func flavor(i Info) (flavor, version string) {
	if i.Text["server_name"] == Valkey {
		return Valkey, i.Text["valkey_version"]
	}
	return Redis, i.Text["redis_version"]
}

// info asks for the sections that are read, in one call. Servers before 7.0 and
// those made after them know no more than one section a call; they are asked
// for "all", the oldest word for a text with the command statistics in it
// ("everything" is of 6.0, and adds only what modules say).
func (s *Server) info(ctx context.Context) (string, error) {
	if s.oneSection {
		return s.Client.Info(ctx, "all").Result()
	}
	return s.Client.Info(ctx, "stats", "clients", "memory", "cpu", "commandstats", "errorstats", "keyspace", "server").Result()
}

// Sources are those that read what the whole server does.
func (s *Server) Sources() []collectors.Source {
	return []collectors.Source{
		info{s},
		latency{s},
		slowlog{s},
	}
}
