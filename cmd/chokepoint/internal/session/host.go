package session

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"chokepoint/collectors/record"
)

// describeHost reads what a reader of the record must know of this machine.
// What cannot be read stays zero: it decides nothing.
func describeHost() record.Host {
	h := record.Host{OS: runtime.GOOS, CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Process: process}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		h.Kernel = strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if f := strings.Fields(string(text)); len(f) > 1 && f[0] == "MemTotal:" {
			kb, _ := strconv.ParseUint(f[1], 10, 64)
			h.MemoryBytes = kb << 10
		}
	}
	return h
}
