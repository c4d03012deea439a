package sqlserver

import (
	"context"
	_ "embed" // for rows.sql
	"strconv"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed rows.sql
var rowsFile string

var inRows = dialect.NewStatements(rowsFile)

// PlaceRows implements [dialect.Placing] by the batch place_rows. Data shards are computed from the keys that it
// answers, and written in a second statement, so that triggers of the user's table fire twice for a row that changes
// its shard.
func (d database) PlaceRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int,
	base int64, shard func([]any) (int, error)) (n int, last []any, err error) {
	if !f.InRows() {
		return 0, nil, nil
	}
	var places []dialect.Sharded
	var order string
	err = dialect.EachKey(ctx, tx, syntax, f, inRows.For(syntax, f, "place_rows"), dialect.Args{
		"limit": limit, "base": base,
		"which": dialect.Built(func(b *dialect.Builder) (where string) {
			where, order = dialect.WaitingRows(syntax, b, f, after)
			return where
		}),
		"in_order": dialect.Built(func(*dialect.Builder) string { return order }),
	}, 1, func(first []string, key []any) error {
		n, last = n+1, key
		if !f.KeyShards() {
			return nil
		}
		position, err := strconv.ParseInt(first[0], 10, 64)
		if err != nil {
			return err
		}
		s, err := shard(key)
		places = append(places, dialect.Sharded{Position: position, Shard: s})
		return err
	})
	if err == nil && len(places) > 0 {
		_, err = d.SetShards(ctx, tx, f, true, places)
	}
	return n, last, err
}

// ResetRows implements [dialect.Placing].
func (d database) ResetRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, where string,
	args []any) (int64, error) {
	return tx.Exec(ctx, inRows.For(syntax, f, "reset_rows").String()+" "+where, args...)
}

// CloseChanges implements [dialect.Placing]. The transaction that holds the schema lock removes the table.
func (d database) CloseChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed) (feedtype.TableName, error) {
	var n int
	err := dialect.One(ctx, q, syntax, inRows.For(syntax, f, "close_changes"), nil, &n)
	return f.Changes(), err
}

// SetShards implements [dialect.Placing].
func (d database) SetShards(ctx context.Context, tx dialect.Querier, f *dialect.Feed, rows bool,
	places []dialect.Sharded) (int64, error) {
	name := "set_shards"
	if rows {
		name = "set_shards_of_rows"
	}
	return dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, name), dialect.Args{"places": dialect.ShardList(places)})
}
