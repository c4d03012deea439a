/** A client of one feed of a rowfeed server. */

import { columnsOfPage, decodeEntry, kindsOf, toInfo, toPage } from "./entry.js";
import type { Entry, Info, Page } from "./entry.js";
import { errorOf, passes, RowfeedError } from "./errors.js";
import type { Details } from "./errors.js";
import { parse } from "./json.js";
import type { Json } from "./json.js";
import { Backoff, bounded, sleep } from "./pace.js";
import { Stream } from "./stream.js";

/** Milliseconds that a server waits, at most; the client asks again for more. */
export const maxWait = 60_000;

const problemType = "urn:rowfeed:problem:";
const columnsHeader = "Rowfeed-Columns"; // names the columns that an answer was made with
const tlsCodes = /^ERR_(TLS|SSL)_|CERT|^UNABLE_TO_/; // of Node: certificates that do not fit, and refusals of the other side
const columnTries = 5; // of a page whose table's columns change between it and its description

/** A token, or a function that answers one: it is asked for each request. */
export type Token = string | (() => string | Promise<string>);

export interface ClientOptions {
  /** Sent as "Authorization: Bearer". */
  token?: Token;
  /** Milliseconds that an answer may take, beyond what the request itself may wait, and a stream be silent. Default: a minute. */
  timeout?: number;
  /** The most bytes of an answer, inflated. Default: 256 MiB. */
  maxBytes?: number;
  /** What sends requests. Default: the global fetch; nodeFetch of "rowfeed/node" takes certificates. */
  fetch?: typeof fetch;
  /** Values as they are in the table: Uint8Array instead of base64, NaN as a number; else as they travel. */
  decode?: boolean;
  /** Pauses after failures, of follow and stream. */
  backoff?: Backoff;
}

export interface Part {
  /** One shard; with shardCount a part of the feed, from 0. */
  shard?: number;
  shardCount?: number;
  signal?: AbortSignal;
}

export interface Request extends Part {
  /** Entries of a page, at most. Default 100. */
  limit?: number;
  /** Milliseconds that an empty page waits for an entry. */
  wait?: number;
  /** Once more is false, all is there that was committed before the request. */
  consistent?: boolean;
}

export class Client {
  readonly backoff: Backoff;
  /** @internal */ readonly maxBytes: number;
  /** @internal */ readonly decode: boolean;
  /** @internal */ readonly timeout: number;
  readonly #base: string;
  readonly #basic: string;
  readonly #options: ClientOptions;
  #known: { tag: string | null; kinds: Map<string, string> } | undefined;

  /** url is where the server is, such as "http://127.0.0.1:8080", with a path where it is served below one. */
  constructor(url: string, readonly feed: string, options: ClientOptions = {}) {
    const bad = (parameter: string, reason: string, next: string): RowfeedError => errorOf("invalid-request", `${parameter}: ${reason}`, { parameter, next });
    if (!feed) throw bad("feed", "there is no name", "name the feed to read");
    let at: URL;
    try {
      at = new URL(url);
    } catch {
      throw bad("url", "it cannot be parsed", "write it like http://127.0.0.1:8080"); // the text of the cause quotes it, with its password
    }
    if (!/^https?:$/.test(at.protocol)) throw bad("url", "it does not have the form http://host:port", "write it like http://127.0.0.1:8080");
    this.#basic = at.username ? "Basic " + btoa(`${decodeURIComponent(at.username)}:${decodeURIComponent(at.password)}`) : "";
    this.#base = at.origin + at.pathname.replace(/\/+$/, "");
    this.#options = options;
    this.backoff = options.backoff ?? new Backoff();
    this.maxBytes = options.maxBytes ?? 256 << 20;
    this.decode = options.decode ?? false;
    this.timeout = options.timeout ?? 60_000;
  }

  /** Describes the feed, as it is now. */
  async info(signal?: AbortSignal): Promise<Info> {
    const { data, header } = await this.#get(this.path("/_feeds/"), new URLSearchParams(), 0, signal);
    const info = this.read("the answer is not a description of a feed", () => toInfo(data));
    this.#known = { tag: header.get(columnsHeader), kinds: kindsOf(info) };
    return info;
  }

