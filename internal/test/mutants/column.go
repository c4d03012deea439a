package main

// inRows takes away what feeds rest on whose rows hold their positions (capture
// "column").
var inRows = []mutant{
	{
		Name: "rows-waited-for-postgres", Guards: "guarantee 5, capture column: rows that others hold are passed over",
		File: "dialect/postgres/column.go", Old: ` FOR NO KEY UPDATE SKIP LOCKED) x", b.Args(), &n`, New: ` FOR NO KEY UPDATE) x", b.Args(), &n`,
		Package: conformance, Test: "TestHeldRowsAreLate", Engines: "postgres15",
	},
	{
		Name: "rows-waited-for-mysql", Guards: "guarantee 5, capture column: rows that others hold are passed over",
		File: "dialect/mysql/column.go", Old: " FOR UPDATE SKIP LOCKED", New: " FOR UPDATE",
		Package: conformance, Test: "TestHeldRowsAreLate", Engines: "mariadb",
	},
	{
		Name: "rows-placed-by-a-scan-mysql", Guards: "hazard 17, perf.md: an UPDATE that starts from the table waits for whoever holds a row of it",
		File: "dialect/mysql/column.go", Old: "\\nSTRAIGHT_JOIN %s t%s ON", New: "\\nRIGHT JOIN %s t%s ON",
		Package: conformance, Test: "TestHeldRowsAreLate", Engines: "mariadb",
	},
	{
		Name: "sharded-rows-waited-for", Guards: "guarantee 5, capture column: rows that others hold are passed over, with data shards, too",
		File: "dialect/postgres/column.go", Old: ` FOR NO KEY UPDATE SKIP LOCKED) x", b.Args(), func(`, New: ` FOR NO KEY UPDATE) x", b.Args(), func(`,
		Package: conformance, Test: "TestHeldRowsAreLate", Engines: "postgres15",
	},
	{
		Name: "parents-held", Guards: "hazard 22: a row that is only referred to is not held",
		File: "dialect/postgres/column.go", Old: ` FOR NO KEY UPDATE SKIP LOCKED) x", b.Args(), &n`, New: ` FOR UPDATE SKIP LOCKED) x", b.Args(), &n`,
		Package: conformance, Test: "TestParentIsNotHeld", Engines: "postgres15",
	},
	{
		Name: "never-round", Guards: "hazard 13: rows written all the time do not keep others waiting",
		File: "column.go", Old: "f.turn = turn{generation, last}", New: "f.turn = turn{-1, last}",
		Package: conformance, Test: "TestGoingRound", Engines: "sqlite",
	},
	{
		Name: "round-ends-at-the-last-key", Guards: "hazard 13: after the last key comes the first",
		File: "column.go", Old: "err == nil && after != nil && n < limit {", New: "err == nil && after != nil && n < 0 {",
		Package: conformance, Test: "TestGoingRound", Engines: "postgres15",
	},
	{
		Name: "on-update-columns-move", Guards: "capture column: publishing changes nothing else of a row",
		File: "dialect/mysql/column.go", Old: `sets += ", " + ref + " = " + ref`, New: "_ = ref",
		Package: conformance, Test: "TestPublishingChangesNothingElse", Engines: "mariadb",
	},
	{
		Name: "tombstone-outlives-its-row-sqlite", Guards: "hazard 7: a row that came back has no tombstone",
		File: "dialect/sqlite/column.go", Old: `" WHERE hidden = 0 AND ("`, New: `" WHERE hidden = 2 AND ("`,
		Package: conformance, Test: "TestOnePlace", Engines: "sqlite",
	},
	{
		Name: "tombstone-outlives-its-row-postgres", Guards: "hazard 7: a row that came back has no tombstone",
		File: "dialect/postgres/column.go", Old: "AND p.hidden = 0)", New: "AND p.hidden = 2)",
		Package: conformance, Test: "TestTombstoneAndRow", Engines: "postgres15",
	},
	{
		Name: "tombstone-outlives-its-row-mysql", Guards: "hazard 7: a row that came back has no tombstone",
		File: "dialect/mysql/column.go", Old: `" WHERE p.hidden = 0")`, New: `" WHERE p.hidden = 2")`,
		Package: conformance, Test: "TestTombstoneAndRow", Engines: "mariadb",
	},
	{
		Name: "tombstone-whatever-the-row", Guards: "hazard 7: a delete is one only if the row is gone when it is published",
		File: "dialect/postgres/publish.go", Old: "IS NULL THEN 1 ELSE 0 END, \" + u.Hidden", New: "IS NULL THEN 1 ELSE 1 END, \" + u.Hidden",
		Package: conformance, Test: "TestTombstoneAndRow", Engines: "postgres15",
	},
	{
		Name: "deletes-left-out", Guards: "guarantee 1, capture column: a delete is published though no position tells of the key",
		File: "dialect/column.go", Old: "		return \"1 = 1\"\n", New: "		return row + \" IS NOT NULL OR \" + known\n",
		Package: conformance, Test: "TestRepublishedHighest", Engines: "sqlite",
	},
	{
		Name: "rows-shown-twice", Guards: "capture column: a key stands in one place, the higher one",
		File: "dialect/page.go", Old: "(h.hidden = 1 OR h.feed_sync_id > r.feed_sync_id)", New: "(h.hidden = 1)",
		Package: conformance, Test: "TestOnePlace", Engines: "sqlite",
	},
	{
		Name: "hidden-rows-shown", Guards: "M70, capture column: hidden rows stay hidden",
		File: "dialect/page.go", Old: "(h.hidden = 1 OR h.feed_sync_id > r.feed_sync_id)", New: "(h.feed_sync_id > r.feed_sync_id)",
		Package: conformance, Test: "TestUnpublish", Engines: "sqlite",
	},
	{
		Name: "undoing-trigger-unnoticed", Guards: "hazard 22: a trigger that takes positions away stops the publisher",
		File: "column.go", Old: "err == nil && stand < int64(n)", New: "err == nil && stand < 0",
		Package: conformance, Test: "TestTriggersOnPublishing", Engines: "mariadb",
	},
	{
		Name: "adopted-below-its-positions", Guards: "guarantee 2, --adopt: the sequence begins above the positions that are there",
		File: "adopt.go", Old: "return max(*highest, former), err", New: "return former, err",
		Package: conformance, Test: "TestAdopt", Engines: "sqlite",
	},
	{
		Name: "adopted-twins", Guards: "guarantee 2, --adopt: positions given twice are refused",
		File: "adopt.go", Old: "GROUP BY feed_sync_id HAVING count(*) > 1 ORDER BY", New: "GROUP BY feed_sync_id HAVING count(*) > 2 ORDER BY",
		Package: conformance, Test: "TestAdoptRefused", Engines: "sqlite",
	},
	{
		Name: "adopted-cursors-ahead", Guards: "guarantee 3, --adopt-cursors: a cursor ahead of the feed is refused",
		File: "adopt.go", Old: "c.position < 0 || c.position > head", New: "c.position < 0",
		Package: conformance, Test: "TestAdoptCursors", Engines: "sqlite",
	},
	{
		Name: "drop-takes-the-users-columns", Guards: "--adopt: feed drop leaves the user's own columns",
		File: "column.go", Old: "	r.Added = feed.Lacking(table)\n", New: "	r.Added = feed.Lacking(&dialect.Table{})\n",
		Package: conformance, Test: "TestAdopt", Engines: "sqlite,mariadb",
	},
	{
		Name: "waiting-rows-without-their-index", Guards: "hazard 17, perf.md: rows that wait are taken by an index in key order",
		File: "dialect/postgres/column.go", Old: `"CREATE INDEX IF NOT EXISTS " + d.Quote(waiting) + " ON " + source + " (" + strings.Join(dialect.OrderedKey(d, f, ""), ", ") + ")`,
		New:     `"CREATE INDEX IF NOT EXISTS " + d.Quote(waiting) + " ON " + source + " (" + strings.Join([]string{"shard"}, ", ") + ")`,
		Package: conformance, Test: "TestPlansOfRows", Engines: "postgres15",
	},
	{
		Name: "former-publisher-unnoticed", Guards: "guarantee 2, --adopt: a former publisher that still runs is noticed",
		File: "column.go", Old: "err == nil && stand > int64(n)", New: "err == nil && stand > 1<<40",
		Package: conformance, Test: "TestFormerPublisherStillRuns", Engines: "sqlite",
	},
	{
		Name: "positions-by-default", Guards: "guarantee 1, --adopt: a column whose default is a position is refused",
		File: "dialect/mysql/describe.go", Old: "case filled != \"\" && !strings", New: "case filled == \"?\" && !strings",
		Package: conformance, Test: "TestAdoptUnfitColumns", Engines: "mariadb",
	},
	{
		Name: "unfit-positions", Guards: "guarantee 1, --adopt: columns that cannot hold positions are refused",
		File: "column.go", Old: "case position != nil && position.PositionProblem() != \"\":", New: "case position != nil && !position.Nullable:",
		Package: conformance, Test: "TestAdoptUnfitColumns", Engines: "sqlite",
	},
	{
		Name: "unfit-positions-later", Guards: "guarantee 1, --adopt: a column that cannot hold positions any more is reported",
		File: "dialect/column.go", Old: "c != nil && c.PositionProblem() != \"\" {", New: "c != nil && !c.Nullable {",
		Package: conformance, Test: "TestAdoptUnfitColumns", Engines: "sqlite",
	},
	{
		Name: "positions-referred-to", Guards: "guarantee 5, --adopt on PostgreSQL: publishing waits for nobody who refers to a row",
		File: "dialect/postgres/column.go", Old: "AND i.indisunique AND i.indpred IS NULL", New: "AND NOT i.indisunique AND i.indpred IS NULL",
		Package: conformance, Test: "TestAdoptUnfitColumns", Engines: "postgres15",
	},
	{
		Name: "columns-by-exact-case", Guards: "--adopt: a column is found as the database finds it",
		File: "dialect/column.go", Old: "if c.Name == name || t.AnyCase && strings.EqualFold(c.Name, name) {", New: "if c.Name == name {",
		Package: conformance, Test: "TestColumnNamesInAnyCase", Engines: "sqlite",
	},
	{
		Name: "triggers-of-partitions", Guards: "hazard 22: triggers of partitions fire for the publisher's UPDATE, too",
		File: "dialect/postgres/column.go", Old: "WHERE g.tgrelid IN `+tree+` AND", New: "WHERE g.tgrelid = $1::bigint::oid AND",
		Package: conformance, Test: "TestTriggersOfPartitions", Engines: "postgres15",
	},
	{
		Name: "turn-of-another-feed", Guards: "capture column: a feed that was added again is published from its first key on",
		File: "column.go", Old: "if t.generation != generation {", New: "if t.generation < 0 {",
		Package: conformance, Test: "TestTurnOfAnotherFeed", Engines: "postgres15",
	},
	{
		Name: "our-triggers-are-users", Guards: "capture column: another feed of the table is no trouble",
		File: "column.go", Old: "return slices.Contains(ours, name) })", New: "return slices.Contains(ours, name+\" \") })",
		Package: conformance, Test: "TestColumnAndTriggerFeed", Engines: "sqlite",
	},
	{
		Name: "adopting-again-unheard", Guards: "--adopt: what is asked for is done or refused",
		File: "setup_feed.go", Old: "	compare(\"adopt-sequence\"", New: "	_ = fmt.Sprint(\"adopt-sequence\"",
		Package: conformance, Test: "TestAdoptAgain", Engines: "sqlite",
	},
	{
		Name: "index-that-broke-off", Guards: "hazard 17: an index that no query can use is made anew",
		File: "dialect/postgres/column.go", Old: "if name == position || name == waiting {", New: "if name == \"\" {",
		Package: conformance, Test: "TestIndexThatBrokeOff", Engines: "postgres15",
	},
	{
		Name: "readers-kept-out", Guards: "feed add on PostgreSQL: readers read while indexes are made",
		File: "dialect/postgres/column.go", Old: "steps[len(steps)-1].Commit = true", New: "steps[len(steps)-1].Commit = false",
		Package: conformance, Test: "TestReadersWhileIndexesAreMade", Engines: "postgres15",
	},
}
