// Package profiler profiles this process continuously: one pyroscope-go session
// whose profiles are kept in the record, and sent on to a Pyroscope server if
// there is one. A server that is slow or gone never holds the process up.
//
// Go allows one CPU profile a process, so that there is one session at a time.
package profiler

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/grafana/pyroscope-go"
	"github.com/grafana/pyroscope-go/godeltaprof"
	"github.com/grafana/pyroscope-go/upstream"
)

// Types of profiles, as their files are named. Heap holds allocations and what
// is in use.
const (
	CPU       = "cpu"
	Goroutine = "goroutine"
	Mutex     = "mutex"
	Block     = "block"
	Heap      = "heap"
)

// Profile is one profile in pprof's format (gzipped protobuf) of one interval.
type Profile struct {
	Type     string
	From, To time.Time
	Data     []byte
}

// Config says what a session profiles, and where that goes.
type Config struct {
	AppName string
	// Tags are the session's own; keys of letters, digits, _ and . only, values
	// without a comma or a brace.
	Tags map[string]string
	// Keep is called for each profile, one at a time.
	Keep func(Profile)
	// Send also sends them on; nil does not.
	Send *Sender
}

// every is the length of an interval. Longer ones cost less and show less.
const every = 5 * time.Second

// How much of blocking is sampled. A mutex profile holds one of so many
// contentions, a block profile one event on average for so long a time of
// blocking; both are scaled up again by the runtime.
const (
	mutexFraction = 10
	blockRate     = 10 * time.Millisecond
)

// ObserverLabel marks the goroutines of the observer in CPU profiles.
const ObserverLabel = "chokepoint_observer"

// Observe runs f with the label, under the given name: its goroutines, and those
// that they start.
func Observe(ctx context.Context, name string, f func(context.Context)) {
	pprof.Do(ctx, pprof.Labels(ObserverLabel, name), f)
}

// Session profiles until it is stopped.
type Session struct {
	session *pyroscope.Session
	tee     *tee
	restore func()
}

// Start starts a session. It fails if the tags are not fit for Pyroscope.
func Start(c Config) (*Session, error) {
	t := &tee{config: c, since: time.Now(), upTo: map[string]time.Time{}, block: godeltaprof.NewBlockProfiler(), mutex: godeltaprof.NewMutexProfiler(), heap: godeltaprof.NewHeapProfiler()}
	p, err := pyroscope.NewSession(pyroscope.SessionConfig{
		Upstream: t, Logger: silence{}, AppName: c.AppName, Tags: c.Tags, UploadRate: every,
		DisableGCRuns: true, // a collection at each interval would disturb what is observed
		ProfilingTypes: []pyroscope.ProfileType{pyroscope.ProfileCPU, pyroscope.ProfileGoroutines, pyroscope.ProfileMutexCount, pyroscope.ProfileMutexDuration,
			pyroscope.ProfileBlockCount, pyroscope.ProfileBlockDuration, pyroscope.ProfileAllocObjects, pyroscope.ProfileAllocSpace, pyroscope.ProfileInuseObjects, pyroscope.ProfileInuseSpace},
	})
	if err != nil {
		return nil, err
	}
	s := &Session{session: p, tee: t, restore: sampleBlocking()}
	t.prime()
	Observe(context.Background(), "profiler", func(context.Context) { err = p.Start() })
	if err != nil {
		s.restore()
		return nil, err
	}
	return s, nil
}

// sampleBlocking turns on the profiles of mutexes and blocking; what it returns
// turns them off. The runtime tells no block rate to go back to.
func sampleBlocking() (restore func()) {
	before := runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(int(blockRate.Nanoseconds()))
	return func() {
		runtime.SetMutexProfileFraction(before)
		runtime.SetBlockProfileRate(0)
	}
}

// Stop ends the session. The last interval is not lost: the session itself ends
// with its CPU profile, the others are taken here.
func (s *Session) Stop() {
	Observe(context.Background(), "profiler", func(context.Context) {
		s.session.Stop()
		s.tee.last()
	})
	s.restore()
}

// tee is the session's upstream.
type tee struct {
	config Config

	mu           sync.Mutex
	since        time.Time            // when the session started; its first intervals say earlier
	upTo         map[string]time.Time // where the last interval of a type ended
	block, mutex *godeltaprof.BlockProfiler
	heap         *godeltaprof.HeapProfiler
}

// Flush implements upstream.Upstream: nothing is held back.
func (*tee) Flush() {}

// Upload implements upstream.Upstream.
func (t *tee) Upload(job *upstream.UploadJob) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := typeOf(job)
	// The session's own deltas begin with the process, not with the session.
	if kind == Mutex || kind == Block || kind == Heap {
		var b bytes.Buffer
		t.delta(kind, &b)
		job.Profile = b.Bytes()
	}
	t.keep(kind, job)
}

func (t *tee) keep(kind string, job *upstream.UploadJob) {
	if kind != CPU { // a CPU profile knows its own interval
		job.StartTime = t.since
		if last, ok := t.upTo[kind]; ok {
			job.StartTime = last
		}
		t.upTo[kind] = job.EndTime
	}
	t.config.Keep(Profile{Type: kind, From: job.StartTime, To: job.EndTime, Data: job.Profile})
	if t.config.Send != nil {
		t.config.Send.remote.Upload(job)
	}
}

// typeOf tells what a job holds: of mutexes and blocking only the name differs
// by which they are displayed.
func typeOf(job *upstream.UploadJob) string {
	switch delay := job.SampleTypeConfig["delay"]; {
	case job.Units == "samples":
		return CPU
	case job.Units == "goroutines":
		return Goroutine
	case delay != nil && delay.DisplayName == "mutex_duration":
		return Mutex
	case delay != nil:
		return Block
	}
	return Heap
}

// prime makes the deltas begin now.
func (t *tee) prime() {
	for _, kind := range []string{Mutex, Block, Heap} {
		t.delta(kind, io.Discard)
	}
}

// delta writes what has happened since it was called before. Errors of writing
// into memory do not happen; a profile that could not be made is empty.
func (t *tee) delta(kind string, w io.Writer) {
	switch kind {
	case Mutex:
		t.mutex.Profile(w)
	case Block:
		t.block.Profile(w)
	case Heap:
		t.heap.Profile(w)
	}
}

// last takes the interval that the session does not upload when it stops.
func (t *tee) last() {
	t.mu.Lock()
	defer t.mu.Unlock()
	to := time.Now()
	for _, j := range lastJobs() {
		var b bytes.Buffer
		if j.kind == Goroutine {
			pprof.Lookup("goroutine").WriteTo(&b, 0)
		} else {
			t.delta(j.kind, &b)
		}
		job := j.job
		job.Name, job.EndTime, job.Profile = t.name(), to, b.Bytes()
		t.keep(j.kind, &job)
	}
}
