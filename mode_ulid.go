package rowfeed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// blocking is the mode whose positions are ULIDs that writers take, see Feed.Lock. Every
// shard is a feed by itself. There is nothing to publish: a row is an entry when its
// transaction has been committed.
type blocking struct{}

// maxShardsNamed is how many shards a refusal lists.
const maxShardsNamed = 20

func (m blocking) complete(d dialect.Dialect, r *catalog.Record, spec FeedSpec, table *dialect.Table) error {
	columns, problems := catalog.UlidColumns(d, table, spec.PositionColumn, spec.ShardColumn)
	if len(problems) > 0 {
		return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", table.Name.String()), Cause: problems[0].What, Next: problems[0].Next}
	}
	r.ULIDs, r.ShardColumn = columns, columns.Shard.Name // as the table has it
	return nil
}

func (blocking) up(db *DB, r *catalog.Record, _ *dialect.Table) ([]dialect.Step, error) {
	return db.store.Dialect.ULIDUp(r.Feed(db.store.Names)), nil
}

func (blocking) down(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record, _ *dialect.Table) error {
	if err := run(ctx, q, db.store.Dialect.ULIDDown(r.Feed(db.store.Names))); err != nil {
		return err
	}
	return db.forgetShards(ctx, q, r)
}

// forgetShards removes the states of a feed's shards.
func (db *DB) forgetShards(ctx context.Context, q dialect.Querier, r *catalog.Record) error {
	b := dialect.NewBuilder(db.store.Dialect)
	_, err := q.Exec(ctx, "DELETE FROM "+db.store.Table("shards")+" WHERE feed = "+b.Arg(r.Name), b.Args()...)
	return err
}

// admit refuses ULIDs of a time that has not come: whatever is taken later is above them, and
// would be of that time for ever. Random UUIDs look like such.
func (blocking) admit(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record) error {
	if err := db.mustHoldULIDs(ctx, q, r); err != nil {
		return err
	}
	var now int64
	if err := dialect.QueryRow(ctx, q, "SELECT "+db.store.Dialect.Now(), nil, &now); err != nil {
		return err
	}
	latest := now/1000 + dialect.MaxHintAhead.Milliseconds()
	return eachShard(ctx, db.store.Dialect, q, r.Feed(db.store.Names), func(shard int, last feedtype.Position) error {
		if ms := int64(last.High >> 16); ms > latest {
			return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", r.Source.String()),
				Cause: fmt.Sprintf("shard %d has a row with ULID %s (bytes %016x%016x), which is of %s, more than a minute ahead of the database's clock", shard, last, last.High, last.Low, time.UnixMilli(ms).UTC().Format(time.RFC3339)),
				Next:  "random UUIDs are no ULIDs: such a table takes --mode outbox; of a table of ULIDs delete this row, or give it a ULID of its time"}
		}
		return nil
	})
}

// begin lets shards that have rows already go on above them.
func (blocking) begin(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record) (string, error) {
	err := eachShard(ctx, db.store.Dialect, q, r.Feed(db.store.Names), func(shard int, last feedtype.Position) error {
		state := dialect.ULIDsAbove(last)
		b := dialect.NewBuilder(db.store.Dialect)
		columns := []string{"feed", "shard", "time_ms", "ulid_high", "ulid_low", "witness"}
		values := []string{b.Arg(r.Name), b.Arg(shard), b.Arg(state.TimeMillis), b.Arg(state.High), b.Arg(state.Low), "''"}
		n, err := q.Exec(ctx, db.store.Dialect.InsertNew(db.store.Table("shards"), columns, values, columns[:2]), b.Args()...)
		if err != nil || n == 1 {
			return err
		}
		// One that is left over may be above the rows, or below them; the millisecond tells.
		b = dialect.NewBuilder(db.store.Dialect)
		_, err = q.Exec(ctx, "UPDATE "+db.store.Table("shards")+" SET time_ms = "+b.Arg(state.TimeMillis)+", ulid_high = "+b.Arg(state.High)+", ulid_low = "+b.Arg(state.Low)+
			" WHERE feed = "+b.Arg(r.Name)+" AND shard = "+b.Arg(shard)+" AND time_ms < "+b.Arg(state.TimeMillis), b.Args()...)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the ULIDs that are there: %w", err)
	}
	return catalog.StateActive, nil
}

// eachShard is told of every shard that rows have, in descending order, and of its greatest ULID.
// It goes from shard to shard by the unique index, and reads one entry of each: the table may
// be a large one, and only some databases find distinct values so by themselves.
func eachShard(ctx context.Context, d dialect.Dialect, q dialect.Querier, feed *dialect.Feed, do func(shard int, last feedtype.Position) error) error {
	for below := (*int)(nil); ; {
		b := dialect.NewBuilder(d)
		var shard int
		var last dialect.ScanULID
		err := dialect.QueryRow(ctx, q, dialect.LastShard(d, b, feed, below), b.Args(), &shard, &last)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = do(shard, last.Position)
		}
		if err != nil {
			return err
		}
		below = &shard
	}
}

