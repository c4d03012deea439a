package install

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// refuseAboveElsewhere refuses a publisher whose sequence, read after the rows, is below a row's position: it does not
// advance the sequence in the transaction in which it gives positions.
func refuseAboveElsewhere(r *catalog.FeedRecord, highest, sequence int64) error {
	if highest <= sequence {
		return nil
	}
	return tableError(feedtype.Refused, r.Source,
		"let the publisher advance the sequence in the transaction in which it gives positions, raise the sequence to "+
			"the highest position, and add the feed again; or leave --published-elsewhere out, for rowfeed to publish",
		"a row has position %d, which is above the sequence %s at %d: a page shows positions up to the sequence",
		highest, r.AdoptSequence, sequence)
}

// refuseSharedName refuses a sequence of which it is not clear which row the publisher advances.
func refuseSharedName(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord) error {
	table, name, err := catalog.SequenceRow(r.Name, r.AdoptSequence)
	if err != nil {
		return err
	}
	var n int64
	err = db.One(ctx, q, statements, "count_former_sequences",
		dialect.Args{"table": dialect.SQL(dialect.Qualified(db.Dialect.Syntax, table)), "name": name}, &n)
	if err == nil && n > 1 {
		err = tableError(feedtype.Refused, table, "leave one of them, and make the column name unique",
			"%d rows have name %q", n, name)
	}
	return err
}

// elsewhere says which positions readers do not get because the sequence of the other publisher is below them.
func (f *Verifier) elsewhere(ctx context.Context, feed *dialect.Feed) ([]string, error) {
	d, q := f.Store.Dialect, f.Store.On()
	var highest *int64
	var head int64
	// The rows are read before the sequence, so a pass that commits meanwhile is no finding.
	err := dialect.One(ctx, q, d.Syntax, statements.For(d.Syntax, feed, "highest_position"), nil, &highest)
	if err == nil {
		err = dialect.One(ctx, q, d.Syntax, statements.For(d.Syntax, feed, "head_elsewhere"),
			dialect.Args{"feed": f.Name}, &head)
	}
	r := f.Record.Load()
	switch {
	case r.Fence:
		return []string{f.interrupted()}, nil
	case errors.Is(err, store.ErrNoRows) || err != nil && d.Classify(err) == dialect.ClassUndefined:
		return []string{fmt.Sprintf("the sequence %s of the publisher that gives its positions is gone, so no reader "+
			"gets anything; restore it, with the highest position that was given", r.AdoptSequence)}, nil
	case err != nil:
		return nil, f.Fail("read the sequence of its publisher", err)
	case highest != nil && *highest > head:
		return []string{fmt.Sprintf("a row of table %s has position %d, which is above the sequence %s at %d: readers "+
			"get it when the sequence has come to it; let the publisher advance the sequence in the transaction in "+
			"which it gives positions", r.Source, *highest, r.AdoptSequence, head)}, nil
	}
	return nil, nil
}

// interrupted is a problem of a feed of another publisher that has a fence.
func (f *Verifier) interrupted() string {
	return fmt.Sprintf("its takeover was interrupted: the fence refuses its former publisher, and rowfeed does not "+
		"publish yet; finish it with `rowfeed feed upgrade %s --published-here --fence`, or undo it with "+
		"`rowfeed feed drop %s` and add the feed again with --published-elsewhere, which keeps cursors", f.Name, f.Name)
}

// TakeOver lets rowfeed give the positions of a feed that another publisher has numbered, and returns whether that is a
// change. New positions are above the former ones, and cursors stay valid. With a fence, its triggers are made first:
// from then on the database refuses the former publisher's writes. Without a fence the former publisher must have been
// stopped. After an interruption a second call continues.
func (f *Upgrader) TakeOver(ctx context.Context, fence bool) (changed bool, err error) {
	if err := f.Reload(ctx); err != nil {
		return false, err
	}
	if r := f.Record.Load(); !r.PublishedElsewhere || r.State != catalog.StateElsewhere {
		return false, f.alreadyHere(r)
	}
	if fence || f.Record.Load().Fence { // the fence of an interrupted call may not have its triggers yet
		if err := f.DB.addFence(ctx, f.Feed, true); err != nil {
			return false, err
		}
		if _, err := f.Upgrade(ctx); err != nil {
			return false, err
		}
	}
	err = f.Store.WithSchemaLock(ctx, "take over "+f.Name, func(q dialect.Querier) (err error) {
		changed, err = f.takeOver(ctx, q)
		return err
	})
	if err == nil {
		err = f.Reload(ctx)
	}
	return changed, f.Explain(ctx, "take over", err)
}

