package main

// accessing lets those in who may not, shows them what they may not see, or does what
// nobody can tell of later.
var accessing = []mutant{
	{
		Name: "tokens-for-ever", Guards: "a token that has expired holds no more",
		File: "token.go", Old: "case expires.Valid && expires.Int64 <= now:", New: "case false:",
		Package: conformance, Test: "TestTokens", Engines: "sqlite",
	},
	{
		Name: "revoked-tokens-hold", Guards: "a token that is revoked holds no more",
		File: "token.go", Old: "	case revoked.Valid:\n", New: "	case false:\n",
		Package: conformance, Test: "TestTokens", Engines: "sqlite", Short: true,
	},
	{
		Name: "tokens-stored-as-they-are", Guards: "the database has no token's text",
		File: "token.go", Old: "	return hex.EncodeToString(sum[:])", New: "	_ = hex.EncodeToString(sum[:])\n	return text",
		Package: "./access", Test: "TestTextsAreNotCompared", Engines: "sqlite",
	},
	{
		Name: "any-text-is-looked-up", Guards: "what is no token costs no question",
		File: "token.go", Old: " && len(rest) == base64.RawURLEncoding.EncodedLen(tokenBytes)", New: "",
		Package: "./access", Test: "TestGarbageIsNotLookedUp", Engines: "sqlite",
	},
	{
		Name: "a-name-twice", Guards: "the audit log tells tokens by their names",
		File: "token.go", Old: "		if err == nil && n != 1 {", New: "		if err == nil && n > 1 {",
		Package: conformance, Test: "TestTokens", Engines: "sqlite",
	},
	{
		Name: "streams-outlive-their-token", Guards: "what waits ends with its token",
		File: "access/waiting.go", Old: "	stop := context.AfterFunc(h.life, func() { cancel(context.Cause(h.life)) })", New: "	stop := func() bool { return true }",
		Package: "./access", Test: "TestRevokedWhileItWaits", Engines: "sqlite",
	},
	{
		Name: "nobody-asks-while-they-wait", Guards: "what waits ends with its token",
		File: "access/token.go", Old: "		if !still {", New: "		if still && !still {",
		Package: "./access", Test: "TestRevokedWhileItWaits", Engines: "sqlite",
	},
	{
		Name: "unknown-tokens-without-end", Guards: "made-up tokens fill no memory",
		File: "access/token.go", Old: "		if len(t.unknown) >= maxUnknown {", New: "		if len(t.unknown) < 0 {",
		Package: "./access", Test: "TestDatabaseIsAskedRarely", Engines: "sqlite",
	},
	{
		Name: "every-request-asks", Guards: "a busy server does not ask the database who each of its readers is",
		File: "access/token.go", Old: "	h.until = asked.Add(trust)", New: "	h.until, _ = asked, trust",
		Package: "./access", Test: "TestDatabaseIsAskedRarely", Engines: "sqlite",
	},
	{
		Name: "believed-beyond-its-end", Guards: "a token is not believed for longer than it holds",
		File: "access/token.go", Old: "		trust = min(trust, token.Left)", New: "		trust = max(trust, token.Left)",
		Package: "./access", Test: "TestTrustEnds", Engines: "sqlite",
	},
	{
		Name: "feeds-of-others", Guards: "a token reads the feeds that it names",
		File: "access/catalog.go", Old: "	if !who.May(Read, name) {", New: "	if who.Name == \"\" {",
		Package: "./access", Test: "TestRightsByFeed", Engines: "sqlite",
	},
	{
		Name: "names-of-others", Guards: "a token is told of no other feed",
		File: "access/catalog.go", Old: "return !who.May(Read, name) }), nil", New: "return who.Name == \"\" }), nil",
		Package: "./access", Test: "TestRightsByFeed", Engines: "sqlite",
	},
	{
		Name: "readers-publish", Guards: "consistent=true publishes, and takes the right to",
		File: "access/catalog.go", Old: "	if req.Consistent && !s.who.May(Publish, s.name) {", New: "	if req.Consistent && !s.who.May(Read, s.name) {",
		Package: "./access", Test: "TestRightsByFeed", Engines: "sqlite",
	},
	{
		Name: "tombstones-of-others", Guards: "a view's tombstones tell of no other key",
		File: "view.go", Old: "		if !l.shows(e.Key) {", New: "		if e.Op == Upsert && !l.shows(e.Key) {",
		Package: "./access", Test: "TestView", Engines: "sqlite", Short: true,
	},
	{
		Name: "a-mask-without-its-column", Guards: "a masked column is not shown by another name",
		File: "view.go", Old: "		case named(columns, name) < 0:", New: "		case name == \"\":",
		Package: "./access", Test: "TestViewThatFitsNoMore", Engines: "sqlite",
	},
	{
		Name: "a-masked-key", Guards: "a key cannot be masked",
		File: "view.go", Old: "		case named(key, name) >= 0:", New: "		case name == \"\":",
		Package: conformance, Test: "TestTokensRefused", Engines: "sqlite",
	},
	{
		Name: "described-in-full", Guards: "a masked column is in no description",
		File: "view.go", Old: "	seen.Columns = l.columns\n", New: "",
		Package: "./access", Test: "TestView", Engines: "sqlite",
	},
	{
		Name: "a-value-as-it-was-typed", Guards: "a filter compares values, not spellings",
		File: "view.go", Old: "		return n.String(), true", New: "		_ = n\n		return text, true",
		Package: ".", Test: "TestSpelling", Engines: "sqlite",
	},
	{
		Name: "bytes-taken-for-text", Guards: "a filter takes no text for bytes",
		File: "view.go", Old: "		return unpadded(c, v), c.Kind != dialect.Binary", New: "		return unpadded(c, v), true",
		Package: ".", Test: "TestSpelling", Engines: "sqlite",
	},
	{
		Name: "woken-by-others-rows", Guards: "who waits is not told that others are written to",
		File: "access/catalog.go", Old: "		case len(shown.Entries) > 0 || page.Cursor == req.After:", New: "		case len(shown.Entries) >= 0 || page.Cursor == req.After:",
		Package: "./access", Test: "TestViewWaits", Engines: "sqlite",
	},
	{
		Name: "a-view-that-explains-itself", Guards: "who has a view is not told what it hides",
		File: "access/catalog.go", Old: "		if err != nil {\n			return rowfeed.Page{}, s.unseen()\n		}", New: "		if err != nil {\n			return rowfeed.Page{}, err\n		}",
		Package: "./access", Test: "TestViewThatFitsNoMore", Engines: "sqlite",
	},
	{
		Name: "administrators-with-a-view", Guards: "dead letters show keys that a view hides",
		File: "token.go", Old: "		if g.Right == RightAdminister && !s.View.IsZero() {", New: "		if g.Right == \"\" && !s.View.IsZero() {",
		Package: conformance, Test: "TestTokensRefused", Engines: "sqlite",
	},
	{
		Name: "reasons-for-strangers", Guards: "strangers learn no feed's name from /readyz",
		File: "server/health.go", Old: "	if !access.From(r.Context()).May(access.Read, access.EveryFeed) {", New: "	if access.From(r.Context()).May(access.Read, \"\") {",
		Package: "./server", Test: "TestTokensAreAskedFor", Engines: "sqlite",
	},
	{
		Name: "feeds-for-nobody", Guards: "who has no token gets 401",
		File: "server/server.go", Old: "	feeds = access.Required(feeds)\n", New: "",
		Package: "./server", Test: "TestTokensAreAskedFor", Engines: "sqlite",
	},
	{
		Name: "open-to-the-network", Guards: "a server that others can reach asks for tokens by default",
		File: "cmd/rowfeed/serve.go", Old: "if auth = \"tokens\"; server.IsLoopback(cfg.Listen) {", New: "if auth = \"none\"; server.IsLoopback(cfg.Listen) {",
		Package: commandLine, Test: "TestServeAuth", Engines: "sqlite",
	},
	{
		Name: "a-token-in-the-command-line", Guards: "no secret stands in the list of processes",
		File: "cmd/rowfeed/tail.go", Old: "	if !strings.HasPrefix(where, \"env:\") && !strings.HasPrefix(where, \"file:\") {", New: "	if !strings.Contains(where, \"\") {",
		Package: commandLine, Test: "TestTokenOfTail", Engines: "sqlite",
	},
	{
		Name: "done-unrecorded", Guards: "what is done for others is recorded before",
		File: "audit.go", Old: "	end, err := db.BeginAct(ctx, act)\n	if err != nil {\n		return err\n	}", New: "	end, err := db.BeginAct(ctx, act)\n	if err != nil {\n		end = func(error) error { return err }\n	}",
		Package: conformance, Test: "TestActs", Engines: "sqlite",
	},
	{
		Name: "errors-in-the-log", Guards: "the audit log has codes, never an error's text",
		File: "audit.go", Old: "		return actRefused + string(known.Code)", New: "		return actRefused + known.Cause",
		Package: conformance, Test: "TestActs", Engines: "sqlite",
	},
	{
		Name: "lines-in-the-log", Guards: "nobody writes a line of the audit log but rowfeed",
		File: "audit.go", Old: "		if !unicode.IsPrint(r) {", New: "		if !unicode.IsPrint(r) && r == 0 {",
		Package: conformance, Test: "TestActs", Engines: "sqlite",
	},
	{
		Name: "young-acts-forgotten", Guards: "the audit log keeps what it is to keep",
		File: "audit.go", Old: " AND at < \"+b.Arg(before), b.Args()...)", New: " AND at < \"+b.Arg(before+now), b.Args()...)",
		Package: conformance, Test: "TestActsPurged", Engines: "sqlite",
	},
	{
		Name: "what-was-just-done-forgotten", Guards: "nobody makes the audit log forget what was just done",
		File: "audit.go", Old: "	if olderThan < minAuditRetention {", New: "	if olderThan < 0*minAuditRetention {",
		Package: conformance, Test: "TestActsPurged", Engines: "sqlite",
	},
	{
		Name: "passwords-in-the-log", Guards: "the database's URL is in no log",
		File: "cmd/rowfeed/audit.go", Old: "			cmd.LocalNonPersistentFlags().VisitAll(", New: "			cmd.Flags().VisitAll(",
		Package: commandLine, Test: "TestAudit$", Engines: "sqlite",
	},
	{
		Name: "print-false-is-no-printing", Guards: "a flag that is given and is off makes no act harmless",
		File: "cmd/rowfeed/audit.go", Old: "f != nil && f.Value.String() == \"true\"", New: "f != nil && f.Changed",
		Package: commandLine, Test: "TestAudit$", Engines: "sqlite",
	},
	{
		Name: "believed-while-nobody-answers", Guards: "a token is not believed for long while nobody can be asked about it",
		File: "access/waiting.go", Old: "if !h.sure(patience) {", New: "if !h.sure(patience) && h == nil {",
		Package: "./access", Test: "TestNobodyCanBeAsked", Engines: "sqlite",
	},
	{
		Name: "a-command-nobody-records", Guards: "every command that administers is recorded",
		File: "cmd/rowfeed/audit.go", Old: "\"dead retry\", \"dead drop\", ", New: "\"dead retry\", ",
		Package: commandLine, Test: "TestEveryCommandIsRecordedOrHarmless", Engines: "sqlite",
	},
}
