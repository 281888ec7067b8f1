package analysis

import (
	"math"
	"testing"

	"chokepoint/collectors/record"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestStudent: 97.5 % quantiles from printed tables.
func TestStudent(t *testing.T) {
	for df, want := range map[float64]float64{5: 2.571, 10: 2.228, 20: 2.086, 40: 2.021, 100: 1.984} {
		near(t, "t", student(df), want, 0.01*want)
	}
}

// TestJackknife: ratios of 1/2, 2/2 and 3/2 in three slices. The ratio of sums
// is 1; without one slice it is 5/4, 1 and 3/4, whose squared deviations sum to
// 1/8; the variance is (3-1)/3 x 1/8, and t(2 degrees) by the expansion 4.2.
func TestJackknife(t *testing.T) {
	r := jackknife([]float64{1, 2, 3}, []float64{2, 2, 2})
	near(t, "value", r.value, 1, 1e-12)
	near(t, "half width", (r.hi-r.lo)/2, student(2)*math.Sqrt(2.0/3/8), 1e-12)
}

// TestSpreadWaiting: 10 s in 4 executions, of which 6 wait: 1 s each is cost.
// The first place's 2 s of 2 are cost only; the second's 8 s of 2 have 6 too much.
func TestSpreadWaiting(t *testing.T) {
	got := spreadWaiting([]float64{2, 8, 0}, []float64{2, 2, 0}, 6)
	for i, want := range []float64{0, 6, 0} {
		near(t, "waiting", got[i], want, 1e-12)
	}
	if got := spreadWaiting([]float64{1}, []float64{1}, 5); got[0] != 1 { // no more than there is
		t.Errorf("%v", got)
	}
}

// TestMariaDBBounds: real runs of 3,000 purchases on MariaDB 10.11. The client
// saw about 7.3 and 98.4 s of waiting.
func TestMariaDBBounds(t *testing.T) {
	for _, c := range []struct{ l, timer, point, lo, hi float64 }{
		{5.85, 7.45, 7.3495, 5.85, 7.45}, // pool 10: 5.85 + 0.5 ms x 2,999; 8.85 is over the timer
		{96.9, 99.4, 98.3995, 96.9, 99.4},
	} {
		s := serverTime{flavor: flavorMariaDB, waits: 2999, digests: []digest{{id: "s", text: "SELECT `q` FROM `t` WHERE ID = ? FOR UPDATE ", count: 3000, timer: c.timer}}}
		s.boundRowLocks(c.l)
		near(t, "point", s.row.point, c.point, 1e-9)
		near(t, "lo", s.row.lo, c.lo, 1e-9)
		near(t, "hi", s.row.hi, c.hi, 1e-9)
		near(t, "the statement's", s.digests[0].row.point, c.point, 1e-9)
	}
}

// TestDigestTexts: as MariaDB 10.11 and MySQL 9.7 print them.
func TestDigestTexts(t *testing.T) {
	for _, c := range []struct {
		text           string
		commits, locks bool
	}{
		{"SELECT `quantity` FROM `stocks` WHERE ID = ? FOR UPDATE ", false, true},
		{"SELECT `quantity` FROM `stocks` WHERE `id` = ? FOR UPDATE NOWAIT", false, true},
		{"EXECUTE SELECT `quantity` FROM `stocks` WHERE `id` = ? FOR UPDATE", false, true},
		{"SELECT * FROM `t` LOCK IN SHARE MODE ", false, true},
		{"UPDATE `stocks` SET `quantity` = `quantity` - ? WHERE ID = ? ", false, true},
		{"INSERT INTO `gaps` ( `k` ) VALUES (?) ", false, true},
		{"DELETE FROM `t` ", false, true},
		{"COMMIT ", true, false},
		{"START TRANSACTION ", false, false},
		{"SELECT `quantity` , `updated` FROM `stocks` WHERE ID = ? ", false, false},
		{"", false, true}, // the overflow row: some of it may
	} {
		d := digest{text: c.text}
		if d.commits() != c.commits || d.locksRows() != c.locks {
			t.Errorf("%q: commits %v, locks rows %v", c.text, d.commits(), d.locksRows())
		}
	}
}

func TestHistogram(t *testing.T) {
	h := histogram{{0, 2, 3}, {2, 4, 1}, {8, math.Inf(1), 1}} // 3 x 1 + 1 x 3 + 1 x 8
	near(t, "mean", h.mean(), 14.0/5, 1e-12)
	near(t, "median", h.quantile(0.5), 2, 0)
	near(t, "80 %", h.quantile(0.8), 4, 0)
	near(t, "largest", h.largest(), 8, 0)
}

func TestCommand(t *testing.T) {
	w := record.Workload{Name: "lock", Args: []string{"--pool", "10", "--requests", "3000"}}
	for _, c := range []struct{ flag, value, want string }{
		{"", "", "chokepoint run lock --pool 10 --requests 3000"},
		{"--pool", "20", "chokepoint run lock --pool 20 --requests 3000"},
		{"--keys", "7", "chokepoint run lock --pool 10 --requests 3000 --keys 7"},
	} {
		if got := command(w, c.flag, c.value); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
