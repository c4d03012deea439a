package main

// grouping takes away what groups rest on.
var grouping = []mutant{
	{
		Name: "once-waits-for-the-paused", Guards: "a relay that is to end does not wait for a shard that is paused",
		File: "consume_group.go", Old: "case err == nil && row.paused:", New: "case err == nil && row.paused && told < 0:",
		Package: conformance, Test: "TestRelayOnceWaits", Engines: "sqlite",
	},
	{
		Name: "once-waits-for-the-paused-relay", Guards: "a relay that is to end does not wait where it is paused",
		File: "relay/lease.go", Old: "len(paused) > 0 {", New: "len(paused) > 0 && !once {",
		Package: conformance, Test: "TestRelayOnceWaits", Engines: "sqlite",
	},
	{
		Name: "group-stands-by-aloud", Guards: "who stands by says so once",
		File: "group_share.go", Old: "		m.standsBy = true\n", New: "",
		Package: conformance, Test: "TestGroupBeyond", Engines: "sqlite",
	},
	{
		Name: "drop-forgets-epochs", Guards: "M54: epochs only grow, also of a consumer that was dropped",
		File: "consumer.go", Old: "			if table == \"cursors\" {", New: "			if table == \"\" {",
		Package: conformance, Test: "TestDropKeepsEpochs", Engines: "sqlite",
	},
	{
		Name: "group-hands-over-at-once", Guards: "M24: a job changes hands when what is in hand has come to an end",
		File: "group_share.go", Old: "			close(j.handOver)", New: "			close(j.handOver)\n			_ = j.term.letGo(m.ctx)",
		Package: conformance, Test: "TestGroupRebalanceWaits", Engines: "sqlite",
	},
	{
		Name: "group-keeps-what-it-has", Guards: "M24: who has too many hands over",
		File: "group_share.go", Old: "	m.giveAway(has - share)", New: "	m.giveAway(0)",
		Package: conformance, Test: "TestGroup$", Engines: "sqlite",
	},
	{
		Name: "group-newcomers-first", Guards: "M24: no more jobs change hands than must",
		File: "group_share.go", Old: "			return b.has - a.has", New: "			return a.has - b.has",
		Package: conformance, Test: "TestGroupMoves", Engines: "sqlite",
	},
	{
		Name: "group-takes-more-than-its-share", Guards: "M24: a quiet group moves nothing",
		File: "group_share.go", Old: "missing = share - has; missing", New: "missing = share + 1 - has; missing",
		Package: conformance, Test: "TestGroupMoves", Engines: "sqlite",
	},
	{
		Name: "group-waits-for-the-hung", Guards: "a job that does not come to an end holds up itself only",
		File: "group_share.go", Old: " || time.Since(j.asked) > m.g.ttl)", New: ")",
		Package: conformance, Test: "TestGroupRebalanceWaits", Engines: "sqlite",
	},
	{
		Name: "group-does-a-job-twice", Guards: "M54: a job is not begun again beside its own work",
		File: "group_share.go", Old: "		if m.jobs[number] != nil {", New: "		if m.jobs[number] != nil && number < 0 {",
		Package: conformance, Test: "TestGroupLostLease", Engines: "sqlite",
	},
	{
		Name: "group-renewals-unchecked", Guards: "M54: a job ends when a renewal finds its term lost",
		File: "group.go", Old: "		if n == int64(len(some)) {", New: "		if n >= 0 {",
		Package: conformance, Test: "TestGroupLostLease", Engines: "sqlite",
	},
	{
		Name: "group-outlives-its-terms", Guards: "M54: who cannot renew stops",
		File: "group.go", Old: "		if t := m.jobs[number].term; t.ctx.Err() == nil {", New: "		if t := m.jobs[number].term; t.ctx.Err() == nil && t.extend(time.Now()) == nil {",
		Package: conformance, Test: "TestGroupThroughOutage", Engines: "sqlite",
	},
	{
		Name: "group-leaves-its-seat", Guards: "who leaves makes nobody wait",
		File: "group.go", Old: "		_ = m.seat.letGo(m.ctx)", New: "		_ = m.seat",
		Package: conformance, Test: "TestGroup$", Engines: "sqlite",
	},
	{
		Name: "group-leaves-its-jobs", Guards: "who leaves makes nobody wait",
		File: "group.go", Old: "		_ = t.letGo(m.ctx)", New: "		_ = t",
		Package: conformance, Test: "TestGroup$", Engines: "sqlite",
	},
	{
		Name: "group-asks-on", Guards: "M53: no busy loop while others do not hand over",
		File: "group.go", Old: "	m.hungry++", New: "	m.hungry = 1",
		Package: conformance, Test: "TestGroupHungHandler", Engines: "sqlite",
	},
	{
		Name: "group-renews-by-a-scan", Guards: "M53: a beat finds its rows by their key",
		File: "lease_term.go", Old: "	return \"name IN (\" + strings.Join(names, \", \") + \") AND (\"", New: "	return \"(\" + strings.Join(names, \" = name OR \") + \" = name) AND (\"",
		Package: conformance, Test: "TestGroupRenewalPlan", Engines: "postgres15",
	},
	{
		Name: "group-beats-faster", Guards: "M53: what an idle group costs",
		File: "group.go", Old: "	wait := m.g.ttl/4 + ", New: "	wait := m.g.ttl/8 + ",
		Package: conformance, Test: "TestGroupIdleCost", Engines: "sqlite",
	},
	{
		Name: "renewals-wait-to-the-end", Guards: "M54: a renewal that hangs leaves time for another",
		File: "lease_term.go", Old: "left/2)", New: "max(left, 0)+time.Hour)",
		Package: conformance, Test: "TestGroupHungStatement", Engines: "sqlite",
	},
	{
		Name: "lease-renewal-waits-to-the-end", Guards: "M54: a renewal that hangs leaves time for another",
		File: "lease_term.go", Old: "\t\terr := t.Renew(bounded)", New: "\t\t_ = bounded\n\t\terr := t.Renew(ctx)",
		Package: conformance, Test: "TestLeaseHungRenewal", Engines: "sqlite",
	},
	{
		Name: "shards-without-epochs", Guards: "hazard 3: the cursor is claimed under the shard's lease",
		File: "consume_group.go", Old: "r.workOrRest(ctx, until, j.Number(), j.Term().Epoch())", New: "r.workOrRest(ctx, until, j.Number(), 0)",
		Package: conformance, Test: "TestConsumeGroupFence", Engines: "sqlite,postgres15",
	},
	{
		Name: "shards-handed-over-at-once", Guards: "a page in hand is committed before its shard changes hands",
		File: "consume_group.go", Old: "r.workOrRest(ctx, until, j.Number(), j.Term().Epoch())", New: "r.workOrRest(until, until, j.Number(), j.Term().Epoch())",
		Package: conformance, Test: "TestConsumeGroupRebalance", Engines: "sqlite,postgres15",
	},
	{
		Name: "shards-not-handed-over", Guards: "M24: a shard is handed over when nothing is in hand",
		File: "consume_group.go", Old: "			case <-j.HandOver():", New: "			case <-make(chan int):",
		Package: conformance, Test: "TestConsumeGroup$", Engines: "sqlite",
	},
	{
		Name: "shards-once-without-leases", Guards: "M56: effects elsewhere are under a lease",
		File: "consume_group.go", Old: "	if r.c.Handle != nil {", New: "	if r.c != nil {",
		Package: conformance, Test: "TestRelayShardsOnce", Engines: "sqlite",
	},
	{
		Name: "handlers-take-every-connection", Guards: "M54: handlers leave connections for the leases",
		File: "consume_group.go", Old: "max(1, most-2))", New: "most)",
		Package: conformance, Test: "TestConsumeGroupSmallPool", Engines: "postgres15",
	},
	{
		Name: "handlers-waited-for-by-all", Guards: "M24: a shard that waits for hung handlers of others is handed over",
		File: "consume_apply.go", Old: "			waiting = r.until", New: "			_ = r.until",
		Package: conformance, Test: "TestConsumeGroupSmallPool", Engines: "postgres15",
	},
	{
		Name: "epochs-begin-anew", Guards: "hazard 3: epochs grow, whatever the number of shards",
		File: "consume_division.go", Old: "				next[i].epoch = max(next[i].epoch, row.epoch)", New: "				_, _ = i, row",
		Package: conformance, Test: "TestRelayEpochs", Engines: "sqlite",
	},
	{
		Name: "epochs-of-leases-alone", Guards: "hazard 3: epochs grow, whatever the lease is called",
		File: "lease.go", Old: "max(seen.Epoch, above)+1)", New: "seen.Epoch+min(above, 0)+1)",
		Package: conformance, Test: "TestRelayEpochs", Engines: "sqlite",
	},
	{
		Name: "mirror-of-shards", Guards: "a mirror's sweep is of the whole feed",
		File: "relay/relay.go", Old: "	case r.ShardCount > 1 && r.transactional():", New: "	case r.ShardCount > 1<<20 && r.transactional():",
		Package: conformance, Test: "TestRelayShardsOnce", Engines: "sqlite",
	},
	{
		Name: "relay-rests-by-shard", Guards: "a receiver that asks to be left alone is, by all shards",
		File: "relay/relay.go", Old: "shard: shard, epoch: epoch, memory: known, quiet: rest}", New: "shard: shard, epoch: epoch, memory: known, quiet: &quiet{until: rest.until}}",
		Package: "./relay", Test: "TestRestIsShared",
	},
	{
		Name: "one-entry-ends-every-instance", Guards: "guarantee: one bad key only itself, one shard only itself",
		File: "consume_rest.go", Old: " || !concernsShardAlone(err) {", New: " || err != nil {",
		Package: conformance, Test: "TestShardRests", Engines: "sqlite",
	},
	{
		Name: "rests-in-silence", Guards: "an operator is told why a shard rests",
		File: "consume_rest.go", Old: "noted, err := r.noteFailure(ctx, why)", New: "noted, err := true, ctx.Err()",
		Package: conformance, Test: "TestShardRests", Engines: "sqlite",
	},
	{
		Name: "rests-though-it-works", Guards: "an operator is told of what is, and not of what was",
		File: "consume_cursor.go", Old: ", failure = NULL, updated_at", New: ", updated_at",
		Package: conformance, Test: "TestShardRests", Engines: "sqlite",
	},
	{
		Name: "rests-where-it-was", Guards: "an operator is told of what is, and not of what was",
		File: "consume_rest.go", Old: "\" AND version = \" + b.Arg(r.version)\n", New: "\" AND version <> \" + b.Arg(-r.version)\n",
		Package: conformance, Test: "TestRestIsLeft", Engines: "sqlite",
	},
	{
		Name: "rests-though-moved", Guards: "an operator is heard",
		File: "consume_rest.go", Old: "case row.version != r.version:", New: "case row.version < r.version:",
		Package: conformance, Test: "TestRestIsLeft", Engines: "sqlite",
	},
	{
		Name: "rests-though-letters-wait", Guards: "an operator is heard",
		File: "consume_rest.go", Old: "return releases > 0, err", New: "return false, err",
		Package: conformance, Test: "TestRestReleases", Engines: "sqlite",
	},
	{
		Name: "rests-under-former-leases", Guards: "who has another number of shards ends, and holds nobody up",
		File: "consume_rest.go", Old: "step := min(left, jitter(pausedPoll))", New: "step := left",
		Package: conformance, Test: "TestRestEndsByRecount", Engines: "sqlite",
	},
	{
		Name: "backoff-that-overflows", Guards: "failures are not repeated without a pause",
		File: "consume_fail.go", Old: "if first > most>>shift {", New: "if first<<shift > most {",
		Package: ".", Test: "TestBackoff",
	},
	{
		Name: "panic-of-deliver-shard", Guards: "a panic of the application's is an error",
		File: "consume_shards.go", Old: "		if p := recover(); p != nil {", New: "		if p := any(nil); p != nil {",
		Package: conformance, Test: "TestDeliverShardFails", Engines: "sqlite",
	},
	{
		Name: "epoch-of-before-the-wait", Guards: "hazard 3: a term's epoch is above all that were claimed until it began",
		File: "relay/lease.go", Old: "	lease.Above = func(ctx context.Context) (int64, error) { return r.db().ConsumerEpoch(ctx, r.Name, feed) }",
		New:     "	above, err := r.db().ConsumerEpoch(ctx, r.Name, feed)\n	lease.Above = func(context.Context) (int64, error) { return above, err }",
		Package: conformance, Test: "TestEpochsGrowWhileWaited", Engines: "sqlite",
	},
	{
		Name: "former-shards-listed", Guards: "lists of leases say what is, and not what was",
		File: "lease_list.go", Old: "		return s.isConsumers() && !s.held() && ", New: "		return s.isConsumers() && s.held() && !s.held() && ",
		Package: conformance, Test: "TestCurrentLeases", Engines: "sqlite",
	},
	{
		Name: "one-refusal-ends-every-instance", Guards: "guarantee: one bad key only itself, one shard only itself",
		File: "deliver.go", Old: "Err: &entryError{refusal.Err},", New: "Err: refusal.Err,",
		Package: conformance, Test: "TestRelayShardRests", Engines: "sqlite",
	},
}
