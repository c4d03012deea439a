import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Backoff, Consumer, Later, RowfeedError } from "../src/index.js";
import type { Client, ConsumerOptions, Entry } from "../src/index.js";
import { begin, pool } from "./postgres.js";
import type { Tx } from "./postgres.js";
import { Server } from "./running.js";

let server: Server;

beforeEach(async () => {
  // log has no key: whatever takes effect twice is there twice.
  await pool.query("DROP TABLE IF EXISTS log, rowfeed_client_cursors");
  await pool.query("CREATE TABLE log (n BIGSERIAL, id BIGINT, op TEXT)");
  server = await Server.make(undefined, "kv --table kv --data-shards 8");
});

const note = async (tx: Tx, entries: readonly Entry[]): Promise<void> => {
  for (const e of entries) await tx.query("INSERT INTO log (id, op) VALUES ($1, $2)", [e.key["id"], e.op]);
};

function consumer(options: Partial<ConsumerOptions<Tx>> = {}): Consumer<Tx> {
  return new Consumer<Tx>({ name: "mirror", client: server.client(), begin, handle: note, placeholder: "$", backoff: new Backoff(10, 50), wait: 5000, onTrouble: () => undefined, ...options });
}

const ids = async (): Promise<number[]> => (await pool.query<{ id: string }>("SELECT id FROM log ORDER BY n")).rows.map((r) => Number(r.id));
const cursors = async (): Promise<string[]> => (await pool.query<{ value: string }>("SELECT value FROM rowfeed_client_cursors ORDER BY shard")).rows.map((r) => r.value);
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);
const failed = (code: string, text: RegExp) => (e: unknown): boolean => e instanceof RowfeedError && e.code === code && text.test(e.message);

test("cursor and effects are one transaction", async () => {
  server.write(1, 10);
  await server.publish();
  await consumer({ limit: 3 }).runOnce();
  server.exec("DELETE FROM kv WHERE id = 4; UPDATE kv SET v = 'new' WHERE id = 5;");
  await server.publish();
  await consumer().runOnce();
  await consumer().runOnce();
  assert.deepEqual(await ids(), [...upTo(10), 4, 5]);
  assert.deepEqual((await cursors()).map((c) => c.split(".")[0]), ["12"]);
});

test("instances race, and a server that is killed", async () => {
  let done = (): void => undefined;
  const last = new Promise<void>((resolve) => (done = resolve));
  const all = [1, 2, 3].map(() => consumer({ limit: 7, handle: async (tx, entries) => {
    await note(tx, entries);
    if (entries.at(-1)!.key["id"] === 200n) done();
  } }));
  const running = all.map((c) => c.run());
  server.write(1, 100);
  await server.publish();
  await server.kill();
  server.write(101, 200);
  await server.start();
  await last;
  for (const c of all) c.stop();
  await Promise.all(running);
  await consumer().runOnce();
  assert.deepEqual(await ids(), upTo(200));
});

test("two find no table", async () => {
  server.write(1, 3);
  await server.publish();
  // Neither has made it when the other finds that it is missing.
  let missing = 0;
  let go = (): void => undefined;
  const both = new Promise<void>((resolve) => (go = resolve));
  const late = async (): Promise<Tx> => {
    const tx = await begin();
    return { ...tx, query: async (sql, values) => {
      if (sql.startsWith("CREATE")) {
        if (++missing === 2) go();
        await both;
      }
      return tx.query(sql, values);
    } };
  };
  await Promise.all([1, 2].map(() => consumer({ begin: late }).runOnce()));
  assert.deepEqual(await ids(), [1, 2, 3]);
});

test("of two with the same page one wins", async () => {
  server.write(1, 3);
  await server.publish();
  const client = server.client();
  const fetch = client.fetch.bind(client);
  let quick: Promise<void> | undefined;
  const late: Client["fetch"] = async (after, request) => {
    const page = await fetch(after, request);
    if (page.entries.length) await (quick ??= consumer().runOnce()); // the other commits first
    return page;
  };
  await consumer({ client: Object.assign(client, { fetch: late }) }).runOnce();
  assert.deepEqual(await ids(), [1, 2, 3]);
});

test("a commit whose outcome is unknown, and a connection that is lost", async () => {
  server.write(1, 4);
  await server.publish();
  for (const how of ["before", "after", "in the handler"]) {
    let torn = false;
    const troubles: unknown[] = [];
    const c: Consumer<Tx> = consumer({
      name: how.replace(/ /g, "-"), limit: 2, maxAttempts: 1, onTrouble: (e) => troubles.push(e),
      begin: async () => {
        const tx = await begin();
        const { commit } = tx;
        return { ...tx, commit: async () => {
          if (!torn && how !== "in the handler" && (await tx.query("SELECT 1 FROM log", [])).rows.length) {
            torn = true;
            await (how === "after" ? commit() : tx.rollback());
            throw new Error("the connection is lost");
          }
          await commit();
        } };
      },
      handle: async (tx, entries) => {
        await note(tx, entries);
        if (how === "in the handler" && !torn) {
          torn = true;
          const { rows } = await tx.query("SELECT pg_backend_pid() AS pid", []);
          await pool.query("SELECT pg_terminate_backend($1)", [rows[0]!["pid"]]);
        }
        if (entries.at(-1)!.key["id"] === 4n) c.stop();
      },
    });
    await c.run();
    assert.equal(troubles.length, 1, how);
    assert.deepEqual(await ids(), upTo(4), how);
    await pool.query("DELETE FROM log");
  }
});

