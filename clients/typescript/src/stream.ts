/** Server-Sent Events of a feed. */

import { chunks } from "./client.js";
import type { Client, Part } from "./client.js";
import { generationOf } from "./cursor.js";
import { columnsOfEntry, kindsOf, toEntry } from "./entry.js";
import type { Entry } from "./entry.js";
import { passes, RowfeedError } from "./errors.js";
import { parse } from "./json.js";
import { bounded, sleep } from "./pace.js";

/** An entry, and the cursor to store once it is done. */
export interface Event {
  readonly cursor: string;
  readonly entry: Entry;
}

/**
 * Iterates over Events for ever, or until the part's signal. cursor is how far it is; it also moves where there is
 * nothing to show. It comes back by itself where it was, with back-off, after the server was away; what does not pass by
 * itself is thrown. Leave the loop to end it.
 */
export class Stream implements AsyncIterable<Event> {
  #retry = 0;
  #heard = false; // from the server, in the answer at hand

  constructor(private readonly client: Client, public cursor: string, private readonly part: Part) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, void> {
    const { signal } = this.part;
    for (let failures = 0; !signal?.aborted; ) {
      this.#heard = false;
      try {
        for await (const event of this.#read()) {
          failures = 0;
          yield event;
        }
      } catch (e) {
        if (signal?.aborted) return;
        // A token that held when the answer began may have been exchanged meanwhile.
        if (!(e instanceof RowfeedError) || (!passes(e) && !(this.#heard && e.code === "unauthorized"))) throw e;
        await sleep(this.client.backoff.pause(++failures, e.retryAfter), signal);
        continue;
      }
      await sleep(this.client.backoff.pause(1, this.#retry), signal); // the server has ended it, in order
    }
  }

  /** Events of one answer. */
  async *#read(): AsyncGenerator<Event, void, void> {
    const { client } = this;
    const bound = bounded(client.timeout, this.part.signal); // a server that has nothing new says so every 15 s
    const { signal } = bound;
    try {
      const response = await client.answer(client.path("/_feeds/stream/"), client.query(this.cursor, this.part), "text/event-stream", signal);
      this.#heard = true;
      let kinds: Map<string, string> | undefined;
      let name = "";
      let data: string[] = [];
      let cursor = this.cursor;
      for await (const line of this.#lines(response, bound.rest)) {
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
        if (field === "id" && !value.includes("\0")) cursor = value;
        else if (field === "event") name = value;
        else if (field === "data") data.push(value);
        else if (field === "retry" && /^\d+$/.test(value)) this.#retry = Number(value);
        if (line !== "") continue;
        const text = data.join("\n");
        const event = name;
        name = "";
        data = [];
        if (event === "problem") throw client.ofProblem(text) ?? client.stranger("the stream is no feed's");
        if (text && (event === "" || event === "message")) {
          let entry = client.read("the stream is no feed's", () => toEntry(parse(text, columnsOfEntry), generationOf(cursor)));
          for (let fresh = false; client.decode; fresh = true) {
            // With the description of when the stream began, and anew where that does not fit.
            if (!kinds || fresh) kinds = kindsOf(await client.info(signal));
            const decoded = client.decoded([entry], kinds);
            if (decoded?.[0]) {
              entry = decoded[0];
              break;
            }
            if (fresh) throw client.failure("failed", "the table's columns change too fast", { next: "try again" });
          }
          this.cursor = cursor;
          yield { cursor, entry };
        }
        this.cursor = cursor;
      }
    } finally {
      bound.done();
    }
  }

  /** Whole lines: what has no end does not count. */
  async *#lines(response: Response, heard: () => void): AsyncGenerator<string, void, void> {
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const chunk of chunks(response)) {
        heard();
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop()!;
        if (rest.length > this.client.maxBytes) throw this.client.failure("failed", `an event has more than ${this.client.maxBytes} bytes`, { next: "raise maxBytes" });
        for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
      }
    } catch (cause) {
      throw cause instanceof RowfeedError ? cause : this.client.lost(cause);
    }
  }
}
