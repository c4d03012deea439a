/** A consumer whose effects and cursor are one transaction of the caller's database. */

import type { Client } from "./client.js";
import { atBeginning, generationOf, inPass, isPlace } from "./cursor.js";
import { alive, createCursors, Cursors, ownTable, passesByItself } from "./cursors.js";
import type { CursorRow, Transaction } from "./cursors.js";
import type { Entry, Page } from "./entry.js";
import { CursorRefused, errorOf, Later, passes, RowfeedError } from "./errors.js";
import type { Details } from "./errors.js";
import { Backoff, sleep } from "./pace.js";

const firstAsked = 100;
const mostAsked = 5000;
const quick = 100; // milliseconds of a batch
const slow = 500;
const mostDenials = 12; // deadlocks and the like in a row, after which they are the handler's doing
const pausedPoll = 1000;

export interface ConsumerOptions<T extends Transaction> {
  /** A letter or digit, then up to 99 of letters, digits, '_', '-', '.' and ':'. Who has the same name and feed shares the cursor. */
  name: string;
  client: Client;
  /** Begins a transaction (on SQLite: BEGIN IMMEDIATE) on a connection that nobody else uses meanwhile. */
  begin: () => Promise<T>;
  /**
   * Applies entries in the open transaction, which it must not end. It may be called again with the same entries after a
   * failure.
   */
  handle: (tx: T, entries: readonly Entry[]) => Promise<unknown> | unknown;
  /** How the database's statements name their values: $1, or a question mark. */
  placeholder: "$" | "?";
  /** Where a consumer without a cursor begins: "", "now", or "at:" and a time. */
  start?: string;
  /** The most entries of a batch. By default it adapts between 100 and 5000. */
  limit?: number;
  /** Milliseconds that the server keeps an empty request. Default 10,000. */
  wait?: number;
  /** The part that this instance reads, with a cursor of its own. All instances have the same shardCount. */
  shard?: number;
  shardCount?: number;
  /** The table of cursors: rowfeed_client_cursors, which is made where it is missing, or one that is there, like rowfeed_cursors. */
  table?: string;
  /** After so many failures a batch is tried entry by entry, so that the key at fault is known. Default 5. */
  maxAttempts?: number;
  backoff?: Backoff;
  /** Makes the consumer begin again when its cursor is refused; called in the transaction that sets it back. */
  onRefused?: (tx: T, refusal: CursorRefused) => Promise<unknown> | unknown;
  /** Called in the transaction that completes a pass from the beginning: remove what the pass did not bring. */
  onComplete?: (tx: T) => Promise<unknown> | unknown;
  /** Told of what is outlived. Default: console.warn. */
  onTrouble?: (error: unknown) => void;
  /** Knows more errors of the database that pass by themselves. */
  transient?: (error: unknown) => boolean;
}

/** The cursor is no longer what was read: another instance, or an operator, has moved it. */
class Overtaken extends Error {}

/** Wraps what the handler threw, or what the database said because of it. */
class Failure extends Error {
  constructor(readonly error: unknown) {
    super("the handler failed");
  }
}

/**
 * Reads a feed and hands its entries, batch by batch, to handle. What that does in the transaction that it is given, and
 * the cursor behind the batch, are committed together: whatever crashes, and however many instances run under one name, each
 * entry takes effect exactly once. One call of run or runOnce at a time.
 */
export class Consumer<T extends Transaction> {
  readonly #o: ConsumerOptions<T>;
  readonly #cursors: Cursors;
  readonly #backoff: Backoff;
  readonly #stop = new AbortController();
  readonly #part: number;
  readonly #count: number; // 0 of one shard that is a feed by itself
  #ready = false;
  #row: CursorRow | undefined; // undefined: the database is to be asked, as after every error
  #failures = 0;
  #outages = 0;
  #denials = 0;
  #singly = 0; // so many entries are still to be tried one by one
  #asked = firstAsked;
  #idle = 1;
  #completed = false;

