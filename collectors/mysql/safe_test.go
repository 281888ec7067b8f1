package mysql

import "testing"

// TestLockGraphSafe: MySQL's release notes name the three releases that mend
// bugs 111082 and 112035.
func TestLockGraphSafe(t *testing.T) {
	for _, c := range []struct {
		version string
		safe    bool
	}{
		{"8.0.25", false}, {"8.0.39", false}, {"8.0.40", true}, {"8.0.44", true},
		{"8.1.0", false}, {"8.4.2", false}, {"8.4.3", true}, {"8.4.7", true},
		{"9.0.1", false}, {"9.1.0", true}, {"9.7.4-2", true},
		{"10.11.19-MariaDB", true},
	} {
		flavor, v, err := ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		s := Server{Flavor: flavor, Version: v}
		if got := s.lockGraphSafe(); got != c.safe {
			t.Errorf("%s: safe %v, want %v", c.version, got, c.safe)
		}
	}
}
