package mysql

import (
	"context"
	_ "embed" // for outbox.sql
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed outbox.sql
var outboxFile string

var outbox = dialect.NewStatements(outboxFile)

// PlaceRecords implements [dialect.Moving] by the statement place_records.
func (d database) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	moved []dialect.Moved) (kept int64, err error) {
	_, err = dialect.Exec(ctx, tx, syntax, outbox.For(syntax, f, "place_records"), dialect.Args{
		"insert": insertKeys(f), "places": dialect.PlaceList(moved), "shard": shard})
	return 0, err
}

// DeleteRecords implements [dialect.Moving]. It keeps a record whose key has no place in this shard.
func (d database) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return dialect.Exec(ctx, tx, syntax, outbox.For(syntax, f, "delete_records"),
		dialect.Args{"seqs": dialect.SeqList(seqs)})
}

// DeletePlaces implements [dialect.Moving].
func (d database) DeletePlaces(f *dialect.Feed) string {
	return outbox.For(syntax, f, "delete_places").String()
}

// ownULID is [dialect.Codec].OwnULID.
var ownULID = dialect.Column{Name: "ulid", Type: "binary(16)", Decl: "binary(16)", Kind: feedtype.Binary}

// PlaceBehind implements [dialect.Moving] by the statement place_behind.
func (d database) PlaceBehind(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	p dialect.BackfillBatch) (int64, error) {
	args := dialect.Args{
		"insert": insertKeys(f), "feed": f.Name, "shard": dialect.SQL(f.ShardOf(syntax, "t")),
		"run": p.Run, "batch": p.Batch << 24, "time": dialect.SQL("x.live - 1"), "at": dialect.SQL(""),
		"rows": dialect.Built(func(b *dialect.Builder) string {
			return strings.Join(append(p.Rows(b), ""), " AND ")
		}),
	}
	if p.Time != nil { // its zero dates are accepted, too
		args["insert"] = insertDates
		args["time"] = outbox.For(syntax, f, "time_of_row").With(dialect.Args{"run": p.Run})
		args["at"] = dialect.SQL(millis(*p.Time, dialect.Ref(syntax, "t", p.Time.Name)) + " AS at,")
	}
	return dialect.Exec(ctx, tx, syntax, outbox.For(syntax, f, "place_behind"), args)
}

// millis is [dialect.Codec].Millis. A DATETIME is read as UTC. A TIMESTAMP does not depend on the session's
// time zone.
func millis(c dialect.Column, ref string) string {
	switch {
	case baseType(c.Type) == "timestamp":
		return "CAST(UNIX_TIMESTAMP(" + ref + ") * 1000 AS SIGNED)"
	case c.Kind == feedtype.Timestamp || c.Kind == feedtype.Date:
		return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " + ref + ") DIV 1000"
	}
	return ""
}
