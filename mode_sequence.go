package rowfeed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// sequenced is the mode whose positions a publisher gives.
type sequenced struct{}

func (sequenced) complete(_ dialect.Dialect, r *catalog.Record, spec FeedSpec, table *dialect.Table) error {
	if len(table.Untriggered) > 0 && spec.Capture == dialect.CaptureTrigger && !spec.AcceptUntriggered {
		return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", table.Name.String()), Cause: "some writes fire no trigger: " + strings.Join(table.Untriggered, "; "),
			Next: "remove the cascade, or accept with --accept-untriggered that only `rowfeed check` and `repair` find such writes"}
	}
	if c := r.ShardIndex(); r.ShardColumn != "" && (c < 0 || r.Key[c].Kind != feedtype.Integer && r.Key[c].Kind != feedtype.Dynamic) {
		return &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", table.Name.String()),
			Cause: fmt.Sprintf("%q is no integer column of the key (%s)", r.ShardColumn, strings.Join(keyNames(r.Key), ", ")),
			Next:  "`--shard-column` takes an integer column of the key; leave it out to have shards computed from the key"}
	}
	return nil
}

func (sequenced) admit(context.Context, *DB, dialect.Querier, *catalog.Record) error { return nil }

func (sequenced) up(db *DB, r *catalog.Record, table *dialect.Table) ([]dialect.Step, error) {
	return db.feedUp(r, table)
}

func (sequenced) down(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record, table *dialect.Table) error {
	return run(ctx, q, db.store.Dialect.FeedDown(r.Feed(db.store.Names), table))
}

func (sequenced) begin(_ context.Context, db *DB, _ dialect.Querier, r *catalog.Record) (string, error) {
	switch {
	case r.Adopt && r.DataShards > 1:
		return catalog.StateSharding, nil // rows that have a position have no shard of ours
	case r.Feed(db.store.Names).InRows():
		return catalog.StateActive, nil // rows without a position wait already
	}
	return catalog.StateFilling, nil
}

// backfill records the keys of rows as changes.
func (sequenced) backfill(ctx context.Context, f *Feed, r *catalog.Record) (n int64, err error) {
	err = f.db.store.InTx(ctx, dialect.ForRecord, "fill "+f.name, func(tx dialect.Querier) error {
		recorded, last, err := f.recordRange(ctx, tx, "", r.FillAfter, fillBatch, dialect.Changed)
		if err != nil {
			return err
		}
		n = recorded
		return f.filled(ctx, tx, r, last)
	})
	return n, err
}

func (sequenced) mend(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record, table *dialect.Table) error {
	steps, err := db.store.Dialect.Repair(ctx, q, r.Feed(db.store.Names), table)
	if err == nil {
		err = run(ctx, q, steps)
	}
	return err
}

// rights: writers who record their changes themselves, or delete rows that hold positions.
func (sequenced) rights(_ dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right) {
	if f.Capture != dialect.CaptureTrigger {
		writing = []dialect.Right{dialect.May("INSERT", f.Changes(), append(f.StoredKey(), "kind")...)}
	}
	return writing, []dialect.Right{dialect.May("SELECT", f.Names.Table("sequences")), dialect.May("SELECT", f.Positions())}
}

// verify adds to the dialect's findings what triggers do.
func (sequenced) verify(ctx context.Context, db *DB, q dialect.Querier, r *catalog.Record, table *dialect.Table) ([]string, error) {
	problems, err := db.store.Dialect.Verify(ctx, q, r.Feed(db.store.Names), table)
	if err != nil {
		return nil, err
	}
	if r.Capture == dialect.CaptureColumn && !r.AcceptTriggers {
		if err := db.leaveOurs(ctx, q, table); err != nil {
			return nil, err
		}
		for _, name := range table.OnUpdate {
			problems = append(problems, fmt.Sprintf("trigger %s fires for the publisher's UPDATE, too", name))
		}
	}
	return problems, nil
}

// part is a range of the data shards. A part without any data shard has no position.
func (sequenced) part(_ context.Context, _ *Feed, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	count := max(l.Feed.DataShards, 1)
	from, to, err := s.Range(count)
	switch {
	case err != nil:
		return err
	case l.Unplaced != "" && !s.All():
		return l.RefuseParts()
	case from == to:
		q.After = feedtype.LastPosition
	case to-from < count:
		q.From, q.To, q.Unserved = from, to, catalog.Unplaced
	}
	return nil
}

func (sequenced) takes(p feedtype.Position) bool { return !p.IsULID() }

