// Package sandboxtest starts sandboxes for tests.
package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"chokepoint/workloads/sandbox"
)

// Start starts a sandbox that ends with the test. Without a MySQL server on this
// machine it skips the test, or fails it where the environment has CI: there, a
// missing server must not pass for a good result. If the test fails, the ends of
// the servers' logs are printed.
func Start(tb testing.TB, o sandbox.Options) *sandbox.Sandbox {
	tb.Helper()
	s, err := sandbox.Start(tb.Context(), o)
	if err != nil {
		refuse(tb, err)
	}
	tb.Cleanup(func() { end(tb, s) })
	for _, w := range s.Warnings() {
		tb.Log("sandbox: ", w)
	}
	return s
}

// EachFlavor runs a test on MariaDB and on MySQL. MySQL is not to be had on
// every machine (Debian has it in its unstable suite only): without it its part
// is skipped, loudly, in CI too.
func EachFlavor(t *testing.T, test func(t *testing.T, flavor sandbox.Flavor)) {
	t.Helper()
	for _, flavor := range []sandbox.Flavor{sandbox.MariaDB, sandbox.MySQL} {
		t.Run(string(flavor), func(t *testing.T) {
			if flavor == sandbox.MySQL {
				needMySQL(t)
			}
			test(t, flavor)
		})
	}
}

func needMySQL(t *testing.T) {
	t.Helper()
	missing, err := sandbox.Installed(t.Context(), sandbox.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	if missing != nil {
		t.Skip("NOT TESTED ON MYSQL: ", missing)
	}
}

// EachRedis runs a test on each Redis and Valkey server of this machine; scripts/
// install-tree.sh brings the newest ones. At least one must be there.
func EachRedis(t *testing.T, test func(t *testing.T, version string)) {
	t.Helper()
	all, err := sandbox.RedisVersions(t.Context())
	if len(all) == 0 {
		missing(t, fmt.Sprint("this test needs Redis: ", err))
	}
	for _, version := range all {
		t.Run(strings.ReplaceAll(version, " ", "-"), func(t *testing.T) { test(t, version) })
	}
}

// Redis returns the Redis server of the sandbox. Without one it skips or fails
// the test, as Start does without MySQL.
func Redis(tb testing.TB, s *sandbox.Sandbox) *sandbox.Server {
	tb.Helper()
	r := s.Redis()
	if r == nil {
		missing(tb, "this test needs Redis: "+strings.Join(s.Warnings(), "; "))
	}
	return r
}

// refuse ends the test for an error of sandbox.Start.
func refuse(tb testing.TB, err error) {
	tb.Helper()
	if _, ok := errors.AsType[*sandbox.NotInstalledError](err); ok {
		missing(tb, err.Error())
	}
	tb.Fatal(err)
}

func missing(tb testing.TB, why string) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatal("CI is set, and ", why)
	}
	tb.Skip("NOT TESTED: ", why)
}

func end(tb testing.TB, s *sandbox.Sandbox) {
	tb.Helper()
	if tb.Failed() {
		printLog(tb, s.MySQL().LogFile)
		if r := s.Redis(); r != nil {
			printLog(tb, r.LogFile)
		}
	}
	if err := s.Close(); err != nil {
		tb.Error(err)
	}
}

func printLog(tb testing.TB, path string) {
	tb.Helper()
	const most = 16 << 10
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Log(err)
		return
	}
	tb.Logf("%s:\n%s", path, text[max(0, len(text)-most):])
}
