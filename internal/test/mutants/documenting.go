package main

// documenting has documents say what is not so.
var documenting = []mutant{
	{
		Name: "a-flag-that-documents-name", Guards: "documents: no command line that is refused",
		File: "cmd/rowfeed/shards.go", Old: `IntVar(&o.count, "shard-count"`, New: `IntVar(&o.count, "parts"`,
		Package: "./cmd/rowfeed", Test: "TestDocumentedCommands", Engines: "sqlite",
	},
	{
		Name: "lines-in-any-order", Guards: "documents: what is shown was printed, in this order",
		File: "internal/docs/docs.go", Old: "lines = lines[at+1:]", New: "_ = at",
		Package: "./internal/docs", Test: "TestStand", Engines: "sqlite",
	},
	{
		Name: "commands-of-the-first-line", Guards: "documents: every command line is looked up",
		File: "internal/docs/docs.go", Old: `strings.ContainsRune("\n|&;()", r)`, New: `strings.ContainsRune("\n", r)`,
		Package: "./internal/docs", Test: "TestCommands", Engines: "sqlite",
	},
}
