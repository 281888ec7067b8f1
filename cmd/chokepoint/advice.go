package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

// Errors of a server, by their code: the same on MySQL and MariaDB.
const (
	erConCount             = 1040
	erDBAccessDenied       = 1044
	erAccessDenied         = 1045
	erTableAccessDenied    = 1142
	erSpecificAccessDenied = 1227
	erMustUseTLS           = 3159
)

// advise adds to an error of a server what the user can do.
func advise(ctx context.Context, err error) error {
	var server *mysql.MySQLError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return errors.New("interrupted before anything was done")
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: no server listens there; is it up, and is this its address?", err)
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%w: there is no such socket; is the server up, and is this its path?", err)
	case errors.As(err, &server):
		return adviseCode(err, server.Number)
	}
	return err
}

func adviseCode(err error, code uint16) error {
	switch code {
	case erConCount:
		return fmt.Errorf("%w: the server takes no more than its max_connections; lower --pool (or --concurrency, where --pool is 0), or raise that", err)
	case erAccessDenied:
		return fmt.Errorf("%w: the server does not accept the user and password of the DSN from here", err)
	case erDBAccessDenied, erTableAccessDenied, erSpecificAccessDenied:
		return fmt.Errorf("%w: `chokepoint doctor` prints the GRANTs that the user needs", err)
	case erMustUseTLS:
		return fmt.Errorf("%w: add ?tls=true (or tls=skip-verify) to the DSN", err)
	}
	return err
}
