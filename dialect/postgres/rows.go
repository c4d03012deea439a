package postgres

import (
	"context"
	"database/sql"
	_ "embed" // for rows.sql
	"errors"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed rows.sql
var rowsFile string

var inRows = dialect.NewStatements(rowsFile)

// PlaceRows implements [dialect.Placing] by one statement that locks rows and one that updates them.
func (d database) PlaceRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int,
	base int64, shard func([]any) (int, error)) (int, []any, error) {
	if !f.InRows() {
		return 0, nil, nil
	}
	lock, place := d.lockWaiting, "place_rows"
	if f.KeyShards() {
		lock, place = d.lockSharded, "place_sharded_rows"
	}
	locked, args, err := lock(ctx, tx, f, after, limit, shard)
	if err != nil || locked == 0 {
		return 0, nil, err
	}
	if f.Fenced() {
		if _, err := dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, "open_fence"), nil); err != nil {
			return 0, nil, err
		}
	}
	args["base"] = base
	var n int64
	if err := dialect.One(ctx, tx, syntax, inRows.For(syntax, f, place), args, &n); err != nil {
		return 0, nil, err
	}
	last, err := dialect.KeyAt(ctx, tx, syntax, f, base+locked)
	if errors.Is(err, sql.ErrNoRows) {
		return int(locked), nil, nil // a trigger set the position back to NULL; the publisher notices that
	}
	return int(locked), last, err
}

// lockWaiting locks rows that wait. It returns their number, and their ctids and tableoids as arrays.
func (d database) lockWaiting(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int,
	_ func([]any) (int, error)) (n int64, places dialect.Args, err error) {
	var rows, tables *string
	err = dialect.One(ctx, tx, syntax, inRows.For(syntax, f, "lock_waiting"), dialect.Args{
		"waiting": dialect.WaitingPart(syntax, f, after), "limit": limit}, &n, &rows, &tables)
	if err != nil || n == 0 {
		return 0, nil, err
	}
	return n, dialect.Args{"rows": *rows, "tables": *tables}, nil
}

// lockSharded is lockWaiting with the data shards of the rows as a third array. It reads the locked keys to
// compute them.
func (d database) lockSharded(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int,
	shard func([]any) (int, error)) (n int64, places dialect.Args, err error) {
	var rows, tables, shards []string
	err = dialect.EachKey(ctx, tx, syntax, f, inRows.For(syntax, f, "lock_waiting_keys"), dialect.Args{
		"waiting": dialect.WaitingPart(syntax, f, after), "limit": limit}, 2, func(first []string, key []any) error {
		s, err := shard(key)
		rows, tables, shards =
			append(rows, `"`+first[0]+`"`), append(tables, first[1]), append(shards, strconv.Itoa(s))
		return err
	})
	array := func(elements []string) string { return "{" + strings.Join(elements, ",") + "}" }
	return int64(len(rows)), dialect.Args{"rows": array(rows), "tables": array(tables), "shards": array(shards)}, err
}

// ResetRows implements [dialect.Placing].
func (d database) ResetRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, where string,
	args []any) (int64, error) {
	return tx.Exec(ctx, inRows.For(syntax, f, "reset_rows").String()+" "+where, args...)
}

// CloseChanges implements [dialect.Placing]. The transaction that holds the schema lock removes the table.
func (d database) CloseChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed) (feedtype.TableName, error) {
	_, err := dialect.Exec(ctx, q, syntax, inRows.For(syntax, f, "close_changes"), nil)
	return f.Changes(), err
}

// SetShards implements [dialect.Placing].
func (d database) SetShards(ctx context.Context, tx dialect.Querier, f *dialect.Feed, rows bool,
	places []dialect.Sharded) (int64, error) {
	name := "set_shards"
	if rows {
		name = "set_shards_of_rows"
	}
	return dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, name), dialect.Args{
		"positions": bigints(places, func(p dialect.Sharded) int64 { return p.Position }),
		"shards":    bigints(places, func(p dialect.Sharded) int64 { return int64(p.Shard) }),
	})
}
