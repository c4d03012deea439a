package install

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// planColumns decides which columns capture "column" adds to the table. It refuses a table with triggers or columns
// that capture "column" cannot use.
func planColumns(r *catalog.FeedRecord, table *dialect.Table) error {
	if r.Capture != feedtype.CaptureColumn {
		return nil
	}
	refuse := func(next, format string, args ...any) error {
		return tableError(feedtype.Refused, table.Name, next, format, args...)
	}
	if len(table.OnUpdate) > 0 && !r.AcceptTriggers {
		return refuse("limit them to the columns that they need (UPDATE OF …, on PostgreSQL and SQLite), or "+
			"accept with --accept-triggers that they also run for every position that is assigned",
			"publishing updates rows, and these triggers fire on each such update: %s",
			strings.Join(table.OnUpdate, ", "))
	}
	feed := r.Feed(dialect.Names{})
	r.Added = feed.MissingColumns(table)
	position, shard := table.FindColumn(dialect.PositionColumn), table.FindColumn(dialect.ShardColumn)
	if r.OwnShard() != "" {
		shard = nil // rowfeed does not write it
	}
	number := func(c *dialect.Column) bool { return c.Kind == feedtype.Integer || c.Kind == feedtype.Dynamic }
	switch {
	case !r.Adopt && position != nil:
		return refuse("keep its positions with --adopt, or rename it", "it already has a column %s",
			dialect.PositionColumn)
	case !r.Adopt && shard != nil:
		return refuse("keep its values as data shards with `--shard-column "+shard.Name+"`, or rename it",
			"it already has a column %s", dialect.ShardColumn)
	case r.Adopt && position == nil:
		return refuse("leave --adopt out: rowfeed adds the column", "it has no column %s to adopt",
			dialect.PositionColumn)
	case position != nil && position.PositionProblem() != "":
		next := ""
		if position.FitPosition != "" {
			next = "run `" + position.FitPosition + "`, and add the feed again"
		}
		return refuse(next, "its column %s %s", position.Name, position.PositionProblem())
	case shard != nil && !number(shard):
		return refuse("rename it", "its column %s is %s, not an integer", dialect.ShardColumn, shard.Type)
	}
	return cmp.Or(HoldsExactKeys(r), holdsShards(r, table))
}

// HoldsExactKeys refuses capture "column" for keys that can be equal although their text differs. With this capture
// rowfeed reads the key from the row only. After an UPDATE that changes the text, the former text is lost, so readers
// could never receive its delete.
func HoldsExactKeys(r *catalog.FeedRecord) error {
	for _, c := range r.Key {
		if r.Capture == feedtype.CaptureColumn && !c.Exact {
			return tableError(feedtype.Refused, r.Source,
				"use --capture trigger, which takes such keys and every --shard-column, or name a unique index of "+
					"other columns with --key, or give the column a type or collation in which equal values have "+
					"the same text",
				"capture column cannot follow key column %q (%s): its values can be equal although their text "+
					"differs, and after an UPDATE of the text alone readers would keep the former text",
				c.Name, cmp.Or(strings.TrimSpace(c.Decl+c.Collate), "no type"))
		}
	}
	return nil
}

// ignoreOwnTriggers removes the triggers of rowfeed's feeds from the list of triggers that fire when a publisher
// updates a row. Such a trigger records the row for another feed, or is a fence that accepts the publisher.
func ignoreOwnTriggers(ctx context.Context, db *Database, q dialect.Querier, table *dialect.Table) error {
	if len(table.OnUpdate) == 0 {
		return nil
	}
	all, err := catalog.Load(ctx, db.Store, q, "")
	if err != nil {
		return err
	}
	for _, r := range all {
		if feed := r.Feed(db.Names); r.State == catalog.StateDropped ||
			r.Capture != feedtype.CaptureTrigger && !feed.Fenced() {
			continue
		}
		ours := db.Dialect.TriggerNames(r.Feed(db.Names))
		table.OnUpdate = slices.DeleteFunc(table.OnUpdate, func(name string) bool {
			return slices.Contains(ours, name)
		})
	}
	return nil
}

// holdsShards refuses capture "column" with several data shards if the table's column for shards cannot hold them.
func holdsShards(r *catalog.FeedRecord, table *dialect.Table) error {
	if r.Capture != feedtype.CaptureColumn || r.DataShards <= 1 || r.OwnShard() != "" {
		return nil
	}
	refuse := func(next, format string, args ...any) error {
		return tableError(feedtype.Refused, table.Name, next, format, args...)
	}
	shard := table.FindColumn(dialect.ShardColumn)
	if shard == nil {
		return nil // rowfeed adds the column
	}
	for _, ix := range table.Unique {
		if slices.ContainsFunc(ix.Columns, func(c dialect.IndexColumn) bool { return c.Name == shard.Name }) {
			return refuse("drop this index, or rename the column: rowfeed then adds its own",
				"publishers would write its column %s, which is part of the unique index %q", shard.Name, ix.Name)
		}
	}
	if problem := shard.ShardProblem(r.DataShards); problem != "" {
		return refuse("", "its column %s %s", shard.Name, problem)
	}
	return nil
}
