// Package lock sells stock: many operations take one unit each from a few
// rows, under different strategies of keeping the count right. It shows what a
// lock on a hot row costs.
package lock

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"chokepoint/workloads"
)

// Operation is the name of this workload's operations.
const Operation = "buy"

// Table is where the stock stands.
const Table = "stock"

// Options are the settings of the workload.
type Options struct {
	Strategy string
	Keys     int    // rows that the operations choose from
	Skew     string // how they choose: Uniform or Zipf
	Stock    int64  // units of each row at the start
	// Hold is what an operation does between reading and writing, in the database
	// (SLEEP), while it holds what it has locked.
	Hold time.Duration
	// MaxRetries and Backoff are for strategies that try again.
	MaxRetries int
	Backoff    workloads.BackoffPolicy
	Lease      time.Duration // after which a lock in Redis ends by itself
	Faults     []Fault
}

// Holds tells whether a strategy does anything between reading and writing.
func Holds(strategy string) bool { return strategy != "atomic" }

// NeedsRedis tells whether the strategy, or a fault, does anything in Redis.
func (o Options) NeedsRedis() bool {
	return o.Strategy == "redis-spin" || slices.ContainsFunc(o.Faults, func(f Fault) bool { return f.Name == "holder-redis" })
}

// How operations choose their row.
const (
	Uniform = "uniform"
	// Zipf makes row 1 the most popular and row k about k^1.1 times less so, as
	// the products of a shop are.
	Zipf = "zipf"
)

// zipfExponent is a usual value for popularity; it must be over 1.
const zipfExponent = 1.1

// Skews names the ways to choose a row.
func Skews() []string { return []string{Uniform, Zipf} }

// strategy performs one purchase of the row id.
type strategy func(ctx context.Context, w *Workload, op *workloads.Op, id int, rnd *rand.Rand) workloads.Outcome

func strategies() map[string]strategy {
	return map[string]strategy{
		"none":        readThenWrite,
		"atomic":      atomic,
		"pessimistic": pessimistic,
		"optimistic":  optimistic,
		"redis-spin":  redisSpin,
	}
}

// Strategies names the strategies, in the order in which a reader should meet
// them.
func Strategies() []string {
	return []string{"none", "atomic", "pessimistic", "optimistic", "redis-spin"}
}

// Workload is the sale. It implements workloads.Workload.
type Workload struct {
	pool  *workloads.Pool
	redis *redis.Client
	nonce string // sets this run's tokens apart from those of others
	o     Options
	buy   strategy
	// What the faults add: to each operation that holds its row, and beside it.
	steps        []step
	intruders    []intruder
	sellsNothing bool
}

// New makes the workload on a pool whose connections are in the schema to work
// in, and on a client of Redis, which may be nil unless the strategy needs it.
// It fails if there is no such strategy.
func New(pool *workloads.Pool, client *redis.Client, o Options) (*Workload, error) {
	buy, ok := strategies()[o.Strategy]
	if !ok {
		return nil, fmt.Errorf("there is no strategy %q; there are: %s", o.Strategy, strings.Join(Strategies(), ", "))
	}
	if o.NeedsRedis() && client == nil {
		return nil, fmt.Errorf("strategy %s needs a Redis server", o.Strategy)
	}
	if err := fits(o); err != nil {
		return nil, err
	}
	w := &Workload{pool: pool, redis: client, nonce: crand.Text(), o: o, buy: buy}
	for _, f := range o.Faults {
		faults()[f.Name](w, f)
	}
	return w, nil
}

const createTable = `CREATE TABLE ` + Table + ` (
	id BIGINT NOT NULL PRIMARY KEY,
	quantity BIGINT NOT NULL,
	version BIGINT NOT NULL DEFAULT 0
) ENGINE=InnoDB`

// insertRows is how many rows one INSERT of Setup carries.
const insertRows = 1000

