package install

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// continueDropped decides whether the new feed continues a dropped one of its name. If it does, it keeps the
// generation, and earlier cursors stay valid. Otherwise the new feed must not accept them.
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
	if r.Adopt && r.Dropped == nil {
		r.Dropped = &catalog.Dropped{Why: "its positions were not those of the table's column feed_sync_id"}
	}
	_, err = c.db.Exec(ctx, c.q, statements, "drop_terms", dialect.Args{"feed": r.Name})
	return err
}

// predecessor returns what is known of the dropped feed of this name, and why the new feed does not continue it. It
// returns nil if the dropped feed left no positions in the rows.
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
