package rowfeed

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Key is the values of a feed's key columns, in the key's order: int64, string,
// []byte or whatever else the driver takes for the column.
type Key []any

// Record records, inside the caller's transaction, that the keys were written: what
// triggers do, for feeds with capture "app". (With capture "column" it is for what no
// statement can say, such as the old key of a row whose key changes.) Call it in the transaction that writes
// the rows, for every key written, inserted or deleted; for a changed key with both.
func (f *Feed) Record(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recordKeys(ctx, tx, dialect.Changed, keys)
}

// Republish asks, inside the caller's transaction, for new positions for the keys:
// consumers receive them again, as they are then. Hidden keys are shown again. It
// appends change records and locks nothing.
func (f *Feed) Republish(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recordKeys(ctx, tx, dialect.Republished, keys)
}

// Unpublish hides the keys, inside the caller's transaction: once published,
// consumers get a delete, and changes of the rows stay hidden until Republish.
func (f *Feed) Unpublish(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recordKeys(ctx, tx, dialect.Unpublished, keys)
}

func (f *Feed) recordKeys(ctx context.Context, tx Tx, kind dialect.ChangeKind, keys []Key) error {
	if err := f.mode().keys(f, "record changes"); err != nil {
		return err
	}
	first := f.appending().change
	for _, key := range keys {
		if err := f.checkKey(key); err != nil {
			return err
		}
		b := dialect.NewBuilder(f.db.store.Dialect)
		query := append(make([]byte, 0, len(first)+64), first...)
		for _, v := range key {
			query = append(append(query, b.Arg(v)...), ", "...)
		}
		query = append(append(query, b.Arg(int64(kind))...), ')')
		if _, err := tx.Exec(ctx, string(query), b.Args()...); err != nil {
			return f.keyError(key, "record a change", err)
		}
	}
	return nil
}

// checkKey refuses what cannot be a key of the feed.
func (f *Feed) checkKey(key Key) error {
	columns := f.catalog.Record.Load().Key
	if len(key) != len(columns) {
		return feedtype.Invalid("key", "%v has %d values, the feed's key (%s) has %d", key, len(key), strings.Join(keyNames(columns), ", "), len(columns))
	}
	for i, v := range key {
		if v == nil {
			return feedtype.Invalid("key", "column %q of a key cannot be NULL", columns[i].Name)
		}
	}
	return nil
}

// keyError says so when it was the key that the database did not take.
func (f *Feed) keyError(key Key, doing string, err error) error {
	if f.db.store.Dialect.Classify(err) == dialect.ClassInvalid {
		return &feedtype.Error{Code: feedtype.InvalidRequest, Param: "key", Object: feedtype.FeedObject(f.name), Cause: fmt.Sprintf("key %v is no value of (%s)", key, keyDecl(f.catalog.Record.Load().Key)), Err: err}
	}
	return f.db.store.Fail(feedtype.FeedObject(f.name), doing, err)
}

// UnknownKeys answers those of the keys of which the feed has neither a row nor a
// position, so that nothing comes of republishing or unpublishing them. A key that no
// row can have is an error with code InvalidRequest.
func (f *Feed) UnknownKeys(ctx context.Context, keys ...Key) ([]Key, error) {
	if err := f.mode().keys(f, "look for keys"); err != nil {
		return nil, err
	}
	var unknown []Key
	for _, key := range keys {
		if err := f.checkKey(key); err != nil {
			return nil, err
		}
		known, err := f.knows(ctx, key)
		if err != nil {
			return nil, f.keyError(key, "look for a key", err)
		}
		if known {
			continue
		}
		for i, c := range f.catalog.Record.Load().Key {
			// Where types belong to values, a column declared for integers holds text all the
			// same, but hardly ever; one that is the row's number never does.
			text, ok := key[i].(string)
			if _, err := strconv.ParseFloat(text, 64); ok && err != nil && c.Kind == feedtype.Dynamic && strings.Contains(strings.ToUpper(c.Type), "INT") {
				return nil, &feedtype.Error{Code: feedtype.InvalidRequest, Param: "key", Object: feedtype.FeedObject(f.name),
					Cause: fmt.Sprintf("%q is no number, as column %q is declared for, and no row has it", text, c.Name),
					Next:  "write the key as entries show it"}
			}
		}
		unknown = append(unknown, key)
	}
	return unknown, nil
}

