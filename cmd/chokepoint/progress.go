package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"chokepoint/cmd/chokepoint/internal/session"
)

// progress shows how far a run is: one line that is written again and again on
// a terminal, a line every few seconds elsewhere.
type progress struct {
	w        world
	terminal bool
	last     time.Time
	shown    bool
}

// logStep is how often progress is told where there is no terminal.
const logStep = 5 * time.Second

func newProgress(w world) *progress {
	f, ok := w.stderr.(*os.File)
	return &progress{w: w, terminal: ok && term.IsTerminal(int(f.Fd())), last: time.Now()}
}

func (p *progress) tell(s session.Progress) {
	line := progressLine(s)
	switch {
	case p.terminal:
		fmt.Fprintf(p.w.stderr, "\r%-79s", line)
		p.shown = true
	case time.Since(p.last) >= logStep:
		fmt.Fprintln(p.w.stderr, line)
		p.last = time.Now()
	}
}

// end clears the live line.
func (p *progress) end() {
	if p.shown {
		fmt.Fprintf(p.w.stderr, "\r%79s\r", "")
	}
}

const barWidth = 24

// progressLine is a bar, the rate, and the time left as far as it is known.
func progressLine(s session.Progress) string {
	done, left := fraction(s)
	n := int(done * barWidth)
	rate := 0.0
	if s.Elapsed > 0 {
		rate = float64(s.Operations) / s.Elapsed.Seconds()
	}
	line := fmt.Sprintf("%-8s [%s%s] %d operations, %.0f/s", s.Phase, strings.Repeat("=", n), strings.Repeat(" ", barWidth-n), s.Operations, rate)
	if left > 0 {
		line += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return line
}

// fraction is how much of a phase is done, by whichever of time and count is
// further on, and the time left at this pace.
func fraction(s session.Progress) (done float64, left time.Duration) {
	if s.Duration > 0 {
		done = s.Elapsed.Seconds() / s.Duration.Seconds()
	}
	if s.Requests > 0 {
		done = max(done, float64(s.Operations)/float64(s.Requests))
	}
	done = min(done, 1)
	if done > 0 {
		left = time.Duration(float64(s.Elapsed) * (1 - done) / done)
	}
	return done, left
}
