package profiler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"chokepoint/collectors/profiler"
)

// push is one request of the client, as a Pyroscope server would see it.
type push struct {
	query map[string]string
	kinds string // names of the sample types' displays
	data  []byte
	user  string
}

// server takes pushes as Pyroscope's /ingest does.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	pushes []push
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := push{query: map[string]string{}}
		p.user, _, _ = r.BasicAuth()
		for k := range r.URL.Query() {
			p.query[k] = r.URL.Query().Get(k)
		}
		if err := r.ParseMultipartForm(16 << 20); err != nil || r.Method != http.MethodPost || r.URL.Path != "/ingest" {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		p.data = part(t, r, "profile")
		var config map[string]struct {
			DisplayName string `json:"display-name"`
		}
		if text := part(t, r, "sample_type_config"); text != nil {
			if err := json.Unmarshal(text, &config); err != nil {
				t.Error(err)
			}
		}
		for name, c := range config {
			p.kinds += name + " " + c.DisplayName + " "
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pushes = append(s.pushes, p)
	}))
	t.Cleanup(s.Close)
	return s
}

func part(t *testing.T, r *http.Request, name string) []byte {
	t.Helper()
	f, _, err := r.FormFile(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Error(err)
	}
	return b
}

// keeper keeps profiles as a record does.
type keeper struct {
	mu  sync.Mutex
	all []profiler.Profile
}

func (k *keeper) keep(p profiler.Profile) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, p)
}

// busy computes for the given time under a label, and makes others wait for a
// mutex meanwhile.
func busy(d time.Duration) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			pprof.Do(context.Background(), pprof.Labels("stage", "statement"), func(context.Context) {
				for began := time.Now(); time.Since(began) < d; {
					mu.Lock()
					spin()
					mu.Unlock()
				}
			})
		})
	}
	wg.Wait()
}

func spin() {
	x := 0
	for i := range 200_000 {
		x += i * i
	}
	sink(x)
}

//go:noinline
func sink(int) {}

