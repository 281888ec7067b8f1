package collectors_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"chokepoint/collectors"
	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// reader is a source whose n-th reading, from 1, is f.
type reader struct {
	n int
	f func(ctx context.Context, n int, b *record.Batch) error
}

func (*reader) Name() string           { return "s" }
func (*reader) Metrics() []metric.Desc { return nil }
func (r *reader) Read(ctx context.Context, b *record.Batch) error {
	r.n++
	return r.f(ctx, r.n, b)
}

// takes is a reading of one value that takes a time of the bubble's clock,
// unless its context ends.
func takes(d time.Duration) func(context.Context, int, *record.Batch) error {
	return func(ctx context.Context, n int, b *record.Batch) error {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return fmt.Errorf("s: %w", ctx.Err())
		}
		b.Add(float64(n), "n")
		return nil
	}
}

// watch polls s in a bubble until its clock says end, and returns the record
// as lines "ms what".
func watch(t *testing.T, s collectors.Source, every collectors.Every, end func(context.Context) (context.Context, context.CancelFunc)) (lines []string) {
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
		ctx, cancel := end(t.Context())
		defer cancel()
		collectors.Recorder{W: w, Now: func() time.Duration { return time.Since(began) }}.Poll(ctx, s, every)
	})
	if err := w.Close(record.End{}); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(root, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ms := func(s float64) int { return int(math.Round(s * 1e3)) }
	for b, err := range r.Batches() {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%d read %v took %d", ms(b.T), b.Values["n"], ms(b.Took)))
	}
	for e, err := range r.Events() {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%d %s %s: %s", ms(e.T), e.Kind, e.Source, e.Text))
	}
	return lines
}

func cancelAfter(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(d, cancel)
		return ctx, cancel
	}
}

const ms = time.Millisecond

func steps(timeout time.Duration, all ...collectors.Step) collectors.Every {
	return collectors.Every{Steps: all, Timeout: timeout}
}

// grid is one of 100 ms whose readings may take 50.
func grid() collectors.Every {
	return steps(50*ms, collectors.Step{Every: 100 * ms})
}

