package main

// serving takes away what large, shared and compressed answers rest on.
var serving = []mutant{
	{
		Name: "page-that-fails-ends-well", Guards: "a page that breaks off does not look whole: it could not be made",
		File:    "feedhttp/answer.go",
		Old:     "\t\t\tpanic(http.ErrAbortHandler)\n\t\t}\n\t}()",
		New:     "\t\t}\n\t}()",
		Package: "./feedhttp", Test: "TestBrokenOff", Engines: "sqlite", Short: true,
	},
	{
		Name: "cursor-in-every-part", Guards: "a page's cursor stands behind its entries",
		File:    "page.go",
		Old:     "return dst, i + 1\n\t\t}\n\t}\n\treturn p.appendEnd(append(dst, `],`...)), -1",
		New:     "return p.appendEnd(append(dst, `],`...)), i + 1\n\t\t}\n\t}\n\treturn p.appendEnd(append(dst, `],`...)), -1",
		Package: ".", Test: "TestPageInParts", Engines: "sqlite",
	},
	{
		Name: "escapes-overlooked-in-words", Guards: "text is written as it reads back",
		File:    "value.go",
		Old:     "(w-each*0x20) & ^w | ",
		New:     "",
		Package: ".", Test: "TestAppendString", Engines: "sqlite",
	},
	{
		Name: "tail-read-before-it-was-asked-for", Guards: "hazard 26: nobody is answered with what was read before he asked",
		File:    "tail.go",
		Old:     "last == nil || !last.began.After(since)",
		New:     "last == nil || !last.began.After(since.Add(-time.Hour))",
		Package: conformance, Test: "TestTailIsNoCache", Engines: "sqlite", Short: true,
	},
	{
		Name: "tail-under-way-is-joined", Guards: "hazard 26: nobody is answered with what was begun to be read before he asked",
		File:    "tail.go",
		Old:     "	last := t.last\n	if last",
		New:     "	last := t.last\n	t.readings.keep = true\n	if last",
		Package: conformance, Test: "TestTailIsReadOnce", Engines: "sqlite",
	},
	{
		Name: "tail-of-one-each", Guards: "one page for all who read near the end of a feed",
		File:    "tail.go",
		Old:     "r.ask.shards, r.ask.limit, parts = Shards{}, tailRows, parts || !ask.shards.All()",
		New:     "parts = parts || !ask.shards.All()",
		Package: conformance, Test: "TestTailIsReadOnce", Engines: "sqlite",
	},
	{
		Name: "tail-of-parts-unasked", Guards: "no part of a feed that is being divided anew",
		File:    "tail.go",
		Old:     "		q.Unserved = unplaced // whoever wants a part of it\n",
		New:     "",
		Package: conformance, Test: "TestTailOfAFeedDividedAnew", Engines: "sqlite",
	},
	{
		Name: "tail-cut-is-the-head", Guards: "guarantee 4: more is false at the head, and only there",
		File:    "tail.go",
		Old:     "!ended && len(some) < ask.limit",
		New:     "!ended && ask.limit == 0",
		Package: conformance, Test: "TestTailIsCut", Engines: "sqlite",
	},
	{
		Name: "tail-begins-above", Guards: "guarantee 1: a reading tells nothing of what is below it",
		File:    "tail.go",
		Old:     "r.ask.after.Above(ask.after), ",
		New:     "",
		Package: ".", Test: "TestTailPart", Engines: "sqlite",
	},
	{
		Name: "tail-waits-for-ever", Guards: "a connection that hangs holds up nobody else",
		File:    "tail.go",
		Old:     "context.WithTimeout(ctx, tailPatience)",
		New:     "context.WithCancel(ctx)",
		Package: conformance, Test: "TestTailThatFails", Engines: "sqlite",
	},
	{
		Name: "problem-in-the-clothes-of-a-page", Guards: "a problem instead of a compressed page is not announced as compressed",
		File:    "feedhttp/problem.go",
		Old:     "\tw.Header().Del(\"Content-Encoding\") // of the page that it stands for\n",
		New:     "",
		Package: "./feedhttp", Test: "TestBrokenOff", Engines: "sqlite",
	},
	{
		Name: "compressed-for-all", Guards: "nothing is compressed for who does not ask for it",
		File:    "feedhttp/encoding.go",
		Old:     "return wanted(\"gzip\") > 0 && wanted",
		New:     "return wanted(\"gzip\") >= 0 && wanted",
		Package: "./feedhttp", Test: "TestCompression", Engines: "sqlite",
	},
}
