package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// probeTimeout bounds the question whether a connection is alive.
const probeTimeout = 5 * time.Second

// errIncomplete marks a failure of OnComplete, which is no entry's fault.
var errIncomplete = errors.New("OnComplete failed")

// apply hands entries to the handler and stores the cursor behind them, in one
// transaction; nothing of it happens unless all of it does.
func (r *consuming) apply(ctx context.Context, entries []feedtype.Entry, to feedtype.Cursor) (err error) {
	ctx, end := feedtype.StartSpan(ctx, r.c.DB.Tracer, feedtype.Span{Op: feedtype.SpanConsume, Feed: r.feed, Consumer: r.c.Name, Shard: max(r.shard, 0), ShardCount: r.count, Behind: r.reading.Context()})
	defer func() { end(feedtype.SpanEnd{Entries: len(entries), Err: err}) }()
	if r.c.Deliver != nil {
		return r.deliver(ctx, entries, to)
	}
	started, collapsed := time.Now(), 0
	err = r.inTx(ctx, func(tx *sql.Tx, t *consumerTx) error {
		batch := entries
		if r.row.Aside > 0 {
			var err error
			if batch, err = r.collapse(ctx, t.q, entries); err != nil {
				return err
			}
			collapsed = len(entries) - len(batch)
		}
		if len(batch) > 0 {
			if err := t.handle(ctx, func() error { return r.c.Handle(ctx, tx, batch) }); err != nil {
				return err
			}
		}
		if err := t.complete(ctx, tx, to, len(entries)); err != nil {
			return err
		}
		return t.advance(ctx, to, 0)
	})
	if err != nil {
		return err
	}
	r.complete = true
	r.consumed(len(entries)-collapsed, collapsed, to, started)
	return nil
}

// oneByOne applies a page's entries each by itself, after the page as a whole has
// failed too often: the key at fault becomes known, and the others get through.
func (r *consuming) oneByOne(ctx context.Context, after feedtype.Cursor, page feedtype.Page) error {
	for i, e := range page.Entries {
		to := page.Cursor
		if i < len(page.Entries)-1 {
			var err error
			if to, err = page.Cursor.Within(after, e); err != nil {
				return err
			}
		}
		err := r.apply(ctx, []feedtype.Entry{e}, to)
		var failed *handlerError
		if err == nil {
			continue
		}
		if !errors.As(err, &failed) || errors.Is(err, errIncomplete) {
			return err
		}
		attempts := r.failures + 1
		if r.c.OnFailure == feedtype.Stop {
			return &feedtype.Error{Code: feedtype.HandlerFailed, Object: r.object(), Err: &entryError{failed.err},
				Cause: fmt.Sprintf("the entry at position %s with key %s failed after %d attempts", e.Position, e.Key.AppendJSON(nil), attempts),
				Next:  "mend the row or the handler and start again, or set OnFailure to SetAside"}
		}
		r.trouble(failed.err)
		if err := r.setAside(ctx, e, to, attempts, failed.err); err != nil {
			return err
		}
	}
	return nil
}

// complete does what is due where a pass from the beginning ends: it hands over to
// OnComplete, and a key that was aside before the pass and has not come in it is gone.
func (t *consumerTx) complete(ctx context.Context, tx *sql.Tx, to feedtype.Cursor, entries int) error {
	r := t.r
	if !r.row.Value.InPass() || to.InPass() && (entries > 0 || to != feedtype.Beginning) {
		return nil
	}
	if r.c.OnComplete != nil {
		if err := t.handle(ctx, func() error { return r.c.OnComplete(ctx, tx) }); err != nil {
			return errors.Join(errIncomplete, err)
		}
	}
	if r.row.Aside == 0 {
		return nil
	}
	b := dialect.NewBuilder(r.c.DB.Store.Dialect)
	_, err := t.q.Exec(ctx, "UPDATE "+r.lettersTable()+" SET op = "+b.Arg(string(feedtype.Delete))+" WHERE "+r.letters(b)+" AND generation < 0", b.Args()...)
	return err
}

// consumerTx is one transaction of a consumer.
type consumerTx struct {
	r     *consuming
	q     dialect.Querier
	after bool // the handler has run: what fails from now on may be its doing
	// next is the cursor's row as this transaction leaves it.
	next *CursorRow
}