// knows tells whether there is a row or a position of the key. The values are compared
// with bare columns, as recordKeys writes them into bare columns.
func (f *Feed) knows(ctx context.Context, key Key) (bool, error) {
	d, feed := f.db.store.Dialect, f.catalog.DialectFeed()
	b := dialect.NewBuilder(d)
	count := func(table feedtype.TableName, column func(dialect.Column) string) string {
		conditions := make([]string, len(key))
		for i, c := range feed.Key {
			conditions[i] = dialect.Ref(d, "x", column(c)) + c.Collate + c.Operator("=") + b.Arg(key[i])
		}
		return "(SELECT count(*) FROM " + dialect.Qualified(d, table) + " x WHERE " + strings.Join(conditions, " AND ") + ")"
	}
	rows := count(feed.Source, func(c dialect.Column) string { return c.Name })
	positions := count(feed.Positions(), func(c dialect.Column) string { return c.Stored })
	var n int64
	err := dialect.QueryRow(ctx, f.db.store.On(), "SELECT "+rows+" + "+positions, b.Args(), &n)
	return n > 0, err
}

func keyDecl(key []dialect.Column) string {
	parts := make([]string, len(key))
	for i, c := range key {
		parts[i] = c.Name + " " + c.Type
	}
	return strings.Join(parts, ", ")
}

// InOwnTx runs fn in a transaction of its own, with retries, and wakes the
// publisher of this process afterwards.
func (f *Feed) InOwnTx(ctx context.Context, fn func(Tx) error) error {
	err := f.db.store.InTx(ctx, dialect.ForRecord, "record changes of "+f.name, func(tx dialect.Querier) error { return fn(ownTx{tx}) })
	if err != nil {
		return f.settle(ctx, "record changes", err)
	}
	f.Wake()
	return nil
}

