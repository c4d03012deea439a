package main

// keyTexts are about keys of which the database takes two texts for one value.
var keyTexts = []mutant{
	{
		Name: "key-shown-as-the-row-has-it", Guards: "V1: a key has one text in all entries",
		File: "dialect/page.go", Old: `t.WriteString(",\n  " + s.Value(c, Ref(s, "p", c.Stored)))`,
		New:     `t.WriteString(",\n  COALESCE(" + s.Value(c, Ref(s, "t", c.Name)) + ", " + s.Value(c, Ref(s, "p", c.Stored)) + ")")`,
		Package: conformance, Test: "TestKeyKeepsItsText", Engines: "sqlite", Short: true,
	},
	{
		Name: "key-overwritten-by-its-new-text", Guards: "V1: a key has one text in all entries",
		File: "dialect/mysql/publish.go", Old: `	for _, column := range []string{"feed_sync_id", "published_at"} {`,
		New: `	for _, c := range dialect.StoredRefs(d, f, "") {
		q.WriteString(c + " = VALUES(" + c + "), ")
	}
	for _, column := range []string{"feed_sync_id", "published_at"} {`,
		Package: conformance, Test: "TestKeyKeepsItsText", Engines: "mariadb",
	},
	{
		Name: "column-takes-keys-of-two-texts", Guards: "V1: a key that cannot be followed is refused",
		File: "column.go", Old: "if r.Capture == dialect.CaptureColumn && !c.Exact {", New: "if r.Capture == dialect.CaptureColumn && false {",
		Package: conformance, Test: "TestColumnRefusesTwoTexts", Engines: "sqlite",
	},
	{
		Name: "a-scale-that-varies-is-exact", Guards: "V1: a key that cannot be followed is refused",
		File: "dialect/postgres/schema.go", Old: `[]string{"numeric(",`, New: `[]string{"numeric",`,
		Package: conformance, Test: "TestColumnRefusesTwoTexts", Engines: "postgres15",
	},
	{
		Name: "decoded-key-of-the-row", Guards: "V1: a decoded row has its entry's key",
		File: "decode.go", Old: "	return e.Key.Decode(into)\n", New: "	return nil\n",
		Package: conformance, Test: "TestDecodedKeyKeepsItsText", Engines: "sqlite",
	},
	{
		Name: "mirrored-by-the-rows-key", Guards: "V1: a mirror finds its row by the entry's key",
		File: "sink/sqlmirror/apply.go", Old: "	if v, ok := r.key.Get(column); ok {", New: "	if v, ok := r.key.Get(column); ok && false {",
		Package: conformance, Test: "TestMirrorOfTwoTexts", Engines: "sqlite",
	},
	{
		Name: "mirrored-key-keeps-its-old-text", Guards: "V1: a mirror that takes two texts for one has the row's",
		File: "sink/sqlmirror/apply.go", Old: "	for _, r := range respelled {", New: "	for _, r := range respelled[:0] {",
		Package: conformance, Test: "TestMirrorOfTwoTexts", Engines: "sqlite",
	},
	{
		Name: "mirrored-key-respelled-anywhere", Guards: "V1: a mirror that takes two texts for two keys keeps the entry's",
		File: "sink/sqlmirror/apply.go", Old: `" WHERE "+known+" AND "+own,`, New: `" WHERE "+known+" AND ("+own+" OR 1 = 1)",`,
		Package: conformance, Test: "TestMirrorOfTwoTexts", Engines: "sqlite",
	},
	{
		Name: "search-by-the-entrys-text-alone", Guards: "V1: the console finds a key by either text",
		File: "console/values.go", Old: "|| respelled(e.Row, e.Key) &&", New: "|| false &&",
		Package: "./console", Test: "TestSearchByEitherText", Engines: "sqlite",
	},
}
