package main

// printing takes away what makes a printed script's feed one that feed add would make.
var printing = []mutant{
	{
		Name: "printed-states-below-the-rows", Guards: "M62: shards go on above the rows that they have",
		File:    "setup_print.go",
		Old:     `" DESC LIMIT 1) AS highest"`,
		New:     `" LIMIT 1) AS highest"`,
		Package: conformance, Test: "TestPrintBlocking", Engines: "sqlite",
	},
	{
		Name: "printed-outbox-is-ready", Guards: "M62: who begins while rows are placed is refused",
		File:    "setup_print.go",
		Old:     "return nil, stateFilling, ",
		New:     "return nil, stateActive, ",
		Package: conformance, Test: "TestPrintOutbox", Engines: "sqlite",
	},
	{
		Name: "printed-routines-of-nowhere", Guards: "M28: a printed script's routines are those of feed add",
		File:    "dialect/mysql/ulid_sql.go",
		Old:     "if t.Schema == f.Names.Schema {",
		New:     "if t.Schema == \"\" {",
		Package: conformance, Test: "TestPrintBlocking", Engines: "mariadb",
	},
	{
		Name: "printed-identity-unknown", Guards: "hazard 15: a feed knows its database",
		File:    "setup_print.go",
		Old:     `identity != "" {`,
		New:     `identity == "" {`,
		Package: conformance, Test: "TestPrintBlocking", Engines: "postgres15",
	},
	{
		Name: "printed-types-are-names", Guards: "feed add takes the arguments of feed add --print",
		File:    "setup_feed.go",
		Old:     "*name, _, _ = strings.Cut(*name, \":\")",
		New:     "_, _, _ = strings.Cut(*name, \":\")",
		Package: conformance, Test: "TestPrintOutbox", Engines: "sqlite",
	},
	{
		Name: "printed-states-of-another-time", Guards: "M62: shards go on above the rows that they have",
		File:    "dialect/sqlite/ulid.go",
		Old:     "44-4*i)",
		New:     "40-4*i)",
		Package: conformance, Test: "TestPrintBlocking", Engines: "sqlite",
	},
	{
		Name: "printed-keys-without-collation", Guards: "M28: a printed script's tables are those of feed add",
		File:    "dialect/sqlite/schema.go",
		Old:     "c.Collate = ` COLLATE \"BINARY\"`",
		New:     "_ = c",
		Package: conformance, Test: "TestPrintOutbox", Engines: "sqlite",
	},
	{
		Name: "printed-identity-is-a-number", Guards: "M28: a printed script runs where UPDATE is strict",
		File:    "dialect/mysql/restore.go",
		Old:     `"CASE WHEN CAST(" + readOnly + " AS CHAR) IN`,
		New:     `"CASE WHEN (" + readOnly + ") IN`,
		Package: conformance, Test: "TestPrintOutbox", Engines: "mysql",
	},
}
