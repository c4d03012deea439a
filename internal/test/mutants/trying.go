package main

// trying takes away what makes locks that were tried, or were others', cost readers nothing.
var trying = []mutant{
	{
		Name: "tried-shard-counts", Guards: "M30: a shard without rows is no second one of the feed",
		File:    "ulid_whole.go",
		Old:     "if err != nil || len(with) != 1 {",
		New:     "if err != nil || len(with) != -1 {",
		Package: conformance, Test: "TestULIDTried", Engines: "sqlite",
	},
	{
		Name: "tried-shard-cursor-of-another", Guards: "guarantee 1: the cursor of a shard whose rows are gone passes no row of another",
		File:    "ulid_whole.go",
		Old:     "passed.Position != after {",
		New:     "passed.Position == (dialect.Position{}) {",
		Package: conformance, Test: "TestULIDTried", Engines: "sqlite",
	},
	{
		Name: "refused-shard-is-listed", Guards: "M30: a lock that was refused makes no shard",
		File:    "mode_ulid.go",
		Old:     "query += \" AND time_ms <> 0\"",
		New:     "query += \"\"",
		Package: conformance, Test: "TestULIDTried", Engines: "sqlite",
	},
	{
		Name: "nested-transaction-closed", Guards: "hazard 8: Verify says that the transaction has ended",
		File:    "pgxtx/pgxtx.go",
		Old:     "if errors.Is(err, pgx.ErrTxClosed) {",
		New:     "if errors.Is(err, sql.ErrTxDone) {",
		Package: "./pgxtx", Test: "TestLock", Engines: "postgres15",
	},
	{
		Name: "another-feeds-shard", Guards: "M5: shards of two feeds have nothing to do with each other",
		File:    "dialect/postgres/ulid_sql.go",
		Old:     "where := \"s.feed = \" + name",
		New:     "where := \"s.feed >= \" + name",
		Package: conformance, Test: "TestTwoULIDFeeds/blocking", Engines: "postgres15",
	},
	{
		Name: "shards-shown-as-one", Guards: "M30: the page of a feed with several shards shows one of them, and no trouble",
		File:    "console/feed.go",
		Old:     "return rowfeed.One(*v.Shard)",
		New:     "return rowfeed.Shards{}",
		Package: "./console", Test: "TestShards", Engines: "sqlite",
	},
	{
		Name: "texts-for-shards", Guards: "M30: shards are integers",
		File:    "mode_ulid.go",
		Old:     "c.Kind == dialect.Dynamic && strings.Contains(strings.ToUpper(c.Type), \"INT\")",
		New:     "c.Kind == dialect.Dynamic",
		Package: conformance, Test: "TestULIDShardColumns", Engines: "sqlite",
	},
	{
		Name: "commands-count-shards-from-0", Guards: "M30: any number is a shard, to commands as well",
		File:    "cmd/rowfeed/values.go",
		Old:     "i, err := strconv.Atoi(text)",
		New:     "i, err := strconv.ParseUint(text, 10, 31)",
		Package: "./cmd/rowfeed", Test: "TestBlockingLife", Engines: "sqlite",
	},
	{
		Name: "former-columns-checked", Guards: "M63: check knows a feed's columns as they are now",
		File:    "ulid_rows.go",
		Old:     "feed.ULIDs = &dialect.ULIDColumns{Position: *position, Shard: *shard}",
		New:     "feed.ULIDs = r.ULIDs",
		Package: conformance, Test: "TestULIDAltered", Engines: "postgres15",
	},
	{
		Name: "once-ends-at-several-shards", Guards: "M59: publish --once goes on behind a feed with several shards",
		File:    "cmd/rowfeed/publish.go",
		Old:     "info, err := f.Info(ctx)",
		New:     "info := &rowfeed.Info{}\n\t\t_, err = f.Fetch(ctx, rowfeed.Request{After: rowfeed.Now})",
		Package: "./cmd/rowfeed", Test: "TestPublishOnceShards", Engines: "sqlite",
	},
}
