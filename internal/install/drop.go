package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Drop removes what Create has made, except for the feed's record. A feed that is added under the same name later gets
// a higher generation, unless it continues this one: see continueDropped. With handBack, Drop also writes the positions
// into the tables from which the feed was adopted, even if the feed is already dropped.
func (db *Database) Drop(ctx context.Context, name string, handBack bool) (plan *feedtype.DropPlan, err error) {
	if err := feedtype.ValidName(name); err != nil {
		return nil, err
	}
	if err := db.RequireSchema(ctx, db.On()); err != nil {
		return nil, err
	}
	err = db.WithSchemaLock(ctx, "feed drop "+name, func(q dialect.Querier) error {
		r, err := db.toDrop(ctx, q, name)
		if err != nil {
			return err
		}
		if handBack {
			if err := refuseHandBack(r); err != nil {
				return err
			}
		}
		plan = &feedtype.DropPlan{}
		if r.State == catalog.StateDropped {
			if handBack {
				err = (&returning{db, q, r, plan}).run(ctx, true)
			}
			return err
		}
		if err := db.drop(ctx, q, r, handBack, plan); err != nil {
			return err
		}
		return db.setState(ctx, q, name, catalog.StateDropped)
	})
	return plan, db.Fail(feedtype.FeedObject(name), "drop", err)
}

// toDrop reads the record of a feed that exists or was dropped.
func (db *Database) toDrop(ctx context.Context, q dialect.Querier, name string) (*catalog.FeedRecord, error) {
	known, err := catalog.Load(ctx, db.Store, q, name)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, feedError(feedtype.UnknownFeed, name, "`rowfeed feed list` shows the feeds",
			"there is no such feed")
	}
	if known[0].State == catalog.StateDropped {
		return known[0], nil
	}
	return known[0], known[0].Unreadable
}

// drop removes a feed's objects. It does not set the state dropped.
func (db *Database) drop(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord, handBack bool,
	plan *feedtype.DropPlan) error {
	if err := db.beginDrop(ctx, q, r); err != nil {
		return err
	}
	table, err := db.Dialect.Describe(ctx, q, r.Source)
	if err != nil && db.Dialect.Classify(err) != dialect.ClassUndefined {
		return err
	}
	if r.LeavesPositions() && r.Dropped == nil {
		if err != nil {
			r.Dropped, err = db.withoutTable(ctx, q, r)
		} else {
			r.Dropped, err = db.close(ctx, q, r, handBack, plan)
		}
		if err != nil {
			return err
		}
		if err := db.saveOptions(ctx, q, r); err != nil {
			return err
		}
	}
	if handBack {
		// This comes before the fence is removed. The former publisher continues from then on, and must give positions
		// above the head.
		if err := (&returning{db, q, r, plan}).run(ctx, true); err != nil {
			return err
		}
	}
	if err := revokeAll(ctx, db, q, r); err != nil {
		return err
	}
	if err := kinds[r.Mode].down(ctx, db, q, r, table); err != nil {
		return err
	}
	forget := []string{"drop_sequence", "drop_terms"}
	if r.Dropped.Continues() {
		forget = forget[:1] // earlier cursors stay valid by their terms
	}
	if r.PublishedElsewhere {
		forget = forget[1:] // a row of this name is the team's own
	}
	for _, drop := range forget {
		if _, err := db.Exec(ctx, q, statements, drop, dialect.Args{"feed": r.Name}); err != nil {
			return err
		}
	}
	return nil
}

// beginDrop sets the state. Where each DDL statement commits, a drop that was interrupted must not look like a complete
// feed. What the feed leaves is then not known yet, except for a feed whose creation was not complete.
func (db *Database) beginDrop(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) error {
	if r.State == catalog.StateDropping {
		return nil
	}
	if r.LeavesPositions() {
		if r.State != catalog.StateCreating {
			r.Dropped = nil
		} else if r.Dropped == nil {
			r.Dropped = &catalog.Dropped{Why: "its creation was not complete when it was dropped"}
		}
		if err := db.saveOptions(ctx, q, r); err != nil {
			return err
		}
	}
	return db.setState(ctx, q, r.Name, catalog.StateDropping)
}

