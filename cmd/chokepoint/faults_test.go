package main

import (
	"fmt"
	"testing"

	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

// TestLiveFaults: what each fault must be called, and what its holders do.
func TestLiveFaults(t *testing.T) { sandboxtest.EachFlavor(t, testLiveFaults) }

func testLiveFaults(t *testing.T, flavor sandbox.Flavor) {
	for _, c := range []struct {
		fault, verdict, holder string
		args                   []string
	}{
		{"holder-cpu:strong", "row_lock/hot_row", "cpu", nil},
		{"holder-redis:strong", "row_lock/hot_row", "redis", nil},
		{"deadlock:strong", "row_lock/deadlock", "", []string{"--keys", "10", "--backoff-base", "5ms"}},
		{"gap:strong", "row_lock/gap_lock", "", []string{"--duration", "3s"}}, // eight samples of the lock graph
		{"long-transaction:strong", "row_lock/long_transaction", "foreign", []string{"--duration", "5s"}},
		{"metadata:strong", "database/metadata_lock", "foreign", []string{"--keys", "1000", "--duration", "5s"}},
	} {
		if flavor == sandbox.MySQL && c.holder != "" { // what MariaDB shows is enough for these
			continue
		}
		args := append([]string{"--sandbox", string(flavor), "--fault", c.fault, "--concurrency", "30", "--pool", "10", "--duration", "2s"}, c.args...)
		p := runLive(t, t.TempDir(), args...)
		if got := p.Verdict.Layer + "/" + p.Verdict.Cause; got != c.verdict {
			t.Errorf("%s on %s: verdict %s, want %s: %s", c.fault, flavor, got, c.verdict, p.Verdict.Summary)
		}
		holder := ""
		if len(p.Verdict.Holder) > 0 {
			holder = p.Verdict.Holder[0].Stage
		}
		if c.holder != "" && holder != c.holder {
			t.Errorf("%s on %s: holder %v, want %s", c.fault, flavor, p.Verdict.Holder, c.holder)
		}
		t.Log(fmt.Sprintf("%s: %s/%s, share %.2f, holder %s, outcomes %v", c.fault, p.Verdict.Layer, p.Verdict.Cause, p.Verdict.Share, holder, p.Load.Outcomes))
	}
}
