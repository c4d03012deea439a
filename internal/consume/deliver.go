package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// deliver hands entries over outside any transaction, and stores the cursor behind them
// when it is known what became of each: at least once. Entries of keys that are set aside
// are left out; those that are refused, as often as it takes, are set aside as well.
func (r *consuming) deliver(ctx context.Context, entries []feedtype.Entry, to feedtype.Cursor) error {
	started := time.Now()
	aside, err := r.whichAside(ctx, entries)
	if err != nil {
		return err
	}
	var batch []feedtype.Entry
	var at []int // where the batch's entries stand among entries
	for i, e := range entries {
		if !aside[i] {
			batch, at = append(batch, e), append(at, i)
		}
	}
	refused, err := r.handOver(ctx, batch)
	if err != nil {
		return err
	}
	if len(refused) > 0 && r.failures+1 < r.attempts() {
		return &handlerError{refused[0].Err}
	}
	next := 0 // the entries before it are behind the cursor
	for _, refusal := range refused {
		i := at[refusal.Entry]
		e := entries[i]
		if i > next {
			if err := r.pass(ctx, entries, aside, next, i, to); err != nil {
				return err
			}
		}
		if r.c.OnFailure == feedtype.Stop {
			return &feedtype.Error{Code: feedtype.HandlerFailed, Object: r.object(), Err: &entryError{refusal.Err},
				Cause: fmt.Sprintf("the entry at position %s with key %s was refused %d times", e.Position, e.Key.AppendJSON(nil), r.failures+1),
				Next:  "mend the row or the receiver and start again, or have such keys set aside (OnFailure: SetAside, --set-aside)"}
		}
		r.trouble(refusal.Err)
		behind, err := r.behind(entries, i, to)
		if err != nil {
			return err
		}
		if err := r.setAside(ctx, e, behind, r.failures+1, refusal.Err); err != nil {
			return err
		}
		next = i + 1
	}
	if next < len(entries) || len(entries) == 0 {
		if err := r.pass(ctx, entries, aside, next, len(entries), to); err != nil {
			return err
		}
	}
	r.consumed(len(batch)-len(refused), len(entries)-len(batch), to, started)
	return nil
}

// whichAside tells which of the entries are of keys that are set aside; it asks nobody
// where there are none.
func (r *consuming) whichAside(ctx context.Context, entries []feedtype.Entry) (map[int]bool, error) {
	if r.row.Aside == 0 {
		return nil, nil
	}
	digests := make([]string, len(entries))
	for i, e := range entries {
		digests[i] = keyDigest(e.Key.AppendJSON(nil))
	}
	found, err := r.asideAmong(ctx, r.c.DB.Store.On(), digests)
	if err != nil {
		return nil, err
	}
	aside := map[int]bool{}
	for i, d := range digests {
		if found[d] {
			aside[i] = true
		}
	}
	return aside, nil
}

// handOver calls Deliver. An error of it, or a panic, is no entry's fault: it is called
// again later, for as long as it takes.
func (r *consuming) handOver(ctx context.Context, batch []feedtype.Entry) (refused []feedtype.Refusal, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			r.row = nil // the consumer may be paused, or its cursor moved, until the receiver is back
		}
		switch {
		case err == nil:
			r.missed = 0
		case ctx.Err() != nil:
			err = ctx.Err()
		default:
			r.missed++
			err = &feedtype.Error{Code: feedtype.Unavailable, Object: r.object(), Cause: "entries could not be delivered, and will be again", Err: err}
		}
	}()
	if refused, err = r.c.Deliver(ctx, batch); err != nil {
		return nil, err
	}
	slices.SortFunc(refused, func(a, b feedtype.Refusal) int { return a.Entry - b.Entry })
	for i, refusal := range refused {
		if refusal.Entry < 0 || refusal.Entry >= len(batch) || refusal.Err == nil || i > 0 && refusal.Entry == refused[i-1].Entry {
			return nil, fmt.Errorf("the consumer's Deliver refused entry %d of %d with error %v", refusal.Entry, len(batch), refusal.Err)
		}
	}
	return refused, nil
}

