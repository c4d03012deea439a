package main

// withstanding takes away what a second look at the server, as somebody who means it harm, has
// brought.
var withstanding = []mutant{
	{
		Name: "shards-are-waited-for-uncounted", Guards: "who waits for how far shards are waits, too",
		File: "feedhttp/shards.go", Old: "		leave, err := h.cfg.Wait(r.Context())\n", New: "		leave, err := func() {}, error(nil)\n",
		Package: "./server", Test: "TestWaitingIsBounded", Engines: "sqlite",
	},
	{
		Name: "a-handlers-words-past-a-view", Guards: "who sees a part of the rows is not told of others by a consumer's failure",
		File: "console/consumers.go", Old: "if s.Failure != \"\" && !who.View.IsZero() {", New: "if s.Failure == \"-\" {",
		Package: "./console", Test: "TestPartsOfAFeed", Engines: "sqlite", Short: true,
	},
	{
		Name: "republished-past-a-view", Guards: "who sees a part of the rows cannot ask which others there are",
		File: "console/act.go", Old: "if err == nil && a.all && !seesAll(q.who) {", New: "if err == nil && a.all && a.do == nil {",
		Package: "./console", Test: "TestPartsOfAFeed", Engines: "sqlite",
	},
	{
		Name: "described-where-a-view-does-not-fit", Guards: "a view that does not fit its feed shows nothing of it",
		File: "console/feed.go", Old: "	if v.Info, err = source.Info(ctx); err != nil {", New: "	if info, err := source.Info(ctx); err == nil {\n		v.Info = info\n	} else {",
		Package: "./console", Test: "TestPartThatFitsNoMore", Engines: "sqlite",
	},
	{
		Name: "each-stranger-looks", Guards: "however many strangers ask whether the server is ready, who has to know is told",
		File: "server/health.go", Old: "if h.found.begun.After(came) {", New: "if h.found.begun.After(came) && h.asking == nil {",
		Package: "./server", Test: "TestReadinessIsAskedTogether", Engines: "sqlite",
	},
	{
		Name: "a-sample-of-who-has-gone", Guards: "who hangs up does not set the plots of all others to nothing",
		File: "console/sample.go", Old: "		err = ctx.Err() // who", New: "		_ = ctx.Err() // who",
		Package: "./console", Test: "TestSampleOfWhoHasGone", Engines: "sqlite",
	},
	{
		Name: "sampled-for-strangers", Guards: "strangers cost the database nothing",
		File: "console/sample.go", Old: "	if !stranger { // for", New: "	if all == nil { // for",
		Package: "./console", Test: "TestSampleOfWhoHasGone", Engines: "sqlite",
	},
	{
		Name: "a-first-question-without-end", Guards: "a database that hangs keeps nobody who says who they are",
		File: "access/token.go", Old: "	ctx, cancel := context.WithTimeout(ctx, askingTimeout)\n	defer cancel()\n	select {\n	case t.asking", New: "	select {\n	case t.asking",
		Package: "./access", Test: "TestQuestionsEnd", Engines: "sqlite",
	},
	{
		Name: "another-question-without-end", Guards: "a database that hangs keeps nobody who is known",
		File: "access/token.go", Old: "	ctx, cancel := context.WithTimeout(ctx, askingTimeout)\n	defer cancel()\n	select {\n	case h.asking", New: "	select {\n	case h.asking",
		Package: "./access", Test: "TestQuestionsEnd", Engines: "sqlite",
	},
	{
		Name: "one-feed-hides-all", Guards: "a view that does not fit one feed does not hide the others",
		File: "feedhttp/handler.go", Old: " || errors.Is(err, rowfeed.Forbidden):", New: ":",
		Package: "./access", Test: "TestViewOfAnotherFeed", Engines: "sqlite",
	},
	{
		Name: "newer-tokens-read-as-old", Guards: "what is not understood of a token may narrow it",
		File: "token.go", Old: "	d.DisallowUnknownFields()\n", New: "",
		Package: conformance, Test: "TestTokens$", Engines: "sqlite",
	},
	{
		Name: "a-token-of-everyone", Guards: "the audit log tells everyone from a token",
		File: "token.go", Old: "	case s.Name == \"everyone\":", New: "	case s.Name == \"\":",
		Package: conformance, Test: "TestTokensRefused", Engines: "sqlite",
	},
	{
		Name: "terminals-obey-rows", Guards: "a value that is shown does nothing to the terminal",
		File: "cmd/rowfeed/output.go", Old: "shown[i] = tamed(text)", New: "shown[i] = text",
		Package: "./cmd/rowfeed", Test: "TestTerminalsObeyNobody", Engines: "sqlite",
	},
	{
		Name: "headers-without-end", Guards: "a header has less time than a body",
		File: "server/server.go", Old: "		ReadHeaderTimeout: c.Limits.HeaderTimeout,\n", New: "",
		Package: "./server", Test: "TestSlowHeaders", Engines: "sqlite",
	},
	{
		Name: "a-mebibyte-a-connection", Guards: "memory: over HTTP/2 nobody sends more than any request has",
		File: "server/server.go", Old: "			MaxReceiveBufferPerConnection: 64 << 10, // no request has more of a body\n", New: "",
		Package: "./server", Test: "TestHTTP2TakesLittle", Engines: "sqlite",
	},
	{
		Name: "every-refusal-is-noted", Guards: "whoever has any token cannot fill the audit log",
		File: "console/act.go", Old: " && h.refusals.note(q.who.Name) {", New: " && (h.refusals.note(q.who.Name) || a.do != nil) {",
		Package: "./console", Test: "TestRefusalsAreNotedInPart", Engines: "sqlite",
	},
	{
		Name: "a-minute-of-hidden-rows", Guards: "one request does not read hidden rows for as long as it may wait",
		File: "access/catalog.go", Old: "case page.More && time.Since(begun) > skipping,", New: "case page.More && left <= 0 && time.Since(begun) > skipping,",
		Package: "./access", Test: "TestViewOfNothing", Engines: "sqlite",
	},
	{
		Name: "asks-for-ever-without-a-token", Guards: "issue 7: a consumer whose token holds no more ends, and keeps its address from nobody",
		File: "consume_fail.go", Old: "LeaseLost,\n\t\tUnauthorized, Forbidden} {", New: "LeaseLost} {",
		Package: "./access", Test: "TestConsumerWithoutAToken",
	},
}
