-- The outbox: its records get places. The transaction that moves records has locked their shard.

-- name: place_records
-- One statement. The keys stay in the server. A ULID that exists already is an error, because a record would be lost.
-- LATERAL with OFFSET 0 fixes the order of the join: a place, then its record by order_sequence. One statement can
-- change a row only once, so it takes only the last record of a key. DISTINCT compares keys as the unique index does.
WITH own AS (SELECT DISTINCT ON ({{key "o"}}) j.seq, o.shard, j.ulid, {{key "o"}}
  FROM unnest(CAST(CAST(:seqs AS text) AS bigint[]), CAST(CAST(:ulids AS text) AS uuid[])) AS j(seq, ulid)
  CROSS JOIN LATERAL (SELECT * FROM {{records}} o WHERE o.order_sequence = j.seq AND o.shard = :shard OFFSET 0) o
  ORDER BY {{key "o"}}, j.seq DESC),
done AS (INSERT INTO {{places}} AS g (shard, ulid, {{key}})
  SELECT shard, ulid, {{key}} FROM own ORDER BY seq
  ON CONFLICT ({{key}}) DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > g.ulid RETURNING 1)
SELECT (SELECT count(*) FROM own) - (SELECT count(*) FROM done)

-- name: delete_records
DELETE FROM {{records}} WHERE order_sequence = ANY (CAST(CAST(:seqs AS text) AS bigint[]))

-- name: delete_places
-- It needs no hint: the settings make the planner use the index.
DELETE FROM {{places}} g