func TestPollTable(t *testing.T) {
	for _, c := range []struct {
		name  string
		every collectors.Every
		f     func(context.Context, int, *record.Batch) error
		ends  time.Duration
		want  []string
	}{
		{"a reading that takes part of its slot leaves the grid as it is", grid(), takes(30 * ms), 350 * ms,
			[]string{"100 read 1 took 30", "200 read 2 took 30", "300 read 3 took 30"}},
		{"so does one that ends within the next slot", steps(time.Second, collectors.Step{Every: 100 * ms}),
			func(ctx context.Context, n int, b *record.Batch) error {
				if n == 1 { // from 100 to 250: the next is due at 200, and comes at 250
					return takes(150*ms)(ctx, n, b)
				}
				return takes(0)(ctx, n, b)
			}, 450 * ms,
			[]string{"100 read 1 took 150", "250 read 2 took 0", "300 read 3 took 0", "400 read 4 took 0"}},
		{"the steps widen where the fast time ends", steps(time.Second, collectors.Step{Every: 10 * ms, Until: 25 * ms}, collectors.Step{Every: 50 * ms}), takes(0), 140 * ms,
			[]string{"10 read 1 took 0", "20 read 2 took 0", "30 read 3 took 0", "80 read 4 took 0", "130 read 5 took 0"}},
		{"fast readings up to 100 ms, then slow ones", steps(time.Second, collectors.Step{Every: 25 * ms, Until: 100 * ms}, collectors.Step{Every: 100 * ms}), takes(0), 450 * ms,
			[]string{"25 read 1 took 0", "50 read 2 took 0", "75 read 3 took 0", "100 read 4 took 0", "200 read 5 took 0", "300 read 6 took 0", "400 read 7 took 0"}},
		{"one that takes 250 of 100 ms: the slots of 400 and 500 are skipped, and named", steps(time.Second, collectors.Step{Every: 100 * ms}),
			func(ctx context.Context, n int, b *record.Batch) error {
				if n == 3 {
					return takes(250*ms)(ctx, n, b)
				}
				return takes(0)(ctx, n, b)
			}, 800 * ms,
			[]string{"100 read 1 took 0", "200 read 2 took 0", "300 read 3 took 250", "550 read 4 took 0", "650 read 5 took 0", "750 read 6 took 0",
				"550 gap s: no reading for 0.250 s"}},
		{"a reading of 30 ms is followed by a rest of 270, one of 5 ms by the grid", collectors.Every{Steps: []collectors.Step{{Every: 100 * ms}}, Timeout: 50 * ms, Rest: 9},
			func(ctx context.Context, n int, b *record.Batch) error {
				if n == 2 {
					return takes(30*ms)(ctx, n, b)
				}
				return takes(5*ms)(ctx, n, b)
			}, 750 * ms,
			[]string{"100 read 1 took 5", "200 read 2 took 30", "500 read 3 took 5", "600 read 4 took 5", "700 read 5 took 5"}},
		{"three steps", steps(time.Second, collectors.Step{Every: 10 * ms, Until: 20 * ms}, collectors.Step{Every: 25 * ms, Until: 60 * ms}, collectors.Step{Every: 100 * ms}), takes(0), 200 * ms,
			[]string{"10 read 1 took 0", "20 read 2 took 0", "45 read 3 took 0", "70 read 4 took 0", "170 read 5 took 0"}},
		{"a reading that hangs is a fault once, when its time is up", grid(), takes(time.Hour), 470 * ms,
			[]string{"150 fault s: s: context deadline exceeded"}},
		{"a source that comes and goes is told each time", grid(), func(_ context.Context, n int, b *record.Batch) error {
			if n%3 != 0 {
				return errors.New("gone")
			}
			b.Add(float64(n), "n")
			return nil
		}, 750 * ms,
			[]string{"300 read 3 took 0", "600 read 6 took 0", "100 fault s: gone", "300 note s: readings work again", "400 fault s: gone", "600 note s: readings work again", "700 fault s: gone"}},
		{"what could be read is kept, though the reading failed", grid(), func(_ context.Context, n int, b *record.Batch) error {
			b.Add(float64(n), "n")
			return errors.New("half of it")
		}, 150 * ms,
			[]string{"100 read 1 took 0", "100 fault s: half of it"}},
		{"the end of the run breaks a reading off: no fault", grid(), takes(40 * ms), 120 * ms, nil},
		{"nor when the source calls it by another name", grid(), func(ctx context.Context, _ int, _ *record.Batch) error {
			<-ctx.Done() // as a driver that finds its connection closed
			return io.ErrUnexpectedEOF
		}, 120 * ms, nil},
		{"ended before the first slot", grid(), takes(0), 50 * ms, nil},
		{"ended at once", grid(), takes(0), 0, nil},
	} {
		got := watch(t, &reader{f: c.f}, c.every, cancelAfter(c.ends))
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestPollDeadline: a context that ends by its own deadline is an end of the
// run like any other.
func TestPollDeadline(t *testing.T) {
	end := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 120*ms)
	}
	if d := cmp.Diff([]string(nil), watch(t, &reader{f: takes(40 * ms)}, grid(), end)); d != "" {
		t.Error(d)
	}
}

// TestRead: one reading, outside any polling.
func TestRead(t *testing.T) {
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
	rec := collectors.Recorder{W: w, Now: func() time.Duration { return 2 * time.Second }}
	good := &reader{f: func(_ context.Context, n int, b *record.Batch) error { b.Add(float64(n), "n"); return nil }}
	bad := &reader{f: func(context.Context, int, *record.Batch) error { return errors.New("gone") }}
	nan := &reader{f: func(_ context.Context, _ int, b *record.Batch) error { b.Add(math.NaN(), "n"); return nil }}
	if !rec.Read(t.Context(), good) || rec.Read(t.Context(), bad) || rec.Read(t.Context(), nan) {
		t.Error("a good reading is false, or a bad one true")
	}
	if err := w.Close(record.End{}); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(root, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	batches, faults := 0, 0
	for b, err := range r.Batches() {
		if err != nil || b.T != 2 || b.Values["n"] != 1 {
			t.Errorf("%+v, %v", b, err)
		}
		batches++
	}
	for e, err := range r.Events() {
		if err != nil || e.T != 2 || e.Kind != record.Fault || e.Source != "s" {
			t.Errorf("%+v, %v", e, err)
		}
		faults++
	}
	if batches != 1 || faults != 2 {
		t.Errorf("%d batches and %d faults, want 1 and 2", batches, faults)
	}
}
