package main

// outboxing takes away what an outbox's order rests on.
var outboxing = []mutant{
	{
		Name: "records-in-any-order", Guards: "M59: records stand in the order in which they were written",
		File:    "dialect/outbox_move.go",
		Old:     "\" ORDER BY shard, order_sequence LIMIT \"",
		New:     "\" ORDER BY shard DESC, order_sequence DESC LIMIT \"",
		Package: conformance, Test: "TestOutboxPages", Engines: "sqlite", Short: true,
	},
	{
		Name: "record-hints-the-future", Guards: "hazard 8: no time is ahead of the database's clock",
		File:    "outbox_move.go",
		Old:     "hint = min(*record.HintMillis, now)",
		New:     "hint = *record.HintMillis",
		Package: conformance, Test: "TestOutboxPages", Engines: "sqlite",
	},
	{
		Name: "records-of-other-shards-deleted", Guards: "M59: exactly the records moved are deleted",
		File:    "dialect/sqlite/outbox_move.go",
		Old:     "WHERE order_sequence IN (SELECT value FROM json_each(?))",
		New:     "WHERE order_sequence <= (SELECT max(value) FROM json_each(?))",
		Package: conformance, Test: "TestOutboxShardsApart", Engines: "sqlite",
	},
	{
		Name: "now-moves-records", Guards: "guarantee 4: now is the head",
		File:    "fetch.go",
		Old:     "rows.Waiting && asked.after != Now && !",
		New:     "rows.Waiting && !",
		Package: conformance, Test: "TestOutboxShardsApart", Engines: "sqlite", Short: true,
	},
	{
		Name: "records-read-before-the-lock", Guards: "hazards 9 and 10: what waits is read when the shard is locked",
		File: "outbox_move.go",
		Old: "\tstate, err := d.LockShard(ctx, tx, feed, shard, dialect.LockBounds{})\n\tif err != nil {\n\t\treturn fail(err)\n\t}\n" +
			"\tif err := firstError(f.sameDatabase(r, identity), f.notSetBack(floor, r.Generation, state.Given())); err != nil {\n\t\treturn fail(err)\n\t}\n" +
			"\t// A statement of its own behind the lock: it sees what the mover before has left.\n\trecords, err := dialect.TakeRecords(ctx, tx, d, feed, shard, limit)\n\tif err != nil {\n\t\treturn fail(err)\n\t}\n",
		New: "\trecords, err := dialect.TakeRecords(ctx, tx, d, feed, shard, limit)\n\tif err != nil {\n\t\treturn fail(err)\n\t}\n" +
			"\tstate, err := d.LockShard(ctx, tx, feed, shard, dialect.LockBounds{})\n\tif err != nil {\n\t\treturn fail(err)\n\t}\n" +
			"\tif err := firstError(f.sameDatabase(r, identity), f.notSetBack(floor, r.Generation, state.Given())); err != nil {\n\t\treturn fail(err)\n\t}\n",
		Package: conformance, Test: "TestOutboxMovers", Engines: "postgres15",
	},
	{
		Name: "records-that-wait-are-no-more", Guards: "guarantee 4: more: false means that everything committed before was shown",
		File:    "fetch.go",
		Old:     "if got.More = true; err != nil {",
		New:     "if err != nil {",
		Package: conformance, Test: "TestOutboxMovedByOthers", Engines: "sqlite",
	},
	{
		Name: "records-looked-for-behind-the-page", Guards: "guarantee 4: what is moved between page and look was shown",
		File:    "dialect/mysql/read.go",
		Old:     "\tpage.Waiting = at.waiting\n",
		New:     "",
		Package: conformance, Test: "TestOutboxPageInTwo", Engines: "mariadb",
	},
	{
		Name: "records-moved-in-another-database", Guards: "hazard 15: nothing is moved in a database that is not the one it was",
		File:    "outbox_move.go",
		Old:     "firstError(f.sameDatabase(r, identity), f.notSetBack",
		New:     "firstError(f.sameDatabase(r, identity[:0]), f.notSetBack",
		Package: conformance, Test: "TestOutboxReplaced", Engines: "postgres15",
	},
	{
		Name: "records-moved-in-a-past", Guards: "hazard 15: nothing is moved in a database that was set back",
		File:    "outbox_move.go",
		Old:     "f.notSetBack(floor, r.Generation, state.Given())",
		New:     "f.notSetBack(floor, r.Generation, floor.position)",
		Package: conformance, Test: "TestOutboxReplaced", Engines: "sqlite",
	},
	{
		Name: "reader-moves-all-the-same", Guards: "NoPublish and replicas: readers move nothing",
		File:    "fetch.go",
		Old:     "asked.after != Now && !f.db.publishesNothing() {",
		New:     "asked.after != Now {",
		Package: conformance, Test: "TestOutboxNoPublish", Engines: "sqlite",
	},
	{
		Name: "consistent-of-nothing", Guards: "hazard 14: a consistent page has what waited",
		File:    "outbox_move.go",
		Old:     "for last := int64(0); last < newest; {",
		New:     "for last := newest; last < newest; {",
		Package: conformance, Test: "TestOutboxConsistent", Engines: "sqlite",
	},
	{
		Name: "waiters-blind-to-records", Guards: "M69: who waits is woken by a record also where nobody publishes",
		File:    "watch.go",
		Old:     "head: at.head, waiting: true}",
		New:     "head: at.head}",
		Package: conformance, Test: "TestOutboxWait", Engines: "sqlite", Short: true,
	},
	{
		Name: "one-waiter-wakes-all", Guards: "M69: a record of one shard wakes nobody of another",
		File:    "watch.go",
		Old:     "waiting && len(part) > 1 {",
		New:     "waiting && len(part) > 1000 {",
		Package: conformance, Test: "TestOutboxWait", Engines: "sqlite",
	},
	{
		Name: "key-placed-twice", Guards: "M62: a key that comes again stays where it is",
		File:    "dialect/postgres/outbox_move.go",
		Old:     "\nON CONFLICT (`+strings.Join(dialect.StoredRefs(d, f, \"\"), \", \")+`) DO NOTHING`",
		New:     "`",
		Package: conformance, Test: "TestOutboxPages", Engines: "postgres15",
	},
	{
		Name: "taken-ulid-loses-record-sqlite", Guards: "M59: a record is deleted only when its key has a place",
		File:    "dialect/sqlite/outbox_move.go",
		Old:     "ON CONFLICT (`+strings.Join(dialect.StoredRefs(d, f, \"\"), \", \")+`) DO NOTHING`",
		New:     "ON CONFLICT DO NOTHING`",
		Package: conformance, Test: "TestOutboxTakenULID", Engines: "sqlite", Short: true,
	},
	{
		Name: "taken-ulid-loses-record-postgres", Guards: "M59: a record is deleted only when its key has a place",
		File:    "dialect/postgres/outbox_move.go",
		Old:     "ON CONFLICT (`+strings.Join(dialect.StoredRefs(d, f, \"\"), \", \")+`) DO NOTHING`",
		New:     "ON CONFLICT DO NOTHING`",
		Package: conformance, Test: "TestOutboxTakenULID", Engines: "postgres15",
	},
	{
		Name: "taken-ulid-loses-record-mysql", Guards: "M59: a record is deleted only when its key has a place",
		File:    "dialect/mysql/outbox_move.go",
		Old:     " STRAIGHT_JOIN \"+\n\t\tdialect.Qualified(d, f.Placed())+\" g FORCE INDEX (own_key) ON \"+dialect.StoredJoin(d, f, \"g\", \"c\"), dialect.SeqList",
		New:     "\", dialect.SeqList",
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
