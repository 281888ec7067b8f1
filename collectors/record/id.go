package record

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"time"
)

// ID names a run, as "20261130T212218Z-lock-7f3a": sortable by start time and
// safe as a folder name.
type ID string

const idTime = "20060102T150405Z"

var idPattern = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[a-z][a-z0-9]{0,31}-[0-9a-f]{4}$`)

// NewID makes the ID of a run of the named workload that starts at the given
// time; four random hexadecimal digits tell runs of one second apart.
func NewID(at time.Time, workload string) ID {
	var b [2]byte
	rand.Read(b[:]) // never fails (crypto/rand, since Go 1.24)
	return ID(at.UTC().Format(idTime) + "-" + workload + "-" + hex.EncodeToString(b[:]))
}

// ParseID refuses everything that NewID does not make, and with it path
// separators, dots and anything outside ASCII.
func ParseID(s string) (ID, error) {
	if !idPattern.MatchString(s) {
		return "", fmt.Errorf("%q is not a run id (they look like 20261130T212218Z-lock-7f3a; `chokepoint runs list` shows yours)", s)
	}
	if _, err := time.Parse(idTime, s[:len(idTime)]); err != nil {
		return "", fmt.Errorf("%q is not a run id: its time does not exist", s)
	}
	return ID(s), nil
}
