package postgres

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// ByShard implements [dialect.Moving]. It needs no hint: the settings make the planner use an index, and only
// one index has the order of the query.
func (Dialect) ByShard(dialect.Seqs) (hint, condition string) { return "", "" }

// HasRecords implements [dialect.Moving] as HasChanges does its work: the settings are in the same message.
func (d Dialect) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	shards ...int) (bool, error) {
	n, err := q.Exec(ctx, askFirst+dialect.FirstRecords(d, f, among, shards...))
	return n > 0, err
}

// Bounded implements [dialect.Moving]. The Settings of the transaction bound waits.
func (Dialect) Bounded(_ context.Context, _ dialect.Querier, _ time.Duration, fn func() error) error {
	return fn()
}

// PlaceRecords implements [dialect.Moving] by one statement. The keys stay in the server. A ULID that exists
// already is an error, because a record would be lost. LATERAL with OFFSET 0 fixes the order of the join: a
// place, then its record by order_sequence. One statement can change a row only once, so it takes only the last
// record of a key. DISTINCT compares keys as the unique index does.
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int,
	moved []dialect.Moved) (kept int64, err error) {
	var ulids strings.Builder
	for i, m := range moved {
		ulids.WriteString([]string{"{", ","}[min(i, 1)])
		ulid := m.Position.Bytes()
		ulids.WriteString(hex.EncodeToString(ulid[:]))
	}
	ulids.WriteString("}")
	key, ofRecord := strings.Join(dialect.StoredRefs(d, f, ""), ", "), strings.Join(dialect.StoredRefs(d, f, "o"), ", ")
	placed := dialect.Qualified(d, f.Placed())
	err = dialect.QueryRow(ctx, tx, `WITH own AS (SELECT DISTINCT ON (`+ofRecord+`) j.seq, o.shard, j.ulid, `+ofRecord+`
FROM unnest(CAST(CAST($1 AS text) AS bigint[]), CAST(CAST($2 AS text) AS uuid[])) AS j(seq, ulid)
CROSS JOIN LATERAL (SELECT * FROM `+dialect.Qualified(d, f.Records())+
		` o WHERE o.order_sequence = j.seq AND o.shard = $3 OFFSET 0) o
ORDER BY `+ofRecord+`, j.seq DESC), done AS (INSERT INTO `+placed+" AS g (shard, ulid, "+key+`)
SELECT shard, ulid, `+key+` FROM own ORDER BY seq
ON CONFLICT (`+key+`) DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid `+
		`WHERE excluded.ulid > g.ulid RETURNING 1)
SELECT (SELECT count(*) FROM own) - (SELECT count(*) FROM done)`,
		[]any{bigints(moved, func(m dialect.Moved) int64 { return m.Seq }), ulids.String(), shard}, &kept)
	return kept, err
}

// DeleteRecords implements [dialect.Moving]. It deletes by primary key.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE FROM "+dialect.Qualified(d, f.Records())+
		" WHERE order_sequence = ANY (CAST(CAST($1 AS text) AS bigint[]))",
		bigints(seqs, func(seq int64) int64 { return seq }))
}

// DeletePlaces implements [dialect.Moving]. It needs no hint: the settings make the planner use the index.
func (d Dialect) DeletePlaces(f *dialect.Feed) string {
	return "DELETE FROM " + dialect.Qualified(d, f.Placed()) + " g"
}
