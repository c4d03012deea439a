package ulidfeed

import (
	"context"
	"database/sql"
	_ "embed" // for ulidfeed.sql
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/gap"
	"github.com/rowfeed/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/internal/store"
)

//go:embed ulidfeed.sql
var file string

var statements = dialect.NewStatements(file)

// Shards lists the shards of one feed with ULIDs, and selects the shard of a page. It is the read.Pager of mode
// "blocking".
type Shards struct {
	*catalog.Feed
	Gaps   *gap.Tracker
	Reader *read.Reader
}

// wholeShards lists the first shards that a request for the whole feed means. It is served if there is only one. In
// mode "blocking" a shard without rows does not count if another shard has rows: it may have been locked by hand. But
// the cursor may belong to a shard whose rows are gone. So it has to be a row's position in the shard with rows, or be
// below all of them.
func (f *Shards) wholeShards(ctx context.Context, after feedtype.Position) ([]int, error) {
	shards, err := f.shardIDs(ctx, maxShardsNamed+1)
	feed := f.DialectFeed()
	if err != nil || len(shards) < 2 || feed.Outbox { // a shard of an outbox exists only with records
		return shards, err
	}
	d := f.Store.Dialect
	with, err := dialect.All(ctx, f.Store.On(), d.Syntax, f.Statement(statements, "shards_with_rows"),
		dialect.Args{"feed": f.Name}, scanShardID)
	if err != nil || len(with) != 1 {
		return shards, f.Fail("look which shards have rows", err)
	}
	if !after.IsZero() && after != feedtype.LastPosition {
		passed, err := dialect.PassedULID(ctx, f.Store.On(), d.Syntax, feed, with[0], after)
		if err == nil && !passed.Valid {
			return with, nil
		}
		if err != nil || passed.Position != after {
			return shards, f.Fail("look for the cursor's row", err)
		}
	}
	return with, nil
}

// maxShardsNamed is how many shards an error lists.
const maxShardsNamed = 20

// EachShard calls do for every shard that has rows, in descending order, with the greatest ULID of the shard. It reads
// one entry of each shard through the unique index: the table may be large, and only some databases find distinct
// values in this way by themselves.
func EachShard(
	ctx context.Context, d *dialect.Dialect, q dialect.Querier, feed *dialect.Feed,
	do func(shard int, last feedtype.Position) error,
) error {
	for below := (*int)(nil); ; {
		shard, last, err := dialect.LastShard(ctx, q, d.Syntax, feed, below)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = do(shard, last)
		}
		if err != nil {
			return err
		}
		below = &shard
	}
}

// Select selects the requested shard, or the only shard of the feed.
func (f *Shards) Select(ctx context.Context, _ *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	if shard, one := s.Single(); one {
		q.Shard = shard
		return nil
	}
	shards, err := f.wholeShards(ctx, q.After)
	switch {
	case err != nil:
		return err
	case !s.All():
		return f.perShard(shards, "the feed cannot be read in parts, since each of its shards is a feed by itself")
	case len(shards) > 1:
		return f.perShard(shards, "the feed has more than one shard, and each is a feed by itself")
	case len(shards) == 1:
		q.Shard = shards[0]
	}
	return nil
}

func (f *Shards) perShard(shards []int, cause string) error {
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
	return &feedtype.Error{
		Code:   feedtype.InvalidRequest,
		Param:  "shard",
		Object: feedtype.FeedObject(f.Name),
		Cause:  "shard: " + cause,
		Next:   "name one shard, and keep a cursor for each",
	}
}

func scanShardID(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) }

// shardIDs lists the first shards of the feed, in ascending order. A shard in which no ULID was given does not count.
func (f *Shards) shardIDs(ctx context.Context, limit int) ([]int, error) {
	name, feed := "shards_with_ulids", f.DialectFeed()
	if feed.Outbox {
		name = "shards"
	}
	var waits []int
	var err error
	if feed.Outbox { // asked first: a record that is moved meanwhile is then in one of both lists
		var waiting bool
		among := f.Gaps.ScanShard().Among
		if waiting, err = f.Store.Dialect.HasRecords(ctx, f.Store.On(), feed, among); waiting {
			waits, err = recordShards(ctx, f.Feed, among, limit)
		}
	}
	var shards []int
	if err == nil {
		shards, err = store.All(ctx, f.Store, f.Store.On(), statements, name,
			dialect.Args{"feed": f.Name, "count": limit}, scanShardID)
	}
	if len(waits) > 0 {
		shards = append(shards, waits...)
		slices.Sort(shards)
		shards = slices.Compact(shards)
		shards = shards[:min(len(shards), limit)]
	}
	if shards == nil {
		shards = []int{} // nil is for feeds whose shards are not feeds
	}
	return shards, f.Fail("list its shards", err)
}

