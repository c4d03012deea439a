package dialect

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// TakeChanges is the statement behind [Publish]'s operation of that name: by seq,
// the primary key, and without locks. which follows the table's name, and says which seqs; identity is how a key column is
// read so that different keys have different values.
func TakeChanges(ctx context.Context, tx Querier, s Spelling, f *Feed, which string, limit int, identity func(Column, string) string) ([]Change, error) {
	b := NewBuilder(s)
	query := "SELECT " + ChangeColumns(s, f, identity) + " FROM " + Qualified(s, f.Changes()) + which + " ORDER BY seq LIMIT " + b.Arg(limit)
	return ReadChanges(ctx, tx, f, query, b.Args())
}

// ChangeColumns are what ReadChanges reads of the table of changes.
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

// HasChanges is the statement behind [Publish]'s operation of that name.
func HasChanges(ctx context.Context, q Querier, d Dialect, f *Feed, among Seqs) (bool, error) {
	var seq int64
	err := QueryRow(ctx, q, FirstChange(d, f, among), nil, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// FirstChange reads a change's seq, by the primary key: the lowest of each look among
// some seqs. Where rows hold their positions, a row that waits is a change, too.
func FirstChange(d Dialect, f *Feed, among Seqs) string {
	var looks []string
	for i, which := range d.Which("seq", among) {
		looks = append(looks, "SELECT seq FROM (SELECT seq FROM "+Qualified(d, f.Changes())+which+" ORDER BY seq LIMIT 1) c"+strconv.Itoa(i))
	}
	first := strings.Join(looks, " UNION ALL ")
	if !f.InRows() {
		return first
	}
	return first + " UNION ALL SELECT 0 FROM (SELECT " + PositionColumn + " FROM " +
		Qualified(d, f.Source) + " WHERE " + PositionColumn + " IS NULL LIMIT 1) t"
}

// Run is n consecutive numbers from First on.
type Run struct{ First, N int64 }

// Last is the last number of a run.
func (r Run) Last() int64 { return r.First + r.N - 1 }

// Runs are the runs of ascending numbers. Between the first and the last of a run there is no
// other number, so a range over it finds no change that somebody commits meanwhile.
func Runs(seqs []int64) (runs []Run) {
	for i, seq := range seqs {
		if i > 0 && seqs[i-1]+1 == seq {
			runs[len(runs)-1].N++
		} else {
			runs = append(runs, Run{seq, 1})
		}
	}
	return runs
}

// SeqList writes seqs as JSON.
func SeqList(seqs []int64) string {
	return list(seqs, func(b []byte, seq int64) []byte { return strconv.AppendInt(b, seq, 10) })
}

// Assignments are those of one statement, one at least, with consecutive positions: these need not
// travel to the database, and neither do shards and kinds where no key has any.
type Assignments struct {
	List    []Assignment
	Base    int64 // the position before the first
	Wish    bool  // some kind is not [Changed]
	Triples bool  // shards and kinds travel with the seqs
}

// Assigned looks at a feed's assignments.
func Assigned(f *Feed, as []Assignment) *Assignments {
	wish := slices.ContainsFunc(as, func(a Assignment) bool { return a.Kind != Changed })
	return &Assignments{List: as, Base: as[0].Position - 1, Wish: wish, Triples: wish || f.Sharded()}
}

// Seqs are those of the changes, ascending as these are.
func (as *Assignments) Seqs() []int64 {
	seqs := make([]int64, len(as.List))
	for i, a := range as.List {
		seqs[i] = a.Seq
	}
	return seqs
}

// JSON is a list of seqs; where Triples is set, of [seq, shard, kind].
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

func list[T any](of []T, element func([]byte, T) []byte) string {
	b := make([]byte, 0, 2+12*len(of))
	for i, x := range of {
		b = element(append(b, "[,"[min(i, 1)]), x)
	}
	if len(of) == 0 {
		b = append(b, '[')
	}
	return string(append(b, ']'))
}

// Upserted is what an upsert writes of an assigned key: expressions over the assignment, j, and
// the row that stood at its key before, old, which is needed only where there is a wish. Set is
// for databases that call the row in the way p and the new one excluded.
type Upserted struct{ Position, Hidden, PublishedAt, Set string }

// Upsert is what becomes of a key, of position and publishedAt, which are expressions. Without
// a wish a hidden key keeps its position and stays hidden, which the row in its way tells,
// and saves a look at the positions for each key.
func (as *Assignments) Upsert(position, publishedAt string) Upserted {
	if !as.Wish {
		stays := func(column string) string {
			return column + " = CASE WHEN p.hidden = 1 THEN p." + column + " ELSE excluded." + column + " END"
		}
		return Upserted{position, "0", publishedAt, stays("feed_sync_id") + ", " + stays("published_at") + ", deleted = excluded.deleted"}
	}
	return Upserted{kept("old", "j.kind", "feed_sync_id", position), hidden("j.kind", "COALESCE(old.hidden, 0)"), kept("old", "j.kind", "published_at", publishedAt),
		"feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at, deleted = excluded.deleted, hidden = excluded.hidden"}
}

// UpsertAlike is Upsert for keys of one kind, an expression: what stood there before the row
// in a key's way tells.
func UpsertAlike(kind, position, publishedAt string) Upserted {
	return Upserted{position, hidden(kind, "0"), publishedAt,
		"feed_sync_id = " + kept("p", kind, "feed_sync_id", "excluded.feed_sync_id") + ", published_at = " + kept("p", kind, "published_at", "excluded.published_at") +
			", deleted = excluded.deleted, hidden = " + hidden(kind, "p.hidden")}
}

// kept is a column of a key whose change has a kind: a hidden key's stays as it was, unless more
// than a change is asked for.
func kept(was, kind, column, otherwise string) string {
	return "CASE WHEN " + was + ".hidden = 1 AND " + kind + " = 0 THEN " + was + "." + column + " ELSE " + otherwise + " END"
}

// hidden is whether a key whose change has a kind is hidden.
func hidden(kind, was string) string {
	return "CASE " + kind + " WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE " + was + " END"
}

// Advance is the statement that moves a feed's sequence to head, an expression. The version is the
// optimistic lock of the original design: it tells of an in-house publisher that does not lock the
// row. The generation tells that the feed is still the one whose table and key were used, and not
// another that was added under its name meanwhile.
func Advance(s Spelling, b *Builder, f *Feed, seq Sequence, generation int64, head string) string {
	return "UPDATE " + Qualified(s, f.Names.Table("sequences")) +
		" SET value = " + head + ", version = version + 1, updated_at = " + b.Arg(max(seq.Now, seq.UpdatedAt)) +
		" WHERE name = " + b.Arg(f.Name) + " AND version = " + b.Arg(seq.Version) +
		" AND EXISTS (SELECT 1 FROM " + Qualified(s, f.Names.Table("feeds")) + " WHERE name = " + b.Arg(f.Name) + " AND generation = " + b.Arg(generation) + ")"
}

// Known is the condition that the key of a change, alias c, stands in the positions.
func Known(s Spelling, f *Feed, hint string) string {
	return "EXISTS (SELECT 1 FROM " + Qualified(s, f.Positions()) + " old" + hint + " WHERE " + StoredJoin(s, f, "old", "c") + ")"
}
