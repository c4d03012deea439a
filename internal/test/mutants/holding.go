package main

// holding takes away the bounds of those who wait for a shard and of those who have one, and
// what tells and ends who has it.
var holding = []mutant{
	{
		Name: "words-without-end", Guards: "what a writer leaves with a shard is bounded",
		File:    "dialect/postgres/ulid_sql.go",
		Old:     "left(split_part(word, ' ', 1), 40)",
		New:     "word",
		Package: conformance, Test: "TestULIDArguments", Engines: "postgres15",
	},
	{
		Name: "killed-lock-keeps-its-bound", Guards: "M44: who is killed while he waits leaves the session's bound as it was",
		File:    "dialect/mysql/ulid.go",
		Old:     "COALESCE(@rowfeed_own_wait, @@SESSION.innodb_lock_wait_timeout) AS",
		New:     "@@SESSION.innodb_lock_wait_timeout AS",
		Package: conformance, Test: "TestLockKilled", Engines: "mysql",
	},
	{
		Name: "wait-not-put-back-mysql", Guards: "M44: a session waits for what it waited for before",
		File: "dialect/mysql/ulid_sql.go", Old: `unbound = "  SET SESSION innodb_lock_wait_timeout = v_own, @rowfeed_own_wait = NULL;\n"`, New: `unbound = "  DO 0;\n"`,
		Package: conformance, Test: "TestLockWaitEnds", Engines: "mariadb,mysql",
	},
	{
		Name: "wait-not-put-back-postgres", Guards: "M44: a session waits for what it waited for before",
		File: "dialect/postgres/ulid.go", Old: "set_config('lock_timeout', CAST($5 AS text), true), current_setting('fsync')", New: "CAST($5 AS text), current_setting('fsync')",
		Package: conformance, Test: "TestLockWaitEnds", Engines: "postgres15",
	},
	{
		Name: "wait-in-vain-not-put-back", Guards: "M44: nor is it changed by a wait in vain",
		File: "dialect/mysql/ulid.go", Old: "	if err != nil && bounds.Wait > 0 {\n", New: "	if err != nil && bounds.Wait < 0 {\n",
		Package: conformance, Test: "TestLockWaitEnds", Engines: "mariadb,mysql",
	},
	{
		Name: "wait-not-put-back-sqlite", Guards: "M44: a session waits for what it waited for before, also where a lock is given up",
		File: "dialect/sqlite/ulid.go", Old: "	bounded, cancel := context.WithTimeout(ctx, wait)", New: "	tx.Exec(ctx, fmt.Sprintf(\"PRAGMA busy_timeout = %d\", wait.Milliseconds()))\n	bounded, cancel := context.WithTimeout(ctx, wait)",
		Package: conformance, Test: "TestLockGivenUp", Engines: "sqlite",
	},
	{
		Name: "wait-not-tried-again-sqlite", Guards: "M44: who asks for a longer wait than the session's gets it",
		File: "dialect/sqlite/ulid.go", Old: "case !isBusy(err), own > 0 && time.Since(began) < own:", New: "case err != nil || own > 0 && time.Since(began) < own || true:",
		Package: conformance, Test: "TestLockGivenUp", Engines: "sqlite",
	},
	{
		Name: "wait-unbounded-sqlite", Guards: "M44: who waits is told when his wait has run out",
		File: "dialect/sqlite/ulid.go", Old: "err := fn(bounded)", New: "err := fn(ctx)",
		Package: conformance, Test: "TestLockWaitConfigured", Engines: "sqlite",
	},
	{
		Name: "tighter-wait-ignored", Guards: "M44: a tighter bound of the session's own holds",
		File: "blocking.go", Old: "cmp.Or(wait, dialect.LockWait), 0), wait == 0", New: "cmp.Or(wait, dialect.LockWait), 0), false",
		Package: conformance, Test: "TestLockWaitOwn", Engines: "postgres15,mariadb",
	},
	{
		Name: "dead-transaction-called-usable", Guards: "M44: who waited in vain is told whether his transaction can go on",
		File: "blocking.go", Old: "if f.db.d.Usable(ctx, tx) != nil {", New: "if f.db.d.Usable(ctx, tx) == nil {",
		Package: conformance, Test: "TestLockWaitEnds", Engines: "postgres15,mariadb",
	},
	{
		Name: "idle-not-bounded-postgres", Guards: "M44: a transaction that has a shard may not sit idle for ever",
		File: "dialect/postgres/ulid.go", Old: "bounds.Idle, true), b.Args()", New: "0, true), b.Args()",
		Package: conformance, Test: "TestLockIdleSetting", Engines: "postgres15",
	},
	{
		Name: "idle-not-bounded-by-sql", Guards: "M44: nor may one that took it by SQL",
		File: "dialect/postgres/ulid_sql.go", Old: "IF word IS NULL AND current_setting('idle_in_transaction_session_timeout') = '0' THEN", New: "IF false THEN",
		Package: conformance, Test: "TestLockIdleSetting", Engines: "postgres15",
	},
	{
		Name: "idle-bound-loosened", Guards: "M44: a tighter bound of the session's own holds",
		File: "dialect/postgres/ulid.go", Old: "\"::interval < \" + to", New: "\"::interval > \" + to",
		Package: conformance, Test: "TestLockIdleSetting", Engines: "postgres15",
	},
	{
		Name: "unbounded-session-taken", Guards: "M44: who demands a bound that cannot be had is refused",
		File: "dialect/mysql/ulid.go", Old: "have > idle {", New: "have > idle && idle < 0 {",
		Package: conformance, Test: "TestLockIdleSetting", Engines: "mariadb",
	},
	{
		Name: "wait-by-sql-unbounded", Guards: "M44: the functions of other languages do not wait for ever",
		File: "dialect/postgres/ulid_sql.go", Old: "  IF unbounded THEN\n    PERFORM set_config('lock_timeout', '0', true);\n  END IF;\n", New: "",
		Package: conformance, Test: "TestLockBySQLWaits", Engines: "postgres15",
	},
	{
		Name: "holder-under-a-savepoint-postgres", Guards: "M44: who has a shard under a savepoint is named by those who wait",
		File: "dialect/postgres/holders.go", Old: "WHERE l.virtualtransaction = l.virtualxid AND NOT", New: "WHERE false AND NOT",
		Package: conformance, Test: "TestLockHolderHidden", Engines: "postgres15",
	},
	{
		Name: "waiter-taken-for-the-holder-mariadb", Guards: "M44: who waits is not ended for who has the shard",
		File: "dialect/mysql/holders.go", Old: "x.trx_requested_lock_id <=> l.lock_id, x.trx_mysql", New: "0, x.trx_mysql",
		Package: conformance, Test: "TestUnblock$|TestLockHolders", Engines: "mariadb",
	},
	{
		Name: "waiter-taken-for-the-holder-mysql", Guards: "M44: who waits is not ended for who has the shard",
		File: "dialect/mysql/holders.go", Old: "l.LOCK_STATUS = 'WAITING'", New: "0",
		Package: conformance, Test: "TestUnblock$|TestLockHolders", Engines: "mysql",
	},
	{
		Name: "another-feeds-holder", Guards: "M44: a shard is one feed's",
		File: "dialect/postgres/holders.go", Old: " s WHERE s.feed = $1::text\n), waiting", New: " s WHERE s.feed >= $1::text\n), waiting",
		Package: conformance, Test: "TestLockHolders", Engines: "postgres15",
	},
	{
		Name: "unblock-does-not-look-again-postgres", Guards: "M44: no connection is ended for a transaction of its past",
		File: "dialect/postgres/holders.go", Old: "AND virtualtransaction = $2::text AND", New: "AND $2::text <> '' AND",
		Package: conformance, Test: "TestUnblockLooksAgain", Engines: "postgres15",
	},
	{
		Name: "unblock-does-not-look-again-mysql", Guards: "M44: no connection is ended for a transaction of its past",
		File: "dialect/mysql/holders.go", Old: " && now.Holder.Transaction == h.Holder.Transaction {", New: " {",
		Package: conformance, Test: "TestUnblockLooksAgain", Engines: "mariadb,mysql",
	},
	{
		Name: "unblock-guesses", Guards: "M44: of several shards one must be named",
		File: "holders.go", Old: "	case len(waited) == 1:\n", New: "	case len(waited) >= 1:\n",
		Package: conformance, Test: "TestUnblock$", Engines: "postgres15",
	},
	{
		Name: "unblock-whoever-it-is", Guards: "M44: with a session named no other is ended",
		File: "holders.go", Old: "case req.Session != \"\" && req.Session != h.Holder.ID:", New: "case false:",
		Package: conformance, Test: "TestUnblock$", Engines: "postgres15,mariadb",
	},
	{
		Name: "dry-run-ends", Guards: "M44: who only looks ends nobody",
		File: "holders.go", Old: "found.Holder = &holder; req.DryRun {", New: "found.Holder = &holder; req.DryRun && false {",
		Package: conformance, Test: "TestUnblock$", Engines: "postgres15",
	},
	{
		Name: "prepared-writer-unnamed", Guards: "who keeps others waiting is named, also without a session",
		File: "dialect/postgres/rest.go", Old: "i.virtualtransaction = held.virtualtransaction", New: "held.virtualtransaction = '-1/' || i.transactionid::text",
		Package: conformance, Test: "TestPreparedWriter", Engines: "postgres15",
	},
	{
		Name: "holders-by-what-cannot-be-shown", Guards: "M44: who has a shard is named whatever others' statements hold",
		File: "dialect/mysql/holders.go", Old: "AND e.STATE = 'ACTIVE'\n", New: "AND e.STATE = 'ACTIVE' LEFT JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = th.PROCESSLIST_ID\n",
		Package: conformance, Test: "TestHoldersBesideBytes", Engines: "mysql",
	},
	{
		Name: "hidden-writers-unnamed", Guards: "M72: a login without pg_read_all_stats is told who holds changes back",
		File: "dialect/postgres/rest.go", Old: "WHERE a.pid <> pg_backend_pid()\nUNION ALL", New: "WHERE a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL\nUNION ALL",
		Package: conformance, Test: "TestBlockersByLogin", Engines: "postgres15",
	},
	{
		Name: "silence-for-nobody-postgres", Guards: "M72: where a right is missing to see who holds changes back, that is said",
		File: "dialect/postgres/rest.go", Old: "return b.AgeMicros < 0 })", New: "return b.AgeMicros < -1 })",
		Package: conformance, Test: "TestBlockersByLogin", Engines: "postgres15",
	},
	{
		Name: "silence-for-nobody-mysql", Guards: "M72: where a right is missing to see who holds changes back, that is said",
		File: "dialect/mysql/rest.go", Old: "	case err == nil || d.Classify(err) != dialect.ClassPermission:\n", New: "	case true:\n		err = nil\n		fallthrough\n	case err == nil:\n",
		Package: conformance, Test: "TestBlockersByLogin", Engines: "mariadb,mysql",
	},
	{
		Name: "nobody-has-the-file", Guards: "M72: who has the lock of a file is named",
		File: "dialect/sqlite/blockers_linux.go", Old: "	walWriteByte = 120", New: "	walWriteByte = 119",
		Package: conformance, Test: "TestWhoHoldsItUp", Engines: "sqlite",
	},
	{
		Name: "idle-writers-say-nothing-mysql", Guards: "M72: who keeps changes back is named with the last statement",
		File: "dialect/mysql/rest.go", Old: "COALESCE(`+lastStatement+`, '')", New: "COALESCE(th.PROCESSLIST_INFO, '')",
		Package: conformance, Test: "TestWhoHoldsItUp", Engines: "mysql",
	},
	{
		Name: "blockers-by-what-cannot-be-shown", Guards: "M72: who holds a feed up is named whatever others' statements hold",
		File: "dialect/mysql/rest.go", Old: "		if cannotShow(err) || d", New: "		if d",
		Package: conformance, Test: "TestBlockersBesideBytes", Engines: "mysql",
	},
}
