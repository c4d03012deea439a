package history

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Some databases show a commit before it is on their disk. A page must not show what
// a crash takes back: a position would be given again, to another key, and a row
// would return to what it was without a change to tell of it.

// flushTimeout bounds a flush, which many readers may be waiting for.
const flushTimeout = 30 * time.Second

// MakeDurable returns when a crash can no longer take back what the page shows. What a
// replica shows its primary has on its disk.
func (h *History) MakeDurable(ctx context.Context, shard int, rows *dialect.PageRows) error {
	shown := feedtype.CursorState{Generation: rows.Generation, Position: rows.Given}
	if rows.Forgetful == nil && !rows.Unflushed || h.unsafe || h.replica ||
		len(rows.Rows) == 0 && (shown.Position.IsZero() || !shown.Above(h.knownDurable(shard))) {
		return nil
	}
	if rows.Forgetful != nil {
		return UnsafeDurability(rows.Forgetful)
	}
	if err := h.disk.flush(ctx); err != nil {
		return h.feed.Store.Fail(feedtype.FeedObject(h.feed.Name), "make sure that what was read is on the disk", err)
	}
	h.IsDurable(shard, shown)
	return nil
}

func (h *History) knownDurable(shard int) feedtype.CursorState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.flushed[shard]
}

// IsDurable notes that a commit of this process's own has been answered, which saw
// the feed, or a shard with ULIDs, at a place.
func (h *History) IsDurable(shard int, at feedtype.CursorState) {
	if h.unsafe {
		return // the answer says nothing
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.Above(h.flushed[shard]) {
		h.flushed[shard] = at
	}
}

// Flushes are those of a database.
type Flushes struct {
	Store  *store.Store
	shared store.Sharing[struct{}, struct{}]
}

// flush returns when everything that the caller has read is on the database's disk.
// However many wait, one flush is under way and one more is about to begin.
func (s *Flushes) flush(ctx context.Context) error {
	_, err := s.shared.Do(ctx, struct{}{}, func(ctx context.Context) (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		if done, err := s.Store.Dialect.FlushAlone(ctx, s.Store.On(), s.Store.Names); done && err == nil {
			return struct{}{}, nil
		} // whatever was in its way, a transaction tells, and tries again
		return struct{}{}, s.Store.InTx(ctx, dialect.ForRecord, "flush", func(tx dialect.Querier) error {
			return s.Store.Dialect.Flush(ctx, tx, s.Store.Names)
		})
	})
	return err
}
