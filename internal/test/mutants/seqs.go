package main

// seqs takes away what lets a publisher leave out changes that cannot be there.
var seqs = []mutant{
	{
		Name: "seqs-given-up-too-early", Guards: "guarantee 1: whoever may have drawn a seq is waited for",
		File: "seqs.go", Old: "\tif len(w.writers) == 0 {\n", New: "\tif len(w.writers) >= 0 {\n",
		Package: conformance, Test: "TestLateSeqs", Engines: "postgres15,mariadb",
	},
	{
		Name: "published-before-the-commit", Guards: "guarantee 5: what was taken back is looked for again",
		File: "seqs.go", Old: "\tcase err != nil:\n\t\tf.unseen.reset()\n\t\treturn\n", New: "",
		Package: conformance, Test: "TestSeqsTakenBack", Engines: "postgres15,mariadb",
	},
	{
		Name: "seqs-set-back", Guards: "guarantee 1: the whole table is looked at now and then",
		File: "seqs.go", Old: " && !l.began.Before(u.whole) {", New: " && u.whole.Before(time.Unix(0, 0)) && l.began.IsZero() {",
		Package: conformance, Test: "TestSeqsSetBack", Engines: "postgres15,mariadb",
	},
	{
		Name: "seqs-drawn-ahead", Guards: "guarantee 2: sessions that draw ahead have no lock",
		File: "dialect/postgres/seqs.go", Old: "seqcache = 1 AND ", New: "",
		Package: conformance, Test: "TestCachedSeqs", Engines: "postgres15",
	},
	{
		Name: "an-orphan-is-nobody", Guards: "guarantee 1: prepared transactions outlive a restart, under other names",
		File: "seqs.go", Old: "if n.Orphan && ", New: "if false && n.Orphan && ",
		Package: ".", Test: "TestWhoIsWaitedFor",
	},
	{
		Name: "writers-without-a-name-end", Guards: "guarantee 1: a writer that had no name when it was seen",
		File: "seqs.go", Old: "\t\t\topen = append(open, now[i])\n", New: "\t\t\t_ = now[i]\n",
		Package: ".", Test: "TestWhoIsWaitedFor",
	},
	{
		Name: "gaps-forgotten", Guards: "guarantee 1: seqs that were not seen yet",
		File: "seqs.go", Old: "\t\tgaps, above = append(gaps, dialect.Run{First: above + 1, N: last - above}), last\n", New: "\t\tabove = last\n",
		Package: conformance, Test: "TestExactlyTheChangesRead", Engines: "postgres15,mariadb",
	},
	{
		Name: "a-lock-that-goes-too-early", Guards: "guarantee 2: a cursor that fails takes its locks with it, and leaves its rows",
		File: "dialect/postgres/seqs.go", Old: "  OR w.granted AND w.locktype = 'transactionid' ", New: "  OR false AND w.granted AND w.locktype = 'transactionid' ",
		Package: conformance, Test: "TestLateSeqOfAFailedCursor", Engines: "postgres15",
	},
	{
		Name: "taken-for-the-feed-before", Guards: "no false alarm: seqs of a feed made anew are lower than those of the one before",
		File: "seqs.go", Old: "\tcase generation != l.generation:\n", New: "\tcase generation != l.generation && seqs == nil:\n",
		Package: ".", Test: "TestTakenFromAFeedMadeAnew",
	},
	{
		Name: "asked-about-the-feed-before", Guards: "guarantee 2: how far the seqs of a feed of that name once went says nothing of the one made anew",
		File: "seqs.go", Old: "if u.generation != generation || len(rough(u.left).Gaps) == 0", New: "if len(rough(u.left).Gaps) == 0",
		Package: ".", Test: "TestWhoIsAskedAboutAFeedMadeAnew",
	},
	{
		Name: "an-open-transaction-without-a-number", Guards: "guarantee 2: a seq is drawn before the first row, and its number",
		File: "dialect/mysql/seqs.go", Old: "return t.Session == w.Session && t.Transaction != \"\" }", New: "return t.Session == w.Session }",
		Package: conformance, Test: "TestSeqsDrawnBeforeTheFirstRow", Engines: "mariadb",
	},
	{
		Name: "answers-that-were-overtaken", Guards: "guarantee 2: who began behind a list was made is not on it, and has not ended",
		File: "seqs.go", Old: " || u.asks != q.number", New: "",
		Package: ".", Test: "TestAnswersThatWereOvertaken",
	},
	{
		Name: "late-records-passed-over", Guards: "guarantee 1: whoever may have drawn a number of an outbox is waited for, also by pages at the head",
		File: "seqs.go", Old: "\tif len(w.writers) == 0 {\n", New: "\tif len(w.writers) >= 0 {\n",
		Package: conformance, Test: "TestLateRecordsAtTheHead", Engines: "postgres15,mariadb",
	},
	{
		Name: "prepared-is-over-mysql", Guards: "guarantee 1: who is prepared has handed on his lock, under another name",
		File: "dialect/mysql/seqs_locks.go", Old: "COALESCE(m.SOURCE NOT LIKE '%mdl.cc:%', 0) = 0", New: "m.OBJECT_NAME IS NULL",
		Package: conformance, Test: "TestLatePrepared", Engines: "mysql",
	},
	{
		Name: "holders-for-reading-alone-mysql", Guards: "guarantee 2: who has a table's lock for writing may have drawn",
		File: "dialect/mysql/seqs_locks.go", Old: "!reads && !slices", New: "reads && !slices",
		Package: conformance, Test: "TestLateSeqs", Engines: "mysql",
	},
	{
		Name: "a-batch-that-was-cut-is-all", Guards: "guarantee 1: what a pass has left in a shard is still to come",
		File: "outbox_move.go", Old: " && (moved.taken < min(limit, mostMoved) || moved.last >= l.settled)", New: "",
		Package: conformance, Test: "TestManyLateRecords", Engines: "postgres15,mariadb",
	},
	{
		Name: "a-shard-that-is-held-has-nothing", Guards: "guarantee 1: what was not to be had is still to come",
		File: "outbox_move.go", Old: "all = all && err == nil && (moved.taken < min(limit, mostMoved) ||", New: "all = (all || len(left) > 0) && (moved.taken < min(limit, mostMoved) ||",
		Package: conformance, Test: "TestManyLateRecords", Engines: "mariadb",
	},
	{
		Name: "one-shard-is-all", Guards: "guarantee 1: a look into one shard tells nothing of the others",
		File: "seqs.go", Old: "!l.part && settled > 0", New: "settled > 0",
		Package: ".", Test: "TestGlances",
	},
	{
		Name: "nobody-looks-everywhere", Guards: "guarantee 1: numbers that were set back are found in time",
		File: "seqs.go", Old: "l.began.Before(u.whole.Add(wholeEvery))", New: "true",
		Package: ".", Test: "TestGlances",
	},
	{
		Name: "gaps-of-records-without-their-ends", Guards: "guarantee 1: who is late with a single number",
		File: "dialect/outbox_move.go", Old: "(shard, order_sequence) >= (", New: "(shard, order_sequence) > (",
		Package: conformance, Test: "TestLateRecords", Engines: "postgres15",
	},
	{
		Name: "records-set-back-and-consistent", Guards: "consistent: whatever is visible is moved, also where no look goes",
		File: "outbox_move.go", Old: "\t\tl.among = dialect.Seqs{} //", New: "\t\t//",
		Package: conformance, Test: "TestRecordsSetBack", Engines: "postgres15",
	},
	{
		Name: "few-shards-are-all", Guards: "M59: no shard waits for the records of others",
		File: "dialect/outbox_move.go", Old: "if records < fewRecords {", New: "if records <= fewRecords {",
		Package: conformance, Test: "TestRecordsMovedByOthers", Engines: "postgres15",
	},
	{
		Name: "stretches-do-not-add-up", Guards: "what is published little by little behind a gap is not walked over again",
		File: "seqs.go", Old: "if len(u.left.Gaps) > mostGaps {", New: "if len(u.left.Gaps) > 0 {",
		Package: ".", Test: "TestFewAtATimeBehindAGap",
	},
	{
		Name: "settled-by-a-cheap-question", Guards: "guarantee 2: a gap is given up by what is committed, whatever sessions see",
		File:    "publish.go",
		Old:     "if !full && !l.settles() {",
		New:     "if !full {",
		Package: conformance, Test: "TestNotSettledByWhatIsNotCommitted/sequence", Engines: "mysql",
	},
	{
		Name: "records-settled-by-a-cheap-question", Guards: "guarantee 2: of records, too, a gap is given up by what is committed",
		File:    "outbox_move.go",
		Old:     "if !full && !l.settles() {",
		New:     "if !full {",
		Package: conformance, Test: "TestNotSettledByWhatIsNotCommitted/outbox", Engines: "mysql",
	},
}
