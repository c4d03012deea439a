package main

// granting gives writers and readers more than they need, or leaves rights behind.
var granting = []mutant{
	{
		Name: "writer-says-where", Guards: "M29: a writer does not say where in the order its record stands",
		File:    "mode_outbox.go",
		Old:     "append([]string{\"shard\", \"time_hint\"}, f.StoredKey()...)...)",
		New:     "f.StoredKey()[:0]...)",
		Package: conformance, Test: "TestOutboxRoles", Engines: "postgres15,mariadb", Short: true,
	},
	{
		Name: "writer-has-the-shards", Guards: "M29: a writer of one feed holds up no other",
		File:    "dialect/mysql/roles.go",
		Old:     "\t\t{Privilege: \"EXECUTE\", Kind: \"PROCEDURE\", On: f.Witness()},\n",
		New:     "\t\t{Privilege: \"EXECUTE\", Kind: \"PROCEDURE\", On: f.Witness()},\n\t\tdialect.May(\"SELECT\", f.Names.Table(\"shards\")),\n",
		Package: conformance, Test: "TestWriterRole", Engines: "mariadb",
	},
	{
		Name: "functions-of-everybody", Guards: "M29: without its role a login takes nothing",
		File:    "dialect/postgres/ulid_sql.go",
		Old:     "ulid + ulidArguments + \" FROM PUBLIC\"",
		New:     "ulid + ulidArguments + \" FROM PUBLIC; GRANT EXECUTE ON FUNCTION \" + lock + lockArguments + \" TO PUBLIC\"",
		Package: conformance, Test: "TestReaderRole", Engines: "postgres15",
	},
	{
		Name: "rights-outlive-the-feed", Guards: "M63: feed drop leaves no right behind",
		File:    "feed.go",
		Old:     "if err := db.revokeAll(ctx, q, known[0]); err != nil {",
		New:     "if err := db.revokeAll(ctx, q, &record{}); err != nil {",
		Package: conformance, Test: "TestGrants", Engines: "mariadb",
	},
	{
		Name: "rights-of-another-feed-taken", Guards: "M63: a login keeps what it needs for other feeds",
		File:    "roles.go",
		Old:     "\t\t\treturn slices.ContainsFunc(needed, func(n loginRights) bool {",
		New:     "\t\t\treturn slices.ContainsFunc(needed[:0], func(n loginRights) bool {",
		Package: conformance, Test: "TestGrants", Engines: "postgres15",
	},
	{
		Name: "refused-grant-is-noted", Guards: "M29: a grant that is refused gives nothing to anybody",
		File:    "roles.go",
		Old:     "\t\t\t\t_ = f.db.saveOptions(ctx, q, &before)\n",
		New:     "",
		Package: conformance, Test: "TestGrants", Engines: "mariadb",
	},
	{
		Name: "rights-lost-by-upgrade", Guards: "M63: rights outlive an upgrade",
		File:    "setup_upgrade.go",
		Old:     "f.db.grantAgain(ctx, q, &now)",
		New:     "f.db.grantAgain(ctx, q, &record{Mode: now.Mode})",
		Package: conformance, Test: "TestULIDUpgradeKeeps", Engines: "postgres15,mariadb", Short: true,
	},
	{
		Name: "rights-forgotten-by-a-crash", Guards: "M63: an upgrade that broke off gives rights back when it is run again",
		File:    "setup_upgrade.go",
		Old:     "now.Regrant = !now.Grants.IsZero(); now.Regrant",
		New:     "now.Regrant = false; now.Regrant",
		Package: conformance, Test: "TestULIDUpgradeKilledAtEveryStatement/blocking", Engines: "mariadb",
	},
	{
		Name: "type-change-unnoticed", Guards: "M63: functions answer the type that the column has",
		File:    "mode_ulid.go",
		Old:     "if columns != nil && columns.Position.Type != r.ULIDs.Position.Type {",
		New:     "if columns != nil && columns.Position.Type == \"\" {",
		Package: conformance, Test: "TestULIDUpgradeKeeps", Engines: "postgres15",
	},
	{
		Name: "states-outlive-the-feed", Guards: "M63: feed drop leaves no state behind",
		File:    "mode_ulid.go",
		Old:     "\"DELETE FROM \"+db.table(\"shards\")+\" WHERE feed = \"+b.Arg(r.Name), b.Args()...)",
		New:     "\"DELETE FROM \"+db.table(\"shards\")+\" WHERE feed <> \"+b.Arg(r.Name), b.Args()...)",
		Package: conformance, Test: "TestULIDDropKilledAtEveryStatement/blocking", Engines: "sqlite",
	},
}
