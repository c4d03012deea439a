package publish

import (
	"context"
	_ "embed" // for publish.sql
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed publish.sql
var file string

var statements = dialect.NewStatements(file)

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
			if err := f.refuseElsewhere(ctx, tx, "republish"); err != nil {
				return err
			}
			n, last, err = f.RecordRange(ctx, tx, where, after, batch, dialect.Changed)
			return err
		})
		if err != nil {
			return total, ofCondition(where, err)
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

// ofCondition adds the next step to an error that the database gives for a condition.
func ofCondition(where string, err error) error {
	var e *feedtype.Error
	if where != "" && errors.As(err, &e) && e.Code == feedtype.Failed && e.Next == "" {
		explained := *e
		explained.Next = "check the condition: it is SQL, and calls the table t"
		return &explained
	}
	return err
}

// CountWhere counts the rows that match the condition, for progress bars.
func (f *Recorder) CountWhere(ctx context.Context, where string) (n int64, err error) {
	err = dialect.One(ctx, f.Store.On(), f.Store.Dialect.Syntax, f.Statement(statements, "count_rows"),
		dialect.Args{"which": matching(where)}, &n)
	return n, f.Fail("count rows", err)
}

// matching is an operator's condition as a part of a statement.
func matching(where string) dialect.SQL {
	if where == "" {
		return "1 = 1"
	}
	return dialect.SQL("(" + where + ")")
}

// RecordRange records a change for the next keys above after, up to limit, in key order. It returns their number and
// the last key, which is nil if there are no more. It reads the source without locks.
func (f *Recorder) RecordRange(
	ctx context.Context, tx dialect.Querier, where string, after []any, limit int, kind dialect.ChangeKind,
) (int64, []any, error) {
	rows, last, err := f.KeyRange(ctx, tx, where, after, limit)
	if err != nil {
		return 0, nil, err
	}
	s := f.Store.Dialect.Syntax
	n, err := dialect.Exec(ctx, tx, s, f.Statement(statements, "record_rows"), s.Uncut(dialect.Args{
		"kind":  dialect.SQL(strconv.Itoa(int(kind))),
		"which": dialect.Built(func(b *dialect.Builder) string { return strings.Join(rows(b), " AND ") })}))
	return n, last, err
}

// KeyRange finds the next keys above after, up to limit, in key order. It returns the conditions for their rows (alias
// t) and the last key, which is nil if there are no more.
func (f *Recorder) KeyRange(
	ctx context.Context, q dialect.Querier, where string, after []any, limit int,
) (rows func(*dialect.Builder) []string, last []any, err error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	ordered := dialect.OrderedKey(d.Syntax, feed, "t")
	above := func(b *dialect.Builder) []string {
		conds := []string{string(matching(where))}
		if after != nil {
			conds = append(conds, dialect.CompareKey(d.Syntax, b, feed, ordered, after, ">", ">"))
		}
		return conds
	}
	err = dialect.EachKey(ctx, q, d.Syntax, feed, statements.For(d.Syntax, feed, "last_key"), dialect.Args{
		"which":  dialect.Built(func(b *dialect.Builder) string { return strings.Join(above(b), " AND ") }),
		"others": int64(limit - 1),
	}, 0, func(_ []string, key []any) error {
		last = key
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if last != nil && after != nil && dialect.KeyIdentity(last) == dialect.KeyIdentity(after) {
		return nil, nil, fmt.Errorf("reading the rows in key order does not advance beyond key %v", last)
	}
	return func(b *dialect.Builder) []string {
		conds := above(b)
		if last != nil {
			conds = append(conds, dialect.CompareKey(d.Syntax, b, feed, ordered, last, "<", "<="))
		}
		return conds
	}, last, nil
}
