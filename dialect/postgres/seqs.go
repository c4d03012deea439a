package postgres

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// SeqsGrow: an identity's sequence is not taken back by a rollback, nor by a crash below what
// was committed.
func (Dialect) SeqsGrow() bool { return true }

// Which looks at each range by itself.
func (Dialect) Which(among dialect.Seqs) []string { return among.Ranges(dialect.Digits) }

// Writers hold a lock on the table of changes, which an INSERT has before it draws its first
// seq, and which goes with the end of the transaction, or with the savepoint whose rollback takes
// the rows, too. It goes after the commit is visible. Everybody may see pg_locks, and it misses
// none of them: a lock on the short path is listed there, and moves to the long one in one direction only.
//
// A prepared transaction keeps the name that its session had for it; after a restart it has
// one by its number. Of a sequence that is cached sessions have numbers without a lock.
func (d Dialect) Writers(ctx context.Context, q dialect.Querier, f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	_, err = dialect.QueryAll(ctx, q, `SELECT s.plain, COALESCE(l.virtualtransaction, ''), COALESCE(l.pid IS NULL AND l.virtualtransaction LIKE '-1/%', false)
FROM (SELECT COALESCE((SELECT seqcache = 1 AND seqincrement > 0 AND NOT seqcycle FROM pg_sequence
  WHERE seqrelid = pg_get_serial_sequence($1::text, 'seq')::regclass), false) AS plain) s
LEFT JOIN pg_locks l ON l.locktype = 'relation' AND l.granted AND l.mode = 'RowExclusiveLock' AND l.relation = $1::text::regclass
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`, []any{dialect.Qualified(d, f.Changes())},
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
