package main

import (
	"strings"
	"testing"
)

// FuzzDSN: whatever a DSN looks like, no error about it holds its password.
func FuzzDSN(f *testing.F) {
	const secret = "correct-horse"
	for _, around := range [][2]string{
		{"u:", "@tcp(127.0.0.1:3306)/"}, {"u:", "@nonsense"}, {"u:a/", "@tcp(h)"}, {"u:x@", "@tcp(h:1)/db?tls=no-such"},
		{"u:", "@unix(/s)/?collation=" + "x&timeout=soon"}, {"", ""}, {"u:(", ")/"}, {"u:", "@tcp(h)/db?readTimeout=1x"},
	} {
		f.Add(around[0], around[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		dsn := before + secret + after
		w := world{getenv: func(key string) string { return map[string]string{dsnVariable: dsn}[key] }}
		for _, flag := range []*dsnFlag{{}, {dsn: dsn}} {
			cfg, err := flag.config(w, "run")
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: the error holds the password: %v", dsn, err)
			}
			if err == nil && flag.dsn != "" && cfg.Passwd != "" {
				t.Errorf("%q: a password on the command line is taken", dsn)
			}
		}
	})
}
