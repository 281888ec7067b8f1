package session

import (
	"fmt"
	"time"

	"chokepoint/collectors/profiler"
	"chokepoint/collectors/record"
)

// profiledApp is the application's name in Pyroscope.
const profiledApp = "chokepoint"

// profile profiles this process in a phase, until the function that it returns
// is called. Without profiles a run goes on.
func (s *session) profile(phase string) (stop func()) {
	if s.plan.Unobserved {
		return func() {}
	}
	p, err := profiler.Start(profiler.Config{
		AppName: profiledApp, Keep: s.keepProfile, Send: s.sender,
		Tags: map[string]string{"run_id": string(s.id), "workload": "lock", "strategy": s.plan.Lock.Strategy, "phase": phase},
	})
	if err != nil {
		s.rec.Event(record.Fault, "profiler", err.Error())
		return func() {}
	}
	return p.Stop
}

func (s *session) keepProfile(p profiler.Profile) {
	at := func(t time.Time) float64 { return max(0, t.Sub(s.started).Seconds()) }
	s.w.Profile(p.Type, at(p.From), at(p.To), p.Data)
}

// startSending begins to send profiles on, if there is somewhere to send them.
func (s *session) startSending() error {
	if s.env.Pyroscope == "" {
		return nil
	}
	var err error
	s.sender, err = profiler.NewSender(s.env.Pyroscope)
	return err
}

// endSending waits for what is under way, and writes down what did not arrive.
func (s *session) endSending() {
	if s.sender == nil {
		return
	}
	sender := s.sender
	s.sender = nil // ended once
	if n, first := sender.Close(); n > 0 && s.w != nil {
		text := fmt.Sprintf("%d profiles did not reach the Pyroscope server; they are in the record. The first: %s", n, first)
		s.rec.Event(record.Fault, "profiler", text)
		s.env.Log.Warn("profiles did not reach the Pyroscope server; they are in the record", "profiles", n, "first", first)
	}
}