  /**
   * The entries above after, in increasing order of position. after is a cursor, "" for the beginning,
   * "now", or "at:" and an RFC 3339 time.
   */
  async fetch(after = "", request: Request = {}): Promise<Page> {
    const query = this.query(after, request);
    if (request.limit !== undefined) query.set("limit", String(request.limit));
    if (request.consistent) query.set("consistent", "true");
    const wait = request.wait ?? 0;
    const until = performance.now() + wait;
    for (;;) {
      const asked = performance.now();
      const now = request.consistent || wait <= maxWait ? wait : Math.min(Math.max(until - asked, 1), maxWait);
      if (now > 0) query.set("wait", `${Math.max(Math.round(now), 1)}ms`);
      const page = await this.#page(query, now, request.signal);
      const ended = performance.now();
      if (page.entries.length || page.more || request.consistent || wait <= maxWait || ended >= until || ended - asked < now / 2) {
        return page; // also when the server would not wait: it may be about to end
      }
      query.set("after", page.cursor);
    }
  }

  /**
   * Page after page, up to the head of the moment. Store each page's cursor once what it brings is done;
   * the last page may be empty. Errors are thrown as they come.
   */
  async *pages(after = "", request: Request = {}): AsyncGenerator<Page, void, void> {
    for (;;) {
      const page = await this.fetch(after, request);
      yield page;
      if (!page.more) return;
      after = page.cursor;
    }
  }

  /**
   * Pages for ever, or until the signal: waits where there is nothing, and outlives servers that are away, with
   * back-off, jitter and what they ask for (Retry-After). A page without entries comes where the cursor has moved. What
   * does not pass by itself is thrown: a refused cursor, an unknown feed, a missing right.
   */
  async *follow(after = "", request: Request = {}): AsyncGenerator<Page, void, void> {
    const { signal, wait = 30_000 } = request;
    for (let failures = 0, idle = 1; !signal?.aborted; ) {
      const asked = performance.now();
      let page: Page;
      try {
        page = await this.fetch(after, { ...request, wait: after === "now" || after.startsWith("at:") ? 0 : wait });
      } catch (e) {
        if (signal?.aborted) return;
        if (!(e instanceof RowfeedError) || !passes(e)) throw e;
        await sleep(this.backoff.pause(++failures, e.retryAfter), signal);
        continue;
      }
      failures = 0;
      if (page.entries.length || page.cursor !== after) {
        after = page.cursor;
        idle = 1;
        yield page;
      } else if (!page.more && performance.now() - asked < wait / 2) {
        await sleep(idle, signal); // the source answers an empty page at once: pause in its place
        idle = Math.min(idle * 1.5 + 1, 250);
      }
    }
  }

  /** Entries as they come, by Server-Sent Events; see Stream. */
  stream(after = "", part: Part = {}): Stream {
    return new Stream(this, after, part);
  }

  // What follows is for this package.

  /** @internal */ path(below: string): string {
    return below + encodeURIComponent(this.feed);
  }

  /** @internal */ query(after: string, part: Part): URLSearchParams {
    const query = new URLSearchParams();
    if (after) query.set("after", after);
    if (part.shard !== undefined) query.set("shard", String(part.shard));
    if (part.shardCount !== undefined) query.set("shard_count", String(part.shardCount));
    return query;
  }

  /** @internal Turns what is no text of the protocol's into an error of it. */ read<T>(reason: string, from: () => T): T {
    try {
      return from();
    } catch (cause) {
      throw this.stranger(reason, { cause });
    }
  }

  async #page(query: URLSearchParams, wait: number, signal?: AbortSignal): Promise<Page> {
    for (let i = 0; i < columnTries; i++) {
      const { data, header } = await this.#get(this.path("/_feeds/fetch/"), query, wait, signal);
      const page = this.read("the answer is not a page of a feed", () => toPage(data));
      if (!this.decode || !page.entries.length) return page;
      // What is known first; then, once, what the feed says of itself now.
      for (const fresh of [false, true]) {
        if (fresh) await this.info(signal);
        if (this.#known && this.#known.tag === header.get(columnsHeader)) {
          const entries = this.decoded(page.entries, this.#known.kinds);
          if (entries) return { ...page, entries };
        }
      }
    }
    throw this.failure("failed", "the table's columns change too fast", { next: "try again" });
  }

  /** @internal null where the kinds are not those of the entries. */ decoded(entries: readonly Entry[], kinds: ReadonlyMap<string, string>): Entry[] | null {
    const all: Entry[] = [];
    for (const entry of entries) {
      const decoded = decodeEntry(entry, kinds);
      if (!decoded) return null;
      all.push(decoded);
    }
    return all;
  }

