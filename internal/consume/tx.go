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

// applier applies the batches of a shard, each in one transaction with its cursor.
type applier struct {
	*assignment
	cursor *cursorState
	retry  *retry
	pages  *pageReader
	dead   *deadLetters
	// deliver is Deliver, or what DeliverShard has answered; nil with Handle.
	deliver func(ctx context.Context, entries []feedtype.Entry) ([]feedtype.Refusal, error)
	// slots, where there is one, has room for the transactions that this instance's shards
	// may have open at once.
	slots    chan struct{}
	complete bool // OnComplete has been called for a feed without entries
}

// batchTx is one transaction of a consumer.
type batchTx struct {
	a     *applier
	q     dialect.Querier
	after bool // the handler has run: what fails from now on may be its doing
	// next is the cursor's row as this transaction leaves it.
	next *CursorRow
}

// inTx runs fn in one transaction, once, and tells from an error whether the handler
// is to blame. Only when COMMIT said so is the row what fn made of it. When it said
// anything else the outcome may be unknown: the database is to be asked, never memory.
func (a *applier) inTx(ctx context.Context, fn func(*sql.Tx, *batchTx) error) error {
	t := &batchTx{a: a}
	if a.slots != nil {
		waiting := ctx
		if a.deliver == nil {
			// Nothing has happened yet: who is to have the shard begins with the page anew. Those
			// who have the slots may hang.
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
	if err = a.blame(ctx, err, t.after); !isHandlerError(err) { // after which all is rolled back
		a.cursor.row = nil
	}
	return err
}

// blame makes a handlerError of what the database said because of the handler: a
// constraint checked at COMMIT, an error that the handler kept to itself.
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
		// It passes, unless it is the handler's own doing: a second connection of its own
		// that waits for this transaction, an error that only looks as if.
		if a.retry.denials++; a.retry.denials <= store.MaxAttempts {
			return err
		}
	}
	if errors.As(err, &known) { // the handler asks for patience
		return err
	}
	return &handlerError{err}
}

// reachable tells whether the database can be reached.
func (a *applier) reachable() bool {
	bounded, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	return a.db.Store.SQL.PingContext(bounded) == nil
}

// beginPass calls OnBegin in a transaction at the beginning, before anything else there.
func (t *batchTx) beginPass(ctx context.Context, tx *sql.Tx) error {
	c, row := t.a.c, t.a.cursor.row
	if at, err := row.Value.State(); err != nil || !at.Start { // "now" and "at:…" begin no pass
		return nil
	}
	if err := t.handle(ctx, func() error { return c.OnBegin(ctx, tx) }); err != nil {
		return errors.Join(errIncomplete, err)
	}
	return nil
}

// handle calls a function of the application's, and sees to it that the transaction is
// still the one that it was handed: else the cursor would be stored by itself.
func (t *batchTx) handle(ctx context.Context, fn func() error) error {
	if _, err := t.q.Exec(ctx, "SAVEPOINT rowfeed"); err != nil {
		return err
	}
	t.after = true
	if err := t.call(fn); err != nil {
		return err
	}
	_, err := t.q.Exec(ctx, "RELEASE SAVEPOINT rowfeed")
	d := t.a.db.Store.Dialect
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case d.Classify(err) == dialect.ClassConnection:
		if t.a.reachable() {
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
func (t *batchTx) call(fn func() error) (err error) {
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
		return &feedtype.Error{Code: feedtype.Unavailable, Object: t.a.object(), Cause: "the handler asks to be called later", Err: err}
	}
	d := t.a.db.Store.Dialect
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

// finish ends a batch of a page: the pass, where it ends here, and the cursor. aside is the
// number of dead letters that the batch has made.
func (t *batchTx) finish(ctx context.Context, tx *sql.Tx, to feedtype.Cursor, entries int, aside int64) error {
	if t.a.cursor.row.Value.InPass() && (!to.InPass() || entries == 0 && to == feedtype.Beginning) {
		if err := t.endPass(ctx, tx); err != nil {
			return err
		}
	}
	return t.advance(ctx, to, aside)
}

// endPass does what is due where a pass from the beginning ends: it hands over to
// OnComplete, and a key that was aside before the pass and has not come in it is gone.
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
	b := a.db.builder()
	_, err := t.q.Exec(ctx, "UPDATE "+a.dead.table()+" SET op = "+b.Arg(string(feedtype.Delete))+" WHERE "+a.dead.where(b)+" AND generation < 0", b.Args()...)
	return err
}

// advance stores the cursor by compare-and-set. Unless the row is still as it was
// read, somebody else has handled the page, or moved the cursor, or stopped the
// consumer: then nothing of this transaction may stay. The caller's effects come
// first, so that the row is locked for no longer than a COMMIT takes.
func (t *batchTx) advance(ctx context.Context, to feedtype.Cursor, aside int64) error {
	db, was := t.a.db, t.a.cursor.row
	next := *was
	next.Value, next.Generation, next.Aside, next.version = to, to.Generation(), was.Aside+aside, was.version+1
	// What a row means depends on its shard_count and generation as much as on its value, so
	// all of them are compared. version, which every write counts up, tells of a cursor that
	// was elsewhere meanwhile, and makes the row count as affected on every database. A paused
	// consumer is at rest.
	b := db.builder()
	n, err := t.q.Exec(ctx, "UPDATE "+db.table("cursors")+
		" SET value = "+b.Arg(string(next.Value))+", generation = "+b.Arg(next.Generation)+", aside = "+b.Arg(next.Aside)+
		", version = version + 1, failure = NULL, updated_at = "+db.now()+
		" WHERE consumer = "+b.Arg(was.Consumer)+" AND feed = "+b.Arg(was.Feed)+" AND shard = "+b.Arg(was.Shard)+
		" AND shard_count = "+b.Arg(was.ShardCount)+
		" AND version = "+b.Arg(was.version)+
		" AND value = "+b.Arg(string(was.Value))+
		" AND generation = "+b.Arg(was.Generation)+
		" AND epoch = "+b.Arg(was.Epoch)+
		" AND aside = "+b.Arg(was.Aside)+
		" AND paused = 0", b.Args()...)
	switch {
	case err != nil:
		return err
	case n != 1:
		return errOvertaken
	}
	t.next = &next
	return nil
}
