package install

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// outbox is the mode in which the first reader, or a publisher, assigns ULIDs to the records of an outbox. Pages are
// read as in mode blocking.
type outbox struct{}

func (outbox) check(s *feedtype.FeedSpec) error {
	if s.Capture == "" {
		s.Capture = feedtype.CaptureApp
	}
	switch {
	case s.PositionColumn != "":
		return feedtype.Invalid("position-column",
			"in mode outbox the ULIDs are in a table of rowfeed: omit it")
	case s.Capture != feedtype.CaptureApp && s.Capture != feedtype.CaptureTrigger:
		return feedtype.Invalid("capture", "with mode outbox %q is not one of: app, trigger", s.Capture)
	}
	return checkAppendOnly(s)
}

// checkAppendOnly refuses settings that have no effect on feeds of append-only tables.
func checkAppendOnly(s *feedtype.FeedSpec) error {
	switch {
	case s.Tombstones != 0:
		return feedtype.Invalid("tombstones",
			"feeds of append-only tables have no deletes: omit it")
	case s.DataShards != 1:
		return feedtype.Invalid("data-shards",
			"in modes with ULIDs each value of the shard column is a shard: omit --data-shards")
	case s.Adopt || s.AdoptSequence != "" || s.AdoptCursors != "":
		return feedtype.Invalid("adopt",
			"in modes with ULIDs new positions are always above the existing ones: omit it")
	case s.Fence:
		return feedtype.Invalid("fence",
			"a fence needs capture column, which keeps the positions in the rows of your table: omit it")
	case s.AcceptTriggers || s.AcceptUntriggered:
		return feedtype.Invalid("accept-triggers",
			"feeds of append-only tables need no such exception: omit it")
	}
	return nil
}

func (outbox) complete(d *dialect.Dialect, r *catalog.FeedRecord, spec feedtype.FeedSpec, table *dialect.Table) error {
	problem := recordShardProblem(d, table, r)
	if problem == nil {
		problem = timeColumnProblem(d, table, spec.TimeColumn)
	}
	if problem != nil {
		return tableError(feedtype.Refused, table.Name, problem.Next, "%s", problem.What)
	}
	r.TimeColumn, r.Runs = spec.TimeColumn, 1
	shard := dialect.Column{Name: "shard", Type: "bigint", Kind: feedtype.Integer}
	r.ULIDs = &dialect.ULIDColumns{Position: d.OwnULID, Shard: shard, Index: "place"}
	return nil
}

// recordShardProblem returns why a column cannot determine the shard of records, or nil. A value that the trigger
// cannot use would fail the writer's INSERT.
func recordShardProblem(d *dialect.Dialect, table *dialect.Table, r *catalog.FeedRecord) *catalog.Problem {
	name := r.ShardColumn
	if name == "" {
		return nil
	}
	c := table.Column(name)
	switch {
	case c == nil:
		return &catalog.Problem{What: fmt.Sprintf("it has no column %q", name),
			Next: "set --shard-column to the integer column with the shard of each row"}
	case c.Nullable:
		return &catalog.Problem{What: fmt.Sprintf("shard column %q may be NULL", name), Next: "declare it NOT NULL"}
	case !catalog.HoldsIntegers(c):
		return &catalog.Problem{What: fmt.Sprintf("shard column %q is %s", name, c.Type), Next: "make it an integer"}
	}
	return catalog.ShardProblem(d, c, r.Capture == feedtype.CaptureTrigger)
}

// timeColumnProblem returns why a column cannot provide the times of rows, or nil.
func timeColumnProblem(d *dialect.Dialect, table *dialect.Table, name string) *catalog.Problem {
	if name == "" {
		return nil
	}
	switch c := table.Column(name); {
	case c == nil:
		return &catalog.Problem{What: fmt.Sprintf("it has no column %q", name),
			Next: "set --time-column to the column with the times of the rows that are older than the feed"}
	case d.Millis(*c, "") == "":
		return &catalog.Problem{What: fmt.Sprintf("column %q is %s, which is not a date or time", name, c.Type),
			Next: "name a column with dates or times, or omit --time-column"}
	}
	return nil
}

