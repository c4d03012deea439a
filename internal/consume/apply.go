package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// apply hands entries to the handler and stores the cursor behind them.
func (a *applier) apply(ctx context.Context, entries []feedtype.Entry, to feedtype.Cursor) (err error) {
	ctx, end := feedtype.StartSpan(ctx, a.db.Tracer,
		feedtype.Span{Op: feedtype.SpanConsume, Feed: a.feed, Consumer: a.c.Name, Shard: max(a.shard, 0),
			ShardCount: a.count, Behind: a.pages.reading.Context()})
	defer func() { end(feedtype.SpanEnd{Entries: len(entries), Err: err}) }()
	if a.deliver != nil {
		return a.deliverBatch(ctx, entries, to)
	}
	started, collapsed := time.Now(), 0
	err = a.inTx(ctx, func(tx *sql.Tx, t *batchTx) error {
		batch := entries
		if a.cursor.row.Aside > 0 {
			var err error
			if batch, err = a.dead.collapse(ctx, t.q, entries); err != nil {
				return err
			}
			collapsed = len(entries) - len(batch)
		}
		if len(batch) > 0 {
			if err := t.handle(ctx, func() error { return a.c.Handle(ctx, tx, batch) }); err != nil {
				return err
			}
		}
		return t.finish(ctx, tx, to, len(entries), 0)
	})
	if err != nil {
		var failed *handlerError
		if len(entries) == 1 && errors.As(err, &failed) {
			failed.key = string(entries[0].Key.AppendJSON(nil))
		}
		return err
	}
	a.complete = true
	a.consumed(len(entries)-collapsed, collapsed, to, started)
	return nil
}

// oneByOne applies the entries of a page one at a time after the whole page has failed too often. That finds the key
// at fault, and the other entries take effect.
func (a *applier) oneByOne(ctx context.Context, after feedtype.Cursor, page feedtype.Page) error {
	for i, e := range page.Entries {
		to := page.Cursor
		if i < len(page.Entries)-1 {
			var err error
			if to, err = page.Cursor.Within(after, e); err != nil {
				return err
			}
		}
		err := a.apply(ctx, []feedtype.Entry{e}, to)
		var failed *handlerError
		if err == nil {
			continue
		}
		if !errors.As(err, &failed) || errors.Is(err, errIncomplete) {
			return err
		}
		attempts := a.retry.failures + 1
		if a.c.OnFailure == feedtype.Stop {
			return &feedtype.Error{Code: feedtype.HandlerFailed, Object: a.object(), Err: &entryError{failed.err},
				Cause: fmt.Sprintf("the entry at position %s with key %s failed after %d attempts", e.Position,
					e.Key.AppendJSON(nil), attempts),
				Next: "correct the row or the handler, then start again, or set OnFailure to SetAside"}
		}
		if err := a.setAside(ctx, e, to, attempts, failed.err); err != nil {
			return err
		}
	}
	return nil
}

// consumed reports entries to the observer: those handed over, and those that joined dead letters.
func (a *applier) consumed(entries, collapsed int, at feedtype.Cursor, started time.Time) {
	a.db.Store.Observer.Consumed(feedtype.ConsumeEvent{Consumer: a.c.Name, Feed: a.feed, Shard: a.shard,
		ShardCount: a.count, Entries: entries, Collapsed: collapsed, Cursor: at, Took: time.Since(started)})
}
