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
		Old:     " ON CONFLICT DO NOTHING",
		New:     "",
		Package: conformance, Test: "TestOutboxPages", Engines: "postgres15",
	},
}
