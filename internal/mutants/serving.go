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
}
