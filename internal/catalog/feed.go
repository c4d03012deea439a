package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Feed is the handle of a feed that packages share: its record and the layout of its table. It runs nothing.
type Feed struct {
	Name  string
	Store *store.Store
	Gone  func() // called when the feed was found to be dropped
	// Diagnose returns why a statement failed, if the feed's table or rowfeed's objects for it are not as the statement
	// needs them. It returns nil if it finds nothing wrong.
	Diagnose func(ctx context.Context, doing string, err error) error
	Record   atomic.Pointer[FeedRecord]
	layout   atomic.Pointer[Layout]
}

// Generation is the feed's generation, as last read.
func (f *Feed) Generation() int64 { return f.Record.Load().Generation }

// Reload reads the feed's record again. If the feed was dropped it calls Gone and returns the code UnknownFeed.
func (f *Feed) Reload(ctx context.Context) error {
	records, err := Load(ctx, f.Store, f.Store.On(), f.Name)
	if err == nil && (len(records) == 0 || records[0].Gone()) {
		f.Gone()
		return &feedtype.Error{
			Code:   feedtype.UnknownFeed,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "there is no such feed",
			Next:   "`rowfeed feed list` shows the feeds, `rowfeed feed add` makes one",
		}
	}
	if err != nil {
		if f.Store.Dialect.Classify(err) == dialect.ClassUndefined {
			if err := f.Store.RequireSchema(ctx, f.Store.On()); err != nil {
				return err // rowfeed's own tables are missing
			}
		}
		return f.Store.Fail(feedtype.FeedObject(f.Name), "read its record", err)
	}
	f.SetRecord(records[0])
	f.layout.Store(nil)
	return records[0].Unreadable
}

// SetRecord makes r the present record. Do not change r afterwards: change a copy.
func (f *Feed) SetRecord(r *FeedRecord) {
	r.Keep(f.Store.Names)
	f.Record.Store(r)
}

// DialectFeed is the feed as the dialects know it, without delivered columns.
func (f *Feed) DialectFeed() *dialect.Feed { return f.Record.Load().Feed(f.Store.Names) }

// Statement returns a statement about the feed, of a package's file. It panics if there is none of this name.
func (f *Feed) Statement(file *dialect.Statements, name string) dialect.Statement {
	return file.For(f.Store.Dialect.Syntax, f.DialectFeed(), name)
}

// Describe reads the columns of the feed's table, and keeps the layout for CurrentLayout.
func (f *Feed) Describe(ctx context.Context, q dialect.Querier) (*Layout, error) {
	r := f.Record.Load()
	if r.Unreadable != nil { // an operator may have repaired it
		if err := f.Reload(ctx); err != nil {
			return nil, err
		}
		r = f.Record.Load()
	}
	table, err := DescribeSource(ctx, f.Store, q, r)
	if err != nil {
		return nil, err
	}
	feed := *r.Feed(f.Store.Names)
	l := &Layout{Generation: r.Generation, adopt: r.Adopt, Feed: &feed, Table: table}
	if slices.Contains(Unplaced, r.State) {
		l.Unplaced = r.State
	}
	l.Feed.Source = table.Name // with its schema, which a printed script leaves out
	for _, c := range r.Key {
		l.Key = append(l.Key, c.ForReaders())
	}
	if r.Mode == feedtype.ModeBlocking {
		if err := describeULIDs(f.Store.Dialect, l.Feed, table); err != nil {
			return nil, err
		}
	}
	l.Feed.Columns = l.Feed.Delivered(table)
	if r.Columns != nil {
		l.Feed.Columns = nil
		for _, name := range r.Columns {
			c := table.Column(name)
			if c == nil {
				return nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name),
					Cause: fmt.Sprintf("it delivers column %q, which table %s no longer has", name, r.Source),
					Next:  "add the column again, or drop the feed and add it with other --columns"}
			}
			l.Feed.Columns = append(l.Feed.Columns, *c)
		}
	}
	if err := r.MayBeSoWide(f.Store.Dialect, table); err != nil {
		return nil, r.BecameUnfit(err)
	}
	for _, c := range l.Feed.Columns {
		l.Columns = append(l.Columns, c.ForReaders())
	}
	l.Feed.Keep()
	f.layout.Store(l)
	return l, nil
}

// DescribeTable describes a table, and refuses a name without a table.
func DescribeTable(ctx context.Context, s *store.Store, q dialect.Querier, name feedtype.TableName) (
	*dialect.Table, error,
) {
	table, err := s.Dialect.Describe(ctx, q, name)
	if err != nil && s.Dialect.Classify(err) == dialect.ClassUndefined {
		e := &feedtype.Error{
			Code:   feedtype.Refused,
			Object: fmt.Sprintf("table %q", name.String()),
			Cause:  "it does not exist",
			Next:   `check the name and the schema; write names with dots or quotes as "schema"."table"`,
		}
		lower := feedtype.TableName{Schema: name.Schema, Name: strings.ToLower(name.Name)}
		if lower != name {
			if _, err := s.Dialect.Describe(ctx, q, lower); err == nil {
				e.Next = fmt.Sprintf("write %s: that table exists", lower)
			}
		}
		return nil, e
	}
	return table, s.Fail(fmt.Sprintf("table %q", name.String()), "describe", err)
}

// Moved searches for a feed's table that is not where the feed's record says. ok says that it was found in another
// schema.
func Moved(ctx context.Context, s *store.Store, q dialect.Querier, r *FeedRecord) (now feedtype.TableName, ok bool,
	err error) {
	if s.Dialect.Renames == nil {
		return now, false, nil
	}
	return s.Dialect.Renames.Moved(ctx, q, r.Feed(s.Names))
}

// DescribeSource describes a feed's table. It refuses a table that is missing or has lost a key column, because such a
// feed can neither be published nor read.
func DescribeSource(ctx context.Context, s *store.Store, q dialect.Querier, r *FeedRecord) (*dialect.Table, error) {
	gone := func(what, next string) (*dialect.Table, error) {
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(r.Name), Cause: what,
			Next: next + "; or run `rowfeed feed drop " + r.Name + "` and add a feed of the table as it is now"}
	}
	table, err := s.Dialect.Describe(ctx, q, r.Source)
	if err != nil && s.Dialect.Classify(err) == dialect.ClassUndefined {
		now, moved, err := Moved(ctx, s, q, r)
		if err != nil {
			return nil, err
		}
		if moved {
			return nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(r.Name),
				Cause: fmt.Sprintf("its table %s is table %s now", r.Source, now),
				Next:  "run `rowfeed feed upgrade " + r.Name + "`, which follows the table"}
		}
		return gone(fmt.Sprintf("its table %s is gone", r.Source),
			"give the table its name back, or this login a right on it")
	}
	if err != nil {
		return nil, s.Fail(feedtype.FeedObject(r.Name), "describe its table "+r.Source.String(), err)
	}
	for _, c := range r.Key {
		if table.Column(c.Name) == nil {
			return gone(fmt.Sprintf("its table %s has no key column %q any more", r.Source, c.Name),
				"give the column its name back, or this login a right on it")
		}
	}
	return table, nil
}

// CurrentLayout is the layout that was last described, or a new one after Reload.
func (f *Feed) CurrentLayout(ctx context.Context) (*Layout, error) {
	if l := f.layout.Load(); l != nil {
		return l, nil
	}
	return f.Describe(ctx, f.Store.On())
}
