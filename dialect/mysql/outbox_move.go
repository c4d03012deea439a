package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

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

// Bounded implements [dialect.Moving] for the session, which has its own bound back afterwards.
func (Dialect) Bounded(ctx context.Context, tx dialect.Querier, wait time.Duration, fn func() error) error {
	return waiting(ctx, tx, wait, fn)
}

// PlaceRecords implements [dialect.Moving] as AssignPositions does its work. In READ COMMITTED
// the SELECT part locks nothing and waits for nobody. Few keys come again, so a plain INSERT is
// tried first; where one does, that has had no effect, and the places of all the keys, below their
// new ones, go before they get these. (An upsert that finds them there would pass over a ULID that
// another key has, and DeleteRecords would take the old place for the new one. It takes none of
// another shard for it.)
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, moved []dialect.Moved) (kept int64, err error) {
	list, placed := dialect.PlaceList(moved), dialect.Qualified(d, f.Placed())
	records := "FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', ulid CHAR(32) PATH '$[1]')) j\nSTRAIGHT_JOIN " +
		dialect.Qualified(d, f.Records()) + " o FORCE INDEX (PRIMARY) ON o.order_sequence = j.seq\n"
	insert := insertKeys(f) + placed + " (shard, ulid, " + strings.Join(dialect.StoredRefs(d, f, ""), ", ") + ")\nSELECT o.shard, UNHEX(j.ulid), " +
		strings.Join(dialect.StoredRefs(d, f, "o"), ", ") + "\n" + records + "WHERE o.shard = ? ORDER BY j.seq"
	_, err = tx.Exec(ctx, insert, list, shard)
	if d.Classify(err) != dialect.ClassDuplicate {
		return 0, err
	}
	first := moved[0].Position.Bytes()
	ofKeys := records + "STRAIGHT_JOIN " + placed + " g FORCE INDEX (own_key) ON " + dialect.StoredJoin(d, f, "g", "o") + " WHERE o.shard = ? AND g.ulid "
	if err := dialect.QueryRow(ctx, tx, "SELECT COUNT(*) "+ofKeys+">= ? FOR UPDATE /*!80000 OF g */", []any{list, shard, first[:]}, &kept); err != nil || kept > 0 {
		return kept, err
	}
	_, err = tx.Exec(ctx, "DELETE g "+ofKeys+"< ?", list, shard, first[:])
	if err == nil { // from left to right: the shard by the old ULID
		_, err = tx.Exec(ctx, insert+"\nON DUPLICATE KEY UPDATE shard = IF(UNHEX(j.ulid) > "+placed+".ulid, o.shard, "+placed+".shard), ulid = GREATEST(UNHEX(j.ulid), "+placed+".ulid)", list, shard)
	}
	return 0, err
}

// DeleteRecords implements [dialect.Moving] by primary key: see DeleteChanges. A record whose key
// has no place in their shard stays: its ULID was there already, or another mover came between.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE c FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) j STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Records())+" c FORCE INDEX (PRIMARY) ON c.order_sequence = j.seq STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Placed())+" g FORCE INDEX (own_key) ON "+dialect.StoredJoin(d, f, "g", "c")+" AND g.shard = c.shard", dialect.SeqList(seqs))
}
