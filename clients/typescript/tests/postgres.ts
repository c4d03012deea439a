/** Transactions of a PostgreSQL server, ROWFEED_TEST_DATABASE, by the package pg. */

import { after } from "node:test";

import pg from "pg";

import type { Transaction } from "../src/index.js";

export const pool = new pg.Pool({ connectionString: process.env["ROWFEED_TEST_DATABASE"]!, max: 10 });
pool.on("error", () => undefined); // of a connection that was ended while nobody had it
pool.on("connect", (connection) => connection.on("error", () => undefined)); // what is asked of it says so, too
after(() => pool.end());

export interface Tx extends Transaction {
  readonly connection: pg.PoolClient;
}

export async function begin(): Promise<Tx> {
  const connection = await pool.connect();
  const end = async (statement: string): Promise<void> => {
    try {
      await connection.query(statement);
      connection.release();
    } catch (e) {
      connection.release(true); // nobody knows how it stands
      throw e;
    }
  };
  await connection.query("BEGIN");
  return {
    connection,
    query: async (sql, values) => {
      const { rows, rowCount } = await connection.query<Record<string, unknown>>(sql, values);
      return { rows, count: rowCount ?? 0 };
    },
    commit: () => end("COMMIT"),
    rollback: () => end("ROLLBACK"),
  };
}
