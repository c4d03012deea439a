package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Moving positions out of the rows turns capture "column" into capture "trigger". The order of its steps is what makes
// it lose nothing:
//
//  1. The record says capture "trigger" and the state moving. From then on no publisher writes into rows, since its
//     last statement asks for the capture.
//  2. The triggers are made. That waits for all writers, so what was written before is visible to the next step.
//  3. The sequence is read, under its lock. A key with a higher position needs nothing more, even if its row holds
//     another one: the key was published after the triggers were made, and they have recorded what came later.
//  4. A walk along the keys of the rows gives the table of positions those that it lacks. It records rows of which it
//     cannot have one: rows that wait, and rows whose position another program has given.
//  5. The changes that are visible now are published. While the state is moving, a key without a row always gets a
//     delete: its position may have been in the row. The walk has missed only keys that were deleted before, so their
//     changes are among these.
//
// Pages read both places until the state is active, and prefer the table of positions.

// The stages of moving positions. Before the first one, the triggers are not made yet. The mark in feeds.fill_after has
// the stage, the value of the sequence, and then the last key.
const (
	moveRows  = iota // the rows of the table
	moveDrain        // what is visible then has to be published
)

// MayMove refuses a feed whose positions cannot be moved out of the rows. It accepts one that has them there no more.
func (f *Upgrader) MayMove(ctx context.Context) error {
	if err := f.Reload(ctx); err != nil {
		return err
	}
	r := f.Record.Load()
	if r.Moved || r.Unreadable != nil {
		return r.Unreadable
	}
	_, err := f.toMove(ctx, f.Store.On(), r)
	return f.Fail("move its positions", err)
}

// toMove returns the record of the feed after the move, or refuses it.
func (f *Upgrader) toMove(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) (*catalog.FeedRecord, error) {
	refuse := func(next, format string, args ...any) (*catalog.FeedRecord, error) {
		return nil, feedError(feedtype.Refused, f.Name, next, format, args...)
	}
	switch {
	case r.Mode != feedtype.ModeSequence || r.Capture != feedtype.CaptureColumn && r.Capture != feedtype.CaptureTrigger:
		return refuse("leave --capture out", "only a feed with capture column can get capture trigger, and it has "+
			"mode %s and capture %s", r.Mode, r.Capture)
	case r.Capture == feedtype.CaptureTrigger:
		return refuse("leave --capture out", "it has had capture trigger since it was added")
	case r.PublishedElsewhere:
		return refuse("run `rowfeed feed upgrade "+f.Name+" --published-here` first",
			"another publisher gives its positions, in the rows")
	case r.State != catalog.StateActive:
		next := "run `rowfeed feed add " + f.Name + "` again with the same options, which completes the feed"
		if r.State == catalog.StateSharding {
			next = catalog.FinishSharding(f.Name, r.DataShards)
		}
		return nil, feedError(feedtype.Conflict, f.Name, next, "its state is %s, not active", r.State)
	case !f.Store.Dialect.Fences: // a database that is not tested with it
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name),
			Err: errors.ErrUnsupported, Cause: "positions cannot be moved out of the rows on this database",
			Next: "add a second feed with --capture trigger, and move its readers there"}
	}
	table, err := catalog.DescribeSource(ctx, f.Store, q, r)
	if err != nil {
		return nil, err
	}
	if len(table.Untriggered) > 0 {
		return refuse("remove the cascade, or keep capture column", "some writes of table %s fire no trigger: %s",
			r.Source, strings.Join(table.Untriggered, "; "))
	}
	to := *r
	to.Capture, to.State, to.Moved = feedtype.CaptureTrigger, catalog.StateMoving, true
	// What belongs to positions in rows has no meaning any more.
	to.Fence, to.AcceptTriggers, to.FormerValue = false, false, nil
	to.Adopt, to.AdoptSequence, to.AdoptCursors = false, "", ""
	if _, err := newRecord(f.Store.Dialect, feedtype.FeedSpec{Name: r.Name, Mode: r.Mode, Capture: to.Capture,
		Key: catalog.KeyNames(r.Key), Columns: r.Columns, DataShards: r.DataShards,
		ShardColumn: r.ShardColumn}, table); err != nil {
		return nil, err
	}
	if _, err := f.DB.feedUp(&to, table); err != nil {
		return nil, err
	}
	_, err = f.repairSteps(ctx, q, &to, table) // a login without a right must not stop the feed half-way
	return &to, err
}

