package postgres

import (
	"context"
	_ "embed" // for outbox.sql
	"encoding/hex"
	"strconv"
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
	ulids := make([]string, len(moved))
	for i, m := range moved {
		ulid := m.Position.Bytes()
		ulids[i] = hex.EncodeToString(ulid[:])
	}
	err = dialect.One(ctx, tx, syntax, outbox.For(syntax, f, "place_records"), dialect.Args{
		"seqs":  bigints(moved, func(m dialect.Moved) int64 { return m.Seq }),
		"ulids": "{" + strings.Join(ulids, ",") + "}", "shard": shard,
	}, &kept)
	return kept, err
}

// DeleteRecords implements [dialect.Moving]. It deletes by primary key.
func (d database) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return dialect.Exec(ctx, tx, syntax, outbox.For(syntax, f, "delete_records"),
		dialect.Args{"seqs": bigints(seqs, func(seq int64) int64 { return seq })})
}

// DeletePlaces implements [dialect.Moving].
func (d database) DeletePlaces(f *dialect.Feed) string {
	return outbox.For(syntax, f, "delete_places").String()
}

// PlaceBehind implements [dialect.Moving] by the statement place_behind.
func (d database) PlaceBehind(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	p dialect.BackfillBatch) (int64, error) {
	at := "CAST(NULL AS bigint)"
	if p.Time != nil {
		at = millis(*p.Time, dialect.Ref(syntax, "t", p.Time.Name))
	}
	return dialect.Exec(ctx, tx, syntax, outbox.For(syntax, f, "place_behind"), dialect.Args{
		"feed": f.Name, "shard": dialect.SQL(f.ShardOf(syntax, "t")), "at": dialect.SQL(at),
		"run":   dialect.SQL(strconv.FormatInt(p.Run, 10)),
		"batch": dialect.SQL(strconv.FormatInt(p.Batch<<24, 10)),
		"rows":  dialect.Built(func(b *dialect.Builder) string { return strings.Join(p.Rows(b), " AND ") }),
	})
}

// millis is [dialect.Codec].Millis. A timestamp without time zone is read as UTC. It is NULL for infinity.
func millis(c dialect.Column, ref string) string {
	switch c.Kind {
	case feedtype.Timestamp, feedtype.TimestampTZ, feedtype.Date:
		return "CASE WHEN isfinite(" + ref + ") THEN CAST(floor(extract(epoch FROM " + ref + ") * 1000) AS bigint) END"
	}
	return ""
}
