package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// chooseShardColumn checks the shard column of a sequence feed, and gives it the table's spelling. The data shard of a
// key column is its value modulo the number of data shards. Any other column has the data shard itself.
func chooseShardColumn(d *dialect.Dialect, r *catalog.FeedRecord, table *dialect.Table) error {
	if r.ShardColumn == "" {
		return nil
	}
	refuse := func(next, format string, args ...any) error {
		return tableError(feedtype.Refused, table.Name, next, format, args...)
	}
	c := table.FindColumn(r.ShardColumn)
	const next = "`--shard-column` takes an integer column that is NOT NULL; leave it out to have shards computed " +
		"from the key"
	switch {
	case c == nil:
		return refuse(next, "it has no column %q", r.ShardColumn)
	case c.Kind != feedtype.Integer && c.Kind != feedtype.Dynamic:
		return refuse(next, "its column %q is %s, not an integer", c.Name, c.Type)
	}
	r.ShardColumn = c.Name
	switch {
	case r.ShardIndex() >= 0 && r.PublishedElsewhere:
		return refuse("take a column that holds data shards, or leave --shard-column and --data-shards out",
			"rowfeed writes the data shards of keys together with positions, and another publisher gives these")
	case r.ShardIndex() >= 0:
		return nil
	case c.NoArithmetic:
		return refuse("declare it as an integer, such as bigint; or leave --shard-column out to have shards computed "+
			"from the key", "its column %q is %s, with which the database does not calculate", c.Name, c.Type)
	case c.Kind == feedtype.Dynamic && !strings.Contains(strings.ToUpper(c.Type), "INT"): // SQLite's rule
		return refuse(next, "its column %q is %s, not an integer", c.Name, cmp.Or(c.Type, "without a type"))
	case !d.OwnShards:
		return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(r.Name), Err: errors.ErrUnsupported,
			Cause: "on this database the shard column of a feed with mode sequence has to be a column of the key",
			Next:  "leave it out to have shards computed from the key"}
	case c.Nullable:
		return refuse("give a data shard to the rows with NULL, and declare the column NOT NULL",
			"its column %q may be NULL, and a row without a data shard belongs to no part", c.Name)
	case r.DataShards <= 1:
		return &feedtype.Error{Code: feedtype.InvalidRequest, Param: "data-shards",
			Object: feedtype.FeedObject(r.Name),
			Cause: fmt.Sprintf("data-shards: column %q holds the data shards of rows, and their number is not given",
				c.Name),
			Next: "give --data-shards, which is above every value of the column"}
	}
	return nil
}

// maxNamed is how many rows an error names.
const maxNamed = 5

// namedRows runs a query for text and a key, up to :count, and returns both of the first rows, as text.
func (db *Database) namedRows(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord, st dialect.Statement,
	args dialect.Args) (string, error) {
	columns := make([]feedtype.Column, len(r.Key))
	for i, c := range r.Key {
		columns[i] = c.ForReaders()
	}
	var all []string
	args["count"] = maxNamed + 1
	err := dialect.EachKey(ctx, q, db.Dialect.Syntax, r.Feed(db.Names), st, args, 1,
		func(first []string, raw []any) error {
			key, err := feedtype.NewRow(columns, raw)
			all = append(all, fmt.Sprintf("%s in %s", first[0], key.AppendJSON(nil)))
			return err
		})
	if len(all) > maxNamed {
		all[maxNamed] = "…"
	}
	return strings.Join(all, ", "), err
}

// outsideShards refuses rows whose own data shard is none of the feed's. If rows hold their positions and above is not
// nil, it reads only rows above this position.
func (db *Database) outsideShards(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord, above *int64) error {
	feed, name, args := r.Feed(db.Names), "rows_outside_shards", dialect.Args{}
	if feed.OwnShard == "" {
		return nil
	}
	if above != nil {
		if !feed.InRows() {
			return nil // fitsShards knows what was published
		}
		name, args["from"] = "recent_rows_outside_shards", *above
	}
	rows, err := db.namedRows(ctx, q, r, statements.For(db.Dialect.Syntax, feed, name), args)
	if err != nil || rows == "" {
		return err
	}
	return tableError(feedtype.Refused, r.Source, "give these rows another value, or the feed more --data-shards",
		"its column %q has values that are none of the data shards 0 to %d: %s", feed.OwnShard, feed.DataShards-1, rows)
}

