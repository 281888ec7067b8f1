package host_test

import (
	"os"
	"testing"

	"chokepoint/collectors"
	"chokepoint/collectors/host"
)

// TestFindings: this process can be seen; one that is gone, and one that is on
// another machine, cannot.
func TestFindings(t *testing.T) {
	got := map[string]collectors.State{}
	for _, f := range host.Findings([]host.Process{{Name: "self", PID: os.Getpid()}, {Name: "gone", PID: 1 << 30}, {Name: "elsewhere"}}) {
		got[f.Check] = f.State
		if (f.State == collectors.Visible) != (f.Costs == "") || f.Found == "" {
			t.Errorf("%+v", f)
		}
	}
	if got["run_queue"] != collectors.Visible || got["process_self"] != collectors.Visible || got["process_gone"] != collectors.Limited || got["process_elsewhere"] != collectors.Limited {
		t.Errorf("%v", got)
	}
}
