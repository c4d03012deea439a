package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed/feedtype"
)

// restart begins again at the beginning, in one transaction with what the receiver
// does about that. Of dead letters nothing is known any more but that the key may be
// gone: see release. A new generation is a beginning for every shard, since it may have
// divided the keys anew; so is a cursor above the head: positions above a restored head are
// others now, and a shard that asks later may not see it any more. Tombstones that are gone
// concern the shard alone, and entries that are: every other one that has missed some is refused by itself. So is
// everything about a shard that is a feed by itself.
func (r *shardRun) restart(ctx context.Context, refusal error) error {
	var all *rebalance
	if r.count > 1 && !r.ulidShard && !stopsOneShard(refusal) {
		info, err := r.c.Source.Info(ctx)
		if err == nil {
			all, err = newRebalance(r.c, r.count, info, false)
		}
		if err != nil {
			return err
		}
	}
	err := r.applier.inTx(ctx, func(tx *sql.Tx, t *batchTx) error {
		if all != nil {
			return t.restartAll(ctx, tx, all, refusal)
		}
		if err := t.handle(ctx, func() error { return r.c.OnRefused(ctx, tx, refusal) }); err != nil {
			return err
		}
		if r.cursor.row.Aside > 0 {
			if err := r.db.ForgetLetterPositions(ctx, t.q, feedtype.ConsumerID{Consumer: r.c.Name, Feed: r.feed, Shard: &r.shard}); err != nil {
				return err
			}
		}
		return t.advance(ctx, feedtype.Beginning, 0)
	})
	if err == nil && all != nil {
		r.cursor.row = nil
		r.setBack = true
	}
	var failed *handlerError
	if errors.As(err, &failed) {
		return &feedtype.Error{Code: feedtype.HandlerFailed, Object: r.object(), Cause: "OnRefused failed", Err: failed.err, Next: "mend it and start again"}
	}
	if err == nil {
		r.applier.complete = false
		r.trouble(refusal)
	}
	return err
}

// restartAll sets every shard back. All rows are locked before anything else, in the order
// in which everybody locks them: of two shards that are refused at once the second waits
// for the first, and finds that its cursor is set back already.
func (t *batchTx) restartAll(ctx context.Context, tx *sql.Tx, all *rebalance, refusal error) error {
	a := t.a
	all.aside = true // letters that others set aside meanwhile are locked with them
	rows, err := all.lock(ctx, t.q)
	if err != nil {
		return err
	}
	was := *a.cursor.row
	if !slices.ContainsFunc(rows, func(row *CursorRow) bool {
		return row.Shard == was.Shard && row.ShardCount == was.ShardCount && row.Value == was.Value && row.Generation == was.Generation &&
			row.Epoch == was.Epoch && row.version == was.version+1 && !row.Paused // the lock counts as a write
	}) {
		return errOvertaken
	}
	if err := t.handle(ctx, func() error { return a.c.OnRefused(ctx, tx, refusal) }); err != nil {
		return err
	}
	if err := a.db.ForgetLetterPositions(ctx, t.q, feedtype.ConsumerID{Consumer: a.c.Name, Feed: a.feed}); err != nil {
		return err
	}
	return all.restart(ctx, t.q, rows)
}

// leftBehind is the refusal of a shard at its beginning, which a source cannot refuse, where
// another shard's cursor is of an older generation than its page: keys may have come from
// that one's part, and would go from new versions back to old ones. It asks at a beginning
// only.
func (r *shardRun) leftBehind(ctx context.Context, page feedtype.Page) error {
	g := page.Cursor.Generation()
	if g == 0 {
		return nil
	}
	rows, err := r.db.CursorsOf(ctx, r.db.Store.On(), r.c.Name, r.feed)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Generation != 0 && row.Generation < g {
			return &feedtype.Error{Code: feedtype.GenerationChanged, Object: feedtype.FeedObject(r.feed),
				Cause: fmt.Sprintf("the cursor of shard %d is of generation %d, the feed of generation %d", row.Shard, row.Generation, g)}
		}
	}
	return nil
}