// OutsideShards reports rows whose value in the table's own shard column is no data shard of the feed. It reads only as
// much as an index makes cheap: if rows hold their positions, only the recent rows. Readers of the whole feed get such
// rows. Readers of parts do not.
func (f *Verifier) OutsideShards(ctx context.Context) (problem string, err error) {
	r := f.Record.Load()
	feed, name, args := r.Feed(f.Store.Names), "positions_outside_shards", dialect.Args{}
	if feed.OwnShard == "" || r.Gone() || r.State == catalog.StateCreating {
		return "", nil
	}
	if feed.InRows() {
		var head int64
		err = f.Store.One(ctx, f.Store.On(), statements, "sequence_value", dialect.Args{"feed": f.Name}, &head)
		if errors.Is(err, store.ErrNoRows) {
			return "", nil // dropped
		}
		name, args["from"] = "recent_rows_outside_shards", head-recentPositions
	}
	if err != nil {
		return "", err
	}
	rows, err := f.DB.namedRows(ctx, f.Store.On(), r, statements.For(f.Store.Dialect.Syntax, feed, name), args)
	if err != nil || rows == "" {
		return "", err
	}
	return fmt.Sprintf("column %q of table %s has values that are none of the data shards 0 to %d, and no reader of a "+
		"part gets these rows: %s; give them another value, or run `rowfeed feed upgrade %s --data-shards N`",
		feed.OwnShard, r.Source, feed.DataShards-1, rows, f.Name), nil
}

// leavesColumn refuses to begin to write data shards into a column of the table that rowfeed has not added.
func leavesColumn(r *catalog.FeedRecord, table *dialect.Table) error {
	column := table.FindColumn(dialect.ShardColumn)
	if r.OwnShard() != "" || column == nil || slices.Contains(r.Added, dialect.ShardColumn) {
		return nil
	}
	return tableError(feedtype.Refused, r.Source,
		fmt.Sprintf("drop the feed with `rowfeed feed drop %s`, and add it again with --adopt and --data-shards: with "+
			"`--shard-column %s` the column is only read, and without it `rowfeed feed add` says what it writes",
			r.Name, column.Name),
		"its column %q is its own, and rowfeed would write data shards of keys into it", column.Name)
}

// keepsShards refuses to write data shards into a column of the table that has other values.
func (db *Database) keepsShards(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord,
	table *dialect.Table) error {
	feed := r.Feed(db.Names)
	column := table.FindColumn(dialect.ShardColumn)
	if !feed.InRows() || !feed.KeyShards() || column == nil || slices.Contains(r.Added, dialect.ShardColumn) {
		return nil
	}
	for after := []any(nil); ; {
		keys, err := dialect.WalkKeys(ctx, q, db.Dialect.Syntax, feed, true, after, reshardBatch)
		if err != nil {
			return err
		}
		for _, k := range keys {
			shard, err := r.Sharder()(k.Key)
			if err != nil {
				return err
			}
			if k.Shard == nil || *k.Shard == 0 || *k.Shard == int64(shard) {
				continue
			}
			return tableError(feedtype.Refused, r.Source,
				fmt.Sprintf("keep them with `--shard-column %s`; to have them overwritten, set the column to 0 in all "+
					"rows first", column.Name),
				"its column %q has values of its own, such as %d, and rowfeed would write data shards of keys into it",
				column.Name, *k.Shard)
		}
		if len(keys) < reshardBatch {
			return nil
		}
		after = keys[len(keys)-1].Key
	}
}

// fitsShards refuses a number of data shards that does not fit the data shards which keys have. The caller calls it
// twice: before the change for everything, with bucket -1 and above nil, and in the transaction of the change for what
// was published meanwhile. The second call reads keys from the first bucket that can have a data shard which is left
// out, and rows above a position.
func (db *Database) fitsShards(ctx context.Context, q dialect.Querier, r *catalog.FeedRecord, bucket int,
	above *int64) error {
	feed := r.Feed(db.Names)
	if feed.OwnShard == "" {
		return nil
	}
	if r.DataShards <= 1 {
		return feedError(feedtype.Refused, r.Name, "set --data-shards to 2 or more", "column %q holds its data shards",
			feed.OwnShard)
	}
	var highest *int64
	s := db.Dialect.Syntax
	err := dialect.One(ctx, q, s, statements.For(s, feed, "highest_shard"),
		dialect.Args{"bucket": bucket}, &highest)
	if err == nil && highest != nil && *highest >= int64(r.DataShards) {
		err = feedError(feedtype.Refused, r.Name,
			fmt.Sprintf("set --data-shards to %d or more; a deleted key keeps its data shard until its tombstone "+
				"expires", *highest+1),
			"%d data shards are numbered 0 to %d, but the feed has keys in data shard %d", r.DataShards,
			r.DataShards-1, *highest)
	}
	return cmp.Or(err, db.outsideShards(ctx, q, r, above))
}
