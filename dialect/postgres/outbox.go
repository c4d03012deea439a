package postgres

import (
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// OwnULID implements [dialect.ULID]. A uuid has 16 bytes, and is ordered by them.
func (Dialect) OwnULID() dialect.Column {
	return dialect.Column{Name: "ulid", Type: "uuid", Decl: "uuid", Kind: feedtype.Text}
}

// outboxTables makes the outbox and the table of places.
func (d Dialect) outboxTables(f *dialect.Feed) []dialect.Step {
	var decls []string
	for _, c := range f.Key {
		decls = append(decls, d.Quote(c.Stored)+" "+c.Decl+" NOT NULL")
	}
	key, names := strings.Join(decls, ",\n  "), strings.Join(dialect.StoredRefs(d, f, ""), ", ")
	return []dialect.Step{
		// The identity's sequence caches one value, so records are numbered in the order of the INSERTs.
		{Note: "outbox: keys that wait for a place; writers append",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Records()) + ` (
  order_sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  shard bigint NOT NULL DEFAULT 0,
  time_hint bigint,
  appended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ` + key + `
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.1)`},
		{Note: "a shard's records are read in this order",
			SQL: "CREATE INDEX IF NOT EXISTS " + d.Quote(f.Object("outbox")) + " ON " +
				dialect.Qualified(d, f.Records()) + " (shard, order_sequence)"},
		{Note: "the place of every key; only readers and publishers write it",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Placed()) + ` (
  shard bigint NOT NULL,
  ulid uuid NOT NULL,
  ` + key + `,
  PRIMARY KEY (shard, ulid),
  UNIQUE (` + names + `)
)`},
	}
}

// recordBody returns the body of the trigger function of an outbox. It appends a record when a row is inserted
// or gets another key. A condition in the trigger's WHEN would keep the table's owner from changing the type of
// a key column.
func (d Dialect) recordBody(f *dialect.Feed) string {
	return "\nBEGIN\n  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND NOT (" + d.otherKey(f) +
		") THEN\n    RETURN NULL;\n  END IF;\n  " + dialect.RecordOf(d, f, f.Records(), f.ShardOf(d, "NEW"), "NEW") +
		";\n  RETURN NULL;\nEND\n"
}
