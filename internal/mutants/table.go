package main

const conformance = "./internal/conformance"

// mutants, by what they take away. Every guarantee and every hazard that one edit
// can bring back has a line.
var mutants = []mutant{
	{
		Name: "columns-of-yesterday", Guards: "guarantee 1: columns added later",
		File: "fetch.go", Old: " && rows.Signature == l.table.Signature:", New: ":",
		Package: conformance, Test: "TestColumnsAddedLater", Engines: "sqlite,postgres15,mariadb",
	},
	{
		Name: "first-change-counts", Guards: "guarantee 2: a collapsed key stands where its last change stands",
		File: "publish.go", Old: "		k.last = i\n", New: "		if _, seen := keys[names[i]]; !seen {\n			k.last = i\n		}\n",
		Package: conformance, Test: "TestCollapse", Engines: "sqlite", Short: true,
	},
	{
		Name: "moved-key-forgotten-sqlite", Guards: "guarantee 1: a changed key records both",
		File: "dialect/sqlite/capture.go", Old: `strings.Join(moved, " OR ") + ` + "`;", New: `strings.Join(moved, " OR ") + " AND 0" + ` + "`;",
		Package: conformance, Test: "TestCaptureEveryStatement", Engines: "sqlite", Short: true,
	},
	{
		Name: "moved-key-forgotten-postgres", Guards: "guarantee 1: a changed key records both",
		File: "dialect/postgres/capture.go", Old: "TG_OP = 'UPDATE' AND (", New: "TG_OP = 'UPDATE' AND false AND (",
		Package: conformance, Test: "TestCaptureEveryStatement", Engines: "postgres15",
	},
	{
		Name: "replaced-rows-forgotten", Guards: "hazard 6: OR REPLACE fires no DELETE trigger",
		File: "dialect/sqlite/capture.go", Old: `if err != nil || insertions == "" {`, New: "if insertions = \"\"; insertions == \"\" || updates != \"\" {",
		Package: conformance, Test: "TestCaptureReplace", Engines: "sqlite", Short: true,
	},
	{
		Name: "column-list-in-trigger", Guards: "hazard: triggers with a column list miss columns added later",
		File: "dialect/sqlite/capture.go", Old: `+ " AFTER UPDATE ON " + source`, New: `+ " AFTER UPDATE OF " + strings.Join(dialect.KeyRefs(d, f, ""), ", ") + " ON " + source`,
		Package: conformance, Test: "TestColumnsAddedLater", Engines: "sqlite",
	},
	{
		Name: "trigger-with-the-writers-rights", Guards: "hazard 22: writers without rights on rowfeed's tables",
		File: "dialect/postgres/capture.go", Old: `"SECURITY DEFINER SET`, New: `"SET`,
		Package: conformance, Test: "TestWriterWithoutRights", Engines: "postgres15",
	},
	{
		Name: "trigger-with-the-sessions-names", Guards: "hazard 22: fixed search_path, qualified names",
		File: "dialect/postgres/capture.go", Old: " SET search_path = pg_catalog, pg_temp", New: "",
		Package: conformance, Test: "TestForeignOperators", Engines: "postgres15",
	},
	{
		Name: "hidden-rows-are-deletes", Guards: "hazard 5: row security",
		File: "dialect/postgres/publish.go", Old: "; SET LOCAL row_security = off`", New: "`",
		Package: conformance, Test: "TestRefusesHiddenRows", Engines: "postgres15", Short: true,
	},
	{
		Name: "truncate-of-a-partition", Guards: "hazard 11",
		File: "dialect/postgres/capture.go", Old: "	for _, table := range append([]dialect.TableName{f.Source}, t.Partitions...) {\n		steps", New: "	for _, table := range append([]dialect.TableName{f.Source}, t.Partitions[:0]...) {\n		steps",
		Package: conformance, Test: "TestPartitions", Engines: "postgres15",
	},
	{
		Name: "one-row-twice-in-a-batch", Guards: "hazard 24: keys equal by collation",
		File: "dialect/postgres/publish.go", Old: "		if !c.Exact {", New: "		if !c.Exact && distinct != \"\" {",
		Package: conformance, Test: "TestCollatedKey", Engines: "postgres15",
	},
	{
		Name: "cascades-accepted", Guards: "hazard 21: cascades fire no trigger",
		File: "setup_feed.go", Old: "if len(table.Untriggered) > 0 &&", New: "if false &&",
		Package: conformance, Test: "TestForeignKeyCascades", Engines: "mariadb",
	},
	{
		Name: "forgetful-server-accepted", Guards: "guarantee 2: positions are durable",
		File: "dialect/sqlite/publish.go", Old: "	if level < 2 {", New: "	if level < 0 {",
		Package: conformance, Test: "TestUnsafeDurability", Engines: "sqlite",
	},
	{
		Name: "other-settings-accepted", Guards: "feed add with other arguments",
		File: "feed.go", Old: "if diffs := known[0].differences(r); len(diffs) > 0 {", New: "if diffs := known[0].differences(r); len(diffs) > 99 {",
		Package: conformance, Test: "TestFeedAddTwice", Engines: "sqlite",
	},
	{
		Name: "drop-leaves-triggers", Guards: "feed drop leaves nothing",
		File: "dialect/postgres/capture.go", Old: `"DROP FUNCTION IF EXISTS " + d.function(f, "truncate") + "() CASCADE"`, New: `"SELECT 1"`,
		Package: conformance, Test: "TestLifeLeavesNoTrace", Engines: "postgres15",
	},
	{
		Name: "nullable-keys-accepted", Guards: "hazard 22: NULL keys",
		File: "setup_feed.go", Old: "		if c.Nullable {", New: "		if false {",
		Package: conformance, Test: "TestRefused", Engines: "sqlite",
	},
}
