package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// blocking is the mode in which writers assign ULIDs as positions, see Feed.Lock. Each shard is ordered separately.
// Nothing is published: a row is an entry as soon as its transaction commits.
type blocking struct{}

func (blocking) check(s *feedtype.FeedSpec) error {
	if s.Capture == "" {
		s.Capture = feedtype.CaptureNone
	}
	switch {
	case s.TimeColumn != "":
		return feedtype.Invalid("time-column", "in mode blocking the ULIDs contain the times: omit it")
	case s.PositionColumn == "":
		return feedtype.Invalid("position-column", "mode blocking needs the name of the column that holds the ULIDs")
	case s.ShardColumn == "":
		return feedtype.Invalid("shard-column",
			"mode blocking needs the name of the integer column that holds the shard of each row")
	case s.Capture != feedtype.CaptureNone:
		return feedtype.Invalid("capture", "mode blocking captures nothing: omit it")
	}
	return checkAppendOnly(s)
}

func (m blocking) complete(d *dialect.Dialect, r *catalog.FeedRecord, spec feedtype.FeedSpec,
	table *dialect.Table) error {
	columns, problems := catalog.UlidColumns(d, table, spec.PositionColumn, spec.ShardColumn)
	if len(problems) > 0 {
		return tableError(feedtype.Refused, table.Name, problems[0].Next, "%s", problems[0].What)
	}
	r.ULIDs, r.ShardColumn = columns, columns.Shard.Name // in the table's spelling
	return nil
}

// routinesUp and routinesDown make and remove the routines with which writers without this library allocate ULIDs.
func routinesUp(db *Database, r *catalog.FeedRecord) []dialect.Step {
	if db.Dialect.Routines == nil {
		return nil
	}
	return db.Dialect.Routines.ULIDUp(r.Feed(db.Names))
}

func routinesDown(db *Database, r *catalog.FeedRecord) []dialect.Step {
	if db.Dialect.Routines == nil {
		return nil
	}
	return db.Dialect.Routines.ULIDDown(r.Feed(db.Names))
}

func (blocking) up(db *Database, r *catalog.FeedRecord, _ *dialect.Table) ([]dialect.Step, error) {
	return routinesUp(db, r), nil
}

func (blocking) down(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	_ *dialect.Table) error {
	if err := run(ctx, q, routinesDown(db, r)); err != nil {
		return err
	}
	return db.forgetShards(ctx, q, r)
}

// admit refuses rows whose ULID has a time in the future. All later ULIDs of the shard would have at least that time.
// Random UUIDs in the column look like such ULIDs.
func (blocking) admit(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord) error {
	if err := db.refuseRowsWithoutULID(ctx, q, r); err != nil {
		return err
	}
	now, err := db.Clock(ctx, q)
	if err != nil {
		return err
	}
	latest := now/1000 + dialect.MaxHintAhead.Milliseconds()
	return ulidfeed.EachShard(ctx, db.Dialect, q, r.Feed(db.Names), func(shard int, last feedtype.Position) error {
		if ms := int64(last.High >> 16); ms > latest {
			return tableError(feedtype.Refused, r.Source,
				"if the column holds random UUIDs, use --mode outbox; if it holds ULIDs, delete this row "+
					"or give it a ULID of its time",
				"shard %d has a row with ULID %s (bytes %016x%016x), which is of %s, "+
					"more than a minute ahead of the database's clock",
				shard, last, last.High, last.Low, time.UnixMilli(ms).UTC().Format(time.RFC3339))
		}
		return nil
	})
}

