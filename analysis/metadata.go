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
		// The instrument is of the whole server.
		table, name := oursAmong(t)
		named := min(timed, s.getLockTimer())
		s.named, s.metadata = named*name, (timed-named)*table
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
	for _, series := range t.All(metadataWaiters, 4) {
		l := series.Labels
		named := l[0] == userLevelLock
		n := sum(t.During(series))
		if l[3] == foreignOwner || n <= most[named] {
			continue
		}
		most[named] = n
		if named {
			s.namedLock = metadataResource(l[0], l[2])
		} else {
			s.mdl = metadataResource(l[0], l[2])
		}
	}
}

// oursAmong is the share of the waiting for metadata locks, and for named ones,
// that was not strangers', by the samples; all of it where they are too few.
func oursAmong(t *timeline.Timeline) (table, name float64) {
	if len(t.During(t.Get(metadataSamples))) < minSamples {
		return 1, 1
	}
	var all, ours [2]float64
	for _, s := range t.All(metadataWaiters, 4) {
		i := 0
		if s.Labels[0] == userLevelLock {
			i = 1
		}
		n := sum(t.During(s))
		all[i] += n
		if s.Labels[3] != foreignOwner {
			ours[i] += n
		}
	}
	share := func(i int) float64 {
		if all[i] == 0 {
			return 1 // too short to be sampled: nobody's in particular
		}
		return ours[i] / all[i]
	}
	return share(0), share(1)
}

// metadataResource names what is locked, by the server's type of it: a table, a
// named lock, or the whole server (GLOBAL, of FLUSH TABLES WITH READ LOCK).
func metadataResource(kind, object string) string {
	switch {
	case kind == userLevelLock:
		return "named:" + object
	case object == "":
		return "mdl:" + strings.ToLower(kind)
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
	for _, s := range t.All(metadataWaiters, 4) {
		r := metadataResource(s.Labels[0], s.Labels[2])
		g.metadata[r] = min(1, g.metadata[r]+float64(len(t.During(s)))/samples)
	}
	for _, s := range t.All(metadataBlockers, 7) {
		if r := metadataResource(s.Labels[0], s.Labels[2]); s.Labels[3] == foreignOwner {
			g.strange[r] = min(g.metadata[r], g.strange[r]+float64(len(t.During(s)))/samples)
		}
	}
}
