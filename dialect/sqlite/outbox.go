package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // for outbox.sql
	"errors"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed outbox.sql
var outboxFile string

var outbox = dialect.NewStatements(outboxFile)

// ByShard implements [dialect.Moving]. SQLite needs no hint: only one index has the order of the query.
func (Dialect) ByShard(dialect.Seqs) (hint, condition string) { return "", "" }

// HasRecords implements [dialect.Moving]. It takes no write lock.
func (d Dialect) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	shards ...int) (bool, error) {
	var shard int
	err := dialect.QueryRow(ctx, q, dialect.FirstRecords(d, f, among, shards...), nil, &shard)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Bounded implements [dialect.Moving]. There is only one lock, which the transaction has already.
func (Dialect) Bounded(_ context.Context, _ dialect.Querier, _ time.Duration, fn func() error) error {
	return fn()
}

// PlaceRecords implements [dialect.Moving] by the statement place_records.
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	moved []dialect.Moved) (kept int64, err error) {
	n, err := dialect.Exec(ctx, tx, d, outbox.For(d, f, "place_records"),
		dialect.Args{"places": dialect.PlaceList(moved), "shard": shard})
	return int64(len(moved)) - n, err
}

// DeleteRecords implements [dialect.Moving]. It deletes by rowid.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return dialect.Exec(ctx, tx, d, outbox.For(d, f, "delete_records"),
		dialect.Args{"seqs": dialect.SQL(strings.Trim(dialect.SeqList(seqs), "[]"))})
}

// DeletePlaces implements [dialect.Moving].
func (d Dialect) DeletePlaces(f *dialect.Feed) string {
	return outbox.For(d, f, "delete_places").String()
}

// OwnULID implements [dialect.ULID]. A ULID is a BLOB.
func (Dialect) OwnULID() dialect.Column {
	return dialect.Column{Name: "ulid", Type: "BLOB", Decl: "BLOB", Kind: feedtype.Binary}
}
