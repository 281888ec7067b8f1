package redis_test

import (
	"strings"
	"testing"

	"chokepoint/collectors/redis"
)

func TestParseURL(t *testing.T) {
	for _, c := range []struct {
		url, network, addr, user, password string
		db                                 int
		tls                                bool
	}{
		{"redis://h", "tcp", "h:6379", "", "", 0, false},
		{"redis://mon:p%40%2Fs%3A%23%3F%25@h:7000/3", "tcp", "h:7000", "mon", "p@/s:#?%", 3, false},
		{"redis://:only@[::1]:7000", "tcp", "[::1]:7000", "", "only", 0, false},
		{"rediss://h:7000", "tcp", "h:7000", "", "", 0, true},
		{"unix:///run/redis.sock?db=2", "unix", "/run/redis.sock", "", "", 2, false},
		{"unix://mon:s%20t@/run/redis.sock", "unix", "/run/redis.sock", "mon", "s t", 0, false},
	} {
		o, err := redis.ParseURL(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if o.Network != c.network || o.Addr != c.addr || o.Username != c.user || o.Password != c.password || o.DB != c.db || (o.TLSConfig != nil) != c.tls {
			t.Errorf("%s: %s %s, user %q, password %q, database %d, TLS %v", c.url, o.Network, o.Addr, o.Username, o.Password, o.DB, o.TLSConfig)
		}
	}
}

// TestParseURLHides: a URL that is refused is not repeated, not in part either.
// Each password has special characters that were not escaped.
func TestParseURLHides(t *testing.T) {
	for _, c := range []struct{ url, secrets string }{
		{"redis://mon:hunter/2secret@h:7000/0", "hunter 2secret"},
		{"redis://mon:hunter#2secret@h:7000/0", "hunter 2secret"},
		{"redis://mon:hunter?2secret@h:7000/0", "hunter 2secret"},
		{"redis://mon:hunter%2secret@h:7000/0", "hunter 2secret"},
		{"redis://mon:hunter%zz@h:7000/0", "hunter %zz"},
		{"redis://mon:hunter 2secret\n@h:7000/0", "hunter 2secret"},
		{"redis://mon:hunter\x7f2secret@h:7000/0", "hunter 2secret"},
		{"redis://mon:4711#2secret@h:7000/0", "4711 2secret"}, // a port, and a fragment
		{"redis://mon:4711/2secret@h:7000/0", "4711 2secret"}, // a port, and a database
		{"redis://mon:4711?2secret@h:7000/0", "4711 2secret"}, // a port, and an option
		{"redis://:4711?db=2secret@h:7000", "4711 2secret"},
		{"redis://mon:[hunter]2secret@h:7000/0/1", "hunter 2secret"},
		{"redis:hunter2secret@h", "hunter2secret"},
		{"mon:hunter2secret@h:7000", "hunter2secret"},
		{"hunter2secret", "hunter2secret"},
		{"hunter2secret://h", "hunter2secret"},
		{"redis://mon:hunter2secret@h:port", "hunter2secret"},
		{"redis://mon:hunter2secret@h/db", "hunter2secret"},
		{"redis://mon:hunter2secret@h?hunter=1", "hunter"},
		{"unix://mon:4711/2secret@/run/redis.sock", "4711 2secret"},
		{"unix://mon:hunter2secret@", "hunter2secret"},
		{"", ""},
	} {
		o, err := redis.ParseURL(c.url)
		if err == nil {
			t.Errorf("%q is taken for %s", c.url, o.Addr)
			continue
		}
		for secret := range strings.FieldsSeq(c.secrets) {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q: the error holds %q: %v", c.url, secret, err)
			}
		}
		if !strings.HasPrefix(err.Error(), "redis: ") {
			t.Errorf("%q: %v", c.url, err)
		}
	}
}