test("the key at fault is named, and nothing is passed over", async () => {
  server.write(1, 5);
  await server.publish();
  const calls: number[] = [];
  const handle = async (tx: Tx, entries: readonly Entry[]): Promise<void> => {
    calls.push(entries.length);
    await note(tx, entries);
    if (entries.some((e) => e.key["id"] === 3n)) throw new TypeError("three");
  };
  for (let i = 0; i < 2; i++) {
    await assert.rejects(consumer({ handle, maxAttempts: 2 }).runOnce(), (e) => failed("handler-failed", /"id":"3"/)(e) && (e as Error).cause instanceof TypeError);
    assert.deepEqual(await ids(), [1, 2]);
  }
  assert.deepEqual(calls, [5, 5, 1, 1, 1, 3, 3, 1]);
  let left = 3;
  const c: Consumer<Tx> = consumer({ maxAttempts: 1, handle: async (tx, entries) => {
    await note(tx, entries);
    if (--left > 0) throw new Later("the other side is away");
    c.stop();
  } });
  await c.run();
  assert.deepEqual(await ids(), upTo(5));
});

test("a handler that ends the transaction, or breaks it", async () => {
  server.write(1, 1);
  await server.publish();
  for (const handle of [
    (tx: Tx) => tx.query("COMMIT", []),
    (tx: Tx) => tx.query("ROLLBACK", []),
    (tx: Tx) => tx.query("SELECT nothing", []).catch(() => undefined), // and keeps it to itself
  ]) {
    await assert.rejects(consumer({ handle }).runOnce(), failed("handler-failed", /ended the transaction/));
  }
  assert.deepEqual(await cursors(), [""]);
  await assert.rejects(consumer({ table: "rowfeed_cursors" }).runOnce(), failed("refused", /cannot be read/));
});

test("a new generation is refused, or begins a pass", async () => {
  server.write(1, 4);
  await server.publish();
  await consumer().runOnce();
  server.exec("DELETE FROM kv WHERE id = 2");
  server.run("feed", "bump", "kv");
  await server.publish();
  await assert.rejects(consumer().runOnce(), failed("generation-changed", /onRefused/));
  await consumer({
    limit: 2,
    onRefused: async (tx) => {
      await tx.query("ALTER TABLE log ADD old BOOLEAN", []);
      await tx.query("UPDATE log SET old = true", []);
    },
    onComplete: (tx) => tx.query("DELETE FROM log WHERE old", []),
  }).runOnce();
  assert.deepEqual(await ids(), [1, 3, 4]);
});

test("shards, one beginning for all of them, and a place to begin", async () => {
  server.write(1, 20);
  await server.publish();
  for (const shard of [0, 1, 2]) await consumer({ shard, shardCount: 3, limit: 5 }).runOnce();
  assert.deepEqual((await ids()).sort((a, b) => a - b), upTo(20));
  await assert.rejects(consumer({ shard: 0, shardCount: 2 }).runOnce(), failed("conflict", /of 3 shards/));
  server.run("feed", "bump", "kv");
  await server.publish();
  await pool.query("UPDATE rowfeed_client_cursors SET value = '', generation = 0 WHERE shard = 0");
  await assert.rejects(consumer({ shard: 0, shardCount: 3 }).runOnce(), failed("generation-changed", /another|generation 1/));
  const refusals: string[] = [];
  for (const shard of [1, 0, 2]) await consumer({ shard, shardCount: 3, onRefused: (_, e) => refusals.push(e.code) }).runOnce();
  assert.deepEqual(refusals, ["generation-changed"]);
  // As after a restored backup: the database does not know the term that the consumer has read.
  server.exec("UPDATE rowfeed_sequences SET term = 35184372088832");
  await assert.rejects(consumer({ shard: 0, shardCount: 3 }).runOnce(), failed("history-lost", /onRefused/));
  for (const shard of [1, 0, 2]) await consumer({ shard, shardCount: 3, onRefused: (_, e) => refusals.push(e.code) }).runOnce();
  assert.deepEqual(refusals, ["generation-changed", "history-lost"]);

  await consumer({ name: "later", start: "now" }).runOnce();
  await pool.query("DELETE FROM log");
  server.write(21, 21);
  await server.publish();
  await consumer({ name: "later", start: "now" }).runOnce();
  assert.deepEqual(await ids(), [21]);
  await pool.query("UPDATE rowfeed_client_cursors SET paused = 1");
  await assert.rejects(consumer({ name: "later" }).runOnce(), failed("consumer-paused", /paused/));
});
