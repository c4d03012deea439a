package sqlserver

import (
	"context"
	_ "embed" // for outbox.sql

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed outbox.sql
var outboxFile string

var outbox = dialect.NewStatements(outboxFile)

// HasRecords implements [dialect.Moving] by the statement has_records.
func (d database) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	shards ...int) (bool, error) {
	scans := scansOf(outbox.For(syntax, f, "first_record"), dialect.RangeScans(syntax, f, "records", among, nil), nil)
	if len(shards) > 0 {
		scans = nil
	}
	for _, shard := range shards {
		scans = append(scans,
			scansOf(outbox.For(syntax, f, "first_record_of_shard"), dialect.RangeScans(syntax, f, "of_shard", among,
				dialect.Args{"shard": shard, "but": dialect.SQL("")}), nil)...)
	}
	return found(dialect.One(ctx, q, syntax, outbox.For(syntax, f, "has_records"),
		dialect.Args{"scans": dialect.Joined(" UNION ALL ", scans)}, new(int64)))
}

// PlaceRecords implements [dialect.Moving] by the batch place_records.
func (d database) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	moved []dialect.Moved) (kept int64, err error) {
	err = dialect.One(ctx, tx, syntax, outbox.For(syntax, f, "place_records"),
		dialect.Args{"places": dialect.PlaceList(moved), "shard": shard}, &kept)
	return kept, err
}

// DeleteRecords implements [dialect.Moving].
func (d database) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return dialect.Exec(ctx, tx, syntax, outbox.For(syntax, f, "delete_records"),
		dialect.Args{"seqs": dialect.SeqList(seqs)})
}

// DeletePlaces implements [dialect.Moving].
func (d database) DeletePlaces(f *dialect.Feed) string {
	return outbox.For(syntax, f, "delete_places").String()
}

// PlaceBehind implements [dialect.Moving] by the statement place_behind.
func (d database) PlaceBehind(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	p dialect.BackfillBatch) (int64, error) {
	at, time := "CONVERT(bigint, NULL)", dialect.Built(func(*dialect.Builder) string { return "x.live - 1" })
	if p.Time != nil {
		at = millis(*p.Time, dialect.Ref(syntax, "t", p.Time.Name))
		time = outbox.For(syntax, f, "time_of_row").With(dialect.Args{"run": p.Run})
	}
	return dialect.Exec(ctx, tx, syntax, outbox.For(syntax, f, "place_behind"), dialect.Args{
		// a product would be out of range from the year 6429 on
		"time": time, "run": dialect.SQL(dialect.Digits(p.Run)), "batch": dialect.SQL(dialect.Digits(p.Batch << 24)),
		"shard_of_row": dialect.SQL(f.ShardOf(syntax, "t")), "at": dialect.SQL(at),
		"rows": dialect.Built(func(b *dialect.Builder) string {
			return conditions(p.Rows(b))
		}),
	})
}
