/** Cursors in a table of the caller's database, in the caller's transactions. */

import { generationOf } from "./cursor.js";
import { errorOf } from "./errors.js";

/**
 * An open transaction of the caller's database, on a connection of its own. query answers rows by column, and how many
 * rows a statement has affected. commit and rollback end it, and leave the connection; after an error of commit
 * nobody uses it again.
 */
export interface Transaction {
  query(sql: string, values: unknown[]): Promise<{ rows: Record<string, unknown>[]; count: number }>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** The table that consumers make for themselves. */
export const ownTable = "rowfeed_client_cursors";

/** Makes it. Elsewhere than on SQLite, PostgreSQL, MariaDB and MySQL make one like it. */
export const createCursors = `CREATE TABLE IF NOT EXISTS rowfeed_client_cursors (
  consumer VARCHAR(100) NOT NULL, feed VARCHAR(100) NOT NULL, shard BIGINT NOT NULL,
  shard_count BIGINT NOT NULL, value VARCHAR(200) NOT NULL, generation BIGINT NOT NULL,
  epoch BIGINT NOT NULL, version BIGINT NOT NULL, paused BIGINT NOT NULL,
  aside BIGINT NOT NULL DEFAULT 0, updated_at BIGINT NOT NULL, PRIMARY KEY (consumer, feed, shard))`;

/** A consumer's cursor of one shard, as it was read or written last. */
export interface CursorRow {
  shard: number;
  shardCount: number;
  value: string;
  generation: number;
  epoch: number;
  version: number;
  paused: boolean;
  aside: number;
}

/** The cursors of one consumer of one feed. Nothing here ends a transaction. */
export class Cursors {
  constructor(private readonly table: string, private readonly consumer: string, private readonly feed: string, private readonly placeholder: "$" | "?") {
    if (!/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$/.test(table)) {
      throw errorOf("invalid-request", "table: it is no name of a table", { parameter: "table", next: "write it like rowfeed_cursors, or schema.rowfeed_cursors" });
    }
  }

  /** All of the consumer's cursors, in the order of their shards. */
  async read(tx: Transaction): Promise<CursorRow[]> {
    const { rows } = await this.#run(tx, `SELECT shard, shard_count, value, generation, epoch, version, paused, aside FROM ${this.table}
      WHERE consumer = ? AND feed = ? ORDER BY shard`, [this.consumer, this.feed]);
    const number = (value: unknown): number => Number(value); // drivers answer 64-bit integers as text, or as bigint
    return rows.map((r) => ({
      shard: number(r["shard"]), shardCount: number(r["shard_count"]), value: String(r["value"]), generation: number(r["generation"]),
      epoch: number(r["epoch"]), version: number(r["version"]), paused: number(r["paused"]) !== 0, aside: number(r["aside"]),
    }));
  }

  async insert(tx: Transaction, shard: number, shardCount: number, value: string): Promise<void> {
    await this.#run(tx, `INSERT INTO ${this.table} (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at)
      VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, 0, ?)`, [this.consumer, this.feed, shard, shardCount, value, now()]);
  }

  /**
   * Writes the cursor where its row is still as it was read. version, which every write counts up, tells of one that
   * was elsewhere meanwhile. Who is paused is at rest.
   */
  async compareAndSet(tx: Transaction, was: CursorRow, to: string): Promise<boolean> {
    const { count } = await this.#run(tx, `UPDATE ${this.table} SET value = ?, generation = ?, version = version + 1, updated_at = ?
      WHERE consumer = ? AND feed = ? AND shard = ? AND shard_count = ? AND version = ? AND value = ? AND generation = ? AND epoch = ? AND aside = ? AND paused = 0`,
      [to, generationOf(to), now(), this.consumer, this.feed, was.shard, was.shardCount, was.version, was.value, was.generation, was.epoch, was.aside]);
    return count === 1;
  }

  async lockAll(tx: Transaction): Promise<void> {
    await this.#run(tx, `UPDATE ${this.table} SET version = version + 1 WHERE consumer = ? AND feed = ?`, [this.consumer, this.feed]);
  }

  async setBackAll(tx: Transaction): Promise<void> {
    await this.#run(tx, `UPDATE ${this.table} SET value = '', generation = 0, version = version + 1, updated_at = ? WHERE consumer = ? AND feed = ?`,
      [now(), this.consumer, this.feed]);
  }

  #run(tx: Transaction, sql: string, values: unknown[]): ReturnType<Transaction["query"]> {
    let n = 0;
    return tx.query(this.placeholder === "?" ? sql : sql.replace(/\?/g, () => `$${++n}`), values);
  }
}

function now(): number {
  return Date.now() * 1000; // for people; nothing is decided by it
}

const states = /^(08|40|55P03|57P)/; // connection, deadlock and serialization, lock timeout, shutdown
const numbers = new Set([1205, 1213, 2006, 2013, 1290, 1836]); // MySQL, MariaDB: lock timeout, deadlock, connection lost, read-only
const sqlite = new Set([5, 6, 13]); // SQLITE_BUSY, SQLITE_LOCKED, SQLITE_FULL

function sqlState(e: unknown): string | undefined {
  const { code, sqlState } = (e ?? {}) as { code?: unknown; sqlState?: unknown };
  return [sqlState, code].find((s): s is string => typeof s === "string" && /^[0-9A-Z]{5}$/.test(s) && /\d/.test(s));
}

/** Whether a database's error is nobody's fault: a deadlock, a lock, a connection that is gone. By the driver's codes. */
export function passesByItself(e: unknown): boolean {
  const { errno, errcode, code } = (e ?? {}) as { errno?: unknown; errcode?: unknown; code?: unknown };
  return states.test(sqlState(e) ?? "") || (typeof errno === "number" && numbers.has(errno)) ||
    (typeof errcode === "number" && sqlite.has(errcode & 0xff)) || code === "SQLITE_BUSY" || code === "SQLITE_LOCKED";
}

/** Whether the connection of a transaction, be this broken or over, still reaches its database. */
export async function alive(tx: Transaction): Promise<boolean> {
  try {
    await tx.query("SELECT 1", []);
    return true;
  } catch (e) {
    const state = sqlState(e);
    return state !== undefined && !states.test(state);
  }
}
