package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// ByShard implements [dialect.Moving]. MySQL takes the condition for a comment: with it, MySQL would read the
// index from its beginning, to get the order.
func (Dialect) ByShard(among dialect.Seqs) (hint, condition string) {
	if !among.All() {
		condition = " /*M! AND (" + among.OneByOne("order_sequence") + ") */"
	}
	return " FORCE INDEX (shard)", condition
}

// HasRecords implements [dialect.Moving].
func (d Dialect) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	shards ...int) (bool, error) {
	var shard int
	err := dialect.QueryRow(ctx, q, dialect.FirstRecords(d, f, among, shards...), nil, &shard)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Bounded implements [dialect.Moving]. It sets the session's lock wait timeout, and sets it back afterwards.
func (Dialect) Bounded(ctx context.Context, tx dialect.Querier, wait time.Duration, fn func() error) error {
	return waiting(ctx, tx, wait, fn)
}

// PlaceRecords implements [dialect.Moving] by one upsert, which processes one record after the other. A plain
// INSERT that fails would leave gap locks behind. In READ COMMITTED the SELECT part locks nothing and waits for
// no other transaction.
//
// Another key may have one of the ULIDs. That is an error if the record's key has a place. If it has none, the
// record gets none, and DeleteRecords does not delete it. Nor does it delete the record of a key whose place
// stays as it is.
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	moved []dialect.Moved) (kept int64, err error) {
	placed := dialect.Qualified(d, f.Placed())
	_, err = tx.Exec(ctx, insertKeys(f)+placed+" (shard, ulid, "+strings.Join(dialect.StoredRefs(d, f, ""), ", ")+
		")\nSELECT o.shard, UNHEX(j.ulid), "+
		strings.Join(dialect.StoredRefs(d, f, "o"), ", ")+
		"\nFROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', ulid CHAR(32) PATH '$[1]')) j\nSTRAIGHT_JOIN "+
		dialect.Qualified(d, f.Records())+" o FORCE INDEX (PRIMARY) ON o.order_sequence = j.seq\nWHERE o.shard = ? "+
		"ORDER BY j.seq\n"+
		// Assignments are made from left to right: that of shard reads the old ULID.
		"ON DUPLICATE KEY UPDATE shard = IF(UNHEX(j.ulid) > "+placed+".ulid, o.shard, "+placed+
		".shard), ulid = GREATEST(UNHEX(j.ulid), "+placed+".ulid)", dialect.PlaceList(moved), shard)
	return 0, err
}

// DeleteRecords implements [dialect.Moving]. It deletes by primary key: see DeleteChanges. It keeps a record
// whose key has no place in this shard: its ULID existed already, or the key has a higher place in another
// shard.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE c FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) j STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Records())+" c FORCE INDEX (PRIMARY) ON c.order_sequence = j.seq STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Placed())+" g FORCE INDEX (PRIMARY) ON "+dialect.StoredJoin(d, f, "g", "c")+
		" AND g.shard = c.shard", dialect.SeqList(seqs))
}

// DeletePlaces implements [dialect.Moving]. If most places are to be deleted, the planner would read all of
// them, and wait for those that movers of other shards have locked.
func (d Dialect) DeletePlaces(f *dialect.Feed) string {
	return "DELETE g FROM " + dialect.Qualified(d, f.Placed()) + " g FORCE INDEX (place)"
}
