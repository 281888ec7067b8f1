// Package record is the folder that a run leaves behind: what was run, what
// the sources read and what happened, in standard text formats that are
// appended to while the run lasts and only read afterwards. Analysis reads
// records and nothing else.
//
//	run.json       written at the start, replaced once at the end
//	batches.jsonl  one Batch a line
//	events.jsonl   one Event a line
//	latency.hlog   HdrHistogram interval log, nanoseconds, tag operation/stage/outcome
//	profiles/      pprof files TYPE-FROM-TO.pb.gz
//
// Times inside a record are seconds since its start on the monotonic clock;
// the wall clock stands once, in run.json.
//
// Note: batch values are keyed by the whole series name instead of numbers
// declared on an earlier line. That costs bytes, but every line explains
// itself: a torn or corrupted line loses that line and nothing else.
package record

import (
	"fmt"
	"time"

	"chokepoint/collectors/metric"
)

// Format is the version of the record that this package writes. A reader
// refuses records of a later format.
const Format = 1

// Names of the files of a record.
const (
	RunFile     = "run.json"
	BatchesFile = "batches.jsonl"
	EventsFile  = "events.jsonl"
	LatencyFile = "latency.hlog"
)

// Run is what run.json holds.
type Run struct {
	Format   int           `json:"format"`
	ID       ID            `json:"id"`
	Tool     Tool          `json:"tool"`
	Started  time.Time     `json:"started"`
	Workload Workload      `json:"workload"`
	Host     Host          `json:"host"`
	Servers  []Server      `json:"servers"`
	Clocks   []Clock       `json:"clocks"`
	Metrics  []metric.Desc `json:"metrics"`
	// End is nil while the run lasts, and for ever if it was killed.
	End *End `json:"end,omitempty"`
}

// Tool says which build made the record.
type Tool struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
}

// Workload says what was run, with every parameter.
type Workload struct {
	Name     string `json:"name"`
	Strategy string `json:"strategy"`
	Variant  string `json:"variant,omitempty"`
	Fault    string `json:"fault,omitempty"`
	Seed     uint64 `json:"seed"`
	// Concurrency is the number of workers of a closed loop, 0 if unknown.
	Concurrency int `json:"concurrency"`
	// ThinkS is the mean pause of a worker between operations, in seconds.
	ThinkS float64 `json:"think_s"`
	// OfferedPerS is the intended rate of an open loop, 0 for a closed one.
	OfferedPerS float64 `json:"offered_per_s"`
	// Args are the command line words that make this run again.
	Args []string `json:"args"`
	// Parameters holds every setting as text, by flag name.
	Parameters map[string]string `json:"parameters"`
	// Resources are the resources whose capacity the workload sets.
	Resources []Resource `json:"resources"`
}

// Resource is something that is held and waited for, such as "pool:mysql".
type Resource struct {
	Name     string `json:"name"`
	Capacity int    `json:"capacity"`
}

// Host is the machine that the load ran on.
type Host struct {
	OS          string `json:"os"`
	Kernel      string `json:"kernel"`
	CPUs        int    `json:"cpus"`
	GOMAXPROCS  int    `json:"gomaxprocs"`
	MemoryBytes uint64 `json:"memory_bytes"`
	// Process is the name under which the host source reports the load itself.
	Process string `json:"process"`
}

// Server is a database or cache that the load used.
type Server struct {
	Kind    string `json:"kind"`   // "mysql" or "redis": the protocol
	Flavor  string `json:"flavor"` // "mariadb", "mysql", "redis", "valkey"
	Version string `json:"version"`
	// Sandbox is true for a private server that chokepoint started.
	Sandbox bool `json:"sandbox"`
	// Process is the name under which the host source reports the server; it
	// is empty where the server's CPU cannot be seen.
	Process string `json:"process,omitempty"`
	// Schema is the schema that the load worked in.
	Schema string `json:"schema,omitempty"`
	// Variables are the server's own settings that matter to a reader.
	Variables map[string]string `json:"variables,omitempty"`
}

// MetadataInstrument is the key in Variables that is ON where the wait instrument
// of metadata locks times them.
const MetadataInstrument = "instrument wait/lock/metadata/sql/mdl"

// Clock is one comparison of a server's clock with ours.
type Clock struct {
	Server  string  `json:"server"`
	AtS     float64 `json:"at_s"`
	OffsetS float64 `json:"offset_s"` // server minus ours
	RTTS    float64 `json:"rtt_s"`    // the offset is known to half of it
}

// Statuses of a run.
const (
	Complete    = "complete"
	Interrupted = "interrupted"
	Killed      = "killed" // never written: a record without an end
)

// End says how a run ended.
type End struct {
	AtS    float64 `json:"at_s"`
	Status string  `json:"status"`
	Error  string  `json:"error,omitempty"`
	// Books is nil where the workload keeps none.
	Books *Books `json:"books,omitempty"`
}

// Books compares what a workload did with what it left in the database.
type Books struct {
	What string `json:"what"` // what is counted, such as "stock left"
	// Expected is the start value less the successes; Actual is what the
	// database says.
	Expected int64 `json:"expected"`
	Actual   int64 `json:"actual"`
	// LostUpdates counts successes that left no trace; Oversold counts sales
	// beyond what there was.
	LostUpdates int64 `json:"lost_updates"`
	Oversold    int64 `json:"oversold"`
}

// Status tells how the run ended; a run without an end was killed.
func (r Run) Status() string {
	if r.End == nil {
		return Killed
	}
	return r.End.Status
}

// Batch is one reading of one source: raw counters and gauges, never rates.
type Batch struct {
	Source string  `json:"source"`
	T      float64 `json:"t"`    // seconds since the start of the record
	Took   float64 `json:"took"` // how long the reading took
	// Values maps a series (see Series) to its value in the metric's unit.
	Values map[string]float64 `json:"values"`
}

// Add puts one value into the batch.
func (b *Batch) Add(v float64, metric string, labels ...string) {
	if b.Values == nil {
		b.Values = make(map[string]float64)
	}
	b.Values[Series(metric, labels...)] = v
}

// Kinds of events.
const (
	// Phase opens a phase named in Text; it lasts until the next one.
	Phase = "phase"
	// Fault is a reading or a part of the recording that failed.
	Fault = "fault"
	// Gap is a time in which readings were due and not taken.
	Gap = "gap"
	// Note is something a reader of the record must know.
	Note = "note"
	// Statement gives the text of a statement digest; Labels has "digest", and
	// "cut" if statements that differ only behind the text are counted as one.
	Statement = "statement"
	// Limit is something of a server that the record cannot show whole; Labels
	// has "check", a stable name, and "costs", what cannot be said for it.
	Limit = "limit"
)

// Phases of a run, in their order.
const (
	PhaseIdle    = "idle"    // servers are up, no load yet
	PhaseWarmup  = "warmup"  // load that is not measured
	PhaseMeasure = "measure" // from the readings before the first measured operation
	PhaseDone    = "done"    // from the readings after the last one has drained
)

// Event is something that happened at one moment.
type Event struct {
	T      float64           `json:"t"`
	Kind   string            `json:"kind"`
	Source string            `json:"source,omitempty"`
	Text   string            `json:"text"`
	Labels map[string]string `json:"labels,omitempty"`
}

// SyntaxError is a line of a record that cannot be read. Reading goes on
// behind it.
type SyntaxError struct {
	File string
	Line int
	Msg  string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }
