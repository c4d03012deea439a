package sqlite

import (
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// OwnULID implements [dialect.ULID]. A ULID is a BLOB.
func (Dialect) OwnULID() dialect.Column {
	return dialect.Column{Name: "ulid", Type: "BLOB", Decl: "BLOB", Kind: feedtype.Binary}
}

// outboxTables makes the outbox and the table of places. Without AUTOINCREMENT, the numbers would start again
// whenever the outbox is empty. The checks are needed because a column accepts values of any type: a shard that
// is not a number would stop the transactions that move records.
func (d Dialect) outboxTables(f *dialect.Feed) []dialect.Step {
	var decls []string
	for _, c := range f.Key {
		decls = append(decls, strings.TrimSpace(d.Quote(c.Stored)+" "+c.Decl)+" NOT NULL"+c.Collate)
	}
	key, names := strings.Join(decls, ",\n  "), strings.Join(dialect.StoredRefs(d, f, ""), ", ")
	return []dialect.Step{
		{Note: "outbox: keys that wait for a place; writers append",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Records()) + ` (
  order_sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  shard INTEGER NOT NULL DEFAULT 0 CHECK (typeof(shard) = 'integer'),
  time_hint INTEGER CHECK (typeof(time_hint) IN ('integer', 'null')),
  appended_at INTEGER NOT NULL DEFAULT (` + d.Now() + `),
  ` + key + `
)`},
		{Note: "a shard's records are read in this order",
			SQL: "CREATE INDEX IF NOT EXISTS " + d.Quote(f.Object("outbox")) + " ON " +
				dialect.Qualified(d, f.Records()) + " (shard, order_sequence)"},
		{Note: "the place of every key; only readers and publishers write it",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Placed()) + ` (
  shard INTEGER NOT NULL,
  ulid BLOB NOT NULL,
  ` + key + `,
  PRIMARY KEY (shard, ulid),
  UNIQUE (` + names + `)
) WITHOUT ROWID`},
	}
}

// outboxTriggers returns triggers that append a record when a row is inserted or gets another key. OR REPLACE
// fires them for the new row; the deleted row needs no record, because the table is append-only.
//
// A shard that is not an integer must make the writer's statement fail, so the trigger calls RAISE. With an
// outer OR IGNORE, the CHECK of the outbox would drop the record and keep the row.
func (d Dialect) outboxTriggers(f *dialect.Feed) []trigger {
	shard := f.ShardOf(d, "NEW")
	if f.RecordShard != "" {
		shard = "CASE typeof(" + shard + ") WHEN 'integer' THEN " + shard + " ELSE RAISE(ABORT, " +
			d.Literal(fmt.Sprintf("rowfeed: column %q of table %q, a row's shard in feed %q, holds no integer",
				f.RecordShard, f.Source.Name, f.Name)) + ") END"
	}
	make := func(suffix, note, event, when string) trigger {
		return trigger{f.Object(suffix), note, "CREATE TRIGGER " + d.Quote(f.Object(suffix)) + " AFTER " + event +
			" ON " + d.Quote(f.Source.Name) + when +
			"\nBEGIN\n  " + dialect.RecordOf(d, f, feedtype.TableName{Name: f.Records().Name}, shard, "NEW") + ";\nEND"}
	}
	return []trigger{make("insert", "a row inserted", "INSERT", ""),
		make("update", "a row with another key", "UPDATE", " WHEN "+d.otherKey(f))}
}
