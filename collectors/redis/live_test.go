package redis_test

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	client "github.com/redis/go-redis/v9"

	"chokepoint/collectors"
	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
	"chokepoint/collectors/redis"
	"chokepoint/workloads/sandbox"
	"chokepoint/workloads/sandbox/sandboxtest"
)

func connect(t *testing.T, o *client.Options) *redis.Server {
	t.Helper()
	s, err := redis.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Client.Close() })
	return s
}

func source(t *testing.T, s *redis.Server, name string) collectors.Source {
	t.Helper()
	for _, src := range s.Sources() {
		if src.Name() == name {
			return src
		}
	}
	t.Fatal("no source ", name)
	return nil
}

// read takes one reading, and holds each value against the description.
func read(t *testing.T, s *redis.Server, name string) map[string]float64 {
	t.Helper()
	src := source(t, s, name)
	b := &record.Batch{Source: name}
	if err := src.Read(context.WithoutCancel(t.Context()), b); err != nil {
		t.Fatal(err)
	}
	descs := map[string]metric.Desc{}
	for _, d := range src.Metrics() {
		descs[d.Name] = d
	}
	for series := range b.Values {
		name, labels, err := record.ParseSeries(series)
		if d, ok := descs[name]; err != nil || !ok || len(d.Labels) != len(labels) {
			t.Errorf("series %s is not as described (%v)", series, err)
		}
	}
	return b.Values
}

// grown are the series of a metric that have grown between two readings, by the
// value of their first label; without a label, by the metric's name.
func grown(before, after map[string]float64, metric string) map[string]float64 {
	out := map[string]float64{}
	for series, v := range after {
		name, labels, _ := record.ParseSeries(series)
		if d := v - before[series]; name == metric && d != 0 {
			if len(labels) == 0 {
				labels = []string{metric}
			}
			out[labels[0]] += d
		}
	}
	return out
}

// stage is a server, a load's only connection to it, and the observer's view.
type stage struct {
	options *client.Options
	load    *client.Client
	server  *redis.Server
}

// do runs one command of the load and checks how it ends: fault is the first
// word of its error, or empty.
func (s stage) do(t *testing.T, fault string, words ...any) {
	t.Helper()
	err := s.load.Do(t.Context(), words...).Err()
	if err == client.Nil {
		err = nil
	}
	if err == nil && fault != "" || err != nil && (fault == "" || !strings.HasPrefix(err.Error(), fault)) {
		t.Fatalf("%v: %v, want %q", words, err, fault)
	}
}

// TestOneServer looks at each server from all sides.
func TestOneServer(t *testing.T) { sandboxtest.EachRedis(t, testOneServer) }

func testOneServer(t *testing.T, version string) {
	r := sandboxtest.Redis(t, sandboxtest.Start(t, sandbox.Options{Redis: version}))
	s := stage{options: &client.Options{Network: "unix", Addr: r.Socket, PoolSize: 1, Protocol: 2, DisableIdentity: true}}
	s.load = client.NewClient(s.options)
	t.Cleanup(func() { s.load.Close() })
	s.do(t, "", "ping")
	s.server = connect(t, s.options)
	if s.server.Flavor != string(r.Flavor) || !strings.Contains(r.Version, s.server.Version) {
		t.Errorf("%s %s, the program says %s %s", s.server.Flavor, s.server.Version, r.Flavor, r.Version)
	}
	for _, part := range []struct {
		name string
		test func(*testing.T, stage)
	}{
		{"commands by hand", commandsByHand},
		{"histogram by hand", histogramByHand},
		{"slow log by hand", slowlogByHand},
		{"blocked", blocked},
		{"server's own numbers", serversOwnNumbers},
		{"observer", observer},
		{"least privilege", leastPrivilege},
		{"no rights", noRights},
		{"no password", noPassword},
		{"reset", reset},
		{"at once", atOnce},
		{"gone", gone}, // closes the observer's pool, so it is the last
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, s) })
	}
}

const script = "return redis.call('GET', KEYS[1])"

