package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Writer appends to the record of a run that lasts. Its methods may be called
// from several goroutines.
//
// Every line goes to the file in one write, so that a killed run loses at most
// the line that was being written. The first write that fails (a full disk)
// ends the recording: Err tells it, later calls do nothing and the run goes on.
type Writer struct {
	dir *os.Root

	mu      sync.Mutex
	run     Run
	batches *os.File
	events  *os.File
	latency *os.File
	room    room
	err     error
}

// Create makes the folder of run r below root and writes its run.json. It
// fails if the folder is already there.
func Create(root *os.Root, r Run) (*Writer, error) {
	if _, err := ParseID(string(r.ID)); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r.Format = Format
	if err := enoughRoom(root); err != nil {
		return nil, err
	}
	if err := root.Mkdir(string(r.ID), 0o755); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	dir, err := root.OpenRoot(string(r.ID))
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	w := &Writer{dir: dir, run: r}
	for _, f := range []struct {
		name string
		file **os.File
	}{{BatchesFile, &w.batches}, {EventsFile, &w.events}, {LatencyFile, &w.latency}} {
		if *f.file, err = dir.OpenFile(f.name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
			w.closeFiles()
			return nil, fmt.Errorf("record: %w", err)
		}
	}
	if err := w.writeRun(); err != nil {
		w.closeFiles()
		return nil, err
	}
	return w, nil
}

// Run returns what run.json holds at the moment.
func (w *Writer) Run() Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run
}

// Update changes run.json before the load starts: what is known of servers
// and metrics comes in later than the folder.
func (w *Writer) Update(change func(*Run)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.run)
	if w.err != nil {
		return w.err
	}
	return w.writeRun()
}

// Batch appends one reading. It returns only the error of the write that
// ended the recording, once; see Err.
func (w *Writer) Batch(b *Batch) error { return w.line(func() *os.File { return w.batches }, b) }

// Event appends one event.
func (w *Writer) Event(e Event) error { return w.line(func() *os.File { return w.events }, e) }

func (w *Writer) line(file func() *os.File, v any) error {
	p, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("record: %w", err) // a NaN: a programming error of the source
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.append(file(), append(p, '\n'))
}

// append writes p whole, unless the recording has ended. A part of a line that
// a full disk let through is cut off again, so that what is there stays whole.
func (w *Writer) append(f *os.File, p []byte) error {
	if w.err != nil {
		return nil
	}
	before, err := f.Seek(0, 2)
	if err == nil {
		err = w.room.take(f, len(p))
	}
	if err == nil {
		if _, err = f.Write(p); err == nil {
			return nil
		}
		f.Truncate(before) // best effort: readers step over a torn last line
	}
	w.err = fmt.Errorf("record: recording ended: %w", err)
	return w.err
}

// Err tells why the recording ended early, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close finishes the record: run.json gets its end and is replaced by rename,
// the files become read-only.
func (w *Writer) Close(end End) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run.End = &end
	err := w.writeRun()
	for _, name := range []string{RunFile, BatchesFile, EventsFile, LatencyFile} {
		err = errors.Join(err, w.dir.Chmod(name, 0o444))
	}
	return errors.Join(err, w.closeFiles())
}

func (w *Writer) closeFiles() error {
	var err error
	for _, f := range []*os.File{w.batches, w.events, w.latency} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return errors.Join(err, w.dir.Close())
}

// nextRun is the file that becomes run.json. While the run lasts it is kept, of
// reserved size, so that the end of a run can be told on a full disk.
const (
	nextRun  = RunFile + ".new"
	reserved = 64 << 10
)

// writeRun replaces run.json whole, and reserves the room for the next time
// unless this is the end.
func (w *Writer) writeRun() error {
	p, err := json.MarshalIndent(w.run, "", "  ")
	if err != nil {
		return fmt.Errorf("record: %s: %w", RunFile, err)
	}
	if err := w.overwrite(append(p, '\n')); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if err := w.dir.Rename(nextRun, RunFile); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if w.run.End != nil {
		return nil
	}
	if err := w.dir.WriteFile(nextRun, bytes.Repeat([]byte(" "), reserved), 0o644); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// overwrite writes into the reserved room, and cuts off what is left of it.
func (w *Writer) overwrite(p []byte) error {
	f, err := w.dir.OpenFile(nextRun, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(p)
	return errors.Join(err, f.Truncate(int64(len(p))), f.Close())
}
