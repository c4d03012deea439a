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
}
