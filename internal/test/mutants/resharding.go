package main

// resharding takes away what dividing a feed anew rests on, and what capture "column"
// needs for data shards.
var resharding = []mutant{
	{
		Name: "reshard-in-one-generation", Guards: "hazard 24: another number of data shards is a new generation",
		File: "reshard.go", Old: "range bumpSteps(f.db.d, f.db.names, f.name, orNull(seq.Identity)) {", New: "range bumpSteps(f.db.d, f.db.names, f.name, orNull(seq.Identity))[:1] {",
		Package: conformance, Test: "TestReshard$", Engines: "sqlite",
	},
	{
		Name: "parts-amid-sharding", Guards: "hazard 24: parts are not served while keys have shards of before",
		File: "mode_sequence.go", Old: "case l.unplaced != \"\" && !s.All():", New: "case l.unplaced == \"?\" && !s.All():",
		Package: conformance, Test: "TestReshardUnderAPage", Engines: "sqlite",
	},
	{
		Name: "sharding-for-ever", Guards: "what is known of a feed refuses nothing before it was read again",
		File: "fetch.go", Old: "if err = f.mode().part(ctx, f, l, q, shards); err == nil || fresh {", New: "if err = f.mode().part(ctx, f, l, q, shards); err == nil || !fresh {",
		Package: conformance, Test: "TestReshardUnderAPage", Engines: "sqlite",
	},
	{
		Name: "walk-of-one-batch", Guards: "upgrade: every key gets its shard",
		File: "reshard.go", Old: "case len(keys) == reshardBatch:", New: "case len(keys) > reshardBatch:",
		Package: conformance, Test: "TestReshard$", Engines: "sqlite",
	},
	{
		Name: "rows-not-walked", Guards: "upgrade, capture column: rows get their shards",
		File: "reshard.go", Old: "case stage == walkPositions && feed.InRows():", New: "case stage == walkDone && feed.InRows():",
		Package: conformance, Test: "TestReshard$", Engines: "sqlite",
	},
	{
		Name: "held-rows-left-behind", Guards: "upgrade, capture column: rows that others hold get their shards later",
		File: "reshard.go", Old: "	case late > 0:\n", New: "	case late > 1<<40:\n",
		Package: conformance, Test: "TestReshardHeldRows$", Engines: "postgres15",
	},
	{
		Name: "held-rows-counted-against", Guards: "upgrade, capture column: rows that become fewer are waited for",
		File: "reshard.go", Old: "if late < former {", New: "if late < former-1 {",
		Package: conformance, Test: "TestReshardGetsOn", Engines: "postgres15",
	},
	{
		Name: "held-rows-waited-for-postgres", Guards: "hazard 12: an upgrade waits for nobody while it holds rows",
		File: "dialect/postgres/reshard.go", Old: " FOR NO KEY UPDATE OF t SKIP LOCKED", New: " FOR NO KEY UPDATE OF t",
		Package: conformance, Test: "TestReshardHeldRows$", Engines: "postgres15",
	},
	{
		Name: "held-rows-waited-for-mysql", Guards: "hazard 12: an upgrade waits for nobody while it holds rows",
		File: "dialect/mysql/reshard.go", Old: " OF t */ SKIP LOCKED", New: " OF t */",
		Package: conformance, Test: "TestReshardHeldRows$", Engines: "mariadb",
	},
	{
		Name: "batch-of-another-division", Guards: "upgrade: a batch is of the record under the lock",
		File: "reshard.go", Old: "	if n != 1 {\n		return errRecordChanged\n	}\n	if mark == nil {", New: "	if n > 1 {\n		return errRecordChanged\n	}\n	if mark == nil {",
		Package: conformance, Test: "TestReshardBeside", Engines: "sqlite",
	},
	{
		Name: "batch-of-another-generation", Guards: "upgrade: a batch is of the generation under the lock",
		File: "reshard.go", Old: `" AND generation = " + b.Arg(r.Generation) + " AND state = " + b.Arg(stateSharding)
	if r.fillMark`, New: `" AND state = " + b.Arg(stateSharding)
	if r.fillMark`,
		Package: conformance, Test: "TestReshardEndedLate", Engines: "sqlite",
	},
	{
		Name: "another-walk-ended", Guards: "upgrade: the walk that is ended is the one whose keys have their shards",
		File: "reshard.go", Old: "return where + \" AND fill_after = \" + b.Arg(*r.fillMark)", New: "return where",
		Package: conformance, Test: "TestReshardEndedLate", Engines: "sqlite",
	},
	{
		Name: "index-of-another-division", Guards: "upgrade: who comes late takes no index away",
		File: "reshard.go", Old: "		if n != 1 {\n			return errRecordChanged\n		}\n		steps", New: "		if n > 1 {\n			return errRecordChanged\n		}\n		steps",
		Package: conformance, Test: "TestReshardEndedLate", Engines: "mariadb",
	},
	{
		Name: "index-missed-for-ever", Guards: "parts are read on when an upgrade has removed their index",
		File: "dialect/mysql/errors.go", Old: "	1176:           dialect.ClassUndefined, // index, named by a hint\n", New: "",
		Package: conformance, Test: "TestReshardUnderAReader", Engines: "mariadb",
	},
	{
		Name: "held-rows-of-another-record", Guards: "upgrade: a batch that finds another record reads it again",
		File: "reshard.go", Old: "looked, late = 0, 0", New: "looked = 0",
		Package: conformance, Test: "TestReshardHeldRowsOfAnother", Engines: "postgres15",
	},
	{
		Name: "parts-of-another-snapshot", Guards: "hazard 24: the page's own snapshot says whether parts are served",
		File: "dialect/page.go", Old: "	if len(q.Unserved) == 0 {\n		return columns", New: "	if len(q.Unserved) >= 0 {\n		return columns",
		Package: conformance, Test: "TestPartsOfTheirSnapshot", Engines: "sqlite",
	},
	{
		Name: "publishes-by-the-former-division", Guards: "hazard 24: who read the record before an upgrade publishes nothing by it",
		File: "dialect/changes.go", Old: `" AND generation = " + b.Arg(generation) + ")"`, New: `" AND generation >= " + b.Arg(generation) + ")"`,
		Package: conformance, Test: "TestReshardBeside", Engines: "sqlite",
	},
	{
		Name: "index-by-bucket-forgotten", Guards: "perf.md L3: parts have their index after an upgrade",
		File: "reshard.go", Old: "if err := run(ctx, q, steps); err != nil {", New: "if err := run(ctx, q, steps[:0]); err != nil {",
		Package: conformance, Test: "TestReshard$", Engines: "sqlite",
	},
	{
		Name: "rows-without-shards-postgres", Guards: "M18, capture column: a row gets its shard with its position",
		File: "dialect/postgres/column.go", Old: `", shard = u.shard"`, New: `", shard = t.shard"`,
		Package: conformance, Test: "TestColumnShards$", Engines: "postgres15",
	},
	{
		Name: "rows-without-shards-mysql", Guards: "M18, capture column: a row gets its shard with its position",
		File: "dialect/mysql/column.go", Old: "t.shard = j.shard%s", New: "t.shard = t.shard%s",
		Package: conformance, Test: "TestColumnShards$", Engines: "mariadb",
	},
	{
		Name: "rows-without-shards-sqlite", Guards: "M18, capture column: a row gets its shard with its position",
		File: "dialect/sqlite/column.go", Old: "j.n * 5 - 4, 5)", New: "j.n * 5 - 5, 5)",
		Package: conformance, Test: "TestColumnShards$", Engines: "sqlite",
	},
	{
		Name: "shards-move-on-update-columns", Guards: "upgrade, capture column: nothing else of a row changes",
		File: "dialect/mysql/reshard.go", Old: "SET t.shard = j.shard\"+keep", New: "SET t.shard = j.shard\"+keep[:0]",
		Package: conformance, Test: "TestPublishingChangesNothingElse", Engines: "mariadb",
	},
	{
		Name: "adopted-without-shards", Guards: "--adopt: rows whose positions are kept get their shards",
		File: "mode_sequence.go", Old: "case r.Adopt && r.DataShards > 1:", New: "case r.Adopt && r.DataShards > 1<<20:",
		Package: conformance, Test: "TestAdoptSharded", Engines: "sqlite",
	},
	{
		Name: "shards-written-into-keys", Guards: "--adopt: a column shard in a unique index is refused",
		File: "reshard.go", Old: "return c.Name == shard.Name }) {", New: "return c.Name == \"\" }) {",
		Package: conformance, Test: "TestAdoptShardsRefused", Engines: "sqlite",
	},
	{
		Name: "shards-given-by-scans", Guards: "hazard 17: a batch of the walk costs what the batch is, whatever the statistics",
		File: "dialect/sqlite/reshard.go", Old: "bucket + \" WHERE feed_sync_id = ?\"", New: "bucket + \" WHERE feed_sync_id + 0 = ?\"",
		Package: conformance, Test: "TestPlansOfParts", Engines: "sqlite",
	},
	{
		Name: "shards-given-in-any-order", Guards: "hazard 17: a batch of the walk costs what the batch is, whatever the statistics",
		File: "dialect/postgres/reshard.go", Old: "t.feed_sync_id = j.position OFFSET 0\"", New: "t.feed_sync_id = j.position\"",
		Package: conformance, Test: "TestPlansOfParts", Engines: "postgres15",
	},
	{
		Name: "types-part", Guards: "capture column: a row and its delete have one shard, where values have types",
		File: "dialect/sqlite/schema.go", Old: "return decl != \"\" && decl != \"ANY\"", New: "return decl != \"ANY\"",
		Package: conformance, Test: "TestColumnShardsOfTypes", Engines: "sqlite",
	},
	{
		Name: "shards-of-whole-keys", Guards: "capture column: what is no integer has the shard of the shard column alone",
		File: "shard.go", Old: "key = Row{columns[column : column+1], key.values[column : column+1]}", New: "_ = column",
		Package: conformance, Test: "TestColumnShardsOfTypes", Engines: "sqlite",
	},
}
