package main

// unsettled lets settings of a session or a server change what is captured, compared or read.
var unsettled = []mutant{
	{
		Name: "keys-compared-by-their-texts", Guards: "V6: a changed key is seen under any setting",
		File: "dialect/postgres/capture.go", Old: `"ROW(" + oldKey[i] + ")::pg_catalog.record OPERATOR(pg_catalog.*<>) ROW(" + newKey[i] + ")"`,
		New:     `oldKey[i] + "::pg_catalog.text OPERATOR(pg_catalog.<>) " + newKey[i] + "::pg_catalog.text"`,
		Package: conformance, Test: "TestKeysAreComparedByTheirBytes", Engines: "postgres15",
	},
}
