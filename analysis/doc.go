// Package analysis explains a record: where the operations' time went, what
// made them wait, and what a change would bring. It works from the record
// alone, with no server up.
//
// # The method
//
// Slices. The measured phase is cut into slices at the readings' own times, a
// fortieth of it each but 10 ms to 1 s. Counters are only ever subtracted;
// where one fell, the interval counts as nothing and is named in the warnings.
//
// Budget. Seconds of operations per second are the mean number of operations in
// a stage (Little's law): the unit that application, pool, MySQL and Redis
// share. The client times whole stages; statement and commit are split with
// what the server counted between the same two drained readings: row-lock and
// metadata-lock waits, execution, the server's own run-queue delay. What the
// client saw beyond the server's timers is the Go scheduler's delay (wake-ups
// times the mean of /sched/latencies) and the network (round trips times the
// idle ping); the rest is called unexplained.
//
// Row locks. MySQL's SUM_LOCK_TIME is the time of row-lock waits. MariaDB's has
// none of it: there Innodb_row_lock_time misses up to a millisecond a wait, so
// that row-lock time is a point between bounds, and everything that depends on
// it is computed at the point and at both ends.
//
// Metadata and named locks. The wait instrument times both; where it is not
// known to be on, MariaDB's SUM_LOCK_TIME holds the metadata locks, unless the
// slow log goes to a table. They are in use while somebody waits for them, in
// the samples of metadata_locks, by whoever has them.
//
// Without statement digests (performance_schema off, or no rights) row-lock
// waits are known from the status, and the rest of the time inside statements
// is unexplained.
//
// Application locks. Their waiting is the client's: asking, round trips
// included, and backing off between attempts. How long a lock is free while
// somebody waits, and leases that end under their holders, tell the causes
// apart.
//
// Blame. Waiting for a resource moves to the resource that its holders wait
// for, if that one has the higher net utilisation; see package waits.
//
// Verdict. The first rule that holds, in this order: a resource whose holders
// wait for the same resource (nested_acquire); too little data; attempts after a
// lost race take half of the time (conflict_retry); nothing is
// saturated, where the work itself may be the cause (network, commit, garbage
// collector, one statement) or nothing is; the cause with the largest share of
// all waiting, unless too much is unexplained or its interval meets another's.
// Shares are ratios of sums over slices; their intervals are delete-one-slice
// jackknife intervals, and the printed one is the envelope over the bounds.
//
// Relief. After a change the throughput is at most the smallest of each
// resource's capacity over what a success demands of it, and of the workers'
// cycle without any waiting; the present bottleneck's bound is scaled to what
// was measured (asymptotic bounds: Denning and Buzen 1978). Processors are a
// bound only if they are the present bottleneck, for demands are not constant
// on a contended CPU; where they would come next the prediction is "at most".
// Nothing is predicted for conflict_retry: what a success demands depends on how
// many race.
//
// # Its limits
//
// A client sees a row held only from the return of the locking statement, so
// that the row's utilisation is an interval. Where that decides, as with two
// connections on one hot row, the verdict is too_close and both causes are
// named.
//
// Note: three rules were changed on evidence. Waiting moves to the processors
// for the use by others only if holders wait for them three quarters of their
// hold, not half: beside busy neighbours the holders of a real hot row were
// seen at 64 %, while spreading the row was worth more than the neighbours'
// end. It moves there for our own use only from 80 % of the processors on: a
// machine kept busy by others made half of it look like the bottleneck. And
// MariaDB's row-lock time is spread over statements by what exceeds the common
// cost of an execution instead of in proportion to their timers, which gave an
// UPDATE of an already locked row a wait of 92 % of its time.
//
// Note: on eight equally hot rows behind ten connections the truth is a tie
// (simulated: with no limit on the pool the throughput is 1.56 times as much,
// with the rows spread 1.58 times; the rows' U and the pool's U' are both 0.62).
// The verdict there is too_close, and names both.
package analysis
