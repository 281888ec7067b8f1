package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
	"chokepoint/collectors/redis"
)

// peer answers as servers do that are not to be had here: old ones, and some
// made by others. answer gives the reply on the wire; the peer hangs up for an
// empty one.
func peer(t *testing.T, answer func(command string, args []string) string) *client.Options {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn, answer)
		}
	}()
	return &client.Options{Addr: l.Addr().String()}
}

func serve(conn net.Conn, answer func(string, []string) string) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		words, err := readCommand(r)
		if err != nil {
			return
		}
		reply := answer(strings.ToUpper(words[0]), words[1:])
		if _, err := io.WriteString(conn, reply); err != nil || reply == "" {
			return
		}
	}
}

// readCommand reads an array of bulk strings.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r, "*")
	if err != nil || n < 1 {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	words := make([]string, n)
	for i := range words {
		n, err := readLength(r, "$")
		if err != nil {
			return nil, err
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		words[i] = string(text[:n])
	}
	return words, nil
}

func readLength(r *bufio.Reader, head string) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), head))
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// TestOldServer: one that knows no HELLO, no INFO of several sections and no
// LATENCY HISTOGRAM tells what it can.
func TestOldServer(t *testing.T) {
	text := readFile(t, "testdata", "redis_5.txt")
	o := peer(t, func(command string, args []string) string {
		switch {
		case command == "INFO" && len(args) == 1 && args[0] == "all":
			return bulk(text)
		case command == "INFO":
			return "-ERR syntax error\r\n"
		case command == "LATENCY":
			return "-ERR Unknown subcommand or wrong number of arguments for 'HISTOGRAM'. Try LATENCY HELP.\r\n"
		case command == "SLOWLOG" && args[0] == "len":
			return ":0\r\n"
		case command == "SLOWLOG":
			return "*0\r\n"
		}
		return "-ERR unknown command '" + command + "'\r\n"
	})
	s := connect(t, o)
	if s.Flavor != redis.Redis || s.Version != "5.0.9" {
		t.Errorf("%s %s", s.Flavor, s.Version)
	}
	v := read(t, s, redis.InfoSource)
	if v["redis.command.calls{get}"] != 33 || v[redis.Hits] != 11 {
		t.Errorf("read %v", v)
	}
	if v := read(t, s, redis.SlowlogSource); len(v) != 1 || v[redis.SlowlogEntries] != 0 {
		t.Errorf("empty slow log: %v", v)
	}
	b := &record.Batch{}
	err := source(t, s, redis.LatencySource).Read(t.Context(), b)
	const want = "redis.latency: LATENCY HISTOGRAM needs Redis 7.0 or Valkey: ERR Unknown subcommand"
	if err == nil || !strings.HasPrefix(err.Error(), want) || len(b.Values) > 0 {
		t.Errorf("%v, read %v", err, b.Values)
	}
}

func TestValkey(t *testing.T) {
	text := readFile(t, "testdata", "valkey_9.txt")
	o := peer(t, func(command string, args []string) string {
		if command == "INFO" {
			return bulk(text)
		}
		return "-ERR unknown command\r\n"
	})
	if s := connect(t, o); s.Flavor != redis.Valkey || s.Version != "9.1.2" {
		t.Errorf("%s %s", s.Flavor, s.Version)
	}
}

// TestPartOfReading: what could be read is in the batch beside the error.
func TestPartOfReading(t *testing.T) {
	text := readFile(t, "testdata", "wrapped_counters.txt")
	o := peer(t, func(command string, args []string) string {
		if command == "INFO" {
			return bulk(text)
		}
		return "-ERR unknown command\r\n"
	})
	b := &record.Batch{}
	err := source(t, connect(t, o), redis.InfoSource).Read(t.Context(), b)
	if err == nil || !strings.HasPrefix(err.Error(), "redis.info: connected_clients: 4294967290 is not a count") {
		t.Errorf("%v", err)
	}
	if _, ok := b.Values[redis.ConnectedClients]; ok || b.Values[redis.BlockedClients] != 3 || b.Values[redis.MemoryUsed] != 1000000 {
		t.Errorf("read %v", b.Values)
	}
}

