package rowfeed

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// noULIDs is a query, from its FROM on, for the rows (t) of a feed's table that hold no ULID, or
// no shard; empty where the types of the columns allow no other.
func noULIDs(d dialect.Dialect, feed *dialect.Feed) string {
	if where := d.NoULID(feed.ULIDs, "t"); where != "" && !feed.Outbox {
		return " FROM " + dialect.Qualified(d, feed.Source) + " t WHERE " + where
	}
	return ""
}

// findThem is the next step for whoever has such rows.
func findThem(d dialect.Dialect, feed *dialect.Feed) string {
	where := d.NoULID(feed.ULIDs, "")
	return "find such rows with SELECT * FROM " + dialect.Qualified(d, feed.Source) + " WHERE " + where +
		", give them what they lack or delete them, and keep others out with a CHECK: docs/ULIDS.md has it"
}

// mustHoldULIDs refuses a table with rows that no page could show.
func (db *DB) mustHoldULIDs(ctx context.Context, q dialect.Querier, r *catalog.Record) error {
	feed := r.Feed(db.store.Names)
	from := noULIDs(db.store.Dialect, feed)
	if from == "" {
		return nil
	}
	var n int64
	if err := dialect.QueryRow(ctx, q, "SELECT count(*)"+from, nil, &n); err != nil || n == 0 {
		return err
	}
	return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", r.Source.String()),
		Cause: fmt.Sprintf("in %d of its rows %q holds no ULID of 16 bytes, or %q no integer", n, r.ULIDs.Position.Name, r.ULIDs.Shard.Name), Next: findThem(db.store.Dialect, feed)}
}

// holdsNone is the error of a page, or a lock, that has come upon such a row.
func (f *Feed) holdsNone(shard int, err error) error {
	feed := f.catalog.DialectFeed()
	return &feedtype.Error{Code: feedtype.Failed, Object: fmt.Sprintf("feed %q, shard %d", f.name, shard), Cause: fmt.Sprintf("a row of table %s holds no ULID in %q", feed.Source, feed.ULIDs.Position.Name), Err: err,
		Next: findThem(f.db.store.Dialect, feed) + "; `rowfeed check " + f.name + "` names their keys"}
}

// ulidsNow is the feed with its columns as the table has them now, whose types may be others than
// when it was made; nil where they hold no ULIDs any more, which Verify tells.
func (f *Feed) ulidsNow(ctx context.Context) (*dialect.Feed, error) {
	feed, r := f.catalog.DialectFeed(), f.catalog.Record.Load()
	if feed.Outbox {
		return feed, nil
	}
	table, err := catalog.DescribeSource(ctx, f.db.store, f.db.store.On(), r)
	if err != nil {
		return nil, err
	}
	position, shard := table.Kept(r.ULIDs.Position.Name), table.Kept(r.ULIDs.Shard.Name)
	if position == nil || shard == nil || !catalog.HoldsIntegers(shard) || f.db.store.Dialect.ULIDProblem(position) != "" {
		return nil, nil
	}
	feed.ULIDs = &dialect.ULIDColumns{Position: *position, Shard: *shard}
	return feed, nil
}

// checkULIDs finds such rows.
func (f *Feed) checkULIDs(ctx context.Context, feed *dialect.Feed) (findings []Finding, err error) {
	from := noULIDs(f.db.store.Dialect, feed)
	if from == "" {
		return nil, nil
	}
	err = f.db.store.InTx(ctx, dialect.ForCheck, "check "+f.name, func(tx dialect.Querier) (err error) {
		findings, err = f.findKeys(ctx, tx, dialect.KeyRefs(f.db.store.Dialect, feed, "t"), from, nil, Finding{Rule: ruleBytes,
			Problem: fmt.Sprintf("%q holds no ULID of 16 bytes, or %q no integer: pages fail, or pass it over. Give it what it lacks, or delete it", feed.ULIDs.Position.Name, feed.ULIDs.Shard.Name)})
		return err
	})
	return findings, err
}
