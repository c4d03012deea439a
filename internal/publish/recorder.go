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

// recorder records, in the transactions of writers, that keys were written. It is safe for concurrent use.
type Recorder struct {
	*catalog.Feed
	Wake func() // has this process's publisher look at once

	appends atomic.Pointer[appending]
}

// ByKey refuses what is done to keys one by one to a feed of a table that is only appended to.
func (f *Recorder) ByKey(doing string) error {
	r := f.Record.Load()
	switch {
	case r.Unreadable != nil || r.Mode == feedtype.ModeSequence:
		return r.Unreadable
	case r.Mode == feedtype.ModeOutbox:
		feed := r.Feed(f.Store.Names)
		return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: doing + ": its rows are only appended, and have their places by records", Err: errors.ErrUnsupported,
			Next: fmt.Sprintf("append a record of a row, which moves it to the head and has it delivered once more: INSERT INTO %s (shard, %s) VALUES …", feed.Records(), strings.Join(feed.StoredKey(), ", "))}
	}
	return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: doing + ": its rows are only appended, and hold their positions themselves", Err: errors.ErrUnsupported,
		Next: "insert a row that says what has changed"}
}

// Delete deletes, inside the caller's transaction, the row of a key, and has the
// delete published. With capture "trigger" it is an ordinary DELETE. A key without a
// row is no error, and nothing is recorded.
func (f *Recorder) Delete(ctx context.Context, tx dialect.Querier, key feedtype.Key) error {
	if err := f.ByKey("delete"); err != nil {
		return err
	}
	if err := f.checkKey(key); err != nil {
		return err
	}
	for _, statement := range f.DeleteSQL() {
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

// DeleteSQL are the statements of Delete, for writers in other languages: to be run in
// one transaction, each with the key's values as parameters. There are none of a feed with ULIDs,
// whose readers are told of no delete.
func (f *Recorder) DeleteSQL() []string {
	feed := f.DialectFeed()
	if feed.ULIDs != nil {
		return []string{}
	}
	return f.Store.Dialect.DeleteRow(feed)
}

func (f *Recorder) RecordKeys(ctx context.Context, tx dialect.Querier, kind dialect.ChangeKind, keys []feedtype.Key) error {
	if err := f.ByKey("record changes"); err != nil {
		return err
	}
	first := f.appending().change
	for _, key := range keys {
		if err := f.checkKey(key); err != nil {
			return err
		}
		b := dialect.NewBuilder(f.Store.Dialect)
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
func (f *Recorder) checkKey(key feedtype.Key) error {
	columns := f.Record.Load().Key
	if len(key) != len(columns) {
		return feedtype.Invalid("key", "%v has %d values, the feed's key (%s) has %d", key, len(key), strings.Join(catalog.KeyNames(columns), ", "), len(columns))
	}
	for i, v := range key {
		if v == nil {
			return feedtype.Invalid("key", "column %q of a key cannot be NULL", columns[i].Name)
		}
	}
	return nil
}

// keyError says so when it was the key that the database did not take.
func (f *Recorder) keyError(key feedtype.Key, doing string, err error) error {
	if f.Store.Dialect.Classify(err) == dialect.ClassInvalid {
		return &feedtype.Error{Code: feedtype.InvalidRequest, Param: "key", Object: feedtype.FeedObject(f.Name), Cause: fmt.Sprintf("key %v is no value of (%s)", key, keyDecl(f.Record.Load().Key)), Err: err}
	}
	return f.Fail(doing, err)
}

// UnknownKeys answers those of the keys of which the feed has neither a row nor a
// position, so that nothing comes of republishing or unpublishing them. A key that no
// row can have is an error with code InvalidRequest.
func (f *Recorder) UnknownKeys(ctx context.Context, keys ...feedtype.Key) ([]feedtype.Key, error) {
	if err := f.ByKey("look for keys"); err != nil {
		return nil, err
	}
	var unknown []feedtype.Key
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
		for i, c := range f.Record.Load().Key {
			// Where types belong to values, a column declared for integers holds text all the
			// same, but hardly ever; one that is the row's number never does.
			text, ok := key[i].(string)
			if _, err := strconv.ParseFloat(text, 64); ok && err != nil && c.Kind == feedtype.Dynamic && strings.Contains(strings.ToUpper(c.Type), "INT") {
				return nil, &feedtype.Error{Code: feedtype.InvalidRequest, Param: "key", Object: feedtype.FeedObject(f.Name),
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
func (f *Recorder) knows(ctx context.Context, key feedtype.Key) (bool, error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
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
	err := dialect.QueryRow(ctx, f.Store.On(), "SELECT "+rows+" + "+positions, b.Args(), &n)
	return n > 0, err
}

// InOwnTx runs fn in a transaction of its own, with retries, and wakes the
// publisher of this process afterwards.
func (f *Recorder) InOwnTx(ctx context.Context, fn func(dialect.Querier) error) error {
	err := f.Store.InTx(ctx, dialect.ForRecord, "record changes of "+f.Name, fn)
	if err != nil {
		return f.Explain(ctx, "record changes", err)
	}
	f.Wake()
	return nil
}
