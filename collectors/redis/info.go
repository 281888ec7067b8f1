package redis

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Values are numbers by the server's names for them, in its own units.
type Values map[string]float64

// Info is what can be read from a text of INFO. What a server does not tell is
// absent, and names that are not known here are left out.
type Info struct {
	Text    map[string]string // redis_version, server_name, valkey_version
	Numbers Values            // keyspace_hits, used_cpu_sys, ...
	// Commands holds calls, usec, rejected_calls and failed_calls by command,
	// such as "get" or "config|set" (cmdstat_*).
	Commands map[string]Values
	Errors   map[string]Values // count by prefix, such as "WRONGTYPE" (errorstat_*)
	// Percentiles holds p50 and the like in microseconds by command, since the
	// server started (latency_percentiles_usec_*).
	Percentiles map[string]Values
	Databases   map[string]Values // keys and expires by database, such as "db0"
	// Sizes counts keys by size, such as {1024: 31} of "db0_distrib_strings_sizes".
	Sizes map[string]map[uint64]float64
}

// kind is how the text of a value is read.
type kind int

const (
	ignored kind = iota
	words
	whole   // a number that cannot be negative
	small   // a whole number of 32 bits
	decimal // may have a fraction
	rest    // a whole number that is the rest of others, see parseRest
)

// fieldKind tells how a field that stands alone on its line is read.
func fieldKind(name string) kind {
	switch name {
	case "redis_version", "server_name", "valkey_version":
		return words
	case "uptime_in_seconds",
		"total_connections_received", "total_commands_processed", "keyspace_hits", "keyspace_misses", "expired_keys", "evicted_keys",
		"used_memory",
		"eventloop_duration_sum", "eventloop_duration_cmd_sum":
		return whole
	case "used_memory_dataset":
		return rest
	case "connected_clients", "blocked_clients":
		return small
	case "used_cpu_sys", "used_cpu_user", "used_cpu_sys_main_thread", "used_cpu_user_main_thread":
		return decimal
	}
	return ignored
}

// itemKind tells how an item of a list, name=value, is read.
func itemKind(name string) kind {
	switch name {
	case "calls", "usec", "rejected_calls", "failed_calls", "count", "keys", "expires":
		return whole
	}
	if percentile.MatchString(name) {
		return decimal
	}
	return ignored
}

var percentile = regexp.MustCompile(`^p\d+(?:\.\d+)?$`)

// ParseInfo reads a text of INFO: lines of name:value, whose sections may stand
// in any order, with or without blank lines between them. The error joins what
// cannot be read, each with its name; what can be read is in Info all the same.
func ParseInfo(s string) (Info, error) {
	p := parser{info: Info{
		Text:        map[string]string{},
		Numbers:     Values{},
		Commands:    map[string]Values{},
		Errors:      map[string]Values{},
		Percentiles: map[string]Values{},
		Databases:   map[string]Values{},
		Sizes:       map[string]map[uint64]float64{},
	}}
	n := 0
	for line := range strings.Lines(s) {
		n++
		p.line(n, strings.TrimSpace(line))
	}
	return p.info, p.err()
}

// parser fills an Info, and keeps what it could not read.
type parser struct {
	info Info
	errs []error
	more int // errors beyond mostErrors
}

// mostErrors is how many errors of one text are told: a text that is no INFO at
// all has one in each line.
const mostErrors = 10