// begin sets the state of each shard that already has rows, so that new ULIDs are above them.
func (blocking) begin(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord) (string, error) {
	err := ulidfeed.EachShard(ctx, db.Dialect, q, r.Feed(db.Names), func(shard int, last feedtype.Position) error {
		state := dialect.ULIDsAbove(last)
		args := dialect.Args{"feed": r.Name, "shard": shard, "time": state.TimeMillis, "high": state.High,
			"low": state.Low}
		n, err := db.Exec(ctx, q, statements, "insert_shard", args)
		if err == nil && n == 0 {
			_, err = db.Exec(ctx, q, statements, "raise_shard", args)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the existing ULIDs: %w", err)
	}
	return catalog.StateActive, nil
}

func (blocking) verify(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) ([]string, error) {
	var all []string
	if routines := db.Dialect.Routines; routines != nil {
		missing, other, err := routines.ULIDProblems(ctx, q, r.Feed(db.Names))
		if err != nil {
			return nil, err
		}
		all = append(missing, other...)
	}
	elsewhere, err := db.wrongDatabase(ctx, q, r)
	if err != nil {
		return nil, err
	}
	all = append(all, elsewhere...)
	columns, problems := catalog.UlidsAgain(db.Dialect, table, r.ULIDs)
	for _, p := range problems {
		all = append(all, p.What+"; "+p.Next)
	}
	if columns != nil && !strings.EqualFold(columns.Position.Type, r.ULIDs.Position.Type) {
		all = append(all, fmt.Sprintf("position column %q is %s, but was %s when the feed was added",
			columns.Position.Name, columns.Position.Type, r.ULIDs.Position.Type))
	}
	return all, nil
}

func (blocking) rights(d *dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right) {
	if d.Routines != nil {
		writing = d.Routines.LockRights(f)
	}
	return writing, []dialect.Right{dialect.May("SELECT", f.Names.Table("sequences")),
		dialect.May("SELECT", f.Names.Table("shards"))}
}

// mend recreates the functions. It drops them first if the column's type has changed: PostgreSQL cannot replace a
// function by one with another return type.
func (blocking) mend(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) error {
	columns, problems := catalog.UlidsAgain(db.Dialect, table, r.ULIDs)
	if len(problems) > 0 {
		return tableError(feedtype.Refused, table.Name, problems[0].Next, "%s", problems[0].What)
	}
	if columns.Position.Type != r.ULIDs.Position.Type {
		if err := run(ctx, q, routinesDown(db, r)); err != nil {
			return err
		}
	}
	r.ULIDs = columns
	return run(ctx, q, routinesUp(db, r))
}

// refuseRowsWithoutULID refuses a table with rows that no page could deliver.
func (db *Database) refuseRowsWithoutULID(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) error {
	feed := r.Feed(db.Names)
	from := catalog.WithoutULID(db.Dialect, feed)
	if from == "" {
		return nil
	}
	var n int64
	err := db.One(ctx, q, statements, "count_rows_without_ulid", dialect.Args{"from": dialect.SQL(from)}, &n)
	if err != nil || n == 0 {
		return err
	}
	return tableError(feedtype.Refused, r.Source, catalog.FindWithoutULID(db.Dialect, feed),
		"in %d of its rows %q is not a ULID of 16 bytes, or %q is not an integer",
		n, r.ULIDs.Position.Name, r.ULIDs.Shard.Name)
}

// declare assumes that the index exists: `rowfeed check` verifies it.
func (blocking) declare(t *declared, spec *feedtype.FeedSpec) (err error) {
	if spec.ShardColumn, err = t.column("shard-column", spec.ShardColumn); err != nil {
		return err
	}
	name, declaration, typed := strings.Cut(spec.PositionColumn, ":")
	if typed { // database catalogs have type names in lower case
		name += ":" + strings.ToLower(declaration)
	}
	if spec.PositionColumn, err = t.column("position-column", name); err != nil {
		return err
	}
	t.Unique = append(t.Unique, dialect.Index{Columns: []dialect.IndexColumn{{Name: spec.ShardColumn},
		{Name: spec.PositionColumn}}})
	return nil
}

// script makes the same shard states as begin. Without them a shard that has rows would not be listed before a writer
// locks it. New ULIDs are above the rows in any case.
func (blocking) script(db *Database, r *catalog.FeedRecord) (steps []dialect.Step, state, note string, err error) {
	d, feed := db.Dialect, r.Feed(db.Names)
	if d.Routines != nil && (feed.Names.Schema == "") != (feed.Source.Schema == "") {
		return nil, "", "", feedtype.Invalid("schema",
			"without a server say both where the table is (--table schema.table) and where rowfeed's tables are "+
				"(--schema), or neither: the feed's functions name both")
	}
	timeMillis, high, low := d.ULIDsAbove(feed, "x.highest")
	return []dialect.Step{statements.Step(d.Syntax, feed, "insert_shards", dialect.Args{"time": dialect.SQL(timeMillis),
		"high": dialect.SQL(high), "low": dialect.SQL(low)})}, catalog.StateActive, "the feed is ready", nil
}
