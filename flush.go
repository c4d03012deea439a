package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Some databases show a commit before it is on their disk. A page must not show what
// a crash takes back: a position would be given again, to another key, and a row
// would return to what it was without a change to tell of it.

// flushTimeout bounds a flush, which many readers may be waiting for.
const flushTimeout = 30 * time.Second

// makeDurable returns when a crash can no longer take back what the page shows. What a
// replica shows its primary has on its disk.
func (f *Feed) makeDurable(ctx context.Context, shard int, rows *dialect.PageRows) error {
	shown := feedtype.CursorState{Generation: rows.Generation, Position: rows.Given}
	if rows.Forgetful == nil && !rows.Unflushed || f.db.cfg.UnsafeDurability || f.db.cfg.Replica ||
		len(rows.Rows) == 0 && (shown.Position.IsZero() || !shown.Above(f.knownDurable(shard))) {
		return nil
	}
	if rows.Forgetful != nil {
		return unsafeDurability(rows.Forgetful)
	}
	if err := f.db.flush(ctx); err != nil {
		return f.db.store.Fail(feedtype.FeedObject(f.name), "make sure that what was read is on the disk", err)
	}
	f.isDurable(shard, shown)
	return nil
}

func (f *Feed) knownDurable(shard int) feedtype.CursorState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flushed[shard]
}

// isDurable notes that a commit of this process's own has been answered, which saw
// the feed, or a shard with ULIDs, at a place.
func (f *Feed) isDurable(shard int, at feedtype.CursorState) {
	if f.db.cfg.UnsafeDurability {
		return // the answer says nothing
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at.Above(f.flushed[shard]) {
		f.flushed[shard] = at
	}
}

// flush returns when everything that the caller has read is on the database's disk.
// However many wait, one flush is under way and one more is about to begin.
func (db *DB) flush(ctx context.Context) error {
	_, err := db.flushes.Do(ctx, struct{}{}, func(ctx context.Context) (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		if done, err := db.store.Dialect.FlushAlone(ctx, db.store.On(), db.store.Names); done && err == nil {
			return struct{}{}, nil
		} // whatever was in its way, a transaction tells, and tries again
		return struct{}{}, db.store.InTx(ctx, dialect.ForRecord, "flush", func(tx dialect.Querier) error {
			return db.store.Dialect.Flush(ctx, tx, db.store.Names)
		})
	})
	return err
}
