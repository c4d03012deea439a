/** Entries, pages, and the values of their rows. */

import { generationOf } from "./cursor.js";
import type { Json } from "./json.js";

/** A column's value; Uint8Array only where values are decoded. */
export type Value = Json | Uint8Array;

/** Integers are bigint; decimals, dates and times are strings. */
export type Row = { [column: string]: Value };

/**
 * One key at its position. op is "upsert", with the row as it was when the page was read, or "delete",
 * without one. Feed, generation, shard and position tell a delivery from every other.
 */
export interface Entry {
  readonly position: string;
  readonly shard: number;
  readonly op: "upsert" | "delete";
  readonly key: Row;
  readonly row: Row | null;
  readonly generation: number;
}

/**
 * The answer to a fetch. cursor is to be stored and sent as the next after; more is false when the page
 * reached the head of its moment, and only then. base64 names the columns that travel as base64.
 */
export interface Page {
  readonly feed: string;
  readonly entries: readonly Entry[];
  readonly cursor: string;
  readonly more: boolean;
  readonly base64: readonly string[];
}

/** A column: its type as the database spells it, and how its values travel. */
export interface Column {
  readonly name: string;
  readonly type: string;
  readonly kind: string;
}

/** A feed's description. head is the cursor of who has read everything. */
export interface Info {
  readonly name: string;
  readonly mode: string;
  readonly state: string;
  readonly generation: number;
  readonly head: string;
  readonly key: readonly Column[];
  readonly columns: readonly Column[];
  readonly base64: readonly string[];
  readonly data_shards: number;
  readonly shard_ids?: readonly number[];
}

/** How deeply columns are nested in a page, and in an entry: see parse. */
export const columnsOfPage = 4;
export const columnsOfEntry = 2;

type Fields = { [name: string]: Json };

function fields(value: Json | undefined): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new SyntaxError("an object was expected");
  return value;
}

/** Throws SyntaxError for what is no entry. */
export function toEntry(value: Json, generation: number): Entry {
  const { position, shard, op, key, row } = fields(value);
  if (typeof position !== "string" || typeof shard !== "number" || (op !== "upsert" && op !== "delete")) throw new SyntaxError("an entry was expected");
  return { position, shard, op, key: fields(key), row: op === "upsert" ? fields(row) : null, generation };
}

/** Throws SyntaxError for what is no page. */
export function toPage(value: Json): Page {
  const { feed, entries, cursor, more, base64 } = fields(value);
  if (typeof feed !== "string" || !Array.isArray(entries) || typeof cursor !== "string" || typeof more !== "boolean" || !Array.isArray(base64)) {
    throw new SyntaxError("a page was expected");
  }
  const generation = generationOf(cursor);
  return { feed, entries: entries.map((e) => toEntry(e, generation)), cursor, more, base64: base64.map(String) };
}

/** Throws SyntaxError for what is no description of a feed. */
export function toInfo(value: Json): Info {
  const info = fields(value);
  if (typeof info["name"] !== "string" || !Array.isArray(info["columns"]) || !Array.isArray(info["key"])) throw new SyntaxError("a description was expected");
  return info as unknown as Info;
}

/** The kinds of an Info's columns. */
export function kindsOf(info: Info): Map<string, string> {
  return new Map([...info.columns, ...info.key].map((c) => [c.name, c.kind]));
}

/**
 * The entry with values as they are in the table instead of the forms in which they travel; null where a
 * column is not among the kinds: the table has changed.
 */
export function decodeEntry(entry: Entry, kinds: ReadonlyMap<string, string>): Entry | null {
  const decoded = (row: Row): Row | null => {
    const values: Row = {};
    for (const [name, value] of Object.entries(row)) {
      const kind = kinds.get(name);
      if (kind === undefined) return null;
      Object.defineProperty(values, name, { value: decodeValue(kind, value), enumerable: true, configurable: true, writable: true });
    }
    return values;
  };
  const key = decoded(entry.key);
  const row = entry.row && decoded(entry.row);
  return key && (row || !entry.row) ? { ...entry, key, row } : null;
}

/**
 * A value as it is in the table: Uint8Array of binary columns (and of text that is not UTF-8), numbers also where
 * they are none, documents without rowfeed's wrappings (JSON's null is null like SQL's NULL).
 */
export function decodeValue(kind: string, value: Value): Value {
  if (typeof value === "string") {
    if (kind === "binary") return bytes(value);
    return kind === "float32" || kind === "float64" ? Number(value) : value;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Uint8Array) return value;
  const members = Object.entries(value);
  const [tag, inner] = members[0] ?? [];
  if (members.length !== 1 || inner === undefined) return value;
  if (tag === "$json" && kind === "json") return inner;
  if (typeof inner !== "string") return value;
  if (tag === "$text") return inner;
  if (tag === "$binary") return bytes(inner);
  if (kind !== "json" && tag === "$text64") return bytes(inner);
  return kind !== "json" && tag === "$float" ? Number(inner) : value;
}

function bytes(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}
