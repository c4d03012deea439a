package main

// restoring takes away what durability, restored backups, failovers and replicas rest on.
var restoring = []mutant{
	{
		Name: "unflushed-is-shown", Guards: "guarantees 2 and 7: what a crash takes back is not shown",
		File:    "flush.go",
		Old:     "\tif rows.Forgetful == nil && !rows.Unflushed ||",
		New:     "\tif rows.Forgetful == nil ||",
		Package: conformance, Test: "TestUnflushedIsNotShown", Engines: "mariadb", Short: true,
	},
	{
		Name: "unflushed-head-is-shown", Guards: "guarantees 2 and 7: a head is a promise, too",
		File:    "flush.go",
		Old:     "\t\tlen(rows.Rows) == 0 && !shown.above(f.knownDurable()) {",
		New:     "\t\t(len(rows.Rows) == 0 || !shown.above(f.knownDurable())) {",
		Package: conformance, Test: "TestUnflushedHeadIsNotShown", Engines: "mariadb",
	},
	{
		Name: "unflushed-content-is-shown", Guards: "guarantee 1: a row shown is not taken back",
		File:    "flush.go",
		Old:     "\t\tlen(rows.Rows) == 0 && !shown.above(f.knownDurable()) {",
		New:     "\t\t!shown.above(f.knownDurable()) {",
		Package: conformance, Test: "TestUnflushedContentIsNotShown", Engines: "mariadb",
	},
	{
		Name: "every-page-flushes", Guards: "what is on the disk is not written for again",
		File:    "flush.go",
		Old:     "\tf.isDurable(rows.Generation, rows.Head)\n",
		New:     "",
		Package: conformance, Test: "TestFlushesAreSpared", Engines: "mariadb",
	},
	{
		Name: "forgetful-server-is-read", Guards: "guarantee 7: nothing new is shown that may be forgotten",
		File:    "dialect/mysql/read.go",
		Old:     "!log.binary, log.forgetful()",
		New:     "!log.binary, nil",
		Package: conformance, Test: "TestForgetfulServerIsRefused", Engines: "mariadb",
	},
	{
		Name: "late-reader-joins-a-flush-under-way", Guards: "guarantee 7: a flush covers what was read before it began",
		File:    "flush.go",
		Old:     "\ts.open = false\n\ts.mu.Unlock()\n\tctx, cancel := context.WithTimeout(ctx, flushTimeout)\n\tdefer cancel()\n\tf.err = fly(ctx)\n",
		New:     "\ts.mu.Unlock()\n\tctx, cancel := context.WithTimeout(ctx, flushTimeout)\n\tdefer cancel()\n\tf.err = fly(ctx)\n\ts.open = false\n",
		Package: ".", Test: "TestFlights", Engines: "sqlite", Short: true,
	},
}