// repairSteps returns the steps that give the feed its triggers and tables. The steps also work if
// some of these exist already.
func (f *Upgrader) repairSteps(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord, table *dialect.Table) (
	[]dialect.Step, error,
) {
	steps, err := f.Store.Dialect.Repair(ctx, q, r.Feed(f.Store.Names), table)
	var refusal *dialect.Refusal
	if errors.As(err, &refusal) {
		err = feedError(feedtype.Refused, f.Name, refusal.Next, "%s", refusal.Cause)
	}
	return steps, err
}

// MovePositions moves the positions of a feed with capture "column" into rowfeed's own table, and lets triggers record
// changes from then on. It returns whether that is a change. Nothing is written into rows. Cursors stay valid, and
// readers, writers and publishers continue. After an interruption a second call continues. progress may be nil; it
// receives the number of positions moved, or rows recorded, by this call.
func (f *Upgrader) MovePositions(ctx context.Context, progress func(int64)) (changed bool, err error) {
	if err := f.MayMove(ctx); err != nil {
		return false, err
	}
	for total := int64(0); ; {
		r := f.Record.Load()
		var n int64
		switch at, since, after := moved(r); {
		case r.State != catalog.StateMoving && r.Moved:
			return changed, nil
		case r.State != catalog.StateMoving:
			err = f.beginMove(ctx)
		case len(r.FillAfter) == 0:
			err = f.captureMoved(ctx, r)
		case at == moveRows:
			n, err = f.moveBatch(ctx, r, since, after)
		default:
			err = f.endMove(ctx, r)
		}
		if err != nil && !errors.Is(err, ErrRecordChanged) {
			return false, f.Explain(ctx, "move its positions (run the command again to continue)", err)
		}
		changed = true // by this call or by a concurrent one
		if total += n; progress != nil && n > 0 {
			progress(total)
		}
		f.Partitions.Recorder.Wake()
		if err := f.Reload(ctx); err != nil {
			return false, err
		}
	}
}

// moved returns the stage of the move, the sequence's value after the triggers were made, and the last key.
func moved(r *catalog.FeedRecord) (stage int, since int64, after []any) {
	if len(r.FillAfter) < 2 {
		return moveRows, 0, nil
	}
	at, _ := r.FillAfter[0].(int64)
	since, _ = r.FillAfter[1].(int64)
	if len(r.FillAfter) > 2 {
		after = r.FillAfter[2:]
	}
	return int(at), since, after
}

// beginMove saves the new capture.
func (f *Upgrader) beginMove(ctx context.Context) error {
	return f.Store.WithSchemaLock(ctx, "move the positions of "+f.Name, func(q dialect.Querier) error {
		if err := f.Reload(ctx); err != nil {
			return err
		}
		r := f.Record.Load()
		if r.Moved {
			return nil // another call was faster
		}
		to, err := f.toMove(ctx, q, r)
		if err != nil {
			return err
		}
		n, err := f.Store.Exec(ctx, q, statements, "begin_moving", dialect.Args{"moving": catalog.StateMoving,
			"trigger": string(to.Capture), "options": to.OptionsText(), "feed": f.Name,
			"generation": r.Generation, "active": catalog.StateActive, "column": string(r.Capture)})
		if err == nil && n != 1 {
			err = ErrRecordChanged
		}
		return err
	})
}

// captureMoved makes the triggers, and the index by bucket. Then it saves the value of the sequence.
func (f *Upgrader) captureMoved(ctx context.Context, r *catalog.FeedRecord) error {
	err := f.Store.WithSchemaLock(ctx, "make the triggers of "+f.Name, func(q dialect.Querier) error {
		if err := refuseChanged(ctx, q, f.Store, r, catalog.StateMoving); err != nil {
			return err
		}
		table, err := catalog.DescribeSource(ctx, f.Store, q, r)
		if err != nil {
			return err
		}
		steps, err := f.repairSteps(ctx, q, r, table)
		if err == nil {
			err = run(ctx, q, steps)
		}
		if err != nil {
			return err
		}
		if steps, err = f.Store.Dialect.BucketIndex(ctx, q, r.Feed(f.Store.Names)); err == nil {
			err = run(ctx, q, steps)
		}
		if err != nil || len(table.Partitions) == 0 {
			return err
		}
		now := *r
		now.Partitions = &catalog.Partitions{Attached: attachedOf(table)}
		return f.DB.saveOptions(ctx, q, &now)
	})
	if err != nil {
		return err
	}
	return f.Store.InTx(ctx, dialect.ForPublish, "move the positions of "+f.Name, func(tx dialect.Querier) error {
		seq, err := f.Store.Dialect.LockSequence(ctx, tx, r.Feed(f.Store.Names))
		if err != nil {
			return err
		}
		return saveMark(ctx, tx, f.Store, r, catalog.StateMoving, []any{int64(moveRows), seq.Value})
	})
}

