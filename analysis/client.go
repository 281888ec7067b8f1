package analysis

import (
	"slices"
	"strings"

	"chokepoint/analysis/timeline"
)

// Names that the operations source writes; see collectors/operations.
const (
	opSeconds  = "operations.seconds"
	opEntries  = "operations.entries"
	opFinished = "operations.finished"
	opOpen     = "operations.open"
)

// Client stages, as records write them, and budget stages, into which the
// analysis splits statement, commit and app.
const (
	stageQueue     = "queue"
	stageAppLock   = "app_lock"
	stageBackoff   = "backoff"
	stagePoolWait  = "pool_wait"
	stageDial      = "dial"
	stageStatement = "statement"
	stageCommit    = "commit"
	stageRedisPool = "redis_pool_wait"
	stageRedis     = "redis"
	stageApp       = "app"

	stageRowLock     = "row_lock"
	stageMDL         = "metadata_lock"
	stageExec        = "db_exec"
	stageDBCommit    = "db_commit"
	stageDBRunnable  = "db_runnable"
	stageNetwork     = "network"
	stageRunnable    = "runnable"
	stageCPU         = "cpu"
	stageGCAssist    = "gc_assist"
	stageUnexplained = "unexplained"
	stageForeign     = "foreign" // holders that are not our operations
)

// clientCell is the time of operations in one client stage, asking for one
// resource and holding others.
type clientCell struct {
	operation, stage, asked string
	held                    []string
	retry                   bool      // an earlier attempt had failed
	seconds                 float64   // in the measured phase
	slices                  []float64 // in each slice
	entries                 float64
}

// asksRow tells whether the operations are in a statement that asks for a row.
func (c *clientCell) asksRow() bool {
	return c.stage == stageStatement && strings.HasPrefix(c.asked, "row:")
}

// inConnection tells whether the operations have a connection.
func (c *clientCell) inConnection() bool {
	return c.stage == stageStatement || c.stage == stageCommit ||
		slices.ContainsFunc(c.held, func(r string) bool { return strings.HasPrefix(r, "pool:") })
}

func clientCells(t *timeline.Timeline, steps []timeline.Slice) []clientCell {
	var cells []clientCell
	for _, s := range t.All(opSeconds, 4) {
		c := clientCell{operation: s.Labels[0], stage: s.Labels[1], asked: s.Labels[2]}
		if s.Labels[3] != "" {
			c.held = strings.Split(s.Labels[3], "+")
		}
		c.retry = len(s.Labels) > 4 && s.Labels[4] == "retry" // records before there were retries lack the label
		c.seconds = t.Delta(s)
		for _, step := range steps {
			c.slices = append(c.slices, t.DeltaOver(s, step.From, step.To))
		}
		c.entries = t.Delta(t.Get(opEntries, s.Labels...))
		if c.seconds > 0 || c.entries > 0 {
			cells = append(cells, c)
		}
	}
	return cells
}

// sumWhere adds up the seconds of the cells that match.
func sumWhere(cells []clientCell, match func(*clientCell) bool) float64 {
	sum := 0.0
	for i := range cells {
		if match(&cells[i]) {
			sum += cells[i].seconds
		}
	}
	return sum
}
