package install

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// recentPositions is how many of the highest positions Foreign searches for duplicates. Foreign runs every minute, so
// it does not read all of them; `rowfeed check` does.
const recentPositions = 10_000

// Foreign searches a feed with capture "column" for positions that another program has written into the rows. It
// returns a message for each problem that it finds with a few reads of an index.
func (f *Verifier) Foreign(ctx context.Context) (problems []string, err error) {
	r := f.Record.Load()
	feed := r.Feed(f.Store.Names)
	if r.PublishedElsewhere {
		return f.elsewhere(ctx, feed)
	}
	if !feed.InRows() || r.Unreadable != nil || r.Gone() || r.State == catalog.StateCreating {
		return nil, nil
	}
	d, q := f.Store.Dialect, f.Store.On()
	tell := func(format string, args ...any) {
		problems = append(problems, f.foreign(fmt.Sprintf(format, args...)))
	}
	// The rows are read before the sequence, so a pass that commits meanwhile is no finding.
	var highest, shared *int64
	var head int64
	err = dialect.One(ctx, q, d.Syntax, statements.For(d.Syntax, feed, "highest_position"), nil, &highest)
	if err == nil {
		err = f.Store.One(ctx, q, statements, "sequence_value", dialect.Args{"feed": f.Name}, &head)
	}
	if errors.Is(err, store.ErrNoRows) {
		return nil, nil // without a sequence nothing is published
	}
	if err == nil {
		err = dialect.One(ctx, q, d.Syntax, statements.For(d.Syntax, feed, "recent_shared_position"),
			dialect.Args{"from": head - recentPositions}, &shared)
	}
	if err != nil && !errors.Is(err, store.ErrNoRows) {
		return nil, f.Fail("look for positions of another publisher", err)
	}
	if highest != nil && *highest > head {
		tell("%d is above the feed's sequence, which is at %d", *highest, head)
	}
	if shared != nil {
		tell("more than one key has position %d", *shared)
	}
	runs, err := f.FormerStillRuns(ctx)
	return append(problems, runs...), err
}

// foreign is a problem that Foreign finds.
func (f *Verifier) foreign(found string) string {
	return fmt.Sprintf("a publisher that is not rowfeed's gives positions to rows of table %s: %s; stop it, then run "+
		"`rowfeed repair %s`", f.Record.Load().Source, found, f.Name)
}

// FormerStillRuns returns a message if the former sequence of an adopted feed has risen, or if the takeover of the feed
// was interrupted. The former publisher's new positions may be below the cursors of readers, which then miss the
// entries. The rows do not show that, so it compares the sequence.
func (f *Verifier) FormerStillRuns(ctx context.Context) ([]string, error) {
	if r := f.Record.Load(); r.PublishedElsewhere && r.Fence {
		return []string{f.interrupted()}, nil
	}
	from, to, err := f.Former(ctx)
	if err != nil || to <= from {
		return nil, err
	}
	return []string{f.foreign(fmt.Sprintf("the former sequence %s has gone from %d to %d since the feed adopted it",
		f.Record.Load().AdoptSequence, from, to))}, nil
}

// Former returns the value of the former sequence when the feed adopted it, and the present one. Both are 0 if the feed
// has adopted none, if it does not exist any more, or if this account may not read it.
func (f *Verifier) Former(ctx context.Context) (adopted, now int64, err error) {
	r := f.Record.Load()
	if r.AdoptSequence == "" || r.FormerValue == nil {
		return 0, 0, nil
	}
	now, err = formerSequence(ctx, f.DB, f.Store.On(), r.Name, r.AdoptSequence)
	if errors.Is(err, feedtype.Refused) || f.Store.Dialect.Classify(err) == dialect.ClassPermission {
		return 0, 0, nil
	}
	return *r.FormerValue, now, f.Fail("read its former sequence", err)
}

// Repaired notes the value up to which positions of the former sequence were repaired.
func (f *Verifier) Repaired(ctx context.Context, former int64) error {
	err := f.Store.WithSchemaLock(ctx, "note the former sequence of "+f.Name, func(q dialect.Querier) error {
		if err := f.Reload(ctx); err != nil {
			return err
		}
		r := *f.Record.Load()
		r.FormerValue = &former
		return f.DB.saveOptions(ctx, q, &r)
	})
	if err == nil {
		err = f.Reload(ctx)
	}
	return f.Fail("note the value of its former sequence", err)
}

// ownSequences tells whether a former table of sequences is rowfeed's own, which the feed continues itself.
func (db *Database) ownSequences(table feedtype.TableName) bool {
	own := db.Names.Table("sequences")
	return table.Name == own.Name && slices.Contains([]string{"", own.Schema}, table.Schema)
}