// moveBatch moves the positions of the next rows in key order, and records the rows of which it cannot. The lock on the
// sequence keeps publishers out of the table of positions. Writers are not kept out: what they write meanwhile is
// recorded by the triggers.
func (f *Upgrader) moveBatch(ctx context.Context, r *catalog.FeedRecord, since int64, after []any) (
	n int64, err error,
) {
	err = f.Store.InTx(ctx, dialect.ForPublish, "move positions of "+f.Name, func(tx dialect.Querier) error {
		feed, s := r.Feed(f.Store.Names), f.Store.Dialect.Syntax
		seq, err := f.Store.Dialect.LockSequence(ctx, tx, feed)
		if err != nil {
			return err
		}
		if err := refuseChanged(ctx, tx, f.Store, r, catalog.StateMoving); err != nil {
			return err
		}
		rows, last, err := f.Partitions.Recorder.KeyRange(ctx, tx, "", after, reshardBatch)
		if err != nil {
			return err
		}
		which := dialect.Built(func(b *dialect.Builder) string { return strings.Join(rows(b), " AND ") })
		shard, bucket := movedShard(s, feed)
		placed, err := dialect.Exec(ctx, tx, s, statements.For(s, feed, "move_positions"), dialect.Args{"which": which,
			"since": since, "published": seq.UpdatedAt, "shard": dialect.SQL(shard), "bucket": dialect.SQL(bucket)})
		if err != nil {
			return err
		}
		recorded, err := dialect.Exec(ctx, tx, s, statements.For(s, feed, "record_unmoved"),
			s.Uncut(dialect.Args{"which": which, "since": since}))
		if err != nil {
			return err
		}
		n = placed + recorded
		mark := append([]any{int64(moveRows), since}, last...)
		if last == nil {
			mark[0] = int64(moveDrain)
		}
		return saveMark(ctx, tx, f.Store, r, catalog.StateMoving, mark)
	})
	return n, err
}

// movedShard returns expressions for the data shard and the bucket of row t. Pages have shown the row in that shard.
// The division leaves no rest, so that all databases divide alike.
func movedShard(s *dialect.Syntax, feed *dialect.Feed) (shard, bucket string) {
	if !feed.Sharded() {
		return "0", "0"
	}
	shard = statements.For(s, feed, "moved_shard").String()
	d := feed.DataShards
	n := fmt.Sprintf("((%s + 1) * %d - 1)", shard, dialect.Bucket(d-1, d)+1) // see dialect.Bucket
	return shard, fmt.Sprintf("CASE WHEN %s < 0 THEN -1 ELSE (%s - %s %% %d) / %d END", shard, n, n, d, d)
}

// endMove publishes the visible changes, and sets the feed active.
func (f *Upgrader) endMove(ctx context.Context, r *catalog.FeedRecord) error {
	if err := f.PublishVisible(ctx); err != nil {
		return err
	}
	n, err := f.Store.Exec(ctx, f.Store.On(), statements, "end_walk", dialect.Args{"active": catalog.StateActive,
		"unchanged": unchanged(f.Store, r, catalog.StateMoving)})
	if err == nil && n != 1 {
		err = ErrRecordChanged
	}
	return err
}

// RefuseMoving refuses what needs all positions of the feed in one place.
func RefuseMoving(r *catalog.FeedRecord, doing string) error {
	if r.State != catalog.StateMoving {
		return nil
	}
	return feedError(feedtype.Conflict, r.Name, FinishMoving(r.Name),
		"%s: its positions are being moved out of the rows", doing)
}

// FinishMoving is the next step while positions are being moved.
func FinishMoving(feed string) string {
	return fmt.Sprintf("wait for `rowfeed feed upgrade %s --capture trigger`; if that was interrupted, run it again",
		feed)
}

// saveMark saves how far a walk has come. If the record has changed since it was read, it returns ErrRecordChanged.
func saveMark(ctx context.Context, tx dialect.Querier, s *store.Store, r *catalog.FeedRecord, state string,
	mark []any) error {
	if err := refuseChanged(ctx, tx, s, r, state); err != nil {
		return err
	}
	_, err := s.Exec(ctx, tx, statements, "save_mark", dialect.Args{"to": dialect.EncodeKey(mark),
		"unchanged": unchanged(s, r, state)})
	return err
}