// RepublishWhere republishes every row for which the SQL condition holds (every row
// when it is empty), in batches of a transaction each. Hidden rows stay hidden. each may be nil; it is called
// after every batch with the number of rows so far, and ends the work with its error.
// The condition is the operator's own SQL and runs as it is written.
func (f *Feed) RepublishWhere(ctx context.Context, where string, batch int, each func(rows int64) error) (int64, error) {
	if err := f.mode().keys(f, "republish"); err != nil {
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
		err := f.InOwnTx(ctx, func(tx Tx) (err error) {
			n, last, err = f.recordRange(ctx, tx, where, after, batch, dialect.Changed)
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

// CountWhere counts the rows for which the condition holds, for progress bars.
func (f *Feed) CountWhere(ctx context.Context, where string) (n int64, err error) {
	query := "SELECT count(*) FROM " + dialect.Qualified(f.db.store.Dialect, f.Source()) + " t"
	if where != "" {
		query += " WHERE (" + where + ")"
	}
	err = dialect.QueryRow(ctx, f.db.store.On(), query, nil, &n)
	return n, f.db.store.Fail(feedtype.FeedObject(f.name), "count rows", err)
}

// recordRange records the next keys above after, up to limit, in key order, and
// answers their number and the last of them; nil when there are no more. It reads
// the source without locking it.
func (f *Feed) recordRange(ctx context.Context, tx dialect.Querier, where string, after []any, limit int, kind dialect.ChangeKind) (int64, []any, error) {
	d, feed := f.db.store.Dialect, f.catalog.DialectFeed()
	rows, last, err := f.keyRange(ctx, tx, where, after, limit)
	if err != nil {
		return 0, nil, err
	}
	b := dialect.NewBuilder(d)
	n, err := tx.Exec(ctx, recordFrom(d, feed, dialect.KeyRefs(d, feed, "t"), kind, " FROM "+dialect.Qualified(d, feed.Source)+" t WHERE "+strings.Join(rows(b), " AND ")+
		" ORDER BY "+strings.Join(dialect.OrderedKey(d, feed, "t"), ", ")+" LIMIT "+b.Arg(int64(math.MaxInt64))), b.Args()...)
	return n, last, err
}

// keyRange finds the next keys above after, up to limit, in key order: conditions for their rows
// (alias t), and the last of them; nil when there are no more.
func (f *Feed) keyRange(ctx context.Context, q dialect.Querier, where string, after []any, limit int) (rows func(*dialect.Builder) []string, last []any, err error) {
	d, feed := f.db.store.Dialect, f.catalog.DialectFeed()
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
	last, err = dialect.ReadKey(ctx, q, d, feed, dialect.KeyRefs(d, feed, "t"), " FROM "+dialect.Qualified(d, feed.Source)+" t WHERE "+strings.Join(above(b), " AND ")+
		" ORDER BY "+strings.Join(ordered, ", ")+" LIMIT 1 OFFSET "+b.Arg(int64(limit-1)), b.Args())
	if err != nil && !errors.Is(err, store.ErrNoRows) {
		return nil, nil, err
	}
	if last != nil && after != nil && dialect.KeyIdentity(last) == dialect.KeyIdentity(after) {
		return nil, nil, fmt.Errorf("the walk along the key does not get beyond %v", last)
	}
	return func(b *dialect.Builder) []string {
		conds := above(b)
		if last != nil {
			conds = append(conds, dialect.CompareKey(d, b, feed, ordered, last, "<", "<="))
		}
		return conds
	}, last, nil
}

// recordFrom records the keys (refs) that a query finds; from is all of it from its
// FROM on, with a LIMIT (of no consequence: rows that came since the batch was
// measured must not push out its last). The limit makes it a table of its own, done before the first
// record is written: MariaDB lets nobody else draw a seq while an INSERT … SELECT runs.
func recordFrom(d dialect.Spelling, f *dialect.Feed, refs []string, kind dialect.ChangeKind, from string) string {
	inner, outer := make([]string, len(refs)), make([]string, len(refs))
	for i, ref := range refs {
		outer[i] = fmt.Sprintf("x.k%d", i)
		inner[i] = fmt.Sprintf("%s AS k%d", ref, i)
	}
	return "INSERT INTO " + dialect.Qualified(d, f.Changes()) + " (" + strings.Join(dialect.StoredRefs(d, f, ""), ", ") +
		", kind) SELECT " + strings.Join(outer, ", ") + ", " + strconv.Itoa(int(kind)) + " FROM (SELECT " + strings.Join(inner, ", ") + from + ") x"
}

// ParseKey reads a key as people write it: the bare value where the key has one
// column, else (or also) the JSON object or array that entries show, such as
// {"ns":"a","k":"b"}. Binary values are base64.
func (f *Feed) ParseKey(text string) (Key, error) {
	columns := f.catalog.DialectFeed().Key
	bad := func(format string, args ...any) (Key, error) {
		return nil, &feedtype.Error{Code: feedtype.InvalidRequest, Param: "key", Object: feedtype.FeedObject(f.name),
			Cause: fmt.Sprintf("%q is no key of (%s): %s", text, keyDecl(columns), fmt.Sprintf(format, args...)),
			Next:  "write it as entries show it, like " + exampleKey(columns)}
	}
	var parts []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case len(columns) == 1 && strings.HasPrefix(text, `{"$`): // a value that says its own type
		parts = append(parts, json.RawMessage(text))
	case json.Unmarshal([]byte(text), &object) == nil && object != nil:
		for _, c := range columns {
			part, ok := object[c.Name]
			if !ok {
				return bad("member %q is missing", c.Name)
			}
			parts = append(parts, part)
		}
		if len(object) != len(columns) {
			return bad("it has %d members", len(object))
		}
	case json.Unmarshal([]byte(text), &parts) == nil && parts != nil:
		if len(parts) != len(columns) {
			return bad("it has %d values", len(parts))
		}
	case len(columns) == 1:
		v, err := parseKeyValue(columns[0], text)
		if err != nil {
			return bad("%v", err)
		}
		return Key{v}, nil
	default:
		return bad("it has %d columns", len(columns))
	}
	key := make(Key, len(columns))
	for i, c := range columns {
		v, err := feedtype.ParseValue(c.Kind, parts[i])
		if err != nil || v == nil || !fits(c.Kind, v) {
			return bad("%s is no value for column %q", parts[i], c.Name)
		}
		key[i] = v
	}
	return key, nil
}

// fits tells whether a value of JSON is one that entries show of such a column. Not
// every database refuses others: some bend them into another key.
func fits(kind feedtype.Kind, v any) bool {
	switch kind {
	case feedtype.Integer:
		switch v.(type) {
		case int64, uint64:
			return true
		}
		return false
	case feedtype.Float32, feedtype.Float64:
		_, ok := v.(float64)
		return ok
	case feedtype.Binary:
		_, ok := v.([]byte)
		return ok
	case feedtype.Text, feedtype.Date, feedtype.Time, feedtype.Timestamp, feedtype.TimestampTZ:
		_, ok := v.(string)
		return ok
	case feedtype.Decimal:
		switch v.(type) {
		case string, int64, uint64:
			return true
		}
		return false
	}
	return true
}

func parseKeyValue(c dialect.Column, text string) (any, error) {
	switch c.Kind {
	case feedtype.Integer:
		row, err := feedtype.NewRow([]feedtype.Column{{Name: c.Name, Kind: c.Kind}}, []any{text})
		if err != nil {
			return nil, errors.New("it is no integer")
		}
		return row.Value(0), nil
	case feedtype.Binary:
		v, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errors.New("it is not base64")
		}
		return v, nil
	case feedtype.Dynamic:
		// The column's affinity turns text into a number where it has one; without a
		// declared type a value that reads as an integer is taken for one.
		if v, err := strconv.ParseInt(text, 10, 64); err == nil && c.Type == "" {
			return v, nil
		}
	}
	return text, nil
}

func exampleKey(columns []dialect.Column) string {
	shown := make([]feedtype.Column, len(columns))
	values := make([]any, len(columns))
	for i, c := range columns {
		shown[i], values[i] = feedtype.Column{Name: c.Name, Kind: feedtype.Text}, "…"
		if c.Kind == feedtype.Integer {
			shown[i].Kind, values[i] = feedtype.Integer, int64(7)
		}
	}
	row, _ := feedtype.NewRow(shown, values) // Text and integers are read as they are.
	return string(row.AppendJSON(nil))
}
