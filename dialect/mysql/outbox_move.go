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
// the SELECT part locks nothing and waits for nobody.
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, moved []dialect.Moved) error {
	placed := dialect.Qualified(d, f.Placed())
	_, err := tx.Exec(ctx, insertKeys(f)+placed+" (shard, ulid, "+strings.Join(dialect.StoredRefs(d, f, ""), ", ")+`)
SELECT o.shard, UNHEX(j.ulid), `+strings.Join(dialect.StoredRefs(d, f, "o"), ", ")+`
FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', ulid CHAR(32) PATH '$[1]')) j
STRAIGHT_JOIN `+dialect.Qualified(d, f.Records())+` o FORCE INDEX (PRIMARY) ON o.order_sequence = j.seq
WHERE o.shard = ? ORDER BY j.seq
ON DUPLICATE KEY UPDATE shard = `+placed+".shard", dialect.PlaceList(moved), shard)
	return err
}

// DeleteRecords implements [dialect.Moving] by primary key: see DeleteChanges. A record whose key
// has no place stays, since the upsert before passes over a ULID that is there already, too.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE c FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) j STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Records())+" c FORCE INDEX (PRIMARY) ON c.order_sequence = j.seq STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Placed())+" g FORCE INDEX (own_key) ON "+dialect.StoredJoin(d, f, "g", "c"), dialect.SeqList(seqs))
}
