package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// ByShard is not needed: nothing else has the order that is asked for.
func (Dialect) ByShard(dialect.Seqs) (hint, condition string) { return "", "" }

// HasRecords reads without the write lock.
func (d Dialect) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs, shards ...int) (bool, error) {
	var shard int
	err := dialect.QueryRow(ctx, q, dialect.FirstRecords(d, f, among, shards...), nil, &shard)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Bounded has nothing to do: there is one lock, and the transaction has it.
func (Dialect) Bounded(_ context.Context, _ dialect.Querier, _ time.Duration, fn func() error) error {
	return fn()
}

// PlaceRecords is one statement; the keys stay in the database. It goes from row to row, so that
// the last record of a key has the last word. A ULID that is there already is an error: its
// record would be lost. CROSS JOIN keeps SQLite from any other order than: a place, in that of the
// list, its record by rowid. (WHERE tells ON CONFLICT from a join's ON.)
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, moved []dialect.Moved) (kept int64, err error) {
	n, err := tx.Exec(ctx, "INSERT INTO "+dialect.Qualified(d, f.Placed())+" (shard, ulid, "+strings.Join(dialect.StoredRefs(d, f, ""), ", ")+`)
SELECT o.shard, unhex(j.ulid), `+strings.Join(dialect.StoredRefs(d, f, "o"), ", ")+`
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS ulid FROM json_each(?)) j
CROSS JOIN `+dialect.Qualified(d, f.Records())+` o ON o.order_sequence = j.seq
WHERE o.shard = ? ON CONFLICT (`+strings.Join(dialect.StoredRefs(d, f, ""), ", ")+`) DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > ulid`, dialect.PlaceList(moved), shard)
	return int64(len(moved)) - n, err
}

// DeleteRecords deletes by rowid, with the seqs in the statement: a list that is a subquery would
// have the outbox read whole. Other shards' records lie between them.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE FROM "+dialect.Qualified(d, f.Records())+" WHERE order_sequence IN ("+strings.Trim(dialect.SeqList(seqs), "[]")+")")
}

// DeletePlaces needs no hint: the table is its index.
func (d Dialect) DeletePlaces(f *dialect.Feed) string {
	return "DELETE FROM " + dialect.Qualified(d, f.Placed()) + " AS g"
}