func commandsByHand(t *testing.T, s stage) {
	sha, err := s.load.ScriptLoad(t.Context(), script).Result()
	if err != nil {
		t.Fatal(err)
	}
	before := read(t, s.server, redis.InfoSource)
	for range 7 {
		s.do(t, "", "set", "a{,}\\key", "text")
	}
	for range 5 {
		s.do(t, "", "get", "a{,}\\key") // hits
	}
	for range 3 {
		s.do(t, "", "get", "none") // misses
	}
	for range 4 {
		s.do(t, "", "evalsha", sha, 1, "a{,}\\key") // a GET, and a hit, inside each
	}
	s.do(t, "NOSCRIPT", "evalsha", strings.Repeat("0", 40), 0)
	for range 2 {
		s.do(t, "WRONGTYPE", "lpush", "a{,}\\key", "x")
	}
	s.do(t, "ERR wrong number", "get")
	after := read(t, s.server, redis.InfoSource)
	for metric, want := range map[string]map[string]float64{
		redis.CommandCalls:    {"set": 7, "get": 12, "evalsha": 5, "lpush": 2, "info": 1}, // 5 + 3 + 4 GETs; one of INFO's two ended before
		redis.CommandRejected: {"get": 1},
		redis.CommandFailed:   {"evalsha": 1, "lpush": 2},
		redis.Errors:          {"NOSCRIPT": 1, "WRONGTYPE": 2, "ERR": 1},
		redis.Hits:            {redis.Hits: 9}, // 5 + 4
		redis.Misses:          {redis.Misses: 3},
		redis.Commands:        {redis.Commands: 27}, // 7 + 12 + 5 + 2 + 1
		redis.Keys:            {"db0": 1},
		redis.Connections:     {},
		redis.ExpiredKeys:     {},
		redis.EvictedKeys:     {},
	} {
		if d := cmp.Diff(want, grown(before, after, metric)); d != "" {
			t.Errorf("%s (-want +got):\n%s", metric, d)
		}
	}
	if after[redis.ConnectedClients] != 2 || after[redis.BlockedClients] != 0 { // the load and the observer
		t.Errorf("%v connections, %v blocked", after[redis.ConnectedClients], after[redis.BlockedClients])
	}
}

func histogramByHand(t *testing.T, s stage) {
	before := read(t, s.server, redis.LatencySource)
	for range 40 {
		s.do(t, "", "incr", "n")
	}
	s.do(t, "", "getset", "n", "0")
	after := read(t, s.server, redis.LatencySource)
	// The observer's own first reading is among them, ended after it was made.
	if d := cmp.Diff(map[string]float64{"incr": 40, "getset": 1, "latency|histogram": 1}, grown(before, after, redis.CommandLatency)); d != "" {
		t.Errorf("executions in all buckets (-want +got):\n%s", d)
	}
	calls := read(t, s.server, redis.InfoSource)
	for command, n := range grown(nil, after, redis.CommandLatency) {
		if c := calls[record.Series(redis.CommandCalls, command)]; n != c && command != "latency|histogram" && command != "info" {
			t.Errorf("%s: %v executions in its buckets, %v calls", command, n, c)
		}
	}
}

// slowlogByHand lets the server log each command: CONFIG SET itself, two PINGs,
// and not the CONFIG SET that ends it.
func slowlogByHand(t *testing.T, s stage) {
	if v := read(t, s.server, redis.SlowlogSource); len(v) != 1 || v[redis.SlowlogEntries] != 0 {
		t.Fatalf("nothing was slow yet: %v", v)
	}
	three := func() {
		s.do(t, "", "config", "set", "slowlog-log-slower-than", "0")
		s.do(t, "", "ping")
		s.do(t, "", "ping")
		s.do(t, "", "config", "set", "slowlog-log-slower-than", "-1")
	}
	three()
	if d := cmp.Diff(map[string]float64{redis.SlowlogEntries: 3, redis.SlowlogLogged: 3}, read(t, s.server, redis.SlowlogSource)); d != "" {
		t.Errorf("three slow commands (-want +got):\n%s", d)
	}
	s.do(t, "", "slowlog", "reset")
	three()
	if d := cmp.Diff(map[string]float64{redis.SlowlogEntries: 3, redis.SlowlogLogged: 6}, read(t, s.server, redis.SlowlogSource)); d != "" {
		t.Errorf("three more, after a reset (-want +got):\n%s", d)
	}
}

// blocked: a second connection waits for a list.
func blocked(t *testing.T, s stage) {
	waiter := client.NewClient(s.options)
	defer waiter.Close()
	ended := make(chan error, 1)
	go func() { ended <- waiter.BLPop(t.Context(), 0, "list").Err() }()
	for read(t, s.server, redis.InfoSource)[redis.BlockedClients] != 1 {
		select {
		case err := <-ended:
			t.Fatal("it does not wait: ", err)
		default:
		}
	}
	s.do(t, "", "rpush", "list", "x")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if v := read(t, s.server, redis.InfoSource)[redis.BlockedClients]; v != 0 {
		t.Errorf("%v wait for nothing", v)
	}
}

