package rowfeed

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// planColumns decides which columns capture "column" adds to the table, and refuses
// tables that it cannot have or, with Adopt, does not find as it should.
func planColumns(r *catalog.Record, table *dialect.Table) error {
	if r.Capture != dialect.CaptureColumn {
		return nil
	}
	refuse := func(next, format string, args ...any) error {
		return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", table.Name.String()), Cause: fmt.Sprintf(format, args...), Next: next}
	}
	if len(table.OnUpdate) > 0 && !r.AcceptTriggers {
		return refuse("limit them to the columns that they are about (UPDATE OF …, on PostgreSQL and SQLite), or accept with --accept-triggers that they run once more for every position given",
			"publishing updates rows, and these triggers fire for that: %s", strings.Join(table.OnUpdate, ", "))
	}
	feed := r.Feed(dialect.Names{})
	r.Added = feed.Lacking(table)
	position, shard := table.Kept(dialect.PositionColumn), table.Kept(dialect.ShardColumn)
	number := func(c *dialect.Column) bool { return c.Kind == feedtype.Integer || c.Kind == feedtype.Dynamic }
	switch {
	case !r.Adopt && position != nil:
		return refuse("keep its positions with --adopt, or rename it", "it has a column %s already", dialect.PositionColumn)
	case !r.Adopt && shard != nil:
		return refuse("rename it", "it has a column %s already", dialect.ShardColumn)
	case r.Adopt && position == nil:
		return refuse("leave --adopt out: rowfeed adds the column", "it has no column %s to adopt", dialect.PositionColumn)
	case position != nil && position.PositionProblem() != "":
		return refuse("", "its column %s %s", position.Name, position.PositionProblem())
	case shard != nil && !number(shard):
		return refuse("rename it", "its column %s is %s, and no integer", dialect.ShardColumn, shard.Type)
	}
	return firstError(holdsExactKeys(r), holdsShards(r, table))
}

// holdsExactKeys refuses capture "column" where one key can be spelled in two ways. There the
// row itself is all that rowfeed has of a key. When an UPDATE changes the spelling, nothing is
// left of the one that readers know, so they could never be told of its delete.
func holdsExactKeys(r *catalog.Record) error {
	for _, c := range r.Key {
		if r.Capture == dialect.CaptureColumn && !c.Exact {
			return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", r.Source.String()),
				Cause: fmt.Sprintf("capture column cannot follow key column %q (%s): its values can be equal although their text differs",
					c.Name, cmp.Or(strings.TrimSpace(c.Decl+c.Collate), "no type")),
				Next: "use --capture trigger, or name a unique index of other columns with --key, or give the column a type or collation " +
					"in which equal values have the same text"}
		}
	}
	return nil
}

// leaveOurs takes the triggers of rowfeed's own feeds out of those that fire for the
// publisher: they record the row once more, for a feed of theirs, and change nothing.
func (db *DB) leaveOurs(ctx context.Context, q dialect.Querier, table *dialect.Table) error {
	if len(table.OnUpdate) == 0 {
		return nil
	}
	all, err := catalog.Load(ctx, db.store, q, "")
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.State == catalog.StateDropped || r.Capture != dialect.CaptureTrigger {
			continue
		}
		ours := db.store.Dialect.TriggerNames(r.Feed(db.store.Names))
		table.OnUpdate = slices.DeleteFunc(table.OnUpdate, func(name string) bool { return slices.Contains(ours, name) })
	}
	return nil
}

// mustBeAlone refuses a second feed that would keep its positions in the same rows.
func (db *DB) mustBeAlone(ctx context.Context, q dialect.Querier, r *catalog.Record) error {
	if r.Capture != dialect.CaptureColumn && r.Capture != dialect.CaptureNone {
		return nil
	}
	all, err := catalog.Load(ctx, db.store, q, "")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(other *catalog.Record) bool {
		return other.Name != r.Name && other.State != catalog.StateDropped && other.Capture == r.Capture && other.Source == r.Source
	})
	if i < 0 {
		return nil
	}
	return &feedtype.Error{Code: feedtype.Conflict, Object: fmt.Sprintf("table %q", r.Source.String()), Cause: fmt.Sprintf("its rows hold the positions of feed %q", all[i].Name),
		Next: "read that one, or make the second feed with --capture trigger"}
}

