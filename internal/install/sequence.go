package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// sequenced is the mode in which publishers assign positions from a sequence.
type sequenced struct{}

func (sequenced) check(s *feedtype.FeedSpec) error {
	if s.Capture == "" {
		s.Capture = feedtype.CaptureTrigger
	}
	if s.Tombstones == 0 {
		s.Tombstones = feedtype.DefaultTombstones
	}
	if s.PublishedElsewhere {
		s.Adopt = true
	}
	switch {
	case s.PositionColumn != "":
		return feedtype.Invalid("position-column",
			"only mode blocking reads positions from a column of your table: omit it")
	case s.TimeColumn != "":
		return feedtype.Invalid("time-column",
			"only mode outbox reads the times of existing rows from a column: omit it")
	case s.Capture != feedtype.CaptureTrigger && s.Capture != feedtype.CaptureApp &&
		s.Capture != feedtype.CaptureColumn:
		return feedtype.Invalid("capture", "%q is not one of: trigger, app, column", s.Capture)
	case s.Fence && s.Capture != feedtype.CaptureColumn:
		return feedtype.Invalid("fence",
			"a fence needs capture column, which keeps the positions in the rows of your table: omit it")
	case s.PublishedElsewhere && s.Capture != feedtype.CaptureColumn:
		return feedtype.Invalid("published-elsewhere",
			"another publisher can give positions only with capture column, because it writes them into the rows")
	case s.PublishedElsewhere && s.AdoptSequence == "":
		return feedtype.Invalid("published-elsewhere", "without the sequence of that publisher rowfeed cannot tell "+
			"up to which position all rows are committed: name its row with --adopt-sequence TABLE:NAME")
	case s.PublishedElsewhere && s.Fence:
		return feedtype.Invalid("fence", "a fence refuses the positions that your own publisher still gives: "+
			"add the fence with `rowfeed feed upgrade --published-here --fence`")
	case s.PublishedElsewhere && s.DataShards > 1 && s.ShardColumn == "":
		return feedtype.Invalid("data-shards", "data shards are written together with positions, which another "+
			"publisher gives here: omit --data-shards; readers can share the feed without them")
	case s.Adopt && s.Capture != feedtype.CaptureColumn:
		return feedtype.Invalid("adopt", "only feeds with capture column can adopt positions")
	case s.AdoptSequence != "" && !s.Adopt:
		return feedtype.Invalid("adopt-sequence", "it is only for feeds that are added with --adopt")
	case s.AdoptCursors != "" && !s.Adopt:
		return feedtype.Invalid("adopt-cursors", "it is only for feeds that are added with --adopt")
	case s.DataShards < 1 || s.DataShards > feedtype.MaxDataShards:
		return feedtype.Invalid("data-shards", "%d must be between 1 and %d", s.DataShards, feedtype.MaxDataShards)
	case s.Tombstones < time.Second:
		return feedtype.Invalid("tombstones", "%s is less than a second", s.Tombstones)
	}
	return nil
}

func (sequenced) complete(d *dialect.Dialect, r *catalog.FeedRecord, spec feedtype.FeedSpec,
	table *dialect.Table) error {
	if r.Fence && !d.Fences {
		return noFences(r.Name)
	}
	if len(table.Untriggered) > 0 && spec.Capture == feedtype.CaptureTrigger && !spec.AcceptUntriggered {
		return tableError(feedtype.Refused, table.Name,
			"remove the cascade, or accept with --accept-untriggered that only `rowfeed check` and `repair` "+
				"find such writes",
			"some writes fire no trigger: %s", strings.Join(table.Untriggered, "; "))
	}
	return chooseShardColumn(d, r, table)
}

func (sequenced) declare(t *declared, spec *feedtype.FeedSpec) (err error) {
	if spec.ShardColumn != "" {
		spec.ShardColumn, err = t.column("shard-column", spec.ShardColumn)
	}
	return err
}

func (sequenced) script(db *Database, r *catalog.FeedRecord) (steps []dialect.Step, state, note string, err error) {
	if feed := r.Feed(db.Names); !feed.InRows() {
		steps = []dialect.Step{statements.Step(db.Dialect.Syntax, feed, "record_all_rows", nil)}
	}
	return steps, catalog.StateActive, "the feed is ready", nil
}

// admit refuses rows whose own data shard is not between 0 and DataShards-1.
func (sequenced) admit(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord) error {
	return db.outsideShards(ctx, q, r, nil)
}

func (sequenced) up(db *Database, r *catalog.FeedRecord, table *dialect.Table) ([]dialect.Step, error) {
	return db.feedUp(r, table)
}

func (sequenced) down(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) error {
	return run(ctx, q, db.Dialect.FeedDown(r.Feed(db.Names), table))
}

func (sequenced) begin(_ context.Context, db *Database, _ dialect.Querier, r *catalog.FeedRecord) (string, error) {
	switch {
	case r.PublishedElsewhere:
		return catalog.StateElsewhere, nil
	case r.Adopt && r.Feed(db.Names).KeyShards():
		return catalog.StateSharding, nil // adopted positions have no data shard yet
	case r.Feed(db.Names).InRows():
		return catalog.StateActive, nil // rows without a position are pending already
	}
	return catalog.StateFilling, nil
}

func (sequenced) mend(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) error {
	steps, err := db.Dialect.Repair(ctx, q, r.Feed(db.Names), table)
	if err == nil {
		err = run(ctx, q, steps)
	}
	return err
}

// rights let writers insert change records, unless triggers do that for them.
func (sequenced) rights(_ *dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right) {
	if f.Capture != feedtype.CaptureTrigger {
		writing = []dialect.Right{dialect.May("INSERT", f.Changes(), append(f.StoredKey(), "kind")...)}
	}
	reading = []dialect.Right{dialect.May("SELECT", f.Names.Table("sequences")),
		dialect.May("SELECT", f.Names.Table("terms")), dialect.May("SELECT", f.Positions())}
	return writing, reading
}

// verify also reports triggers that fire when the publisher updates a row.
func (sequenced) verify(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) ([]string, error) {
	problems, err := db.Dialect.Verify(ctx, q, r.Feed(db.Names), table)
	if err != nil {
		return nil, err
	}
	if r.Capture == feedtype.CaptureColumn && !r.AcceptTriggers {
		if err := ignoreOwnTriggers(ctx, db, q, table); err != nil {
			return nil, err
		}
		for _, name := range table.OnUpdate {
			problems = append(problems, fmt.Sprintf("trigger %s also fires for the publisher's UPDATE", name))
		}
	}
	return problems, nil
}
