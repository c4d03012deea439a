/** Transactions of SQLite, MariaDB and MySQL, ROWFEED_TEST_DATABASE, by packages that rowfeed does not need. */

import { createPool } from "mysql2/promise";
import type { ResultSetHeader, RowDataPacket } from "mysql2/promise";
import sqlite from "node-sqlite3-wasm";

import type { Transaction } from "../src/index.js";

export interface Store {
  begin(): Promise<Transaction>;
  /** Ends the connection of a transaction, from another one; SQLite has none to lose. */
  kill?(tx: Transaction): Promise<void>;
  close(): Promise<void>;
}

export function open(url = process.env["ROWFEED_TEST_DATABASE"]!): Store {
  return url.startsWith("sqlite:") ? file(url.slice("sqlite:".length)) : server(url);
}

function server(url: string): Store {
  const pool = createPool({ uri: url, connectionLimit: 10 });
  return {
    begin: async () => {
      const connection = await pool.getConnection();
      const end = async (statement: string): Promise<void> => {
        try {
          await connection.query(statement);
          connection.release();
        } catch (e) {
          connection.destroy(); // nobody knows how it stands
          throw e;
        }
      };
      await connection.query("BEGIN");
      return {
        query: async (sql, values) => {
          const [result] = await connection.query<RowDataPacket[] | ResultSetHeader>(sql, values);
          return Array.isArray(result) ? { rows: result, count: result.length } : { rows: [], count: result.affectedRows };
        },
        commit: () => end("COMMIT"),
        rollback: () => end("ROLLBACK"),
      };
    },
    kill: async (tx) => {
      const { rows } = await tx.query("SELECT CONNECTION_ID() AS id", []);
      await pool.query(`KILL ${rows[0]!["id"]}`);
    },
    close: () => pool.end(),
  };
}

/** One connection, which transactions have in turns. */
function file(path: string): Store {
  const db = new sqlite.Database(path);
  let free = Promise.resolve();
  return {
    begin: async () => {
      const before = free;
      let leave = (): void => undefined;
      free = new Promise((resolve) => (leave = resolve));
      await before;
      const end = async (statement: string): Promise<void> => {
        try {
          db.exec(statement);
        } finally {
          leave();
        }
      };
      db.exec("BEGIN IMMEDIATE");
      return {
        query: async (sql, values) => {
          if (/^\s*SELECT/.test(sql)) {
            const rows = db.all(sql, values as number[]) as Record<string, unknown>[];
            return { rows, count: rows.length };
          }
          return { rows: [], count: db.run(sql, values as number[]).changes };
        },
        commit: () => end("COMMIT"),
        rollback: () => end("ROLLBACK"),
      };
    },
    close: async () => db.close(),
  };
}
