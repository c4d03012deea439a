import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";

import { Backoff, Client, CursorRefused, RowfeedError } from "../src/index.js";
import { atBeginning, generationOf, inPass } from "../src/cursor.js";
import type { Page, Row } from "../src/index.js";
import { Server } from "./running.js";

const most = 2n ** 63n - 1n;
const least = -(2n ** 63n);

const code = (is: string, more: Partial<RowfeedError> = {}) => (e: unknown): boolean => {
  assert.ok(e instanceof RowfeedError, String(e));
  assert.equal(e.code, is);
  for (const [name, value] of Object.entries(more)) assert.deepEqual(e[name as keyof RowfeedError], value);
  return true;
};

test("every type comes as it is", async () => {
  const server = await Server.make("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, f REAL, s TEXT, b BLOB, x ANY)", "t --table t");
  server.exec(`INSERT INTO t VALUES (${least}, ${most}, 9e999, 'é😀"\\', x'00ff', 1.0), (0, 1, 1.0, '', x'', x'01'), (${most}, NULL, -0.5, NULL, NULL, 'x'),
    (5, 9007199254740993, NULL, CAST(x'c328' AS TEXT), NULL, NULL);`);
  const client = server.client({ decode: true }, "t");
  const page = await client.fetch("", { consistent: true, wait: 60_000 });
  const rows = new Map(page.entries.map((e) => [e.key["id"], e.row]));
  const want: [bigint, Row][] = [
    [least, { id: least, n: most, f: Infinity, s: 'é😀"\\', b: new Uint8Array([0, 255]), x: 1n }],
    [0n, { id: 0n, n: 1n, f: 1, s: "", b: new Uint8Array(), x: new Uint8Array([1]) }],
    [most, { id: most, n: null, f: -0.5, s: null, b: null, x: "x" }],
    [5n, { id: 5n, n: 9007199254740993n, f: null, s: new Uint8Array([0xc3, 0x28]), b: null, x: null }],
  ];
  for (const [id, row] of want) assert.deepEqual(rows.get(id), row);
  assert.equal(rows.size, 4);
  const travelling = await server.client({}, "t").fetch();
  assert.deepEqual(travelling.base64, ["b"]);
  assert.equal(travelling.entries.find((e) => e.key["id"] === least)?.row?.["b"], "AP8=");
  const streamed = [];
  for await (const event of client.stream()) {
    streamed.push(event.entry);
    if (event.cursor === page.cursor) break;
  }
  assert.deepEqual(streamed, page.entries);
});

test("columns that change are read by their new types", async () => {
  const server = await Server.make("CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO kv VALUES (1, 'AA==')");
  const client = server.client({ decode: true });
  assert.equal((await client.fetch("", { consistent: true, wait: 60_000 })).entries[0]?.row?.["v"], "AA==");
  server.exec("ALTER TABLE kv DROP COLUMN v; ALTER TABLE kv ADD COLUMN v BLOB; UPDATE kv SET v = x'00';");
  assert.deepEqual((await client.fetch("", { consistent: true, wait: 60_000 })).entries[0]?.row?.["v"], new Uint8Array([0]));
});

