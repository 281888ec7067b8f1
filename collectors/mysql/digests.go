package mysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"chokepoint/collectors/metric"
	"chokepoint/collectors/record"
)

// Names of the digest metrics.
const (
	DigestsSource      = "mysql.digests"
	DigestCount        = "mysql.digest.count"
	DigestTimer        = "mysql.digest.timer"
	DigestLock         = "mysql.digest.lock"
	DigestErrors       = "mysql.digest.errors"
	DigestRowsAffected = "mysql.digest.rows_affected"
	DigestRowsSent     = "mysql.digest.rows_sent"
	DigestRowsExamined = "mysql.digest.rows_examined"
	DigestMax          = "mysql.digest.max_timer"
	// Overflow stands for the digest of the row into which the server adds
	// statements once its digest table is full.
	Overflow = "overflow"
)

// picoseconds is the unit of performance_schema's timers.
const picoseconds = 1e-12

// wrap is where a BIGINT UNSIGNED of picoseconds starts again: 213 days.
const wrap = (1 << 64) * picoseconds

// The overflow row has neither schema nor digest, and a filter on the schema
// alone would drop it.
const digestsQuery = `SELECT IFNULL(DIGEST, 'overflow'), IFNULL(DIGEST_TEXT, ''), COUNT_STAR, SUM_TIMER_WAIT, SUM_LOCK_TIME, MAX_TIMER_WAIT,
	SUM_ERRORS, SUM_ROWS_AFFECTED, SUM_ROWS_SENT, SUM_ROWS_EXAMINED
FROM performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = ? OR DIGEST IS NULL`

type digestRow struct {
	digest, text                     string
	count, timer, lock, max          uint64
	errors, affected, sent, examined uint64
}

// digests reads the statement digests of one schema. It remembers which texts
// it has told, and nothing of the values.
type digests struct {
	server *Server
	schema string
	onText func(Text)

	mu    sync.Mutex
	seen  map[string]bool
	limit int // digestLimit, 0 before the first reading
}

// Text is the text of one digest.
type Text struct {
	Digest, Text string
	// Cut tells that the text is as long as the server looks at: statements that
	// differ only behind it are counted as one.
	Cut bool
}

func (*digests) Name() string { return DigestsSource }

func (*digests) Metrics() []metric.Desc {
	labels := []string{"digest"}
	counter := func(name, unit, help string) metric.Desc {
		d := metric.Desc{Name: name, Unit: unit, Kind: metric.Counter, Labels: labels, Help: help}
		if unit == metric.Seconds {
			d.Wrap = wrap
		}
		return d
	}
	return []metric.Desc{
		counter(DigestCount, metric.One, "executions that have ended (COUNT_STAR)"),
		counter(DigestTimer, metric.Seconds, "time in the server (SUM_TIMER_WAIT)"),
		counter(DigestLock, metric.Seconds, "lock time as the server counts it: row locks on MySQL, table and metadata locks on MariaDB (SUM_LOCK_TIME)"),
		counter(DigestErrors, metric.One, "executions that failed (SUM_ERRORS)"),
		counter(DigestRowsAffected, metric.One, "rows changed (SUM_ROWS_AFFECTED)"),
		counter(DigestRowsSent, metric.One, "rows returned (SUM_ROWS_SENT)"),
		counter(DigestRowsExamined, metric.One, "rows looked at (SUM_ROWS_EXAMINED)"),
		{Name: DigestMax, Unit: metric.Seconds, Kind: metric.Gauge, Labels: labels, Help: "longest execution since the digest was first seen, before the run included (MAX_TIMER_WAIT)"},
	}
}

func (d *digests) Read(ctx context.Context, b *record.Batch) error {
	limit, err := d.textLimit(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", DigestsSource, err)
	}
	err = each(ctx, d.server.DB, digestsQuery, []any{d.schema}, func(scan func(...any) error) error {
		var r digestRow
		err := scan(&r.digest, &r.text, &r.count, &r.timer, &r.lock, &r.max, &r.errors, &r.affected, &r.sent, &r.examined)
		if err != nil {
			return err
		}
		d.tell(Text{r.digest, r.text, textCut(r.text, limit)})
		b.Add(float64(r.count), DigestCount, r.digest)
		b.Add(float64(r.timer)*picoseconds, DigestTimer, r.digest)
		b.Add(float64(r.lock)*picoseconds, DigestLock, r.digest)
		b.Add(float64(r.max)*picoseconds, DigestMax, r.digest)
		b.Add(float64(r.errors), DigestErrors, r.digest)
		b.Add(float64(r.affected), DigestRowsAffected, r.digest)
		b.Add(float64(r.sent), DigestRowsSent, r.digest)
		b.Add(float64(r.examined), DigestRowsExamined, r.digest)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", DigestsSource, err)
	}
	return nil
}

func (d *digests) tell(t Text) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.seen[t.Digest] {
		d.seen[t.Digest] = true
		d.onText(t)
	}
}

// textLimit asks the server once: both of its settings are fixed at its start.
func (d *digests) textLimit(ctx context.Context) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.limit > 0 {
		return d.limit, nil
	}
	vars, err := d.server.Variables(ctx)
	if err != nil {
		return 0, err
	}
	d.limit = digestLimit(vars)
	return d.limit, nil
}

// defaultDigestLength is that of both flavours, in bytes of tokens.
const defaultDigestLength = 1024

// digestLimit is how many bytes of tokens of a statement the server looks at.
func digestLimit(vars map[string]string) int {
	limit := defaultDigestLength
	for _, name := range []string{"max_digest_length", "performance_schema_max_digest_length"} {
		if n, err := strconv.Atoi(vars[name]); err == nil && n > 0 && (n < limit || name == "max_digest_length") {
			limit = n
		}
	}
	return limit
}

// longestToken is an identifier of 64 characters with its head: the token that
// did not fit was no longer, except for names beyond ASCII.
const longestToken = 4 + 64

// textCut tells whether a digest's text fills the room for tokens, so that it
// may have been cut; servers leave no mark of it. A token takes two bytes, an
// identifier two more and its name (sql_digest_storage of both flavours).
func textCut(text string, limit int) bool {
	bytes := 0
	for token := range strings.FieldsSeq(text) {
		bytes += 2
		if strings.HasPrefix(token, "`") {
			bytes += 2 + len(strings.Trim(token, "`"))
		}
	}
	return bytes > limit-longestToken
}
