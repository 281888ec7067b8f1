package collectors_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"chokepoint/collectors"
	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// source counts its readings; hook may fail or take time.
type source struct {
	n    int
	hook func(n int) error
}

func (*source) Name() string           { return "s" }
func (*source) Metrics() []metric.Desc { return nil }
func (s *source) Read(_ context.Context, b *record.Batch) error {
	s.n++
	if s.hook != nil {
		if err := s.hook(s.n); err != nil {
			return err
		}
	}
	b.Add(float64(s.n), "n")
	return nil
}

// poll polls for a virtual time, and returns the times of the batches in ms
// and the events.
func poll(t *testing.T, s *source, every collectors.Every, length time.Duration) (batches []int, events []string) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	id := record.NewID(time.Now(), "lock")
	w, err := record.Create(root, record.Run{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		rec := collectors.Recorder{W: w, Now: func() time.Duration { return time.Since(began) }}
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		rec.Poll(ctx, s, every)
	})
	r, err := record.Open(root, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for b, err := range r.Batches() {
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, int(b.T*1e3+0.5))
	}
	for e, err := range r.Events() {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, fmt.Sprintf("%.0f %s %s", e.T*1e3, e.Kind, e.Text))
	}
	return batches, events
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

func TestPollGrid(t *testing.T) {
	// Every 25 ms until 100 ms have passed, then every 100 ms.
	every := collectors.Every{Fast: 25 * time.Millisecond, Slow: 100 * time.Millisecond, Until: 100 * time.Millisecond, Timeout: time.Second}
	batches, events := poll(t, &source{}, every, 450*time.Millisecond)
	same(t, "batches", batches, []int{25, 50, 75, 100, 200, 300, 400})
	same(t, "events", events, []string(nil))
}

func TestPollLate(t *testing.T) {
	// The third reading takes 250 ms: it is of 300, and those of 400 and 500
	// are skipped and named.
	s := &source{hook: func(n int) error {
		if n == 3 {
			time.Sleep(250 * time.Millisecond) // the bubble's clock
		}
		return nil
	}}
	every := collectors.Every{Fast: 100 * time.Millisecond, Slow: 100 * time.Millisecond, Timeout: time.Second}
	batches, events := poll(t, s, every, 800*time.Millisecond)
	same(t, "batches", batches, []int{100, 200, 300, 550, 650, 750})
	same(t, "events", events, []string{"550 gap no reading for 0.250 s"})
}

func TestPollFaults(t *testing.T) {
	s := &source{hook: func(n int) error {
		if n == 2 || n == 3 {
			return errors.New("s: gone away")
		}
		return nil
	}}
	every := collectors.Every{Fast: 100 * time.Millisecond, Slow: 100 * time.Millisecond, Timeout: time.Second}
	batches, events := poll(t, s, every, 550*time.Millisecond)
	same(t, "batches", batches, []int{100, 400, 500})
	same(t, "events", events, []string{"200 fault s: gone away", "400 note readings work again"})
}
