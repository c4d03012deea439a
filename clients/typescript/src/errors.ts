/** Errors, told apart by codes, never by their text: see Code. */

/** The codes of a server, and of consumers. Others may come with later servers. */
export type Code =
  | "invalid-request" | "unknown-feed" | "cursor-ahead" | "history-lost" | "generation-changed" | "tombstones-expired" | "entries-expired"
  | "conflict" | "refused" | "unauthorized" | "forbidden" | "too-many-requests" | "unavailable" | "handler-failed"
  | "consumer-paused" | "failed" | (string & {});

export interface Details {
  object?: string;
  next?: string;
  feed?: string;
  parameter?: string;
  status?: number;
  retryAfter?: number;
  cause?: unknown;
}

/**
 * What failed, on which object, why, and what to do next. code is the stable name of the kind of
 * error, the same as the server's; parameter is the one at fault, of an invalid request; status
 * that of the HTTP answer; retryAfter the milliseconds that the server asks to wait.
 */
export class RowfeedError extends Error {
  override readonly name: string = "RowfeedError";
  readonly object: string;
  readonly next: string;
  readonly feed: string;
  readonly parameter: string;
  readonly status: number | undefined;
  readonly retryAfter: number | undefined;

  constructor(readonly code: Code, readonly reason: string, details: Details = {}) {
    const text = details.object ? `${details.object}: ${reason}` : reason;
    super(details.next ? `${text}. Next: ${details.next}` : text, details.cause === undefined ? undefined : { cause: details.cause });
    this.object = details.object ?? "";
    this.next = details.next ?? "";
    this.feed = details.feed ?? "";
    this.parameter = details.parameter ?? "";
    this.status = details.status;
    this.retryAfter = details.retryAfter;
  }
}

/** The feed refuses the cursor: cursor-ahead, history-lost, generation-changed, tombstones-expired or entries-expired. */
export class CursorRefused extends RowfeedError {
  override readonly name = "CursorRefused";
}

/** Thrown by a handler: it is no fault of the entries. The page is tried again for as long as it takes. */
export class Later extends Error {
  override readonly name = "Later";
}

const refusals = new Set<string>(["cursor-ahead", "history-lost", "generation-changed", "tombstones-expired", "entries-expired"]);
const lasting = new Set<string>([...refusals, "invalid-request", "unknown-feed", "conflict", "refused", "unauthorized", "forbidden", "handler-failed", "consumer-paused"]);

export function errorOf(code: Code, reason: string, details: Details = {}): RowfeedError {
  return refusals.has(code) ? new CursorRefused(code, reason, details) : new RowfeedError(code, reason, details);
}

/** Whether what failed may succeed later, with nothing changed. */
export function passes(error: RowfeedError): boolean {
  return !lasting.has(error.code);
}
