package session

import (
	"context"
	"time"

	"chokepoint/collectors/profiler"
	"chokepoint/workloads"
)

// progressStep is how often progress is told.
const progressStep = 200 * time.Millisecond

// tellProgress tells the progress of a phase until the function it returns is
// called.
func (s *session) tellProgress(phase string, l workloads.Load) (stop func()) {
	if s.env.Progress == nil {
		return func() {}
	}
	began, before := s.now(), s.finished()
	tell := func() {
		s.env.Progress(Progress{Phase: phase, Elapsed: s.now() - began, Duration: l.Duration, Operations: s.finished() - before, Requests: l.Requests})
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go profiler.Observe(context.Background(), "progress", func(context.Context) {
		defer close(done)
		tick := time.NewTicker(progressStep)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tell()
			case <-quit:
				tell()
				return
			}
		}
	})
	return func() {
		close(quit)
		<-done
	}
}

func (s *session) finished() uint64 {
	var n uint64
	for _, count := range s.meter.Read().Finished {
		n += count
	}
	return n
}
