package publish

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// RepublishWhere republishes the rows that match an SQL condition (all rows if it is empty), in batches of a
// transaction each. Hidden rows stay hidden. RepublishWhere calls each, unless it is nil, after every batch with the
// number of rows so far, and stops with its error. The condition runs unchanged: it must come from an operator, not
// from a user.
func (f *Recorder) RepublishWhere(
	ctx context.Context, where string, batch int, each func(rows int64) error,
) (int64, error) {
	if err := f.ByKey("republish"); err != nil {
		return 0, err
	}
	if batch < 1 {
		return 0, feedtype.Invalid("batch", "%d must be positive", batch)
	}
	var total int64
	var after []any
	for {
		var n int64
		var last []any
		err := f.InOwnTx(ctx, func(tx dialect.Querier) (err error) {
			n, last, err = f.RecordRange(ctx, tx, where, after, batch, dialect.Changed)
			return err
		})
		if err != nil {
			return total, err
		}
		total += n
		if each != nil {
			if err := each(total); err != nil {
				return total, err
			}
		}
		if last == nil {
			return total, nil
		}
		after = last
	}
}

// CountWhere counts the rows that match the condition, for progress bars.
func (f *Recorder) CountWhere(ctx context.Context, where string) (n int64, err error) {
	query := "SELECT count(*) FROM " + dialect.Qualified(f.Store.Dialect, f.Record.Load().Source) + " t"
	if where != "" {
		query += " WHERE (" + where + ")"
	}
	err = dialect.QueryRow(ctx, f.Store.On(), query, nil, &n)
	return n, f.Fail("count rows", err)
}

// RecordRange records a change for the next keys above after, up to limit, in key order. It returns their number and
// the last key, which is nil if there are no more. It reads the source without locks.
func (f *Recorder) RecordRange(
	ctx context.Context, tx dialect.Querier, where string, after []any, limit int, kind dialect.ChangeKind,
) (int64, []any, error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	rows, last, err := f.KeyRange(ctx, tx, where, after, limit)
	if err != nil {
		return 0, nil, err
	}
	b := dialect.NewBuilder(d)
	from := " FROM " + dialect.Qualified(d, feed.Source) + " t WHERE " + strings.Join(rows(b), " AND ") +
		" ORDER BY " + strings.Join(dialect.OrderedKey(d, feed, "t"), ", ") + " LIMIT " + b.Arg(int64(math.MaxInt64))
	n, err := tx.Exec(ctx, RecordFrom(d, feed, dialect.KeyRefs(d, feed, "t"), kind, from), b.Args()...)
	return n, last, err
}

// KeyRange finds the next keys above after, up to limit, in key order. It returns the conditions for their rows (alias
// t) and the last key, which is nil if there are no more.
func (f *Recorder) KeyRange(
	ctx context.Context, q dialect.Querier, where string, after []any, limit int,
) (rows func(*dialect.Builder) []string, last []any, err error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	ordered := dialect.OrderedKey(d, feed, "t")
	above := func(b *dialect.Builder) []string {
		conds := []string{"1 = 1"}
		if where != "" {
			conds = append(conds, "("+where+")")
		}
		if after != nil {
			conds = append(conds, dialect.CompareKey(d, b, feed, ordered, after, ">", ">"))
		}
		return conds
	}
	b := dialect.NewBuilder(d)
	from := " FROM " + dialect.Qualified(d, feed.Source) + " t WHERE " + strings.Join(above(b), " AND ") +
		" ORDER BY " + strings.Join(ordered, ", ") + " LIMIT 1 OFFSET " + b.Arg(int64(limit-1))
	last, err = dialect.ReadKey(ctx, q, d, feed, dialect.KeyRefs(d, feed, "t"), from, b.Args())
	if err != nil && !errors.Is(err, store.ErrNoRows) {
		return nil, nil, err
	}
	if last != nil && after != nil && dialect.KeyIdentity(last) == dialect.KeyIdentity(after) {
		return nil, nil, fmt.Errorf("reading the rows in key order does not advance beyond key %v", last)
	}
	return func(b *dialect.Builder) []string {
		conds := above(b)
		if last != nil {
			conds = append(conds, dialect.CompareKey(d, b, feed, ordered, last, "<", "<="))
		}
		return conds
	}, last, nil
}

// RecordFrom returns a statement that records a change for the keys (refs) that a query finds. The query begins with
// its FROM and needs a LIMIT, which makes the database run it before the first insert: on MariaDB no other session can
// draw a number while an INSERT … SELECT runs. The limit is the largest number, so that it cuts no row off.
func RecordFrom(d dialect.Spelling, f *dialect.Feed, refs []string, kind dialect.ChangeKind, from string) string {
	inner, outer := make([]string, len(refs)), make([]string, len(refs))
	for i, ref := range refs {
		outer[i] = fmt.Sprintf("x.k%d", i)
		inner[i] = fmt.Sprintf("%s AS k%d", ref, i)
	}
	return "INSERT INTO " + dialect.Qualified(d, f.Changes()) +
		" (" + strings.Join(dialect.StoredRefs(d, f, ""), ", ") + ", kind) SELECT " + strings.Join(outer, ", ") + ", " +
		strconv.Itoa(int(kind)) + " FROM (SELECT " + strings.Join(inner, ", ") + from + ") x"
}
