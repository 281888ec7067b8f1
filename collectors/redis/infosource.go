package redis

import (
	"context"
	"fmt"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the metrics of INFO.
const (
	InfoSource        = "redis.info"
	Uptime            = "redis.uptime"
	Connections       = "redis.total_connections"
	Commands          = "redis.commands"
	Hits              = "redis.hits"
	Misses            = "redis.misses"
	ExpiredKeys       = "redis.expired_keys"
	EvictedKeys       = "redis.evicted_keys"
	ConnectedClients  = "redis.connected_clients"
	BlockedClients    = "redis.blocked_clients"
	MemoryUsed        = "redis.memory_used_bytes"
	Dataset           = "redis.dataset_bytes"
	CPUSeconds        = "redis.cpu_seconds"
	EventLoop         = "redis.eventloop_seconds"
	EventLoopCommands = "redis.eventloop_command_seconds"
	CommandCalls      = "redis.command.calls"
	CommandSeconds    = "redis.command.seconds"
	CommandRejected   = "redis.command.rejected"
	CommandFailed     = "redis.command.failed"
	Errors            = "redis.errors"
	Keys              = "redis.keys"
)

// Values of the label "thread" of CPUSeconds.
const (
	// MainThread is the one that executes commands.
	MainThread = "main"
	// AllThreads are the main one, those for I/O and those in the background.
	AllThreads = "all"
)

const microseconds = 1e-6

// infoField is a metric made of one line of INFO, or of the sum of several.
type infoField struct {
	fields []string
	scale  float64
	labels []string // values
	desc   metric.Desc
}

func infoFields() []infoField {
	cpu := metric.Desc{Name: CPUSeconds, Unit: metric.Seconds, Kind: metric.Counter, Labels: []string{"thread"},
		Help: "CPU time of the server's main thread, from 7.0 on, and of all its threads (used_cpu_user*, used_cpu_sys*)"}
	return []infoField{
		{[]string{"uptime_in_seconds"}, 1, nil, metric.Desc{Name: Uptime, Unit: metric.Seconds, Kind: metric.Gauge, Help: "time since the server started, in whole seconds; CONFIG RESETSTAT does not touch it (uptime_in_seconds)"}},
		{[]string{"total_connections_received"}, 1, nil, metric.Desc{Name: Connections, Unit: metric.One, Kind: metric.Counter, Help: "connections accepted (total_connections_received)"}},
		{[]string{"total_commands_processed"}, 1, nil, metric.Desc{Name: Commands, Unit: metric.One, Kind: metric.Counter, Help: "commands executed, those inside scripts and the observer's included (total_commands_processed)"}},
		{[]string{"keyspace_hits"}, 1, nil, metric.Desc{Name: Hits, Unit: metric.One, Kind: metric.Counter, Help: "keys that commands which only read found, EXISTS and TTL included (keyspace_hits)"}},
		{[]string{"keyspace_misses"}, 1, nil, metric.Desc{Name: Misses, Unit: metric.One, Kind: metric.Counter, Help: "keys that commands which only read did not find (keyspace_misses)"}},
		{[]string{"expired_keys"}, 1, nil, metric.Desc{Name: ExpiredKeys, Unit: metric.One, Kind: metric.Counter, Help: "keys removed since their time was up (expired_keys)"}},
		{[]string{"evicted_keys"}, 1, nil, metric.Desc{Name: EvictedKeys, Unit: metric.One, Kind: metric.Counter, Help: "keys removed since memory was full (evicted_keys)"}},
		{[]string{"connected_clients"}, 1, nil, metric.Desc{Name: ConnectedClients, Unit: metric.One, Kind: metric.Gauge, Help: "open connections, the observer's included (connected_clients)"}},
		{[]string{"blocked_clients"}, 1, nil, metric.Desc{Name: BlockedClients, Unit: metric.One, Kind: metric.Gauge, Help: "connections that wait in a blocking command such as BLPOP (blocked_clients)"}},
		{[]string{"used_memory"}, 1, nil, metric.Desc{Name: MemoryUsed, Unit: metric.Bytes, Kind: metric.Gauge, Help: "memory allocated by the server (used_memory)"}},
		{[]string{"used_memory_dataset"}, 1, nil, metric.Desc{Name: Dataset, Unit: metric.Bytes, Kind: metric.Gauge, Help: "memory allocated less the server's overhead (used_memory_dataset)"}},
		{[]string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"}, 1, []string{MainThread}, cpu},
		{[]string{"used_cpu_user", "used_cpu_sys"}, 1, []string{AllThreads}, cpu},
		{[]string{"eventloop_duration_sum"}, microseconds, nil, metric.Desc{Name: EventLoop, Unit: metric.Seconds, Kind: metric.Counter, Help: "time in which the main thread was busy, from Redis 7.2 and Valkey on (eventloop_duration_sum)"}},
		{[]string{"eventloop_duration_cmd_sum"}, microseconds, nil, metric.Desc{Name: EventLoopCommands, Unit: metric.Seconds, Kind: metric.Counter, Help: "the part of it spent on executing commands (eventloop_duration_cmd_sum)"}},
	}
}

// infoItem is a metric made of one item of each list of a kind.
type infoItem struct {
	lists func(Info) map[string]Values
	item  string
	scale float64
	desc  metric.Desc
}

func infoItems() []infoItem {
	commands := func(i Info) map[string]Values { return i.Commands }
	command := []string{"command"}
	return []infoItem{
		{commands, "calls", 1, metric.Desc{Name: CommandCalls, Unit: metric.One, Kind: metric.Counter, Labels: command, Help: "executions of the command, those inside scripts included (cmdstat_*: calls)"}},
		{commands, "usec", microseconds, metric.Desc{Name: CommandSeconds, Unit: metric.Seconds, Kind: metric.Counter, Labels: command,
			Help: "their time in the main thread, without queueing and network; that of a script contains that of the commands inside it (cmdstat_*: usec)"}},
		{commands, "rejected_calls", 1, metric.Desc{Name: CommandRejected, Unit: metric.One, Kind: metric.Counter, Labels: command, Help: "calls refused before execution, such as those with a wrong number of arguments, from 6.2 on (cmdstat_*: rejected_calls)"}},
		{commands, "failed_calls", 1, metric.Desc{Name: CommandFailed, Unit: metric.One, Kind: metric.Counter, Labels: command, Help: "executions that ended in an error, from 6.2 on (cmdstat_*: failed_calls)"}},
		{func(i Info) map[string]Values { return i.Errors }, "count", 1, metric.Desc{Name: Errors, Unit: metric.One, Kind: metric.Counter, Labels: []string{"prefix"},
			Help: "error replies by their first word, from 6.2 on (errorstat_*: count)"}},
		{func(i Info) map[string]Values { return i.Databases }, "keys", 1, metric.Desc{Name: Keys, Unit: metric.One, Kind: metric.Gauge, Labels: []string{"db"}, Help: "keys of the database; absent while there are none (db*: keys)"}},
	}
}

// info reads INFO, in one call; it needs the right +info.
type info struct{ server *Server }

func (info) Name() string { return InfoSource }

func (info) Metrics() []metric.Desc {
	var ds []metric.Desc
	for _, f := range infoFields() {
		if len(ds) == 0 || ds[len(ds)-1].Name != f.desc.Name { // the threads share one
			ds = append(ds, f.desc)
		}
	}
	for _, i := range infoItems() {
		ds = append(ds, i.desc)
	}
	return ds
}

// Read adds what could be read, whatever the error.
func (s info) Read(ctx context.Context, b *record.Batch) error {
	text, err := s.server.info(ctx)
	if err != nil {
		return s.server.explain(InfoSource, "+info", err)
	}
	i, err := ParseInfo(text)
	i.add(b)
	if err != nil {
		return fmt.Errorf("%s: %w", InfoSource, err)
	}
	return nil
}

// add puts what the text tells into a batch; a sum needs all its parts.
func (i Info) add(b *record.Batch) {
	for _, f := range infoFields() {
		sum, complete := 0.0, true
		for _, name := range f.fields {
			v, ok := i.Numbers[name]
			sum, complete = sum+v, complete && ok
		}
		if complete {
			b.Add(sum*f.scale, f.desc.Name, f.labels...)
		}
	}
	for _, m := range infoItems() {
		for label, values := range m.lists(i) {
			if v, ok := values[m.item]; ok {
				b.Add(v*m.scale, m.desc.Name, label)
			}
		}
	}
}
