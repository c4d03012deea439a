package main

// unsettled lets settings of a session or a server change what is captured, compared or read.
var unsettled = []mutant{
	{
		Name: "keys-compared-by-their-texts", Guards: "V6: a changed key is seen under any setting",
		File: "dialect/postgres/capture.go", Old: `"ROW(" + oldKey[i] + ")::pg_catalog.record OPERATOR(pg_catalog.*<>) ROW(" + newKey[i] + ")"`,
		New:     `oldKey[i] + "::pg_catalog.text OPERATOR(pg_catalog.<>) " + newKey[i] + "::pg_catalog.text"`,
		Package: conformance, Test: "TestKeysAreComparedByTheirBytes", Engines: "postgres15",
	},
	{
		Name: "operators-of-the-sessions-path", Guards: "V6: citext is compared as citext under any search_path",
		File: "dialect/sqltext.go", Old: `	if c.Operators != "" {`, New: `	if c.Operators == "-" {`,
		Package: conformance, Test: "TestOperatorsElsewhere", Engines: "postgres15",
	},
	{
		Name: "operators-that-moved-unnoticed", Guards: "V6: operators in another schema are found",
		File: "dialect/postgres/capture.go", Old: "c != nil && c.Operators != key.Operators", New: "c == nil && c.Operators != key.Operators",
		Package: conformance, Test: "TestOperatorsElsewhere", Engines: "postgres15",
	},
	{
		Name: "types-by-the-sessions-path", Guards: "V6: a table is described alike under any search_path",
		File: "dialect/postgres/schema.go", Old: "AND pg_type_is_visible(e.oid)", New: "AND false",
		Package: conformance, Test: "TestSettingsChangeNothing/postgres15/trigger/use_variable", Engines: "postgres15",
	},
	{
		Name: "types-in-the-sessions-quotes", Guards: "V6: quote_all_identifiers",
		File: "dialect/postgres/schema.go", Old: "if servers && ", New: "if servers && !servers && ",
		Package: conformance, Test: "TestSettingsChangeNothing/postgres15/trigger/quote_all_identifiers", Engines: "postgres15",
	},
	{
		Name: "literals-by-the-sessions-standard", Guards: "V6: standard_conforming_strings",
		File: "dialect/postgres/postgres.go", Old: "if strings.Contains(text, `\\`) {", New: "if text == `\\` {",
		Package: conformance, Test: "TestSettingsChangeNothing/postgres15/trigger/parsing", Engines: "postgres15",
	},
	{
		Name: "blanks-of-a-mode", Guards: "V13: PAD_CHAR_TO_FULL_LENGTH on sessions of others' pools",
		File: "dialect/mysql/values.go", Old: `if baseType(c.Type) == "char" {`, New: `if baseType(c.Type) == "-" {`,
		Package: conformance, Test: "TestSettingsChangeNothing/mariadb/trigger/PAD_CHAR_TO_FULL_LENGTH", Engines: "mariadb",
	},
	{
		Name: "modes-of-the-server", Guards: "V13: the pools that rowfeed opens have a sql_mode of their own",
		File: "internal/open/mysql.go", Old: `		"sql_mode": "'STRICT`, New: `		"@rowfeed_ignored": "'STRICT`,
		Package: conformance, Test: "TestSettingsChangeNothing/mariadb/trigger/ORACLE", Engines: "mariadb",
	},
	{
		Name: "modes-that-bend-keys", Guards: "V13: pages are not read in a mode that makes other keys",
		File: "dialect/mysql/read.go", Old: "err = refuseMode(h.session.unfit)", New: "_ = refuseMode(h.session.unfit)",
		Package: conformance, Test: "TestSettingsRefused", Engines: "mariadb",
	},
	{
		Name: "modes-that-bend-published-keys", Guards: "V13: nothing is published in a mode that makes other keys",
		File: "dialect/mysql/publish.go", Old: "err = refuseMode(mode)", New: "_ = refuseMode(mode)",
		Package: conformance, Test: "TestSettingsRefused", Engines: "mariadb",
	},
	{
		Name: "not-before-is", Guards: "V13: HIGH_NOT_PRECEDENCE",
		File: "check.go", Old: `"p.deleted = 1 AND NOT (t.row_is_missing)"`, New: `"p.deleted = 1 AND NOT t.row_is_missing"`,
		Package: conformance, Test: "TestSettingsChangeNothing/mariadb/trigger/parsing", Engines: "mariadb",
	},
	{
		Name: "lists-cut-by-the-session", Guards: "V13: sql_select_limit cuts no list of columns",
		File: "dialect/mysql/describe.go", Old: `const whole = " LIMIT 18446744073709551615"`, New: `const whole = ""`,
		Package: conformance, Test: "TestSettingsChangeNothing/mariadb/trigger/limits", Engines: "mariadb",
	},
}
