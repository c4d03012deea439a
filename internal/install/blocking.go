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

// blocking is the mode in which writers assign ULIDs as positions, see Feed.Lock. Each shard has an order of its own.
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
		return feedtype.Invalid("position-column", "name the column with the ULIDs")
	case s.ShardColumn == "":
		return feedtype.Invalid("shard-column", "name the integer column with the shard of each row")
	case s.Capture != feedtype.CaptureNone:
		return feedtype.Invalid("capture", "mode blocking captures nothing: omit it")
	}
	return checkAppendOnly(s)
}

func (m blocking) complete(d dialect.Dialect, r *catalog.FeedRecord, spec feedtype.FeedSpec,
	table *dialect.Table) error {
	columns, problems := catalog.UlidColumns(d, table, spec.PositionColumn, spec.ShardColumn)
	if len(problems) > 0 {
		return tableError(feedtype.Refused, table.Name, problems[0].Next, "%s", problems[0].What)
	}
	r.ULIDs, r.ShardColumn = columns, columns.Shard.Name // in the table's spelling
	return nil
}

func (blocking) up(db *Database, r *catalog.FeedRecord, _ *dialect.Table) ([]dialect.Step, error) {
	return db.Dialect.ULIDUp(r.Feed(db.Names)), nil
}

func (blocking) down(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	_ *dialect.Table) error {
	if err := run(ctx, q, db.Dialect.ULIDDown(r.Feed(db.Names))); err != nil {
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
	var now int64
	if err := dialect.QueryRow(ctx, q, "SELECT "+db.Dialect.Now(), nil, &now); err != nil {
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
		b := dialect.NewBuilder(db.Dialect)
		columns := []string{"feed", "shard", "time_ms", "ulid_high", "ulid_low", "witness"}
		values := []string{b.Arg(r.Name), b.Arg(shard), b.Arg(state.TimeMillis), b.Arg(state.High), b.Arg(state.Low),
			"''"}
		n, err := q.Exec(ctx, db.Dialect.InsertNew(db.Table("shards"), columns, values, columns[:2]), b.Args()...)
		if err != nil || n == 1 {
			return err
		}
		// A state from an earlier attempt may be below rows that were written since.
		b = dialect.NewBuilder(db.Dialect)
		_, err = q.Exec(ctx, "UPDATE "+db.Table("shards")+" SET time_ms = "+b.Arg(state.TimeMillis)+", ulid_high = "+
			b.Arg(state.High)+", ulid_low = "+b.Arg(state.Low)+
			" WHERE feed = "+b.Arg(r.Name)+" AND shard = "+b.Arg(shard)+" AND time_ms < "+
			b.Arg(state.TimeMillis), b.Args()...)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the existing ULIDs: %w", err)
	}
	return catalog.StateActive, nil
}

func (blocking) verify(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) ([]string, error) {
	all, other, err := db.Dialect.ULIDProblems(ctx, q, r.Feed(db.Names))
	if err != nil {
		return nil, err
	}
	elsewhere, err := db.wrongDatabase(ctx, q, r)
	if err != nil {
		return nil, err
	}
	all = append(append(all, other...), elsewhere...)
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

func (blocking) rights(d dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right) {
	return d.LockRights(f), []dialect.Right{dialect.May("SELECT", f.Names.Table("sequences")),
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
		if err := run(ctx, q, db.Dialect.ULIDDown(r.Feed(db.Names))); err != nil {
			return err
		}
	}
	r.ULIDs = columns
	return run(ctx, q, db.Dialect.ULIDUp(r.Feed(db.Names)))
}

// refuseRowsWithoutULID refuses a table with rows that no page could deliver.
func (db *Database) refuseRowsWithoutULID(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord) error {
	feed := r.Feed(db.Names)
	from := catalog.WithoutULID(db.Dialect, feed)
	if from == "" {
		return nil
	}
	var n int64
	if err := dialect.QueryRow(ctx, q, "SELECT count(*)"+from, nil, &n); err != nil || n == 0 {
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
	if len(d.ULIDUp(feed)) > 0 && (feed.Names.Schema == "") != (feed.Source.Schema == "") {
		return nil, "", "", feedtype.Invalid("schema",
			"without a server say both where the table is (--table schema.table) and where rowfeed's tables are "+
				"(--schema), or neither: the feed's functions name both")
	}
	position, shard := dialect.Ref(d, "g", feed.ULIDs.Position.Name), dialect.Ref(d, "g", feed.ULIDs.Shard.Name)
	source := dialect.Qualified(d, feed.Source) + " g"
	timeMillis, high, low := d.ULIDsAbove(feed, "x.highest")
	return []dialect.Step{{
		Note: "new ULIDs are above the existing rows of their shard; " +
			"the unique index on both columns, the shard first, must exist",
		SQL: "INSERT INTO " + db.Table("shards") + " (feed, shard, time_ms, ulid_high, ulid_low, witness)" +
			"\nSELECT " + d.Literal(r.Name) + ", x.shard, " + timeMillis + ", " + high + ", " + low + ", ''" +
			"\nFROM (SELECT s.shard, (SELECT " + position + " FROM " + source + " WHERE " + shard + " = s.shard" +
			" ORDER BY " + position + " DESC LIMIT 1) AS highest" +
			"\n  FROM (SELECT DISTINCT " + shard + " AS shard FROM " + source + ") s) x",
	}}, catalog.StateActive, "the feed is ready", nil
}
