-- The outbox: its records get places. The transaction that moves records has locked their shard.

-- name: place_records
-- One statement. The keys stay in the server. A ULID that exists already is an error, because a record would be lost.
-- LATERAL with OFFSET 0 fixes the order of the join: a place, then its record by order_sequence. One statement can
-- change a row only once, so it uses only the last record of a key. DISTINCT compares keys as the unique index does.
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

-- name: place_behind
-- Back-fill gives places to rows (t) that have neither a record nor a place. The outbox has no index on the key,
-- because every writer would pay for it. So the statement collects the keys of all records. No key travels.
--
-- The first run in a shard follows the times of the rows: no reader can have passed these positions. A later run places
-- its rows above all of them, and so does a run without a column for the time. The high half of a ULID has the time and
-- the run, the low half the batch and the row's rank in it.
INSERT INTO {{places}} (shard, ulid, {{key}})
SELECT x.shard, CAST(lpad(to_hex((CASE WHEN x.at IS NULL OR x.first_run <> :run OR x.at >= x.live THEN x.live - 1
    WHEN x.at < 0 THEN 0 ELSE x.at END) * 65536 + :run), 16, '0') || lpad(to_hex(:batch + x.n), 16, '0') AS uuid),
  {{numbered "x"}}
FROM (SELECT :shard AS shard, s.live_from AS live, s.filled_by AS first_run, :at AS at, {{numbered_row "t"}},
    row_number() OVER (ORDER BY {{ordered "t"}}) AS n
  FROM {{source}} t
  JOIN {{table "shards"}} s ON s.feed = :feed AND s.shard = :shard AND s.live_from > 0 AND s.filled_by > 0
  LEFT JOIN {{places}} g ON {{row_of "t" "g"}}
  LEFT JOIN (SELECT DISTINCT {{key}} FROM {{records}}) c ON {{row_of "t" "c"}}
  WHERE :rows AND {{one_of_key "g"}} IS NULL AND {{one_of_key "c"}} IS NULL) x
ON CONFLICT ({{key}}) DO NOTHING
