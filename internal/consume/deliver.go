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

// deliverBatch hands entries over outside any transaction, and stores the cursor behind them
// when it is known what became of each: at least once. Entries of keys that are set aside
// are left out; those that are refused, as often as it takes, are set aside as well.
func (a *applier) deliverBatch(ctx context.Context, entries []feedtype.Entry, to feedtype.Cursor) error {
	started := time.Now()
	aside, err := a.dead.indexesAside(ctx, entries)
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
	refused, err := a.callDeliver(ctx, batch)
	if err != nil {
		return err
	}
	if len(refused) > 0 && a.retry.failures+1 < a.c.Retry.MaxAttempts {
		return &handlerError{refused[0].Err}
	}
	next := 0 // the entries before it are behind the cursor
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
				Cause: fmt.Sprintf("the entry at position %s with key %s was refused %d times", e.Position, e.Key.AppendJSON(nil), a.retry.failures+1),
				Next:  "mend the row or the receiver and start again, or have such keys set aside (OnFailure: SetAside, --set-aside)"}
		}
		a.trouble(refusal.Err)
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

// handOver calls Deliver. An error of it, or a panic, is no entry's fault: it is called
// again later, for as long as it takes.
func (a *applier) callDeliver(ctx context.Context, batch []feedtype.Entry) (refused []feedtype.Refusal, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			a.cursor.row = nil // the consumer may be paused, or its cursor moved, until the receiver is back
		}
		switch {
		case err == nil:
			a.retry.missed = 0
		case ctx.Err() != nil:
			err = ctx.Err()
		default:
			a.retry.missed++
			err = &feedtype.Error{Code: feedtype.Unavailable, Object: a.object(), Cause: "entries could not be delivered, and will be again", Err: err}
		}
	}()
	if refused, err = a.deliver(ctx, batch); err != nil {
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

// deliverOne hands over the version of a dead letter's key, where that is Deliver's to
// do.
func (a *applier) deliverOne(ctx context.Context, batch []feedtype.Entry) error {
	if a.deliver == nil {
		return nil
	}
	refused, err := a.callDeliver(ctx, batch)
	if err == nil && len(refused) > 0 {
		err = &handlerError{refused[0].Err}
	}
	return err
}

// pass stores the cursor behind entries[from:to], which were delivered, or join their
// keys' dead letters now. If others than those have letters by now, something was
// delivered, or not, that should not, or should, have been: from the cursor again.
func (a *applier) pass(ctx context.Context, entries []feedtype.Entry, aside map[int]bool, from, to int, end feedtype.Cursor) error {
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

// behind is the cursor behind the i-th entry of a page that ends at end.
func (a *applier) behind(entries []feedtype.Entry, i int, end feedtype.Cursor) (feedtype.Cursor, error) {
	if i >= len(entries)-1 {
		return end, nil
	}
	return end.Within(a.cursor.row.Value, entries[i])
}
