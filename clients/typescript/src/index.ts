/** Reads the change feeds of a rowfeed server, and consumes them exactly once. */

export { Client, maxWait } from "./client.js";
export type { ClientOptions, Part, Request, Token } from "./client.js";
export { Consumer } from "./consumer.js";
export type { ConsumerOptions } from "./consumer.js";
export { createCursors } from "./cursors.js";
export type { Transaction } from "./cursors.js";
export { decodeValue } from "./entry.js";
export type { Column, Entry, Info, Page, Row, Value } from "./entry.js";
export { CursorRefused, Later, RowfeedError } from "./errors.js";
export type { Code } from "./errors.js";
export { parse } from "./json.js";
export type { Json } from "./json.js";
export { Backoff } from "./pace.js";
export { Stream } from "./stream.js";
export type { Event } from "./stream.js";
