package main

// consuming takes away what a consumer's exactly-once rests on.
var consuming = []mutant{
	{
		Name: "cursor-without-compare", Guards: "guarantee exactly once, hazard 3: compare-and-set",
		File: "consume_apply.go", Old: "	case n != 1:\n		return errOvertaken\n", New: "	case n > 1:\n		return errOvertaken\n",
		Package: conformance, Test: "TestConsumeTwoInstances", Engines: "sqlite", Short: true,
	},
	{
		Name: "value-not-compared", Guards: "hazard 3: a cursor that was moved",
		File: "consume_cursor.go", Old: "		\" AND value = \"+b.Arg(string(was.value))+\n", New: "",
		Package: conformance, Test: "TestConsumeRowTaken", Engines: "sqlite",
	},
	{
		Name: "shard-count-not-compared", Guards: "hazard 2: a row used by another shard_count",
		File: "consume_cursor.go", Old: "		\" AND shard_count = \"+b.Arg(was.shardCount)+\n", New: "",
		Package: conformance, Test: "TestConsumeRowTaken", Engines: "sqlite",
	},
	{
		Name: "generation-not-compared", Guards: "hazard 15: the same position of another generation",
		File: "consume_cursor.go", Old: "		\" AND generation = \"+b.Arg(was.generation)+\n", New: "",
		Package: conformance, Test: "TestConsumeRowTaken", Engines: "sqlite",
	},
	{
		Name: "epoch-not-compared", Guards: "hazard 3: a lease that was lost",
		File: "consume_cursor.go", Old: "		\" AND epoch = \"+b.Arg(was.epoch)+\n", New: "",
		Package: conformance, Test: "TestConsumeRowTaken", Engines: "sqlite",
	},
	{
		Name: "aside-not-compared", Guards: "hazard 25: a key set aside by another instance",
		File: "consume_cursor.go", Old: "		\" AND aside = \"+b.Arg(was.aside)+\n", New: "",
		Package: conformance, Test: "TestConsumeRowTaken", Engines: "sqlite",
	},
	{
		Name: "paused-not-compared", Guards: "M72: a paused consumer stands still",
		File: "consume_cursor.go", Old: "+\n		\" AND paused = 0\", b.Args()...)", New: ", b.Args()...)",
		Package: conformance, Test: "TestConsumeRowTaken", Engines: "sqlite",
	},
	{
		Name: "cursor-before-effects", Guards: "M47: cursor and effects are one transaction",
		File: "consume_apply.go", Old: "	err = r.inTx(ctx, func(tx *sql.Tx, t *consumerTx) error {\n		batch := entries\n",
		New:     "	if err := r.inTx(ctx, func(_ *sql.Tx, t *consumerTx) error { return t.advance(ctx, to, 0) }); err != nil {\n		return err\n	}\n	err = r.inTx(ctx, func(tx *sql.Tx, t *consumerTx) error {\n		batch := entries\n",
		Package: conformance, Test: "TestConsumeKilledAtEveryStatement", Engines: "sqlite", Short: true,
	},
	{
		Name: "memory-after-commit-error", Guards: "hazard 3: after an error at COMMIT the database is asked",
		File: "consume_apply.go", Old: "after); !isHandlerError(err) {", New: "after); !isHandlerError(err) && r.row == nil {",
		Package: conformance, Test: "TestConsumeCommitUnknown", Engines: "sqlite",
	},
	{
		Name: "versions-overtake-a-dead-letter", Guards: "hazard 25: later versions join the dead letter",
		File: "consume_apply.go", Old: "		if r.row.aside > 0 {\n			var err error", New: "		if r.row.aside > 99 {\n			var err error",
		Package: conformance, Test: "TestDeadLetters", Engines: "sqlite",
	},
	{
		Name: "release-of-another-version", Guards: "hazard 25: a released key's version stands at its letter's position",
		File: "consume_aside.go", Old: "page.Entries[0].Position == l.position {", New: "page.Entries[0].Position != \"\" {",
		Package: conformance, Test: "TestDeadLetterRetries", Engines: "sqlite",
	},
	{
		Name: "letters-keep-their-places", Guards: "hazard 25: a key that is aside and does not come again is gone",
		File: "consume_aside.go", Old: "SET generation = -ABS(generation),", New: "SET generation = ABS(generation),",
		Package: conformance, Test: "TestDeadLettersAfterRestart", Engines: "sqlite",
	},
	{
		Name: "patience-counts-as-failure", Guards: "dead letters: Later is no fault of the entry",
		File: "consume_apply.go", Old: "	if errors.As(err, &later) {", New: "	if errors.As(err, &later) && later == nil {",
		Package: conformance, Test: "TestConsumeLater", Engines: "sqlite",
	},
	{
		Name: "constraint-at-commit-is-an-outage", Guards: "one bad key delays only itself",
		File: "consume_apply.go", Old: "	if errors.As(err, &known) { // the handler asks for patience\n		return err\n	}\n	return &handlerError{err}",
		New:     "	if errors.As(err, &known) { // the handler asks for patience\n		return err\n	}\n	return err",
		Package: conformance, Test: "TestConsumeFailsAtCommit", Engines: "sqlite",
	},
	{
		Name: "the-key-at-fault-is-not-looked-for", Guards: "dead letters: entry by entry after the attempts",
		File: "consume_run.go", Old: "if r.failures >= r.attempts() &&", New: "if r.failures >= 99 &&",
		Package: conformance, Test: "TestConsumeStops", Engines: "sqlite",
	},
	{
		Name: "half-a-page-from-the-beginning", Guards: "hazard 16: a part of a page keeps its start mark",
		File: "consume_cursor.go", Old: "\t\t\tp.mark = p.mark.Max(end.position)\n", New: "",
		Package: conformance, Test: "TestConsumeStops", Engines: "sqlite",
	},
	{
		Name: "sweep-before-the-pass-is-complete", Guards: "hazard 15: the start mark tells when a pass is complete",
		File: "consume_cursor.go", Old: "\treturn err == nil && (p.start || p.mark.Above(p.position))", New: "\treturn err == nil && p.start",
		Package: conformance, Test: "TestConsumeRefused", Engines: "sqlite",
	},
	{
		Name: "a-quiet-consumer-is-deaf", Guards: "M72: seek and reset without a restart",
		File: "consume_run.go", Old: "	if time.Since(r.readAt) >= cursorPoll && !r.ofShard {", New: "	if time.Since(r.readAt) < 0 {",
		Package: conformance, Test: "TestConsumerOperations", Engines: "sqlite",
	},
	{
		Name: "a-now-that-moves", Guards: "guarantee 1: a consumer that starts at now has started",
		File: "consume_run.go", Old: "		return 0 // \"now\" or", New: "		return r.c.Wait // \"now\" or",
		Package: conformance, Test: "TestConsumerOperations", Engines: "sqlite",
	},
	{
		Name: "page-ahead-of-another-batch", Guards: "hazards 2 and 3: a page that was read ahead is for one cursor",
		File: "consume_page.go", Old: "a != nil && a.after == after {", New: "a != nil {",
		Package: conformance, Test: "TestReadAheadFails|TestReadAheadMoved", Engines: "sqlite",
	},
	{
		Name: "ahead-of-the-head", Guards: "a page is read ahead where there is one",
		File: "consume_page.go", Old: "if !page.More || ", New: "if ",
		Package: conformance, Test: "TestReadAheadOnePage", Engines: "sqlite",
	},
	{
		Name: "ahead-all-the-same", Guards: "NoReadAhead: a page is read when the batch before is through",
		File: "consume_page.go", Old: " || r.c.NoReadAhead", New: "",
		Package: conformance, Test: "TestReadAheadNot", Engines: "sqlite",
	},
	{
		Name: "reads-on-after-the-end", Guards: "Run leaves nothing behind",
		File: "consume_run.go", Old: "	defer r.dropAhead()\n", New: "",
		Package: conformance, Test: "TestReadAheadOnePage", Engines: "sqlite",
	},
	{
		Name: "a-page-that-lay-for-long", Guards: "rows as they are now, while a handler takes long",
		File: "consume_page.go", Old: " && time.Since(a.at) < staleAhead", New: "",
		Package: ".", Test: "TestReadAheadGrowsStale", Engines: "sqlite",
	},
	{
		Name: "large-batches-after-a-failure", Guards: "one bad key delays only itself",
		File: "consume_page.go", Old: "		r.asked = 0 //", New: "		_ = 0 //",
		Package: ".", Test: "TestBatchesAdapt", Engines: "sqlite",
	},
	{
		Name: "processed-twice", Guards: "M73: the mark tells whether it is the first time",
		File: "processed.go", Old: "	return n == 1, db.fail", New: "	return n <= 1, db.fail",
		Package: conformance, Test: "TestProcessedOnce", Engines: "sqlite",
	},
	{
		Name: "a-pool-in-a-pgx-transaction", Guards: "calls cannot leave the caller's transaction",
		File: "pgxtx/pgxtx.go", Old: "TxStatus() == idle {", New: "TxStatus() == 'x' {",
		Package: "./pgxtx", Test: "TestRefused", Engines: "postgres15",
	},
	{
		Name: "consumers-begin-deferred", Guards: "hazard 20: a consumer begins with SQLite's write lock",
		File: "dialect/sqlite/publish.go", Old: "if p == dialect.ForRead || p == dialect.ForCheck {", New: "if p == dialect.ForRead || p == dialect.ForCheck || p == dialect.ForConsume {",
		Package: conformance, Test: "TestConsumeHoldsTheWriteLock", Engines: "sqlite",
	},
	{
		Name: "a-letter-dropped-by-a-lagging-source", Guards: "hazards 25 and 26: a source behind a letter knows of no newer version",
		File: "consume_aside.go", Old: " || position.Above(reached.position):", New: ":",
		Package: conformance, Test: "TestDeadLetterBehind", Engines: "postgres15",
	},
	{
		Name: "a-letter-released-in-a-pass", Guards: "hazard 25: a key may come yet in a pass that is under way",
		File: "consume_run.go", Old: "r.row.aside > 0 && r.releases && r.row.value.settled() {", New: "r.row.aside > 0 {",
		Package: conformance, Test: "TestDeadLetterOfALiveKey", Engines: "sqlite",
	},
	{
		Name: "a-letter-of-a-live-key-is-a-delete", Guards: "hazard 25: only a whole pass tells that a key is gone",
		File: "consume_aside.go", Old: "	case l.generation < 0 && l.op == Delete:", New: "	case l.generation < 0:",
		Package: conformance, Test: "TestDeadLetterOfALiveKey", Engines: "sqlite",
	},
	{
		Name: "a-pass-without-an-end", Guards: "hazard 15: OnComplete also where the last entry is set aside",
		File: "consume_aside.go", Old: "t.complete(ctx, tx, to, 1)", New: "t.complete(ctx, tx, r.row.value, 1)",
		Package: conformance, Test: "TestPassEndsAside", Engines: "sqlite",
	},
	{
		Name: "a-transaction-ended-by-statement", Guards: "exactly once: a cursor is not stored by itself",
		File: "consume_apply.go", Old: "	case err == nil || ctx.Err() != nil:\n		return err\n", New: "	case err == nil || d.Classify(err) == dialect.ClassUndefined:\n		return nil\n",
		Package: conformance, Test: "TestConsumeCommitByStatement", Engines: "sqlite",
	},
	{
		Name: "denied-for-ever", Guards: "one bad key delays only itself: what never passes is a failure",
		File: "consume_apply.go", Old: "r.denials <= maxAttempts {", New: "r.denials > 0 {",
		Package: conformance, Test: "TestConsumeDenied", Engines: "sqlite",
	},
	{
		Name: "lock-timeout-counts-as-failure", Guards: "one bad key: locks of others are nobody's failure",
		File: "consume_apply.go", Old: "	case dialect.ClassRetry, dialect.ClassLockTimeout, dialect.ClassReadOnly, dialect.ClassFull:", New: "	case dialect.ClassRetry, dialect.ClassReadOnly, dialect.ClassFull:",
		Package: conformance, Test: "TestConsumeDenied", Engines: "postgres15",
	},
	{
		Name: "documents-are-merged", Guards: "a struct used again holds nothing of the row before",
		File: "decode.go", Old: "		to.SetZero() // a document", New: "		// a document",
		Package: conformance, Test: "TestDecodeAgain", Engines: "sqlite",
	},
	{
		Name: "open-rows-stall-the-feed", Guards: "a handler that leaves rows open is told",
		File: "consume_apply.go", Old: "		if t.r.reachable() {", New: "		if !t.r.reachable() {",
		Package: conformance, Test: "TestConsumeRowsLeftOpen", Engines: "postgres15",
	},
	{
		Name: "example-counts-again", Guards: "an order that comes again counts once",
		File: "examples/consume/main.go", Old: "INSERT INTO taken VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET item = excluded.item\", o.ID, o.Item",
		New:     "INSERT INTO taken (item) VALUES (?)\", o.Item",
		Package: "./examples/consume", Test: "TestStock", Engines: "sqlite",
	},
	{
		Name: "example-ignores-deletes", Guards: "an order that is gone does not count",
		File: "examples/sqlc/main.go", Old: "return New(tx).UncountOrder(ctx, o.ID)", New: "return nil",
		Package: "./examples/sqlc", Test: "TestTotal", Engines: "sqlite",
	},
	{
		Name: "example-bills-again", Guards: "an order that comes again is billed once",
		File: "examples/pgx/main.go", Old: "if e.Op == rowfeed.Delete {", New: "if e.Op == rowfeed.Delete && o.Item != \"\" {",
		Package: "./examples/pgx", Test: "TestShop", Engines: "postgres15",
	},
	{
		Name: "now-of-an-empty-feed", Guards: "a consumer that starts at now on an empty feed gets all that comes after",
		File: "consume_run.go", Old: "page.Cursor != after || r.ends(page) {", New: "page.Cursor != after && page.Cursor != Beginning || r.ends(page) {",
		Package: conformance, Test: "TestStartNowOnAnEmptyFeed", Engines: "sqlite",
	},
	{
		Name: "ahead-in-vain", Guards: "no page is read twice where batches are slow",
		File: "consume_page.go", Old: " || r.slow || ", New: " || ",
		Package: ".", Test: "TestReadAheadNotInVain",
	},
}