// serversOwnNumbers holds a reading against the server's text before it and
// after it: what this version tells is read, and lies between.
func serversOwnNumbers(t *testing.T, s stage) {
	tell := func() string {
		text, err := s.load.Info(t.Context(), "everything").Result()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	number := func(text, field string) (float64, bool) {
		i, err := redis.ParseInfo(text)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := i.Numbers[field]
		return v, ok && strings.Contains(text, "\n"+field+":")
	}
	before := tell()
	values := read(t, s.server, redis.InfoSource)
	after := tell()
	for field, c := range map[string]struct {
		series string
		scale  float64
	}{
		"uptime_in_seconds":          {redis.Uptime, 1},
		"total_commands_processed":   {redis.Commands, 1},
		"eventloop_duration_sum":     {redis.EventLoop, 1e6},
		"eventloop_duration_cmd_sum": {redis.EventLoopCommands, 1e6},
	} {
		lo, told := number(before, field)
		hi, _ := number(after, field)
		got, ok := values[c.series]
		if got *= c.scale; ok != told || told && (got < lo-1e-6 || got > hi+1e-6) {
			t.Errorf("%s is %v (%v), the server said %v and %v (%v)", c.series, got, ok, lo, hi, told)
		}
	}
	main, all := values[record.Series(redis.CPUSeconds, redis.MainThread)], values[record.Series(redis.CPUSeconds, redis.AllThreads)]
	if main <= 0 || all <= 0 {
		t.Errorf("CPU: %v s of the main thread, %v s of all", main, all)
	}
	if values[redis.Dataset] <= 0 || values[redis.Dataset] >= values[redis.MemoryUsed] {
		t.Errorf("%v bytes of data in %v", values[redis.Dataset], values[redis.MemoryUsed])
	}
}

// observer: connecting costs a connection, a HELLO and an INFO, and no error,
// not even that of a command which this version does not know.
func observer(t *testing.T, s stage) {
	before := read(t, s.server, redis.InfoSource)
	connect(t, s.options)
	after := read(t, s.server, redis.InfoSource)
	for metric, want := range map[string]map[string]float64{
		redis.CommandCalls:    {"hello": 1, "info": 2}, // its own, and that of the reading before
		redis.CommandRejected: {},
		redis.CommandFailed:   {},
		redis.Errors:          {},
		redis.Connections:     {redis.Connections: 1},
	} {
		if d := cmp.Diff(want, grown(before, after, metric)); d != "" {
			t.Errorf("%s (-want +got):\n%s", metric, d)
		}
	}
}

const password = "p@ss/w:#?%é w"

// as gives the options of another user, who would work in database 3.
func (s stage) as(t *testing.T, user, password string) *client.Options {
	t.Helper()
	u := url.URL{Scheme: "unix", User: url.UserPassword(user, password), Path: s.options.Addr, RawQuery: "db=3"}
	o, err := redis.ParseURL(u.String())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// leastPrivilege: the rights that are told to users are enough for every source,
// and nothing that is asked for is refused.
func leastPrivilege(t *testing.T, s stage) {
	words := []any{"acl", "setuser", "mon", "on", ">" + password}
	for right := range strings.FieldsSeq("resetkeys resetchannels -@all +info +ping +hello +latency|histogram +latency|latest +slowlog|get +slowlog|len +client|setname +client|id") {
		words = append(words, right)
	}
	s.do(t, "", words...)
	before := read(t, s.server, redis.InfoSource)
	mon := connect(t, s.as(t, "mon", password))
	for _, src := range mon.Sources() {
		if v := read(t, mon, src.Name()); len(v) == 0 {
			t.Errorf("%s read nothing", src.Name())
		}
	}
	if d := cmp.Diff(map[string]float64{}, grown(before, read(t, s.server, redis.InfoSource), redis.Errors)); d != "" {
		t.Errorf("errors (-want +got):\n%s", d)
	}
	for right, name := range map[string]string{"latency|histogram": redis.LatencySource, "slowlog|get": redis.SlowlogSource, "info": redis.InfoSource} {
		s.do(t, "", "acl", "setuser", "mon", "-"+right)
		err := source(t, mon, name).Read(t.Context(), &record.Batch{})
		if err == nil || !strings.HasPrefix(err.Error(), name+`: user "mon" may not read this; to allow it: ACL SETUSER mon +`) || !strings.Contains(err.Error(), "+"+right) {
			t.Errorf("without %s: %v", right, err)
		}
	}
}

func noRights(t *testing.T, s stage) {
	s.do(t, "", "acl", "setuser", "nobody", "on", ">"+password, "-@all", "+ping")
	for name, c := range map[string]struct {
		user, password, want string
	}{
		"may not":        {"nobody", password, `redis: user "nobody" may not read this; to allow it: ACL SETUSER nobody +info (NOPERM)`},
		"wrong password": {"nobody", password + "x", `redis: the server does not accept user "nobody" with this password (WRONGPASS)`},
		"unknown user":   {"stranger", password, `redis: the server does not accept user "stranger" with this password (WRONGPASS)`},
	} {
		_, err := redis.Connect(t.Context(), s.as(t, c.user, c.password))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// noPassword: the load's connection stays while new ones need a password.
func noPassword(t *testing.T, s stage) {
	s.do(t, "", "acl", "setuser", "default", "resetpass", ">"+password)
	_, err := redis.Connect(t.Context(), s.options)
	const want = "redis: the server wants a password: give it in the URL, as redis://user:password@host:port (NOAUTH)"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	connect(t, s.as(t, "", password))
	s.do(t, "", "acl", "setuser", "default", "nopass")
}

// reset: CONFIG RESETSTAT takes the counters back, and leaves the uptime.
func reset(t *testing.T, s stage) {
	before := read(t, s.server, redis.InfoSource)
	for before[redis.Uptime] < 1 && t.Context().Err() == nil {
		before = read(t, s.server, redis.InfoSource)
	}
	s.do(t, "", "config", "resetstat")
	after := read(t, s.server, redis.InfoSource)
	for _, counter := range []string{redis.Hits, redis.Misses, redis.Commands, redis.Connections} {
		if before[counter] <= after[counter] {
			t.Errorf("%s went from %v to %v", counter, before[counter], after[counter])
		}
	}
	if after[redis.Hits] != 0 || after[redis.Misses] != 0 || after[redis.Commands] != 1 { // CONFIG RESETSTAT has ended after itself
		t.Errorf("%v hits, %v misses, %v commands since the reset", after[redis.Hits], after[redis.Misses], after[redis.Commands])
	}
	if after[redis.Uptime] < before[redis.Uptime] {
		t.Errorf("uptime went from %v to %v", before[redis.Uptime], after[redis.Uptime])
	}
	if d := cmp.Diff(map[string]float64{"config|resetstat": 1}, grown(nil, after, redis.CommandCalls)); d != "" {
		t.Errorf("calls since the reset (-want +got):\n%s", d)
	}
	for series := range read(t, s.server, redis.LatencySource) {
		if strings.Contains(series, "{incr,") {
			t.Errorf("%s has outlived the reset", series)
		}
	}
}

// atOnce: the sources are read at the same time, by two connections.
func atOnce(t *testing.T, s stage) {
	var all sync.WaitGroup
	for range 3 {
		for _, src := range s.server.Sources() {
			all.Go(func() {
				b := &record.Batch{}
				if err := src.Read(t.Context(), b); err != nil || len(b.Values) == 0 {
					t.Errorf("%s: %v, %d values", src.Name(), err, len(b.Values))
				}
			})
		}
	}
	all.Wait()
	if n := s.server.Client.PoolStats().TotalConns; n > 2 {
		t.Errorf("%d connections", n)
	}
}

// gone: the error of each source names it.
func gone(t *testing.T, s stage) {
	s.server.Client.Close()
	names := map[string]bool{}
	for _, src := range s.server.Sources() {
		names[src.Name()] = true
		b := &record.Batch{}
		if err := src.Read(t.Context(), b); err == nil || !strings.HasPrefix(err.Error(), src.Name()+": ") || len(b.Values) > 0 {
			t.Errorf("%s: %v, read %v", src.Name(), err, b.Values)
		}
	}
	if d := cmp.Diff(map[string]bool{redis.InfoSource: true, redis.LatencySource: true, redis.SlowlogSource: true}, names); d != "" {
		t.Errorf("sources: %s", d)
	}
}
