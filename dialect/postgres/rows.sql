-- Positions in the rows of the user's table, for feeds with capture "column".
--
-- Rows are locked FOR NO KEY UPDATE SKIP LOCKED, so a publisher does not wait for a writer. A writer waits for a
-- publisher that has locked its row, until the COMMIT of the pass. One statement locks the rows, and the next one
-- updates them. If a row changes after the first statement's snapshot, that statement locks the new version, which only
-- the next statement's snapshot shows. The lock keeps the row's ctid unchanged, so the UPDATE finds the rows by ctid.

-- name: lock_waiting
-- NO KEY UPDATE, unlike UPDATE, does not skip a row while another transaction inserts a foreign key that refers to it.
SELECT count(*), array_agg(x.ctid)::text, array_agg(x.tableoid)::text FROM (SELECT t.ctid, t.tableoid FROM {{source}} t
  :waiting LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED) x

-- name: lock_waiting_keys
-- It also returns the keys, from which the client computes the data shards.
SELECT x.place::text, x.rel::text, {{read_numbered "x"}} FROM (SELECT t.ctid AS place, t.tableoid AS rel, {{numbered_row "t"}}
  FROM {{source}} t :waiting LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED) x

-- name: place_rows
-- A row that a writer has just changed has another ctid, which is not visible to this statement. The entry of a key in
-- the table of positions is deleted, unless the key is hidden.
WITH placed AS (UPDATE {{source}} t SET feed_sync_id = CAST(:base AS bigint) + u.n
  FROM unnest(CAST(CAST(:rows AS text) AS tid[]), CAST(CAST(:tables AS text) AS oid[])) WITH ORDINALITY AS u(place, rel, n)
  WHERE t.ctid = u.place AND t.tableoid = u.rel
  RETURNING {{numbered_row "t"}}),
cleared AS (DELETE FROM {{positions}} p USING placed WHERE {{key_is_numbered "p" "placed"}} AND p.hidden = 0)
SELECT count(*) FROM placed

-- name: place_sharded_rows
WITH placed AS (UPDATE {{source}} t SET feed_sync_id = CAST(:base AS bigint) + u.n, shard = u.shard
  FROM unnest(CAST(CAST(:rows AS text) AS tid[]), CAST(CAST(:tables AS text) AS oid[]), CAST(CAST(:shards AS text) AS int[]))
    WITH ORDINALITY AS u(place, rel, shard, n)
  WHERE t.ctid = u.place AND t.tableoid = u.rel
  RETURNING {{numbered_row "t"}}),
cleared AS (DELETE FROM {{positions}} p USING placed WHERE {{key_is_numbered "p" "placed"}} AND p.hidden = 0)
SELECT count(*) FROM placed

-- name: open_fence
-- The setting ends with the transaction.
SELECT set_config('rowfeed.publisher', {{feed}}, true)

-- name: reset_rows
UPDATE {{source}} AS t SET feed_sync_id = NULL WHERE

-- name: close_changes
LOCK TABLE {{changes}} IN ACCESS EXCLUSIVE MODE

-- name: set_shards
-- Keys are found by their positions. LATERAL with OFFSET 0 fixes the order of the join: an assignment, then its
-- position. With the statistics of a small table, the planner would read the whole table for every batch.
WITH held AS MATERIALIZED (SELECT t.place, t.rel, j.shard
  FROM unnest(CAST(CAST(:positions AS text) AS bigint[]), CAST(CAST(:shards AS text) AS int[])) AS j(position, shard)
  CROSS JOIN LATERAL (SELECT t.ctid AS place, t.tableoid AS rel FROM {{positions}} t
    WHERE t.feed_sync_id = j.position OFFSET 0) t)
UPDATE {{positions}} t SET shard = held.shard, bucket = {{bucket "held.shard" "/"}}
FROM held WHERE t.ctid = held.place AND t.tableoid = held.rel

-- name: set_shards_of_rows
-- Under the sequence's lock, only writers of rows change positions: they set them to NULL. Such a row is left out, and
-- so is a row that another transaction has locked. A row that this statement has locked keeps its ctid until the
-- UPDATE.
WITH held AS MATERIALIZED (SELECT t.place, t.rel, j.shard
  FROM unnest(CAST(CAST(:positions AS text) AS bigint[]), CAST(CAST(:shards AS text) AS int[])) AS j(position, shard)
  CROSS JOIN LATERAL (SELECT t.ctid AS place, t.tableoid AS rel FROM {{source}} t
    WHERE t.feed_sync_id = j.position OFFSET 0 FOR NO KEY UPDATE OF t SKIP LOCKED) t)
UPDATE {{source}} t SET shard = held.shard FROM held WHERE t.ctid = held.place AND t.tableoid = held.rel
