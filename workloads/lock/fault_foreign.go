package lock

import (
	"context"
	"database/sql"
	"time"
)

// longTransaction lets a stranger hold row 1 in a transaction that does nothing
// for long: for 1 of 3 s, or 3 of 4.
//
// The row serves nobody meanwhile, so that the load's throughput is that of the
// rest of the time (utilisation law), whatever its own hold. The cause is the
// stranger: row_lock/long_transaction, holder foreign.
func longTransaction(w *Workload, f Fault) {
	hold, pause := of(f, "1", "3"), of(f, 2*time.Second, time.Second)
	w.intruders = append(w.intruders, func(ctx context.Context, db *sql.DB, table string) error {
		return repeat(ctx, db, pause, "BEGIN", "UPDATE "+table+" SET quantity = quantity WHERE id = 1", "DO SLEEP("+hold+")", "ROLLBACK")
	})
}

// metadataLock lets a stranger lock the whole table: for 0.5 of 1 s, or 2 of 2.5.
//
// Each statement waits for the table's metadata lock before it comes to any row:
// database/metadata_lock.
func metadataLock(w *Workload, f Fault) {
	hold := of(f, "0.5", "2")
	w.intruders = append(w.intruders, func(ctx context.Context, db *sql.DB, table string) error {
		return repeat(ctx, db, 500*time.Millisecond, "LOCK TABLES "+table+" WRITE", "DO SLEEP("+hold+")", "UNLOCK TABLES")
	})
}