// placeAt: the publisher's times never go back from one position to a higher one, so a
// binary search finds it in as many probes of the position's index as the head has bits.
// The place is good for every part.
func (sequenced) placeAt(ctx context.Context, f *Feed, t time.Time, _ feedtype.Shards) (feedtype.CursorState, error) {
	if f.Capture() == dialect.CaptureColumn {
		return feedtype.CursorState{}, &feedtype.Error{Code: feedtype.InvalidRequest, Param: "after", Object: feedtype.FeedObject(f.name), Cause: "with capture column nothing tells when a row was published",
			Next: `start at the beginning (after="") or at the head (after=now)`}
	}
	page, _, err := f.readPage(ctx, dialect.PageQuery{After: feedtype.LastPosition, Limit: 1, MaxBytes: 1}, feedtype.Shards{})
	if err != nil {
		return feedtype.CursorState{}, err
	}
	// Everything at or below low is too old; answer is the best candidate so far.
	low, high, answer := int64(0), page.Head.Number(), page.Head.Number()
	for low < high {
		middle := low + (high-low)/2
		position, publishedAt, err := f.publishedAbove(ctx, middle)
		switch {
		case errors.Is(err, store.ErrNoRows):
			high = middle
		case err != nil:
			return feedtype.CursorState{}, f.db.store.Fail(feedtype.FeedObject(f.name), "look for a time", err)
		case publishedAt >= t.UnixMicro():
			high, answer = middle, min(answer, position-1)
		default:
			low = max(position, middle+1)
		}
	}
	return feedtype.CursorState{Generation: page.Generation, Position: feedtype.Numbered(answer)}, nil
}

// publishedAbove is the lowest position above one, and when it was published, in
// microseconds since the Unix epoch; sql.ErrNoRows when there is none.
func (f *Feed) publishedAbove(ctx context.Context, above int64) (position, publishedAt int64, err error) {
	b := dialect.NewBuilder(f.db.store.Dialect)
	query := "SELECT feed_sync_id, published_at FROM " + dialect.Qualified(f.db.store.Dialect, f.catalog.DialectFeed().Positions()) +
		" WHERE feed_sync_id > " + b.Arg(above) + " ORDER BY feed_sync_id LIMIT 1"
	err = dialect.QueryRow(ctx, f.db.store.On(), query, b.Args(), &position, &publishedAt)
	return position, publishedAt, err
}

func (sequenced) head(ctx context.Context, f *Feed, info *feedtype.Info) error {
	page, err := f.Fetch(ctx, feedtype.Request{After: feedtype.Now})
	info.Head = page.Cursor
	return err
}

func (sequenced) pass(ctx context.Context, f *Feed, limit int, full bool) (feedtype.PublishEvent, error) {
	return f.passOnce(ctx, limit, full)
}

func (sequenced) firstWaiting(f *Feed) string {
	r := f.catalog.Record.Load()
	return dialect.FirstChange(f.db.store.Dialect, r.Feed(f.db.store.Names), f.unseen.since(r.Generation))
}

func (sequenced) fill(context.Context, *Feed, int, int) error { return nil }

func (sequenced) publishVisible(ctx context.Context, f *Feed, _ int) error {
	return f.publishVisible(ctx)
}

func (sequenced) asBefore(ctx context.Context, f *Feed) error {
	_, _, err := f.readPage(ctx, dialect.PageQuery{After: feedtype.LastPosition, Limit: 1, MaxBytes: 1}, feedtype.Shards{})
	return err
}

func (sequenced) purge(ctx context.Context, f *Feed) (int, error) { return f.purgeTombstones(ctx) }

func (sequenced) keys(*Feed, string) error { return nil }

func (sequenced) repair(ctx context.Context, f *Feed) (int64, error) { return f.repairKeys(ctx) }

func (sequenced) check(ctx context.Context, f *Feed) ([]Finding, error) { return f.checkOnce(ctx) }

// status tells what waits for the publisher, and since when.
func (m sequenced) status(ctx context.Context, f *Feed, s *Status) (err error) {
	if s.Backlog, err = m.backlog(ctx, f, MaxWaiting); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, vanishedBudget)
	defer cancel()
	if n, err := f.countVanished(bounded); err == nil {
		s.Vanished = &n
	}
	return nil
}

func (sequenced) lag(ctx context.Context, f *Feed, cursors []*admin.ConsumerStatus) error {
	for _, s := range cursors {
		if err := f.behindPosition(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (f *Feed) behindPosition(ctx context.Context, s *admin.ConsumerStatus) error {
	at, err := s.Cursor.State()
	if err != nil || !at.Start && at.Generation != f.Generation() {
		return nil // "now", "at:…", or a place in another history
	}
	b := dialect.NewBuilder(f.db.store.Dialect)
	var head, now int64
	err = dialect.QueryRow(ctx, f.db.store.On(), "SELECT value, "+f.db.store.Dialect.Now()+" FROM "+f.db.store.Table("sequences")+" WHERE name = "+b.Arg(f.name), b.Args(), &head, &now)
	if errors.Is(err, store.ErrNoRows) {
		return nil // dropped
	}
	if err != nil {
		return f.db.store.Fail(feedtype.FeedObject(f.name), "read its sequence", err)
	}
	if at.Seen().Above(feedtype.Numbered(head)) {
		return nil // ahead of the feed: the source will refuse it
	}
	behind, age := head-at.Position.Number(), 0.0
	s.Behind = &behind
	if behind > 0 && f.Capture() == dialect.CaptureColumn {
		return nil
	}
	if behind > 0 {
		_, publishedAt, err := f.publishedAbove(ctx, at.Position.Number())
		switch {
		case errors.Is(err, store.ErrNoRows):
		case err != nil:
			return f.db.store.Fail(feedtype.FeedObject(f.name), "look for the oldest entry not consumed", err)
		default:
			age = store.Seconds(max(now-publishedAt, 0))
		}
	}
	s.BehindSeconds = &age
	return nil
}