  constructor(options: ConsumerOptions<T>) {
    const { name, client, shard, shardCount, onComplete } = options;
    const bad = (parameter: string, reason: string, next: string): RowfeedError => errorOf("invalid-request", `${parameter}: ${reason}`, { parameter, next });
    if (!/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$/.test(name)) throw bad("name", "it is not a consumer name", "a letter or digit, then up to 99 of letters, digits, '_', '-', '.' and ':'");
    if (shardCount !== undefined && !(shard !== undefined && shard >= 0 && shard < shardCount)) throw bad("shard", "say which of shardCount, from 0", "give shard: 0 to shardCount - 1");
    if (onComplete && shard !== undefined) throw bad("onComplete", "it is about a pass over the whole feed", "leave shard out");
    this.#o = options;
    this.#part = shard ?? 0;
    this.#count = shardCount ?? (shard === undefined ? 1 : 0);
    this.#cursors = new Cursors(options.table ?? ownTable, name, client.feed, options.placeholder);
    this.#backoff = options.backoff ?? new Backoff();
  }

  /**
   * Handles entries until stop is called. It outlives databases and servers that go away, and throws what does not pass
   * by itself: a refused cursor (see onRefused), a handler that fails.
   */
  async run(): Promise<void> {
    while (!this.#stop.signal.aborted) await this.#step(false);
  }

  /** Handles entries up to the head of the moment; outlives nothing that is away. */
  async runOnce(): Promise<void> {
    while (!this.#stop.signal.aborted && !(await this.#step(true)));
  }

  /** Ends run: what is being handled is committed first, what is waited for is not. */
  stop(): void {
    this.#stop.abort();
  }

  /** One page; true where the head was reached. */
  async #step(once: boolean): Promise<boolean> {
    try {
      const row = (this.#row ??= await this.#load());
      if (row.paused) {
        this.#row = undefined;
        if (once) throw this.#error("consumer-paused", "it is paused", { next: "let it go on: `rowfeed consumer resume`, or paused = 0 in its row" });
        await this.#pause(pausedPoll);
        return false;
      }
      return await this.#turn(row, once);
    } catch (e) {
      const row = this.#row;
      if (e instanceof Overtaken) await this.#pause(this.#backoff.pause(1));
      else if (e instanceof Failure) await this.#failed(e.error);
      else if (e instanceof CursorRefused && this.#o.onRefused && row) await this.#restart(row, e, once);
      else if (e instanceof CursorRefused) throw this.#explained(e);
      else await this.#survive(e, !(e instanceof RowfeedError) || passes(e), once);
      return false;
    }
  }

  async #turn(row: CursorRow, once: boolean): Promise<boolean> {
    const { client, limit, shard, shardCount, wait = 10_000, onComplete } = this.#o;
    const asked = performance.now();
    const page = await client.fetch(row.value, {
      limit: this.#singly ? 1 : (limit ?? this.#asked),
      // Of "now" and "at:TIME" the place that they mean is stored first of all.
      wait: once || !isPlace(row.value) ? 0 : wait,
      signal: this.#stop.signal,
      ...(shard === undefined ? {} : { shard }),
      ...(shardCount === undefined ? {} : { shardCount }),
    });
    await this.#leftBehind(row, page);
    const ends = onComplete !== undefined && !this.#completed && !page.more && page.cursor === "";
    if (page.entries.length || page.cursor !== row.value || ends) {
      const begun = performance.now();
      await this.#apply(row, page);
      const took = performance.now() - begun;
      if (took > slow) this.#asked = Math.max(Math.floor(this.#asked / 2), firstAsked);
      else if (page.more && took < quick) this.#asked = Math.min(this.#asked * 2, mostAsked);
      this.#failures = this.#outages = this.#denials = 0;
      this.#singly = Math.max(this.#singly - 1, 0);
      this.#idle = 1;
      return !page.more;
    }
    this.#outages = 0;
    if (page.more) return false;
    if (!once && performance.now() - asked < wait / 2) {
      await this.#pause(this.#idle); // the source answers an empty page at once: pause in its place
      this.#idle = Math.min(this.#idle * 1.5 + 1, 250);
    }
    this.#row = undefined; // it may have been moved, and there is nothing else to do
    return true;
  }

  /** Hands entries over and stores the cursor behind them; nothing of it happens unless all does. */
  async #apply(row: CursorRow, page: Page): Promise<void> {
    const { handle, onComplete, maxAttempts = 5 } = this.#o;
    const completes = onComplete !== undefined && inPass(row.value) && !(inPass(page.cursor) && (page.entries.length > 0 || page.cursor !== ""));
    let completing = false;
    if (!page.entries.length) this.#singly = 0;
    try {
      await this.#inTransaction(row, page.cursor, async (tx) => {
        if (page.entries.length) await handle(tx, page.entries);
        completing = completes;
        if (completes) await onComplete(tx);
      });
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      const entry = page.entries[0];
      const last = this.#failures + 1 >= maxAttempts;
      if (completing && last) throw this.#error("handler-failed", "onComplete failed", { cause: e.error, next: "correct the function and start again: only the end of the pass is missing" });
      if (!completing && this.#singly && entry) {
        const key = JSON.stringify(entry.key, (_, v: unknown) => (typeof v === "bigint" ? String(v) : v));
        throw this.#error("handler-failed", `the entry at position ${entry.position} with key ${key} failed`, { cause: e.error, next: "correct the row or the handler, then start again" });
      }
      if (!completing && last) this.#singly = Math.max(page.entries.length, 1);
      throw e;
    }
    this.#completed ||= completes;
  }

  async #restart(row: CursorRow, refusal: CursorRefused, once: boolean): Promise<void> {
    const onRefused = this.#o.onRefused!;
    // The feed may have another number of data shards, or positions may have been given again: all shards begin again together.
    const all = this.#count > 1 && ["cursor-ahead", "history-lost", "generation-changed"].includes(refusal.code);
    try {
      await this.#inTransaction(row, "", (tx) => onRefused(tx, refusal), all);
      this.#completed = false;
      this.#trouble(refusal);
    } catch (e) {
      if (e instanceof Overtaken) return;
      if (e instanceof Failure) throw this.#error("handler-failed", "onRefused failed", { cause: e.error, next: "correct the function and start again" });
      await this.#survive(e, true, once);
    }
  }

  /** Does the work and writes the cursor, in one transaction. After any error the row is read again: what a failed COMMIT did is known to the database alone. */
  async #inTransaction(row: CursorRow, to: string, work: (tx: T) => Promise<unknown> | unknown, all = false): Promise<void> {
    this.#row = undefined;
    const tx = await this.#o.begin();
    let after = false; // the work has begun: what fails from then on may be its doing
    let committing = false;
    try {
      if (all) row = await this.#lockAll(tx, row);
      await tx.query("SAVEPOINT rowfeed", []);
      after = true;
      try {
        await work(tx);
      } catch (e) {
        throw e instanceof Later ? e : new Failure(e);
      }
      await this.#stillOpen(tx);
      if (!(await this.#cursors.compareAndSet(tx, row, to))) throw new Overtaken();
      if (all) await this.#cursors.setBackAll(tx);
      committing = true;
      await tx.commit();
    } catch (e) {
      const error = e instanceof Failure ? e.error : e;
      const usable = committing || (await alive(tx));
      if (!committing) await tx.rollback().catch(() => undefined); // the connection is gone, or what ends it is its end
      if (e instanceof Overtaken || e instanceof Later || (e instanceof RowfeedError && !(e instanceof Failure)) || !after) throw e;
      const passing = !usable || passesByItself(error) || this.#o.transient?.(error) === true;
      // Of an error of COMMIT without a code nothing is known but that the row tells.
      if (committing && !(await this.#refusedCommit(error))) throw new Later("the outcome of COMMIT is unknown", { cause: error });
      if (passing && (!usable || ++this.#denials <= mostDenials)) throw new Later("the database was in the way", { cause: error });
      throw new Failure(error);
    }
    this.#row = all ? undefined : { ...row, value: to, generation: generationOf(to), version: row.version + 1 };
  }

  /** Whether the database itself has refused a COMMIT, as for a constraint that is checked there. */
  async #refusedCommit(error: unknown): Promise<boolean> {
    const { code, sqlState } = (error ?? {}) as { code?: unknown; sqlState?: unknown };
    return [code, sqlState].some((s) => typeof s === "string" && s.startsWith("23"));
  }

  /** All rows are locked before anything else, in one order: of two that are refused at once the second finds that it is done. */
  async #lockAll(tx: T, row: CursorRow): Promise<CursorRow> {
    await this.#cursors.lockAll(tx);
    const now = (await this.#cursors.read(tx)).find((r) => r.shard === row.shard);
    if (!now || now.version !== row.version + 1 || now.value !== row.value || now.generation !== row.generation || now.paused) throw new Overtaken();
    return now;
  }

  /** The transaction must be the one that was handed over: else the cursor would be stored by itself. */
  async #stillOpen(tx: T): Promise<void> {
    try {
      await tx.query("RELEASE SAVEPOINT rowfeed", []);
    } catch (cause) {
      if (passesByItself(cause) || !(await alive(tx))) throw cause;
      throw this.#error("handler-failed", "the handler ended the transaction that it was handed, or left it unusable: what it did may be committed without the cursor",
        { cause, next: "leave commit and rollback to the consumer, and throw the errors of statements" });
    }
  }

  /** The cursor as the database has it, made where it is missing. */
  async #load(): Promise<CursorRow> {
    if (!this.#ready) await this.#prepare();
    for (const made of [false, true]) {
      const rows = await this.#within((tx) => this.#cursors.read(tx));
      for (const row of rows) {
        if (row.shardCount !== this.#count) {
          throw this.#error("conflict", `its cursors are of ${row.shardCount} shards, and this instance is to work on ${this.#count}`,
            { next: "give all instances the same shardCount, or a new name where it is to be another one" });
        }
        if (row.shard === this.#part && row.aside) {
          throw this.#error("conflict", "it has dead letters, which this client knows nothing of", { next: "retry or drop them, or use another name" });
        }
      }
      const mine = rows.find((row) => row.shard === this.#part);
      if (mine) return mine;
      // Where that fails another instance may have made it: the next look tells.
      if (!made) await this.#within((tx) => this.#cursors.insert(tx, this.#part, this.#count, this.#o.start ?? "")).catch((e: unknown) => this.#trouble(e));
    }
    throw new Overtaken();
  }

  /** Makes the table of cursors where it is missing. */
  async #prepare(): Promise<void> {
    const read = (): Promise<unknown> => this.#within((tx) => this.#cursors.read(tx));
    try {
      await read();
    } catch (missing) {
      if (passesByItself(missing)) throw missing;
      const own = (this.#o.table ?? ownTable) === ownTable;
      // Of two that make it at once one may fail.
      if (own) await this.#within((tx) => tx.query(createCursors, [])).catch(() => undefined);
      await read().catch((cause: unknown) => {
        throw this.#error("refused", `its table of cursors, ${this.#o.table ?? ownTable}, cannot be read`,
          { cause, next: own ? "make it by hand: " + createCursors : "make the table (`rowfeed init` makes rowfeed_cursors), or leave table out" });
      });
    }
    this.#ready = true;
  }

  /** A transaction without the application's part in it. A page is waited for outside of any. */
  async #within<R>(work: (tx: T) => Promise<R>): Promise<R> {
    const tx = await this.#o.begin();
    let result: R;
    try {
      result = await work(tx);
    } catch (e) {
      await tx.rollback().catch(() => undefined); // what has failed is the news
      throw e;
    }
    await tx.commit();
    return result;
  }

  /** A shard at its beginning is not refused by the source, where another shard's cursor is of an older generation. */
  async #leftBehind(row: CursorRow, page: Page): Promise<void> {
    const generation = generationOf(page.cursor);
    if (this.#count < 2 || !generation || !atBeginning(row.value)) return;
    const older = (await this.#within((tx) => this.#cursors.read(tx))).find((r) => r.generation > 0 && r.generation < generation);
    if (older) throw this.#error("generation-changed", `the cursor of shard ${older.shard} is of generation ${older.generation}, the feed of generation ${generation}`);
  }

  async #failed(error: unknown): Promise<void> {
    this.#failures++;
    this.#asked = firstAsked;
    this.#trouble(error);
    await this.#pause(this.#backoff.pause(this.#failures));
  }

  async #survive(error: unknown, may: boolean, once: boolean): Promise<void> {
    this.#row = undefined; // it may be paused, or moved, by the time that all is back
    if (may && this.#stop.signal.aborted) return;
    if (once || !may) throw error;
    this.#outages++;
    this.#trouble(error);
    await this.#pause(this.#backoff.pause(this.#outages, error instanceof RowfeedError ? error.retryAfter : undefined));
  }

  #explained(e: CursorRefused): RowfeedError {
    return this.#error(e.code, `the source refused its cursor: ${e.reason}`, { feed: e.feed, cause: e, ...(e.status === undefined ? {} : { status: e.status }),
      next: "set the cursor back and remove what the new pass does not bring, or give onRefused and onComplete to have that done" });
  }

  #error(code: string, reason: string, details: Details = {}): RowfeedError {
    const { name, client, shard } = this.#o;
    return errorOf(code, reason, { object: `consumer "${name}" of feed "${client.feed}"${shard === undefined ? "" : `, shard ${shard}`}`, ...details });
  }

  #pause(milliseconds: number): Promise<void> {
    return sleep(milliseconds, this.#stop.signal);
  }

  #trouble(error: unknown): void {
    if (this.#o.onTrouble) this.#o.onTrouble(error);
    else console.warn(error);
  }
}
