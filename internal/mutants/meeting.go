package main

// meeting are mutants of an outbox whose keys come again, in one shard or several.
var meeting = []mutant{
	{
		Name: "key-again-is-thrown-away-sqlite", Guards: "M59: a key that comes again moves to the head",
		File:    "dialect/sqlite/outbox_move.go",
		Old:     "DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > ulid",
		New:     "DO NOTHING",
		Package: conformance, Test: "TestOutboxKeyAgain", Engines: "sqlite", Short: true,
	},
	{
		Name: "key-again-is-thrown-away-postgres", Guards: "M59: a key that comes again moves to the head",
		File:    "dialect/postgres/outbox_move.go",
		Old:     "DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > g.ulid",
		New:     "DO NOTHING",
		Package: conformance, Test: "TestOutboxRecordFirst", Engines: "postgres15",
	},
	{
		Name: "key-again-is-thrown-away-mysql", Guards: "M59: a key that comes again moves to the head",
		File:    "dialect/mysql/outbox_move.go",
		Old:     ", ulid = GREATEST(UNHEX(j.ulid), \"+placed+\".ulid)\"",
		New:     "\"",
		Package: conformance, Test: "TestOutboxKeyAgain", Engines: "mariadb",
	},
	{
		Name: "first-record-of-a-key-holds", Guards: "M59: of records that are moved together the last one holds",
		File:    "dialect/postgres/outbox_move.go",
		Old:     "j.seq DESC), done",
		New:     "j.seq), done",
		Package: conformance, Test: "TestOutboxKeyAgain", Engines: "postgres15",
	},
	{
		Name: "old-place-taken-for-the-new", Guards: "M59: a record is deleted only when its key has a new place",
		File:    "dialect/mysql/outbox_move.go",
		Old:     "ofKeys+\"< ?\", list",
		New:     "ofKeys+\"< ? AND false\", list",
		Package: conformance, Test: "TestOutboxTakenULID", Engines: "mariadb",
	},
	{
		Name: "key-held-is-a-failure", Guards: "M59: a key that another shard's mover has holds up no other shard",
		File: "outbox_line.go", Old: "	if f.db.d.Classify(err) != dialect.ClassLockTimeout {\n		return err\n	}\n	f.line.meet()", New: "	if true {\n		return err\n	}\n	f.line.meet()",
		Package: conformance, Test: "TestKeyHeld", Engines: "postgres15,mariadb",
	},
	{
		Name: "key-waited-for-as-long-again", Guards: "M59: who has waited in vain waits less the next time",
		File: "outbox_line.go", Old: "	return lockPatience\n}\n\nfunc (l *line) meet()", New: "	return 0\n}\n\nfunc (l *line) meet()",
		Package: conformance, Test: "TestKeyHeldPublisher", Engines: "mariadb",
	},
	{
		Name: "movers-give-up-before-a-circle-is-seen", Guards: "M57: movers who wait for each other are run again",
		File: "dialect/postgres/publish.go", Old: "SET LOCAL lock_timeout = '2s'", New: "SET LOCAL lock_timeout = '300ms'",
		Package: conformance, Test: "TestMoversInACircle", Engines: "postgres15",
	},
	{
		Name: "key-goes-back-sqlite", Guards: "guarantee 2: the positions of a key only rise, in whatever shards",
		File: "dialect/sqlite/outbox_move.go", Old: " WHERE excluded.ulid > ulid`", New: "`",
		Package: conformance, Test: "TestOutboxKeyRises", Engines: "sqlite", Short: true,
	},
	{
		Name: "key-goes-back-postgres", Guards: "guarantee 2: the positions of a key only rise, in whatever shards",
		File: "dialect/postgres/outbox_move.go", Old: " WHERE excluded.ulid > g.ulid RETURNING", New: " RETURNING",
		Package: conformance, Test: "TestOutboxKeyRises", Engines: "postgres15",
	},
	{
		Name: "key-goes-back-mysql", Guards: "guarantee 2: the positions of a key only rise, in whatever shards",
		File: "dialect/mysql/outbox_move.go", Old: "err != nil || kept > 0 {", New: "err != nil {",
		Package: conformance, Test: "TestOutboxKeyRises", Engines: "mariadb",
	},
	{
		Name: "halves-pass-over-what-comes-late", Guards: "guarantee 2: what was committed before another began stands before it, also beside a record that cannot be placed",
		File: "dialect/outbox_move.go", Old: "where += \" AND order_sequence NOT IN (\" + strings.Trim(SeqList(but), \"[]\") + \")\"", New: "where += fmt.Sprint(\" AND order_sequence > \", but[len(but)-1])",
		Package: conformance, Test: "TestOutboxUnplaceableOrder", Engines: "postgres15",
	},
}
