package dialect

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// TakeChanges implements [Publish].TakeChanges for databases that read changes by one scan. It reads by seq,
// the primary key, and without locks. which follows the name of the table: hints, and a WHERE that limits the
// seqs. identity returns an expression for a key column that has different values for different keys.
func TakeChanges(ctx context.Context, tx Querier, s Spelling, f *Feed, which string, limit int,
	identity func(Column, string) string) ([]Change, error) {
	b := NewBuilder(s)
	query := "SELECT " + ChangeColumns(s, f, identity) + " FROM " + Qualified(s, f.Changes()) + which +
		" ORDER BY seq LIMIT " + b.Arg(limit)
	return ReadChanges(ctx, tx, f, query, b.Args())
}

// ChangeColumns returns the columns that ReadChanges scans.
func ChangeColumns(s Spelling, f *Feed, identity func(Column, string) string) string {
	key := make([]string, len(f.Key))
	for i, c := range f.Key {
		key[i] = identity(c, s.Quote(c.Stored))
	}
	return "seq, kind, " + strings.Join(key, ", ")
}

// ReadChanges runs a query for ChangeColumns.
func ReadChanges(ctx context.Context, tx Querier, f *Feed, query string, args []any) ([]Change, error) {
	return QueryAll(ctx, tx, query, args, func(rows Rows) (Change, error) {
		c := Change{Key: make([]any, len(f.Key))}
		dest := []any{&c.Seq, &c.Kind}
		for i := range c.Key {
			dest = append(dest, &c.Key[i])
		}
		return c, rows.Scan(dest...)
	})
}

