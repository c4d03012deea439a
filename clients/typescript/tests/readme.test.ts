import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";

import ts from "typescript";

import { pool } from "./postgres.js";
import { Server } from "./running.js";

test("the first minute", async () => {
  const server = await Server.make();
  server.exec("INSERT INTO kv VALUES (1, 'jim'), (2, 'bob'), (3, NULL)");
  await server.publish();
  await pool.query("DROP TABLE IF EXISTS mirror, rowfeed_client_cursors");
  const blocks = [...readFileSync(new URL("../../README.md", import.meta.url), "utf8").matchAll(/```ts\n(.*?)```/gs)].map((m) => m[1]!);
  assert.equal(blocks.length, 2);
  const source = (blocks.join("") + "await pool.end();").replaceAll('"rowfeed"', '"../src/index.js"').replace("http://127.0.0.1:8080", server.url);
  const { outputText } = ts.transpileModule(source, { compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext } });
  const file = new URL("./readme-code.js", import.meta.url);
  writeFileSync(file, outputText);
  process.env["DATABASE_URL"] = process.env["ROWFEED_TEST_DATABASE"];
  await import(file.href);
  server.exec("UPDATE kv SET v = 'ann' WHERE id = 1; DELETE FROM kv WHERE id = 2;");
  await server.publish();
  await import(file.href + "?again");
  assert.deepEqual((await pool.query("SELECT id, v FROM mirror ORDER BY id")).rows, [{ id: "1", v: "ann" }, { id: "3", v: null }]);
});