// Setup makes the table new and fills it, and removes the locks that a run
// before may have left in Redis.
func (w *Workload) Setup(ctx context.Context) error {
	if w.redis != nil {
		if err := Clean(ctx, w.redis); err != nil {
			return err
		}
	}
	db := w.pool.DB
	if _, err := db.ExecContext(ctx, "DROP TABLE IF EXISTS "+Table); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if _, err := db.ExecContext(ctx, createTable); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	for first := 1; first <= w.o.Keys; first += insertRows {
		var q strings.Builder
		q.WriteString("INSERT INTO " + Table + " (id, quantity) VALUES ")
		for id := first; id < first+insertRows && id <= w.o.Keys; id++ {
			if id > first {
				q.WriteByte(',')
			}
			fmt.Fprintf(&q, "(%d,%d)", id, w.o.Stock)
		}
		if _, err := db.ExecContext(ctx, q.String()); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
	}
	return nil
}

// Clean removes the locks of this workload from Redis, and no other keys.
func Clean(ctx context.Context, client *redis.Client) error {
	keys := client.Scan(ctx, 0, lockPrefix+"*", cleanBatch).Iterator()
	for keys.Next(ctx) {
		if err := client.Del(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("lock: redis: %w", err)
		}
	}
	if err := keys.Err(); err != nil {
		return fmt.Errorf("lock: redis: %w", err)
	}
	return nil
}

// cleanBatch is how many keys Redis looks at in one step.
const cleanBatch = 1000

// lostPause is how long an operation that lost its connection waits: without a
// server, workers would only measure how fast they fail.
const lostPause = 50 * time.Millisecond

// Do buys one unit of a row chosen by rnd.
func (w *Workload) Do(ctx context.Context, op *workloads.Op, rnd *rand.Rand) workloads.Outcome {
	outcome := w.buy(ctx, w, op, w.choose(rnd), rnd)
	if outcome == ConnectionLost || outcome == RedisLost {
		op.Enter(workloads.Backoff)
		workloads.Sleep(ctx, lostPause)
	}
	return outcome
}

func (w *Workload) choose(rnd *rand.Rand) int {
	if w.o.Skew == Zipf {
		return 1 + int(rand.NewZipf(rnd, zipfExponent, 1, uint64(w.o.Keys-1)).Uint64())
	}
	return 1 + rnd.IntN(w.o.Keys)
}

// executor is what a statement runs on: a connection or a transaction.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// work is what takes the time between reading and writing.
func (w *Workload) work(ctx context.Context, op *workloads.Op, on executor) error {
	for _, s := range w.steps {
		if err := s(ctx, op); err != nil {
			return err
		}
	}
	if w.o.Hold <= 0 {
		return nil
	}
	op.Enter(workloads.Statement)
	_, err := on.ExecContext(ctx, "DO SLEEP(?)", w.o.Hold.Seconds())
	op.Enter(workloads.App)
	return err
}

// Check tells what is wrong with the options.
func (o Options) Check() error { return fits(o) }

// Books are what the database holds against what was sold.
type Books struct {
	Left     int64 // units in all rows
	Oversold int64 // units below zero
}

// Audit reads the books. Nothing may run meanwhile.
func (w *Workload) Audit(ctx context.Context) (Books, error) {
	var b Books
	var left, oversold sql.NullInt64
	const q = `SELECT SUM(quantity), SUM(GREATEST(-quantity, 0)) FROM ` + Table
	if err := w.pool.DB.QueryRowContext(ctx, q).Scan(&left, &oversold); err != nil {
		return b, fmt.Errorf("lock: audit: %w", err)
	}
	return Books{Left: left.Int64, Oversold: oversold.Int64}, nil
}

// Sells tells whether a successful operation takes a unit: if not, there are no
// books to compare.
func (w *Workload) Sells() bool { return !w.sellsNothing }

// Initial is the number of units that Setup puts into all rows together.
func (w *Workload) Initial() int64 { return int64(w.o.Keys) * w.o.Stock }

func row(id int) workloads.Resource { return workloads.Row(Table, strconv.Itoa(id)) }
