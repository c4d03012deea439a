package main

// leasing takes away what leases rest on.
var leasing = []mutant{
	{
		Name: "lease-without-null-expiry", Guards: "hazard 27: a row without an end is free",
		File: "lease.go", Old: "AND (expires_at IS NULL OR expires_at <= \" + now + \")\"", New: "AND expires_at <= \" + now",
		Package: conformance, Test: "TestLeaseNullExpiry", Engines: "sqlite,postgres15,mariadb",
	},
	{
		Name: "lease-rows-unchecked", Guards: "hazard 27, M50: exactly one row was affected by an acquire",
		File: "lease.go", Old: "if err == nil && n != 1 {\n\t\t\terr = errNothing", New: "if err == nil && n < 0 {\n\t\t\terr = errNothing",
		Package: conformance, Test: "TestLeaseStaleRead", Engines: "sqlite,postgres15,mariadb", Short: true,
	},
	{
		Name: "lease-epoch-of-yesterday", Guards: "hazard 3: no epoch is given twice",
		File: "lease.go", Old: " + \" AND epoch = \" + b.Arg(seen.Epoch) +\n", New: " +\n",
		Package: conformance, Test: "TestLeaseStaleRead", Engines: "sqlite,postgres15",
	},
	{
		Name: "lease-taken-while-held", Guards: "M50: an acquire judges by the row, not by what was read",
		File: "lease.go", Old: "AND (expires_at IS NULL OR expires_at <= \" + now + \")\"", New: "AND (1 = 1)\"",
		Package: conformance, Test: "TestLeaseStaleRead", Engines: "sqlite,mariadb",
	},
	{
		Name: "lease-epoch-stays", Guards: "hazard 3: an epoch higher with every acquire",
		File: "lease.go", Old: "newOwner(), max(seen.Epoch, above)+1)", New: "newOwner(), max(seen.Epoch, above, 1))",
		Package: conformance, Test: "TestLeaseOwnersAndEpochs", Engines: "sqlite",
	},
	{
		Name: "lease-owner-repeats", Guards: "hazard 3: another owner with every acquire",
		File: "lease.go", Old: "strings.ToLower(rand.Text()))", New: "strings.ToLower(rand.Text())[:0])",
		Package: conformance, Test: "TestLeaseOwnersAndEpochs", Engines: "sqlite",
	},
	{
		Name: "lease-owner-ignored", Guards: "hazard 3: a term is its owner's (an epoch comes again after a failover)",
		File: "lease_term.go", Old: " + \" AND owner = \" + b.Arg(t.owner)", New: "",
		Package: conformance, Test: "TestLeaseOwnersAndEpochs", Engines: "sqlite,postgres15",
	},
	{
		Name: "lease-epoch-ignored", Guards: "hazard 3: a term is its epoch's",
		File: "lease_term.go", Old: " + \" AND epoch = \" + b.Arg(t.epoch)", New: "",
		Package: conformance, Test: "TestLeaseOwnersAndEpochs", Engines: "sqlite,postgres15",
	},
	{
		Name: "lease-released-by-anybody", Guards: "M52: a release frees its own term only",
		File: "lease_term.go", Old: "n, err := db.freeLease(ctx, t.own)", New: "n, err := db.freeLease(ctx, func(b *dialect.Builder) string { return \"name = \" + b.Arg(t.lease.name) })",
		Package: conformance, Test: "TestLease$", Engines: "sqlite",
	},
	{
		Name: "lease-released-by-name", Guards: "M52: an operator's release ends the term that was seen",
		File: "lease_list.go", Old: " + \" AND owner = \" + b.Arg(seen.Owner) + \" AND epoch = \" + b.Arg(seen.Epoch)", New: "",
		Package: conformance, Test: "TestReleaseLease", Engines: "sqlite",
	},
	{
		Name: "lease-by-the-application-clock", Guards: "hazard 27: only the database's clock",
		File: "lease.go", Old: "now, ttl := l.db.d.Now(), l.ttl.Microseconds()", New: "now, ttl := fmt.Sprint(time.Now().UnixMicro()), l.ttl.Microseconds()",
		Package: conformance, Test: "TestLeaseApplicationClock", Engines: "sqlite,postgres15",
	},
	{
		Name: "lease-by-the-session-zone-mysql", Guards: "hazard 27: never the session's time zone",
		File: "dialect/mysql/mysql.go", Old: "'1970-01-01', UTC_TIMESTAMP(6))", New: "'1970-01-01', NOW(6))",
		Package: conformance, Test: "TestLeaseSessionTimeZones", Engines: "mariadb",
	},
	{
		Name: "lease-by-the-session-zone-postgres", Guards: "hazard 27: never the session's time zone",
		File: "dialect/postgres/postgres.go", Old: "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint", New: "(extract(epoch FROM clock_timestamp()::timestamp) * 1000000)::bigint",
		Package: conformance, Test: "TestLeaseSessionTimeZones", Engines: "postgres15",
	},
	{
		Name: "lease-by-the-start-of-the-transaction", Guards: "hazard 27, M54: never the transaction's start",
		File: "dialect/postgres/postgres.go", Old: "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint", New: "(extract(epoch FROM now()) * 1000000)::bigint",
		Package: conformance, Test: "TestLeaseWorkOutlivesTerm", Engines: "postgres15",
	},
	{
		Name: "renewal-counts-changes", Guards: "hazard 27: MySQL counts the rows that have changed",
		File: "lease.go", Old: "b.Arg(l.ttl.Microseconds()) + \", renewals = renewals + 1\" +", New: "b.Arg(l.ttl.Microseconds()) +",
		Package: conformance, Test: "TestLeaseRenewTwice", Engines: "mariadb",
	},
	{
		Name: "renewal-after-the-end", Guards: "M54: a term that has ended is not renewed",
		File: "lease.go", Old: "\" WHERE \" + anyOf(b, terms) + \" AND expires_at > \" + now\n", New: "\" WHERE \" + anyOf(b, terms)\n",
		Package: conformance, Test: "TestLeaseRenewalInTime", Engines: "sqlite",
	},
	{
		Name: "assert-after-the-end", Guards: "M54: an expired holder's commit is rejected",
		File: "lease_term.go", Old: "+t.own(b)+\n\t\t\" AND expires_at > \"+t.lease.db.d.Now(), b.Args()...)", New: "+t.own(b), b.Args()...)",
		Package: conformance, Test: "TestLeaseWorkOutlivesTerm", Engines: "sqlite,postgres15,mariadb",
	},
	{
		Name: "assert-says-yes", Guards: "M54: a paused holder's write fails",
		File: "lease_term.go", Old: "\tif n != 1 {\n\t\treturn t.lose(", New: "\tif n < 0 {\n\t\treturn t.lose(",
		Package: conformance, Test: "TestLeaseHolderPaused", Engines: "sqlite,postgres15",
	},
	{
		Name: "assert-without-lock", Guards: "M54: a take-over waits for the COMMIT of an asserted term",
		File: "lease_term.go", Old: "n, err := tx.Exec(ctx, \"UPDATE \"+t.lease.db.table(\"leases\")+\" SET renewals = renewals + 1 WHERE \"+t.own(b)+\n\t\t\" AND expires_at > \"+t.lease.db.d.Now(), b.Args()...)",
		New:     "var n int64\n\terr := dialect.QueryRow(ctx, tx, \"SELECT count(*) FROM \"+t.lease.db.table(\"leases\")+\" WHERE \"+t.own(b)+\n\t\t\" AND expires_at > \"+t.lease.db.d.Now(), b.Args(), &n)",
		Package: conformance, Test: "TestLeaseTakeOverWaits", Engines: "postgres15,mariadb",
	},
	{
		Name: "deadline-forgotten", Guards: "M54: a holder that is not renewed stops by itself",
		File: "lease_term.go", Old: "\tt.lose(\"it was not renewed in time\")\n", New: "",
		Package: conformance, Test: "TestLeaseWorkOutlivesTerm", Engines: "sqlite",
	},
	{
		Name: "loss-not-told", Guards: "M54: a renewal that finds the term lost ends its context",
		File: "lease_term.go", Old: "\t\tt.lose(\"it has expired, or somebody else has acquired or released it\")\n\t\treturn context.Cause(t.ctx)\n", New: "\t\treturn t.lost(\"it is over\")\n",
		Package: conformance, Test: "TestLeaseRenewalInTime", Engines: "sqlite",
	},
	{
		Name: "nobody-renews", Guards: "M54: work longer than a term",
		File: "lease_term.go", Old: "\t\terr := t.Renew(bounded)\n", New: "\t\t_ = bounded\n\t\tvar err error\n",
		Package: conformance, Test: "TestLeaseHold", Engines: "sqlite",
	},
	{
		Name: "acquire-trusts-its-error", Guards: "hazard 27: after an error at COMMIT the row tells",
		File: "lease.go", Old: "if asked, n, unknown = l.prolong(ctx, t); unknown != nil || n != 1 {", New: "if n = 0; unknown != nil || n != 1 {",
		Package: conformance, Test: "TestLeaseCommitUnknown", Engines: "sqlite,postgres15,mariadb",
	},
	{
		Name: "acquire-trusts-its-memory", Guards: "hazard 27: after an error at COMMIT the row tells",
		File: "lease.go", Old: "if asked, n, unknown = l.prolong(ctx, t); unknown != nil || n != 1 {", New: "if n = 0; n != 0 || unknown != nil {",
		Package: conformance, Test: "TestLeaseLinearizable|TestLeaseCommitUnknown", Engines: "sqlite,postgres15,mariadb",
	},
	{
		Name: "release-once", Guards: "hazard 27: a release whose COMMIT failed is done again",
		File: "lease_term.go", Old: "again, unknown := db.freeLease(ctx, t.own)", New: "again, unknown := n, err",
		Package: conformance, Test: "TestLeaseCommitUnknown", Engines: "sqlite",
	},
	{
		Name: "acquire-left-behind", Guards: "an acquire that was given up leaves no lease",
		File: "lease.go", Old: "\tcase ctx.Err() != nil:\n\t\t_ = t.letGo(ctx)\n", New: "\tcase ctx.Err() != nil:\n",
		Package: conformance, Test: "TestLeaseGivenUp", Engines: "sqlite",
	},
	{
		Name: "waits-without-jitter", Guards: "M53: back-off with jitter",
		File: "lease.go", Old: "look+mathrand.N(look/4+20*time.Millisecond)", New: "look+0*mathrand.N(look)",
		Package: conformance, Test: "TestLeaseWaits",
	},
	{
		Name: "waits-without-back-off", Guards: "M53: no busy loop",
		File: "lease.go", Old: "wait = min(2*wait, longest) {", New: "wait = min(wait, longest) {",
		Package: conformance, Test: "TestLeaseWaits",
	},
	{
		Name: "standing-by-is-busy", Guards: "M53: who stands by looks rarely",
		File: "lease.go", Old: "defaultLook = 5 * time.Second", New: "defaultLook = time.Second",
		Package: conformance, Test: "TestLeaseIdleCost",
	},
	{
		Name: "publishers-without-a-lease", Guards: "M55: publishers take turns through a lease",
		File: "publisher.go", Old: "if f.db.cfg.PublisherLease < 0 {", New: "if f.db.cfg.PublisherLease != 0 {",
		Package: conformance, Test: "TestPublishersHoldALease", Engines: "sqlite",
	},
	{
		Name: "lease-kept-on-exit", Guards: "M52: a publisher releases on its way out",
		File: "lease_term.go", Old: "released := t.letGo(ctx)", New: "released := error(nil)",
		Package: conformance, Test: "TestPublishersHoldALease", Engines: "sqlite",
	},
	{
		Name: "forced-plans-compiled", Guards: "a forced plan is not compiled to machine code",
		File: "dialect/postgres/publish.go", Old: `interpreted = setting{"jit", "off"}`, New: `interpreted = setting{"jit_expressions", "off"}`,
		Package: conformance, Test: "TestForcedPlansAreNotCompiled", Engines: "postgres15",
	},
	{
		Name: "renewal-sets-one-by-one", Guards: "what a process at rest asks",
		File: "dialect/postgres/publish.go", Old: "atOnce(formats, inOrder, bounds)", New: "oneByOne(formats, inOrder, bounds)",
		Package: conformance, Test: "TestRenewalStatements", Engines: "postgres15",
	},
}
