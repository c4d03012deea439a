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

// probeTimeout limits the check whether a connection is alive.
const probeTimeout = 5 * time.Second

// applier applies the batches of a shard. With Handle a batch and its cursor are one transaction. With Deliver the
// cursor is stored after the delivery.
type applier struct {
	*assignment
	cursor *cursorState
	retry  *retry
	pages  *pageReader
	dead   *deadLetters
	// deliver is Deliver, or what DeliverShard returned. It is nil with Handle.
	deliver func(ctx context.Context, entries []feedtype.Entry) ([]feedtype.Refusal, error)
	// slots limits the number of open transactions of this instance. It is nil if the pool has no limit.
	slots    chan struct{}
	complete bool // a pass over a feed without entries was completed
}

// batchTx is one transaction in which a batch is handled and its cursor stored.
type batchTx struct {
	a     *applier
	q     dialect.Querier
	after bool // the handler has run: later errors may be its fault
	// next is the cursor that this transaction has stored.
	next *CursorRow
}

// inTx runs fn in one transaction, without retries, and tells from an error whether the handler is to blame. Only
// after a successful COMMIT is the cursor what fn stored. After any other outcome the database has to be asked.
func (a *applier) inTx(ctx context.Context, fn func(*sql.Tx, *batchTx) error) error {
	t := &batchTx{a: a}
	if a.slots != nil {
		waiting := ctx
		if a.deliver == nil {
			// Nothing was delivered yet, so the next owner can begin with this page. Handlers that hold
			// the slots may hang.
			waiting = a.until
		}
		select {
		case a.slots <- struct{}{}:
			defer func() { <-a.slots }()
		case <-waiting.Done():
			a.cursor.row = nil
			return errOvertaken
		}
	}
	err := a.db.Store.Once(ctx, dialect.ForConsume, func(tx *sql.Tx, q dialect.Querier) error {
		t.q = q
		if a.c.OnBegin != nil {
			if err := t.beginPass(ctx, tx); err != nil {
				return err
			}
		}
		return fn(tx, t)
	})
	if err == nil {
		a.cursor.stored(t.next)
		a.retry.denials = 0
		return nil
	}
	if err = a.blame(ctx, err, t.after); !isHandlerError(err) { // after a handlerError everything is rolled back
		a.cursor.row = nil
	}
	return err
}

// blame turns an error of the database into a handlerError if the handler caused it: a constraint checked at COMMIT,
// or an error that the handler did not return.
func (a *applier) blame(ctx context.Context, err error, after bool) error {
	switch {
	case !after, isHandlerError(err), ctx.Err() != nil, errors.Is(err, errOvertaken), errors.Is(err, errTxEnded):
		return err
	}
	var known *feedtype.Error
	switch a.db.Store.Dialect.Classify(err) {
	case dialect.ClassConnection, dialect.ClassReadOnly, dialect.ClassFull:
		return err
	case dialect.ClassRetry, dialect.ClassLockTimeout:
		// A deadlock or lock timeout is usually temporary. But the handler can be the cause, for example if it
		// waits for a second connection that waits for this transaction.
		if a.retry.denials++; a.retry.denials <= store.MaxAttempts {
			return err
		}
	}
	if errors.As(err, &known) { // feedtype.LaterError: the handler asks to be called later
		return err
	}
	return &handlerError{err: err}
}

// reachable reports whether the database can be reached.
func (a *applier) reachable() bool {
	bounded, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	return a.db.Store.SQL.PingContext(bounded) == nil
}

// beginPass calls OnBegin if the cursor is at the beginning.
func (t *batchTx) beginPass(ctx context.Context, tx *sql.Tx) error {
	c, row := t.a.c, t.a.cursor.row
	if at, err := row.Value.State(); err != nil || !at.Start { // "now" and times begin no pass
		return nil
	}
	if err := t.handle(ctx, func() error { return c.OnBegin(ctx, tx) }); err != nil {
		return errors.Join(errIncomplete, err)
	}
	return nil
}

