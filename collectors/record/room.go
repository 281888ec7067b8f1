package record

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// A recording ends while there is room left for others: the last 64 MiB of a
// file system, or a twentieth of a small one, are not ours to take.
const (
	reserveBytes = 64 << 20
	reserveShare = 20
)

// How often the room is looked at: others may take it too.
const (
	lookEvery      = time.Second
	lookEveryBytes = 16 << 10
)

// room watches how much is left where a record is written.
type room struct {
	looked time.Time
	since  int // bytes written since
}

// take tells whether n more bytes may be written to f.
func (r *room) take(f *os.File, n int) error {
	r.since += n
	if r.since < lookEveryBytes && time.Since(r.looked) < lookEvery {
		return nil
	}
	r.looked, r.since = time.Now(), 0
	return spare(f)
}

// enoughRoom fails if a recording in this folder would end as it begins.
func enoughRoom(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	defer f.Close()
	if err := spare(f); err != nil {
		return fmt.Errorf("record: %w: free some, or let --runs name a folder elsewhere", err)
	}
	return nil
}

// spare fails if no more is left on the file system of f than is for others.
func spare(f *os.File) error {
	var s syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &s); err != nil {
		return nil // a file system that does not tell; a full one will
	}
	size := uint64(s.Frsize)
	left, reserve := s.Bavail*size, min(reserveBytes, s.Blocks*size/reserveShare)
	if s.Blocks > 0 && left < reserve {
		return fmt.Errorf("no space left but %d KiB, of which the last %d KiB are not for records", left>>10, reserve>>10)
	}
	return nil
}
