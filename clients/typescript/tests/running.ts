/** A rowfeed server on a SQLite file of its own, as its users start it. ROWFEED_BIN is the binary. */

import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";

import { Backoff, Client } from "../src/index.js";
import type { ClientOptions } from "../src/index.js";

/** On which nobody else listens, also while a server is killed and started again. */
const addresses = process.env["ROWFEED_TEST_ADDRESSES"]!.split(",");
const made: Server[] = [];
after(async () => {
  for (const server of made) {
    await server.kill();
    rmSync(server.folder, { recursive: true });
  }
});

export class Server {
  readonly folder = mkdtempSync(join(tmpdir(), "rowfeed-typescript-"));
  readonly #path = join(this.folder, "rowfeed.db");
  #process: ChildProcess | undefined;
  readonly #listen = addresses.shift()!;
  #scheme = "http";
  #killed = false;
  readonly #feed: string;

  constructor(feed: string) {
    this.#feed = feed;
  }

  /** Ends with the file's tests. */
  static async make(table = "CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)", feed = "kv --table kv"): Promise<Server> {
    const server = new Server(feed.split(" ")[0]!);
    made.push(server);
    server.exec(table);
    server.run("init");
    server.run("feed", "add", ...feed.split(" "));
    await server.start();
    return server;
  }

  run(...args: string[]): string {
    return execFileSync(process.env["ROWFEED_BIN"]!, [...args, "--db", "sqlite:" + this.#path], { cwd: this.folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  exec(sql: string): void {
    execFileSync("sqlite3", ["-bail", "-cmd", ".timeout 300000", this.#path], { input: sql });
  }

  write(first: number, last: number): void {
    this.exec(`WITH RECURSIVE n(i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM n WHERE i < ${last}) INSERT INTO kv SELECT i, 'v' || i FROM n`);
  }

  /**
   * On the address that it had, so that clients find it again. After one that was killed it need not wait until the
   * claim on the publisher's lease is over.
   */
  async start(...args: string[]): Promise<void> {
    this.#scheme = args.includes("--tls-cert") ? "https" : "http";
    if (this.#killed) {
      try {
        this.run("lease", "release", "publish:" + this.#feed);
      } catch {
        // It had none yet.
      }
      this.#killed = false;
    }
    const child = spawn(process.env["ROWFEED_BIN"]!, ["serve", "--listen", this.#listen, "--db", "sqlite:" + this.#path, ...args], { cwd: this.folder, stdio: ["ignore", "ignore", "pipe"] });
    this.#process = child;
    const said: string[] = [];
    for await (const line of createInterface({ input: child.stderr! })) {
      said.push(line);
      if (/msg=serving address=\S+/.test(line)) {
        child.stderr!.resume();
        return;
      }
    }
    throw new Error("the server ended: " + said.join("\n"));
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
    this.#killed = true;
  }

  /** With other arguments, after it has ended in order. */
  async restart(...args: string[]): Promise<void> {
    await this.#end("SIGTERM");
    await this.start(...args);
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child && child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill(signal);
      await ended;
    }
  }

  get url(): string {
    return `${this.#scheme}://${this.#listen}`;
  }

  client(options: ClientOptions = {}, feed = "kv"): Client {
    return new Client(this.url, feed, { backoff: new Backoff(20, 200), ...options });
  }

  /** What was committed is there then. The feed has entries, so that nobody waits for the first. */
  async publish(): Promise<void> {
    await this.client().fetch("", { limit: 1, consistent: true, wait: 60_000 });
  }
}
