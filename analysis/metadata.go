package analysis

import (
	"strings"

	"chokepoint/analysis/timeline"
	"chokepoint/analysis/waits"
)

// Names that the metadata-lock source writes; see collectors/mysql.
const (
	metadataWaiters  = "mysql.metadata_lock.waiters"
	metadataBlockers = "mysql.metadata_lock.blockers"
	metadataSamples  = "mysql.metadata_lock.samples"
	userLevelLock    = "USER LEVEL LOCK" // the type of a named lock
)

// Resources whose name the samples did not tell.
const (
	anyMetadata = "mdl:unknown"
	anyNamed    = "named:unknown"
)

var (
	metadataLock = waits.Cause{Layer: "database", Cause: "metadata_lock"}
	namedLock    = waits.Cause{Layer: "database", Cause: "named_lock"}
)

// metadataLocks finds the time of waiting for metadata and named locks. The
// wait instrument times both, on both flavours. Where it is not known to be on,
// MariaDB's SUM_LOCK_TIME holds the metadata locks, unless the slow log goes to
// a table, which makes that column nearly the whole time of each statement.
// Named locks are those of statements that call GET_LOCK.
func (s *serverTime) metadataLocks(t *timeline.Timeline, on bool) {
	s.nameMetadata(t)
	_, polluted := t.Limits[slowLogTable]
	switch timed := t.Delta(t.Get(waitTimer, metadataWait)); {
	case on, timed > 0:
		s.metadata = timed
		s.named = min(s.metadata, s.getLockTimer())
		s.metadata -= s.named
		s.mdlSource = "performance_schema " + metadataWait
	case s.flavor == flavorMariaDB && !polluted:
		for _, d := range s.digests {
			s.metadata += max(0, d.lock-openingTables*d.count)
		}
		s.mdlSource = "performance_schema digests SUM_LOCK_TIME"
	}
}

// getLockTimer is the time of the statements that ask for a named lock.
func (s *serverTime) getLockTimer() float64 {
	sum := 0.0
	for _, d := range s.digests {
		if strings.Contains(normal(d.text), "get_lock") {
			sum += d.timer
		}
	}
	return sum
}

// nameMetadata names the table, and the named lock, with most waiting in the
// samples.
func (s *serverTime) nameMetadata(t *timeline.Timeline) {
	most := map[bool]float64{}
	for _, series := range t.All(metadataWaiters) {
		kind, object := series.Labels[0], series.Labels[1]
		named := kind == userLevelLock
		n := sum(t.During(series))
		if n <= most[named] {
			continue
		}
		most[named] = n
		if named {
			s.namedLock = metadataResource(kind, object)
		} else {
			s.mdl = metadataResource(kind, object)
		}
	}
}

// metadataResource names what is locked, by the server's type of it.
func metadataResource(kind, object string) string {
	if kind == userLevelLock {
		return "named:" + object
	}
	return "mdl:" + object
}

// readMetadata finds for how much of the time the metadata and named locks that
// somebody waits for were in use, and by whom.
func (g *lockGraph) readMetadata(t *timeline.Timeline) {
	samples := float64(len(t.During(t.Get(metadataSamples))))
	if samples < minSamples {
		return
	}
	for _, s := range t.All(metadataWaiters) {
		g.metadata[metadataResource(s.Labels[0], s.Labels[1])] += float64(len(t.During(s))) / samples
	}
	for _, s := range t.All(metadataBlockers) {
		if r := metadataResource(s.Labels[0], s.Labels[1]); s.Labels[2] == foreignOwner {
			g.strange[r] = min(g.metadata[r], g.strange[r]+float64(len(t.During(s)))/samples)
		}
	}
}
