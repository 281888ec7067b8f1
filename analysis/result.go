package analysis

import (
	"encoding/json"
	"math"
	"time"

	"chokepoint/analysis/waits"
)

// Result is what an analysis found. Its JSON is schema 1 of `chokepoint
// analyze --output json`: a section is absent when a run has nothing for it;
// inside a section every field is present and unknown numbers are null.
type Result struct {
	Run         Run          `json:"run"`
	Load        *Load        `json:"load,omitempty"`
	Verdict     Verdict      `json:"verdict"`
	Candidates  []Candidate  `json:"candidates"`
	Symptoms    []Symptom    `json:"symptoms"`
	Budget      []Stage      `json:"budget"`
	Unexplained Number       `json:"unexplained_share"`
	Relief      []Relief     `json:"relief"`
	Statements  []Statement  `json:"statements,omitempty"`
	Locks       *Locks       `json:"locks,omitempty"`
	AppLock     *AppLock     `json:"app_lock,omitempty"`
	Pool        *Pool        `json:"pool,omitempty"`
	Runtime     *Runtime     `json:"runtime,omitempty"`
	Profiles    *Profiles    `json:"profiles,omitempty"`
	Host        *Host        `json:"host,omitempty"`
	Redis       *Redis       `json:"redis,omitempty"`
	Correctness *Correctness `json:"correctness,omitempty"`
	Observer    *Observer    `json:"observer,omitempty"`
	Checks      []Check      `json:"checks"`
	Windows     []Window     `json:"windows"`
	Warnings    []string     `json:"warnings"`
}

// Number is a float64 whose NaN, what is not known, is null in JSON.
type Number float64

func unknown() Number { return Number(math.NaN()) }

// Known tells whether n is a number.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// Interval is a lower and an upper bound.
type Interval [2]Number

// Run says which run was analysed.
type Run struct {
	ID        string    `json:"id"`
	Workload  string    `json:"workload"`
	Strategy  string    `json:"strategy"`
	Variant   string    `json:"variant"`
	Fault     string    `json:"fault"`
	Started   time.Time `json:"started"`
	DurationS Number    `json:"duration_s"` // of the measured phase
	// MeasuredFromS is when it began, in seconds of the record.
	MeasuredFromS Number   `json:"measured_from_s"`
	Status        string   `json:"status"`
	Servers       []Server `json:"servers"`
	// Command makes the run again.
	Command string `json:"command"`
}

// Server is a server that the run used.
type Server struct {
	Kind    string `json:"kind"`
	Flavor  string `json:"flavor"`
	Version string `json:"version"`
	Sandbox bool   `json:"sandbox"` // a private one
}

// Load is what was asked of the service, and what it did.
type Load struct {
	Totals
	OfferedPerS Number            `json:"offered_per_s"`
	ByOperation map[string]Totals `json:"by_operation"`
}

// Totals counts operations of the measured phase.
type Totals struct {
	Operations     int            `json:"operations"`
	OK             int            `json:"ok"`
	SuccessRatio   Number         `json:"success_ratio"`
	ThroughputPerS Number         `json:"throughput_per_s"` // successes
	LatencyS       Latency        `json:"latency_s"`
	Outcomes       map[string]int `json:"outcomes"`
}

// Latency describes a distribution of times, in seconds.
type Latency struct {
	Mean Number `json:"mean"`
	P50  Number `json:"p50"`
	P90  Number `json:"p90"`
	P95  Number `json:"p95"`
	P99  Number `json:"p99"`
	P999 Number `json:"p999"`
	Max  Number `json:"max"`
}

// Verdict is the answer.
type Verdict struct {
	waits.Cause
	Resource      string       `json:"resource"`
	Share         Number       `json:"share"`
	ShareInterval Interval     `json:"share_interval"`
	Holder        []StageShare `json:"holder"`
	Summary       string       `json:"summary"`
	Evidence      []Evidence   `json:"evidence"`
}

// StageShare is a share of a resource's hold.
type StageShare struct {
	Stage string `json:"stage"`
	Share Number `json:"share"`
}

// Evidence is a claim with the number that carries it.
type Evidence struct {
	Claim  string `json:"claim"`
	Metric string `json:"metric"`
	Value  Number `json:"value"`
	Unit   string `json:"unit"`
	Source string `json:"source"`
	FromS  Number `json:"from_s"`
	ToS    Number `json:"to_s"`
}

// Candidate is a cause with its share of all waiting.
type Candidate struct {
	waits.Cause
	Resource      string   `json:"resource"`
	Share         Number   `json:"share"`
	ShareInterval Interval `json:"share_interval"`
}

// Symptom is a stage with much waiting whose blame went elsewhere.
type Symptom struct {
	Stage    string      `json:"stage"`
	Layer    string      `json:"layer"`
	Share    Number      `json:"share"` // of the operations' time
	CausedBy waits.Cause `json:"caused_by"`
}

