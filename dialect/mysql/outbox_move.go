package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// ByShard implements [dialect.Moving].
func (Dialect) ByShard() string { return " FORCE INDEX (shard)" }

// HasRecords implements [dialect.Moving].
func (d Dialect) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, shards ...int) (bool, error) {
	var shard int
	err := dialect.QueryRow(ctx, q, dialect.FirstRecords(d, f, shards...), nil, &shard)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// PlaceRecords implements [dialect.Moving] as AssignPositions does its work. In READ COMMITTED
// the SELECT part locks nothing and waits for nobody. Few keys come again, so a plain INSERT is
// tried first; where one does, that has had no effect, and the places of all the keys go before
// they get new ones. (An upsert that finds them there would pass over a ULID that another key
// has, and DeleteRecords would take the old place for the new one.)
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, moved []dialect.Moved) error {
	list, placed := dialect.PlaceList(moved), dialect.Qualified(d, f.Placed())
	records := "FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', ulid CHAR(32) PATH '$[1]')) j\nSTRAIGHT_JOIN " +
		dialect.Qualified(d, f.Records()) + " o FORCE INDEX (PRIMARY) ON o.order_sequence = j.seq\n"
	insert := insertKeys(f) + placed + " (shard, ulid, " + strings.Join(dialect.StoredRefs(d, f, ""), ", ") + ")\nSELECT o.shard, UNHEX(j.ulid), " +
		strings.Join(dialect.StoredRefs(d, f, "o"), ", ") + "\n" + records + "WHERE o.shard = ? ORDER BY j.seq"
	_, err := tx.Exec(ctx, insert, list, shard)
	if d.Classify(err) != dialect.ClassDuplicate {
		return err
	}
	_, err = tx.Exec(ctx, "DELETE g "+records+"STRAIGHT_JOIN "+placed+" g FORCE INDEX (own_key) ON "+dialect.StoredJoin(d, f, "g", "o")+" WHERE o.shard = ?", list, shard)
	if err == nil {
		_, err = tx.Exec(ctx, insert+"\nON DUPLICATE KEY UPDATE shard = o.shard, ulid = UNHEX(j.ulid)", list, shard)
	}
	return err
}

// DeleteRecords implements [dialect.Moving] by primary key: see DeleteChanges. A record whose key
// has no place stays: its ULID was there already.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE c FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) j STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Records())+" c FORCE INDEX (PRIMARY) ON c.order_sequence = j.seq STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Placed())+" g FORCE INDEX (own_key) ON "+dialect.StoredJoin(d, f, "g", "c"), dialect.SeqList(seqs))
}
