package record_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chokepoint/collectors/record"
)

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ name, run, want string }{
		{"a later format", `{"format":2,"id":"20261130T212218Z-lock-7f3a"}`, "this build reads formats 1 to 1"},
		{"no format", `{"id":"20261130T212218Z-lock-7f3a"}`, "format 0"},
		{"another run's", `{"format":1,"id":"20261130T212218Z-lock-ffff"}`, `holds run "20261130T212218Z-lock-ffff"`},
		{"torn", `{"format":1,`, "run.json is torn, or not chokepoint's: unexpected end of JSON"},
		{"empty", "", "run.json is torn, or not chokepoint's: unexpected end of JSON"},
		{"another type", `[]`, "run.json is torn, or not chokepoint's: json: cannot unmarshal array"},
	} {
		root, dir := write(t, nil)
		must(t, os.WriteFile(filepath.Join(dir, record.RunFile), []byte(c.run), 0o644))
		r, err := record.Open(root, testID)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), string(testID)) {
			t.Errorf("%s: %v, want the run's id and %q", c.name, err, c.want)
		}
		if r != nil {
			r.Close()
		}
	}
}

func TestOpenStaysInside(t *testing.T) {
	root, dir := write(t, nil)
	sub, err := os.OpenRoot(dir) // a folder with the record above it
	must(t, err)
	defer sub.Close()
	for _, id := range []record.ID{"", ".", "..", "../" + testID, testID + "/", "/etc", testID + "/../" + testID, "latest"} {
		for _, at := range []*os.Root{root, sub} {
			if r, err := record.Open(at, id); err == nil {
				r.Close()
				t.Errorf("%q was opened", id)
			}
			if w, err := record.Create(at, record.Run{ID: id}); err == nil {
				w.Close(record.End{})
				t.Errorf("%q was created", id)
			}
		}
	}
	// A link that leads out of the folder is not followed, of a run or in one.
	outside := folder(t)
	must(t, os.Symlink(dir, filepath.Join(outside.Name(), string(testID))))
	if r, err := record.Open(outside, testID); err == nil {
		r.Close()
		t.Error("a link to another folder was opened")
	}
	must(t, errors.Join(os.Remove(filepath.Join(dir, record.EventsFile)), os.Symlink("/etc/passwd", filepath.Join(dir, record.EventsFile))))
	r, err := record.Open(root, testID)
	must(t, err)
	defer r.Close()
	for e, err := range r.Events() {
		if err == nil {
			t.Errorf("read %+v through a link", e)
		}
	}
}

func TestOpenMissing(t *testing.T) {
	root, dir := write(t, nil)
	const none = record.ID("20261130T212218Z-lock-0000")
	if _, err := record.Open(root, none); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), string(none)) {
		t.Errorf("a run that is not there: %v", err)
	}
	must(t, os.Remove(filepath.Join(dir, record.BatchesFile)))
	r, err := record.Open(root, testID) // files other than run.json may be missing
	must(t, err)
	defer r.Close()
	n := 0
	for b, err := range r.Batches() {
		if n++; b != nil || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("batches that are not there: %v, %v", b, err)
		}
	}
	if n != 1 {
		t.Errorf("told %d times, want once", n)
	}
}

// TestStopReading: a caller that has seen enough is given no more.
func TestStopReading(t *testing.T) {
	root, _ := write(t, nil)
	r, err := record.Open(root, testID)
	must(t, err)
	defer r.Close()
	n := 0
	for range r.Batches() {
		n++
		break
	}
	for range r.Events() {
		n++
		break
	}
	for range r.Latencies() {
		n++
		break
	}
	if n != 3 {
		t.Errorf("%d, want 3", n)
	}
}

func TestList(t *testing.T) {
	root := folder(t)
	make := func(id record.ID, started time.Time) {
		t.Helper()
		w, err := record.Create(root, record.Run{ID: id, Started: started})
		must(t, err)
		must(t, w.Close(record.End{}))
	}
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	make("20261103T000000Z-lock-0003", day(3))
	make("20261101T000000Z-pool-0001", day(1))
	make("20261102T000000Z-a-0002", day(2))
	// Somebody else's things are passed over; a run that cannot be read is told.
	must(t, root.Mkdir("notes", 0o755))
	must(t, root.WriteFile("20261104T000000Z-lock-0004", nil, 0o644))
	must(t, root.Mkdir("20261105T000000Z-lock-0005", 0o755))
	runs, errs := record.List(root)
	var got []record.ID
	for _, r := range runs {
		got = append(got, r.ID)
	}
	if d := cmp.Diff([]record.ID{"20261101T000000Z-pool-0001", "20261102T000000Z-a-0002", "20261103T000000Z-lock-0003"}, got); d != "" {
		t.Error(d)
	}
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "20261105T000000Z-lock-0005") {
		t.Errorf("errors %v, want one of the run without a run.json", errs)
	}
}

func TestNewID(t *testing.T) {
	at := time.Date(2026, 11, 30, 22, 22, 18, 0, time.FixedZone("", 3600)) // an hour east
	id := record.NewID(at, "lock")
	if !strings.HasPrefix(string(id), "20261130T212218Z-lock-") {
		t.Errorf("%s, want UTC", id)
	}
	if got, err := record.ParseID(string(id)); err != nil || got != id {
		t.Errorf("%s is read as %s (%v)", id, got, err)
	}
	if later := record.NewID(at.Add(time.Second), "a"); later <= id {
		t.Errorf("%s does not sort behind %s", later, id)
	}
	// 20 draws of 65,536: all the same by chance once in 10^91.
	seen := map[record.ID]bool{}
	for range 20 {
		seen[record.NewID(at, "lock")] = true
	}
	if len(seen) == 1 {
		t.Error("runs of one second have one id")
	}
}

func TestArchive(t *testing.T) {
	root, dir := write(t, &record.End{Status: record.Complete})
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link"))) // left out
	r, err := record.Open(root, testID)
	must(t, err)
	defer r.Close()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	must(t, errors.Join(r.Archive(w), w.Close()))
	total := int64(0)
	var names []string
	in := tar.NewReader(&buf)
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		got, err := io.ReadAll(in)
		must(t, err)
		want, err := os.ReadFile(filepath.Join(dir, filepath.Base(h.Name)))
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s has other bytes", h.Name)
		}
		names = append(names, h.Name)
		total += h.Size
	}
	const inside = string(testID) + "/"
	if d := cmp.Diff([]string{inside + "batches.jsonl", inside + "events.jsonl", inside + "latency.hlog", inside + "run.json"}, names); d != "" {
		t.Error(d)
	}
	must(t, os.Remove(filepath.Join(dir, "link")))
	if size, err := r.Size(); err != nil || size != total {
		t.Errorf("size %d (%v), want %d", size, err, total)
	}
}
