package analysis

import (
	"maps"
	"slices"
)

// causes are the only values of a verdict's layer, and of its cause by layer.
func causes() map[string][]string {
	return map[string][]string{
		"runtime":      {"cpu", "gc", "mutex", "scheduler", "goroutine_leak"},
		"pool":         {"undersized", "leaked", "nested_acquire", "dial", "churn"},
		"row_lock":     {"hot_row", "gap_lock", "deadlock", "long_transaction", "conflict_retry"},
		"database":     {"cpu", "commit_flush", "slow_statement", "metadata_lock", "named_lock", "connection_limit"},
		"redis":        {"cpu", "slow_command", "lock_backoff", "lock_lease", "lock_contention", "pool"},
		"cache":        {"stampede", "miss_storm"},
		"network":      {"latency"},
		"none":         {"healthy", "load_limited"},
		"inconclusive": {"too_little_data", "too_close", "too_much_unexplained"},
	}
}

// Layers are the layers that a verdict can name.
func Layers() []string { return slices.Sorted(maps.Keys(causes())) }

// Causes are the causes that a verdict can name, of all layers.
func Causes() []string {
	var all []string
	for _, c := range causes() {
		all = append(all, c...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
