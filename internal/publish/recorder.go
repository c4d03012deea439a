package publish

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// Recorder records, in the transactions of writers, that keys were written. It is safe for concurrent use.
type Recorder struct {
	*catalog.Feed
	Wake func() // makes this process's publisher poll at once

	inserts atomic.Pointer[insertSQL]
}

// ByKey refuses operations on single keys for feeds of append-only tables.
func (f *Recorder) ByKey(doing string) error {
	r := f.Record.Load()
	if r.Unreadable != nil || r.Mode == feedtype.ModeSequence {
		return r.Unreadable
	}
	e := &feedtype.Error{
		Code:   feedtype.Refused,
		Object: feedtype.FeedObject(f.Name),
		Cause:  doing + ": its rows are only appended, and hold their positions themselves",
		Err:    errors.ErrUnsupported,
		Next:   "insert a row that says what has changed",
	}
	if r.Mode == feedtype.ModeOutbox {
		feed := r.Feed(f.Store.Names)
		e.Cause = doing + ": its rows are only appended, and get their positions from records in its outbox"
		e.Next = fmt.Sprintf("to deliver a row once more, append a record for it: "+
			"INSERT INTO %s (shard, %s) VALUES …", feed.Records(), strings.Join(feed.StoredKey(), ", "))
	}
	return e
}

// Delete deletes the row of a key in the caller's transaction, and records the delete. With capture "trigger" it is an
// ordinary DELETE. If no row has the key, Delete records nothing and returns nil.
func (f *Recorder) Delete(ctx context.Context, tx dialect.Querier, key feedtype.Key) error {
	if err := f.ByKey("delete"); err != nil {
		return err
	}
	if err := f.checkKey(key); err != nil {
		return err
	}
	if err := f.refuseElsewhere(ctx, tx, "delete"); err != nil {
		return err
	}
	for _, statement := range f.Store.Dialect.DeleteRow(f.DialectFeed()) {
		n, err := tx.Exec(ctx, statement, key...)
		if err != nil {
			return f.keyError(key, "delete a row", err)
		}
		if n == 0 {
			return nil
		}
	}
	return nil
}

// DeleteSQL returns the statements of Delete for writers in other languages. They are run in one transaction, each with
// the key's values as parameters. A feed that delivers no deletes has none: one with
// ULIDs, or one whose positions another publisher gives.
func (f *Recorder) DeleteSQL() []string {
	feed := f.DialectFeed()
	if feed.ULIDs != nil || feed.Elsewhere != nil {
		return []string{}
	}
	return f.Store.Dialect.DeleteRow(feed)
}

// RecordKeys records a change of each key, in the caller's transaction.
func (f *Recorder) RecordKeys(
	ctx context.Context,
	tx dialect.Querier,
	kind dialect.ChangeKind,
	keys []feedtype.Key,
) error {
	if err := f.ByKey("record changes"); err != nil {
		return err
	}
	if err := f.refuseElsewhere(ctx, tx, "record changes"); err != nil {
		return err
	}
	record := f.Statement(statements, "record_key")
	for _, key := range keys {
		if err := f.checkKey(key); err != nil {
			return err
		}
		args := dialect.Args{"values": dialect.List(key), "kind": int64(kind)}
		if _, err := dialect.Exec(ctx, tx, f.Store.Dialect.Syntax, record, args); err != nil {
			return f.keyError(key, "record a change", err)
		}
	}
	return nil
}

// checkKey refuses keys with too few or too many values, or with NULL.
func (f *Recorder) checkKey(key feedtype.Key) error {
	columns := f.Record.Load().Key
	if len(key) != len(columns) {
		return feedtype.Invalid("key", "%v has %d values, the feed's key (%s) has %d",
			key, len(key), strings.Join(catalog.KeyNames(columns), ", "), len(columns))
	}
	for i, v := range key {
		if v == nil {
			return feedtype.Invalid("key", "column %q of a key cannot be NULL", columns[i].Name)
		}
	}
	return nil
}

// keyError explains the error of a statement with a key: the database may have refused the key itself.
func (f *Recorder) keyError(key feedtype.Key, doing string, err error) error {
	if f.Store.Dialect.Classify(err) == dialect.ClassInvalid {
		return &feedtype.Error{
			Code:   feedtype.InvalidRequest,
			Param:  "key",
			Object: feedtype.FeedObject(f.Name),
			Cause: fmt.Sprintf("key %v does not fit the feed's key columns (%s)", key,
				keyColumns(f.Record.Load().Key)),
			Err: err,
		}
	}
	return f.Fail(doing, err)
}

// UnknownKeys returns the keys that have neither a row nor a position. To republish or unpublish them has no effect. A
// key that no row can have is an error with code InvalidRequest.
func (f *Recorder) UnknownKeys(ctx context.Context, keys ...feedtype.Key) ([]feedtype.Key, error) {
	if err := f.ByKey("look for keys"); err != nil {
		return nil, err
	}
	var unknown []feedtype.Key
	for _, key := range keys {
		if err := f.checkKey(key); err != nil {
			return nil, err
		}
		known, err := f.isKnown(ctx, key)
		if err != nil {
			return nil, f.keyError(key, "look for a key", err)
		}
		if known {
			continue
		}
		if err := f.refuseTextAsNumber(key); err != nil {
			return nil, err
		}
		unknown = append(unknown, key)
	}
	return unknown, nil
}

// refuseTextAsNumber refuses text for a column that SQLite declares as an integer. Such a column can hold text but
// hardly ever does, and the row id never does. So the key is more likely a mistake.
func (f *Recorder) refuseTextAsNumber(key feedtype.Key) error {
	for i, c := range f.Record.Load().Key {
		text, ok := key[i].(string)
		if !ok || c.Kind != feedtype.Dynamic || !strings.Contains(strings.ToUpper(c.Type), "INT") {
			continue
		}
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return &feedtype.Error{
				Code:   feedtype.InvalidRequest,
				Param:  "key",
				Object: feedtype.FeedObject(f.Name),
				Cause: fmt.Sprintf(
					"%q is not a number, column %q is declared for numbers, and no row has it",
					text,
					c.Name,
				),
				Next: "write the key as entries show it",
			}
		}
	}
	return nil
}

// isKnown returns true if a key has a row or a position. It compares the values without conversions, as RecordKeys
// writes them.
func (f *Recorder) isKnown(ctx context.Context, key feedtype.Key) (bool, error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	has := func(refs []string) dialect.Built {
		return func(b *dialect.Builder) string {
			conditions := make([]string, len(key))
			for i, c := range feed.Key {
				conditions[i] = refs[i] + c.Collate + c.Operator("=") + b.Arg(key[i])
			}
			return strings.Join(conditions, " AND ")
		}
	}
	var n int64
	err := dialect.One(ctx, f.Store.On(), d.Syntax, f.Statement(statements, "count_of_key"), dialect.Args{
		"has_row": has(dialect.KeyRefs(d.Syntax, feed, "x")), "has_position": has(
			dialect.StoredRefs(d.Syntax, feed, "x"))}, &n)
	return n > 0, err
}

// InOwnTx runs fn in a new transaction, with retries, and wakes this process's publisher after the commit.
func (f *Recorder) InOwnTx(ctx context.Context, fn func(dialect.Querier) error) error {
	err := f.Store.InTx(ctx, dialect.ForRecord, "record changes of "+f.Name, fn)
	if err != nil {
		return f.Explain(ctx, "record changes", err)
	}
	f.Wake()
	return nil
}
