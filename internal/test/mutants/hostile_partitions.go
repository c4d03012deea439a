package main

// partitioning takes away what partitions that come and go rest on.
var partitioning = []mutant{
	{
		Name: "new-partitions-are-left-alone", Guards: "V4: a publisher makes the triggers that new partitions lack",
		File:    "partitions.go",
		Old:     "		if err == nil {\n			err = f.db.d.WithSchemaLock(",
		New:     "		if err == nil && p.Name.Name == \"\" {\n			err = f.db.d.WithSchemaLock(",
		Package: conformance, Test: "TestNewPartitions$", Engines: "postgres15",
	},
	{
		Name: "a-new-partition-is-not-ready", Guards: "V4: what loses nothing does not count against readiness",
		File:    "dialect/postgres/capture.go",
		Old:     " && suffix == \"truncate\" && i > 0:",
		New:     " && suffix == \"truncate\" && i < 0:",
		Package: conformance, Test: "TestNewPartitions$", Engines: "postgres15", Short: true,
	},
	{
		Name: "no-capture-is-ready", Guards: "V4: a partition whose rows are not captured counts against readiness",
		File: "dialect/postgres/capture.go", Old: " && suffix == \"truncate\" && i > 0:", New: " && i > 0:",
		Package: conformance, Test: "TestTriggerOfPartitionDropped", Engines: "postgres15",
	},
	{
		Name: "truncated-before-the-trigger", Guards: "V4: a TRUNCATE before a partition had its trigger is found",
		File: "partitions.go", Old: "	for above < to {", New: "	for above < to && above < 0 {",
		Package: conformance, Test: "TestNewPartitions$", Engines: "postgres15",
	},
	{
		Name: "rows-that-attach-brings", Guards: "V4: rows that ATTACH brings are published",
		File:    "partitions.go",
		Old:     "	for after, more := []any(nil), true; more; {",
		New:     "	for after, more := []any(nil), false; more; {",
		Package: conformance, Test: "TestNewPartitions$", Engines: "postgres15",
	},
	{
		Name: "vanished-before-the-pass-at-work", Guards: "V4: keys that a pass publishes while a partition goes are found",
		File: "partitions.go", Old: "		to, err := f.publishedUpTo(ctx)", New: "		to, err := head, error(nil)",
		Package: conformance, Test: "TestPartitionGoesBesideAPass", Engines: "postgres15",
	},
	{
		Name: "only-rows-without-a-position", Guards: "V4: a partition that was replaced by a rewritten one is published",
		File: "partitions.go", Old: `part.recordRange(ctx, tx, "", after`, New: `part.recordRange(ctx, tx, "v < 0", after`,
		Package: conformance, Test: "TestRewrittenPartitionIsPublished", Engines: "postgres15",
	},
	{
		Name:   "rows-that-go-with-a-partition",
		Guards: "V4: rows of a partition that is detached are looked for among all positions",
		File:   "partitions.go", Old: "slices.Concat(known.Attached, known.Taken)", New: "known.Taken",
		Package: conformance, Test: "TestRowsOfDetachedPartitionsAreDeleted", Engines: "postgres15",
	},
	{
		Name:   "a-partition-that-came-back-unseen",
		Guards: "V4: a partition that was away between two looks is another one",
		File:   "dialect/postgres/schema.go", Old: "string_agg('.' || i.xmin::text,", New: "string_agg('.',",
		Package: conformance, Test: "TestRowsOfDetachedPartitionsAreDeleted", Engines: "postgres15",
	},
	{
		Name: "a-step-of-partitions-is-all", Guards: "V4: what came with partitions is found up to the last key",
		File: "partitions.go", Old: "after, more = last, last != nil", New: "after, more = last, false",
		Package: conformance, Test: "TestManyRowsOfPartitions", Engines: "postgres15",
	},
	{
		Name:    "taken-in-and-forgotten",
		Guards:  "V4: a publisher that ends behind a partition's trigger leaves the rest to the next one",
		File:    "partitions.go",
		Old:     "p.Attached != \"\" && !slices.Contains(known.Taken, p.Attached)",
		New:     "p.Attached == \"-\"",
		Package: conformance, Test: "TestPublisherEndsWithinPartitions", Engines: "postgres15",
	},
	{
		Name:    "a-trigger-dropped-of-late",
		Guards:  "V4: a partition that lost its trigger is looked through from the beginning",
		File:    "partitions.go",
		Old:     "slices.Delete(slices.Clone(known.Attached), i, i+1), 0",
		New:     "slices.Delete(slices.Clone(known.Attached), i, i+1), known.Head",
		Package: conformance, Test: "TestTriggerOfPartitionDropped", Engines: "postgres15",
	},
	{
		Name: "a-trigger-that-may-not-read", Guards: "V4: no trigger is made that would fail every TRUNCATE",
		File: "dialect/postgres/capture.go", Old: "		case !l.mayRun:", New: "		case !l.mayRun && !l.mayAlter:",
		Package: conformance, Test: "TestPartitionOfAnotherRole", Engines: "postgres15",
	},
	{
		Name: "upgrade-leaves-what-was-missed", Guards: "V4: feed upgrade records what it was too late to capture",
		File: "setup_upgrade.go", Old: "		_, err = f.followPartitions(ctx)\n", New: "		err = f.reload(ctx)\n",
		Package: conformance, Test: "TestPartitions$", Engines: "postgres15",
	},
	{
		Name:   "attached-rows-without-records",
		Guards: "V4: rows that ATTACH brings to a feed with an outbox get records",
		File:   "partitions.go", Old: "		return r.mode().repair(ctx, part)", New: "		return 0, nil",
		Package: conformance, Test: "TestPartitionsOfOutbox", Engines: "postgres15",
	},
}
