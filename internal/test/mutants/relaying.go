package main

// relaying takes away what relays and sinks rest on.
var relaying = []mutant{
	{
		Name: "cursor-before-delivery", Guards: "at least once: the cursor is stored behind a delivery",
		File: "deliver.go", Old: "	refused, err := r.handOver(ctx, batch)\n	if err != nil {\n		return err\n	}\n	if len(refused) > 0 &&",
		New:     "	if err := r.inTx(ctx, func(_ *sql.Tx, t *consumerTx) error { return t.advance(ctx, to, 0) }); err != nil {\n		return err\n	}\n	refused, err := r.handOver(ctx, batch)\n	if err != nil {\n		return err\n	}\n	if len(refused) > 0 &&",
		Package: conformance, Test: "TestRelay$", Engines: "sqlite", Short: true,
	},
	{
		Name: "every-batch-remembered", Guards: "the memory of a relay does not grow with the shards of a feed",
		File: "relay/window.go", Old: "len(m.done) > mostRemembered {", New: "len(m.done) > 1<<30 {",
		Package: "./relay", Test: "TestMemory",
	},
	{
		Name: "batch-in-part-forgotten", Guards: "what was accepted of a batch is not delivered again for another entry's sake",
		File: "relay/window.go", Old: "accepted, err == nil && len(refused) == 0)", New: "accepted, err == nil)",
		Package: "./relay", Test: "TestMemory",
	},
	{
		Name: "retry-after-ignored", Guards: "a receiver that asks to be left alone is",
		File: "relay/window.go", Old: "	if left <= 0 {", New: "	if left <= time.Hour {",
		Package: "./relay", Test: "TestRetryAfter",
	},
	{
		Name: "rejected-taken-for-accepted", Guards: "a refused entry is not passed over",
		File: "relay/window.go", Old: "				refused = append(refused, rowfeed.Refusal{Entry: at[n], Err: r.Err})", New: "				_ = at[n]",
		Package: conformance, Test: "TestRelayRefused", Engines: "sqlite",
	},
	{
		Name: "accepted-delivered-again", Guards: "of a batch in part accepted only the rest goes out again",
		File: "relay/window.go", Old: "before[id] {", New: "before[id] && len(before) < 0 {",
		Package: conformance, Test: "TestRelayPartial", Engines: "sqlite",
	},
	{
		Name: "later-version-first", Guards: "order per key: a version waits for the one before it",
		File: "relay/window.go", Old: "		if undecided != nil || len(batch) == 0 {", New: "		if len(batch) == 0 {",
		Package: "./relay", Test: "TestVersionsWait",
	},
	{
		Name: "epoch-ignored", Guards: "hazard 27: the cursor is claimed under the lease's epoch before it is read",
		File: "deliver.go", Old: "	if epoch > row.epoch {", New: "	if epoch > row.epoch+1<<40 {",
		Package: conformance, Test: "TestDeliverEpoch", Engines: "sqlite", Short: true,
	},
	{
		Name: "later-epoch-accepted", Guards: "hazard 27: who finds a later epoch ends",
		File: "deliver.go", Old: "	if epoch != 0 && row.epoch > epoch {", New: "	if epoch != 0 && row.epoch > epoch+1<<40 {",
		Package: conformance, Test: "TestDeliverEpoch", Engines: "sqlite",
	},
	{
		Name: "delivered-versions-do-not-join", Guards: "hazard 25: later versions join a key that is set aside",
		File: "deliver.go", Old: "		if len(aside) > 0 {", New: "		if len(aside) > 1<<30 {",
		Package: conformance, Test: "TestRelaySetsAside", Engines: "sqlite",
	},
	{
		Name: "dead-letter-delivered", Guards: "hazard 25: a key that is set aside is not delivered meanwhile",
		File: "deliver.go", Old: "		if found[d] {", New: "		if found[d] && len(d) < 0 {",
		Package: conformance, Test: "TestRelaySetsAside", Engines: "sqlite",
	},
	{
		Name: "dead-letters-asked-for-in-vain", Guards: "deliverable 7: no statement for dead letters while there are none",
		File: "deliver.go", Old: "	if r.row.aside == 0 {", New: "	if r.row.aside < 0 {",
		Package: conformance, Test: "TestRelayAsksForDeadLetters", Engines: "sqlite",
	},
	{
		Name: "dead-letters-asked-for-twice", Guards: "deliverable 7: one statement for dead letters per batch",
		File: "consume_run.go", Old: "r.row.aside > 0 && r.releases && ", New: "r.row.aside > 0 && ",
		Package: conformance, Test: "TestRelayAsksForDeadLetters", Engines: "sqlite",
	},
	{
		Name: "release-waits-for-a-pause", Guards: "deliverable 7: a letter is released between batches",
		File: "consume_aside.go", Old: "			r.releases = r.releases || l.state == LetterRetry\n", New: "",
		Package: conformance, Test: "TestRelayAsksForDeadLetters", Engines: "sqlite",
	},
	{
		Name: "few-of-many-dead-letters", Guards: "hazard 25: a key that is set aside is not delivered, however many are",
		File: "consume_aside.go", Old: "		if few {\n			break", New: "		if few || from == 0 {\n			break",
		Package: conformance, Test: "TestRelayManyDeadLetters", Engines: "sqlite",
	},
	{
		Name: "refused-connection-is-a-refusal", Guards: "deliverable 7: an endpoint that is away costs no entry an attempt",
		File: "sink/webhook/request.go", Old: "		return sink.Retry(0, err)\n	}\n	defer resp.Body.Close()", New: "		return sink.Reject(err)\n	}\n	defer resp.Body.Close()",
		Package: conformance, Test: "TestRelayDownByWebhook", Engines: "sqlite",
	},
	{
		Name: "message-id-missing", Guards: "JetStream keeps an entry once",
		File: "sink/nats/nats.go", Old: "jetstream.WithMsgID(e.ID()), ", New: "",
		Package: "./sink/nats", Test: "TestSink",
	},
	{
		Name: "signature-missing", Guards: "requests are signed",
		File: "sink/webhook/request.go", Old: "	if len(signatures) > 0 {", New: "	if len(signatures) > 1<<30 {",
		Package: "./sink/webhook", Test: "TestSink",
	},
	{
		Name: "private-targets-dialled", Guards: "private targets are refused when they are dialled",
		File: "sink/webhook/dial.go", Old: "		dialer.Control = onlyPublic", New: "		_ = onlyPublic",
		Package: "./sink/webhook", Test: "TestPrivateTargets", Short: true,
	},
	{
		Name: "redirections-followed", Guards: "an answer leads to no address that was not meant",
		File: "sink/webhook/dial.go", Old: "return http.ErrUseLastResponse", New: "return nil",
		Package: "./sink/webhook", Test: "TestAnswers",
	},
	{
		Name: "endpoint-away-is-refusal", Guards: "a sink that is away costs no entry an attempt",
		File: "sink/webhook/request.go", Old: "http.StatusUnauthorized, http.StatusPaymentRequired", New: "http.StatusPaymentRequired",
		Package: "./sink/webhook", Test: "TestAnswers",
	},
	{
		Name: "sweep-missing", Guards: "a mirror has no row that the feed has not, after a new pass",
		File: "sink/sqlmirror/sqlmirror.go", Old: "	if err != nil || !left {\n		return err", New: "	if err != nil || !left || left {\n		return err",
		Package: conformance, Test: "TestMirrorSweep", Engines: "sqlite",
	},
	{
		Name: "pass-begins-unmarked", Guards: "a mirror knows at the beginning of a pass what is of an older one",
		File: "deliver.go", Old: "	if at, err := row.value.parse(); err != nil || !at.start {", New: "	if at, err := row.value.parse(); err != nil || at.start || !at.start {",
		Package: conformance, Test: "TestMirrorSweep", Engines: "sqlite",
	},
	{
		Name: "brought-rows-swept", Guards: "a mirror loses no row that the pass has brought",
		File: "sink/sqlmirror/apply.go", Old: "	if sweeping {", New: "	if sweeping && len(all) < 0 {",
		Package: conformance, Test: "TestMirrorSweep", Engines: "sqlite",
	},
	{
		Name: "no-room-made", Guards: "hazard 28: unique values that move between rows",
		File: "sink/sqlmirror/apply.go", Old: "s.d.Classify(err) == dialect.ClassDuplicate {", New: "s.d.Classify(err) == dialect.ClassDuplicate && len(rows) < 0 {",
		Package: conformance, Test: "TestMirrorSwap", Engines: "sqlite",
	},
	{
		Name: "another-row-updated", Guards: "hazard 28: ON DUPLICATE KEY finds a row by any index",
		File: "dialect/mysql/mirror.go", Old: `		set[i] = c + " = VALUES(" + c + ")"`, New: "		set[i] = c + \" = VALUES(\" + c + \")\"\n		if c == \"`id`\" {\n			set[i] = c + \" = \" + c\n		}",
		Package: conformance, Test: "TestMirrorSwap", Engines: "sqlite,mariadb",
	},
}