// inTx runs fn in one transaction, once, and tells from an error whether the handler
// is to blame. Only when COMMIT said so is the row what fn made of it. When it said
// anything else the outcome may be unknown: the database is to be asked, never memory.
func (r *consuming) inTx(ctx context.Context, fn func(*sql.Tx, *consumerTx) error) error {
	t := &consumerTx{r: r}
	if r.slots != nil {
		waiting := ctx
		if r.c.Deliver == nil {
			// Nothing has happened yet: who is to have the shard begins with the page anew. Those
			// who have the slots may hang.
			waiting = r.until
		}
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
		case <-waiting.Done():
			r.row = nil
			return errOvertaken
		}
	}
	err := r.c.DB.Store.Once(ctx, dialect.ForConsume, func(tx *sql.Tx, q dialect.Querier) error {
		t.q = q
		if err := t.begin(ctx, tx); err != nil {
			return err
		}
		return fn(tx, t)
	})
	if err == nil {
		r.row, r.denials = t.next, 0
		if t.next != nil { // else all shards were set back, and the database is to be asked
			r.version = t.next.version
		}
		return nil
	}
	if err = r.blame(ctx, err, t.after); !isHandlerError(err) { // after which all is rolled back
		r.row = nil
	}
	return err
}

// blame makes a handlerError of what the database said because of the handler: a
// constraint checked at COMMIT, an error that the handler kept to itself.
func (r *consuming) blame(ctx context.Context, err error, after bool) error {
	switch {
	case !after, isHandlerError(err), ctx.Err() != nil, errors.Is(err, errOvertaken), errors.Is(err, errTxEnded):
		return err
	}
	var known *feedtype.Error
	switch r.c.DB.Store.Dialect.Classify(err) {
	case dialect.ClassConnection, dialect.ClassReadOnly, dialect.ClassFull:
		return err
	case dialect.ClassRetry, dialect.ClassLockTimeout:
		// It passes, unless it is the handler's own doing: a second connection of its own
		// that waits for this transaction, an error that only looks as if.
		if r.denials++; r.denials <= store.MaxAttempts {
			return err
		}
	}
	if errors.As(err, &known) { // the handler asks for patience
		return err
	}
	return &handlerError{err}
}

func isHandlerError(err error) bool {
	var failed *handlerError
	return errors.As(err, &failed)
}

// handle calls a function of the application's, and sees to it that the transaction is
// still the one that it was handed: else the cursor would be stored by itself.
func (t *consumerTx) handle(ctx context.Context, fn func() error) error {
	if _, err := t.q.Exec(ctx, "SAVEPOINT rowfeed"); err != nil {
		return err
	}
	t.after = true
	if err := t.call(fn); err != nil {
		return err
	}
	_, err := t.q.Exec(ctx, "RELEASE SAVEPOINT rowfeed")
	d := t.r.c.DB.Store.Dialect
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case d.Classify(err) == dialect.ClassConnection:
		if t.r.reachable() {
			return &handlerError{fmt.Errorf("the handler left the transaction's connection unusable (are rows open?): %w", err)}
		}
		return err
	}
	// By the handler's Commit, by a statement that commits, or by a deadlock that it kept
	// to itself.
	if errors.Is(err, sql.ErrTxDone) || d.Classify(err) == dialect.ClassUndefined {
		return errTxEnded
	}
	return err
}

// call calls it. Its failure counts unless the database is the cause: a connection
// that is gone, a deadlock.
func (t *consumerTx) call(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &handlerError{fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	if err = fn(); err == nil {
		return nil
	}
	var later *feedtype.LaterError
	if errors.As(err, &later) {
		return &feedtype.Error{Code: feedtype.Unavailable, Object: t.r.object(), Cause: "the handler asks to be called later", Err: err}
	}
	d := t.r.c.DB.Store.Dialect
	switch d.Classify(err) {
	case dialect.ClassRetry, dialect.ClassLockTimeout, dialect.ClassReadOnly, dialect.ClassFull:
		return err
	case dialect.ClassConnection:
		// The handler may have connections of its own: ask this one.
		bounded, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		_, lost := t.q.Exec(bounded, "SELECT 1")
		if lost != nil && d.Classify(lost) == dialect.ClassConnection {
			return err
		}
	}
	return &handlerError{err}
}

// advance stores the cursor by compare-and-set. Unless the row is still as it was
// read, somebody else has handled the page, or moved the cursor, or stopped the
// consumer: then nothing of this transaction may stay. The caller's effects come
// first, so that the row is locked for no longer than a COMMIT takes.
func (t *consumerTx) advance(ctx context.Context, to feedtype.Cursor, aside int64) error {
	next := *t.r.row
	next.Value, next.Generation, next.Aside, next.version = to, to.Generation(), next.Aside+aside, next.version+1
	n, err := t.r.c.DB.compareAndSet(ctx, t.q, t.r.row, &next)
	switch {
	case err != nil:
		return err
	case n != 1:
		return errOvertaken
	}
	t.next = &next
	return nil
}

// reachable tells whether the database can be reached.
func (r *consuming) reachable() bool {
	bounded, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	return r.c.DB.Store.SQL.PingContext(bounded) == nil
}
