/**
 * A JSON reader that keeps integers. JSON.parse makes 64-bit integers numbers, and loses digits beyond
 * 2^53; what its reviver is told of the source (context.source) is not there in Node 20 and in browsers that are
 * a few years old. Nor does it tell 1 from 1.0, which are values of two types here.
 */

export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };

interface Open {
  value: Json[] | { [name: string]: Json };
  name: string | undefined; // of the member whose value comes; undefined in an array
}

const number = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const space = /[ \t\n\r]*/y;
const special = /[\\\u0000-\u001f]/;

/**
 * Reads a text. An integer that a number cannot hold is a bigint; where columns is given, every integer
 * is that stands directly in an object nested so deeply (1 is the outermost), so that a column has one
 * type whatever its values. Fractions and exponents make a number. Throws SyntaxError.
 */
export function parse(text: string, columns = 0): Json {
  const open: Open[] = []; // a list instead of calls: documents may be nested in thousands of levels
  let at = 0;

  const wrong = (): SyntaxError => new SyntaxError(at < text.length ? `unexpected character at ${at}` : "the text breaks off");
  const skip = (): string | undefined => {
    space.lastIndex = at;
    space.exec(text);
    at = space.lastIndex;
    return text[at];
  };
  const string = (): string => {
    const begin = at;
    let end = text.indexOf('"', at + 1);
    for (;;) {
      if (end < 0) {
        at = text.length;
        throw wrong();
      }
      let backslashes = 0;
      while (text[end - 1 - backslashes] === "\\") backslashes++;
      if (backslashes % 2 === 0) break;
      end = text.indexOf('"', end + 1);
    }
    at = end + 1;
    const plain = text.slice(begin + 1, end);
    return special.test(plain) ? (JSON.parse(text.slice(begin, at)) as string) : plain;
  };
  const name = (): string => {
    if (skip() !== '"') throw wrong();
    const is = string();
    if (skip() !== ":") throw wrong();
    at++;
    return is;
  };
  const literal = <T extends Json>(word: string, value: T): T => {
    if (!text.startsWith(word, at)) throw wrong();
    at += word.length;
    return value;
  };
  const numeral = (): Json => {
    number.lastIndex = at;
    const found = number.exec(text);
    if (!found) throw wrong();
    at = number.lastIndex;
    if (found[1] !== undefined || found[2] !== undefined) return Number(found[0]);
    const value = Number(found[0]);
    const inColumn = open.length === columns && open[columns - 1]?.name !== undefined;
    return inColumn || !Number.isSafeInteger(value) ? BigInt(found[0]) : value;
  };

  for (;;) {
    let value: Json;
    const c = skip();
    if (c === "{" || c === "[") {
      const close = c === "{" ? "}" : "]";
      const made: Open["value"] = c === "{" ? {} : [];
      at++;
      if (skip() !== close) {
        open.push({ value: made, name: c === "{" ? name() : undefined });
        continue;
      }
      at++;
      value = made;
    } else if (c === '"') value = string();
    else if (c === "t") value = literal("true", true);
    else if (c === "f") value = literal("false", false);
    else if (c === "n") value = literal("null", null);
    else value = numeral();

    for (;;) {
      const top = open[open.length - 1];
      if (!top) {
        if (skip() !== undefined) throw wrong();
        return value;
      }
      if (Array.isArray(top.value)) top.value.push(value);
      else if (top.name === "__proto__") Object.defineProperty(top.value, top.name, { value, enumerable: true, configurable: true, writable: true });
      else top.value[top.name!] = value;
      const next = skip();
      at++;
      if (next === ",") {
        if (top.name !== undefined) top.name = name();
        break;
      }
      if (next !== (top.name !== undefined ? "}" : "]")) {
        at--;
        throw wrong();
      }
      value = top.value;
      open.pop();
    }
  }
}