// HasChanges implements [Publish].HasChanges by the query of FirstChange.
func HasChanges(ctx context.Context, q Querier, d Dialect, f *Feed, among Seqs) (bool, error) {
	var seq int64
	err := QueryRow(ctx, q, FirstChange(d, f, among), nil, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// FirstChange returns a query that answers a row if a change waits among these seqs. It answers the lowest seq
// of each range that [Publish].Which gives. If rows hold their positions, a row that waits for one counts as a
// change, with seq 0.
func FirstChange(d Dialect, f *Feed, among Seqs) string {
	var queries []string
	for i, which := range d.ScanRanges("seq", among) {
		queries = append(queries, "SELECT seq FROM (SELECT seq FROM "+Qualified(d, f.Changes())+which+
			" ORDER BY seq LIMIT 1) c"+strconv.Itoa(i))
	}
	first := strings.Join(queries, " UNION ALL ")
	if !f.InRows() {
		return first
	}
	return first + " UNION ALL SELECT 0 FROM (SELECT " + PositionColumn + " FROM " +
		Qualified(d, f.Source) + " WHERE " + PositionColumn + " IS NULL LIMIT 1) t"
}

// Assignments are the assignments of one statement, at least one. Their positions are consecutive, so only Base
// is sent to the database. Shards and kinds are sent only if some key needs them.
type Assignments struct {
	List       []Assignment
	Base       int64 // the position below the first one
	OtherKinds bool  // at least one kind is not [Changed]
	Triples    bool  // shards and kinds are sent together with the seqs
}

// Assigned finds out what a statement for these assignments has to send. There must be at least one.
func Assigned(f *Feed, as []Assignment) *Assignments {
	otherKinds := slices.ContainsFunc(as, func(a Assignment) bool { return a.Kind != Changed })
	return &Assignments{List: as, Base: as[0].Position - 1, OtherKinds: otherKinds, Triples: otherKinds || f.Sharded()}
}

// Seqs returns the seqs of the changes, in the order of the list, which is ascending.
func (as *Assignments) Seqs() []int64 {
	seqs := make([]int64, len(as.List))
	for i, a := range as.List {
		seqs[i] = a.Seq
	}
	return seqs
}

// JSON returns a list of seqs or, with Triples, of lists [seq, shard, kind].
func (as *Assignments) JSON() string {
	return list(as.List, func(b []byte, a Assignment) []byte {
		if !as.Triples {
			return strconv.AppendInt(b, a.Seq, 10)
		}
		b = strconv.AppendInt(append(b, '['), a.Seq, 10)
		b = strconv.AppendInt(append(b, ','), int64(a.Shard), 10)
		return append(strconv.AppendInt(append(b, ','), int64(a.Kind), 10), ']')
	})
}

// Upserted holds what an upsert writes for an assigned key. Position, Hidden and PublishedAt are expressions
// over the assignment (alias j) and the key's former row (alias old). They use old only if there are OtherKinds. Set
// is the SET clause for databases with ON CONFLICT: it names the former row p and the new one excluded.
type Upserted struct{ Position, Hidden, PublishedAt, Set string }

// Upsert returns what is written for each key. position and publishedAt are expressions. Without OtherKinds, a
// hidden key keeps its position and stays hidden. The conflicting row tells that it is hidden, so no lookup for
// each key is needed.
func (as *Assignments) Upsert(position, publishedAt string) Upserted {
	if !as.OtherKinds {
		stays := func(column string) string {
			return column + " = CASE WHEN p.hidden = 1 THEN p." + column + " ELSE excluded." + column + " END"
		}
		return Upserted{position, "0", publishedAt, stays("feed_sync_id") + ", " + stays("published_at") +
			", deleted = excluded.deleted"}
	}
	return Upserted{kept("old", "j.kind", "feed_sync_id", position), hidden("j.kind", "COALESCE(old.hidden, 0)"),
		kept("old", "j.kind", "published_at", publishedAt),
		"feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at, deleted = excluded.deleted, " +
			"hidden = excluded.hidden"}
}

// UpsertOneKind is Upsert for changes that all have the same kind, which is an expression. It reads the former
// state from the conflicting row.
func UpsertOneKind(kind, position, publishedAt string) Upserted {
	return Upserted{position, hidden(kind, "0"), publishedAt,
		"feed_sync_id = " + kept("p", kind, "feed_sync_id", "excluded.feed_sync_id") + ", published_at = " +
			kept("p", kind, "published_at", "excluded.published_at") +
			", deleted = excluded.deleted, hidden = " + hidden(kind, "p.hidden")}
}

// kept returns an expression for a column of a key. A hidden key keeps the column's former value if its change
// has kind [Changed].
func kept(was, kind, column, otherwise string) string {
	return "CASE WHEN " + was + ".hidden = 1 AND " + kind + " = 0 THEN " + was + "." + column + " ELSE " +
		otherwise + " END"
}

// hidden returns an expression that tells whether the key is hidden after a change of this kind: 1 or 0.
func hidden(kind, was string) string {
	return "CASE " + kind + " WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE " + was + " END"
}

// Advance returns the statement that sets a feed's sequence to head, an expression, in the term of seq. It affects no
// row if the version is another: an in-house publisher that does not lock the row has advanced the sequence. It also
// affects no row if the generation is another: the feed was dropped and another one was added under its name.
func Advance(s Spelling, b *Builder, f *Feed, seq Sequence, generation int64, head string) string {
	return "UPDATE " + Qualified(s, f.Names.Table("sequences")) +
		" SET value = " + head + ", term = " + b.Arg(int64(seq.Term)) + ", version = version + 1, updated_at = " +
		b.Arg(max(seq.Now, seq.UpdatedAt)) +
		" WHERE name = " + b.Arg(f.Name) + " AND version = " + b.Arg(seq.Version) +
		" AND EXISTS (SELECT 1 FROM " + Qualified(s, f.Names.Table("feeds")) + " WHERE name = " + b.Arg(f.Name) +
		" AND generation = " + b.Arg(generation) + ")"
}

// HasPosition returns the condition that the key of a change (alias c) is in the feed's table of positions.
func HasPosition(s Spelling, f *Feed, hint string) string {
	return "EXISTS (SELECT 1 FROM " + Qualified(s, f.Positions()) + " old" + hint + " WHERE " +
		StoredJoin(s, f, "old", "c") + ")"
}