test("pages, parts, places and problems", async () => {
  const server = await Server.make(undefined, "kv --table kv --data-shards 8");
  const client = server.client();
  assert.equal((await client.fetch()).cursor, "");
  const waiting = client.fetch("", { wait: 60_000 });
  server.write(1, 25);
  assert.ok((await waiting).entries.length > 0);
  await server.publish();
  const pages: Page[] = [];
  for await (const page of client.pages("", { limit: 10 })) pages.push(page);
  const ids = (of: Page[]): bigint[] => of.flatMap((p) => p.entries.map((e) => e.key["id"] as bigint));
  const all = Array.from({ length: 25 }, (_, i) => BigInt(i + 1));
  assert.deepEqual(ids(pages), all);
  const head = pages.at(-1)!.cursor;
  const empty = await client.fetch(head);
  assert.deepEqual([empty.entries.length, empty.cursor, empty.more], [0, head, false]);
  assert.equal((await client.fetch("now")).cursor, head);
  assert.equal((await client.fetch("at:2020-01-01T00:00:00+02:00")).entries.length, 25);
  const parts = await Promise.all([0, 1, 2].map((shard) => client.fetch("", { shard, shardCount: 3 })));
  assert.deepEqual(ids(parts).sort((a, b) => Number(a - b)), all);
  const info = await client.info();
  assert.deepEqual([info.name, info.head, info.data_shards], ["kv", head, 8]);

  await assert.rejects(client.fetch("", { limit: 1e6 }), code("invalid-request", { parameter: "limit", status: 400, feed: "kv" }));
  await assert.rejects(server.client({}, "nothing").fetch(), code("unknown-feed"));
  for (const read of [() => client.fetch("99"), () => client.follow("99").next(), () => client.stream("99")[Symbol.asyncIterator]().next()]) {
    await assert.rejects(read, (e) => e instanceof CursorRefused && e.next !== "" && code("cursor-ahead", { status: 409 })(e));
  }
  // Of a term that this database never had.
  await assert.rejects(client.fetch("3.1000000000"), (e) => e instanceof CursorRefused && code("history-lost", { status: 409 })(e));
  server.exec("UPDATE rowfeed_feeds SET tombstones_below = 2");
  await assert.rejects(client.fetch("1"), code("tombstones-expired"));
  server.run("feed", "bump", "kv");
  await assert.rejects(client.fetch("3"), code("generation-changed"));
  await assert.rejects(new Client("http://127.0.0.1:1", "kv").fetch(), code("unavailable"));
  for (const url of ["ftp://x", "nothing", "http://a:b:c"]) assert.throws(() => new Client(url, "kv"), code("invalid-request"));
});

test("what consumers know of a cursor", () => {
  const cursors: [string, number, boolean, boolean][] = [ // generation, at the beginning, in a pass
    ["", 0, true, true], ["0", 0, true, true], ["0.7k3f2c7adq", 0, true, true], ["0~7.7k3f2c7adq", 1, false, false],
    ["42", 1, false, false], ["42.7k3f2c7adq", 1, false, false], ["10~60.7k3f2c7adq", 1, false, false], ["10@42", 1, false, true],
    ["10@42.7k3f2c7adq", 1, false, true], ["10@42~60.7k3f2c7adq", 1, false, true], ["0@42~60.7k3f2c7adq", 1, false, true],
    ["9@10.v", 1, false, true], ["10@10~60.v", 1, false, false], ["1785000000:42.v", 1785000000, false, false],
    ["1785000000:9@10~60.v", 1785000000, false, true], ["2:01ARZ3NDEKTSV4RRFFQ69G5FAV", 2, false, false],
    ["01ARZ3NDEKTSV4RRFFQ69G5FAV@01BX5ZZKBKACTAV9WEVGEMMVRZ", 1, false, true], ["now", 0, false, false],
    ["at:2026-01-31T12:00:00.5Z", 0, false, false],
  ];
  for (const [cursor, ...want] of cursors) assert.deepEqual([generationOf(cursor), atBeginning(cursor), inPass(cursor)], want, cursor);
});

test("following outlives the server", async () => {
  const server = await Server.make();
  const client = server.client();
  const left = new AbortController();
  const followed: bigint[] = [];
  const streamed: bigint[] = [];
  let begun = (): void => undefined;
  const first = new Promise<void>((resolve) => (begun = resolve));
  const follow = (async () => {
    for await (const page of client.follow("", { limit: 7, signal: left.signal })) {
      followed.push(...page.entries.map((e) => e.key["id"] as bigint));
      begun();
      if (followed.length >= 60) return;
    }
  })();
  const stream = (async () => {
    for await (const { entry } of client.stream()) {
      streamed.push(entry.key["id"] as bigint);
      if (streamed.length >= 60) return;
    }
  })();
  server.write(1, 30);
  await first;
  await server.kill();
  server.write(31, 60);
  await server.start();
  await Promise.all([follow, stream]);
  const all = Array.from({ length: 60 }, (_, i) => BigInt(i + 1));
  assert.deepEqual(followed, all);
  assert.deepEqual(streamed, all);
  const ended = client.follow("60", { signal: left.signal }).next();
  left.abort();
  assert.equal((await ended).done, true);
});