// Accepts returns true for ULIDs.
func (*Shards) Accepts(p feedtype.Position) bool { return p.IsULID() }

// At finds the cursor for a time. Every ULID begins with its time, so no row is read except the greatest ULID, which is
// the upper bound.
func (f *Shards) At(ctx context.Context, t time.Time, s feedtype.Shards) (feedtype.CursorState, error) {
	page, _, err := f.Reader.ReadPage(ctx, dialect.PageQuery{After: feedtype.LastPosition, Limit: 1, MaxBytes: 1}, s)
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

// List adds the shards to a description of the feed. It returns the shard that a request for the whole feed means, if
// there is only one.
func (f *Shards) List(ctx context.Context, info *feedtype.Info) (only *int, err error) {
	shards, err := f.shardIDs(ctx, feedtype.MaxShardIDs+1)
	if info.MoreShardIDs = len(shards) > feedtype.MaxShardIDs; info.MoreShardIDs {
		shards = shards[:feedtype.MaxShardIDs]
	}
	if info.ShardIDs = shards; err != nil || len(shards) == 0 {
		return nil, err
	}
	whole, err := f.wholeShards(ctx, feedtype.Position{})
	if err != nil || len(whole) != 1 {
		return nil, err
	}
	return &whole[0], nil
}

// MoveWaiting does nothing: a committed row is an entry.
func (*Shards) MoveWaiting(context.Context, int, int) (stuck bool, err error) { return false, nil }

// ShardsPerStatement is how many shards one statement names.
const ShardsPerStatement = 100

// ShardsWithRecords returns those of the given shards (nil: of all shards) that have records in the outbox. It ignores
// errors, since the feed may have been dropped: waiting readers are also woken in other ways.
func (f *Shards) ShardsWithRecords(ctx context.Context, shards []int) (filled []int) {
	if !f.DialectFeed().Outbox {
		return nil
	}
	among := f.Gaps.ScanShard().Among
	if shards == nil {
		waiting, err := f.Store.Dialect.HasRecords(ctx, f.Store.On(), f.DialectFeed(), among)
		if err == nil && waiting {
			filled, _ = recordShards(ctx, f.Feed, among, 0)
		}
		return filled
	}
	for part := range slices.Chunk(shards, ShardsPerStatement) {
		waiting, err := f.Store.Dialect.HasRecords(ctx, f.Store.On(), f.DialectFeed(), among, part...)
		if err == nil && waiting && len(part) > 1 {
			err = f.Read(ctx, "read the outbox", func(q dialect.Querier) (err error) {
				query := dialect.FirstRecords(f.Store.Dialect.Syntax, f.DialectFeed(), among, part...)
				part, err = dialect.QueryAll(ctx, q, query, nil, scanShardID)
				return err
			})
		}
		if err == nil && waiting {
			filled = append(filled, part...)
		}
	}
	return filled
}

// OutboxPager is the read.Pager of a feed with an outbox.
type OutboxPager struct {
	*Shards
	Outbox *Outbox
}

// Select restricts the query to one shard. It also names the states of the feed in which back-fill places rows, because
// the page may then have to be refused.
func (p OutboxPager) Select(ctx context.Context, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	q.Unserved, q.Among = catalog.Unfilled, p.Gaps.ScanShard().In(l.Generation)
	return p.Shards.Select(ctx, l, q, s)
}

// MoveWaiting moves records for a reader.
func (p OutboxPager) MoveWaiting(ctx context.Context, shard, limit int) (stuck bool, err error) {
	return p.Outbox.MoveWaiting(ctx, shard, limit)
}
