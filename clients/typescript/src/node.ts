/** What only Node has: certificates. */

import http from "node:http";
import https from "node:https";
import { pipeline, Readable } from "node:stream";
import zlib from "node:zlib";

/**
 * A fetch for GET requests that takes what TLS needs (ca, cert, key, passphrase, servername, as https.Agent does), which
 * the global fetch does not.
 */
export function nodeFetch(tls: https.AgentOptions): typeof fetch {
  const agent = new https.Agent({ keepAlive: true, ...tls });
  return (input, init) =>
    new Promise((resolve, reject) => {
      const url = new URL(input instanceof Request ? input.url : input);
      const headers = { "Accept-Encoding": "gzip", ...Object.fromEntries(new Headers(init?.headers)) };
      const options = { headers, ...(init?.signal ? { signal: init.signal } : {}) };
      const answered = (answer: http.IncomingMessage): void => {
        const zipped = answer.headers["content-encoding"] === "gzip";
        // Either of them that breaks, or is left, ends the other.
        const body = zipped ? pipeline(answer, zlib.createGunzip(), () => undefined) : answer;
        const plain = Object.entries(answer.headers).filter(([name]) => !zipped || name !== "content-encoding").map(([name, value]) => [name, String(value)] as [string, string]);
        resolve(new Response(Readable.toWeb(body) as ReadableStream<Uint8Array>, { status: answer.statusCode ?? 500, headers: plain }));
      };
      const request = url.protocol === "https:" ? https.get(url, { ...options, agent }, answered) : http.get(url, options, answered);
      request.once("error", reject);
    });
}
