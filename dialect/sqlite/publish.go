package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// TxOptions are the defaults: SQLite's transactions are serializable. Reading ones
// are marked, so that drivers that begin with the write lock leave it alone.
func (Dialect) TxOptions(p dialect.Purpose) *sql.TxOptions {
	return &sql.TxOptions{ReadOnly: p == dialect.ForRead || p == dialect.ForCheck}
}

// Settings take the write lock with the first statement, whatever the driver's
// BEGIN was: a transaction that reads first and writes later fails at once with
// SQLITE_BUSY when another writer came between, busy_timeout or not.
func (d Dialect) Settings(p dialect.Purpose, n dialect.Names) []string {
	if p == dialect.ForRead || p == dialect.ForCheck {
		return nil
	}
	return []string{"UPDATE " + dialect.Qualified(d, n.Table("sequences")) + " SET version = version WHERE 0"}
}

// Durability wants synchronous=FULL: with NORMAL a WAL database loses the newest
// commits in a power cut.
func (Dialect) Durability(ctx context.Context, q dialect.Querier) error {
	var level int
	if err := dialect.QueryRow(ctx, q, "PRAGMA synchronous", nil, &level); err != nil {
		return err
	}
	if level < 2 {
		return fmt.Errorf("PRAGMA synchronous is %d, and must be FULL (2) or EXTRA (3) on every connection", level)
	}
	return nil
}

// HasChanges reads without the write lock.
func (d Dialect) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed) (bool, error) {
	return dialect.HasChanges(ctx, q, d, f)
}

// LockSequence reads the row; the transaction has the database's only write lock.
func (d Dialect) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	err := dialect.QueryRow(ctx, tx, "SELECT value, version, updated_at, "+d.Now()+" FROM "+
		dialect.Qualified(d, f.Names.Table("sequences"))+" WHERE name = ?", []any{f.Name}, &s.Value, &s.Version, &s.UpdatedAt, &s.Now)
	return s, err
}

// TakeChanges reads the oldest changes.
func (d Dialect) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, limit int) ([]dialect.Change, error) {
	return dialect.TakeChanges(ctx, tx, d, f, limit, d.Value)
}

// AssignPositions upserts in one statement. CROSS JOIN keeps SQLite from any other
// order than: an assignment, its change by rowid, the row and the old position each
// by key. The conflict target is the key alone: a clash of positions is an error.
func (d Dialect) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment, publishedAt int64) error {
	assigned, positions := dialect.Assigned(f, as), dialect.Qualified(d, f.Positions())
	stored, row := dialect.StoredRefs(d, f, ""), dialect.Ref(d, "t", f.Key[0].Name)
	var sets []string // the spelling; not shard and bucket, which a key keeps
	for i, c := range f.Key {
		if !c.Exact {
			sets = append(sets, stored[i]+" = excluded."+stored[i])
		}
	}
	// key is the place in the list, from 0.
	list, shard := "value AS seq", "0"
	if assigned.Triples {
		list, shard = "value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind", "j.shard"
	}
	u := assigned.Upsert(strconv.FormatInt(assigned.Base+1, 10)+" + j.place", strconv.FormatInt(publishedAt, 10))
	join, known := "", dialect.Known(d, f, "")
	if assigned.Wish {
		join = "\nLEFT JOIN " + positions + " old ON " + dialect.StoredJoin(d, f, "old", "c")
		known = dialect.Ref(d, "old", f.Key[0].Stored) + " IS NOT NULL"
	}
	query := "INSERT INTO " + positions + " AS p (" + strings.Join(stored, ", ") + ", feed_sync_id, shard, bucket, deleted, hidden, published_at)\nSELECT " +
		strings.Join(dialect.StoredRefs(d, f, "c"), ", ") + ", " + u.Position + ", " + shard + ", " + f.Bucket(shard, "/") + ", " + row + " IS NULL, " + u.Hidden + ", " + u.PublishedAt + `
FROM (SELECT key AS place, ` + list + ` FROM json_each(?)) j
CROSS JOIN ` + dialect.Qualified(d, f.Changes()) + ` c ON c.seq = j.seq
LEFT JOIN ` + dialect.Qualified(d, f.Source) + " t ON " + dialect.SourceJoin(d, f, "t", "c") + join + `
WHERE ` + f.Seen(row, known) + `
ORDER BY j.place
ON CONFLICT (` + strings.Join(stored, ", ") + ") DO UPDATE SET " + strings.Join(append(sets, u.Set), ", ")
	_, err := tx.Exec(ctx, query, assigned.JSON())
	return err
}

// DeleteChanges may delete by range: the changes were taken in seq order from the
// lowest, and while this transaction holds the only write lock none is invisible.
func (d Dialect) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE FROM "+dialect.Qualified(d, f.Changes())+" WHERE seq BETWEEN ? AND ?", seqs[0], seqs[len(seqs)-1])
}