func (blocking) verify(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record, table *dialect.Table) ([]string, error) {
	all, other, err := db.store.Dialect.ULIDProblems(ctx, q, r.Feed(db.store.Names))
	if err != nil {
		return nil, err
	}
	elsewhere, err := db.elsewhere(ctx, q, r)
	if err != nil {
		return nil, err
	}
	all = append(append(all, other...), elsewhere...)
	columns, problems := catalog.UlidsAgain(db.store.Dialect, table, r.ULIDs)
	for _, p := range problems {
		all = append(all, p.What+"; "+p.Next)
	}
	if columns != nil && !strings.EqualFold(columns.Position.Type, r.ULIDs.Position.Type) {
		all = append(all, fmt.Sprintf("position column %q is %s, and was %s when the feed was made", columns.Position.Name, columns.Position.Type, r.ULIDs.Position.Type))
	}
	return all, nil
}

func (blocking) rights(d dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right) {
	return d.LockRights(f), []dialect.Right{dialect.May("SELECT", f.Names.Table("sequences")), dialect.May("SELECT", f.Names.Table("shards"))}
}

// mend makes the functions anew; the table is its owner's. A function that answers another
// type takes no other's place.
func (blocking) mend(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record, table *dialect.Table) error {
	columns, problems := catalog.UlidsAgain(db.store.Dialect, table, r.ULIDs)
	if len(problems) > 0 {
		return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", table.Name.String()), Cause: problems[0].What, Next: problems[0].Next}
	}
	if columns.Position.Type != r.ULIDs.Position.Type {
		if err := run(ctx, q, db.store.Dialect.ULIDDown(r.Feed(db.store.Names))); err != nil {
			return err
		}
	}
	r.ULIDs = columns
	return run(ctx, q, db.store.Dialect.ULIDUp(r.Feed(db.store.Names)))
}

// part is one shard: the one that is asked for, or the only one that there is.
func (m blocking) part(ctx context.Context, f *Feed, _ *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	if shard, one := s.Single(); one {
		q.Shard = shard
		return nil
	}
	shards, err := f.wholeShards(ctx, q.After)
	switch {
	case err != nil:
		return err
	case !s.All():
		return m.perShard(f, shards, "a part of its shards cannot be asked for")
	case len(shards) > 1:
		return m.perShard(f, shards, "it has more than one shard, and each is a feed by itself")
	case len(shards) == 1:
		q.Shard = shards[0]
	}
	return nil
}

func (blocking) perShard(f *Feed, shards []int, cause string) error {
	names := make([]string, 0, len(shards))
	for _, shard := range shards[:min(len(shards), maxShardsNamed)] {
		names = append(names, fmt.Sprint(shard))
	}
	if len(shards) > maxShardsNamed {
		names = append(names, "…")
	}
	if len(names) > 0 {
		cause += ": " + strings.Join(names, ", ")
	}
	return &feedtype.Error{Code: feedtype.InvalidRequest, Param: "shard", Object: feedtype.FeedObject(f.name), Cause: "shard: " + cause, Next: "name one shard, and keep a cursor for each"}
}

func scanShardID(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) }

// shardIDs are the first shards of the feed, in ascending order. One that has given nothing is none.
func (f *Feed) shardIDs(ctx context.Context, limit int) ([]int, error) {
	b := dialect.NewBuilder(f.db.store.Dialect)
	query, feed := "SELECT shard FROM "+f.db.store.Table("shards")+" WHERE feed = "+b.Arg(f.name), f.catalog.DialectFeed()
	if !feed.Outbox {
		query += " AND time_ms <> 0"
	}
	var waits []int
	var err error
	if feed.Outbox { // what was not moved yet is of a shard, too, and, asked for first, in one list or the other
		var waiting bool
		among := f.glance().among
		if waiting, err = f.db.store.Dialect.HasRecords(ctx, f.db.store.On(), feed, among); waiting {
			waits, err = f.recordShards(ctx, among, limit)
		}
	}
	var shards []int
	if err == nil {
		shards, err = dialect.QueryAll(ctx, f.db.store.On(), query+" ORDER BY shard LIMIT "+b.Arg(limit), b.Args(), scanShardID)
	}
	if len(waits) > 0 {
		shards = append(shards, waits...)
		slices.Sort(shards)
		shards = slices.Compact(shards)
		shards = shards[:min(len(shards), limit)]
	}
	if shards == nil {
		shards = []int{} // of other feeds it is nil
	}
	return shards, f.db.store.Fail(feedtype.FeedObject(f.name), "list its shards", err)
}

