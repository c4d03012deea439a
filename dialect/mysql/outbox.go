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

// OutboxUp implements [dialect.ULID].
func (d Dialect) OutboxUp(f *dialect.Feed) []dialect.Step {
	var columns []string
	for _, c := range f.Key {
		columns = append(columns, "  "+d.keyColumn(c))
	}
	keys, names := strings.Join(columns, ",\n"), strings.Join(dialect.StoredRefs(d, f, ""), ", ")
	return []dialect.Step{
		{Note: "outbox: keys that wait for a place; writers append",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Records()) + " (\n  order_sequence bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,\n  shard bigint NOT NULL DEFAULT 0,\n  time_hint bigint NULL,\n" + keys + `,
  KEY shard (shard, order_sequence)
)` + tableOptions},
		{Note: "the place of every key; only readers and publishers write it",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Placed()) + " (\n  shard bigint NOT NULL,\n  ulid binary(16) NOT NULL,\n" + keys + `,
  PRIMARY KEY (shard, ulid),
  UNIQUE KEY own_key (` + names + `)
)` + tableOptions},
	}
}

// OutboxDown implements [dialect.ULID].
func (d Dialect) OutboxDown(f *dialect.Feed) []dialect.Step {
	return []dialect.Step{
		{Note: "its outbox", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Records())},
		{Note: "its places", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Placed())},
	}
}

// PlaceRecords implements [dialect.ULID].
func (d Dialect) PlaceRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, shard int, moved []dialect.Moved) error {
	query, args := dialect.PlaceRecords(d, f, shard, moved, " ORDER BY j.seq ON DUPLICATE KEY UPDATE shard = "+dialect.Qualified(d, f.Placed())+".shard")
	_, err := tx.Exec(ctx, query, args...)
	return err
}

// DeleteRecords implements [dialect.ULID] by primary key: see DeleteChanges.
func (d Dialect) DeleteRecords(ctx context.Context, tx dialect.Querier, f *dialect.Feed, seqs []int64) (int64, error) {
	return tx.Exec(ctx, "DELETE c FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) j STRAIGHT_JOIN "+
		dialect.Qualified(d, f.Records())+" c FORCE INDEX (PRIMARY) ON c.order_sequence = j.seq", "["+dialect.SeqList(seqs)+"]")
}
