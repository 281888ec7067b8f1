package profiler

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/grafana/pyroscope-go/upstream/remote"
)

// Bounds of sending: a server that does not answer in time has lost the profile,
// and at the end of a run what is still to be sent may take so long.
const (
	sendTimeout = 5 * time.Second
	sendThreads = 3
)

// Sender sends profiles to a Pyroscope server. It never makes the sessions wait:
// what the server does not take in time is dropped, and counted.
type Sender struct {
	remote *remote.Remote
	log    *failures
	cancel context.CancelFunc
}

// NewSender makes a sender to the server at the given URL, which may hold a user
// and a password. The error repeats no part of it.
func NewSender(address string) (*Sender, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("profiler: this is no URL of a Pyroscope server; it looks like http://127.0.0.1:4040")
	}
	c := remote.Config{Threads: sendThreads, Timeout: sendTimeout}
	if u.User != nil {
		c.BasicAuthUser = u.User.Username()
		c.BasicAuthPassword, _ = u.User.Password()
		u.User = nil
	}
	s := &Sender{log: &failures{}}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	c.Address, c.Logger, c.HTTPClient = u.String(), s.log, newClient(ctx)
	if s.remote, err = remote.NewRemote(c); err != nil {
		return nil, fmt.Errorf("profiler: %w", err)
	}
	s.remote.Start()
	return s, nil
}

// Close waits for what is being sent, for a bounded time, and tells how many
// profiles could not be sent, and why the first could not.
func (s *Sender) Close() (failed int, first string) {
	flushed := make(chan struct{})
	go func() {
		s.remote.Flush()
		close(flushed)
	}()
	select {
	case <-flushed:
	case <-time.After(sendTimeout):
	}
	s.cancel() // else each one that still waits takes its own time
	s.remote.Stop()
	return s.log.told()
}

// client makes requests until its context ends.
type client struct {
	ctx  context.Context
	http *http.Client
}

func newClient(ctx context.Context) client {
	return client{ctx, &http.Client{
		Timeout:   sendTimeout,
		Transport: &http.Transport{MaxConnsPerHost: sendThreads},
		// As the package's own client: a redirect would lose the password.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Do implements remote.HTTPClient.
func (c client) Do(r *http.Request) (*http.Response, error) { return c.http.Do(r.WithContext(c.ctx)) }

// failures counts what the client logs as errors: uploads that failed or were
// dropped.
type failures struct {
	mu    sync.Mutex
	n     int
	first string
}

// Errorf implements remote.Logger.
func (f *failures) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.n == 1 {
		f.first = fmt.Sprintf(format, args...)
	}
}

// Infof implements remote.Logger.
func (*failures) Infof(string, ...any) {}

// Debugf implements remote.Logger.
func (*failures) Debugf(string, ...any) {}

func (f *failures) told() (n int, first string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n, f.first
}

// silence is the session's logger: what fails there fails in Upload.
type silence struct{}

func (silence) Infof(string, ...any)  {}
func (silence) Debugf(string, ...any) {}
func (silence) Errorf(string, ...any) {}
