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

// outbox is the mode in which the first reader, or a publisher, assigns ULIDs to the records of an outbox. Pages are
// read as in mode blocking.
type outbox struct{}

func (outbox) complete(d dialect.Dialect, r *catalog.Record, spec feedtype.FeedSpec, table *dialect.Table) error {
	problem := recordShardProblem(d, table, r)
	if problem == nil {
		problem = timeColumnProblem(d, table, spec.TimeColumn)
	}
	if problem != nil {
		return tableError(feedtype.Refused, table.Name, problem.Next, "%s", problem.What)
	}
	r.TimeColumn, r.Runs = spec.TimeColumn, 1
	shard := dialect.Column{Name: "shard", Type: "bigint", Kind: feedtype.Integer}
	r.ULIDs = &dialect.ULIDColumns{Position: d.OwnULID(), Shard: shard, Index: "place"}
	return nil
}

// recordShardProblem answers why a column cannot determine the shard of records, or nil. A value that the trigger
// cannot use would fail the writer's INSERT.
func recordShardProblem(d dialect.Dialect, table *dialect.Table, r *catalog.Record) *catalog.Problem {
	name := r.ShardColumn
	if name == "" {
		return nil
	}
	c := table.Column(name)
	switch {
	case c == nil:
		return &catalog.Problem{What: fmt.Sprintf("it has no column %q", name),
			Next: "--shard-column takes the integer column with the shard of each row"}
	case c.Nullable:
		return &catalog.Problem{What: fmt.Sprintf("shard column %q may be NULL", name), Next: "declare it NOT NULL"}
	case !catalog.HoldsIntegers(c):
		return &catalog.Problem{What: fmt.Sprintf("shard column %q is %s", name, c.Type), Next: "make it an integer"}
	}
	return catalog.ShardProblem(d, c, r.Capture == feedtype.CaptureTrigger)
}

// timeColumnProblem answers why a column cannot provide the times of rows, or nil.
func timeColumnProblem(d dialect.Dialect, table *dialect.Table, name string) *catalog.Problem {
	if name == "" {
		return nil
	}
	switch c := table.Column(name); {
	case c == nil:
		return &catalog.Problem{What: fmt.Sprintf("it has no column %q", name),
			Next: "--time-column takes the column with the times of the rows that are older than the feed"}
	case d.Millis(*c, "") == "":
		return &catalog.Problem{What: fmt.Sprintf("column %q is %s, which is not a date or time", name, c.Type),
			Next: "name a column with dates or times, or omit --time-column"}
	}
	return nil
}

// admit refuses rows without a shard, at which back-fill would fail.
func (outbox) admit(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record) error {
	feed := r.Feed(db.Names)
	return refuseWithoutShard(ctx, db.Dialect, q, feed, func(b *dialect.Builder, condition string) string {
		return " FROM " + dialect.Qualified(db.Dialect, feed.Source) + " t WHERE " + condition
	})
}

// refuseUnsharded refuses rows without a shard among those that are to be placed or recorded.
func (f *OutboxRows) refuseUnsharded(ctx context.Context, q dialect.Querier, feed *dialect.Feed,
	rows func(*dialect.Builder) []string) error {
	return refuseWithoutShard(ctx, f.Store.Dialect, q, feed, func(b *dialect.Builder, condition string) string {
		return dialect.Unplaced(f.Store.Dialect, b, feed, "", append(rows(b), condition))
	})
}

// refuseWithoutShard runs a query over rows of the source (alias t), given from its FROM on. It refuses a row whose
// shard column is not an integer.
func refuseWithoutShard(ctx context.Context, d dialect.Dialect, q dialect.Querier, feed *dialect.Feed,
	from func(b *dialect.Builder, condition string) string) error {
	condition := d.NoShard(dialect.Ref(d, "t", feed.RecordShard))
	if feed.RecordShard == "" || condition == "" {
		return nil
	}
	b := dialect.NewBuilder(d)
	key, err := dialect.ReadKey(ctx, q, d, feed, dialect.KeyRefs(d, feed, "t"), from(b, condition)+" LIMIT 1", b.Args())
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err != nil {
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
		"find such rows with SELECT * FROM "+dialect.Qualified(d, feed.Source)+
			" WHERE "+d.NoShard(d.Quote(feed.RecordShard))+
			", give them a shard, and run this again; a CHECK constraint prevents new ones",
		"row %s has no shard: its column %q is not an integer", row.AppendJSON(nil), feed.RecordShard)
}

func (outbox) up(db *Database, r *catalog.Record, table *dialect.Table) ([]dialect.Step, error) {
	return db.feedUp(r, table)
}

