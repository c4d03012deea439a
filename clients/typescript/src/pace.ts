/**
 * Pauses after failures in a row, in milliseconds: the first doubles up to the longest, with jitter (from a
 * half of it to all of it), and none is shorter than the server asks for.
 */
export class Backoff {
  constructor(readonly first = 100, readonly longest = 30_000) {}

  pause(failures: number, retryAfter = 0): number {
    const most = Math.min(this.first * 2 ** Math.min(Math.max(failures, 1) - 1, 40), this.longest);
    return Math.max(most * (0.5 + Math.random() / 2), retryAfter);
  }
}

/** Waits for so many milliseconds, or until the signal. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", done);
  });
}

/**
 * A signal that fires with another one, or after so many milliseconds (with a TimeoutError) unless it is given more by
 * rest. Whoever made it ends it by done: nothing is left with the other signal, which may live for as long as a consumer
 * (AbortSignal.any and AbortSignal.timeout leave something for each request).
 */
export function bounded(milliseconds: number, signal?: AbortSignal): { signal: AbortSignal; rest: () => void; done: () => void } {
  const own = new AbortController();
  const left = (): void => own.abort(signal!.reason);
  const late = (): void => own.abort(new DOMException("the server did not answer in time", "TimeoutError"));
  let timer = setTimeout(late, milliseconds);
  if (signal?.aborted) left();
  else signal?.addEventListener("abort", left);
  return {
    signal: own.signal,
    rest: () => {
      clearTimeout(timer);
      timer = setTimeout(late, milliseconds);
    },
    done: () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", left);
      own.abort(); // what is still under way is of no use
    },
  };
}
