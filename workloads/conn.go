package workloads

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
)

// MeteredConnector wraps a driver's connector so that dialling on behalf of an
// operation is booked as stage Dial, apart from waiting for the pool.
func MeteredConnector(c driver.Connector) driver.Connector { return connector{c} }

type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if op := OpOf(ctx); op != nil {
		op.In(Dial)
		defer op.In(PoolWait)
	}
	return c.Connector.Connect(ctx)
}

// Pool is a database/sql pool under the meter.
type Pool struct {
	DB *sql.DB
	// Resource is what operations hold while they have a connection; the zero
	// Resource for an unlimited pool, which nobody waits for.
	Resource Resource
}

// NewPool makes a pool named "pool:<name>" of at most size connections, which
// it keeps once they are open; size 0 is unlimited, with the number to keep
// given by keep.
func NewPool(name string, c driver.Connector, size, keep int) *Pool {
	p := &Pool{DB: sql.OpenDB(MeteredConnector(c))}
	if size > 0 {
		p.Resource = Named("pool:" + name)
		keep = size
	}
	p.DB.SetMaxOpenConns(size)
	p.DB.SetMaxIdleConns(keep)
	return p
}

// openAtOnce bounds how many connections are dialled at the same time: a server
// refuses more than stand in its listen queue (80 by default on MariaDB).
const openAtOnce = 16

// Open opens n connections and puts them into the pool, so that the load does
// not measure dialling.
func (p *Pool) Open(ctx context.Context, n int) error {
	conns := make([]*sql.Conn, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	places := make(chan struct{}, openAtOnce)
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			conns[i], errs[i] = p.DB.Conn(ctx)
			<-places
		})
	}
	wg.Wait()
	var err error
	for i, c := range conns {
		if errs[i] != nil {
			err = errs[i]
			continue
		}
		c.Close()
	}
	return err
}

// Conn takes a connection for op, which holds the pool's resource until
// Release. After an error op holds nothing.
func (p *Pool) Conn(ctx context.Context, op *Op) (*sql.Conn, error) {
	if p.Resource == (Resource{}) {
		op.Enter(PoolWait)
		conn, err := p.DB.Conn(ctx)
		op.Enter(App)
		return conn, err
	}
	op.Ask(PoolWait, p.Resource)
	conn, err := p.DB.Conn(ctx)
	if err != nil {
		op.Enter(App)
		return nil, err
	}
	op.Hold()
	return conn, nil
}

// Release gives a connection of op back.
func (p *Pool) Release(op *Op, conn *sql.Conn) {
	conn.Close()
	op.Drop(p.Resource)
}
