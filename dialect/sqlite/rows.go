package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // for rows.sql
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed rows.sql
var rowsFile string

var inRows = dialect.NewStatements(rowsFile)

// PlaceRows implements [dialect.Placing] by one UPDATE, because the transaction has the only write lock.
func (d database) PlaceRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int,
	base int64, shard func([]any) (int, error)) (int, []any, error) {
	if !f.InRows() {
		return 0, nil, nil
	}
	waiting := dialect.WaitingPart(syntax, f, after)
	args := dialect.Args{"base": base, "waiting": waiting, "limit": limit}
	if f.KeyShards() {
		var shards []byte
		err := dialect.EachKey(ctx, tx, syntax, f, inRows.For(syntax, f, "waiting_keys"),
			dialect.Args{"waiting": waiting, "limit": limit}, 0, func(_ []string, key []any) error {
				s, err := shard(key)
				shards = fmt.Appendf(shards, "%05d", s)
				return err
			})
		if err != nil {
			return 0, nil, err
		}
		args["shards"] = shards
	}
	if err := d.moveFence(ctx, tx, f, "open_fence"); err != nil {
		return 0, nil, err
	}
	n, err := dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, "place_rows"), args)
	if err == nil {
		err = d.moveFence(ctx, tx, f, "close_fence")
	}
	if err != nil || n == 0 {
		return 0, nil, err
	}
	_, err = dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, "clear_positions"),
		dialect.Args{"base": base, "last": base + n})
	if err != nil {
		return 0, nil, err
	}
	last, err := dialect.KeyAt(ctx, tx, syntax, f, base+n)
	if errors.Is(err, sql.ErrNoRows) {
		return int(n), nil, nil // a trigger set the position back to NULL; the publisher notices that
	}
	return int(n), last, err
}

// moveFence opens or closes the fence of a feed that has one.
func (d database) moveFence(ctx context.Context, tx dialect.Querier, f *dialect.Feed, statement string) error {
	if !f.Fenced() {
		return nil
	}
	_, err := dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, statement), nil)
	return err
}

// ResetRows implements [dialect.Placing].
func (d database) ResetRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, where string,
	args []any) (int64, error) {
	return tx.Exec(ctx, inRows.For(syntax, f, "reset_rows").String()+" "+where, args...)
}

// CloseChanges implements [dialect.Placing]. The schema lock is the database's only write lock.
func (d database) CloseChanges(_ context.Context, _ dialect.Querier, f *dialect.Feed) (feedtype.TableName, error) {
	return f.Changes(), nil
}

// SetShards implements [dialect.Placing]. It writes one key after the other.
func (d database) SetShards(ctx context.Context, tx dialect.Querier, f *dialect.Feed, rows bool,
	places []dialect.Sharded) (written int64, err error) {
	for _, p := range places {
		name, args := "set_shards_of_rows", dialect.Args{"shard": p.Shard, "position": p.Position}
		if !rows {
			name, args["bucket"] = "set_shards", dialect.Bucket(p.Shard, f.DataShards)
		}
		n, err := dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, name), args)
		if err != nil {
			return 0, err
		}
		written += n
	}
	return written, nil
}
