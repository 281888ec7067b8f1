package analysis

import (
	"chokepoint/analysis/timeline"
	"testing"

	"pgregory.net/rapid"
)

// TestSpreadWaitingScales: 4 of 10 s wait in three executions, so that each
// costs 2 s beside its wait. 4, 1 and 0 s are above that: 5 s, of which there
// are 4.
func TestSpreadWaitingScales(t *testing.T) {
	for i, got := range spreadWaiting([]float64{6, 3, 1}, []float64{1, 1, 1}, 4) {
		near(t, "waiting", got, []float64{3.2, 0.8, 0}[i], 1e-12)
	}
	for _, none := range [][]float64{
		spreadWaiting([]float64{6, 3}, []float64{1, 1}, 0),
		spreadWaiting([]float64{6, 3}, []float64{0, 0}, 4), // entered before the phase, and never counted
		spreadWaiting([]float64{0, 0}, []float64{1, 1}, 4),
	} {
		near(t, "nothing to spread", none[0]+none[1], 0, 0)
	}
}

const (
	lockingSelect = "SELECT `quantity` FROM `stocks` WHERE ID = ? FOR UPDATE "
	plainUpdate   = "UPDATE `stocks` SET `quantity` = `quantity` - ? WHERE ID = ? "
)

// TestRowLocksOfMariaDB: what SUM_LOCK_TIME holds there are metadata locks,
// beyond the 20 us that opening the tables takes.
func TestRowLocksOfMariaDB(t *testing.T) {
	s := serverTime{flavor: flavorMariaDB, waits: 400, digests: []digest{
		{id: "sel", text: lockingSelect, count: 1000, timer: 3, lock: 0.1},
		{id: "upd", text: plainUpdate, count: 1000, timer: 0.5, lock: 0.015},
		{id: "com", text: "COMMIT ", count: 1000, timer: 9, lock: 0},
	}}
	s.boundRowLocks(2.9)
	// 2.9 s in 400 waits: 3.1 s, at most 3.3 s, of 3.5 s that statements took which lock rows.
	near(t, "lo", s.row.lo, 2.9, 1e-12)
	near(t, "point", s.row.point, 3.1, 1e-12)
	near(t, "hi", s.row.hi, 3.3, 1e-12)
	s.metadataLocks(&timeline.Timeline{}, false)
	near(t, "metadata locks", s.metadata, 0.1-1000*20e-6, 1e-12)
	// (3.5 - 3.1) / 2000 = 0.2 ms beside the wait: 2.8 and 0.3 s are above it.
	for i, want := range []bounds{{2.4, 2.8, 3}, {0, 0.3, 0.5}, {}} {
		d := s.digests[i]
		near(t, d.id+" lo", d.row.lo, want.lo, 1e-12)
		near(t, d.id+" point", d.row.point, want.point, 1e-12)
		near(t, d.id+" hi", d.row.hi, want.hi, 1e-12)
	}
}

// TestRowLocksOfMySQL: SUM_LOCK_TIME is the answer, whatever the statement.
func TestRowLocksOfMySQL(t *testing.T) {
	s := serverTime{digests: []digest{{text: lockingSelect, count: 1000, timer: 3, lock: 2.8}, {text: plainUpdate, count: 1000, timer: 0.5, lock: 0.2}}}
	s.exactRowLocks()
	if want := (bounds{3, 3, 3}); s.row != want || s.digests[1].row != (bounds{0.2, 0.2, 0.2}) || s.method != exact {
		t.Errorf("%v, want %v; the UPDATE's %v; %s", s.row, want, s.digests[1].row, s.method)
	}
}

// TestRowLocksAreBounded: whatever MariaDB counts, no statement waits for longer
// than it took, the point lies within the bounds, and the points add up.
func TestRowLocksAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := serverTime{flavor: flavorMariaDB, waits: float64(rapid.IntRange(0, 5000).Draw(t, "waits"))}
		for range rapid.IntRange(0, 6).Draw(t, "digests") {
			s.digests = append(s.digests, digest{
				text:  rapid.SampledFrom([]string{lockingSelect, plainUpdate, "COMMIT ", "SELECT ? "}).Draw(t, "text"),
				count: float64(rapid.IntRange(1, 5000).Draw(t, "count")), timer: rapid.Float64Range(0, 100).Draw(t, "timer"),
			})
		}
		timers := 0.0
		for _, d := range s.digests {
			if d.locksRows() {
				timers += d.timer
			}
		}
		s.boundRowLocks(timers * rapid.Float64Range(0, 3).Draw(t, "L"))
		const noise = 1e-6
		sum := 0.0
		for _, d := range append(s.digests, digest{row: s.row, timer: s.row.hi}) {
			if r := d.row; !(0 <= r.lo && r.lo <= r.point+noise && r.point <= r.hi+noise && r.hi <= d.timer+noise) {
				t.Fatalf("%q took %v s: %+v", d.text, d.timer, r)
			}
		}
		for _, d := range s.digests {
			sum += d.row.point
		}
		if sum < s.row.point-noise || sum > s.row.point+noise {
			t.Fatalf("the points sum to %v, not %v", sum, s.row.point)
		}
	})
}

// TestDigestTextsOfServers: as MySQL 9.7 and MariaDB 10.11 wrote them down; the
// latter ends each with a blank and leaves some names unquoted.
func TestDigestTextsOfServers(t *testing.T) {
	const commits, locks, neither = "commits", "locks rows", ""
	for text, want := range map[string]string{
		"SELECT `quantity` FROM `stocks` WHERE `id` = ? FOR UPDATE":                                      locks,
		"SELECT `quantity` FROM `stocks` WHERE ID = ? FOR UPDATE NOWAIT ":                                locks,
		"SELECT `quantity` FROM `stocks` WHERE `id` = ? FOR UPDATE SKIP LOCKED":                          locks,
		"SELECT * FROM `gaps` WHERE `k` BETWEEN ? AND ? FOR UPDATE ":                                     locks,
		"SELECT `quantity` FROM `stocks` WHERE `id` = ? FOR SHARE":                                       locks,
		"UPDATE `stocks` SET `quantity` = ? , `version` = `version` + ? WHERE ID = ? AND `version` = ? ": locks,
		"EXECUTE UPDATE `stocks` SET `quantity` = `quantity` - ? WHERE `id` = ?":                         locks,
		"REPLACE INTO `stocks` VALUES (...) /* , ... */":                                                 locks,
		"INSERT INTO `gaps` VALUES (...) /* , ... */ ":                                                   locks,
		"SELECT `quantity` , `version` FROM `stocks` WHERE ID = ? ":                                      neither,
		"SELECT * FROM `stocks` WHERE `id` = ?":                                                          neither,
		"SELECT `GET_LOCK` (...)":                                                                        neither,
		"SELECT `RELEASE_LOCK` (?) ":                                                                     neither,
		"LOCK TABLES `stocks` WRITE ":                                                                    neither, // a metadata lock
		"PREPARE UPDATE `stocks` SET `quantity` = `quantity` - ? WHERE `id` = ?":                         neither,
		"TRUNCATE `gaps` ":                    neither,
		"ROLLBACK ":                           neither,
		"SET `innodb_lock_wait_timeout` = ? ": neither,
		"SELECT SLEEP (?)":                    neither,
		"COMMIT":                              commits,
		"COMMIT ":                             commits,
		"EXECUTE COMMIT":                      commits,
	} {
		d := digest{text: text}
		if d.commits() != (want == commits) || d.locksRows() != (want == locks) {
			t.Errorf("%q: commits %v, locks rows %v", text, d.commits(), d.locksRows())
		}
	}
}
