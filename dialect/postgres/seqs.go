package postgres

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// SeqsGrow implements [dialect.Publish]. A rollback does not reset an identity's sequence. A crash never resets
// it below a number that was committed.
func (Dialect) SeqsGrow() bool { return true }

// ScanRanges implements [dialect.Publish] with one query for each range.
func (Dialect) ScanRanges(column string, among dialect.Seqs) []string {
	return among.Ranges(column, dialect.Digits)
}

// Writers implements [dialect.Publish]. It returns the transactions that hold a writer's lock on the table of
// changes or the outbox, and those that have a transaction id. An INSERT takes the table lock before it draws
// its first seq, and gets a transaction id with its first row. The id also is a lock until the transaction
// ends.
//
// Neither would be enough. The id comes after the draw. The table lock can go too early: a lock that was taken
// in a cursor is released if the cursor fails under a savepoint that is younger than the cursor's rows. Both
// are held until the commit is visible.
//
// Every role may read pg_locks, and it misses no such lock: locks on the fast path are listed, and can only
// move to the main lock table, which is read afterwards.
//
// A prepared transaction keeps the name that it had in its session. After a restart its name is made of its id.
// With a cached sequence, sessions would have numbers without a lock, so told is false.
func (d Dialect) Writers(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	table, column := f.Waiting()
	_, err = dialect.QueryAll(ctx, q, `SELECT s.plain, COALESCE(l.virtualtransaction, ''), COALESCE(l.pid IS NULL `+
		`AND l.virtualtransaction LIKE '-1/%', false)
FROM (SELECT COALESCE((SELECT seqcache = 1 AND seqincrement > 0 AND NOT seqcycle FROM pg_sequence
  WHERE seqrelid = pg_get_serial_sequence($1::text, $2::text)::regclass), false) AS plain) s
LEFT JOIN (SELECT DISTINCT w.virtualtransaction, w.pid FROM pg_locks w CROSS JOIN (SELECT oid FROM pg_database `+
		`WHERE datname = current_database()) here
  WHERE w.granted AND w.locktype = 'relation' AND w.mode = 'RowExclusiveLock' AND w.relation = $1::text::regclass `+
		`AND w.database = here.oid
  OR w.granted AND w.locktype = 'transactionid' AND w.mode = 'ExclusiveLock' AND NOT EXISTS (SELECT 1 `+
		`FROM pg_stat_activity a WHERE a.pid = w.pid AND a.datid <> here.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_prepared_xacts p WHERE p.transaction = w.transactionid `+
		`AND p.database <> current_database())) l ON true`, []any{dialect.Qualified(d, table), column},
		func(rows dialect.Rows) (struct{}, error) {
			var w dialect.Writer
			err := rows.Scan(&told, &w.Transaction, &w.Orphan)
			if w.Session = w.Transaction; w.Session != "" {
				open = append(open, w)
			}
			return struct{}{}, err
		})
	return open, told, err
}
