package main

const clients = "./clients"

// elsewhere takes away what clients in other languages rest on.
var elsewhere = []mutant{
	{
		Name: "python-cursor-not-compared", Guards: "guarantee 8: of two instances one gets a page through",
		File: "clients/python/rowfeed/consumer.py", Old: "if not self._cursors.compare_and_set(connection, row, to):", New: "if self._cursors.compare_and_set(connection, row, to) is None:",
		Package: clients, Test: "TestPython/test_consumer", Engines: "sqlite",
	},
	{
		Name: "python-transaction-ended", Guards: "guarantee 8: no cursor without its effects, nor these without it",
		File: "clients/python/rowfeed/consumer.py", Old: "            self._still_open(connection)\n", New: "",
		Package: clients, Test: "TestPython/test_consumer", Engines: "sqlite",
	},
	{
		Name: "python-handlers-commit", Guards: "guarantee 8: connections that commit by themselves are refused",
		File: "clients/python/rowfeed/consumer.py", Old: `if getattr(connection, "autocommit", False) is True or`, New: "if",
		Package: clients, Test: "TestPython/test_consumer", Engines: "sqlite",
	},
	{
		Name: "python-handler-takes-the-blame", Guards: "a connection that is lost is nobody's failure",
		File: "clients/python/rowfeed/consumer.py", Old: "if not usable or passes_by_itself(error) or", New: "if",
		Package: clients, Test: "TestPythonOnServers/postgres15", Engines: "postgres15",
	},
	{
		Name: "python-shard-left-behind", Guards: "a new generation is one beginning for all shards",
		File: "clients/python/rowfeed/consumer.py", Old: "        if older:\n", New: "        if False:\n",
		Package: clients, Test: "TestPython/test_consumer", Engines: "sqlite",
	},
	{
		Name: "python-paused-goes-on", Guards: "operators' cursors are compared, too",
		File: "clients/python/rowfeed/cursors.py", Old: "shard_count = ? AND version = ? AND", New: "shard_count = ? AND version <= ? + 1 AND",
		Package: clients, Test: "TestPython/test_consumer", Engines: "sqlite",
	},
	{
		Name: "python-stream-from-the-beginning", Guards: "a stream comes back where it was",
		File: "clients/python/rowfeed/stream.py", Old: `query["after"] = self.cursor`, New: "pass",
		Package: clients, Test: "TestPython/test_client", Engines: "sqlite",
	},
	{
		Name: "python-retry-at-once", Guards: "a server that asks for patience gets it",
		File: "clients/python/rowfeed/pace.py", Old: "retry_after or 0.0", New: "0.0",
		Package: clients, Test: "TestPython/test_client", Engines: "sqlite",
	},
	{
		Name: "python-kept-connection", Guards: "a connection that the server closed is no server that is away",
		File: "clients/python/rowfeed/transport.py", Old: "if kept and not interrupted and", New: "if False and",
		Package: clients, Test: "TestPython/test_client", Engines: "sqlite",
	},
	{
		Name: "python-columns-of-yesterday", Guards: "values are read by the types that the page was made with",
		File: "clients/python/rowfeed/client.py", Old: "if self._known is not None and self._known[0] == header.get(_COLUMNS):", New: "if self._known is not None:",
		Package: clients, Test: "TestPython/test_client", Engines: "sqlite",
	},
	{
		Name: "typescript-cursor-not-compared", Guards: "guarantee 8: of two instances one gets a page through",
		File: "clients/typescript/src/consumer.ts", Old: "if (!(await this.#cursors.compareAndSet(tx, row, to))) throw", New: "if ((await this.#cursors.compareAndSet(tx, row, to)) === null) throw",
		Package: clients, Test: "TestTypeScriptConsumer", Engines: "postgres15",
	},
	{
		Name: "typescript-transaction-ended", Guards: "guarantee 8: no cursor without its effects, nor these without it",
		File: "clients/typescript/src/consumer.ts", Old: "      await this.#stillOpen(tx);\n", New: "      void this.#stillOpen;\n",
		Package: clients, Test: "TestTypeScriptConsumer", Engines: "postgres15",
	},
	{
		Name: "typescript-numbers", Guards: "integers of 64 bits are exact",
		File: "clients/typescript/src/json.ts", Old: "inColumn || !Number.isSafeInteger(value) ? BigInt(found[0]) : value", New: "inColumn ? BigInt(value) : value",
		Package: clients, Test: "TestTypeScript$", Engines: "sqlite",
	},
	{
		Name: "typescript-stream-from-the-beginning", Guards: "a stream comes back where it was",
		File: "clients/typescript/src/stream.ts", Old: "client.query(this.cursor, this.part)", New: "client.query(\"\", this.part)",
		Package: clients, Test: "TestTypeScript$", Engines: "sqlite",
	},
	{
		Name: "example-saga-of-no-state", Guards: "the example's order goes on only with what the bank has decided",
		File: "examples/saga/main.go", Old: "e.Op == rowfeed.Delete || state == \"\" {", New: "e.Op == rowfeed.Delete {",
		Package: "./examples/saga", Test: "TestSaga", Engines: "sqlite",
	},
	{
		Name: "example-serves-on", Guards: "the example serves no feed that nobody publishes",
		File: "examples/serve/main.go", Old: "	defer pages.Close()\n", New: "",
		Package: "./examples/serve", Test: "TestServe", Engines: "sqlite",
	},
	{
		Name: "example-cache-of-a-feed-that-is-gone", Guards: "the example's cache keeps nothing while nobody tells of writes",
		File: "examples/cache/main.go", Old: "c.rows, after = nil, rowfeed.Now", New: "after = rowfeed.Now",
		Package: "./examples/cache", Test: "TestCache", Engines: "sqlite",
	},
	{
		Name: "python-table-made-once", Guards: "of two instances that make the table of cursors neither fails",
		File: "clients/python/rowfeed/consumer.py", Old: "            connection.rollback()  # of two that make it at once one may fail", New: "            raise",
		Package: clients, Test: "TestPythonOnServers/postgres15", Engines: "postgres15",
	},
	{
		Name: "python-row-made-once", Guards: "of two instances that make the cursor neither fails",
		File: "clients/python/rowfeed/consumer.py", Old: "            connection.rollback()\n            return e\n        return None", New: "            raise\n        return None",
		Package: clients, Test: "TestPython/test_consumer", Engines: "sqlite",
	},
	{
		Name: "python-stopped-too-early", Guards: "a consumer that is stopped asks for nothing more",
		File: "clients/python/rowfeed/transport.py", Old: "            if stop is not None and stop.is_set():\n                raise Unavailable(\"it was stopped\")\n", New: "",
		Package: clients, Test: "TestPython/test_consumer", Engines: "sqlite",
	},
	{
		Name: "python-asks-for-ever", Guards: "who may not read is told, and does not ask again",
		File: "clients/python/rowfeed/errors.py", Old: "Refused, Unauthorized, Forbidden, HandlerFailed", New: "Refused, HandlerFailed",
		Package: clients, Test: "TestPython/test_access", Engines: "sqlite",
	},
	{
		Name: "python-stream-of-an-old-token", Guards: "a stream goes on with a newer token",
		File: "clients/python/rowfeed/stream.py", Old: "if not passes(e) and not (heard and isinstance(e, Unauthorized)):", New: "if not passes(e):",
		Package: clients, Test: "TestPython/test_access", Engines: "sqlite",
	},
	{
		Name: "python-any-certificate", Guards: "a server of another authority is refused",
		File: "clients/python/rowfeed/transport.py", Old: "timeout=timeout, context=self._context)", New: "timeout=timeout, context=ssl._create_unverified_context())",
		Package: clients, Test: "TestPython/test_access", Engines: "sqlite",
	},
	{
		Name: "typescript-table-made-once", Guards: "of two instances that make the table of cursors neither fails",
		File: "clients/typescript/src/consumer.ts", Old: "tx.query(createCursors, [])).catch(() => undefined);", New: "tx.query(createCursors, []));",
		Package: clients, Test: "TestTypeScriptConsumer", Engines: "postgres15",
	},
	{
		Name: "typescript-stream-of-an-old-token", Guards: "a stream goes on with a newer token",
		File: "clients/typescript/src/stream.ts", Old: "(!passes(e) && !(this.#heard && e.code === \"unauthorized\"))", New: "!passes(e)",
		Package: clients, Test: "TestTypeScript$", Engines: "sqlite",
	},
	{
		Name: "typescript-silence", Guards: "a stream that falls silent is asked for anew",
		File: "clients/typescript/src/stream.ts", Old: "bounded(client.timeout, this.part.signal)", New: "bounded(2 ** 30, this.part.signal)",
		Package: clients, Test: "TestTypeScript$", Engines: "sqlite",
	},
	{
		Name: "typescript-signals-left-behind", Guards: "a request leaves nothing with the signal of who asks",
		File: "clients/typescript/src/pace.ts", Old: "      signal?.removeEventListener(\"abort\", left);\n", New: "",
		Package: clients, Test: "TestTypeScript$", Engines: "sqlite",
	},
	{
		Name: "example-cache-of-yesterday", Guards: "the example's cache keeps nothing that was written meanwhile",
		File: "examples/cache/main.go", Old: "c.rows != nil && c.forgotten == before", New: "c.rows != nil && c.forgotten >= before",
		Package: "./examples/cache", Test: "TestCache", Engines: "sqlite",
	},
	{
		Name: "example-mail-twice", Guards: "the example sends a mail once, also when its consumer begins anew",
		File: "examples/outbox/main.go", Old: "if err != nil || !first {", New: "if _ = first; err != nil {",
		Package: "./examples/outbox", Test: "TestMails", Engines: "sqlite",
	},
	{
		Name: "example-copy-keeps-what-is-gone", Guards: "the example's copy is the table, also after the feed has begun anew",
		File: "examples/kv/main.go", Old: `run("DELETE FROM kv WHERE stale = 1")`, New: `run("SELECT 1")`,
		Package: "./examples/kv", Test: "TestReplica", Engines: "sqlite",
	},
}
