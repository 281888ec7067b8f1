package redis

import (
	"errors"
	"net/url"

	"github.com/redis/go-redis/v9"
)

// ParseURL reads the address of a server: redis://user:password@host:port/0,
// rediss:// for TLS, or unix://user:password@/path/to/redis.sock.
//
// Its errors repeat no part of s: a password whose special characters are not
// escaped can end up in any part of a URL. For the same reason it refuses URLs
// that redis.ParseURL takes with a part left out, which a later error of the
// network would then show in the place of the host.
func ParseURL(s string) (*redis.Options, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, badURL("is no URL")
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return nil, badURL("begins with none of redis://, rediss:// and unix://")
	case u.Opaque != "":
		return nil, badURL("has no // before the host")
	case u.Fragment != "":
		return nil, badURL("has a # in it")
	case u.Scheme == "unix" && u.Host != "":
		return nil, badURL("has a path that does not begin with a slash")
	}
	o, err := redis.ParseURL(s)
	if err != nil {
		return nil, badURL("has a port, path, database number or option that is wrong")
	}
	return o, nil
}

func badURL(why string) error {
	return errors.New("redis: the URL " + why + "; in a password, write all but letters and digits as % and two hexadecimal digits (it is not shown here, for the password in it)")
}