// placeRows gives positions to rows that wait, with capture "column", and answers how
// many. It goes round: after a full batch the next one begins behind its last key, so
// that rows which are written all the time do not keep others waiting.
func (f *Feed) placeRows(ctx context.Context, tx dialect.Querier, r *catalog.Record, base int64, limit int) (int, error) {
	feed, generation := r.Feed(f.db.store.Names), r.Generation
	if !feed.InRows() {
		return 0, nil
	}
	after := f.takeTurn(generation)
	shard := r.Sharder()
	n, last, err := f.db.store.Dialect.PlaceRows(ctx, tx, feed, after, limit, base, shard)
	if err == nil && after != nil && n < limit {
		var rest int
		var lastOfRest []any
		rest, lastOfRest, err = f.db.store.Dialect.PlaceRows(ctx, tx, feed, nil, limit-n, base+int64(n), shard)
		if n += rest; rest > 0 {
			last = lastOfRest
		}
	}
	if err != nil {
		return 0, err
	}
	if n < limit {
		last = nil // whatever nobody holds was taken
		if err := f.tellSkipped(ctx, tx, feed, limit); err != nil {
			return 0, err
		}
	}
	// Should this transaction fail, its rows come when the round is over.
	f.mu.Lock()
	f.turn = turn{generation, last}
	f.mu.Unlock()
	if n == 0 {
		return 0, nil
	}
	var stand int64
	b := dialect.NewBuilder(f.db.store.Dialect)
	err = dialect.QueryRow(ctx, tx, "SELECT count(*) FROM "+dialect.Qualified(f.db.store.Dialect, feed.Source)+" WHERE feed_sync_id > "+b.Arg(base)+" AND feed_sync_id <= "+b.Arg(base+int64(n)),
		b.Args(), &stand)
	if err == nil && stand > int64(n) {
		return n, &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", feed.Source.String()), Cause: fmt.Sprintf("%d of its rows have a feed_sync_id above the feed's sequence: a former publisher still runs, or another program writes the column", stand-int64(n)),
			Next: "stop it, then run `rowfeed repair " + f.name + "`, which has such rows published anew"}
	}
	if err == nil && stand < int64(n) {
		err = &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", feed.Source.String()), Cause: fmt.Sprintf("of %d rows that were given a feed_sync_id only %d kept it: a trigger resets it, and they would be published again and again", n, stand),
			Next: "let the trigger leave feed_sync_id alone when nothing else changes"}
	}
	return n, err
}

// tellSkipped counts, after a round, the rows that wait still: others have them locked.
func (f *Feed) tellSkipped(ctx context.Context, tx dialect.Querier, feed *dialect.Feed, limit int) error {
	if f.db.cfg.Observer.Skipped == nil {
		return nil
	}
	b := dialect.NewBuilder(f.db.store.Dialect)
	var rows int
	err := dialect.QueryRow(ctx, tx, "SELECT count(*) FROM (SELECT 1 FROM "+dialect.Qualified(f.db.store.Dialect, feed.Source)+
		" WHERE "+dialect.PositionColumn+" IS NULL LIMIT "+b.Arg(limit)+") x", b.Args(), &rows)
	if err == nil && rows > 0 {
		f.db.cfg.Observer.Skipped(feedtype.SkipEvent{Feed: f.name, Rows: rows})
	}
	return err
}

// turn is the key behind which the next batch of rows begins, of a feed's generation:
// dropped and added again, it may have another key.
type turn struct {
	generation int64
	after      []any
}

// takeTurn answers the key behind which the next batch begins. It is forgotten at once,
// so that one which the database does not take (the key's type may be another by now)
// fails one pass and no second.
func (f *Feed) takeTurn(generation int64) []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.turn
	f.turn = turn{}
	if t.generation != generation {
		return nil
	}
	return t.after
}

// resetRows takes positions that cannot be theirs from rows, so that they are
// published anew, and answers how many.
func (f *Feed) resetRows(ctx context.Context, tx dialect.Querier) (int64, error) {
	feed := f.catalog.DialectFeed()
	if !feed.InRows() {
		return 0, nil
	}
	b := dialect.NewBuilder(f.db.store.Dialect)
	return f.db.store.Dialect.ResetRows(ctx, tx, feed, "t.feed_sync_id < 1 OR t.feed_sync_id > (SELECT value FROM "+f.db.store.Table("sequences")+" WHERE name = "+b.Arg(f.name)+
		") OR t.feed_sync_id IN (SELECT feed_sync_id FROM ("+f.sharedPositions(feed)+") shared)", b.Args())
}

// sharedPositions is a query for the positions that more than one key has.
func (f *Feed) sharedPositions(feed *dialect.Feed) string {
	from := dialect.Qualified(f.db.store.Dialect, feed.Positions())
	if feed.InRows() {
		from = "(SELECT feed_sync_id FROM " + from + " UNION ALL SELECT feed_sync_id FROM " + dialect.Qualified(f.db.store.Dialect, feed.Source) + " WHERE feed_sync_id IS NOT NULL) x"
	}
	return "SELECT feed_sync_id FROM " + from + " GROUP BY feed_sync_id HAVING count(*) > 1"
}

// Delete deletes, inside the caller's transaction, the row of a key, and has the
// delete published. With capture "trigger" it is an ordinary DELETE. A key without a
// row is no error, and nothing is recorded.
func (f *Feed) Delete(ctx context.Context, tx Tx, key Key) error {
	if err := f.mode().keys(f, "delete"); err != nil {
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
func (f *Feed) DeleteSQL() []string {
	feed := f.catalog.DialectFeed()
	if feed.ULIDs != nil {
		return []string{}
	}
	return f.db.store.Dialect.DeleteRow(feed)
}