// TestPasswordHidden: servers that repeat a command they refuse, whole or cut
// off, do not bring the password into an error.
func TestPasswordHidden(t *testing.T) {
	const password = `p@ss/w0rd:#?% "ä\`
	u := "redis://mon:p%40ss%2Fw0rd%3A%23%3F%25%20%22%C3%A4%5C@h"
	for name, answer := range map[string]func(command string, args []string) string{
		"repeats AUTH": func(command string, args []string) string {
			return "-ERR unknown command '" + command + "', with args beginning with: '" + strings.Join(args, "' '") + "'\r\n"
		},
		"repeats the beginning of AUTH": func(command string, args []string) string {
			text := strings.Join(args, " ")
			return "-ERR unknown command " + command + " " + text[:min(len(text), len("mon p@ss/w"))] + "\r\n"
		},
		"repeats it later": func(command string, args []string) string {
			if command == "AUTH" {
				return "+OK\r\n"
			}
			return "-ERR no backend for mon:" + password + "\r\n"
		},
		"hangs up": func(command string, args []string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			o, err := redis.ParseURL(u)
			if err != nil || o.Password != password {
				t.Fatalf("password %q, %v", o.Password, err)
			}
			o.Addr = peer(t, answer).Addr
			_, err = redis.Connect(t.Context(), o)
			if err == nil || !strings.HasPrefix(err.Error(), "redis: ") {
				t.Fatalf("%v", err)
			}
			for _, secret := range []string{"p@ss", "w0rd", "%40"} {
				if strings.Contains(fmt.Sprintf("%+v", err), secret) {
					t.Errorf("the error holds %q: %v", secret, err)
				}
			}
		})
	}
}

// TestNoRedis: something that answers, and is no Redis.
func TestNoRedis(t *testing.T) {
	o := peer(t, func(command string, args []string) string {
		if command == "INFO" {
			return bulk("220 welcome")
		}
		return "-ERR unknown command\r\n"
	})
	_, err := redis.Connect(t.Context(), o)
	const want = "redis: INFO names no version: is this a Redis or Valkey server?\nline 1 is not name:value but \"220 welcome\""
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestDeadline: a reading ends with its time, whatever the server does.
func TestDeadline(t *testing.T) {
	text := readFile(t, "testdata", "redis_5.txt")
	end := make(chan struct{})
	defer close(end)
	o := peer(t, func(command string, args []string) string {
		if command == "INFO" {
			return bulk(text)
		}
		if command == "LATENCY" {
			<-end
		}
		return "-ERR unknown command\r\n"
	})
	o.ReadTimeout = -1 // none but the context's
	s := connect(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := source(t, s, redis.LatencySource).Read(ctx, &record.Batch{})
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || !strings.HasPrefix(err.Error(), "redis.latency: ") {
		t.Errorf("%v", err)
	}
}

// TestConnectFails: there is nobody.
func TestConnectFails(t *testing.T) {
	_, err := redis.Connect(t.Context(), &client.Options{Addr: t.TempDir() + "/none"})
	if err == nil || !strings.HasPrefix(err.Error(), "redis: ") {
		t.Errorf("%v", err)
	}
}

// TestDescriptions: every metric has one description, with what a reader needs.
func TestDescriptions(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range new(redis.Server).Sources() {
		for _, d := range s.Metrics() {
			if seen[d.Name] {
				t.Errorf("%s is described twice", d.Name)
			}
			seen[d.Name] = true
			unit := d.Unit == metric.Seconds || d.Unit == metric.Bytes || d.Unit == metric.One
			kind := d.Kind == metric.Counter || d.Kind == metric.Gauge
			if !unit || !kind || d.Help == "" || !strings.HasPrefix(d.Name, "redis.") || d.Name != strings.ToLower(d.Name) {
				t.Errorf("%+v", d)
			}
		}
	}
	if len(seen) != 23 {
		t.Errorf("%d metrics", len(seen))
	}
}
