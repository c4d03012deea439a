package postgres

import (
	"context"
	_ "embed" // for outbox.sql
	"encoding/hex"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed outbox.sql
var outboxFile string

var outbox = dialect.NewStatements(outboxFile)

// ByShard implements [dialect.Moving]. It needs no hint: the settings make the planner use an index, and only
// one index has the order of the query.
func (Dialect) ByShard(dialect.Seqs) (hint, condition string) { return "", "" }

// HasRecords implements [dialect.Moving] as HasChanges does its work: the settings are in the same message.
func (d Dialect) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	shards ...int) (bool, error) {
	n, err := q.Exec(ctx, askFirst+dialect.FirstRecords(d, f, among, shards...))
	return n > 0, err
}

// Bounded implements [dialect.Moving]. The Settings of the transaction bound waits.
func (Dialect) Bounded(_ context.Context, _ dialect.Querier, _ time.Duration, fn func() error) error {
	return fn()
}

// PlaceRecords implements [dialect.Moving] by the statement place_records.
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	moved []dialect.Moved) (kept int64, err error) {
	ulids := make([]string, len(moved))
	for i, m := range moved {
		ulid := m.Position.Bytes()
		ulids[i] = hex.EncodeToString(ulid[:])
	}
	err = dialect.One(ctx, tx, d, outbox.For(d, f, "place_records"), dialect.Args{
		"seqs":  bigints(moved, func(m dialect.Moved) int64 { return m.Seq }),
		"ulids": "{" + strings.Join(ulids, ",") + "}", "shard": shard,
	}, &kept)
	return kept, err
}

// DeleteRecords implements [dialect.Moving]. It deletes by primary key.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return dialect.Exec(ctx, tx, d, outbox.For(d, f, "delete_records"),
		dialect.Args{"seqs": bigints(seqs, func(seq int64) int64 { return seq })})
}

// DeletePlaces implements [dialect.Moving].
func (d Dialect) DeletePlaces(f *dialect.Feed) string {
	return outbox.For(d, f, "delete_places").String()
}

// OwnULID implements [dialect.ULID]. A uuid has 16 bytes, and is ordered by them.
func (Dialect) OwnULID() dialect.Column {
	return dialect.Column{Name: "ulid", Type: "uuid", Decl: "uuid", Kind: feedtype.Text}
}