test("a stream that falls silent is asked for anew", { timeout: 300_000 }, async () => {
  const sent = ["", ': nothing new\n\n', 'id: 1\ndata: {"position":"1","shard":0,"op":"delete","key":{"id":1}}\n\n'];
  let asked = 0;
  const silent = http.createServer((_, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(sent[Math.min(asked++, 2)]!); // and no more; the last one again to a client that had no time to read it
  });
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const left = new AbortController();
  after(() => {
    left.abort();
    silent.closeAllConnections();
    silent.close();
  });
  const client = new Client(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`, "kv", { timeout: 250, backoff: new Backoff(1, 1) });
  for await (const { entry } of client.stream("", { signal: left.signal })) {
    assert.deepEqual([entry.position, asked >= sent.length], ["1", true]);
    break;
  }
});

test("tokens, patience, and answers of strangers", async () => {
  type Answer = [number, Record<string, string>, string];
  const asked: http.IncomingMessage[] = [];
  const answers: Answer[] = [];
  const stranger = http.createServer((request, response) => {
    asked.push(request);
    const [status, header, body] = answers.shift()!;
    response.writeHead(status, header).end(body);
  });
  await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
  after(() => {
    stranger.closeAllConnections();
    stranger.close();
  });
  const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}/below/`;
  const json = { "Content-Type": "application/json" };
  const problem = { "Content-Type": "application/problem+json" };
  const page = '{"feed":"kv","entries":[],"cursor":"1","more":false,"base64":[]}';
  const refusal: Answer = [401, problem, '{"type":"urn:rowfeed:problem:unauthorized","detail":"who are you?","next":"send a token"}'];
  const busy: Answer = [429, { ...problem, "Retry-After": "1" }, '{"type":"urn:rowfeed:problem:too-many-requests","detail":"too many"}'];

  answers.push([200, json, page], refusal, [200, json, page], refusal);
  await new Client(url, "kv", { token: "rf_a" }).fetch();
  assert.deepEqual([asked[0]?.url, asked[0]?.headers.authorization], ["/below/_feeds/fetch/kv", "Bearer rf_a"]);
  const tokens = ["rf_old", "rf_new"];
  await new Client(url, "kv", { token: async () => tokens.shift()! }).fetch();
  assert.equal(asked[2]?.headers.authorization, "Bearer rf_new");
  await assert.rejects(new Client(url, "kv", { token: "rf_old" }).fetch(), code("unauthorized", { status: 401, next: "send a token" }));
  answers.push([200, json, page]);
  await new Client(url.replace("//", "//me:secret@"), "kv").fetch();
  assert.equal(asked.at(-1)?.headers.authorization, "Basic " + btoa("me:secret"));

  answers.push(busy, busy, [502, {}, ""], [200, json, page]);
  const pauses: number[] = [];
  class Noted extends Backoff {
    override pause(failures: number, retryAfter = 0): number {
      pauses.push(super.pause(failures, retryAfter));
      return 0;
    }
  }
  const client = new Client(url, "kv", { backoff: new Noted(1, 1) });
  await assert.rejects(client.fetch(), code("too-many-requests", { retryAfter: 1000 }));
  assert.equal((await client.follow().next()).value?.cursor, "1");
  assert.equal(pauses[0], 1000, "the server had asked for a second");

  for (const body of ["{}", "[]", '{"cursor":1}', "[".repeat(10_000), page.slice(0, -1)]) {
    answers.push([200, json, body]);
    await assert.rejects(client.fetch(), code("failed"));
  }
  answers.push([200, json, " ".repeat(1 << 20) + page]);
  await assert.rejects(new Client(url, "kv", { maxBytes: 1 << 16 }).fetch(), code("failed"));
  answers.push([200, { "Content-Type": "text/html" }, "<html>"]);
  await assert.rejects(client.fetch(), code("failed", { status: 200 }));
});
