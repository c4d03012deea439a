package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed/feedtype"
)

// restart begins again after a refused cursor, in one transaction with OnRefused. After a new generation, or a cursor
// above the head, all shards restart: keys may belong to other shards, and positions may have been used again. Expired
// tombstones and entries concern one shard only. A shard of a ULID feed always restarts alone.
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
			if err := r.db.ForgetLetterPositions(ctx, t.q,
				feedtype.ConsumerID{Consumer: r.c.Name, Feed: r.feed, Shard: &r.shard}); err != nil {
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
		return &feedtype.Error{Code: feedtype.HandlerFailed, Object: r.object(), Cause: "the function OnRefused failed",
			Err: failed.err, Next: "correct the function and start again"}
	}
	if err == nil {
		r.applier.complete = false
		r.trouble(refusal)
	}
	return err
}

// rebalanceAll goes on after the feed's number of data shards was changed: all shards begin at their lowest cursor.
func (r *shardRun) rebalanceAll(ctx context.Context, refusal error) error {
	info, err := r.c.Source.Info(ctx)
	if err != nil {
		return err
	}
	d, err := newRebalance(r.c, r.count, info, false)
	if err != nil {
		return err
	}
	if !d.ofOtherDataShards(r.cursor.row.Value) && d.dataShards() == r.dataShards {
		return refusal // the cursor was set to one of another part
	}
	if err = arrange(ctx, r.c, r.count, info, false); err == nil {
		r.setBack, r.dataShards = true, d.dataShards()
		r.trouble(refusal)
	}
	r.cursor.row = nil
	return err
}

// restartAll sets all shards back. It locks all rows first, in the order that all transactions use. If two shards are
// refused at once, the second waits for the first, and finds its cursor already set back.
func (t *batchTx) restartAll(ctx context.Context, tx *sql.Tx, all *rebalance, refusal error) error {
	a := t.a
	all.aside = true // also locks letters that other shards create meanwhile
	rows, err := all.lock(ctx, t.q)
	if err != nil {
		return err
	}
	was := *a.cursor.row
	if !slices.ContainsFunc(rows, func(row *CursorRow) bool {
		return row.Shard == was.Shard && row.ShardCount == was.ShardCount && row.Value == was.Value &&
			row.Generation == was.Generation &&
			row.Epoch == was.Epoch && row.version == was.version+1 && !row.Paused // lock has incremented version
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

// dataShardsChanged detects another number of data shards for a cursor that says nothing of a part, which a source
// cannot refuse: at the beginning, at a time, or set by an operator. Cursors of other shards may be above keys that
// belong to this shard now.
func (r *shardRun) dataShardsChanged(after feedtype.Cursor, page feedtype.Page) error {
	if p, err := after.State(); err == nil && p.Part.Of != 0 {
		return nil
	}
	p, err := page.Cursor.State()
	if err != nil || p.Part.Of == 0 || p.Part.Of == r.dataShards {
		return nil
	}
	return &feedtype.Error{Code: feedtype.OtherPart, Object: feedtype.FeedObject(r.feed),
		Cause: fmt.Sprintf("the feed had %d data shards, and the page is of %s", r.dataShards, p.Part),
		Next:  "no action is needed: all shards continue from their lowest cursor"}
}

// leftBehind detects a new generation for a shard at its beginning, which a source cannot refuse. If the cursor of
// another shard is of an older generation, its keys may belong to this shard now. Both must restart, or keys would go
// back to older versions.
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
				Cause: fmt.Sprintf("the cursor of shard %d is of generation %d, the feed of generation %d", row.Shard,
					row.Generation, g)}
		}
	}
	return nil
}
