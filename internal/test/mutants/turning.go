package main

// turning takes away what consumers of feeds with ULIDs rest on, which have the shards in turns.
var turning = []mutant{
	{
		Name: "shard-begins-where-the-consumer-did", Guards: "guarantee 1: a shard that comes later begins at its beginning",
		File: "consume_ids_cursors.go", Old: "info.Name, whole.paused, rows, shards, begins)", New: "info.Name, whole.paused, rows, shards, map[int]Cursor{2: r.c.Start})",
		Package: conformance, Test: "TestShardIDsStart", Engines: "sqlite",
	},
	{
		Name: "shard-begins-where-the-consumer-did-at-work", Guards: "guarantee 1: a shard that comes later begins at its beginning",
		File: "consume_ids_cursors.go", Old: "r.feed, whole.paused, rows, shards, nil)", New: "r.feed, whole.paused, rows, shards, map[int]Cursor{shards[0]: r.c.Start})",
		Package: conformance, Test: "TestShardIDsStart", Engines: "sqlite",
	},
	{
		Name: "start-looked-up-late", Guards: "guarantee 1: a consumer begins in all shards when it first reaches the feed",
		File: "consume_ids_start.go", Old: "		if at[shard], err = r.beginsAt(ctx, shard); err != nil {", New: "		if at[shard] = r.c.Start; err != nil {",
		Package: conformance, Test: "TestShardIDsStartAtOnce", Engines: "sqlite",
	},
	{
		Name: "start-moves-records", Guards: "M59: a consumer begins in all shards but the one that is not to be had",
		File: "consume_ids_start.go", Old: "Request{After: Now, Limit: 1, Shards", New: "Request{After: r.c.Start, Limit: 1, Shards",
		Package: conformance, Test: "TestHeldShardStart", Engines: "postgres15",
	},
	{
		Name: "start-waits-for-filling", Guards: "M62: a consumer begins in all shards but the one that is being filled",
		File: "consume_ids_start.go", Old: "isTime && (errors.Is(err, Filling) || ", New: "isTime && (",
		Package: conformance, Test: "TestFillingStart", Engines: "sqlite",
	},
	{
		Name: "start-to-come-is-past", Guards: "guarantee 1: of a shard that is being filled a consumer misses nothing that is published before the time at which it begins",
		File: "consume_ids_start.go", Old: "failed == nil && over {", New: "failed == nil && (over || true) {",
		Package: conformance, Test: "TestFillingStart", Engines: "sqlite",
	},
	{
		Name: "once-ends-at-filling", Guards: "M62: who consumes once does so with all shards but the one that is being filled",
		File: "consume_rest.go", Old: " || errors.Is(err, Filling)\n", New: "\n",
		Package: conformance, Test: "TestFillingStart", Engines: "sqlite",
	},
	{
		Name: "start-of-listed-shards", Guards: "guarantee 1: a consumer that begins at now begins there in all shards",
		File: "consume_ids_start.go", Old: "	if source, can := r.c.Source.(ShardSource); can {", New: "	if source, can := r.c.Source.(ShardSource); can && !info.MoreShardIDs {",
		Package: conformance, Test: "TestShardIDsStartAtOnce", Engines: "sqlite",
	},
	{
		Name: "more-shards-than-listed", Guards: "guarantee 1: who cannot learn of all shards is refused",
		File: "consume_ids_start.go", Old: "	if info.MoreShardIDs {", New: "	if info.MoreShardIDs && info.ShardIDs == nil {",
		Package: conformance, Test: "TestShardIDsStartAtOnce", Engines: "sqlite",
	},
	{
		Name: "rest-unnoted-after-workers", Guards: "a shard that rests says why",
		File: "consume_rest.go", Old: "		if r.epoch != 0 {", New: "		if r.epoch >= 0 {",
		Package: conformance, Test: "TestShardIDsRestNoted", Engines: "sqlite",
	},
	{
		Name: "list-moves-records", Guards: "a command that lists writes nothing",
		File: "lag.go", Old: ", still: true})", New: ", still: false})",
		Package: conformance, Test: "TestShardIDsStatus", Engines: "sqlite",
	},
	{
		Name: "list-reads-every-shard", Guards: "what a list costs does not grow with the shards at their heads",
		File: "lag.go", Old: " || at.position != head {", New: " || at.position == head {",
		Package: conformance, Test: "TestShardIDsStatus", Engines: "sqlite",
	},
	{
		Name: "new-shards-paused-untold", Guards: "M72: that shards will come paused is told",
		File: "consumer.go", Old: "s.Worker, s.NewPaused = &job, whole.paused", New: "s.Worker = &job",
		Package: conformance, Test: "TestShardIDsStatus", Engines: "sqlite",
	},
	{
		Name: "moves-uncounted", Guards: "M72: what an operator moves is noticed at work",
		File: "consumer.go", Old: "		if _, err := db.lockWhole(ctx, tx, id); err != nil {\n			return err\n		}\n		b := dialect.NewBuilder(db.d)\n		what, err", New: "		b := dialect.NewBuilder(db.d)\n		what, err",
		Package: conformance, Test: "TestShardIDsCheck", Engines: "sqlite",
	},
	{
		Name: "own-writes-counted", Guards: "what a worker's check costs does not grow with the shards and workers",
		File: "consume_ids_cursors.go", Old: "	if changes != w.changes {", New: "	if changes >= w.changes {",
		Package: conformance, Test: "TestShardIDsCheck", Engines: "sqlite",
	},
	{
		Name: "looks-without-a-pause", Guards: "servers that do not agree are not asked without a pause",
		File: "consume_ids.go", Old: "	if w.vain > 0 { //", New: "	if w.vain < 0 { //",
		Package: conformance, Test: "TestShardIDsDisagree", Engines: "sqlite",
	},
	{
		Name: "own-moves-in-vain", Guards: "a worker whose own shards move is at them without a pause",
		File: "consume_ids.go", Old: "		case at != was[shard] && t.vain == 0:\n", New: "		case at != was[shard] && at == \"?\":\n",
		Package: ".", Test: "TestWorkerAtWork",
	},
	{
		Name: "older-look-believed", Guards: "a page that brought something is newer than the look before it",
		File: "consume_ids.go", Old: "			w.standings, w.lookedAt = &Standings{Shards: w.standings.Shards}, time.Time{} // since \"\": all of them\n", New: "",
		Package: ".", Test: "TestWorkerAtWork",
	},
	{
		Name: "look-forgotten", Guards: "a shard whose server lags is read ever less often, whatever others do",
		File: "consume_ids.go", Old: "&Standings{Shards: w.standings.Shards}, time.Time{} //", New: "&Standings{}, time.Time{} //",
		Package: ".", Test: "TestWorkerAtWork",
	},
	{
		Name: "every-worker-looks", Guards: "who waits for all shards is answered with the look that all share",
		File: "standing.go", Old: "ok && woken != nil && at == news", New: "ok && woken == nil && at == news",
		Package: conformance, Test: "TestStandingsShared", Engines: "sqlite",
	},
	{
		Name: "workers-recounted-unseen", Guards: "hazard 2: an instance of another number of workers ends",
		File: "consume_ids_cursors.go", Old: "	case count != r.count:\n", New: "	case count < 0:\n",
		Package: conformance, Test: "TestShardIDsRecount", Engines: "sqlite",
	},
	{
		Name: "new-shard-of-a-paused-consumer", Guards: "M72: a consumer that is paused stands still",
		File: "consume_ids_cursors.go", Old: "b.Arg(number(paused)), \"0\"", New: "\"0\", \"0\"",
		Package: conformance, Test: "TestShardIDsOperated", Engines: "sqlite",
	},
	{
		Name: "shards-lag-unread", Guards: "guarantee 1: what a standing shows is read, though a page does not",
		File: "consume_ids.go", Old: "	t.due = elsewhere && !moved\n", New: "	t.due = elsewhere && at == \"?\"\n",
		Package: conformance, Test: "TestShardIDsLag", Engines: "sqlite",
	},
	{
		Name: "late-ulids-unread", Guards: "guarantee 1: a row that moves no standing is read",
		File: "consume_ids.go", Old: "		oldest.due = true\n", New: "		oldest.readAt = time.Now()\n",
		Package: conformance, Test: "TestShardIDsLate", Engines: "sqlite",
	},
	{
		Name: "shards-read-in-vain", Guards: "the cost of a consumer at rest does not grow with its shards",
		File: "consume_ids.go", Old: "		case (at != t.one.standing || at == \"\") && !t.due", New: "		case at != \"?\" && !t.due",
		Package: conformance, Test: "TestShardIDsIdle", Engines: "sqlite",
	},
	{
		Name: "worker-claims-nothing", Guards: "M54: the cursors of a worker are its lease's",
		File: "consume_ids_cursors.go", Old: "		if row.epoch < w.r.epoch {\n", New: "		if row.epoch < w.r.epoch && row.epoch < 0 {\n",
		Package: conformance, Test: "TestShardIDsEpochs", Engines: "sqlite",
	},
	{
		Name: "worker-epochs-by-number", Guards: "M54: epochs of a shard only grow, whichever worker has it",
		File: "consume_group.go", Old: "	if r.byShard { // a worker", New: "	if r.byShard && shard < 0 { // a worker",
		Package: conformance, Test: "TestShardIDsEpochs", Engines: "sqlite",
	},
	{
		Name: "shard-ends-all", Guards: "guarantee 6: a shard whose entry cannot be handled rests alone",
		File: "consume_ids.go", Old: "(concernsShardAlone(err) || ", New: "(",
		Package: conformance, Test: "TestShardIDsRest", Engines: "sqlite",
	},
	{
		Name: "letter-of-another-shard", Guards: "M18: a dead letter is read again in its shard",
		File: "consume_shards.go", Old: "	if r.ofShard {\n		return One(r.shard)\n	}\n	return Shards{}\n", New: "	return Shards{}\n",
		Package: conformance, Test: "TestShardIDsLetters", Engines: "sqlite",
	},
	{
		Name: "drop-leaves-the-consumer", Guards: "M72: what a consumer has is dropped with it",
		File: "consumer.go", Old: "[]string{\"consumers\", \"dead_letters\",", New: "[]string{\"dead_letters\",",
		Package: conformance, Test: "TestShardIDsOperated", Engines: "sqlite",
	},
	{
		Name: "mirror-swept-by-shard", Guards: "M57: what one shard's pass does not bring stays in a mirror",
		File: "relay/relay.go", Old: "return r.byShard && r.transactional()", New: "return false",
		Package: conformance, Test: "TestMirrorShardIDs", Engines: "sqlite",
	},
	{
		Name: "cursor-of-another-kind-before", Guards: "M14: a feed of another kind that has the name refuses cursors as another generation",
		File: "fetch.go", Old: "	case at.generation != f.Generation(): // a feed", New: "	case at.generation < 0: // a feed",
		Package: conformance, Test: "TestShardIDsBumped", Engines: "sqlite",
	},
	{
		Name: "shards-stand-still", Guards: "a worker is told of every shard",
		File: "standing.go", Old: "	maps.Copy(all, feeds)\n", New: "	maps.Copy(all, all)\n",
		Package: conformance, Test: "TestShardIDs$", Engines: "sqlite",
	},
}
