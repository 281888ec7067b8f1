package record_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"chokepoint/collectors/record"
)

// TestProfiles: profiles come back by type and time, read-only; what is no
// profile of ours is passed over.
func TestProfiles(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	w, err := record.Create(root, testRun())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		kind     string
		from, to float64
	}{{"cpu", 10, 15}, {"mutex", 0, 5}, {"cpu", 0.0514, 5.2346}, {"cpu", 9.9996, 10}} {
		if err := w.Profile(p.kind, p.from, p.to, []byte(p.kind)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Profile("cpu", 10, 15, nil); err == nil || w.Err() == nil {
		t.Error("a profile was written over")
	}
	dir := filepath.Join(root.Name(), string(testRun().ID), record.ProfilesDir)
	for _, name := range []string{"notes.txt", "cpu-1-2.pb.gz", "cpu-x-y.pb.gz", "../cpu-1.000-2.000.pb.gz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "cpu-1.000-2.000.pb.gz"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.Close(record.End{Status: record.Complete})
	r, err := record.Open(root, testRun().ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := r.Profiles()
	want := []record.Profile{{"cpu", 0.051, 5.235, ""}, {"cpu", 10, 10, ""}, {"cpu", 10, 15, ""}, {"mutex", 0, 5, ""}}
	if err != nil || len(all) != len(want) {
		t.Fatalf("%+v (%v)", all, err)
	}
	for i, p := range all {
		if p.Type != want[i].Type || p.From != want[i].From || p.To != want[i].To {
			t.Errorf("profile %d is %+v, want %+v", i, p, want[i])
		}
		f, err := r.OpenProfile(p)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		f.Close()
		if err != nil || string(text) != p.Type {
			t.Errorf("%s holds %q (%v)", p.Name, text, err)
		}
		if info, err := os.Stat(filepath.Join(root.Name(), string(testRun().ID), p.Name)); err != nil || info.Mode().Perm() != 0o444 {
			t.Errorf("%s: %v (%v)", p.Name, info.Mode(), err)
		}
	}
}

// TestNoProfiles: a record need not have any.
func TestNoProfiles(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	w, err := record.Create(root, testRun())
	if err != nil {
		t.Fatal(err)
	}
	w.Close(record.End{})
	r, err := record.Open(root, testRun().ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if all, err := r.Profiles(); len(all) != 0 || err != nil {
		t.Errorf("%v (%v)", all, err)
	}
}
