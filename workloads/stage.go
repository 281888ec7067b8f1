// Package workloads drives load: operations, the schedule that starts them
// and the meter that tells in which stage they spend their time. It knows
// nothing of collectors or records.
package workloads

import "strings"

// Stage is what a client can time: an operation is in exactly one at any
// moment.
type Stage string

// The client stages.
const (
	Queue         Stage = "queue"           // waits for a worker
	AppLock       Stage = "app_lock"        // asks for an application lock
	Backoff       Stage = "backoff"         // sleeps before it tries again
	PoolWait      Stage = "pool_wait"       // waits for a pooled connection
	Dial          Stage = "dial"            // opens a connection
	Statement     Stage = "statement"       // a statement is at the server
	Commit        Stage = "commit"          // COMMIT is at the server
	RedisPoolWait Stage = "redis_pool_wait" // waits for a pooled Redis connection
	Redis         Stage = "redis"           // a command is at the server
	App           Stage = "app"             // the operation's own code
)

// Outcome says how an operation ended. Errors of a server get a name by their
// code, never by their words.
type Outcome string

// OK is the outcome of an operation that did what it should.
const OK Outcome = "ok"

// Resource is something that operations hold and wait for, such as
// "pool:mysql". The zero Resource is none.
type Resource struct {
	name string
	// rest is the name under which a keyed resource is booked unless its key
	// is one of those most waited for; empty for a resource without a key.
	rest string
}

// Named is a resource without keys, such as Named("pool:mysql").
func Named(name string) Resource { return Resource{name: name} }

// Row is the row lock of one key of a table. Only the keys most waited for
// are booked by their own name, the rest as "row:<table>/*".
func Row(table, key string) Resource {
	return Resource{name: "row:" + table + "/" + key, rest: "row:" + table + "/*"}
}

// appLocks begins the names of application locks: those that the operations
// agree upon themselves, by way of Redis or a named lock of the database.
const appLocks = "applock:"

// ApplicationLock is the lock of one key. Keys are booked like those of rows.
func ApplicationLock(key string) Resource {
	return Resource{name: appLocks + key, rest: appLocks + "*"}
}

func (r Resource) isAppLock() bool { return strings.HasPrefix(r.name, appLocks) }
