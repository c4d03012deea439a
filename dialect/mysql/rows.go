package mysql

import (
	"cmp"
	"context"
	_ "embed" // for rows.sql
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed rows.sql
var rowsFile string

var inRows = dialect.NewStatements(rowsFile)

// PlaceRows implements [dialect.Placing]. It locks rows, updates them, and clears their positions.
func (d database) PlaceRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int,
	base int64, shard func([]any) (int, error)) (int, []any, error) {
	if !f.InRows() {
		return 0, nil, nil
	}
	n, err := dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, "lock_waiting"), dialect.Args{
		"insert": insertKeys(f), "waiting": dialect.WaitingPart(syntax, f, after), "limit": limit})
	if err != nil || n == 0 {
		return 0, nil, err
	}
	args, err := d.unchanged(ctx, tx, f)
	if err != nil {
		return 0, nil, err
	}
	args["base"] = base
	place := "place_rows"
	if f.KeyShards() {
		place = "place_sharded_rows"
		if args["places"], err = d.shardsOfBatch(ctx, tx, f, shard); err != nil {
			return 0, nil, err
		}
	}
	if err := d.placeBatch(ctx, tx, f, inRows.For(syntax, f, place), args); err != nil {
		return 0, nil, err
	}
	if _, err := dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, "clear_positions"), nil); err != nil {
		return 0, nil, err
	}
	var last []any
	err = dialect.EachKey(ctx, tx, syntax, f, inRows.For(syntax, f, "last_key"), nil, 0,
		func(_ []string, key []any) error {
			last = key
			return nil
		})
	if err != nil {
		return 0, nil, err
	}
	_, err = dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, "empty_batch"), nil)
	return int(n), last, err
}

// placeBatch gives positions to the rows whose keys are in batch_<feed>. If the feed has a fence, it is open meanwhile.
func (d database) placeBatch(ctx context.Context, tx dialect.Querier, f *dialect.Feed, place dialect.Statement,
	args dialect.Args) error {
	move := func(statement string) error {
		if !f.Fenced() {
			return nil
		}
		_, err := dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, statement), nil)
		return err
	}
	err := move("open_fence")
	if err == nil {
		_, err = dialect.Exec(ctx, tx, syntax, place, args)
	}
	return cmp.Or(err, move("close_fence"))
}

// shardsOfBatch returns the keys in batch_<feed> as a JSON list of [seq, data shard].
func (d database) shardsOfBatch(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	shard func([]any) (int, error)) (string, error) {
	list := []byte{'['}
	err := dialect.EachKey(ctx, tx, syntax, f, inRows.For(syntax, f, "placed_keys"), nil, 1,
		func(first []string, key []any) error {
			s, err := shard(key)
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = fmt.Appendf(list, "[%s,%d]", first[0], s)
			return err
		})
	return string(append(list, ']')), err
}

// unchanged returns the arguments of a statement that writes rows: how it begins, and assignments of columns to
// themselves, for columns that it would set to its own time. It then accepts zero dates in these columns.
func (d database) unchanged(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Args, error) {
	names, err := dialect.All(ctx, tx, syntax, inRows.For(syntax, f, "kept_columns"), inTable(f.Source), scanName)
	args := dialect.Args{"update": dialect.SQL("UPDATE")}
	if len(names) > 0 {
		args["update"] = updateDates
	}
	var keep []dialect.Built
	for _, name := range names {
		column := dialect.SQL(dialect.Ref(syntax, "t", name))
		keep = append(keep, inRows.For(syntax, f, "keep").With(dialect.Args{"column": column}))
	}
	args["keep"] = dialect.Joined("", keep)
	return args, err
}

// ResetRows implements [dialect.Placing].
func (d database) ResetRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, where string,
	args []any) (int64, error) {
	reset, err := d.unchanged(ctx, tx, f)
	if err != nil {
		return 0, err
	}
	reset["where"] = dialect.SQL(where)
	return tx.Exec(ctx, dialect.NewBuilder(syntax).Fill(inRows.For(syntax, f, "reset_rows"), reset), args...)
}

// CloseChanges implements [dialect.Placing]. It renames the table: writers and publishers do not find it under its new
// name. A lock would not last until FeedDown has removed the table, because each DDL statement commits.
func (d database) CloseChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed) (feedtype.TableName, error) {
	closed := f.ClosedChanges()
	_, err := dialect.Exec(ctx, q, syntax, inRows.For(syntax, f, "close_changes"), nil)
	if number, _ := dialect.CodeField(err, "Number"); number == errTableExists { // MySQL checks the new name first
		if _, missing := d.Describe(ctx, q, f.Changes()); missing != nil {
			err = missing
		}
	}
	if d.Classify(err) == dialect.ClassUndefined {
		err = nil // an earlier attempt has renamed it
	}
	return closed, err
}

// SetShards implements [dialect.Placing]. With rows, it first locks them.
func (d database) SetShards(ctx context.Context, tx dialect.Querier, f *dialect.Feed, rows bool,
	places []dialect.Sharded) (int64, error) {
	list := dialect.Args{"places": dialect.ShardList(places)}
	if !rows {
		return dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, "set_shards"), list)
	}
	held, err := dialect.All(ctx, tx, syntax, inRows.For(syntax, f, "lock_positions"), list,
		func(rows dialect.Rows) (position int64, err error) { return position, rows.Scan(&position) })
	if err != nil {
		return 0, err
	}
	places = slices.DeleteFunc(slices.Clone(places), func(p dialect.Sharded) bool {
		return !slices.Contains(held, p.Position)
	})
	if len(places) == 0 {
		return 0, nil
	}
	args, err := d.unchanged(ctx, tx, f)
	if err != nil {
		return 0, err
	}
	args["places"] = dialect.ShardList(places)
	return dialect.Exec(ctx, tx, syntax, inRows.For(syntax, f, "set_shards_of_rows"), args)
}
