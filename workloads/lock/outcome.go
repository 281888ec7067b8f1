package lock

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"

	"chokepoint/workloads"
)

// Outcomes of a purchase beside workloads.OK.
const (
	SoldOut         workloads.Outcome = "sold_out"
	Conflict        workloads.Outcome = "conflict"     // the row changed under each attempt
	Timeout         workloads.Outcome = "timeout"      // the operation's own time limit
	PoolTimeout     workloads.Outcome = "pool_timeout" // the same, while it waited for a connection
	LockWaitTimeout workloads.Outcome = "lock_wait_timeout"
	Deadlock        workloads.Outcome = "deadlock"
	TooManyConns    workloads.Outcome = "too_many_connections"
	ConnectionLost  workloads.Outcome = "connection_lost"
	// CommitUnknown: the answer to the statement that makes the sale durable
	// never came, so nobody knows whether it was made.
	CommitUnknown workloads.Outcome = "commit_unknown"
	Failed        workloads.Outcome = "error"
	// LockTimeout: all attempts to get an application lock were in vain.
	LockTimeout      workloads.Outcome = "lock_timeout"
	RedisPoolTimeout workloads.Outcome = "redis_pool_timeout"
	RedisLost        workloads.Outcome = "redis_connection_lost"
	RedisError       workloads.Outcome = "redis_error"
)

// MySQL error codes: the same on MySQL and MariaDB.
const (
	erConCount        = 1040
	erLockWaitTimeout = 1205
	erLockDeadlock    = 1213
)

// outcome names an error by its code. Codes without a name of their own become
// "mysql_<code>".
func outcome(err error) workloads.Outcome {
	var server *mysql.MySQLError
	var network net.Error
	switch {
	case err == nil:
		return workloads.OK
	case errors.As(err, &server):
		return byCode(server.Number)
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, io.EOF), errors.As(err, &network):
		return ConnectionLost
	default:
		return Failed
	}
}

func byCode(code uint16) workloads.Outcome {
	switch code {
	case erConCount:
		return TooManyConns
	case erLockWaitTimeout:
		return LockWaitTimeout
	case erLockDeadlock:
		return Deadlock
	default:
		return workloads.Outcome(fmt.Sprintf("mysql_%d", code))
	}
}

// poolOutcome names an error of getting a connection.
func poolOutcome(err error) workloads.Outcome {
	if o := outcome(err); o != Timeout {
		return o
	}
	return PoolTimeout
}

// finalOutcome names the error of a statement that makes the sale durable: an
// answer that did not come leaves open whether it was made.
func finalOutcome(err error) workloads.Outcome {
	switch o := outcome(err); o {
	case Timeout, ConnectionLost:
		return CommitUnknown
	default:
		return o
	}
}
