package main

// hostileKeys takes away what tells that a table has become one that no feed can be made of, and what lets
// tables be wide, and have any name.
var hostileKeys = []mutant{
	{
		Name: "unfit-table-in-order", Guards: "V7: check says that the key is unique no more",
		File:    "setup_upgrade.go",
		Old:     "if _, refused := r.asAdded(db.d, table); errors.As(refused, &unfit) {",
		New:     "if _, refused := r.asAdded(db.d, table); errors.As(refused, &unfit) && len(table.Refusals) > 0 {",
		Package: conformance, Test: "TestKeyLosesItsIndex", Engines: "sqlite,postgres15,mariadb",
	},
	{
		Name: "collation-of-the-index-forgotten", Guards: "V7: an index of another collation does not make the key unique",
		File:    "dialect/feed.go",
		Old:     "if i < 0 || c.Collate != \"\" && c.Collate != \" COLLATE \"+ix.Columns[i].Collation {",
		New:     "if i < 0 {",
		Package: conformance, Test: "TestTableTurnsUnfit", Engines: "sqlite",
	},
	{
		Name: "former-primary-key-named", Guards: "V7: upgrade finds the key's other index",
		File:    "setup_upgrade.go",
		Old:     "\t\tnow.PrimaryKey = fresh.PrimaryKey\n",
		New:     "\t\t_ = fresh\n",
		Package: conformance, Test: "TestPrimaryKeyMoves", Engines: "mariadb",
	},
	{
		Name: "publisher-says-a-number", Guards: "V7: the publisher's error says what became of the table",
		File:    "publish.go",
		Old:     "\t\tif because := f.notInOrder(ctx, doing, err); because != nil {\n\t\t\treturn because\n\t\t}\n",
		New:     "",
		Package: conformance, Test: "TestPrimaryKeyMoves", Engines: "mariadb",
	},
	{
		Name: "twins-counted-as-rows", Guards: "V7: a delete is published beside two rows of one key",
		File:    "dialect/sqlite/publish.go",
		Old:     "upsert(\"0\", \"\", \"EXISTS (SELECT 1 FROM \"+source+\" WHERE \"+is+\")\")",
		New:     "upsert(\"0\", \"CROSS JOIN \"+source+\" ON \"+is, \"1\")",
		Package: conformance, Test: "TestKeyLosesItsIndex", Engines: "sqlite",
	},
	{
		Name: "blocking-asked-for-its-key", Guards: "V7: nothing is said of what does no harm",
		File:    "setup_upgrade.go",
		Old:     "byULID := r.positionColumn() != \"\" && len(table.Refusals) == 0",
		New:     "byULID := false",
		Package: conformance, Test: "TestBlockingWithoutKey", Engines: "sqlite",
	},
	{
		Name: "grant-between-dollars", Guards: "V12: no name ends the text that it stands in",
		File:    "dialect/postgres/capture.go",
		Old:     "\t\t\td.Literal(\"BEGIN EXECUTE",
		New:     "\t\t\tfunc(body string) string { return \"$rowfeed$\" + body + \"$rowfeed$\" }(\"BEGIN EXECUTE",
		Package: "./cmd/rowfeed", Test: "TestOddNames", Engines: "postgres15",
	},
	{
		Name: "body-between-dollars", Guards: "V12: no name ends the text that it stands in",
		File:    "dialect/postgres/ulid_sql.go",
		Old:     "pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS ` + d.Literal(d.lockBody(f))},",
		New:     "pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $body$` + d.lockBody(f) + \"$body$\"},",
		Package: "./cmd/rowfeed", Test: "TestOddNames", Engines: "postgres15",
	},
	{
		Name: "delimiter-behind-a-slash", Guards: "V12: the client finds a statement's end",
		File:    "dialect/mysql/mysql.go",
		Old:     "statement + \"\\n//\\nDELIMITER ;\"",
		New:     "statement + \"//\\nDELIMITER ;\"",
		Package: "./cmd/rowfeed", Test: "TestOddNames", Engines: "mariadb",
	},
	{
		Name: "catalog-taken-at-its-word", Guards: "V12: names with backticks are in order on MySQL",
		File:    "dialect/mysql/verify.go",
		Old:     "func garbled(body string) bool { return strings.Contains(body, \"``\") }",
		New:     "func garbled(body string) bool { return false && strings.Contains(body, \"``\") }",
		Package: "./cmd/rowfeed", Test: "TestOddNames", Engines: "mysql",
	},
	{
		Name: "column-cut-at-its-colon", Guards: "V12: a column's name may have a colon",
		File:    "setup_feed.go",
		Old:     "\t\tif table.Kept(*name) == nil {\n\t\t\t*name, _, _",
		New:     "\t\tif table != nil {\n\t\t\t*name, _, _",
		Package: "./cmd/rowfeed", Test: "TestOddNames", Engines: "sqlite",
	},
	{
		Name: "page-one-column-wider", Guards: "V11: what no page can show is refused before it is made",
		File:    "setup_feed.go",
		Old:     "\tcase columns > most:",
		New:     "\tcase columns > most+1:",
		Package: conformance, Test: "TestWidestTables", Engines: "sqlite",
	},
	{
		Name: "no-room-for-positions", Guards: "V11: columns for which a table has no room are refused before they are added",
		File:    "setup_feed.go",
		Old:     "lacking > 0 && len(table.Columns)+lacking > declared",
		New:     "false",
		Package: conformance, Test: "TestWidestTables", Engines: "postgres15,mariadb",
	},
	{
		Name: "index-of-a-wide-key", Guards: "V11: a key of as many columns as an index has",
		File:    "dialect/mysql/column.go",
		Old:     "const maxIndexed = 16",
		New:     "const maxIndexed = 100",
		Package: conformance, Test: "TestWidestTables", Engines: "mariadb",
	},
}
