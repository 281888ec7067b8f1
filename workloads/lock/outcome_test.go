package lock

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"

	"chokepoint/workloads"
)

func TestOutcomes(t *testing.T) {
	code := func(n uint16) error {
		return fmt.Errorf("buying: %w", &mysql.MySQLError{Number: n, Message: "any words"})
	}
	for _, c := range []struct {
		err         error
		want, final workloads.Outcome // of any statement; of the one that makes the sale durable
	}{
		{nil, "ok", "ok"},
		{code(1040), "too_many_connections", "too_many_connections"},
		{code(1205), "lock_wait_timeout", "lock_wait_timeout"},
		{code(1213), "deadlock", "deadlock"},
		{code(1064), "mysql_1064", "mysql_1064"},
		{context.DeadlineExceeded, "timeout", "commit_unknown"},
		{driver.ErrBadConn, "connection_lost", "commit_unknown"},
		{mysql.ErrInvalidConn, "connection_lost", "commit_unknown"},
		{io.EOF, "connection_lost", "commit_unknown"},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, "connection_lost", "commit_unknown"},
		{errors.New("something else"), "error", "error"},
	} {
		if got, final := outcome(c.err), finalOutcome(c.err); got != c.want || final != c.final {
			t.Errorf("%v: %s and %s, want %s and %s", c.err, got, final, c.want, c.final)
		}
	}
	if got := poolOutcome(context.DeadlineExceeded); got != PoolTimeout {
		t.Errorf("a pool that gave nothing in time: %s", got)
	}
}