// handle calls a function of the application, and checks that the transaction is still open. Otherwise the cursor
// would be stored without the effects.
func (t *batchTx) handle(ctx context.Context, fn func() error) error {
	d := t.a.db.Store.Dialect
	point := d.Savepoint("rowfeed")
	if _, err := t.q.Exec(ctx, point.Set); err != nil {
		return err
	}
	t.after = true
	if err := t.call(fn); err != nil {
		return err
	}
	_, err := t.q.Exec(ctx, point.Release)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case d.Classify(err) == dialect.ClassConnection:
		if t.a.reachable() {
			return &handlerError{err: fmt.Errorf("the handler left the transaction's connection unusable (are rows "+
				"open?): %w", err)}
		}
		return err
	}
	// The handler has committed, run a statement that commits, or not returned a deadlock.
	if errors.Is(err, sql.ErrTxDone) || d.Classify(err) == dialect.ClassUndefined {
		return errTxEnded
	}
	return err
}

// call runs fn. Its failure counts as an attempt unless the database is the cause, such as a lost connection or a
// deadlock.
func (t *batchTx) call(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &handlerError{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	if err = fn(); err == nil {
		return nil
	}
	var later *feedtype.LaterError
	if errors.As(err, &later) {
		return &feedtype.Error{Code: feedtype.Unavailable, Object: t.a.object(),
			Cause: "the handler asks to be called later", Err: err}
	}
	d := t.a.db.Store.Dialect
	switch d.Classify(err) {
	case dialect.ClassRetry, dialect.ClassLockTimeout, dialect.ClassReadOnly, dialect.ClassFull:
		return err
	case dialect.ClassConnection:
		// The error may be of another connection of the handler: check this one.
		bounded, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		_, lost := t.a.db.exec(bounded, t.q, "ping", nil)
		if lost != nil && d.Classify(lost) == dialect.ClassConnection {
			return err
		}
	}
	return &handlerError{err: err}
}

// finish stores the cursor behind a batch, and ends the pass if the batch completes it. aside is the number of dead
// letters that the batch has created.
func (t *batchTx) finish(ctx context.Context, tx *sql.Tx, to feedtype.Cursor, entries int, aside int64) error {
	if t.a.cursor.row.Value.InPass() && (!to.InPass() || entries == 0 && to == feedtype.Beginning) {
		if err := t.endPass(ctx, tx); err != nil {
			return err
		}
	}
	return t.advance(ctx, to, aside)
}

// endPass calls OnComplete. A key that was set aside before the pass and has not come in it is gone: its dead letter
// becomes a delete.
func (t *batchTx) endPass(ctx context.Context, tx *sql.Tx) error {
	a := t.a
	if a.c.OnComplete != nil {
		if err := t.handle(ctx, func() error { return a.c.OnComplete(ctx, tx) }); err != nil {
			return errors.Join(errIncomplete, err)
		}
	}
	if a.cursor.row.Aside == 0 {
		return nil
	}
	args := a.dead.args()
	args["delete"] = string(feedtype.Delete)
	_, err := a.db.exec(ctx, t.q, "end_pass", args)
	return err
}

// advance stores the cursor by compare-and-set. If the row has changed, another instance has handled the page, or an
// operator has moved or paused the cursor: everything is rolled back. It runs after the effects, so that the row is
// locked only as long as COMMIT takes.
func (t *batchTx) advance(ctx context.Context, to feedtype.Cursor, aside int64) error {
	db, was := t.a.db, t.a.cursor.row
	next := *was
	next.Value, next.Generation, next.Aside, next.version = to, to.Generation(), was.Aside+aside, was.version+1
	next.Failure = nil
	n, err := db.exec(ctx, t.q, "advance", dialect.Args{
		"to": string(next.Value), "to_generation": next.Generation, "to_aside": next.Aside,
		"consumer": was.Consumer, "feed": was.Feed, "shard": was.Shard, "shard_count": was.ShardCount,
		"version": was.version, "value": string(was.Value), "generation": was.Generation, "epoch": was.Epoch,
		"aside": was.Aside})
	if err = oneRow(n, err); err != nil {
		return err
	}
	t.next = &next
	return nil
}

// oneRow returns errOvertaken unless a statement has changed exactly one row.
func oneRow(n int64, err error) error {
	if err == nil && n != 1 {
		err = errOvertaken
	}
	return err
}