func (blocking) takes(p feedtype.Position) bool { return p.IsULID() }

// placeAt is told by the time itself, which every ULID begins with, up to the greatest
// ULID that is there.
func (m blocking) placeAt(ctx context.Context, f *Feed, t time.Time, s feedtype.Shards) (feedtype.CursorState, error) {
	page, _, err := f.readPage(ctx, dialect.PageQuery{After: feedtype.LastPosition, Limit: 1, MaxBytes: 1}, s)
	if err != nil {
		return feedtype.CursorState{}, err
	}
	at := feedtype.CursorState{Generation: page.Generation, Position: page.Head.Max(page.EntriesBelow)}
	if ms := t.UnixMilli(); ms < 1 {
		at.Position = feedtype.Position{}
	} else if ms < 1<<48 {
		at.Position = at.Position.Min(feedtype.Position{High: uint64(ms) << 16}.Before())
	}
	if page.EntriesBelow == feedtype.LowestULID { // nothing was purged
		at.Position = at.Position.Max(page.EntriesBelow)
	}
	return at, nil
}

// head is that of the only shard; where there are more, each has its own.
func (m blocking) head(ctx context.Context, f *Feed, info *feedtype.Info) error {
	shards, err := f.shardIDs(ctx, feedtype.MaxShardIDs+1)
	if info.MoreShardIDs = len(shards) > feedtype.MaxShardIDs; info.MoreShardIDs {
		shards = shards[:feedtype.MaxShardIDs]
	}
	if info.ShardIDs = shards; err != nil || len(shards) == 0 {
		return err
	}
	whole, err := f.wholeShards(ctx, feedtype.Position{})
	if err != nil || len(whole) != 1 {
		return err
	}
	page, err := f.Fetch(ctx, feedtype.Request{After: feedtype.Now, Shards: feedtype.One(whole[0])})
	if info.Head = page.Cursor; errors.Is(err, feedtype.Filling) {
		return nil // there is none yet
	}
	return err
}

// backfill: a table has its ULIDs, or none.
func (blocking) backfill(context.Context, *Feed, *catalog.Record) (int64, error) {
	return 0, errRecordChanged
}

func (blocking) fill(context.Context, *Feed, int, int) error { return nil }

func (blocking) firstWaiting(*Feed) string { return "" }

func (blocking) pass(_ context.Context, f *Feed, _ int, _ bool) (feedtype.PublishEvent, error) {
	return feedtype.PublishEvent{Feed: f.name}, nil
}

func (blocking) publishVisible(context.Context, *Feed, int) error { return nil }

// asBefore: pages look by themselves; without a shard there is nothing to look at.
func (blocking) asBefore(context.Context, *Feed) error { return nil }

func (blocking) purge(context.Context, *Feed) (int, error) { return 0, nil }

func (blocking) keys(f *Feed, doing string) error {
	return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: doing + ": its rows are only appended, and hold their positions themselves", Err: errors.ErrUnsupported,
		Next: "insert a row that says what has changed"}
}

func (blocking) repair(_ context.Context, f *Feed) (int64, error) {
	return 0, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: "repair: its rows are only appended, and hold their positions themselves: there is nothing to record", Err: errors.ErrUnsupported,
		Next: "`rowfeed check " + f.name + "` says of each problem what to do"}
}

// check finds ULIDs that nobody can have been given: those above the state of their shard,
// which is read after them.
func (blocking) check(ctx context.Context, f *Feed) ([]Finding, error) {
	feed, err := f.ulidsNow(ctx)
	if feed == nil {
		return nil, err
	}
	findings, err := f.checkULIDs(ctx, feed)
	if err != nil || len(findings) > 0 { // what they hold cannot be compared
		return findings, f.settle(ctx, "check its ULIDs", err)
	}
	findings = []Finding{}
	d, q := f.db.store.Dialect, f.db.store.On()
	err = eachShard(ctx, d, q, feed, func(shard int, last feedtype.Position) error {
		b := dialect.NewBuilder(d)
		state, err := dialect.ScanShard(ctx, q, shard, dialect.ReadShard(d, b, feed, shard), b.Args())
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if given := state.Given(); last.Above(given) {
			findings = append(findings, Finding{Rule: ruleULID, Problem: fmt.Sprintf("shard %d has a row with ULID %s, and none above %s was given: it was taken under a savepoint that was rolled back, or made elsewhere. The next lock goes on above it, and nothing needs to be done but to mend who made it; whoever was shown it has passed what was written below it meanwhile", shard, last, given)})
		}
		return nil
	})
	return findings, f.settle(ctx, "check its ULIDs", err)
}
