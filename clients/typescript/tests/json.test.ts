import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeValue, parse } from "../src/index.js";

test("integers are kept, and columns have one type", () => {
  assert.deepEqual(parse('[9007199254740991,9007199254740992,-9223372036854775808,18446744073709551615,1.0,-0.0,1e2]'),
    [9007199254740991, 9007199254740992n, -9223372036854775808n, 18446744073709551615n, 1, -0, 100]);
  assert.deepEqual(parse('{"shard":1,"row":{"a":1,"b":1.0,"c":{"d":2,"e":9007199254740993}}}', 2),
    { shard: 1, row: { a: 1n, b: 1, c: { d: 2, e: 9007199254740993n } } });
});

test("what JSON.parse takes and refuses", () => {
  for (const text of ['"\\u00e9\\"\\\\\\n\\ud83d\\ude00 \u2028"', '{"a":[{},[],{"b":null}],"":true,"a":false}', " [ 1 , -1.5e-3 ] ", '{"x":"\\\\"}', '"\\\\\\""', "false"]) {
    assert.deepEqual(parse(text), JSON.parse(text), text);
  }
  const odd = parse('{"__proto__":{"x":1},"constructor":2}') as Record<string, unknown>;
  assert.deepEqual(Object.keys(odd), ["__proto__", "constructor"]);
  assert.equal(({} as Record<string, unknown>)["x"], undefined);
  for (const text of ["", "[", "[1,]", "{,}", '{"a"}', '{"a":1,}', "01", "+1", ".5", "1.", "tru", '"a', '"\n"', '"\\x"', "[1}", '{"a":1]', "1 2", "-", "NaN", "\u00a01"]) {
    assert.throws(() => parse(text), SyntaxError, text);
  }
});

test("documents nested in thousands of levels", () => {
  const depth = 100_000;
  let inner = parse("[".repeat(depth) + "]".repeat(depth));
  for (let i = 1; i < depth; i++) inner = (inner as unknown[])[0] as typeof inner;
  assert.deepEqual(inner, []);
});

test("typed values of documents are the documents' own", () => {
  assert.deepEqual(decodeValue("json", { $float: "NaN" }), { $float: "NaN" });
  assert.deepEqual(decodeValue("json", { $json: { $binary: "AA==" } }), { $binary: "AA==" });
  assert.ok(Number.isNaN(decodeValue("dynamic", { $float: "NaN" })));
  assert.equal(decodeValue("binary", { $text: "x" }), "x");
  assert.deepEqual(decodeValue("binary", "AP8="), new Uint8Array([0, 255]));
});
