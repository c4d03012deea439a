package main

// outboxing takes away what an outbox's order rests on.
var outboxing = []mutant{
	{
		Name: "records-in-any-order", Guards: "M59: records stand in the order in which they were written",
		File:    "dialect/outbox.go",
		Old:     "\" ORDER BY order_sequence LIMIT \"",
		New:     "\" ORDER BY order_sequence DESC LIMIT \"",
		Package: conformance, Test: "TestOutboxPages", Engines: "sqlite", Short: true,
	},
	{
		Name: "record-hints-the-future", Guards: "hazard 8: no time is ahead of the database's clock",
		File:    "outbox_move.go",
		Old:     "hint = min(*r.HintMillis, now)",
		New:     "hint = *r.HintMillis",
		Package: conformance, Test: "TestOutboxPages", Engines: "sqlite",
	},
	{
		Name: "records-of-other-shards-deleted", Guards: "M59: exactly the records moved are deleted",
		File:    "dialect/sqlite/outbox.go",
		Old:     "\" WHERE order_sequence IN (\"+dialect.SeqList(seqs)+\")\"",
		New:     "\" WHERE order_sequence <= \"+dialect.SeqList(seqs[len(seqs)-1:])",
		Package: conformance, Test: "TestOutboxRacing", Engines: "sqlite",
	},
	{
		Name: "now-moves-records", Guards: "guarantee 4: now is the head",
		File:    "fetch.go",
		Old:     "!got.More && asked.after != Now {",
		New:     "!got.More {",
		Package: conformance, Test: "TestOutboxPages", Engines: "sqlite",
	},
	{
		Name: "key-placed-twice", Guards: "M62: a key that comes again stays where it is",
		File:    "dialect/postgres/outbox.go",
		Old:     "\" ORDER BY j.seq ON CONFLICT (\"+strings.Join(dialect.StoredRefs(d, f, \"\"), \", \")+\") DO NOTHING\"",
		New:     "\" ORDER BY j.seq\"",
		Package: conformance, Test: "TestOutboxPages", Engines: "postgres15",
	},
	{
		Name: "taken-ulid-loses-record-sqlite", Guards: "M59: a record is deleted only when its key has a place",
		File:    "dialect/sqlite/outbox.go",
		Old:     "ON CONFLICT (\"+strings.Join(dialect.StoredRefs(d, f, \"\"), \", \")+\") DO NOTHING\"",
		New:     "ON CONFLICT DO NOTHING\"",
		Package: conformance, Test: "TestOutboxTakenULID", Engines: "sqlite", Short: true,
	},
	{
		Name: "taken-ulid-loses-record-postgres", Guards: "M59: a record is deleted only when its key has a place",
		File:    "dialect/postgres/outbox.go",
		Old:     "ON CONFLICT (\"+strings.Join(dialect.StoredRefs(d, f, \"\"), \", \")+\") DO NOTHING\"",
		New:     "ON CONFLICT DO NOTHING\"",
		Package: conformance, Test: "TestOutboxTakenULID", Engines: "postgres15",
	},
	{
		Name: "taken-ulid-loses-record-mysql", Guards: "M59: a record is deleted only when its key has a place",
		File:    "dialect/mysql/outbox.go",
		Old:     " STRAIGHT_JOIN \"+\n\t\tdialect.Qualified(d, f.Placed())+\" g FORCE INDEX (own_key) ON \"+dialect.StoredJoin(d, f, \"g\", \"c\"), \"[\"",
		New:     "\", \"[\"",
		Package: conformance, Test: "TestOutboxTakenULID", Engines: "mariadb",
	},
	{
		Name: "records-without-their-shard", Guards: "M59: a trigger's record is in the shard that the row says",
		File:    "dialect/outbox.go",
		Old:     "if f.RecordShard == \"\" {",
		New:     "if true {",
		Package: conformance, Test: "TestOutboxTrigger", Engines: "sqlite",
	},
	{
		Name: "outbox-of-another-collation", Guards: "issue 5, item 7: the key's types and collations are the source's",
		File:    "dialect/sqlite/outbox.go",
		Old:     "\" NOT NULL\"+c.Collate)",
		New:     "\" NOT NULL\")",
		Package: conformance, Test: "TestOutboxKeys", Engines: "sqlite",
	},
}
