package redis_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"chokepoint/collectors/redis"
)

func readFile(t testing.TB, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// faults are the lines of an error, or none.
func faults(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

// TestParseInfo reads texts that are odd in one way each.
func TestParseInfo(t *testing.T) {
	for _, c := range []struct {
		file   string
		want   redis.Info
		faults []string
	}{
		{ // its hit_rate_percentage of 99.50 is of another time, and not read: 300 of 400 are 75 %
			file: "vendor_no_blank_lines.txt",
			want: redis.Info{
				Text: map[string]string{"redis_version": "4.0.14"},
				Numbers: redis.Values{"uptime_in_seconds": 7200, "connected_clients": 12, "blocked_clients": 0, "used_memory": 2097152,
					"total_connections_received": 40, "total_commands_processed": 5000, "expired_keys": 9, "evicted_keys": 1,
					"keyspace_hits": 300, "keyspace_misses": 100, "used_cpu_sys": 10.25, "used_cpu_user": 20.5},
				Databases: map[string]redis.Values{"db0": {"keys": 70, "expires": 5}, "db11": {"keys": 30, "expires": 0}},
			},
		},
		{ // below zero without their sign: -6 clients of 32 bits, and a data set of 64 bits, which is nothing
			file: "wrapped_counters.txt",
			want: redis.Info{
				Text:    map[string]string{"redis_version": "6.2.11"},
				Numbers: redis.Values{"uptime_in_seconds": 5000, "blocked_clients": 3, "used_memory": 1000000, "used_memory_dataset": 0},
			},
			faults: []string{
				"connected_clients: 4294967290 is not a count but a negative number of 32 bits without its sign",
			},
		},
		{ // an error of the server behind its answer; commands with and without rejected_calls
			file: "trailing_error.txt",
			want: redis.Info{
				Text:    map[string]string{"redis_version": "6.2.6"},
				Numbers: redis.Values{"uptime_in_seconds": 60, "used_memory": 1500000, "used_memory_dataset": 64000, "keyspace_hits": 6, "keyspace_misses": 2},
				Commands: map[string]redis.Values{
					"set":              {"calls": 200, "usec": 900},
					"publish":          {"calls": 1000, "usec": 16000, "rejected_calls": 2, "failed_calls": 3},
					"config|resetstat": {"calls": 1, "usec": 30, "rejected_calls": 0, "failed_calls": 0},
				},
				Errors:      map[string]redis.Values{"MOVED": {"count": 77}, "WRONGTYPE": {"count": 4}},
				Percentiles: map[string]redis.Values{"zadd": {"p50": 8.031, "p99": 27.007, "p99.9": 41.215}},
				Databases:   map[string]redis.Values{"db0": {"keys": 2, "expires": 1}},
			},
			faults: []string{`line 32 is not name:value but "(error) ERR unknown command 'end'"`},
		},
		{ // sizes with suffixes; no other section
			file: "keysizes.txt",
			want: redis.Info{Sizes: map[string]map[uint64]float64{
				"db0_distrib_strings_sizes": {1: 7, 2: 50, 512: 900, 1024: 12, 32768: 3},
				"db3_distrib_sets_items":    {1: 44, 1024: 6, 524288: 2, 1048576: 1},
			}},
		},
		{ // an item in the middle that is not Redis' own, and dots in names
			file: "dotted_commands.txt",
			want: redis.Info{Commands: map[string]redis.Values{
				"hget":         {"calls": 40, "usec": 400},
				"xrange":       {"calls": 250, "usec": 5500000}, // 5.5 s, 22 ms a call
				"ts.get":       {"calls": 8, "usec": 96},
				"rg.pyexecute": {"calls": 1, "usec": 145},
			}},
		},
		{
			file: "crlf_before.txt",
			want: redis.Info{
				Text:     map[string]string{"redis_version": "7.2.5"},
				Numbers:  redis.Values{"uptime_in_seconds": 3600, "total_commands_processed": 50000, "keyspace_hits": 40000, "keyspace_misses": 8000},
				Commands: map[string]redis.Values{"get": {"calls": 48000, "usec": 96000}},
			},
		},
		{ // used_memory is a count: its comma could as well part thousands
			file: "decimal_comma.txt",
			want: redis.Info{
				Text:    map[string]string{"redis_version": "7.2.5"},
				Numbers: redis.Values{"used_cpu_sys": 12.25, "used_cpu_user": 3.5},
			},
			faults: []string{`used_memory: "1,024" is not a whole number`},
		},
		{
			file:   "noauth.txt",
			faults: []string{`line 1 is not name:value but "NOAUTH Authentication required."`},
		},
		{ // as it came from the wire
			file: "bulk_prefix.txt",
			want: redis.Info{
				Text:    map[string]string{"redis_version": "7.2.5"},
				Numbers: redis.Values{"keyspace_hits": 5, "keyspace_misses": 15},
			},
		},
		{ // lists in values that are not read
			file: "valkey_9.txt",
			want: redis.Info{
				Text: map[string]string{"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "9.1.2"},
				Numbers: redis.Values{"uptime_in_seconds": 900, "connected_clients": 2, "blocked_clients": 0, "total_commands_processed": 605,
					"eventloop_duration_sum": 75000, "eventloop_duration_cmd_sum": 25000, "used_cpu_sys": 1.5, "used_cpu_user": 0.75,
					"used_cpu_sys_main_thread": 1.25, "used_cpu_user_main_thread": 0.5},
				Commands: map[string]redis.Values{
					"get":     {"calls": 0, "usec": 0, "rejected_calls": 100, "failed_calls": 0},
					"evalsha": {"calls": 100, "usec": 56, "rejected_calls": 0, "failed_calls": 90},
				},
				Errors:    map[string]redis.Values{"NOSCRIPT": {"count": 90}},
				Databases: map[string]redis.Values{"db0": {"keys": 1, "expires": 0}},
			},
		},
	} {
		t.Run(c.file, func(t *testing.T) {
			got, err := redis.ParseInfo(readFile(t, "testdata", c.file))
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("read (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.faults, faults(err)); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
		})
	}
}

// TestCRLF: the files have kept the line ends that they are there for.
func TestCRLF(t *testing.T) {
	for _, f := range []string{"crlf_before.txt", "crlf_restarted.txt", "bulk_prefix.txt"} {
		if text := readFile(t, "testdata", f); strings.Count(text, "\r\n") != strings.Count(text, "\n") || text == "" {
			t.Errorf("%s has lines that do not end in CRLF", f)
		}
	}
}

// TestBadValues: each value that cannot be read is an error with its name, and
// the rest of its line is kept.
func TestBadValues(t *testing.T) {
	for _, c := range []struct{ line, fault string }{
		{"keyspace_hits:", `keyspace_hits: "" is not a whole number`},
		{"keyspace_hits:-1", `keyspace_hits: "-1" is not a whole number`},
		{"keyspace_hits:1.5", `keyspace_hits: "1.5" is not a whole number`},
		{"keyspace_hits:1e3", `keyspace_hits: "1e3" is not a whole number`},
		{"keyspace_hits:1_000", `keyspace_hits: "1_000" is not a whole number`},
		{"keyspace_hits:18446744073709551616", `keyspace_hits: "18446744073709551616" is not a whole number`}, // 2^64
		{"keyspace_hits:9223372036854775808", "keyspace_hits: 9223372036854775808 is not a count but a negative number of 64 bits without its sign"},
		{"blocked_clients:2147483648", "blocked_clients: 2147483648 is not a count but a negative number of 32 bits without its sign"},
		{"used_cpu_sys:nan", `used_cpu_sys: "nan" is not a number`},
		{"used_cpu_sys:Inf", `used_cpu_sys: "Inf" is not a number`},
		{"used_cpu_sys:-0.5", `used_cpu_sys: "-0.5" is not a number`},
		{"used_cpu_sys:1.234,5", `used_cpu_sys: "1.234,5" is not a number`},
		{"used_cpu_sys:0x1p4", `used_cpu_sys: "0x1p4" is not a number`},
		{"cmdstat_get:calls=x,usec=3", `cmdstat_get calls: "x" is not a whole number`},
		{"cmdstat_get:calls,usec=3", `cmdstat_get: "calls" is not name=value`},
		{"cmdstat_get:usec=3,usec_per_call=1,50", `cmdstat_get: "50" is not name=value`}, // a decimal comma in a list
		{"errorstat_ERR:count=", `errorstat_ERR count: "" is not a whole number`},
		{"db0:keys=many,expires=1", `db0 keys: "many" is not a whole number`},
		{"latency_percentiles_usec_get:p99=slow", `latency_percentiles_usec_get p99: "slow" is not a number`},
		{"db0_distrib_strings_sizes:1K=x", `db0_distrib_strings_sizes 1K: "x" is not a whole number`},
		{"db0_distrib_strings_sizes:1KK=1", `db0_distrib_strings_sizes: "1KK" is not a size`},
		{"db0_distrib_strings_sizes:K=1", `db0_distrib_strings_sizes: "K" is not a size`},
		{"db0_distrib_strings_sizes:16777216T=1", `db0_distrib_strings_sizes: "16777216T" is not a size`}, // 2^64
		{"-ERR unknown command 'info'", `line 2 is not name:value but "-ERR unknown command 'info'"`},
		{"ERR no such section: cpu", `line 2 is not name:value but "ERR no such section: cpu"`},
		{"$20", `line 2 is not name:value but "$20"`}, // only before the text
	} {
		got, err := redis.ParseInfo("keyspace_misses:7\n" + c.line + "\nused_memory:8\n")
		if d := cmp.Diff([]string{c.fault}, faults(err)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.line, d)
		}
		if d := cmp.Diff(redis.Values{"keyspace_misses": 7, "used_memory": 8}, got.Numbers); d != "" {
			t.Errorf("around %s (-want +got):\n%s", c.line, d)
		}
		if v, ok := got.Commands["get"]; ok && v["usec"] != 3 {
			t.Errorf("%s leaves %v", c.line, v)
		}
	}
}

// TestManyErrors: a text that is no INFO does not make an error of each line.
func TestManyErrors(t *testing.T) {
	_, err := redis.ParseInfo(strings.Repeat("<html>\n", 37))
	if got := faults(err); len(got) != 11 || got[10] != "and 27 more" {
		t.Errorf("%d lines of error, the last %q", len(got), got[len(got)-1])
	}
}

// TestCases reads the files of a folder of collected cases, which are not part
// of the project, and holds them against what its index says of them.
func TestCases(t *testing.T) {
	folder := os.Getenv("CHOKEPOINT_CASES")
	if _, err := os.Stat(folder); err != nil {
		t.Skip("NOT TESTED ON COLLECTED CASES: CHOKEPOINT_CASES names no folder: ", err)
	}
	index := readIndex(t, folder)
	for name, check := range caseChecks() {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(index[name], check.reading) {
				t.Errorf("the index says %q, this test was made for %q", index[name], check.reading)
			}
			got, err := redis.ParseInfo(readFile(t, folder, name))
			check.test(t, got, faults(err))
		})
		delete(index, name)
	}
	for name := range index {
		if strings.HasPrefix(name, "redis_info/") || strings.HasPrefix(name, "odd/info_") {
			t.Errorf("%s is in the index, and not tested", name)
		}
	}
}

// readIndex gives the expected readings by file.
func readIndex(t *testing.T, folder string) map[string]string {
	t.Helper()
	index := map[string]string{}
	sc := bufio.NewScanner(strings.NewReader(readFile(t, folder, "INDEX.tsv")))
	for sc.Scan() {
		columns := strings.Split(sc.Text(), "\t")
		index[columns[0]] = columns[len(columns)-1]
	}
	return index
}

type caseCheck struct {
	reading string
	test    func(t *testing.T, i redis.Info, faults []string)
}

// equal compares one reading, rounded to three decimals.
func equal(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.0005 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func noFaults(t *testing.T, faults []string) {
	t.Helper()
	if len(faults) > 0 {
		t.Errorf("errors: %q", faults)
	}
}

func caseChecks() map[string]caseCheck {
	return map[string]caseCheck{
		"redis_info/aliyun_2.8.19_vendor_no_blank_lines.txt": {"hit ratio 66.7% though hit_rate_percentage says 100", func(t *testing.T, i redis.Info, faults []string) {
			noFaults(t, faults)
			hits, misses := i.Numbers["keyspace_hits"], i.Numbers["keyspace_misses"]
			equal(t, "hit ratio", hits/(hits+misses), 0.667)
			equal(t, "keys", i.Databases["db0"]["keys"], 25302)
			equal(t, "keys", i.Databases["db1"]["keys"], 1089)
			equal(t, "CPU", i.Numbers["used_cpu_sys"]+i.Numbers["used_cpu_user"], 2940.67)
			if v := i.Text["redis_version"]; v != "2.8.19" {
				t.Errorf("version %q", v)
			}
		}},
		"redis_info/dragonfly_1.21.2_wrapped_uint64.txt": {"connected_clients 4294964742 is invalid", func(t *testing.T, i redis.Info, faults []string) {
			if len(faults) != 1 || !strings.HasPrefix(faults[0], "connected_clients: 4294964742 is not a count") {
				t.Errorf("errors: %q", faults)
			}
			if v, ok := i.Numbers["connected_clients"]; ok {
				t.Errorf("%v clients", v)
			}
			equal(t, "blocked clients", i.Numbers["blocked_clients"], 2)
			equal(t, "memory", i.Numbers["used_memory"], 242123536)
		}},
		"redis_info/otel_redis_5.0.7.txt": {"5.0.7", func(t *testing.T, i redis.Info, faults []string) {
			noFaults(t, faults)
			if v := i.Text["redis_version"]; v != "5.0.7" {
				t.Errorf("version %q", v)
			}
			equal(t, "CPU", i.Numbers["used_cpu_sys"]+i.Numbers["used_cpu_user"], 232.046)
			equal(t, "commands", i.Numbers["total_commands_processed"], 30)
			equal(t, "keys", i.Databases["db1"]["keys"], 4)
		}},
		"redis_info/redis_8_keysizes.txt": {"Keysizes section: 1K/1M suffix keys", func(t *testing.T, i redis.Info, faults []string) {
			noFaults(t, faults)
			equal(t, "strings of 1K", i.Sizes["db0_distrib_strings_sizes"][1024], 31)
			equal(t, "sets of 1M", i.Sizes["db0_distrib_sets_items"][1<<20], 2)
			equal(t, "lists of 1", i.Sizes["db0_distrib_lists_items"][1], 5784492)
		}},
		"redis_info/redis_enterprise_calls_master_dotted.txt": {"xrange 46.75 s total, 22.7 ms per call", func(t *testing.T, i redis.Info, faults []string) {
			noFaults(t, faults)
			x := i.Commands["xrange"]
			equal(t, "xrange in s", x["usec"]/1e6, 46.753)
			equal(t, "xrange a call in ms", x["usec"]/x["calls"]/1e3, 22.684)
			equal(t, "calls of ts.mrange", i.Commands["ts.mrange"]["calls"], 126)
			equal(t, "commands", float64(len(i.Commands)), 9)
		}},
		"redis_info/telegraf_6.0.9_trailing_error.txt": {`ends with "(error) ERR unknown command 'eof'"; mixed commandstats with and without rejected_calls`, func(t *testing.T, i redis.Info, faults []string) {
			if !slices.Equal(faults, []string{`line 179 is not name:value but "(error) ERR unknown command 'eof'"`}) {
				t.Errorf("errors: %q", faults)
			}
			if _, ok := i.Commands["set"]["rejected_calls"]; ok {
				t.Error("SET has rejected calls")
			}
			if v, ok := i.Commands["publish"]["rejected_calls"]; !ok || v != 0 {
				t.Errorf("PUBLISH has rejected calls: %v, %v", v, ok)
			}
			equal(t, "calls of SET", i.Commands["set"]["calls"], 261265)
			equal(t, "errors", i.Errors["LOADING"]["count"], 4284)
			equal(t, "error prefixes", float64(len(i.Errors)), 9)
			equal(t, "p99.9 of HGETALL", i.Percentiles["hgetall"]["p99.9"], 66.047)
		}},
		"odd/info_crlf_pair_t1.txt": {"first of a pair", func(t *testing.T, i redis.Info, faults []string) {
			noFaults(t, faults)
			equal(t, "uptime", i.Numbers["uptime_in_seconds"], 86400)
			equal(t, "hits", i.Numbers["keyspace_hits"], 900000)
		}},
		// That no difference of the pair is negative is TestRestart's part.
		"odd/info_crlf_pair_t2_restarted.txt": {"uptime 12, counters lower", func(t *testing.T, i redis.Info, faults []string) {
			noFaults(t, faults)
			equal(t, "uptime", i.Numbers["uptime_in_seconds"], 12)
			equal(t, "hits", i.Numbers["keyspace_hits"], 10)
			equal(t, "calls of GET", i.Commands["get"]["calls"], 400)
		}},
		"odd/info_localized_decimal_comma.txt": {"decimal comma", func(t *testing.T, i redis.Info, faults []string) {
			noFaults(t, faults)
			equal(t, "sys", i.Numbers["used_cpu_sys"], 185.649)
			equal(t, "user", i.Numbers["used_cpu_user"], 46.396)
		}},
		"odd/info_noauth.txt": {"error text in place of INFO", func(t *testing.T, i redis.Info, faults []string) {
			if !slices.Equal(faults, []string{`line 1 is not name:value but "NOAUTH Authentication required."`}) || len(i.Numbers)+len(i.Text) > 0 {
				t.Errorf("%v, errors: %q", i, faults)
			}
		}},
		"odd/info_resp_bulk_prefix.txt": {`raw RESP "$96" prefix`, func(t *testing.T, i redis.Info, faults []string) {
			noFaults(t, faults)
			equal(t, "hits", i.Numbers["keyspace_hits"], 1)
			equal(t, "misses", i.Numbers["keyspace_misses"], 1)
		}},
	}
}

// FuzzParseInfo: no text makes it panic, and each number is one that JSON holds.
func FuzzParseInfo(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds: ", err)
	}
	for _, file := range files {
		f.Add(readFile(f, file))
	}
	f.Add("used_cpu_sys:999999999999999999999999999999.9\ndb0_distrib_x:16777215T=1\n$1")
	f.Fuzz(func(t *testing.T, text string) {
		i, _ := redis.ParseInfo(text)
		numbers := func(where string, v redis.Values) {
			for name, n := range v {
				if math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
					t.Errorf("%s %s is %v", where, name, n)
				}
			}
		}
		numbers("alone", i.Numbers)
		for kind, lists := range []map[string]redis.Values{i.Commands, i.Errors, i.Percentiles, i.Databases} {
			for name, v := range lists {
				numbers(fmt.Sprint(kind, " ", name), v)
			}
		}
	})
}