// close keeps publishers and writers of changes out, ends the feed's term, and says from where its readers can
// continue. It can be repeated: nothing that it reads has been removed before its result is saved.
func (db *Database) close(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord, handBack bool,
	plan *feedtype.DropPlan) (*catalog.Dropped, error) {
	feed := r.Feed(db.Names)
	changes, err := db.Dialect.CloseChanges(ctx, q, feed)
	if err != nil {
		return nil, err
	}
	if handBack {
		n, err := db.Dialect.ResetRows(ctx, q, feed, db.outdated(feed), nil)
		if err != nil {
			return nil, err
		}
		planResets(plan, r.Source, n)
	}
	before, seq, err := db.dropped(ctx, q, r, changes, false)
	if err != nil {
		return nil, err
	}
	if before.Continues() {
		if seq.Now, err = db.Clock(ctx, q); err == nil {
			err = history.EndTerms(ctx, q, db.Store, r.Name, seq)
		}
	}
	return before, err
}

// withoutTable is the result of close for a feed whose table does not exist any more.
func (db *Database) withoutTable(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) (*catalog.Dropped,
	error) {
	before := &catalog.Dropped{Why: "its table did not exist when it was dropped"}
	if r.PublishedElsewhere {
		return before, nil
	}
	err := db.One(ctx, q, statements, "sequence_value", dialect.Args{"feed": r.Name}, &before.Head)
	if errors.Is(err, store.ErrNoRows) {
		err = nil
	}
	return before, err
}

func (db *Database) outdated(feed *dialect.Feed) string {
	return statements.For(db.Dialect.Syntax, feed, "outdated").String()
}

// dropped says from where the readers of a feed can continue if the feed is dropped now and added again. With reset it
// assumes that rows with outdated positions get new ones.
func (db *Database) dropped(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord, changes feedtype.TableName,
	reset bool) (*catalog.Dropped, dialect.Sequence, error) {
	var seq dialect.Sequence
	feed, syntax := r.Feed(db.Names), db.Dialect.Syntax
	var err error
	if r.PublishedElsewhere {
		var gone bool
		if seq.Value, gone, err = formerValue(ctx, db, q, r); gone {
			return &catalog.Dropped{Why: "the sequence of its publisher was gone when it was dropped"}, seq, nil
		}
	} else {
		err = db.One(ctx, q, statements, "sequence_left", dialect.Args{"feed": r.Name}, &seq.Value, &seq.Term)
	}
	if errors.Is(err, store.ErrNoRows) {
		return &catalog.Dropped{Why: "it had no row in the sequences table when it was dropped"}, seq, nil
	}
	var waiting, outdated, tombstone int64
	err = cmp.Or(err, db.One(ctx, q, statements, "any_change",
		dialect.Args{"changes": dialect.SQL(dialect.Qualified(syntax, changes))}, &waiting),
		dialect.One(ctx, q, syntax, statements.For(syntax, feed, "count_outdated"),
			dialect.Args{"outdated": dialect.SQL(db.outdated(feed))}, &outdated),
		dialect.One(ctx, q, syntax, statements.For(syntax, feed, "highest_tombstone"), nil, &tombstone))
	if err != nil {
		return nil, seq, err
	}
	before := &catalog.Dropped{Head: seq.Value, Below: max(tombstone, r.TombstonesBelow)}
	if r.AdoptSequence != "" {
		// A table that is gone is no reason to keep the feed: it has no value then.
		if before.Former, _, err = formerValue(ctx, db, q, r); err != nil {
			return nil, seq, err
		}
	}
	switch {
	case waiting > 0:
		before.Why = "changes that it recorded were not published before the drop, and deletes may be among them. " +
			"`rowfeed publish --once " + r.Name + "` before a drop avoids it"
	case outdated > 0 && !reset:
		before.Why = fmt.Sprintf("%d of its rows were republished or unpublished, and these positions are not "+
			"in the rows", outdated)
	}
	return before, seq, nil
}