// Stage is one budget stage.
type Stage struct {
	Stage               string     `json:"stage"`
	SecondsPerOperation Number     `json:"seconds_per_operation"`
	Share               Number     `json:"share"`
	BlamedOn            []BlamedOn `json:"blamed_on"`
}

// BlamedOn is a cause with its share of a stage.
type BlamedOn struct {
	waits.Cause
	Share Number `json:"share"`
}

// Bounds of a relief.
const (
	Figure = "figure"  // a prediction
	AtMost = "at_most" // an upper bound
)

// Relief predicts what one change would do.
type Relief struct {
	Change    string      `json:"change"`
	Command   string      `json:"command"`
	Target    waits.Cause `json:"target"`
	Ratio     Number      `json:"predicted_throughput_ratio"`
	Bound     string      `json:"bound"`
	LimitedBy string      `json:"limited_by"`
}

// Statement is one digest.
type Statement struct {
	Digest     string `json:"digest"`
	Text       string `json:"text"`
	Count      int    `json:"count"`
	MeanS      Number `json:"mean_s"`
	LockS      Bounds `json:"lock_s"` // mean per execution
	LockRatio  Number `json:"lock_ratio"`
	MaxS       Number `json:"max_s"`
	Share      Number `json:"share"` // of all statements' time
	Errors     int    `json:"errors"`
	LockSource string `json:"lock_source"`
	LockMethod string `json:"lock_method"`
}

// Bounds is a figure with what it can be at least and at most.
type Bounds struct {
	Lo    Number `json:"lo"`
	Point Number `json:"point"`
	Hi    Number `json:"hi"`
}

// Locks is what is known of InnoDB locks.
type Locks struct {
	HotRows   []HotRow `json:"hot_rows"`
	Deadlocks Number   `json:"deadlocks"`
	Timeouts  Number   `json:"timeouts"`
	// Conflicts are the attempts that found the row changed (optimistic).
	Conflicts Number    `json:"conflicts"`
	Blockers  []Blocker `json:"blockers"`
	// Metadata are the metadata and named locks, the most waited for first.
	Metadata []MetadataLock `json:"metadata_locks"`
}

// HotRow is a row that operations waited for.
type HotRow struct {
	Table       string   `json:"table"`
	Index       string   `json:"index"`
	Key         string   `json:"key"`
	WaitersMean Number   `json:"waiters_mean"`
	WaitersMax  Number   `json:"waiters_max"`
	Utilisation Interval `json:"utilisation"`
}

// MetadataLock is a metadata or named lock that operations waited for.
type MetadataLock struct {
	Resource    string `json:"resource"` // mdl:<table> or named:<name>
	WaitersMean Number `json:"waiters_mean"`
}

// Blocker is a transaction that others waited for.
type Blocker struct {
	Thread  int  `json:"thread"`
	Foreign bool `json:"foreign"` // not of this load
	// Resource is what it has, such as row:stock/1 or mdl:stock.
	Resource string `json:"resource"`
	Query    string `json:"query"`
	AgeS     Number `json:"age_s"`
	Blocks   int    `json:"blocks"`
}

// Pool is the connection pool.
type Pool struct {
	MaxOpen     int    `json:"max_open"`
	InUseMean   Number `json:"in_use_mean"`
	InUseMax    Number `json:"in_use_max"`
	IdleMean    Number `json:"idle_mean"`
	PendingMean Number `json:"pending_mean"`
	PendingMax  Number `json:"pending_max"`
	Timeouts    int    `json:"timeouts"`
	Waits       Number `json:"waits"`
	WaitS       Spread `json:"wait_s"`
	HoldS       Spread `json:"hold_s"`
	Utilisation Number `json:"utilisation"`
}

// Profiles are the profiles of the load's process in the measured phase.
type Profiles struct {
	CPUS Number `json:"cpu_s"` // all samples
	// ByStage is the CPU time of operations by client stage, RestS what belongs
	// to no operation and not to the observer: garbage collector and scheduler.
	ByStage   []StageCPU    `json:"by_stage"`
	RestS     Number        `json:"rest_s"`
	Functions []FunctionCPU `json:"functions"` // the largest flat time first
	Mutexes   []MutexWait   `json:"mutexes"`   // sampled and scaled up
	// PoolParks is the time in which goroutines were parked in database/sql for a
	// connection (block profile); absent without one.
	PoolParks *PoolParks `json:"pool_parks,omitempty"`
}

// StageCPU is the CPU time of the operations in a client stage.
type StageCPU struct {
	Stage string `json:"stage"`
	CPUS  Number `json:"cpu_s"`
}

// FunctionCPU is a function of the CPU profile.
type FunctionCPU struct {
	Function string `json:"function"`
	FlatS    Number `json:"flat_s"`
	CumS     Number `json:"cum_s"`
	Share    Number `json:"share"` // flat, of all samples
}

// MutexWait is the time for which others waited for a mutex that a function
// held.
type MutexWait struct {
	Function    string `json:"function"`
	Seconds     Number `json:"wait_s"`
	Contentions Number `json:"contentions"`
	// Stack is the stack with most of it, the innermost function first.
	Stack []string `json:"stack"`
}

