package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
)

// maxLine bounds the memory that one line of an untrusted record may take.
const maxLine = 16 << 20

// Reader reads one record. It never writes.
type Reader struct {
	dir *os.Root
	run Run
}

// Open opens the record id below root. It fails if run.json cannot be read or
// is of a later format; the other files may be missing or torn.
func Open(root *os.Root, id ID) (*Reader, error) {
	if _, err := ParseID(string(id)); err != nil {
		return nil, err
	}
	dir, err := root.OpenRoot(string(id))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no run %s here (`chokepoint runs list` shows those there are): %w", id, fs.ErrNotExist)
		}
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	r := &Reader{dir: dir}
	if err := r.readRun(id); err != nil {
		dir.Close()
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	return r, nil
}

func (r *Reader) readRun(id ID) error {
	f, err := r.dir.Open(RunFile)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := io.ReadAll(io.LimitReader(f, maxLine))
	if err != nil {
		return fmt.Errorf("%s: %w", RunFile, err)
	}
	if err := json.Unmarshal(p, &r.run); err != nil {
		return fmt.Errorf("%s is torn, or not chokepoint's: %w", RunFile, err)
	}
	if r.run.Format < 1 || r.run.Format > Format {
		return fmt.Errorf("%s: format %d; this build reads formats 1 to %d", RunFile, r.run.Format, Format)
	}
	if r.run.ID != id {
		return fmt.Errorf("%s: holds run %q", RunFile, r.run.ID)
	}
	return nil
}

// Close releases the folder.
func (r *Reader) Close() error { return r.dir.Close() }

// Run returns what run.json holds.
func (r *Reader) Run() Run { return r.run }

// Batches reads the batches in the order of the file. A line that does not
// parse is yielded as a *SyntaxError, and reading goes on; any other error
// ends it.
func (r *Reader) Batches() iter.Seq2[*Batch, error] {
	return lines(r.dir, BatchesFile, jsonLine(func(b *Batch) error {
		if b.Source == "" {
			return errors.New("a batch without a source")
		}
		if b.T < 0 || b.Took < 0 {
			return errors.New("a batch with a negative time")
		}
		return nil
	}))
}

// Events reads the events in the order of the file, like Batches.
func (r *Reader) Events() iter.Seq2[*Event, error] {
	return lines(r.dir, EventsFile, jsonLine(func(e *Event) error {
		if e.Kind == "" {
			return errors.New("an event without a kind")
		}
		return nil
	}))
}

// Size is the number of bytes that the record takes.
func (r *Reader) Size() (int64, error) {
	var n int64
	err := fs.WalkDir(r.dir.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// tornLine is the message for a last line without an end: the writer was
// killed while it wrote it.
const tornLine = "the last line is torn"

// jsonLine decodes one JSON value and checks it.
func jsonLine[T any](valid func(*T) error) func([]byte) (*T, error) {
	return func(line []byte) (*T, error) {
		v := new(T)
		if err := json.Unmarshal(line, v); err != nil {
			return nil, err
		}
		return v, valid(v)
	}
}

// lines decodes a file line by line. A nil value without an error is a line
// that holds nothing, such as a comment.
func lines[T any](dir *os.Root, name string, decode func([]byte) (*T, error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		f, err := dir.Open(name)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		in := bufio.NewReaderSize(f, 1<<16)
		for n := 1; ; n++ {
			line, long, err := readLine(in)
			if err != nil && err != io.EOF {
				yield(nil, fmt.Errorf("%s: %w", name, err))
				return
			}
			end := err == io.EOF
			if end && len(line) == 0 && !long {
				return
			}
			var v *T
			switch {
			case long:
				err = errors.New("a line of more than 16 MiB")
			case end:
				err = errors.New(tornLine)
			default:
				v, err = decode(line)
			}
			if err != nil {
				v, err = nil, &SyntaxError{File: name, Line: n, Msg: err.Error()}
			}
			if (v != nil || err != nil) && !yield(v, err) || end {
				return
			}
		}
	}
}

// readLine returns the next line without its end. io.EOF comes with a last
// line that has no end; long is true for a line over maxLine, which is skipped.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		switch err {
		case nil:
			return bytes.TrimSuffix(line, []byte("\n")), long, nil
		case bufio.ErrBufferFull:
			continue
		default:
			return line, long, err
		}
	}
}

// List returns the runs below root, oldest first, and an error for each folder
// that looks like a run and cannot be read.
func List(root *os.Root) ([]Run, []error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, []error{err}
	}
	var runs []Run
	var errs []error
	for _, e := range entries {
		id, err := ParseID(e.Name())
		if err != nil || !e.IsDir() {
			continue // not a run: somebody else's folder
		}
		r, err := Open(root, id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		runs = append(runs, r.Run())
		r.Close()
	}
	slices.SortFunc(runs, func(a, b Run) int { return a.Started.Compare(b.Started) })
	return runs, errs
}