func (outbox) down(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record,
	table *dialect.Table) error {
	if err := run(ctx, q, db.Dialect.FeedDown(r.Feed(db.Names), table)); err != nil {
		return err
	}
	return db.forgetShards(ctx, q, r)
}

func (outbox) begin(context.Context, *Database, dialect.Querier, *catalog.Record) (string, error) {
	return catalog.StateFilling, nil
}

// rights do not include the column order_sequence, so that a writer cannot choose its record's place in the order.
func (outbox) rights(_ dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right) {
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

func (outbox) verify(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record,
	table *dialect.Table) ([]string, error) {
	problems, err := db.Dialect.Verify(ctx, q, r.Feed(db.Names), table)
	if err != nil {
		return nil, err
	}
	elsewhere, err := db.wrongDatabase(ctx, q, r)
	return append(problems, elsewhere...), err
}

func (outbox) mend(ctx context.Context, db *Database, q dialect.Querier, r *catalog.Record,
	table *dialect.Table) error {
	return sequenced{}.mend(ctx, db, q, r, table)
}

// RecordMissing appends records for rows that have neither a record nor a place, in batches in key order. On MariaDB
// one INSERT … SELECT over the whole table would block writers of the outbox while it runs.
func (f *OutboxRows) RecordMissing(ctx context.Context) (n int64, err error) {
	for after, more := []any(nil), true; more; {
		f.moveWaiting(ctx)
		var recorded int64
		var last []any
		err = f.Store.InTx(ctx, dialect.ForRepair, "append records", func(tx dialect.Querier) (err error) {
			recorded, last, err = f.recordBatch(ctx, tx, after)
			return err
		})
		if err != nil {
			return n, f.Explain(ctx, "append records", err)
		}
		n += recorded
		after, more = last, last != nil
		f.Recorder.Wake()
	}
	return n, nil
}

// recordBatch is one transaction of a repair. It locks the feed's record, as back-fill does, so that two processes
// never work on the same rows at a time. The INSERT's snapshot may lack places that were purged. The purge leaves a
// mark, so the transaction looks for the mark after the INSERT.
func (f *OutboxRows) recordBatch(ctx context.Context, tx dialect.Querier, after []any) (
	recorded int64, last []any, err error,
) {
	if err := f.lockActive(ctx, tx); err != nil {
		return 0, nil, err
	}
	rows, last, err := f.Recorder.KeyRange(ctx, tx, "", after, fillBatch)
	if err != nil {
		return 0, nil, err
	}
	if err := f.refuseUnsharded(ctx, tx, f.DialectFeed(), rows); err != nil {
		return 0, nil, err
	}
	b := dialect.NewBuilder(f.Store.Dialect)
	recorded, err = tx.Exec(ctx, dialect.RecordUnplaced(f.Store.Dialect, b, f.DialectFeed(), rows), b.Args()...)
	if err != nil {
		return 0, nil, err
	}
	return recorded, last, f.KnowsPlaces(ctx, tx, "repair")
}

// lockActive locks the feed's record. It refuses a feed that is being filled, or was dropped or added again.
func (f *OutboxRows) lockActive(ctx context.Context, tx dialect.Querier) error {
	r := f.Record.Load()
	where := func(b *dialect.Builder) string {
		return " WHERE name = " + b.Arg(f.Name) + " AND generation = " + b.Arg(r.Generation)
	}
	b := dialect.NewBuilder(f.Store.Dialect)
	if _, err := tx.Exec(ctx, "UPDATE "+f.Store.Table("feeds")+" SET state = state"+where(b), b.Args()...); err != nil {
		return err
	}
	var state string
	b = dialect.NewBuilder(f.Store.Dialect)
	err := dialect.QueryRow(ctx, tx, "SELECT state FROM "+f.Store.Table("feeds")+where(b), b.Args(), &state)
	switch {
	case err != nil && !errors.Is(err, store.ErrNoRows):
		return err
	case state == catalog.StateFilling:
		return feedError(feedtype.Filling, f.Name, "run `rowfeed feed backfill "+f.Name+
			"`, if it was interrupted", "back-fill is placing its rows")
	case state != catalog.StateActive:
		return feedError(feedtype.Conflict, f.Name, "run the command again", "it was dropped or added again meanwhile")
	}
	return nil
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
func (outbox) script(_ *Database, r *catalog.Record) (steps []dialect.Step, state, note string, err error) {
	note = "the feed is made, and readers at its head can start; `rowfeed feed add` with the same arguments, or\n" +
		"`rowfeed feed backfill " + r.Name + "`, places the rows that the table already has. Run one of them now,\n" +
		"even if there are no rows: until it is done, a reader at the beginning of a shard is refused (503 filling)"
	return nil, catalog.StateFilling, note, nil
}
