package sqlite

import (
	"context"
	_ "embed" // for outbox.sql
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed outbox.sql
var outboxFile string

var outbox = dialect.NewStatements(outboxFile)

// PlaceRecords implements [dialect.Moving] by the statement place_records.
func (d database) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	moved []dialect.Moved) (kept int64, err error) {
	n, err := dialect.Exec(ctx, tx, syntax, outbox.For(syntax, f, "place_records"),
		dialect.Args{"places": dialect.PlaceList(moved), "shard": shard})
	return int64(len(moved)) - n, err
}

// DeleteRecords implements [dialect.Moving]. It deletes by rowid.
func (d database) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return dialect.Exec(ctx, tx, syntax, outbox.For(syntax, f, "delete_records"),
		dialect.Args{"seqs": dialect.SQL(strings.Trim(dialect.SeqList(seqs), "[]"))})
}

// DeletePlaces implements [dialect.Moving].
func (d database) DeletePlaces(f *dialect.Feed) string {
	return outbox.For(syntax, f, "delete_places").String()
}

// PlaceBehind implements [dialect.Moving] by the statement place_behind.
func (database) PlaceBehind(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	p dialect.BackfillBatch) (int64, error) {
	args := dialect.Args{
		"feed": f.Name, "shard": dialect.SQL(f.ShardOf(syntax, "t")), "run": p.Run, "batch": p.Batch << 24,
		"time": dialect.SQL("x.live - 1"), "at": dialect.SQL(""),
		"rows": dialect.Built(func(b *dialect.Builder) string {
			return strings.Join(append(p.Rows(b), ""), " AND ")
		}),
	}
	if p.Time != nil {
		args["time"] = outbox.For(syntax, f, "time_of_row").With(dialect.Args{"run": p.Run})
		args["at"] = dialect.SQL(millis(*p.Time, dialect.Ref(syntax, "t", p.Time.Name)) + " AS at,")
	}
	return dialect.Exec(ctx, tx, syntax, outbox.For(syntax, f, "place_behind"), args)
}