// admit refuses rows without a shard, at which back-fill would fail.
func (outbox) admit(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord) error {
	feed := r.Feed(db.Names)
	return refuseWithoutShard(ctx, db.Dialect, q, feed, func(condition string) dialect.Built {
		return statements.For(db.Dialect.Syntax, feed,
			"rows_where").With(dialect.Args{"condition": dialect.SQL(condition)})
	})
}

// refuseWithoutShard runs a query over rows of the source (alias t), given from its FROM on. It refuses a row whose
// shard column is not an integer.
func refuseWithoutShard(ctx context.Context, d *dialect.Dialect, q dialect.Querier, feed *dialect.Feed,
	from func(condition string) dialect.Built) error {
	condition := d.NoShard(dialect.Ref(d.Syntax, "t", feed.RecordShard))
	if feed.RecordShard == "" || condition == "" {
		return nil
	}
	var key []any
	err := dialect.EachKey(ctx, q, d.Syntax, feed, statements.For(d.Syntax, feed, "first_row"),
		dialect.Args{"from": from(condition)},
		0, func(_ []string, first []any) error {
			key = first
			return nil
		})
	if err != nil || key == nil {
		return err
	}
	columns := make([]feedtype.Column, len(key))
	for i, c := range feed.Key {
		columns[i] = c.ForReaders()
	}
	row, err := feedtype.NewRow(columns, key)
	if err != nil {
		return err
	}
	return tableError(feedtype.Refused, feed.Source,
		"find such rows with SELECT * FROM "+dialect.Qualified(d.Syntax, feed.Source)+
			" WHERE "+d.NoShard(d.Quote(feed.RecordShard))+
			", give them a shard, and run this again; a CHECK constraint prevents new ones",
		"row %s has no shard: its column %q is not an integer", row.AppendJSON(nil), feed.RecordShard)
}

func (outbox) up(db *Database, r *catalog.FeedRecord, table *dialect.Table) ([]dialect.Step, error) {
	return db.feedUp(r, table)
}

func (outbox) down(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) error {
	if err := run(ctx, q, db.Dialect.FeedDown(r.Feed(db.Names), table)); err != nil {
		return err
	}
	return db.forgetShards(ctx, q, r)
}

func (outbox) begin(context.Context, *Database, dialect.Querier, *catalog.FeedRecord) (string, error) {
	return catalog.StateFilling, nil
}

// rights do not include the column order_sequence, so that a writer cannot choose its record's place in the order.
func (outbox) rights(_ *dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right) {
	if f.Capture == feedtype.CaptureApp {
		columns := append([]string{"shard", "time_hint"}, f.StoredKey()...)
		writing = []dialect.Right{dialect.May("INSERT", f.Records(), columns...)}
	}
	tables := []feedtype.TableName{f.Names.Table("sequences"), f.Names.Table("shards"), f.Records(), f.Placed()}
	for _, table := range tables {
		reading = append(reading, dialect.May("SELECT", table))
	}
	return writing, reading
}

func (outbox) verify(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) ([]string, error) {
	problems, err := db.Dialect.Verify(ctx, q, r.Feed(db.Names), table)
	if err != nil {
		return nil, err
	}
	elsewhere, err := db.wrongDatabase(ctx, q, r)
	return append(problems, elsewhere...), err
}

func (outbox) mend(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) error {
	return sequenced{}.mend(ctx, db, q, r, table)
}

func (outbox) declare(t *declared, spec *feedtype.FeedSpec) (err error) {
	if spec.ShardColumn != "" {
		if spec.ShardColumn, err = t.column("shard-column", spec.ShardColumn); err != nil {
			return err
		}
	}
	if spec.TimeColumn != "" {
		spec.TimeColumn, err = t.column("time-column", spec.TimeColumn)
	}
	return err
}

// script leaves existing rows to back-fill: one statement would lock all of them for its whole run.
func (outbox) script(_ *Database, r *catalog.FeedRecord) (steps []dialect.Step, state, note string, err error) {
	note = "the feed is made, and readers at its head can start; `rowfeed feed add` with the same arguments, or\n" +
		"`rowfeed feed backfill " + r.Name + "`, places the rows that the table already has. Run one of them now,\n" +
		"even if there are no rows: until it is done, a reader at the beginning of a shard is refused (503 filling)"
	return nil, catalog.StateFilling, note, nil
}
