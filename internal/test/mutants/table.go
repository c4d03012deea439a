package main

import "slices"

const conformance = "./internal/conformance"

// mutants, by what they take away. Every guarantee and every hazard that one edit
// can bring back has a line.
var mutants = slices.Concat(
	capturing,
	keyTexts,
	publishing,
	seqs,
	inRows,
	resharding,
	consuming,
	restoring,
	relaying,
	waiting,
	leasing,
	opening,
	grouping,
	sharding,
	recounting,
	locking,
	granting,
	outboxing,
	meeting,
	holding,
	backfilling,
	turning,
	printing,
	trying,
	benching,
	serving,
	accessing,
	consoling,
	elsewhere,
	documenting,
	packaging,
	observing,
	manners,
	limiting,
	withstanding,
	unsettled,
	hostileDefiners,
	partitioning,
	hostileKeys,
)

// capturing takes away what capture, set-up, pages and cursors rest on.
var capturing = []mutant{
	{
		Name: "columns-of-yesterday", Guards: "guarantee 1: columns added later",
		File: "fetch.go", Old: " && rows.Signature == l.table.Signature:", New: ":",
		Package: conformance, Test: "TestColumnsAddedLater", Engines: "sqlite,postgres15,mariadb",
	},
	{
		Name: "pages-in-disorder", Guards: "guarantee 1: a page ends at its highest position",
		File: "dialect/page.go", Old: "|| n > 0 && page.Rows[n-1].Position.Above(row.Position))", New: ")",
		Package: conformance, Test: "TestPagesInDisorder", Engines: "mariadb",
	},
	{
		Name: "a-page-cut-in-disorder", Guards: "guarantee 1: what was not read of a page is above it",
		File: "dialect/page.go", Old: "err == nil && !page.Truncated ||", New: "err == nil ||",
		Package: conformance, Test: "TestPagesInDisorder", Engines: "mariadb",
	},
	{
		Name: "pages-are-sorted", Guards: "M66: a page costs what it shows",
		File: "dialect/page.go", Old: "	q.Sorted = q.Sorted || f.ULIDs != nil", New: "	q.Sorted = true",
		Package: conformance, Test: "TestPagesAreNotSorted", Engines: "sqlite",
	},
	{
		Name: "a-value-of-the-driver", Guards: "M66: values as they were when their row was read",
		File: "dialect/page_scan.go", Old: "*c.to = bytes.Clone(b)", New: "*c.to = b; _ = bytes.Clone",
		Package: conformance, Test: "TestValuesTogether", Engines: "mariadb",
	},
	{
		Name: "a-row-of-another", Guards: "every entry has its own row",
		File: "dialect/page.go", Old: "		free = free[len(cells):]\n", New: "",
		Package: conformance, Test: "TestValuesTogether", Engines: "sqlite",
	},
	{
		Name: "first-change-counts", Guards: "guarantee 2: a collapsed key stands where its last change stands",
		File: "publish.go", Old: "		which[i], f.last = k, i\n", New: "		if which[i] = k; !ok {\n			f.last = i\n		}\n",
		Package: conformance, Test: "TestCollapse", Engines: "sqlite",
	},
	{
		Name: "moved-key-forgotten-sqlite", Guards: "guarantee 1: a changed key records both",
		File: "dialect/sqlite/capture.go", Old: `d.otherKey(f) + ` + "`;", New: `d.otherKey(f) + " AND 0" + ` + "`;",
		Package: conformance, Test: "TestCaptureEveryStatement", Engines: "sqlite", Short: true,
	},
	{
		Name: "moved-key-forgotten-postgres", Guards: "guarantee 1: a changed key records both",
		File: "dialect/postgres/capture.go", Old: "TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND (", New: "TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND false AND (",
		Package: conformance, Test: "TestCaptureEveryStatement", Engines: "postgres15",
	},
	{
		Name: "replaced-rows-forgotten", Guards: "hazard 6: OR REPLACE fires no DELETE trigger",
		File: "dialect/sqlite/capture.go", Old: `if err != nil || insertions == "" {`, New: "if insertions = \"\"; insertions == \"\" || updates != \"\" {",
		Package: conformance, Test: "TestCaptureReplace", Engines: "sqlite",
	},
	{
		Name: "column-list-in-trigger", Guards: "hazard: triggers with a column list miss columns added later",
		File: "dialect/sqlite/capture.go", Old: `+ " AFTER UPDATE ON " + source`, New: `+ " AFTER UPDATE OF " + strings.Join(dialect.KeyRefs(d, f, ""), ", ") + " ON " + source`,
		Package: conformance, Test: "TestColumnsAddedLater", Engines: "sqlite",
	},
	{
		Name: "trigger-with-the-writers-rights", Guards: "hazard 22: writers without rights on rowfeed's tables",
		File: "dialect/postgres/capture.go", Old: `"SECURITY DEFINER"`, New: `"SECURITY INVOKER"`,
		Package: conformance, Test: "TestWriterWithoutRights", Engines: "postgres15",
	},
	{
		Name: "trigger-with-the-sessions-names", Guards: "hazard 22: qualified names",
		File: "dialect/postgres/capture.go", Old: "TG_OP OPERATOR(pg_catalog.=) 'DELETE' OR", New: "TG_OP = 'DELETE' OR",
		Package: conformance, Test: "TestForeignOperators", Engines: "postgres15",
	},
	{
		Name: "keys-compared-by-the-sessions-operators", Guards: "hazard 22: qualified operators",
		File: "dialect/postgres/capture.go", Old: "\" OPERATOR(pg_catalog.<>) \" + newKey[i]\n", New: "\" <> \" + newKey[i]\n",
		Package: conformance, Test: "TestForeignOperators", Engines: "postgres15",
	},
	{
		Name: "a-domain-by-the-sessions-path", Guards: "hazard 22: a search_path of its own",
		File: "dialect/postgres/capture.go", Old: "!slices.Contains(plain, name)", New: "name == \"\"",
		Package: conformance, Test: "TestForeignPath", Engines: "postgres15",
	},
	{
		Name: "hidden-rows-are-deletes", Guards: "hazard 5: row security",
		File: "dialect/postgres/publish.go", Old: `, {"row_security", "off"}`, New: "",
		Package: conformance, Test: "TestRefusesHiddenRows", Engines: "postgres15",
	},
	{
		Name: "truncate-of-a-partition", Guards: "hazard 11",
		File: "dialect/postgres/capture.go", Old: "	for _, p := range t.Partitions {\n		steps =", New: "	for _, p := range t.Partitions[:0] {\n		steps =",
		Package: conformance, Test: "TestPartitions", Engines: "postgres15",
	},
	{
		Name: "one-row-twice-in-a-batch", Guards: "hazard 24: keys equal by collation",
		File: "dialect/postgres/publish.go", Old: "	if !f.ExactKey() {", New: "	if !f.ExactKey() && distinct != \"\" {",
		Package: conformance, Test: "TestKeyKeepsItsText", Engines: "postgres15",
	},
	{
		Name: "cascades-accepted", Guards: "hazard 21: cascades fire no trigger",
		File: "mode_sequence.go", Old: "if len(table.Untriggered) > 0 &&", New: "if false &&",
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
	{
		Name: "foreign-cursor-accepted", Guards: "guarantee 3: generation",
		File: "fetch.go", Old: "	case at.generation != rows.Generation:", New: "	case at.generation > rows.Generation+1<<60:",
		Package: conformance, Test: "TestGeneration", Engines: "sqlite", Short: true,
	},
	{
		Name: "future-cursor-accepted", Guards: "guarantee 3: cursor-ahead",
		File: "fetch.go", Old: "\tcase at.seen().Above(ahead):", New: "\tcase at.seen().Above(dialect.LastPosition):",
		Package: conformance, Test: "TestCursorRefused", Engines: "sqlite",
	},
	{
		Name: "expired-tombstones-forgotten", Guards: "guarantee 3: tombstones-expired",
		File: "fetch.go", Old: "\tcase rows.TombstonesBelow.Above(at.seen()):", New: "\tcase at.seen().Above(dialect.LastPosition):",
		Package: conformance, Test: "TestTombstonesExpire", Engines: "sqlite", Short: true,
	},
	{
		Name: "mark-not-judged", Guards: "hazard: 410 by the start mark",
		File: "cursor.go", Old: "func (p place) seen() dialect.Position { return p.position.Max(p.mark) }", New: "func (p place) seen() dialect.Position { return p.position }",
		Package: conformance, Test: "TestTombstone|TestStartMark", Engines: "sqlite",
	},
	{
		Name: "start-without-mark", Guards: "hazard 16: a start is not shown the dead",
		File: "fetch.go", Old: "\t\t\tq.Mark = dialect.LastPosition // the head of this page, whatever it is", New: "\t\t\tq.Mark = dialect.Position{}",
		Package: conformance, Test: "TestStartMark", Engines: "sqlite",
	},
	{
		Name: "purge-does-not-say-so", Guards: "hazard 16: tombstones_below rises with the purge",
		File: "tombstone.go", Old: `" SET tombstones_below = "+b.Arg(highest)+`, New: `" SET tombstones_below = tombstones_below + 0 * "+b.Arg(highest)+`,
		Package: conformance, Test: "TestTombstonesExpire", Engines: "sqlite",
	},
	{
		Name: "times-go-back", Guards: "at:TIME misses nothing when the clock goes back",
		File: "publish.go", Old: "part, max(seq.Now, seq.UpdatedAt)); err != nil {", New: "part, seq.Now); err != nil {",
		Package: conformance, Test: "TestClockGoesBack", Engines: "sqlite",
	},
	{
		Name: "vanished-shown-as-deleted", Guards: "guarantee 1: a vanished row is no delete",
		File: "fetch_assemble.go", Old: "		case r.Deleted:\n", New: "		case r.Deleted || !r.Present:\n",
		Package: conformance, Test: "TestVanishedRows", Engines: "sqlite",
	},
	{
		Name: "add-again-at-generation-1", Guards: "hazard: a feed dropped and added again",
		File: "feed.go", Old: "r.Generation = max(now/1_000_000, known[0].Generation+1)", New: "_ = now",
		Package: conformance, Test: "TestGeneration", Engines: "sqlite",
	},
	{
		Name: "table-of-yesterday-published", Guards: "guarantee 1: a feed dropped and added again by another process",
		File: "dialect/changes.go", Old: `" AND generation = " + b.Arg(generation) + ")"`, New: `" AND generation >= " + b.Arg(int64(1)) + ")"`,
		Package: conformance, Test: "TestReaddedFeed", Engines: "sqlite,postgres15",
	},
	{
		Name: "table-of-yesterday-shown", Guards: "guarantee 1: a feed dropped and added again by another process",
		File: "fetch.go", Old: "rows.Generation == l.generation &&", New: "rows.Generation == f.Generation() &&",
		Package: conformance, Test: "TestReaddedFeed", Engines: "sqlite",
	},
	{
		Name: "replaced-by-default-forgotten", Guards: "hazard 6: OR REPLACE writes the default for NULL",
		File: "dialect/sqlite/capture.go", Old: `column != nil && column.Default != ""`, New: `column != nil && column.Default == "-"`,
		Package: conformance, Test: "TestReplaceByDefault", Engines: "sqlite",
	},
	{
		Name: "hidden-shown-by-a-change", Guards: "M70: changes of hidden rows stay hidden, beside wishes for other keys",
		File: "dialect/changes.go", Old: "\"COALESCE(old.hidden, 0)\"", New: "\"0\"",
		Package: conformance, Test: "TestUnpublish", Engines: "sqlite",
	},
	{
		Name: "hidden-moved-by-a-change", Guards: "M70: changes of hidden rows move nothing",
		File: "dialect/changes.go", Old: "CASE WHEN p.hidden = 1 THEN p.\" + column", New: "CASE WHEN p.hidden = 2 THEN p.\" + column",
		Package: conformance, Test: "TestUnpublish", Engines: "sqlite,postgres15",
	},
	{
		Name: "truncate-in-an-old-snapshot", Guards: "guarantee 1: TRUNCATE",
		File: "dialect/postgres/capture.go", Old: "NOT IN ('read committed', 'read uncommitted')", New: "NOT IN ('read committed', 'repeatable read')",
		Package: conformance, Test: "TestTruncateInOldSnapshot", Engines: "postgres15",
	},
	{
		Name: "unfit-table-unnoticed", Guards: "hazards 11 and 21: what turns a table unfit later",
		File: "setup_feed.go", Old: "	if len(table.Refusals) > 0 {\n		return refuse", New: "	if false {\n		return refuse",
		Package: conformance, Test: "TestTableTurnsUnfit", Engines: "postgres15",
	},
	{
		Name: "users-tables-taken", Guards: "hazard 22: names that are taken",
		File: "feed.go", Old: "		if err == nil {\n			return &Error{Code: Conflict, Object: fmt.Sprintf(\"table %q\"", New: "		if err == nil && false {\n			return &Error{Code: Conflict, Object: fmt.Sprintf(\"table %q\"",
		Package: conformance, Test: "TestNamesTaken", Engines: "sqlite",
	},
	{
		Name: "moved-key-forgotten-mariadb", Guards: "guarantee 1: a changed key records both",
		File: "dialect/mysql/capture.go", Old: `IF NOT (" + same + ") THEN\n    " + insert`, New: `IF FALSE AND NOT (" + same + ") THEN\n    " + insert`,
		Package: conformance, Test: "TestCaptureEveryStatement", Engines: "mariadb",
	},
	{
		Name: "keys-without-case", Guards: "guarantee 1: 'Fred' is not 'fred' when changes are collapsed",
		File: "publish.go", Old: "		id = appendValue(id, dialect.Dynamic, v)\n", New: "		id = appendValue(id, dialect.Dynamic, v)\n		for j, x := range id[start:] {\n			if x >= 'A' && x <= 'Z' {\n				id[start+j] = x + 'a' - 'A'\n			}\n		}\n",
		Package: conformance, Test: "TestKeysThatLookAlike", Engines: "sqlite",
	},
	{
		Name: "rowid-forgotten", Guards: "hazard 6: OR REPLACE through the hidden rowid",
		File: "dialect/sqlite/capture.go", Old: `if t.RowID != "" {`, New: `if t.RowID == "-" {`,
		Package: conformance, Test: "TestReplaceByOtherWays", Engines: "sqlite",
	},
	{
		Name: "sessions-limit-cuts-the-page", Guards: "guarantee 1: sql_select_limit",
		File: "dialect/page.go", Old: `t.WriteString("\nLIMIT " + b.Arg(q.Limit+1))`, New: "",
		Package: conformance, Test: "TestSessionLimits", Engines: "mariadb",
	},
	{
		Name: "sessions-limit-cuts-the-sorted-page", Guards: "guarantee 1: sql_select_limit, of a page that the database sorts",
		File: "dialect/page.go", Old: `ORDER BY p.feed_sync_id LIMIT " + b.Arg(q.Limit))`, New: `ORDER BY p.feed_sync_id")`,
		Package: conformance, Test: "TestPagesInDisorder", Engines: "mariadb",
	},
}
