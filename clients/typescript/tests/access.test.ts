import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Backoff, RowfeedError } from "../src/index.js";
import type { Event } from "../src/index.js";
import { nodeFetch } from "../src/node.js";
import { Server } from "./running.js";

const insert = "INSERT INTO kv (v) VALUES ('a')";

function refusal(code: string, status: number | undefined, text = /./, not = ""): (e: unknown) => boolean {
  return (e) => e instanceof RowfeedError && e.code === code && e.status === status && e.next !== "" && text.test(e.message) && (!not || !e.message.includes(not));
}

test("who may not read is told at once", async () => {
  const server = await Server.make();
  server.exec("CREATE TABLE other (id INTEGER PRIMARY KEY)");
  server.run("feed", "add", "other", "--table", "other");
  const token = server.run("token", "add", "reader", "--feed", "kv", "--right", "read").trim();
  await server.restart("--auth", "tokens");
  const stranger = "rf_" + "A".repeat(43);
  for (const [given, feed, code, status] of [[undefined, "kv", "unauthorized", 401], [stranger, "kv", "unauthorized", 401], [token, "other", "forbidden", 403]] as const) {
    const client = server.client(given ? { token: given } : {}, feed);
    for (const read of [() => client.fetch(), () => client.info(), () => client.follow().next(), () => client.stream()[Symbol.asyncIterator]().next()]) {
      await assert.rejects(read, refusal(code, status, /./, given));
    }
  }
  await assert.rejects(server.client({ token }).fetch("", { consistent: true }), refusal("forbidden", 403)); // which publishes
});

test("a revoked token ends a stream, and a newer one goes on", async () => {
  const server = await Server.make();
  const [older, newer] = ["older", "newer"].map((name) => server.run("token", "add", name, "--feed", "kv", "--right", "read").trim()) as [string, string];
  await server.restart("--auth", "tokens");
  const asked: string[] = [];
  let token = older;
  const old = server.client({ token: older }).stream()[Symbol.asyncIterator]();
  const exchanged = server.client({ token: () => (asked.push(token), token) }).stream()[Symbol.asyncIterator]();
  const id = async (of: typeof old): Promise<unknown> => ((await of.next()).value as Event).entry.key["id"];
  server.exec(insert);
  const seen = [await id(exchanged)];
  await id(old);
  token = newer;
  server.run("token", "revoke", "older");
  // An entry has the server ask whether the tokens still hold.
  await assert.rejects(async () => {
    for (;;) {
      server.exec(insert);
      await id(old);
    }
  }, refusal("unauthorized", 401));
  while (!asked.includes(newer)) {
    server.exec(insert);
    seen.push(await id(exchanged));
  }
  assert.deepEqual(seen, seen.map((_, i) => BigInt(i + 1)));
  await exchanged.return?.(undefined);
});

test("too many requests", async () => {
  const server = await Server.make();
  const token = server.run("token", "add", "reader", "--feed", "kv", "--right", "read").trim();
  await server.restart("--auth", "tokens", "--rate", "0.001", "--burst", "1");
  const pauses: number[] = [];
  let paused!: () => void;
  const told = new Promise<void>((resolve) => (paused = resolve));
  class Noted extends Backoff {
    override pause(failures: number, retryAfter = 0): number {
      pauses.push(super.pause(failures, retryAfter));
      paused();
      return 0;
    }
  }
  const client = server.client({ token, backoff: new Noted(1, 1) });
  await client.fetch();
  await assert.rejects(client.fetch(), (e) => refusal("too-many-requests", 429)(e) && (e as RowfeedError).retryAfter! > 30_000);
  const followed = client.follow().next();
  await told; // by the server with that limit, which goes
  await server.restart("--auth", "tokens");
  server.exec(insert);
  assert.equal((await followed).value?.entries[0]?.key["id"], 1n);
  assert.ok(pauses[0]! > 30_000);
});

test("authorities of servers and of clients", async () => {
  const file = (name: string): string => join(process.env["ROWFEED_TEST_TLS"]!, name + ".pem");
  const pem = (name: string): string => readFileSync(file(name), "utf8");
  const by = (authority: string, who?: string) => ({ fetch: nodeFetch({ ca: pem(authority), ...(who ? { cert: pem(who), key: pem(who + "-key") } : {}) }) });
  const secure = ["--tls-cert", file("server"), "--tls-key", file("server-key")];
  const server = await Server.make();
  server.exec(insert);
  await server.restart(...secure);
  const refused = refusal("unavailable", undefined, /no secure connection to the server: [A-Z]/);
  await assert.rejects(server.client().fetch(), refused);
  await assert.rejects(server.client(by("clients")).fetch(), refused);
  assert.equal((await server.client(by("servers")).fetch("", { consistent: true, wait: 60_000 })).entries.length, 1);
  for await (const { entry } of server.client(by("servers")).stream()) {
    assert.equal(entry.key["id"], 1n);
    break;
  }
  await server.restart(...secure, "--tls-client-ca", file("clients"));
  await assert.rejects(server.client(by("servers")).fetch(), refusal("unavailable", undefined));
  await assert.rejects(server.client(by("servers", "server")).fetch(), refusal("unavailable", undefined)); // of another authority
  assert.equal((await server.client(by("servers", "client")).fetch()).entries.length, 1);
});

test("a signal is left as it was, and ends what waits", async () => {
  const server = await Server.make();
  server.exec(insert);
  const { signal } = new AbortController();
  const client = server.client();
  const { cursor } = await client.fetch("", { consistent: true, wait: 60_000, signal });
  for await (const _ of client.stream("", { signal })) break;
  assert.equal(getEventListeners(signal, "abort").length, 0);
  const leaving = new AbortController();
  const waiting = client.fetch(cursor, { wait: 30_000, signal: leaving.signal });
  leaving.abort();
  await assert.rejects(waiting, refusal("unavailable", undefined));
});
