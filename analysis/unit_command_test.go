package analysis

import (
	"testing"

	"chokepoint/collectors/record"
)

// TestCommandReplaces: the last flag of a command line counts, so one that is
// not found as a word of its own is added at the end.
func TestCommandReplaces(t *testing.T) {
	for _, c := range []struct {
		name              string
		args              []string
		flag, value, want string
	}{
		{"no flags", nil, "--pool", "20", "chokepoint run lock --pool 20"},
		{"no flags and no change", nil, "", "", "chokepoint run lock"},
		{"in the middle", []string{"--keys", "1", "--pool", "10", "--seed", "7"}, "--pool", "20", "chokepoint run lock --keys 1 --pool 20 --seed 7"},
		{"at the end", []string{"--seed", "7", "--pool", "10"}, "--pool", "20", "chokepoint run lock --seed 7 --pool 20"},
		{"its value is another's too", []string{"--concurrency", "10", "--pool", "10"}, "--pool", "20", "chokepoint run lock --concurrency 10 --pool 20"},
		{"a flag with the same beginning", []string{"--pool-idle", "3"}, "--pool", "20", "chokepoint run lock --pool-idle 3 --pool 20"},
		{"a switch before it", []string{"--prepared=true", "--pool", "10"}, "--pool", "20", "chokepoint run lock --prepared=true --pool 20"},
		{"written with =", []string{"--pool=10"}, "--pool", "20", "chokepoint run lock --pool=10 --pool 20"},
	} {
		before := append([]string(nil), c.args...)
		if got := command(record.Workload{Name: "lock", Args: c.args}, c.flag, c.value); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		for i := range before {
			if c.args[i] != before[i] {
				t.Errorf("%s: the record's words have changed to %v", c.name, c.args)
			}
		}
	}
}

func TestPoolSizes(t *testing.T) {
	for _, c := range []struct {
		now, workers int
		all          bool
		want         []int
	}{
		{10, 200, false, []int{20}},     // the pool is a symptom: the double is told, since everybody tries it
		{10, 200, true, []int{20, 200}}, // it is the cause: one for each worker too
		{10, 15, true, []int{20}},       // the double is enough for all
		{10, 20, true, []int{20}},       // and so here
	} {
		got := poolSizes(c.now, c.workers, c.all)
		if len(got) != len(c.want) || got[0] != c.want[0] || got[len(got)-1] != c.want[len(c.want)-1] {
			t.Errorf("%d for %d workers: %v, want %v", c.now, c.workers, got, c.want)
		}
	}
}
