package main

// consoling takes away what the console's pages and forms are held by: rights, forms of other
// sites, what others have written, and the cookie with the token.
var consoling = []mutant{
	{
		Name: "anybodys-action", Guards: "an action needs its right, on its feed",
		File: "console/act.go", Old: "if err == nil && !q.who.May(a.right, a.feed(f)) {", New: "if err == nil && a.feed == nil {",
		Package: "./console", Test: "TestActionsNeedRights", Engines: "sqlite", Short: true,
	},
	{
		Name: "buttons-for-everybody", Guards: "without the right there is no button",
		File: "console/consumers.go", Old: "MayAdminister: who.May(access.Administer, s.Feed)", New: "MayAdminister: true",
		Package: "./console", Test: "TestActionsNeedRights", Engines: "sqlite",
	},
	{
		Name: "forms-of-other-sites", Guards: "no other site's form does anything",
		File: "console/page.go", Old: "case !reads && h.forms.Check(r) != nil:", New: "case !reads && h.forms == nil:",
		Package: "./console", Test: "TestForgedForms", Engines: "sqlite", Short: true,
	},
	{
		Name: "done-without-asking", Guards: "what cannot be undone asks first",
		File: "console/act.go", Old: "if a.confirm != nil && q.PostForm.Get(\"confirmed\") != \"yes\" {", New: "if a.do == nil {",
		Package: "./console", Test: "TestActions", Engines: "sqlite",
	},
	{
		Name: "actions-unrecorded", Guards: "every action is in the audit log",
		File: "console/act.go", Old: "	err = h.data.Audited(q.Context(), a.record(q, f), func(ctx context.Context) (err error) {\n		done, err = a.do(ctx, h.data, f)\n		return err\n	})",
		New:     "	_ = context.Canceled\n	done, err = a.do(q.Context(), h.data, f)",
		Package: "./console", Test: "TestActions", Engines: "sqlite",
	},
	{
		Name: "other-peoples-feeds", Guards: "a feed is shown to who has a right on it",
		File: "console/rights.go", Old: "return who.May(access.Read, feed) || who.May(access.Administer, feed)", New: "return who.Name != \"\" || feed == \"\"",
		Package: "./console", Test: "TestWhoSeesWhat", Engines: "sqlite", Short: true,
	},
	{
		Name: "dead-letters-for-readers", Guards: "keys and errors of dead letters are for who administers the feed",
		File: "console/letters.go", Old: "if !q.who.May(access.Administer, l.Feed) {", New: "if !q.who.May(access.Read, l.Feed) && !q.who.May(access.Administer, l.Feed) {",
		Package: "./console", Test: "TestWhoSeesWhat", Engines: "sqlite",
	},
	{
		Name: "leases-of-any-feed", Guards: "a lease is its feed's, and an application's own is of all feeds",
		File: "console/rights.go", Old: "	if found == nil {\n		return access.EveryFeed\n	}", New: "	if found == nil {\n		return \"kv\"\n	}",
		Package: "./console", Test: "TestLeasesOfFeeds", Engines: "sqlite",
	},
	{
		Name: "written-as-it-stands", Guards: "what others have written is no markup",
		File: "console/words.go", Old: "\"process\": process, \"shorten\": shorten,", New: "\"process\": process, \"shorten\": func(s string) template.HTML { return template.HTML(shorten(s)) },",
		Package: "./console", Test: "TestFeed|TestHostileContent", Engines: "sqlite",
	},
	{
		Name: "a-token-for-scripts", Guards: "no script reads the token",
		File: "console/login.go", Old: "Value: token, Path: \"/\", HttpOnly: true,", New: "Value: token, Path: \"/\",",
		Package: "./console", Test: "TestLogin", Engines: "sqlite",
	},
	{
		Name: "a-token-for-other-sites", Guards: "no other site sends the token",
		File: "console/login.go", Old: "Value: token, Path: \"/\", HttpOnly: true, SameSite: http.SameSiteStrictMode,", New: "Value: token, Path: \"/\", HttpOnly: true, SameSite: http.SameSiteLaxMode,",
		Package: "./console", Test: "TestLogin", Engines: "sqlite",
	},
	{
		Name: "a-token-in-the-clear", Guards: "a token that came by TLS never goes without",
		File: "console/login.go", Old: "Value: token, Path: \"/\", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(q.Request)", New: "Value: token, Path: \"/\", HttpOnly: true, SameSite: http.SameSiteStrictMode",
		Package: "./console", Test: "TestLogin", Engines: "sqlite",
	},
	{
		Name: "a-login-leads-anywhere", Guards: "a login leads to a page of the console",
		File: "console/login.go", Old: "		return \"\"\n	}\n	return next", New: "		return next\n	}\n	return next",
		Package: "./console", Test: "TestLoginLeadsHome", Engines: "sqlite",
	},
	{
		Name: "pages-without-a-token", Guards: "where tokens are asked for, nothing is shown without",
		File: "console/page.go", Old: "case !at.open && h.cfg.Login != nil && q.who.Name == \"\":", New: "case !at.open && h.cfg.Login != nil && q.who.Name == \"-\":",
		Package: "./console", Test: "TestLogin", Engines: "sqlite",
	},
	{
		Name: "an-integer-rounded", Guards: "the live tail keeps every digit, and shows what is no markup",
		File: "console/assets/tail.js", Old: "before }) => line({ entry: JSON.parse(data, exact), before })", New: "before }) => line({ entry: JSON.parse(data), before })",
		Package: "./console", Test: "TestBrowser/tail", Engines: "sqlite",
	},
}
