package main

// recounting takes away what cursors by shard rest on, and changes of their number.
var recounting = []mutant{
	{
		Name: "shards-forgotten", Guards: "M23: who says no number of shards changes none",
		File: "consume_cursor.go", Old: "	return rows[0].shardCount, nil", New: "	return 1, nil",
		Package: conformance, Test: "TestShardCountAsItIs", Engines: "sqlite",
	},
	{
		Name: "relay-shards-forgotten", Guards: "M23: who says no number of shards changes none",
		File: "relay/relay.go", Old: "	return r.DB.ConsumerShardCount(ctx, r.Name, feed)\n", New: "	return 1, nil\n",
		Package: conformance, Test: "TestShardCountAsItIs", Engines: "sqlite",
	},
	{
		Name: "late-write-of-a-former-shard", Guards: "hazard 2: shard 1 of 2 cannot write what is shard 1 of 4 by now",
		File: "consume_cursor.go", Old: "		\" AND shard_count = \"+b.Arg(was.shardCount)+\n		\" AND version = \"+b.Arg(was.version)+\n", New: "",
		Package: conformance, Test: "TestRecountLateWrite", Engines: "sqlite",
	},
	{
		Name: "maximum-for-minimum", Guards: "hazard 2: a new cursor is the lowest of those that it takes over from",
		File: "consume_recount.go", Old: "low.position, low.mark = low.position.Min(p.position),", New: "if low.position == dialect.LastPosition {\n\t\t\t\tlow.position = p.position\n\t\t\t}\n\t\t\tlow.position, low.mark = low.position.Max(p.position),",
		Package: conformance, Test: "TestRecountMinimum", Engines: "sqlite",
	},
	{
		Name: "overlap-off-by-one", Guards: "hazard 2: every former cursor that a new shard overlaps has a say",
		File: "consume_recount.go", Old: "i <= partOf(f.to-1, n, dataShards); i++ {", New: "i == partOf(f.from, n, dataShards) || i < partOf(f.to-1, n, dataShards); i++ {",
		Package: ".", Test: "TestRecount$",
	},
	{
		Name: "shards-without-a-cursor-forgotten", Guards: "M22: data shards that had no cursor begin at the start",
		File: "consume_recount.go", Old: "		if slices.Contains(covered[i*dataShards/n:(i+1)*dataShards/n], false) {", New: "		if len(overlap[i]) == 0 {",
		Package: ".", Test: "TestRecount$",
	},
	{
		Name: "marks-ignored", Guards: "hazard 16: who has seen rows is told of their deletes",
		File: "consume_recount.go", Old: "\t\tcase p.start:\n\t\t\tlow.position = dialect.Position{}\n", New: "\t\tcase p.start:\n\t\t\treturn Beginning, nil\n",
		Package: conformance, Test: "TestRecountMarks", Engines: "sqlite",
	},
	{
		Name: "newer-generation-wins", Guards: "hazard 15: a cursor of an older generation is not lost among newer ones",
		File: "consume_recount.go", Old: "			generation = min(generation, p.generation)", New: "			generation = max(generation%math.MaxInt64, p.generation)",
		Package: ".", Test: "TestLowest",
	},
	{
		Name: "letters-left-behind", Guards: "hazard 25: a dead letter follows its key to another shard",
		File: "deadletter_home.go", Old: "		case home != l.shard:", New: "		case home != l.shard && home < 0:",
		Package: conformance, Test: "TestRecountDeadLetters", Engines: "sqlite",
	},
	{
		Name: "letters-not-counted-anew", Guards: "hazard 25: the cursor counts the letters of its shard",
		File: "consume_division.go", Old: "		next[i].aside = aside[i]\n", New: "		next[i].aside = aside[i] * 0\n",
		Package: conformance, Test: "TestRecountDeadLetters", Engines: "sqlite",
	},
	{
		Name: "letters-in-a-former-division", Guards: "hazard 24: a letter's data shard is that of its generation",
		File: "deadletter_home.go", Old: "max(l.generation, -l.generation) == d.info.Generation {", New: "l.generation != 0 {",
		Package: conformance, Test: "TestDeadLettersOfAnotherDivision", Engines: "sqlite",
	},
	{
		Name: "release-by-shard-0-alone", Guards: "hazard 25: a letter is released by the shard that has it",
		File: "consume_aside.go", Old: "	return r.letters(b) + \" AND key_digest = \" + b.Arg(l.digest) +\n", New: "	return \"consumer = \" + b.Arg(r.c.Name) + \" AND feed = \" + b.Arg(r.feed) + \" AND shard = 0 AND key_digest = \" + b.Arg(l.digest) +\n",
		Package: conformance, Test: "TestRecountDeadLetters", Engines: "sqlite",
	},
	{
		Name: "one-shard-restarts-alone", Guards: "hazard 24: in a new generation every shard begins again at once",
		File: "consume_restart.go", Old: "	if r.count > 1 && !r.ofShard && !concernsShardAlone(refusal) {", New: "	if r.count > 1 && errors.Is(refusal, Failed) {",
		Package: conformance, Test: "TestDeadLettersOfAnotherDivision", Engines: "sqlite",
	},
	{
		Name: "cursors-read-before-they-are-locked", Guards: "hazard 2: what a former shard has just committed counts",
		File: "consume_division.go", Old: "	for _, r := range all[1:] {", New: "	for _, r := range all[:0] {",
		Package: conformance, Test: "TestRecountLateWrite", Engines: "postgres15",
	},
	{
		Name: "more-shards-than-data-shards", Guards: "M25: a shard has data shards",
		File: "consume_division.go", Old: "	if r.count <= d.dataShards() {", New: "	if r.count > 0 {",
		Package: conformance, Test: "TestShardCountRefused", Engines: "sqlite",
	},
	{
		Name: "shards-read-everything", Guards: "M24: a shard reads its part of the feed",
		File: "consume_shards.go", Old: "	return Part(r.shard, r.count)", New: "	return Shards{}",
		Package: conformance, Test: "TestShardCursors", Engines: "sqlite",
	},
	{
		Name: "another-division-unnoticed", Guards: "hazard 24: dead letters move before a page of another generation is handled",
		File: "consume_run.go", Old: "r.count > 1 && !r.ofShard && g != 0 && g != r.generation {", New: "r.count > 1 && g < 0 {",
		Package: conformance, Test: "TestDividedAnewMeanwhile", Engines: "sqlite",
	},
	{
		Name: "the-shard-that-is-ahead-purges", Guards: "M73: ids are kept until every shard is past them",
		File: "processed.go", Old: "lowest.position.Above(at.position) {", New: "at.position.Above(lowest.position) {",
		Package: conformance, Test: "TestPurgeProcessed", Engines: "sqlite",
	},
	{
		Name: "a-mistyped-consumer-retried", Guards: "M72: who names an unknown consumer is told",
		File: "deadletter.go", Old: "	if err == nil && len(letters) == 0 {", New: "	if err == nil && len(letters) > 1<<30 {",
		Package: "./cmd/rowfeed", Test: "TestDeadCommands",
	},
	{
		Name: "shards-taken-back", Guards: "M22: an instance divides the cursors when it is started, and not whenever it gets the lease",
		File: "relay/relay.go", Old: "		r.KeepShardCount = true\n", New: "",
		Package: conformance, Test: "TestRelayKeepsShardCount", Engines: "sqlite",
	},
	{
		Name: "former-shards-started-again", Guards: "M22: processes of two configurations do not take turns dividing the cursors",
		File: "cmd/rowfeed/relay.go", Old: "				if errors.Is(err, rowfeed.Conflict) {", New: "				if errors.Is(err, rowfeed.Conflict) && false {",
		Package: "./cmd/rowfeed", Test: "TestServeRelayOfFormerShards",
	},
	{
		Name: "one-shard-ahead-alone", Guards: "hazard 24: one cursor above the head sets every shard back",
		File: "consume_restart.go", Old: "	if r.count > 1 && !r.ofShard && !concernsShardAlone(refusal) {", New: "	if r.count > 1 && errors.Is(refusal, GenerationChanged) {",
		Package: conformance, Test: "TestOneShardAhead", Engines: "sqlite",
	},
	{
		Name: "claim-of-another-division", Guards: "hazard 2: a claim is of a cursor of the claimant's number of shards",
		File: "deliver.go", Old: "				\" AND shard_count = \"+b.Arg(row.shardCount)+ // another division's epochs are not this lease's\n", New: "",
		Package: conformance, Test: "TestClaimOfFormerShard", Engines: "postgres15",
	},
	{
		Name: "cursor-away-and-back", Guards: "hazard 2: a cursor that was elsewhere meanwhile is not what was read",
		File: "consume_cursor.go", Old: "		\" AND version = \"+b.Arg(was.version)+\n", New: "",
		Package: conformance, Test: "TestCursorAwayAndBack", Engines: "sqlite",
	},
	{
		Name: "shards-set-back-and-left", Guards: "hazard 24: RunOnce ends when all shards are at the head",
		File: "consume_restart.go", Old: "			*r.setBack = true\n", New: "			*r.setBack = false\n",
		Package: conformance, Test: "TestShardsSetBackOnce", Engines: "sqlite",
	},
	{
		Name: "former-instance-overtaken", Guards: "guarantee 3: a change of the number of shards turns no key's versions round",
		File: "consume_former.go", Old: "if r.c.Handle != nil {", New: "if r.c.Name != \"\" {",
		Package: conformance, Test: "TestDivisionWaits", Engines: "sqlite",
	},
	{
		Name: "deposed-shard-overtaken", Guards: "guarantee 3: another number of data shards turns no key's versions round",
		File: "consume_former.go", Old: "r.c.Handle != nil || r.count == 1 || r.ofShard || r.alone {", New: "r.c.Handle != nil || r.count > 0 {",
		Package: conformance, Test: "TestDeliveredOverReshard", Engines: "sqlite",
	},
	{
		Name: "set-back-under-former-epochs", Guards: "M54: a data shard's epochs grow, whichever shard had it before",
		File: "consume_division.go", Old: "Beginning, 0, highest+1", New: "Beginning, 0, next.epoch+highest*0",
		Package: conformance, Test: "TestEpochsOverReshard", Engines: "sqlite",
	},
	{
		Name: "reset-under-former-epochs", Guards: "M54: a data shard's epochs grow, also when an operator sets the consumer back",
		File: "consumer.go", Old: "db.raiseEpochs(ctx, tx, id)", New: "nil",
		Package: conformance, Test: "TestEpochsOverReshard", Engines: "sqlite",
	},
	{
		Name: "deposed-by-oneself", Guards: "RunOnce goes on when it has set the shards back",
		File: "consume_group.go", Old: "		if !deposed {", New: "		if !deposed || deposed {",
		Package: conformance, Test: "TestEpochsOverReshard", Engines: "sqlite",
	},
	{
		Name: "sole-worker-overtaken", Guards: "guarantee 3: the former worker of the only shard is waited for as well",
		File: "consume_former.go", Old: "return r.count > 1\n", New: "return false\n",
		Package: conformance, Test: "TestDivisionWaits", Engines: "sqlite",
	},
	{
		Name: "one-shard-goes-ahead", Guards: "hazard 24: a shard at its beginning waits for those of the old generation",
		File: "consume_restart.go", Old: "		if row.generation != 0 && row.generation < g {", New: "		if row.generation < 0 {",
		Package: conformance, Test: "TestShardLeftBehind", Engines: "sqlite",
	},
	{
		Name: "refused-shards-cross", Guards: "hazard 24: shards that are refused at once are set back once",
		File: "consume_restart.go", Old: "		return row.shard == was.shard && ", New: "		return true || row.shard == was.shard && ",
		Package: conformance, Test: "TestShardsRefusedAtOnce", Engines: "sqlite",
	},
	{
		Name: "cursors-gone-while-locked", Guards: "a consumer may be dropped while its cursors are made",
		File: "consume_division.go", Old: "	if len(all) == 0 || all[0].shard != 0 {", New: "	if len(all) > 1<<20 {",
		Package: conformance, Test: "TestCursorsDroppedWhileMade", Engines: "postgres15",
	},
	{
		Name: "older-letter-kept", Guards: "hazard 25: of two letters of a key the later one counts",
		File: "deadletter_home.go", Old: "key_digest, ABS(generation), last_at", New: "key_digest, generation, last_at",
		Package: conformance, Test: "TestNewestOfForgottenLetters", Engines: "sqlite",
	},
	{
		Name: "interrupted-is-through", Guards: "RunOnce says that shards are at the head only if they are",
		File: "consume_run.go", Old: "	return ctx.Err()\n}\n\n// step", New: "	return nil\n}\n\n// step",
		Package: conformance, Test: "TestShardsInterrupted", Engines: "sqlite",
	},
}