// alreadyHere refuses feeds that rowfeed cannot take over. It accepts feeds that rowfeed has taken over.
func (f *Upgrader) alreadyHere(r *catalog.FeedRecord) error {
	switch {
	case r.State == catalog.StateCreating:
		return feedError(feedtype.Conflict, f.Name,
			"run `rowfeed feed add "+f.Name+"` again with the same options, which completes the feed",
			"the feed is not complete: its state is %s", r.State)
	case r.Capture != feedtype.CaptureColumn:
		return feedError(feedtype.Refused, f.Name, "leave --published-here out",
			"another publisher can give positions only with capture column")
	}
	return r.Unreadable
}

// takeOver makes the feed's sequence, and then rowfeed its publisher.
func (f *Upgrader) takeOver(ctx context.Context, q dialect.Querier) (changed bool, err error) {
	if err := f.Reload(ctx); err != nil {
		return false, err
	}
	r := *f.Record.Load()
	if r.State != catalog.StateElsewhere {
		return false, nil // another call was faster
	}
	table, name, err := catalog.SequenceRow(r.Name, r.AdoptSequence)
	if err != nil {
		return false, err
	}
	err = f.DB.together(ctx, q, func() error {
		if !r.Fence {
			if err := f.waitForPass(ctx, q, table, name); err != nil {
				return err
			}
		}
		changed, err = f.replace(ctx, q, r, !f.DB.ownSequences(table))
		return err
	})
	return changed, err
}

// replace makes rowfeed the publisher. With foreign, the record notes the last value of the former sequence.
func (f *Upgrader) replace(ctx context.Context, q dialect.Querier, r catalog.FeedRecord, foreign bool) (bool, error) {
	former, err := formerSequence(ctx, f.DB, q, r.Name, r.AdoptSequence)
	if err != nil {
		return false, err
	}
	d := f.Store.Dialect.Syntax
	var highest *int64
	if err := dialect.One(ctx, q, d, statements.For(d, r.Feed(f.Store.Names), "highest_position"), nil,
		&highest); err != nil {
		return false, err
	}
	value := former
	if highest != nil {
		value = max(value, *highest)
	}
	if r.PublishedElsewhere = false; foreign {
		r.FormerValue = &former
	}
	var n int64
	if err := f.Store.One(ctx, q, statements, "count_sequences", dialect.Args{"feed": f.Name}, &n); err != nil {
		return false, err
	}
	save := "insert_sequence"
	if n > 0 {
		save = "raise_sequence"
	}
	_, err = f.Store.Exec(ctx, q, statements, save, dialect.Args{"feed": f.Name, "value": value})
	if err != nil {
		return false, err
	}
	n, err = f.Store.Exec(ctx, q, statements, "take_over", dialect.Args{"active": catalog.StateActive,
		"options": r.OptionsText(), "feed": f.Name, "elsewhere": catalog.StateElsewhere})
	return n == 1, err
}

// waitForPass waits for the pass of the other publisher, and keeps it from the next one until q's transaction ends.
func (f *Upgrader) waitForPass(ctx context.Context, q dialect.Querier, table feedtype.TableName, name string) error {
	d := f.Store.Dialect
	for attempt := 1; ; attempt++ {
		var value int64
		err := f.Store.One(ctx, q, statements, "lock_former_sequence", dialect.Args{
			"table": dialect.SQL(dialect.Qualified(d.Syntax, table)), "name": name,
			"unlocked": dialect.SQL(d.SkipLocked)},
			&value)
		switch {
		case errors.Is(err, store.ErrNoRows) && attempt < store.MaxAttempts:
			if err := store.Pause(ctx, store.Backoff(attempt)); err != nil {
				return err
			}
		case errors.Is(err, store.ErrNoRows):
			return feedError(feedtype.Locked, f.Name, "stop its former publisher, and run the command again",
				"row %q of table %s was locked or deleted: its former publisher still gives positions", name, table)
		default:
			return err
		}
	}
}