// deliverLetter hands over the version of a dead letter's key, where that is Deliver's to
// do.
func (r *consuming) deliverLetter(ctx context.Context, batch []feedtype.Entry) error {
	if r.c.Deliver == nil {
		return nil
	}
	refused, err := r.handOver(ctx, batch)
	if err == nil && len(refused) > 0 {
		err = &handlerError{refused[0].Err}
	}
	return err
}

// pass stores the cursor behind entries[from:to], which were delivered, or join their
// keys' dead letters now. If others than those have letters by now, something was
// delivered, or not, that should not, or should, have been: from the cursor again.
func (r *consuming) pass(ctx context.Context, entries []feedtype.Entry, aside map[int]bool, from, to int, end feedtype.Cursor) error {
	behind, err := r.behind(entries, to-1, end)
	if err != nil {
		return err
	}
	delivered := 0
	for i := from; i < to; i++ {
		if !aside[i] {
			delivered++
		}
	}
	return r.inTx(ctx, func(tx *sql.Tx, t *consumerTx) error {
		if len(aside) > 0 {
			rest, err := r.collapse(ctx, t.q, entries[from:to])
			if err != nil {
				return err
			}
			if len(rest) != delivered {
				return errOvertaken
			}
		}
		if err := t.complete(ctx, tx, behind, len(entries)); err != nil {
			return err
		}
		return t.advance(ctx, behind, 0)
	})
}

// behind is the cursor behind the i-th entry of a page that ends at end.
func (r *consuming) behind(entries []feedtype.Entry, i int, end feedtype.Cursor) (feedtype.Cursor, error) {
	if i >= len(entries)-1 {
		return end, nil
	}
	return end.Within(r.row.Value, entries[i])
}

// claim makes the cursor's row the lease's whose epoch the consumer has: it is raised
// before it is read, so that no holder of an earlier term can write it any more.
func (r *consuming) claim(ctx context.Context, row *CursorRow) (*CursorRow, error) {
	db, epoch := r.c.DB, r.epoch
	if epoch > row.Epoch {
		err := db.Store.InTx(ctx, dialect.ForRecord, "claim a cursor", func(tx dialect.Querier) error {
			b := dialect.NewBuilder(db.Store.Dialect)
			_, err := tx.Exec(ctx, "UPDATE "+db.Store.Table("cursors")+" SET epoch = "+b.Arg(epoch)+", version = version + 1, updated_at = "+db.Store.Dialect.Now()+
				" WHERE consumer = "+b.Arg(row.Consumer)+" AND feed = "+b.Arg(row.Feed)+" AND shard = "+b.Arg(row.Shard)+
				" AND shard_count = "+b.Arg(row.ShardCount)+ // another division's epochs are not this lease's
				" AND epoch < "+b.Arg(epoch), b.Args()...)
			return err
		})
		if err != nil {
			return nil, err
		}
		if row, err = r.loadCursor(ctx); err != nil {
			return nil, err
		}
	}
	if epoch != 0 && row.Epoch > epoch {
		return nil, &feedtype.Error{Code: feedtype.LeaseLost, Object: r.object(), Cause: fmt.Sprintf("the lease with epoch %d is over: the cursor is held under epoch %d", epoch, row.Epoch),
			Next: "acquire the lease again"}
	}
	return row, nil
}

// begin calls OnBegin in a transaction at the beginning, before anything else there.
func (t *consumerTx) begin(ctx context.Context, tx *sql.Tx) error {
	c, row := t.r.c, t.r.row
	if c.OnBegin == nil {
		return nil
	}
	if at, err := row.Value.State(); err != nil || !at.Start { // "now" and "at:…" begin no pass
		return nil
	}
	if err := t.handle(ctx, func() error { return c.OnBegin(ctx, tx) }); err != nil {
		return errors.Join(errIncomplete, err)
	}
	return nil
}
