package consume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// unread is a version that no row has.
const unread = -1

// newShards creates the cursors of shards that have come to the feed while this worker runs.
func (w *worker) newShards(ctx context.Context, shards []int) error {
	db, id := w.db, feedtype.ConsumerID{Consumer: w.c.Name, Feed: w.feed}
	err := db.Store.InTx(ctx, dialect.ForRecord, "make cursors of new shards", func(tx dialect.Querier) error {
		if _, err := db.LockWhole(ctx, tx, id); err != nil {
			return err
		}
		whole, err := db.consumerRowOf(ctx, tx, w.c.Name, w.feed)
		switch {
		case err != nil:
			return err
		case whole == nil:
			return errOvertaken
		case whole.shardCount != w.count:
			return w.shardCountChanged(whole.shardCount)
		}
		rows, err := db.CursorsOf(ctx, tx, w.c.Name, w.feed)
		if err != nil {
			return err
		}
		return (&shardCursors{w.assignment}).insert(ctx, tx, w.feed, whole.Paused, rows, shards, nil)
	})
	if errors.Is(err, errOvertaken) {
		return w.open(ctx, false) // the consumer was dropped: create its cursors again
	}
	return err
}

// checkCursors reads the worker's cursors again if any cursor of the consumer was created, moved or claimed: each such
// write increments the version of the consumer's row. Cursors stored behind a page do not. Another instance with the
// same shard notices those by compare-and-set.
func (w *worker) checkCursors(ctx context.Context) error {
	db := w.db
	var count int
	var changes int64
	err := db.Store.One(ctx, db.Store.On(), statements, "consumer_version",
		dialect.Args{"consumer": w.c.Name, "feed": w.feed}, &count, &changes)
	switch {
	case errors.Is(err, store.ErrNoRows): // the consumer was dropped: create its cursors again
		clear(w.shards)
		w.watermarks, w.changes = nil, unread
		return w.open(ctx, false)
	case err != nil:
		return err
	case count != w.count:
		return w.shardCountChanged(count)
	}
	if changes != w.changes {
		if err := w.readCursors(ctx); err != nil {
			return err
		}
		w.changes = changes
	}
	if err := w.findReleases(ctx); err != nil {
		return err
	}
	w.checkedAt = time.Now()
	return nil
}

// readCursors reads the worker's cursors, and claims them for its lease.
func (w *worker) readCursors(ctx context.Context) error {
	rows, err := w.ownCursors(ctx)
	if err != nil {
		return err
	}
	var earlier []int
	for _, row := range rows {
		if row.Epoch < w.epoch {
			earlier = append(earlier, row.Shard)
		}
	}
	if len(earlier) > 0 {
		if err := w.claimCursors(ctx, earlier); err != nil {
			return err
		}
		if rows, err = w.ownCursors(ctx); err != nil {
			return err
		}
	}
	there := make(map[int]bool, len(rows))
	for _, row := range rows {
		there[row.Shard] = true
		if w.epoch != 0 && row.Epoch > w.epoch {
			return w.fail(feedtype.LeaseLost, fmt.Sprintf("the lease with epoch %d is over: the cursor of shard %d "+
				"is held under epoch %d", w.epoch, row.Shard, row.Epoch), "acquire the lease again")
		}
		t := w.shards[row.Shard]
		if t == nil {
			one := w.of(w.until, row.Shard, w.epoch)
			one.ulidShard = true
			t = &workerShard{run: newShardRun(one, w.in.slots)}
			w.shards[row.Shard] = t
		} else if t.run.cursor.version == row.version {
			continue
		}
		one := t.run
		t.last = row
		one.cursor.known(row)
		one.parked, one.retry.notBefore = row.Paused && !w.once, time.Time{}
		t.due = !one.parked
	}
	for shard := range w.shards {
		if !there[shard] {
			delete(w.shards, shard)
			w.watermarks = nil // it may appear again
		}
	}
	return nil
}

// ownCursors returns the cursors of the worker's shards.
func (w *worker) ownCursors(ctx context.Context) ([]*CursorRow, error) {
	rows, err := w.db.CursorsOf(ctx, w.db.Store.On(), w.c.Name, w.feed)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.ShardCount != w.count {
			return nil, w.shardCountChanged(row.ShardCount)
		}
	}
	return slices.DeleteFunc(rows, func(row *CursorRow) bool { return JobOf(row.Shard, w.count) != w.job }), nil
}

// claimCursors raises the epochs of cursors: see cursorState.claim.
func (w *worker) claimCursors(ctx context.Context, shards []int) error {
	db := w.db
	const most = 500
	for some := range slices.Chunk(shards, most) {
		err := db.Store.InTx(ctx, dialect.ForRecord, "claim cursors", func(tx dialect.Querier) error {
			if _, err := db.LockWhole(ctx, tx, feedtype.ConsumerID{Consumer: w.c.Name, Feed: w.feed}); err != nil {
				return err
			}
			_, err := db.exec(ctx, tx, "claim_all", dialect.Args{"consumer": w.c.Name, "feed": w.feed,
				"shard_count": w.count, "epoch": w.epoch, "shards": dialect.List(some)})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// findReleases asks for which shards an operator wants dead letters released.
func (w *worker) findReleases(ctx context.Context) error {
	aside := false
	for _, t := range w.shards {
		aside = aside || t.last.Aside > 0
	}
	if !aside {
		return nil
	}
	db := w.db
	shards, err := store.All(ctx, db.Store, db.Store.On(), statements, "shards_in_state",
		dialect.Args{"consumer": w.c.Name, "feed": w.feed, "state": feedtype.LetterRetry},
		func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
	if err != nil {
		return err
	}
	for _, shard := range shards {
		if t := w.shards[shard]; t != nil && !t.run.parked && t.last.Value.Settled() {
			t.run.cursor.releases, t.due, t.run.retry.notBefore = true, true, time.Time{}
		}
	}
	return nil
}

// pausedOf returns an error if a shard of the job is paused, or if the number of workers has changed.
func (in *instance) pausedOf(ctx context.Context, job int) error {
	w := in.newWorker(in.until, job, 0)
	rows, err := w.ownCursors(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Paused {
			one := in.of(in.until, row.Shard, 0)
			one.ulidShard = true
			return one.isPaused()
		}
	}
	return nil
}
