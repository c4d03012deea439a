package postgres

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// SeqsGrow: an identity's sequence is not taken back by a rollback, nor by a crash below what
// was committed.
func (Dialect) SeqsGrow() bool { return true }

// Which looks at each range by itself.
func (Dialect) Which(column string, among dialect.Seqs) []string {
	return among.Ranges(column, dialect.Digits)
}

// Writers hold a lock on the table of changes or the outbox, which an INSERT has before it draws its first
// seq, and behind the first row a number of their own, which is locked until the end. The number alone
// would come too late, and the lock may go too early: one taken within a cursor goes when that fails, under a savepoint
// too that is younger than the cursor's rows. Both go after the commit is visible. Everybody may see pg_locks, and it misses
// none of them: a lock on the short path is listed there, and moves to the long one in one direction only.
//
// A prepared transaction keeps the name that its session had for it; after a restart it has
// one by its number. Of a sequence that is cached sessions have numbers without a lock.
func (d Dialect) Writers(ctx context.Context, q dialect.Querier, f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	table, column := f.Waiting()
	_, err = dialect.QueryAll(ctx, q, `SELECT s.plain, COALESCE(l.virtualtransaction, ''), COALESCE(l.pid IS NULL AND l.virtualtransaction LIKE '-1/%', false)
FROM (SELECT COALESCE((SELECT seqcache = 1 AND seqincrement > 0 AND NOT seqcycle FROM pg_sequence
  WHERE seqrelid = pg_get_serial_sequence($1::text, $2::text)::regclass), false) AS plain) s
LEFT JOIN (SELECT DISTINCT w.virtualtransaction, w.pid FROM pg_locks w CROSS JOIN (SELECT oid FROM pg_database WHERE datname = current_database()) here
  WHERE w.granted AND w.locktype = 'relation' AND w.mode = 'RowExclusiveLock' AND w.relation = $1::text::regclass AND w.database = here.oid
  OR w.granted AND w.locktype = 'transactionid' AND w.mode = 'ExclusiveLock' AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.pid = w.pid AND a.datid <> here.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_prepared_xacts p WHERE p.transaction = w.transactionid AND p.database <> current_database())) l ON true`, []any{dialect.Qualified(d, table), column},
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
