package dialect

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ChangeColumns returns the columns that ReadChanges scans.
func ChangeColumns(s *Syntax, f *Feed, identity func(Column, string) string) string {
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

// HasChanges implements [Publishing].HasChanges by the query of FirstChange.
func HasChanges(ctx context.Context, q Querier, s *Syntax, f *Feed, among Seqs) (bool, error) {
	return hasRow(ctx, q, FirstChange(s, f, among))
}

// hasRow tells whether a query answers a number.
func hasRow(ctx context.Context, q Querier, query string) (bool, error) {
	var n int64
	err := QueryRow(ctx, q, query, nil, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// FirstChange returns a query, without parameters, that answers a row if a change waits among these seqs. It answers
// the lowest seq of each scan and, if rows hold their positions, 0 for a row that waits for one.
func FirstChange(s *Syntax, f *Feed, among Seqs) string {
	first := numberedScans(s, f, "first_change", s.Scan(s, f, "changes", among, nil), nil)
	if f.InRows() {
		first = append(first, reads.For(s, f, "first_row").With(nil))
	}
	return Joined(" UNION ALL ", first)(NewScript(s))
}

// numberedScans returns a statement of read.sql for each scan, with the number of the scan.
func numberedScans(s *Syntax, f *Feed, name string, scans []Built, args Args) []Built {
	all := make([]Built, len(scans))
	for i, scan := range scans {
		own := Args{"scan": scan, "number": SQL(strconv.Itoa(i))}
		maps.Copy(own, args)
		all[i] = reads.For(s, f, name).With(own)
	}
	return all
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
