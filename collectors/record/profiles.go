package record

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ProfilesDir is the folder of a record's profiles, in pprof's format, named
// TYPE-FROM-TO.pb.gz with their interval in seconds of the record.
const ProfilesDir = "profiles"

// Profile is one profile of a record.
type Profile struct {
	Type     string  // such as cpu
	From, To float64 // seconds since the start of the record
	Name     string  // of its file, below the record's folder
}

// Profile writes one profile, whole or not at all.
func (w *Writer) Profile(kind string, from, to float64, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return nil
	}
	err := w.profile(fmt.Sprintf("%s-%.3f-%.3f.pb.gz", kind, from, to), data)
	if err != nil {
		w.err = fmt.Errorf("record: recording ended: %w", err)
	}
	return w.err
}

func (w *Writer) profile(name string, data []byte) error {
	if err := w.dir.Mkdir(ProfilesDir, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	if _, err := w.dir.Lstat(path.Join(ProfilesDir, name)); err == nil {
		return fmt.Errorf("%s: %w", name, os.ErrExist)
	}
	part := path.Join(ProfilesDir, name+".part") // no profile to a reader
	f, err := w.dir.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err = w.room.take(f, len(data)); err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Chmod(0o444)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		w.dir.Remove(part)
		return err
	}
	return w.dir.Rename(part, path.Join(ProfilesDir, name))
}

var profileName = regexp.MustCompile(`^([a-z]{1,20})-(\d{1,9}\.\d{3})-(\d{1,9}\.\d{3})\.pb\.gz$`)

// Profiles lists the profiles of the record by their time. A record need not
// have any; files of other names are passed over.
func (r *Reader) Profiles() ([]Profile, error) {
	entries, err := fs.ReadDir(r.dir.FS(), ProfilesDir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ProfilesDir, err)
	}
	var all []Profile
	for _, e := range entries {
		m := profileName.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			continue
		}
		from, _ := strconv.ParseFloat(m[2], 64) // digits, by the pattern
		to, _ := strconv.ParseFloat(m[3], 64)
		all = append(all, Profile{m[1], from, to, path.Join(ProfilesDir, e.Name())})
	}
	slices.SortFunc(all, func(a, b Profile) int {
		if a.Type != b.Type {
			return strings.Compare(a.Type, b.Type)
		}
		return int(1e3 * (a.From - b.From))
	})
	return all, nil
}

// OpenProfile opens the file of a profile.
func (r *Reader) OpenProfile(p Profile) (fs.File, error) { return r.dir.Open(p.Name) }
