package sqlmirror

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// maxParams is the number of parameters up to which rows are written together. A larger statement is not faster.
const maxParams = 8000

// Apply writes entries in the transaction, in their order.
func (s *Sink) Apply(ctx context.Context, tx *sql.Tx, entries []feedtype.Entry) error {
	sweeping, err := s.sweeping(ctx, tx)
	if err != nil {
		return err
	}
	for len(entries) > 0 {
		n := distinct(entries)
		if err := s.write(ctx, tx, entries[:n], sweeping); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// distinct returns the number of entries before the first key that occurs again.
func distinct(entries []feedtype.Entry) int {
	seen := make(map[string]bool, len(entries))
	for i, e := range entries {
		key := string(e.Key.AppendJSON(nil))
		if seen[key] {
			return i
		}
		seen[key] = true
	}
	return len(entries)
}

// write applies entries with different keys. Their order does not matter. Deletes go first, because they may free
// unique values.
func (s *Sink) write(ctx context.Context, tx *sql.Tx, entries []feedtype.Entry, sweeping bool) error {
	var gone, all []feedtype.Row
	var rows []row
	for _, e := range entries {
		if err := s.sameKey(e.Key); err != nil {
			return err
		}
		all = append(all, e.Key)
		if e.Op == feedtype.Delete {
			gone = append(gone, e.Key)
		} else {
			rows = append(rows, row{e.Row, e.Key})
		}
	}
	if sweeping {
		if err := s.delete(ctx, tx, s.sweep, all); err != nil {
			return err
		}
	}
	if err := s.delete(ctx, tx, s.name, gone); err != nil {
		return err
	}
	others := s.others()
	if len(others) == 0 {
		return s.upsert(ctx, tx, rows)
	}
	point := s.d.Savepoint("rowfeed_mirror")
	if _, err := tx.ExecContext(ctx, point.Set); err != nil {
		return err
	}
	err := s.upsert(ctx, tx, rows)
	if err != nil && s.d.Classify(err) == dialect.ClassDuplicate {
		if _, err := tx.ExecContext(ctx, point.Back); err != nil {
			return err
		}
		err = s.makeRoom(ctx, tx, rows, others)
	}
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, point.Release)
	return err
}

// sameKey checks that the feed's key is the table's primary key.
func (s *Sink) sameKey(key feedtype.Row) error {
	same := key.Len() == len(s.key)
	for i := range key.Len() {
		same = same && slices.Contains(s.key, key.Column(i).Name)
	}
	if same {
		return nil
	}
	var names []string
	for i := range key.Len() {
		names = append(names, key.Column(i).Name)
	}
	return &feedtype.Error{Code: feedtype.Refused, Object: s.object(),
		Cause: fmt.Sprintf("its primary key is (%s), the feed's key is (%s)",
			strings.Join(s.key, ", "), strings.Join(names, ", ")), Next: "give the table the feed's key as primary key"}
}

// others returns the table's unique indexes except its primary key. It leaves out partial indexes and those on
// expressions, because a row's values do not show what they contain.
func (s *Sink) others() (all [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ix := range s.table.Unique {
		if names, ok := ix.Names(); ok && !ix.Primary && !ix.Partial {
			all = append(all, names)
		}
	}
	return all
}

// makeRoom writes rows one by one. First it deletes rows of other keys that have one of their unique values. In the
// source those rows have other values by now, or were deleted, since two rows cannot have the same value. Their own
// entries follow.
func (s *Sink) makeRoom(ctx context.Context, tx *sql.Tx, rows []row, others [][]string) error {
	for _, r := range rows {
		for _, index := range others {
			b := dialect.NewBuilder(s.d.Syntax)
			same, ok, err := s.condition(b, r, index)
			if err != nil {
				return err
			}
			if !ok {
				continue // NULL or not delivered: no conflict is possible
			}
			own, _, err := s.condition(b, r, s.key)
			if err != nil {
				return err
			}
			err = s.exec(ctx, tx, b, "delete_others", dialect.Args{"table": s.quoted(s.name),
				"same": dialect.SQL(same), "own": dialect.SQL(own)})
			if err != nil {
				return err
			}
		}
		if err := s.upsert(ctx, tx, []row{r}); err != nil {
			return err
		}
	}
	return nil
}

// condition returns the SQL condition that a row of the table has a row's values in these columns. It returns false
// if one of the values is NULL or missing.
func (s *Sink) condition(b *dialect.Builder, of getter, columns []string) (string, bool, error) {
	var parts []string
	values := make([]any, len(columns))
	for i, name := range columns {
		v, ok := of.Get(name)
		if !ok || v == nil {
			return "", false, nil
		}
		values[i] = v
	}
	for i, name := range columns {
		placeholder, err := s.param(b, name, values[i])
		if err != nil {
			return "", false, err
		}
		parts = append(parts, s.d.Quote(name)+" = "+placeholder)
	}
	return strings.Join(parts, " AND "), true, nil
}

// delete removes the rows with these keys.
func (s *Sink) delete(ctx context.Context, tx *sql.Tx, from feedtype.TableName, keys []feedtype.Row) error {
	for most := max(1, min(500, s.d.MaxParams/len(s.key))); len(keys) > 0; {
		n := min(most, len(keys))
		b := dialect.NewBuilder(s.d.Syntax)
		var any []string
		for _, key := range keys[:n] {
			one, _, err := s.condition(b, key, s.key)
			if err != nil {
				return err
			}
			any = append(any, "("+one+")")
		}
		err := s.exec(ctx, tx, b, "delete_keys",
			dialect.Args{"table": s.quoted(from), "any": dialect.SQL(strings.Join(any, " OR "))})
		if err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// upsert writes rows. A statement has as many consecutive rows as have the same columns.
func (s *Sink) upsert(ctx context.Context, tx *sql.Tx, rows []row) error {
	respelled := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !r.respelled() })
	key := make([]string, len(s.key))
	for i, name := range s.key {
		key[i] = s.d.Quote(name)
	}
	for most := min(maxParams, s.d.MaxParams); len(rows) > 0; {
		names := columnsOf(rows[0])
		n := 1
		for n < len(rows) && (n+1)*len(names) <= most && slices.Equal(columnsOf(rows[n]), names) {
			n++
		}
		b := dialect.NewBuilder(s.d.Syntax)
		values := make([][]string, n)
		for i, r := range rows[:n] {
			for _, name := range names {
				v, _ := r.Get(name)
				placeholder, err := s.param(b, name, v)
				if err != nil {
					return err
				}
				values[i] = append(values[i], placeholder)
			}
		}
		quoted := make([]string, len(names))
		for i, name := range names {
			quoted[i] = s.d.Quote(name)
		}
		upsert := s.d.Upsert(string(s.quoted(s.name)), quoted, values, key)
		if _, err := tx.ExecContext(ctx, upsert, b.Args()...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	for _, r := range respelled {
		if err := s.respell(ctx, tx, r); err != nil {
			return err
		}
	}
	return nil
}

// respell writes the row's own spelling of its key, if this table regards both spellings as equal. Otherwise the row
// keeps the entry's key, which its delete will have.
func (s *Sink) respell(ctx context.Context, tx *sql.Tx, r row) error {
	b := dialect.NewBuilder(s.d.Syntax)
	var sets []string
	for _, name := range s.key {
		v, _ := r.Row.Get(name)
		placeholder, err := s.param(b, name, v)
		if err != nil {
			return err
		}
		sets = append(sets, s.d.Quote(name)+" = "+placeholder)
	}
	known, _, err := s.condition(b, r.key, s.key)
	if err != nil {
		return err
	}
	own, _, err := s.condition(b, r.Row, s.key)
	if err != nil {
		return err
	}
	return s.exec(ctx, tx, b, "respell", dialect.Args{"table": s.quoted(s.name),
		"key": dialect.SQL(strings.Join(sets, ", ")), "known": dialect.SQL(known), "own": dialect.SQL(own)})
}

// getter returns the values of a row by the names of its columns.
type getter interface {
	Get(column string) (any, bool)
}

// row is a row as the mirror stores it: with the entry's key, which has the same text in every entry. The row's own
// key columns may be spelled differently.
type row struct {
	feedtype.Row
	key feedtype.Row
}

// Get returns a value. For a key column it is the entry's.
func (r row) Get(column string) (any, bool) {
	if v, ok := r.key.Get(column); ok {
		return v, ok
	}
	return r.Row.Get(column)
}

// respelled tells whether the row delivers its key, in another spelling than the entry.
func (r row) respelled() bool {
	differs := false
	for i := range r.key.Len() {
		v, ok := r.Row.Get(r.key.Column(i).Name)
		if !ok {
			return false
		}
		differs = differs || !reflect.DeepEqual(v, r.key.Value(i))
	}
	return differs
}

func columnsOf(r row) []string {
	names := make([]string, r.Len())
	for i := range names {
		names[i] = r.Column(i).Name
	}
	return names
}

// param adds a value as a parameter for a column of the table.
func (s *Sink) param(b *dialect.Builder, name string, v any) (string, error) {
	c, err := s.column(name)
	if err != nil {
		return "", err
	}
	if c.Generated {
		return "", &feedtype.Error{Code: feedtype.Refused, Object: s.object(),
			Cause: fmt.Sprintf("the database itself gives column %q its values, and the feed delivers others", name),
			Next:  "create the table without IDENTITY or GENERATED ALWAYS in that column"}
	}
	v, err = convert(*c, v)
	if err != nil {
		return "", &feedtype.Error{Code: feedtype.Refused, Object: s.object(),
			Cause: fmt.Sprintf("column %q has type %s, which cannot hold a value of the feed", name, c.Type),
			Err:   err, Next: "change the column to a type that holds the feed's values"}
	}
	return s.d.Store(*c, b.Arg(v)), nil
}

// column returns a column of the table. If it is unknown, it may be new: column reads the columns again.
func (s *Sink) column(name string) (*dialect.Column, error) {
	find := func() *dialect.Column {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.table.Column(name)
	}
	if c := find(); c != nil {
		return c, nil
	}
	if err := s.describe(context.Background()); err != nil {
		return nil, err
	}
	if c := find(); c != nil {
		return c, nil
	}
	return nil, &feedtype.Error{Code: feedtype.Refused, Object: s.object(),
		Cause: fmt.Sprintf("it has no column %q, which the feed delivers", name),
		Next:  "add the column, or make the feed with --columns"}
}
