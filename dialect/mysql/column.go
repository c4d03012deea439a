package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// PlaceRows implements [dialect.Publish] by four statements. DESIGN.md describes other forms, which wait for
// writers. The locking read follows the index and skips rows that other transactions have locked. It copies
// their keys into a table that only publishers write, and that is empty between transactions. The UPDATE begins
// with these keys, so it reads only rows that are locked already. The numbers in that table are in a column
// seq; no key column has this name there (see dialect.StoredName).
func (d Dialect) PlaceRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int, base int64,
	shard func([]any) (int, error)) (int, []any, error) {
	if !f.InRows() {
		return 0, nil, nil
	}
	source, batch := dialect.Qualified(d, f.Source), dialect.Qualified(d, f.Batch())
	stored := strings.Join(dialect.StoredRefs(d, f, ""), ", ")
	b := dialect.NewBuilder(d)
	where, order := dialect.WaitingRows(d, b, f, after)
	n, err := tx.Exec(ctx, insertKeys(f)+batch+" ("+stored+") SELECT "+strings.Join(dialect.KeyRefs(d, f, "t"), ", ")+
		" FROM "+source+
		" t FORCE INDEX ("+d.Quote(rowIndex(f))+")"+where+order+" LIMIT "+b.Arg(limit)+" FOR UPDATE SKIP LOCKED",
		b.Args()...)
	if err != nil || n == 0 {
		return 0, nil, err
	}
	keep, mode, err := d.unchanged(ctx, tx, f)
	if err != nil {
		return 0, nil, err
	}
	lookup := byKey(f)
	if lookup == "" { // the rows' own index, which has the whole key after the NULL
		lookup = " FORCE INDEX (" + d.Quote(rowIndex(f)) + ")"
	}
	if f.Sharded() {
		err = d.placeSharded(ctx, tx, f, mode, lookup, base, keep, shard)
	} else {
		_, err = tx.Exec(ctx, mode+fmt.Sprintf("(SELECT ROW_NUMBER() OVER (ORDER BY k.seq) AS seq, %s "+
			"FROM %s k) b\nSTRAIGHT_JOIN %s t%s ON %s AND t.feed_sync_id IS NULL\nSET t.feed_sync_id = %d + b.seq%s",
			stored, batch, source, lookup, dialect.SourceJoin(d, f, "t", "b"), base, keep))
	}
	if err != nil {
		return 0, nil, err
	}
	_, err = tx.Exec(ctx, "DELETE p FROM "+batch+" b STRAIGHT_JOIN "+dialect.Qualified(d, f.Positions())+
		" p FORCE INDEX (PRIMARY) ON "+
		dialect.StoredJoin(d, f, "b", "p")+" WHERE p.hidden = 0")
	if err != nil {
		return 0, nil, err
	}
	last, err := dialect.ReadKey(ctx, tx, d, f, dialect.StoredRefs(d, f, "b"), " FROM "+batch+
		" b ORDER BY b.seq DESC LIMIT 1", nil)
	if err != nil {
		return 0, nil, err
	}
	// WHERE with a key, for sessions with sql_safe_updates
	_, err = tx.Exec(ctx, "DELETE FROM "+batch+" WHERE seq > 0")
	return int(n), last, err
}

// placeSharded writes the positions and data shards of the keys in batch_<feed>. It reads these keys to compute
// their shards.
func (d Dialect) placeSharded(ctx context.Context, tx dialect.Querier, f *dialect.Feed, update, lookup string,
	base int64, keep string, shard func([]any) (int, error)) error {
	batch := dialect.Qualified(d, f.Batch())
	list := []byte{'['}
	err := dialect.KeysOf(ctx, tx, d, f, []string{"b.seq"}, dialect.StoredRefs(d, f, "b"), " FROM "+batch+
		" b ORDER BY b.seq"+whole, nil, func(first []string, key []any) error {
		s, err := shard(key)
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = fmt.Appendf(list, "[%s,%d]", first[0], s)
		return err
	})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, update+
		fmt.Sprintf("JSON_TABLE(?, '$[*]' COLUMNS (place FOR ORDINALITY, seq BIGINT PATH '$[0]', "+
			"shard INT PATH '$[1]')) j\nSTRAIGHT_JOIN %s b FORCE INDEX (PRIMARY) ON b.seq = j.seq\n"+
			"STRAIGHT_JOIN %s t%s ON %s AND t.feed_sync_id IS NULL\nSET t.feed_sync_id = %d + j.place, "+
			"t.shard = j.shard%s",
			batch, dialect.Qualified(d, f.Source), lookup, dialect.SourceJoin(d, f, "t", "b"), base, keep),
		string(append(list, ']')))
	return err
}

// unchanged returns assignments of columns to themselves, for columns that an UPDATE would set to its own time.
// The query runs while rows are locked, so no such column can be added meanwhile. update begins the UPDATE,
// which accepts zero dates in these columns.
func (d Dialect) unchanged(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (sets, update string, err error) {
	names, err := dialect.QueryAll(ctx, tx, `SELECT `+asBytes("COLUMN_NAME")+` FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND TABLE_NAME = ? AND EXTRA LIKE '%on update%'`+
		whole, []any{f.Source.Schema, f.Source.Name},
		scanName)
	for _, name := range names {
		ref := dialect.Ref(d, "t", name)
		sets += ", " + ref + " = " + ref
	}
	update = "UPDATE "
	if len(names) > 0 {
		update = inKeyMode("UPDATE")
	}
	return sets, update, err
}

// ResetRows implements [dialect.Publish].
func (d Dialect) ResetRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, where string,
	args []any) (int64, error) {
	keep, update, err := d.unchanged(ctx, tx, f)
	if err != nil {
		return 0, err
	}
	return tx.Exec(ctx, update+dialect.Qualified(d, f.Source)+" t SET t.feed_sync_id = NULL"+keep+" WHERE "+
		where, args...)
}

// DeleteRow implements [dialect.Schema] by two statements: no single statement can delete from one table and
// insert into another one.
func (d Dialect) DeleteRow(f *dialect.Feed) []string { return dialect.DeleteRow(d, f) }

func updateTriggers(ctx context.Context, q dialect.Querier, t feedtype.TableName) ([]string, error) {
	return dialect.QueryAll(ctx, q, `SELECT `+asBytes("TRIGGER_NAME")+` FROM information_schema.TRIGGERS
WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = ? AND EVENT_MANIPULATION = 'UPDATE' ORDER BY 1`+whole,
		[]any{t.Schema, t.Name}, scanName)
}

func indexNames(ctx context.Context, q dialect.Querier, t feedtype.TableName) ([]string, error) {
	return dialect.QueryAll(ctx, q, `SELECT DISTINCT `+asBytes("INDEX_NAME")+` FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`+whole, []any{t.Schema, t.Name}, scanName)
}

func scanName(rows dialect.Rows) (string, error) {
	v, err := dialect.ScanStrings(rows, 1)
	if err != nil {
		return "", err
	}
	return v[0], nil
}
