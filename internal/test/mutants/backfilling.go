package main

// backfilling takes away what keeps rows of before from being missed, and readers from being disturbed.
var backfilling = []mutant{
	{
		Name: "readers-meet-backfill", Guards: "M62: nobody reads where rows are placed later",
		File: "backfill.go", Old: "	if !rows.Filling ||", New: "	if true || !rows.Filling ||",
		Package: conformance, Test: "TestBackFillHoldsReadersOff", Engines: "sqlite",
	},
	{
		Name: "backfill-stops-the-head", Guards: "M62: readers at the head are not disturbed",
		File: "backfill.go", Old: "!rows.LiveFrom.IsZero() && ", New: "false && ",
		Package: conformance, Test: "TestBackFillHoldsReadersOff", Engines: "sqlite",
	},
	{
		Name: "record-left-behind", Guards: "M62: a row whose record waits is not placed behind the head",
		File: "dialect/backfill.go", Old: `, Ref(s, "c", f.Key[0].Stored)+" IS NULL"), " AND ")`, New: `), " AND ")`,
		Package: conformance, Test: "TestBackFillLeavesRecords", Engines: "sqlite,mariadb",
	},
	{
		Name: "later-run-below-readers", Guards: "M62: who stands in the midst of what was filled misses nothing of a later run",
		File: "dialect/backfill.go", Old: `x.first_run <> " + run + " OR `, New: `x.live < 0 OR `,
		Package: conformance, Test: "TestBackFill", Engines: "sqlite",
	},
	{
		Name: "runs-alike", Guards: "guarantee 2: no position is given twice",
		File: "dialect/backfill.go", Old: `") * 65536 + "+run`, New: `") * 65536 + 1"`,
		Package: conformance, Test: "TestBackFill", Engines: "sqlite",
	},
	{
		Name: "batches-alike", Guards: "guarantee 2: no position is given twice",
		File: "dialect/backfill.go", Old: "strconv.FormatInt(p.Batch<<24, 10)", New: "strconv.FormatInt(1<<24, 10)",
		Package: conformance, Test: "TestBackFillRacing", Engines: "postgres15",
	},
	{
		Name: "live-part-without-beginning", Guards: "M62: all that is live stands above what is placed behind it",
		File: "backfill.go", Old: "		if err := d.AdvanceShard(ctx, tx, feed, row, next, row.Witness); err != nil {", New: "		if next.Low++; false {",
		Package: conformance, Test: "TestBackFillTimes", Engines: "sqlite",
	},
	{
		Name: "live-part-begins-again", Guards: "M62: the live part of a shard begins where it has begun, whatever moved or was purged since",
		File: "outbox_move.go", Old: "	if err == nil && state.ULIDState == (dialect.ULIDState{}) {", New: "	if err == nil {",
		Package: conformance, Test: "TestBackFillKeyAgain", Engines: "sqlite",
	},
	{
		Name: "row-between-runs", Guards: "M62: who has read what a run has placed misses nothing of the next one",
		File: "dialect/backfill.go", Old: " AND s.filled_by > 0", New: "",
		Package: conformance, Test: "TestBackFillRowsBetween", Engines: "sqlite",
	},
	{
		Name: "purged-placed-again", Guards: "M62: what a purge has removed while a run is under way is not placed again",
		File: "backfill.go", Old: "if err == nil && r.Runs > 1 {", New: "if false {",
		Package: conformance, Test: "TestBackFillPurgeBetween", Engines: "sqlite",
	},
	{
		Name: "purged-recorded-again", Guards: "guarantee: repair writes nothing for rows whose entries were purged",
		File: "mode_outbox.go", Old: "return recorded, last, f.knowsPlaces(ctx, tx, \"repair\")", New: "return recorded, last, nil",
		Package: conformance, Test: "TestOutboxRepairPurge", Engines: "postgres15",
	},
	{
		Name: "repairs-together", Guards: "guarantee: of repairs a row comes once",
		File: "mode_outbox.go", Old: "	if err := f.lockActive(ctx, tx); err != nil {\n		return 0, nil, err\n	}\n", New: "",
		Package: conformance, Test: "TestOutboxRepairTogether", Engines: "postgres15",
	},
	{
		Name: "shards-before-records", Guards: "M60: a shard is listed however its records move meanwhile",
		File: "mode_ulid.go", Old: "	var waits []int\n	var err error\n", New: "	var waits []int\n	known, err := dialect.QueryAll(ctx, f.db.on(), query, b.Args(), scanShardID)\n	if err == nil {\n		query += fmt.Sprintf(\" AND shard <= %d\", slices.Max(append(known, -1<<62)))\n	}\n",
		Package: conformance, Test: "TestOutboxShardBetween", Engines: "sqlite",
	},
	{
		Name: "batch-without-mark", Guards: "M62: a batch is placed together with its mark, once",
		File: "backfill.go", Old: "		if err := f.filled(ctx, tx, r, mark); err != nil {\n			return err\n		}\n		n, err", New: "		if err := f.filled(ctx, f.db.on(), r, mark); err != nil {\n			return err\n		}\n		n, err",
		Package: conformance, Test: "TestBackFillKilled", Engines: "mariadb",
	},
	{
		Name: "unplaced-not-found", Guards: "issue 5: check finds rows with neither record nor place",
		File: "mode_outbox.go", Old: "		rows, err = f.findKeys(", New: "		_, err = f.findKeys(",
		Package: conformance, Test: "TestOutboxCheckRepair", Engines: "sqlite",
	},
}
