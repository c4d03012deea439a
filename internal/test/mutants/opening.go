package main

// opening takes away what databases are opened with, and what is said of what is gone.
var opening = []mutant{
	{
		Name: "file-moved-unnoticed", Guards: "nothing is published into a SQLite file that was moved away",
		File: "internal/open/samefile.go", Old: "if c.file.look() != nil {", New: "if c.file == nil {",
		Package: "./internal/open", Test: "TestSQLitePublishesIntoNoLostFile|TestSQLiteFileMoved",
	},
	{
		Name: "file-replaced-unnoticed", Guards: "a SQLite file put in another's place is not taken for it",
		File: "internal/open/samefile.go", Old: "!os.SameFile(f.first, now)", New: "f.path == \"\"",
		Package: "./internal/open", Test: "TestSQLiteFileReplaced",
	},
	{
		Name: "handshake-unbounded", Guards: "a port that is open and silent is given up",
		File: "internal/open/answer.go", Old: "if a.within > 0 {", New: "if a.within < 0 {",
		Package: "./internal/open", Test: "TestSilentPort",
	},
	{
		Name: "source-gone-unnamed", Guards: "a renamed table or key column is named, with the way out",
		File: "publish.go", Old: "\tif errors.Is(failed, Refused) {\n", New: "\tif errors.Is(failed, Refused) && ctx.Err() != nil {\n",
		Package: conformance, Test: "TestSourceGone", Engines: "sqlite",
	},
	{
		Name: "unknown-mode-stops-all", Guards: "M63: a feed that this version cannot read stops no other",
		File: "catalog.go", Old: "\t\t\tr.unread = unknownMode(r.Name, r.Mode)\n", New: "\t\t\treturn nil, unknownMode(r.Name, r.Mode)\n",
		Package: conformance, Test: "TestUnreadableFeed", Engines: "sqlite",
	},
	{
		Name: "damaged-record-is-used", Guards: "M63: a feed whose record is damaged is left as it is",
		File: "catalog.go", Old: "\t\tcase err != nil:\n\t\t\tr.unread", New: "\t\tcase err != nil && r.Name == \"\":\n\t\t\tr.unread",
		Package: conformance, Test: "TestUnreadableFeed", Engines: "sqlite",
	},
	{
		Name: "declaration-unchecked", Guards: "a printed script holds of a key's declaration a type and nothing else",
		File: "setup_print.go", Old: "if err := checkDeclaration(param, name, declaration, c.Kind); err != nil {", New: "if err := checkDeclaration(param, name, declaration, c.Kind); name == \"\" {",
		Package: ".", Test: "TestDeclaration",
	},
	{
		Name: "key-of-another-type", Guards: "a key that no row can have is refused, and not bent into another",
		File: "republish.go", Old: " || !fits(c.Kind, v) {", New: " {",
		Package: conformance, Test: "TestUnknownKeys", Engines: "postgres15",
	},
}
