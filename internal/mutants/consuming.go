package main

// consuming takes away what a consumer's exactly-once rests on.
var consuming = []mutant{
	{
		Name: "cursor-without-compare", Guards: "guarantee exactly once, hazard 3: compare-and-set",
		File: "consume_apply.go", Old: "	case n != 1:\n		return errOvertaken\n", New: "	case n > 1:\n		return errOvertaken\n",
		Package: conformance, Test: "TestConsumeTwoInstances", Engines: "sqlite", Short: true,
	},
	{
		Name: "value-not-compared", Guards: "hazard 3: two instances",
		File: "consume_cursor.go", Old: "		\" AND value = \"+b.Arg(string(was.value))+\n", New: "",
		Package: conformance, Test: "TestConsumeTwoInstances", Engines: "sqlite",
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
		File: "consume_apply.go", Old: "	err := r.inTx(ctx, func(tx *sql.Tx, t *consumerTx) error {\n		batch := entries\n",
		New:     "	if err := r.inTx(ctx, func(_ *sql.Tx, t *consumerTx) error { return t.advance(ctx, to, 0) }); err != nil {\n		return err\n	}\n	err := r.inTx(ctx, func(tx *sql.Tx, t *consumerTx) error {\n		batch := entries\n",
		Package: conformance, Test: "TestConsumeKilledAtEveryStatement", Engines: "sqlite", Short: true,
	},
	{
		Name: "memory-after-commit-error", Guards: "hazard 3: after an error at COMMIT the database is asked",
		File: "consume_apply.go", Old: "after); !isHandlerError(err) {", New: "after); !isHandlerError(err) && r.row == nil {",
		Package: conformance, Test: "TestConsumeCommitUnknown", Engines: "sqlite",
	},
}