func cpuSeconds(t *testing.T, data []byte) float64 {
	t.Helper()
	p, err := profile.Parse(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, s := range p.Sample {
		sum += float64(s.Value[1]) * 1e-9 // samples, cpu
	}
	return sum
}

// TestPushes: a server receives what is kept: six kinds of profiles with the
// run's tags, and the same CPU seconds; the last interval is among them, though
// the session was shorter than one.
func TestPushes(t *testing.T) {
	s := serve(t)
	sender, err := profiler.NewSender(strings.Replace(s.URL, "http://", "http://me:secret@", 1))
	if err != nil {
		t.Fatal(err)
	}
	var kept keeper
	began := time.Now()
	session, err := profiler.Start(profiler.Config{AppName: "chokepoint", Keep: kept.keep, Send: sender,
		Tags: map[string]string{"run_id": "20261130T212218Z-lock-7f3a", "workload": "lock", "strategy": "redis-spin", "phase": "measure"}})
	if err != nil {
		t.Fatal(err)
	}
	busy(700 * time.Millisecond)
	session.Stop()
	ended := time.Now()
	if n, first := sender.Close(); n != 0 {
		t.Errorf("%d failed: %s", n, first)
	}

	types := map[string]int{}
	keptCPU := 0.0
	for _, p := range kept.all {
		types[p.Type]++
		parsed, err := profile.Parse(bytes.NewReader(p.Data))
		if err != nil {
			t.Errorf("%s: %v", p.Type, err)
			continue
		}
		if p.From.Before(began) || p.To.After(ended) || !p.From.Before(p.To) {
			t.Errorf("%s: from %v to %v of a session from %v to %v", p.Type, p.From, p.To, began, ended)
		}
		if p.Type == profiler.CPU {
			keptCPU += cpuSeconds(t, p.Data)
		}
		if p.Type == profiler.Mutex && len(parsed.Sample) == 0 {
			t.Error("four goroutines behind one mutex, and no sample of it")
		}
	}
	for _, kind := range []string{profiler.CPU, profiler.Goroutine, profiler.Mutex, profiler.Block, profiler.Heap} {
		if types[kind] == 0 {
			t.Errorf("no %s profile is kept: %v", kind, types)
		}
	}
	sentCPU, shown := 0.0, ""
	for _, p := range s.pushes {
		for _, tag := range []string{"run_id=20261130T212218Z-lock-7f3a", "workload=lock", "strategy=redis-spin", "phase=measure"} {
			if !strings.Contains(p.query["name"], tag) || !strings.HasPrefix(p.query["name"], "chokepoint{") {
				t.Errorf("name %q lacks %s", p.query["name"], tag)
			}
		}
		if p.query["units"] == "samples" {
			sentCPU += cpuSeconds(t, p.data)
			shown += "cpu "
		}
		shown += p.kinds
		if p.user != "me" || p.query["from"] == "" || p.query["until"] == "" {
			t.Errorf("user %q, query %v", p.user, p.query)
		}
	}
	for _, kind := range []string{"cpu", "goroutine goroutine", "delay mutex_duration", "delay block_duration", "alloc_space", "inuse_space"} {
		if !strings.Contains(shown, kind) {
			t.Errorf("no %s was pushed: %s", kind, shown)
		}
	}
	if len(s.pushes) != len(kept.all) || math.Abs(sentCPU-keptCPU) > 1e-9 || keptCPU < 0.2 {
		t.Errorf("%d pushed and %d kept; CPU %.2f s sent, %.2f s kept, of 0.7 s on a busy machine", len(s.pushes), len(kept.all), sentCPU, keptCPU)
	}
}

// TestDeadServer: nobody listens, and the profiles are kept all the same.
func TestDeadServer(t *testing.T) {
	s := serve(t)
	s.Close()
	sender, err := profiler.NewSender(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	kept := short(t, sender)
	if n, first := sender.Close(); n == 0 || !strings.Contains(first, "connection refused") || kept == 0 {
		t.Errorf("%d failed (%s), %d kept", n, first, kept)
	}
}

// TestSlowServer: a server that never answers does not make the session wait.
func TestSlowServer(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	sender, err := profiler.NewSender(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for range 8 { // more profiles than the queue takes
		if kept := short(t, sender); kept < 5 {
			t.Errorf("%d profiles are kept", kept)
		}
	}
	if n, first := sender.Close(); n == 0 || first == "" {
		t.Errorf("%d failed: %s", n, first)
	}
}

// short is a session that ends at once; it returns how many profiles it kept.
func short(t *testing.T, sender *profiler.Sender) int {
	t.Helper()
	var kept keeper
	session, err := profiler.Start(profiler.Config{AppName: "chokepoint", Keep: kept.keep, Send: sender})
	if err != nil {
		t.Fatal(err)
	}
	busy(20 * time.Millisecond)
	session.Stop()
	return len(kept.all)
}

// TestSessionsApart: what happened before a session is not in its profiles.
func TestSessionsApart(t *testing.T) {
	waits := func(load func()) float64 {
		var kept keeper
		session, err := profiler.Start(profiler.Config{AppName: "chokepoint", Keep: kept.keep})
		if err != nil {
			t.Fatal(err)
		}
		load()
		session.Stop()
		sum := 0.0
		for _, p := range kept.all {
			if p.Type != profiler.Mutex {
				continue
			}
			parsed, err := profile.Parse(bytes.NewReader(p.Data))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range parsed.Sample {
				sum += float64(s.Value[1]) * 1e-9 // contentions, delay
			}
		}
		return sum
	}
	contended := waits(func() { busy(300 * time.Millisecond) })
	idle := waits(func() {})
	if contended < 0.05 || idle > contended/10 {
		t.Errorf("mutex waits: %.3f s in the contended session, %.3f s in the idle one after it", contended, idle)
	}
}

// TestBadAddress: an error does not repeat the address, which may hold a secret.
func TestBadAddress(t *testing.T) {
	for _, bad := range []string{"hunter2", "ftp://hunter2@x", "http://", "http://u:hunt%er2@h:1", "://hunter2"} {
		if _, err := profiler.NewSender(bad); err == nil || strings.Contains(err.Error(), "hunt") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestObserverLabel: what the observer does is found by its label.
func TestObserverLabel(t *testing.T) {
	var kept keeper
	session, err := profiler.Start(profiler.Config{AppName: "chokepoint", Keep: kept.keep})
	if err != nil {
		t.Fatal(err)
	}
	profiler.Observe(t.Context(), "host", func(context.Context) {
		for began := time.Now(); time.Since(began) < 300*time.Millisecond; {
			spin()
		}
	})
	session.Stop()
	found := 0.0
	for _, p := range kept.all {
		if p.Type != profiler.CPU {
			continue
		}
		parsed, err := profile.Parse(bytes.NewReader(p.Data))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range parsed.Sample {
			if s.HasLabel(profiler.ObserverLabel, "host") {
				found += float64(s.Value[1]) * 1e-9
			}
		}
	}
	if found < 0.05 {
		t.Errorf("%.2f s of the observer's 0.3 s are labelled", found)
	}
}
