package consume

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// deliverBatch calls Deliver outside any transaction, and then stores the cursor: at least once. Entries of keys that
// are set aside are left out. Entries that are refused too often are set aside.
func (a *applier) deliverBatch(ctx context.Context, entries []feedtype.Entry, to feedtype.Cursor) error {
	started := time.Now()
	aside, err := a.dead.indexesAside(ctx, entries)
	if err != nil {
		return err
	}
	var batch []feedtype.Entry
	var at []int // indexes of the entries of batch in entries
	for i, e := range entries {
		if !aside[i] {
			batch, at = append(batch, e), append(at, i)
		}
	}
	refused, err := a.callDeliver(ctx, batch)
	if err != nil {
		return err
	}
	if len(refused) > 0 && a.retry.failures+1 < a.c.Retry.MaxAttempts {
		return &handlerError{refused[0].Err, string(batch[refused[0].Entry].Key.AppendJSON(nil))}
	}
	next := 0 // the cursor is behind the entries before this index
	for _, refusal := range refused {
		i := at[refusal.Entry]
		e := entries[i]
		if i > next {
			if err := a.pass(ctx, entries, aside, next, i, to); err != nil {
				return err
			}
		}
		if a.c.OnFailure == feedtype.Stop {
			return &feedtype.Error{Code: feedtype.HandlerFailed, Object: a.object(), Err: &entryError{refusal.Err},
				Cause: fmt.Sprintf("the entry at position %s with key %s was refused %d times", e.Position,
					e.Key.AppendJSON(nil), a.retry.failures+1),
				Next: "correct the row or the receiver, then start again, or have such keys set aside (OnFailure: " +
					"SetAside, --set-aside)"}
		}
		behind, err := a.behind(entries, i, to)
		if err != nil {
			return err
		}
		if err := a.setAside(ctx, e, behind, a.retry.failures+1, refusal.Err); err != nil {
			return err
		}
		next = i + 1
	}
	if next < len(entries) || len(entries) == 0 {
		if err := a.pass(ctx, entries, aside, next, len(entries), to); err != nil {
			return err
		}
	}
	a.consumed(len(batch)-len(refused), len(entries)-len(batch), to, started)
	return nil
}

// callDeliver calls Deliver. An error or a panic counts against no entry: Deliver is called again, as often as it
// takes.
func (a *applier) callDeliver(ctx context.Context, batch []feedtype.Entry) (refused []feedtype.Refusal, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			a.cursor.row = nil // an operator may pause the consumer or move its cursor meanwhile
		}
		switch {
		case err == nil:
			a.retry.missed = 0
		case ctx.Err() != nil:
			err = ctx.Err()
		default:
			a.retry.missed++
			err = &feedtype.Error{Code: feedtype.Unavailable, Object: a.object(),
				Cause: "the consumer failed to process a batch; the whole batch will be delivered again", Err: err}
		}
	}()
	if refused, err = a.deliver(ctx, batch); err != nil {
		return nil, err
	}
	slices.SortFunc(refused, func(a, b feedtype.Refusal) int { return a.Entry - b.Entry })
	for i, refusal := range refused {
		if refusal.Entry < 0 || refusal.Entry >= len(batch) || refusal.Err == nil || i > 0 &&
			refusal.Entry == refused[i-1].Entry {
			return nil, fmt.Errorf("the consumer's Deliver refused entry %d of %d with error %v", refusal.Entry,
				len(batch), refusal.Err)
		}
	}
	return refused, nil
}

// deliverOne delivers the released version of a dead letter, if the consumer has Deliver.
func (a *applier) deliverOne(ctx context.Context, batch []feedtype.Entry) error {
	if a.deliver == nil {
		return nil
	}
	refused, err := a.callDeliver(ctx, batch)
	if err == nil && len(refused) > 0 {
		err = &handlerError{err: refused[0].Err}
	}
	return err
}

// pass stores the cursor behind entries[from:to]. They were delivered, or join their dead letters now. If the set of
// dead letters has changed since, the page is read again.
func (a *applier) pass(ctx context.Context, entries []feedtype.Entry, aside map[int]bool, from, to int,
	end feedtype.Cursor) error {
	behind, err := a.behind(entries, to-1, end)
	if err != nil {
		return err
	}
	delivered := 0
	for i := from; i < to; i++ {
		if !aside[i] {
			delivered++
		}
	}
	return a.inTx(ctx, func(tx *sql.Tx, t *batchTx) error {
		if len(aside) > 0 {
			rest, err := a.dead.collapse(ctx, t.q, entries[from:to])
			if err != nil {
				return err
			}
			if len(rest) != delivered {
				return errOvertaken
			}
		}
		return t.finish(ctx, tx, behind, len(entries), 0)
	})
}

// behind returns the cursor behind the i-th entry of a page that ends at end.
func (a *applier) behind(entries []feedtype.Entry, i int, end feedtype.Cursor) (feedtype.Cursor, error) {
	if i >= len(entries)-1 {
		return end, nil
	}
	return end.Within(a.cursor.row.Value, entries[i])
}
