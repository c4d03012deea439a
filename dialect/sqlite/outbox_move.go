package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// ByShard implements [dialect.Moving]. SQLite needs no hint: only one index has the order of the query.
func (Dialect) ByShard(dialect.Seqs) (hint, condition string) { return "", "" }

// HasRecords implements [dialect.Moving]. It takes no write lock.
func (d Dialect) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	shards ...int) (bool, error) {
	var shard int
	err := dialect.QueryRow(ctx, q, dialect.FirstRecords(d, f, among, shards...), nil, &shard)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Bounded implements [dialect.Moving]. There is only one lock, which the transaction has already.
func (Dialect) Bounded(_ context.Context, _ dialect.Querier, _ time.Duration, fn func() error) error {
	return fn()
}

// PlaceRecords implements [dialect.Moving] by one statement. The keys stay in the database. It processes one
// row after the other, so the last record of a key decides. A ULID that exists already is an error, because a
// record would be lost. CROSS JOIN makes SQLite join in this order: a place, in the order of the list, and its
// record by rowid. Without the WHERE, SQLite would parse ON CONFLICT as the ON of a join.
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	moved []dialect.Moved) (kept int64, err error) {
	n, err := tx.Exec(ctx, "INSERT INTO "+dialect.Qualified(d, f.Placed())+" (shard, ulid, "+
		strings.Join(dialect.StoredRefs(d, f, ""), ", ")+`)
SELECT o.shard, unhex(j.ulid), `+strings.Join(dialect.StoredRefs(d, f, "o"), ", ")+`
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS ulid FROM json_each(?)) j
CROSS JOIN `+dialect.Qualified(d, f.Records())+` o ON o.order_sequence = j.seq
WHERE o.shard = ? ON CONFLICT (`+strings.Join(dialect.StoredRefs(d, f, ""), ", ")+
		`) DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > ulid`,
		dialect.PlaceList(moved), shard)
	return int64(len(moved)) - n, err
}

// DeleteRecords implements [dialect.Moving]. It deletes by rowid. The statement contains the seqs, because
// SQLite would read the whole outbox for a list in a subquery. A range would include records of other shards.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE FROM "+dialect.Qualified(d, f.Records())+" WHERE order_sequence IN ("+
		strings.Trim(dialect.SeqList(seqs), "[]")+")")
}

// DeletePlaces implements [dialect.Moving]. It needs no hint: the primary key of the table is (shard, ulid).
func (d Dialect) DeletePlaces(f *dialect.Feed) string {
	return "DELETE FROM " + dialect.Qualified(d, f.Placed()) + " AS g"
}