// goneOn is the reason for which cursors are refused after the former publisher has given positions below the head.
func goneOn(before *catalog.Dropped) string {
	return fmt.Sprintf("the former publisher has gone on from position %d, below the feed's head %d: "+
		"readers have passed such positions. `rowfeed feed drop --hand-back` avoids it", before.Former, before.Head)
}

// PreviewDrop says what Drop would do to readers and to the team's tables.
func (db *Database) PreviewDrop(ctx context.Context, name string, handBack bool) (*feedtype.DropPlan, error) {
	plan := &feedtype.DropPlan{}
	err := func() error {
		q := db.On()
		r, err := db.toDrop(ctx, q, name)
		if err != nil {
			return err
		}
		if handBack {
			if err := refuseHandBack(r); err != nil {
				return err
			}
		}
		exists := true
		if plan.Interrupted = r.State == catalog.StateDropping; r.State != catalog.StateDropped {
			_, err := db.Dialect.Describe(ctx, q, r.Source)
			if exists = err == nil; !exists && db.Dialect.Classify(err) != dialect.ClassUndefined {
				return err
			}
		}
		settled := r.Gone() || r.State == catalog.StateCreating
		if r.LeavesPositions() && r.State != catalog.StateDropped && (r.Dropped == nil || !settled) {
			if err := db.previewDropped(ctx, q, r, exists, handBack, plan); err != nil {
				return err
			}
		}
		switch {
		case handBack:
			if err := (&returning{db, q, r, plan}).run(ctx, false); err != nil {
				return err
			}
		case r.Gone() && r.Dropped != nil && refuseHandBack(r) == nil:
			owed := &feedtype.DropPlan{}
			err := (&returning{db, q, r, owed}).run(ctx, false)
			if err != nil && !errors.Is(err, feedtype.Refused) { // the team's tables may be gone
				return err
			}
			plan.NotHandedBack = owed.Written
		}
		if r.LeavesPositions() && r.Dropped != nil && exists {
			plan.Keeps, plan.Head, plan.From, plan.Restart = true, r.Dropped.Head, r.Dropped.Below, r.Dropped.Why
		}
		return nil
	}()
	return plan, db.Fail(feedtype.FeedObject(name), "preview the drop of", err)
}

func (db *Database) previewDropped(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord, exists,
	handBack bool, plan *feedtype.DropPlan) (err error) {
	if !exists {
		r.Dropped, err = db.withoutTable(ctx, q, r)
		return err
	}
	feed, syntax := r.Feed(db.Names), db.Dialect.Syntax
	before, _, err := db.dropped(ctx, q, r, feed.Changes(), handBack)
	if r.State == catalog.StateDropping && db.Dialect.Classify(err) == dialect.ClassUndefined {
		before, _, err = db.dropped(ctx, q, r, feed.ClosedChanges(), handBack)
	}
	if db.Dialect.Classify(err) == dialect.ClassUndefined {
		return nil // a drop by an older version that was interrupted has removed them
	}
	if err != nil {
		return err
	}
	r.Dropped = before
	if !handBack {
		return nil
	}
	var n int64
	err = dialect.One(ctx, q, syntax, statements.For(syntax, feed, "count_outdated"),
		dialect.Args{"outdated": dialect.SQL(db.outdated(feed))}, &n)
	planResets(plan, r.Source, n)
	return err
}

// planResets adds to a plan that the positions of n rows are set to NULL.
func planResets(plan *feedtype.DropPlan, table feedtype.TableName, n int64) {
	if n > 0 {
		plan.Written = append(plan.Written, fmt.Sprintf("table %s: feed_sync_id to NULL, for a new position, in "+
			"rows that were republished or unpublished: %d", table, n))
	}
}