func (p *parser) fail(format string, args ...any) {
	if len(p.errs) == mostErrors {
		p.more++
		return
	}
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

func (p *parser) err() error {
	if p.more > 0 {
		return errors.Join(append(p.errs, fmt.Errorf("and %d more", p.more))...)
	}
	return errors.Join(p.errs...)
}

// bulkLength is the head of a bulk string, in texts that were taken from the
// wire: no part of INFO.
var bulkLength = regexp.MustCompile(`^\$\d+$`)

func (p *parser) line(n int, line string) {
	if line == "" || line[0] == '#' || n == 1 && bulkLength.MatchString(line) {
		return
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok || strings.ContainsAny(name, " \t") {
		p.fail("line %d is not name:value but %.100q", n, line) // such as an error of the server
		return
	}
	p.set(name, value)
}

var (
	database     = regexp.MustCompile(`^db\d+$`)
	distribution = regexp.MustCompile(`^db\d+_distrib_`)
)

// set keeps the value of one line, if its name is known.
func (p *parser) set(name, value string) {
	if k := fieldKind(name); k == words {
		p.info.Text[name] = value
	} else if k != ignored {
		p.number(p.info.Numbers, name, name, value, k)
	} else if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
		p.list(p.info.Commands, command, name, value)
	} else if prefix, ok := strings.CutPrefix(name, "errorstat_"); ok {
		p.list(p.info.Errors, prefix, name, value)
	} else if command, ok := strings.CutPrefix(name, "latency_percentiles_usec_"); ok {
		p.list(p.info.Percentiles, command, name, value)
	} else if database.MatchString(name) {
		p.list(p.info.Databases, name, name, value)
	} else if distribution.MatchString(name) {
		p.sizes(name, value)
	}
}

// list reads name=value,name=value by the names: servers add some in the middle.
func (p *parser) list(into map[string]Values, key, name, list string) {
	into[key] = Values{}
	p.items(name, list, func(item, value string) {
		if k := itemKind(item); k != ignored {
			p.number(into[key], item, name+" "+item, value, k)
		}
	})
}

// sizes reads a list of size=keys.
func (p *parser) sizes(name, list string) {
	sizes := map[uint64]float64{}
	p.info.Sizes[name] = sizes
	p.items(name, list, func(item, value string) {
		size, err := parseSize(item)
		if err != nil {
			p.fail("%s: %w", name, err)
			return
		}
		keys, err := parseWhole(value, 64)
		if err != nil {
			p.fail("%s %s: %w", name, item, err)
			return
		}
		sizes[size] = keys
	})
}

func (p *parser) items(name, list string, item func(name, value string)) {
	for part := range strings.SplitSeq(list, ",") {
		if k, v, ok := strings.Cut(part, "="); ok {
			item(k, v)
		} else {
			p.fail("%s: %.100q is not name=value", name, part)
		}
	}
}

// number keeps a number, or an error that says where it stands.
func (p *parser) number(into Values, name, where, value string, k kind) {
	v, err := parseNumber(value, k)
	if err != nil {
		p.fail("%s: %w", where, err)
		return
	}
	into[name] = v
}

func parseNumber(s string, k kind) (float64, error) {
	switch k {
	case small:
		return parseWhole(s, 32)
	case decimal:
		return parseDecimal(s)
	case rest:
		return parseRest(s)
	}
	return parseWhole(s, 64)
}

// parseRest reads what the server computes as a difference of two estimates.
// Without data that can fall below zero, which servers print without the sign
// (used_memory_dataset of Redis 8.0.6 after CONFIG RESETSTAT): it is nothing.
func parseRest(s string) (float64, error) {
	if v, err := strconv.ParseUint(s, 10, 64); err == nil && v>>63 != 0 {
		return 0, nil
	}
	return parseWhole(s, 64)
}

// parseWhole reads a count. A number with the sign bit set is one that fell
// below zero in the server and was printed without its sign.
func parseWhole(s string, bits int) (float64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.100q is not a whole number", s)
	case v>>(bits-1) != 0:
		return 0, fmt.Errorf("%s is not a count but a negative number of %d bits without its sign", s, bits)
	}
	return float64(v), nil
}

var decimalPattern = regexp.MustCompile(`^\d{1,30}(?:[.,]\d{1,30})?$`)

// parseDecimal reads a number that may have a fraction. A single comma is a
// decimal point: fields of this kind are never printed in groups of thousands.
func parseDecimal(s string) (float64, error) {
	if !decimalPattern.MatchString(s) {
		return 0, fmt.Errorf("%.100q is not a number", s)
	}
	return strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
}

// parseSize reads a size such as 512, 1K or 2M: powers of 1024.
func parseSize(s string) (uint64, error) {
	shift := 0
	digits := strings.TrimRight(s, "KMGT")
	if suffix := s[len(digits):]; len(suffix) == 1 {
		shift = 10 * (1 + strings.Index("KMGT", suffix))
	} else if suffix != "" {
		return 0, fmt.Errorf("%.100q is not a size", s)
	}
	v, err := strconv.ParseUint(digits, 10, 64-shift)
	if err != nil {
		return 0, fmt.Errorf("%.100q is not a size", s)
	}
	return v << shift, nil
}
