package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
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
				Next: "mend the row or the handler and start again, or set OnFailure to SetAside"}
		}
		a.trouble(failed.err)
		if err := a.setAside(ctx, e, to, attempts, failed.err); err != nil {
			return err
		}
	}
	return nil
}

// setAside stores an entry as a dead letter and moves the cursor past it.
func (a *applier) setAside(ctx context.Context, e feedtype.Entry, to feedtype.Cursor, attempts int, cause error) error {
	err := a.inTx(ctx, func(tx *sql.Tx, t *batchTx) error {
		key := e.Key.AppendJSON(nil)
		now := a.db.now()
		b := a.db.builder()
		n, err := t.q.Exec(ctx, a.db.Store.Dialect.InsertNew(a.dead.table(),
			[]string{"consumer", "feed", "shard", "key_digest", "key_json", "generation", "position", "op", "state",
				"attempts", "collapsed", "error", "first_at", "last_at", "data_shard"},
			[]string{b.Arg(a.c.Name), b.Arg(a.feed), b.Arg(a.cursor.row.Shard), b.Arg(keyDigest(key)),
				b.Arg(string(key)), b.Arg(e.Generation), b.Arg(e.Position),
				b.Arg(string(e.Op)), b.Arg(feedtype.LetterAside), b.Arg(attempts), "0", b.Arg(letterText(cause)), now,
				now, b.Arg(e.Shard)},
			[]string{"consumer", "feed", "shard", "key_digest"}), b.Args()...)
		if err = oneRow(n, err); err != nil {
			return err
		}
		return t.finish(ctx, tx, to, 1, 1)
	})
	if err == nil {
		a.complete = true
		a.db.Store.Observer.SetAside(feedtype.SetAsideEvent{Consumer: a.c.Name, Feed: a.feed, Shard: max(a.shard, 0),
			ShardCount: a.count, Attempts: attempts})
	}
	return err
}

// release handles the latest version of one key whose release an operator has asked for, and reports whether there was
// one. It runs in the consumer's loop. The compare-and-set of the cursor makes sure that no newer version comes in
// between.
func (a *applier) release(ctx context.Context) (released bool, err error) {
	b := a.db.builder()
	var l letter
	err = dialect.QueryRow(ctx, a.db.Store.On(), "SELECT key_digest, key_json, generation, position, op, data_shard "+
		"FROM "+a.dead.table()+
		" WHERE "+a.dead.where(b)+" AND state = "+b.Arg(feedtype.LetterRetry)+" ORDER BY first_at, key_digest LIMIT 1",
		b.Args(), &l.digest, &l.key, &l.generation, &l.position, &l.op, &l.dataShard)
	if errors.Is(err, sql.ErrNoRows) {
		a.cursor.releases = false
		return false, nil
	}
	if err != nil {
		return false, err
	}
	started := time.Now()
	batch, err := a.dead.reread(ctx, l)
	if isRefusal(err) {
		return false, nil // the cursor is refused too: the next page handles that
	}
	if errors.Is(err, feedtype.Conflict) {
		a.trouble(err)
		return true, a.dead.keep(ctx, l, err)
	}
	if err != nil {
		return true, err
	}
	at := a.cursor.row.Value
	handled := func(tx *sql.Tx, t *batchTx) error {
		if len(batch) > 0 && a.deliver == nil {
			if err := t.handle(ctx, func() error { return a.c.Handle(ctx, tx, batch) }); err != nil {
				return err
			}
		}
		b := a.db.builder()
		n, err := t.q.Exec(ctx, "DELETE FROM "+a.dead.table()+" WHERE "+a.dead.exactly(b, l), b.Args()...)
		if err = oneRow(n, err); err != nil {
			return err // a newer version has joined it
		}
		return t.advance(ctx, at, -1)
	}
	if err = a.deliverOne(ctx, batch); err == nil {
		err = a.inTx(ctx, handled)
	}
	var failed *handlerError
	switch {
	case err == nil:
		a.consumed(len(batch), 0, at, started)
		return true, nil
	case !errors.As(err, &failed):
		return true, err
	}
	a.trouble(failed.err)
	a.retry.denials = 0
	return true, a.dead.keep(ctx, l, failed.err)
}

// consumed reports entries to the observer: those handed over, and those that joined dead letters.
func (a *applier) consumed(entries, collapsed int, at feedtype.Cursor, started time.Time) {
	a.db.Store.Observer.Consumed(feedtype.ConsumeEvent{Consumer: a.c.Name, Feed: a.feed, Shard: a.shard,
		ShardCount: a.count, Entries: entries, Collapsed: collapsed, Cursor: at, Took: time.Since(started)})
}
