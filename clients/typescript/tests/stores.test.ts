import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";

import { Backoff, Consumer, RowfeedError } from "../src/index.js";
import type { ConsumerOptions, Entry, Transaction } from "../src/index.js";
import { Server } from "./running.js";
import { open } from "./stores.js";

const store = open();
after(() => store.close());

let server: Server;

async function execute(sql: string): Promise<Record<string, unknown>[]> {
  const tx = await store.begin();
  const { rows } = await tx.query(sql, []);
  await tx.commit();
  return rows;
}

beforeEach(async () => {
  await execute("DROP TABLE IF EXISTS log");
  await execute("DROP TABLE IF EXISTS rowfeed_client_cursors");
  await execute("CREATE TABLE log (id BIGINT)"); // without a key: whatever takes effect twice is there twice
  server = await Server.make();
});

const note = async (tx: Transaction, entries: readonly Entry[]): Promise<void> => {
  for (const e of entries) await tx.query("INSERT INTO log VALUES (?)", [Number(e.key["id"])]);
};

function consumer(options: Partial<ConsumerOptions<Transaction>> = {}): Consumer<Transaction> {
  return new Consumer({ name: "mirror", client: server.client(), begin: store.begin, handle: note, placeholder: "?", backoff: new Backoff(10, 50), wait: 5000, maxAttempts: 1, onTrouble: () => undefined, ...options });
}

const ids = async (): Promise<number[]> => (await execute("SELECT id FROM log ORDER BY id")).map((r) => Number(r["id"]));
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);

test("instances race, and make the table of cursors", async () => {
  let done = (): void => undefined;
  const last = new Promise<void>((resolve) => (done = resolve));
  const all = [1, 2].map(() => consumer({ limit: 7, handle: async (tx, entries) => {
    await note(tx, entries);
    if (entries.at(-1)!.key["id"] === 50n) done();
  } }));
  const running = all.map((c) => c.run());
  server.write(1, 50);
  await last;
  for (const c of all) c.stop();
  await Promise.all(running);
  await consumer().runOnce();
  assert.deepEqual(await ids(), upTo(50));
});

test("connections are lost, and transactions end", async () => {
  server.write(1, 3);
  await server.publish();
  let calls = 0;
  const c: Consumer<Transaction> = consumer({ handle: async (tx, entries) => {
    await note(tx, entries);
    if (++calls < 3) await store.kill?.(tx);
    if (calls === 3 || !store.kill) c.stop();
  } });
  await c.run();
  assert.deepEqual([calls, await ids()], [store.kill ? 3 : 1, upTo(3)]);

  server.write(4, 4);
  await server.publish();
  for (const statement of ["COMMIT", "ROLLBACK", ...(store.kill ? ["CREATE TABLE IF NOT EXISTS other (x INT)"] : [])]) {
    await assert.rejects(consumer({ handle: (tx) => tx.query(statement, []) }).runOnce(),
      (e) => e instanceof RowfeedError && e.code === "handler-failed" && /ended the transaction/.test(e.message));
  }
  await consumer().runOnce();
  assert.deepEqual(await ids(), upTo(4));
});
