package history

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// flushTimeout bounds a flush, which many readers may be waiting for.
const flushTimeout = 30 * time.Second

// MakeDurable returns when a crash can no longer undo what the page shows. On a replica it returns at once: the primary
// has everything on disk that a replica shows.
func (h *History) MakeDurable(ctx context.Context, shard int, rows *dialect.PageRows) error {
	shown := Shown(rows)
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
	h.MarkDurable(shard, shown)
	return nil
}

// Shown is the highest position of the feed, or of a shard with ULIDs, that a page shows.
func Shown(rows *dialect.PageRows) feedtype.CursorState {
	return feedtype.CursorState{Generation: rows.Generation, Position: rows.Given, Term: rows.Term}
}

func (h *History) knownDurable(shard int) feedtype.CursorState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.flushed[shard]
}

// MarkDurable records that a crash cannot undo this position of the feed, or of a shard with ULIDs: a commit of this
// process that saw it has returned.
func (h *History) MarkDurable(shard int, at feedtype.CursorState) {
	if h.unsafe {
		return // The return of a commit proves nothing.
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.Above(h.flushed[shard]) {
		h.flushed[shard] = at
	}
}

// Flushes shares the flushes of one database among all its feeds.
type Flushes struct {
	Store  *store.Store
	shared store.Sharing[struct{}, struct{}]
}

// flush returns when everything that the caller has read is on the database's disk. With any number of callers, one
// flush runs and at most one more waits.
func (s *Flushes) flush(ctx context.Context) error {
	_, err := s.shared.Do(ctx, struct{}{}, func(ctx context.Context) (struct{}, error) {
		flushing := s.Store.Dialect.Flushing
		if flushing == nil {
			return struct{}{}, nil // what is visible is on the disk
		}
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		if done, err := flushing.FlushAlone(ctx, s.Store.On(), s.Store.Names); done && err == nil {
			return struct{}{}, nil
		} // A transaction tries again, and returns the cause if it fails as well.
		return struct{}{}, s.Store.InTx(ctx, dialect.ForRecord, "flush", func(tx dialect.Querier) error {
			return flushing.Flush(ctx, tx, s.Store.Names)
		})
	})
	return err
}
