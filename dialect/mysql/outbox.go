package mysql

import (
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// OwnULID implements [dialect.ULID].
func (Dialect) OwnULID() dialect.Column {
	return dialect.Column{Name: "ulid", Type: "binary(16)", Decl: "binary(16)", Kind: feedtype.Binary}
}

// outboxTables makes the outbox and the table of places.
func (d Dialect) outboxTables(f *dialect.Feed, keys string) []dialect.Step {
	return []dialect.Step{
		{Note: "outbox: keys that wait for a place; writers append",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Records()) +
				" (\n  order_sequence bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,\n  shard bigint NOT NULL DEFAULT " +
				"0,\n  time_hint bigint NULL,\n  appended_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),\n" +
				keys + `,
  KEY shard (shard, order_sequence)
)` + tableOptions},
		// The key is the primary key. A duplicate in a primary key is locked by itself. In another unique index
		// it is locked with the gaps next to it and the following key. A transaction that moves a known key
		// would then keep those of other shards from inserting new keys.
		{Note: "the place of every key; only readers and publishers write it",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Placed()) +
				" (\n  shard bigint NOT NULL,\n  ulid binary(16) NOT NULL,\n" + keys + `,
  PRIMARY KEY (` + strings.Join(dialect.StoredRefs(d, f, ""), ", ") + `),
  UNIQUE KEY place (shard, ulid)
)` + tableOptions},
	}
}