  async #get(path: string, query: URLSearchParams, wait: number, signal?: AbortSignal): Promise<{ data: Json; header: Headers }> {
    const bound = bounded(this.timeout + wait, signal);
    try {
      const response = await this.answer(path, query, "application/json", bound.signal);
      const text = await this.#text(response, this.maxBytes);
      return { data: this.read("the answer cannot be read as JSON", () => parse(text, columnsOfPage)), header: response.headers };
    } finally {
      bound.done();
    }
  }

  /** @internal An answer with status 200 and the media type; the problem that came instead is thrown. */
  async answer(path: string, query: URLSearchParams, accept: string, signal: AbortSignal): Promise<Response> {
    const { token } = this.#options;
    for (let again = false; ; again = true) {
      const headers: Record<string, string> = { Accept: accept };
      const bearer = typeof token === "function" ? await token() : token;
      if (bearer) headers["Authorization"] = "Bearer " + bearer;
      else if (this.#basic) headers["Authorization"] = this.#basic;
      let response: Response;
      try {
        response = await (this.#options.fetch ?? fetch)(`${this.#base}${path}${query.size ? `?${query}` : ""}`, { headers, signal });
      } catch (cause) {
        throw this.lost(cause);
      }
      const type = (response.headers.get("Content-Type") ?? "").split(";")[0]!.trim();
      if (response.status === 200 && type === accept) return response;
      const error = await this.#problem(response, type);
      if (again || typeof token !== "function" || error.code !== "unauthorized") throw error; // else it may have a newer one now
    }
  }

  async #text(response: Response, limit: number): Promise<string> {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    let text = "";
    let size = 0;
    try {
      for await (const chunk of chunks(response)) {
        size += chunk.length;
        if (size > limit) throw this.failure("failed", `the answer has more than ${limit} bytes`, { next: "ask for fewer entries (limit), or raise maxBytes" });
        text += decoder.decode(chunk, { stream: true });
      }
      return text + decoder.decode();
    } catch (cause) {
      throw cause instanceof RowfeedError ? cause : this.lost(cause);
    }
  }

  async #problem(response: Response, type: string): Promise<RowfeedError> {
    const { status } = response;
    const retryAfter = milliseconds(response.headers.get("Retry-After"));
    if (type === "application/problem+json") {
      const text = await this.#text(response, 1 << 20);
      const error = this.ofProblem(text, status, retryAfter);
      if (error) return error;
    } else await response.body?.cancel();
    if ([429, 502, 503, 504].includes(status)) { // a proxy in front of a rowfeed that is away
      return this.failure("unavailable", `the answer is not from rowfeed: status ${status}`, { status, retryAfter, next: "check that `rowfeed serve` runs there, then try again" });
    }
    return this.stranger(`the answer is not from rowfeed: status ${status} with ${type || "no content type"}`, { status });
  }

  /** @internal undefined where the text is no problem of rowfeed's. */
  ofProblem(text: string, status?: number, retryAfter?: number): RowfeedError | undefined {
    let data: Json;
    try {
      data = parse(text);
    } catch {
      return undefined;
    }
    if (typeof data !== "object" || data === null || Array.isArray(data) || typeof data["type"] !== "string" || !data["type"].startsWith(problemType)) return undefined;
    const { type, detail, next = "", feed = "", parameter = "" } = data;
    const own = `feed "${this.feed}": `;
    const reason = String(detail ?? type);
    return this.failure(String(type).slice(problemType.length), reason.startsWith(own) ? reason.slice(own.length) : reason,
      { next: String(next), feed: String(feed), parameter: String(parameter), status, retryAfter });
  }

  /** @internal */ failure(code: string, reason: string, details: { [K in keyof Details]: Details[K] | undefined } = {}): RowfeedError {
    return errorOf(code, reason, { object: `feed "${this.feed}" at ${this.#base}`, ...(details as Details) });
  }

  /** @internal */ stranger(reason: string, details: Details = {}): RowfeedError {
    return this.failure("failed", reason, { next: "check that the URL is that of a `rowfeed serve` (without /_feeds)", ...details });
  }

  /** @internal The error of a request without a whole answer. */ lost(cause: unknown): RowfeedError {
    const late = cause instanceof DOMException && cause.name === "TimeoutError";
    const insecure = [cause, (cause as { cause?: unknown } | undefined)?.cause].map((e) => (e as { code?: unknown } | undefined)?.code)
      .find((code) => typeof code === "string" && tlsCodes.test(code));
    const reason = late ? "the server did not answer in time" : insecure ? `no secure connection to the server: ${insecure}` : "the server cannot be reached, or closed the connection early";
    return this.failure("unavailable", reason, { cause, next: "check that `rowfeed serve` runs there, then try again" });
  }
}

/** An answer's body, piece by piece: not every browser can iterate over it. */
export async function* chunks(response: Response): AsyncGenerator<Uint8Array, void, void> {
  const reader = response.body?.getReader();
  if (!reader) return;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined); // it has ended, or broken off
  }
}

/** Retry-After: a number of seconds, or a date. */
function milliseconds(text: string | null): number | undefined {
  if (!text) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0);
}
