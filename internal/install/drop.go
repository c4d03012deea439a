package install

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Drop removes what Create has made, except for the feed's record. A feed that is added under the same name later
// gets a higher generation, unless it continues this one: see continueDropped. With handBack, Drop also writes the
// positions into the tables from which the feed was adopted, and does so again if the feed is dropped already.
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
			r.Dropped = &catalog.Dropped{Why: "its table did not exist when it was dropped"}
		} else if r.Dropped, err = db.close(ctx, q, r, handBack, plan); err != nil {
			return err
		}
		if err := db.saveOptions(ctx, q, r); err != nil {
			return err
		}
	}
	if handBack {
		// Before the fence is removed: from then on the former publisher goes on, and must do so above the head.
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

// close keeps publishers and writers of changes out, ends the feed's term, and says what its readers can go on from. It
// can be repeated: nothing that it reads has been removed before its result is saved.
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

func (db *Database) outdated(feed *dialect.Feed) string {
	return statements.For(db.Dialect.Syntax, feed, "outdated").String()
}

// dropped says what the readers of a feed can go on from if the feed is dropped now and added again. With reset it
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

// continueDropped decides whether the new feed continues a dropped one of its name. If it does, it keeps the
// generation, and earlier cursors stay valid. Otherwise they must not be taken for cursors of the new feed.
func (c *creation) continueDropped(ctx context.Context) error {
	if c.known == nil {
		return nil
	}
	var err error
	r := c.record
	if r.Dropped, err = c.predecessor(ctx); err != nil {
		return err
	}
	if r.Dropped.Continues() {
		r.Generation = c.known.Generation
		return nil
	}
	now, err := c.db.Clock(ctx, c.q)
	if err != nil {
		return err
	}
	r.Generation = max(now/1_000_000, c.known.Generation+1)
	_, err = c.db.Exec(ctx, c.q, statements, "drop_terms", dialect.Args{"feed": r.Name})
	return err
}

// predecessor returns what is known of the dropped feed of this name, and why this feed does not continue it. It is nil
// if that feed left no positions in the rows.
func (c *creation) predecessor(ctx context.Context) (*catalog.Dropped, error) {
	r, known := c.record, c.known
	if !known.LeavesPositions() || !r.Adopt {
		return nil, nil
	}
	if known.Dropped == nil {
		return &catalog.Dropped{
			Why: "an older version of rowfeed dropped it, and did not save where its positions ended"}, nil
	}
	before := *known.Dropped
	if before.Why != "" {
		return &before, nil
	}
	same := *r // as far as readers can tell
	same.AdoptSequence, same.AdoptCursors, same.Adopt = known.AdoptSequence, known.AdoptCursors, known.Adopt
	same.Tombstones, same.AcceptTriggers = known.Tombstones, known.AcceptTriggers
	same.PublishedElsewhere, same.Fence = known.PublishedElsewhere, known.Fence
	if r.OwnShard() == "" || r.DataShards < known.DataShards { // else rows may get their first one below cursors
		same.DataShards = known.DataShards
	}
	diffs := differences(known, &same)
	was, _ := json.Marshal(known.Key)
	now, _ := json.Marshal(r.Key)
	if len(diffs) == 0 && string(was) != string(now) {
		diffs = []string{"the columns of its key were declared otherwise"}
	}
	var lowest, highest *int64
	syntax := c.db.Dialect.Syntax
	err := dialect.One(ctx, c.q, syntax, statements.For(syntax, r.Feed(c.db.Names), "bounds_of_positions"), nil,
		&lowest, &highest)
	if err != nil {
		return nil, err
	}
	former, gone := before.Former, false
	if known.AdoptSequence != "" { // also if the new feed is to continue another sequence, or none
		if former, gone, err = formerValue(ctx, c.db, c.q, known); err != nil {
			return nil, err
		}
	}
	switch {
	case len(diffs) > 0:
		before.Why = "it had other settings: " + strings.Join(diffs, "; ")
	case highest == nil && before.Head > 0:
		before.Why = "no row of the table has a position any more"
	case gone && before.Former > 0 && before.Former < before.Head:
		before.Why = fmt.Sprintf("its former sequence %s is gone, so rowfeed cannot tell whether the former publisher "+
			"has gone on from position %d, below the feed's head %d", known.AdoptSequence, before.Former, before.Head)
	case !gone && former != before.Former && before.Former < before.Head:
		before.Why = goneOn(&before)
	}
	return &before, nil
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
		settled := r.Gone() || r.State == catalog.StateCreating
		if r.LeavesPositions() && r.State != catalog.StateDropped && (r.Dropped == nil || !settled) {
			if err := db.previewDropped(ctx, q, r, handBack, plan); err != nil {
				return err
			}
		}
		if handBack {
			if err := (&returning{db, q, r, plan}).run(ctx, false); err != nil {
				return err
			}
		}
		if r.LeavesPositions() && r.Dropped != nil {
			plan.Keeps, plan.Head, plan.Restart = true, r.Dropped.Head, r.Dropped.Why
		}
		return nil
	}()
	return plan, db.Fail(feedtype.FeedObject(name), "preview the drop of", err)
}

func (db *Database) previewDropped(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord, handBack bool,
	plan *feedtype.DropPlan) error {
	feed, syntax := r.Feed(db.Names), db.Dialect.Syntax
	before, _, err := db.dropped(ctx, q, r, feed.Changes(), handBack)
	if db.Dialect.Classify(err) == dialect.ClassUndefined {
		return nil // a drop that was interrupted has removed them
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
		plan.Written = append(plan.Written, fmt.Sprintf("table %s: feed_sync_id of %d rows to NULL, for a new "+
			"position: they were republished or unpublished", table, n))
	}
}
