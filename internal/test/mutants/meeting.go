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
		File: "dialect/mysql/outbox.go", Old: "UNIQUE KEY place", New: "KEY place",
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
		File: "dialect/postgres/publish.go", Old: `{"lock_timeout", "2s"}`, New: `{"lock_timeout", "300ms"}`,
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
		File: "dialect/mysql/outbox_move.go", Old: "IF(UNHEX(j.ulid) > \"+placed+\".ulid, o.shard, \"+placed+\".shard), ulid = GREATEST(UNHEX(j.ulid), \"+placed+\".ulid)", New: "o.shard, ulid = UNHEX(j.ulid)",
		Package: conformance, Test: "TestOutboxKeyRises", Engines: "mariadb",
	},
	{
		Name: "key-above-is-a-failure-mysql", Guards: "guarantee 2: a batch whose keys are above theirs elsewhere is moved again, above those",
		File: "outbox_move.go", Old: "	case kept > 0:\n		return errKeyAbove\n	}\n	return fmt", New: "	case kept < 0:\n		return errKeyAbove\n	}\n	return fmt",
		Package: conformance, Test: "TestOutboxKeyRises", Engines: "mariadb",
	},
	{
		Name: "keys-beside-are-locked-mysql", Guards: "M59: a mover that stands still holds up no other shard",
		File: "dialect/mysql/outbox.go", Old: "  PRIMARY KEY (` + strings.Join(dialect.StoredRefs(d, f, \"\"), \", \") + `),\n  UNIQUE KEY place (shard, ulid)\n", New: "  UNIQUE KEY own_key (` + strings.Join(dialect.StoredRefs(d, f, \"\"), \", \") + `),\n  PRIMARY KEY (shard, ulid),\n  KEY place (shard, ulid)\n",
		Package: conformance, Test: "TestMoverStandsStill", Engines: "mysql,mariadb",
	},
	{
		Name: "purge-reads-all-places-mysql", Guards: "M59: a purge waits for no other shard",
		File: "dialect/mysql/outbox_move.go", Old: " g FORCE INDEX (place)\"", New: " g FORCE INDEX (PRIMARY)\"",
		Package: conformance, Test: "TestMoverStandsStill", Engines: "mysql,mariadb",
	},
	{
		Name: "halves-pass-over-what-comes-late", Guards: "guarantee 2: what was committed before another began stands before it, also beside a record that cannot be placed",
		File: "dialect/outbox_move.go", Old: "and = \" AND order_sequence NOT IN (\" + strings.Trim(SeqList(but), \"[]\") + \")\"", New: "and = fmt.Sprint(\" AND order_sequence > \", but[len(but)-1])",
		Package: conformance, Test: "TestOutboxUnplaceableOrder", Engines: "postgres15",
	},
	{
		Name: "every-key-waited-for-in-a-pass", Guards: "M59: shards that wait for a key keep a pass from others for one wait",
		File: "outbox_line.go", Old: "first := min(1, len(keyed))", New: "first := len(keyed)",
		Package: ".", Test: "TestLine",
	},
}
