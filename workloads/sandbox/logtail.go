package sandbox

import (
	"io"
	"os"
	"strings"
)

const (
	tailLines = 15
	tailBytes = 8 << 10
)

// logTail returns the last lines of a log file, to be appended to an error.
func logTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "\n(its log: " + err.Error() + ")"
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, err = f.Seek(max(0, size-tailBytes), io.SeekStart)
		if err != nil {
			return "\n(its log: " + err.Error() + ")"
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return "\n(its log: " + err.Error() + ")"
	}
	return lastLines(string(text))
}

// lastLines returns the last lines of text, indented below a heading.
func lastLines(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "\n(its log is empty)"
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "\nlast lines of its log:\n  " + strings.Join(lines, "\n  ")
}
