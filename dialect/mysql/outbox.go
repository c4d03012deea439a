package mysql

import (
	"context"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// OwnULID implements [dialect.ULID].
func (Dialect) OwnULID() dialect.Column {
	return dialect.Column{Name: "ulid", Type: "binary(16)", Decl: "binary(16)", Kind: dialect.Binary}
}

// outboxTables are the outbox and the table of moved keys.
func (d Dialect) outboxTables(f *dialect.Feed, keys string) []dialect.Step {
	return []dialect.Step{
		{Note: "outbox: keys that wait for a place; writers append",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Records()) + " (\n  order_sequence bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,\n  shard bigint NOT NULL DEFAULT 0,\n  time_hint bigint NULL,\n" + keys + `,
  KEY shard (shard, order_sequence)
)` + tableOptions},
		{Note: "the place of every key; only readers and publishers write it",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Placed()) + " (\n  shard bigint NOT NULL,\n  ulid binary(16) NOT NULL,\n" + keys + `,
  PRIMARY KEY (shard, ulid),
  UNIQUE KEY own_key (` + strings.Join(dialect.StoredRefs(d, f, ""), ", ") + `)
)` + tableOptions},
	}
}

// PlaceRecords implements [dialect.ULID].
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, moved []dialect.Moved) error {
	query, args := dialect.PlaceRecords(d, f, shard, moved, " ORDER BY j.seq ON DUPLICATE KEY UPDATE shard = "+dialect.Qualified(d, f.Placed())+".shard")
	_, err := tx.Exec(ctx, query, args...)
	return err
}

// DeleteRecords implements [dialect.ULID] by primary key: see DeleteChanges. A record whose key
// has no place stays, since the upsert before passes over a ULID that is there already, too.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE c FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) j STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Records())+" c FORCE INDEX (PRIMARY) ON c.order_sequence = j.seq STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Placed())+" g FORCE INDEX (own_key) ON "+dialect.StoredJoin(d, f, "g", "c"), "["+dialect.SeqList(seqs)+"]")
}
