package record_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"chokepoint/collectors/record"
)

// limitedEnv makes the test binary a process that records into the folder it
// names until no file may grow further.
const limitedEnv = "CHOKEPOINT_TEST_RECORDS_INTO"

func TestMain(m *testing.M) {
	dir := os.Getenv(limitedEnv)
	if dir == "" {
		m.Run()
		return
	}
	if err := recordUntilFull(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// fileLimit is more than the room that is reserved for the end of run.json.
const fileLimit = 100_000

// recordUntilFull writes batches until a write fails, and prints how many it
// wrote. The batch that fails begins below the limit and would end above it.
func recordUntilFull(dir string) error {
	signal.Ignore(syscall.SIGXFSZ) // the write fails instead
	limit := syscall.Rlimit{Cur: fileLimit, Max: fileLimit}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	w, err := record.Create(root, testRun())
	if err != nil {
		return err
	}
	n := 0
	for ; err == nil; n++ {
		b := &record.Batch{Source: "s", T: float64(n)}
		b.Add(float64(n), "g")
		err = w.Batch(b)
	}
	if !errors.Is(err, syscall.EFBIG) || w.Err() == nil {
		return fmt.Errorf("ended by %w, Err says %v", err, w.Err())
	}
	// The run goes on: further calls do nothing, on any file.
	h := record.NewHistogram()
	again := errors.Join(w.Batch(&record.Batch{Source: "s"}), w.Event(record.Event{Kind: record.Note}),
		w.Latency(record.Interval{Operation: "a", Stage: "b", Outcome: "c", Histogram: h}))
	if again != nil {
		return fmt.Errorf("told twice: %w", again)
	}
	if err := w.Close(record.End{Status: record.Complete, Error: w.Err().Error()}); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	fmt.Println("wrote", n-1)
	return nil
}

// TestFull: the first write that fails ends the recording, what was written
// stays whole, and the record can still say how it ended.
func TestFull(t *testing.T) {
	root := folder(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), limitedEnv+"="+root.Name())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var wrote int
	if _, err := fmt.Sscanf(string(out), "wrote %d", &wrote); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := read(t, root)
	if len(got.Batches) != wrote || len(got.Bad) != 0 || len(got.Events) != 0 || len(got.Intervals) != 0 {
		t.Errorf("%d batches, %d events, %d intervals, bad %v; want %d batches", len(got.Batches), len(got.Events), len(got.Intervals), got.Bad, wrote)
	}
	info, err := os.Stat(filepath.Join(root.Name(), string(testID), record.BatchesFile))
	must(t, err)
	// A line here is about 50 bytes: the limit was reached, and a part cut off.
	if info.Size() > fileLimit || info.Size() < fileLimit-100 {
		t.Errorf("%d bytes, want nearly %d", info.Size(), fileLimit)
	}
	r, err := record.Open(root, testID)
	must(t, err)
	defer r.Close()
	if end := r.Run().End; end == nil || !strings.Contains(end.Error, "recording ended") {
		t.Errorf("the end is %+v", end)
	}
}