// PoolParks is the waiting for a connection as the block profile sampled it.
type PoolParks struct {
	Seconds Number `json:"wait_s"`
	Waits   Number `json:"waits"`
}

// Observer is what watching the run cost.
type Observer struct {
	CPUS        Number `json:"cpu_s"`        // of its goroutines (labels of the CPU profile)
	CPUShare    Number `json:"cpu_share"`    // of the CPU seconds of the load and its servers
	StatementsS Number `json:"statements_s"` // of its statements in the database server
	RedisS      Number `json:"redis_s"`      // of such commands in Redis, whoever sent them
	Polls       int    `json:"polls"`
	Faults      int    `json:"faults"` // readings that failed, and other faults of the recording
}

// AppLock tells of application locks.
type AppLock struct {
	Acquired           Number `json:"acquired"`
	AttemptsPerAcquire Number `json:"attempts_per_acquire"`
	// IdleWithWaitersRatio is the share of the time in which somebody waited for
	// the lock and nobody had it.
	IdleWithWaitersRatio Number `json:"idle_with_waiters_ratio"`
	// HandoffS is for how long the lock was free, with operations waiting, before
	// one of them got it.
	HandoffS Spread `json:"handoff_s"`
	HoldS    Spread `json:"hold_s"`
	// LeaseExpired counts locks that had ended before their release, DoubleHeld
	// those that somebody else had got meanwhile.
	LeaseExpired Number `json:"lease_expired"`
	DoubleHeld   Number `json:"double_held"`
}

// Redis is what the Redis server says of itself, of all its clients.
type Redis struct {
	OpsPerS            Number         `json:"ops_per_s"`
	HitRatio           Number         `json:"hit_ratio"`
	Hits               Number         `json:"hits"`
	Misses             Number         `json:"misses"`
	MemoryUsedBytesMax Number         `json:"memory_used_bytes_max"`
	DatasetBytesMax    Number         `json:"dataset_bytes_max"`
	Commands           []RedisCommand `json:"commands"`
	// BusyShare is the share of the time in which the main thread was busy: its
	// event loop's own figure, or its CPU time before Redis 7.2.
	BusyShare Number `json:"busy_share"`
}

// RedisCommand is the time of a command in the server, without queueing and
// network.
type RedisCommand struct {
	Name  string `json:"name"`
	Calls Number `json:"calls"`
	MeanS Number `json:"mean_s"`
	P99S  Number `json:"p99_s"` // upper bound of its bucket
}

// Spread is a short distribution of times, in seconds.
type Spread struct {
	Mean Number `json:"mean"`
	P95  Number `json:"p95"`
	P99  Number `json:"p99"`
	Max  Number `json:"max"`
}

// Runtime is the Go runtime of the load.
type Runtime struct {
	GOMAXPROCS    int          `json:"gomaxprocs"`
	CPUShare      Number       `json:"cpu_share"` // of GOMAXPROCS
	GCCPUShare    Number       `json:"gc_cpu_share"`
	GCPauses      Number       `json:"gc_pauses"`
	GCPauseMaxS   Number       `json:"gc_pause_max_s"`
	GCPauseTotalS Number       `json:"gc_pause_total_s"`
	HeapPeakBytes Number       `json:"heap_peak_bytes"`
	GoroutinesMax Number       `json:"goroutines_max"`
	MutexWaitS    Number       `json:"mutex_wait_s"`
	SchedLatencyS SchedLatency `json:"sched_latency_s"`
}

// SchedLatency is the time goroutines stood runnable before they ran.
type SchedLatency struct {
	Mean Number `json:"mean"`
	P50  Number `json:"p50"`
	P99  Number `json:"p99"`
}

// Host is the machine.
type Host struct {
	CPUs        int       `json:"cpus"`
	BusyShare   Number    `json:"busy_share"`
	Processes   []Process `json:"processes"`
	StealShare  Number    `json:"steal_share"`
	CPUPressure Number    `json:"cpu_pressure"`
}

// Process is a process of the run.
type Process struct {
	Name      string `json:"name"`
	CPUS      Number `json:"cpu_s"`
	RunQueueS Number `json:"run_queue_s"`
}

// Correctness compares the books.
type Correctness struct {
	What        string `json:"what"`
	LostUpdates int64  `json:"lost_updates"`
	Oversold    int64  `json:"oversold"`
	Expected    int64  `json:"expected"`
	Actual      int64  `json:"actual"`
}

// Check compares two numbers that a law says must agree.
type Check struct {
	Name     string `json:"name"`
	Expected Number `json:"expected"`
	Measured Number `json:"measured"`
	OK       bool   `json:"ok"`
	Note     string `json:"note"`
}

// Window is a part of the measured phase with one leader.
type Window struct {
	FromS Number `json:"from_s"`
	ToS   Number `json:"to_s"`
	waits.Cause
	Share Number `json:"share"`
}
