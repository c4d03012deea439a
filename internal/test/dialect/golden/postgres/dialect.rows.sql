-- name: close_changes
LOCK TABLE "rowfeed_changes_<feed>" IN ACCESS EXCLUSIVE MODE

-- name: lock_waiting
SELECT count(*), array_agg(x.ctid)::text, array_agg(x.tableoid)::text FROM (SELECT t.ctid, t.tableoid FROM "items_<feed>" t
  :waiting LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED) x

-- name: lock_waiting_keys
SELECT x.place::text, x.rel::text, x.k0 FROM (SELECT t.ctid AS place, t.tableoid AS rel, t."id" AS k0
  FROM "items_<feed>" t :waiting LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED) x

-- name: lock_waiting_keys (composite_key_feed)
SELECT x.place::text, x.rel::text, x.k0, x.k1 FROM (SELECT t.ctid AS place, t.tableoid AS rel, t."kind" AS k0, t."id" AS k1
  FROM "items_<feed>" t :waiting LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED) x

-- name: open_fence
SELECT set_config('rowfeed.publisher', '<feed>', true)

-- name: place_rows
WITH placed AS (UPDATE "items_<feed>" t SET feed_sync_id = CAST(:base AS bigint) + u.n
  FROM unnest(CAST(CAST(:rows AS text) AS tid[]), CAST(CAST(:tables AS text) AS oid[])) WITH ORDINALITY AS u(place, rel, n)
  WHERE t.ctid = u.place AND t.tableoid = u.rel
  RETURNING t."id" AS k0),
cleared AS (DELETE FROM "rowfeed_positions_<feed>" p USING placed WHERE p."id" = placed.k0 AND p.hidden = 0)
SELECT count(*) FROM placed

-- name: place_rows (composite_key_feed)
WITH placed AS (UPDATE "items_<feed>" t SET feed_sync_id = CAST(:base AS bigint) + u.n
  FROM unnest(CAST(CAST(:rows AS text) AS tid[]), CAST(CAST(:tables AS text) AS oid[])) WITH ORDINALITY AS u(place, rel, n)
  WHERE t.ctid = u.place AND t.tableoid = u.rel
  RETURNING t."kind" AS k0, t."id" AS k1),
cleared AS (DELETE FROM "rowfeed_positions_<feed>" p USING placed WHERE p."key_kind" = placed.k0 AND p."id" = placed.k1 AND p.hidden = 0)
SELECT count(*) FROM placed

-- name: place_sharded_rows
WITH placed AS (UPDATE "items_<feed>" t SET feed_sync_id = CAST(:base AS bigint) + u.n, shard = u.shard
  FROM unnest(CAST(CAST(:rows AS text) AS tid[]), CAST(CAST(:tables AS text) AS oid[]), CAST(CAST(:shards AS text) AS int[]))
    WITH ORDINALITY AS u(place, rel, shard, n)
  WHERE t.ctid = u.place AND t.tableoid = u.rel
  RETURNING t."id" AS k0),
cleared AS (DELETE FROM "rowfeed_positions_<feed>" p USING placed WHERE p."id" = placed.k0 AND p.hidden = 0)
SELECT count(*) FROM placed

-- name: place_sharded_rows (composite_key_feed)
WITH placed AS (UPDATE "items_<feed>" t SET feed_sync_id = CAST(:base AS bigint) + u.n, shard = u.shard
  FROM unnest(CAST(CAST(:rows AS text) AS tid[]), CAST(CAST(:tables AS text) AS oid[]), CAST(CAST(:shards AS text) AS int[]))
    WITH ORDINALITY AS u(place, rel, shard, n)
  WHERE t.ctid = u.place AND t.tableoid = u.rel
  RETURNING t."kind" AS k0, t."id" AS k1),
cleared AS (DELETE FROM "rowfeed_positions_<feed>" p USING placed WHERE p."key_kind" = placed.k0 AND p."id" = placed.k1 AND p.hidden = 0)
SELECT count(*) FROM placed

-- name: reset_rows
UPDATE "items_<feed>" AS t SET feed_sync_id = NULL WHERE

-- name: set_shards
WITH held AS MATERIALIZED (SELECT t.place, t.rel, j.shard
  FROM unnest(CAST(CAST(:positions AS text) AS bigint[]), CAST(CAST(:shards AS text) AS int[])) AS j(position, shard)
  CROSS JOIN LATERAL (SELECT t.ctid AS place, t.tableoid AS rel FROM "rowfeed_positions_<feed>" t
    WHERE t.feed_sync_id = j.position OFFSET 0) t)
UPDATE "rowfeed_positions_<feed>" t SET shard = held.shard, bucket = 0
FROM held WHERE t.ctid = held.place AND t.tableoid = held.rel

-- name: set_shards (sharded_feed)
WITH held AS MATERIALIZED (SELECT t.place, t.rel, j.shard
  FROM unnest(CAST(CAST(:positions AS text) AS bigint[]), CAST(CAST(:shards AS text) AS int[])) AS j(position, shard)
  CROSS JOIN LATERAL (SELECT t.ctid AS place, t.tableoid AS rel FROM "rowfeed_positions_<feed>" t
    WHERE t.feed_sync_id = j.position OFFSET 0) t)
UPDATE "rowfeed_positions_<feed>" t SET shard = held.shard, bucket = ((held.shard + 1) * 4 - 1) / 4
FROM held WHERE t.ctid = held.place AND t.tableoid = held.rel

-- name: set_shards (own_shards_feed)
WITH held AS MATERIALIZED (SELECT t.place, t.rel, j.shard
  FROM unnest(CAST(CAST(:positions AS text) AS bigint[]), CAST(CAST(:shards AS text) AS int[])) AS j(position, shard)
  CROSS JOIN LATERAL (SELECT t.ctid AS place, t.tableoid AS rel FROM "rowfeed_positions_<feed>" t
    WHERE t.feed_sync_id = j.position OFFSET 0) t)
UPDATE "rowfeed_positions_<feed>" t SET shard = held.shard, bucket = CASE WHEN held.shard < 0 THEN -1 ELSE ((held.shard + 1) * 4 - 1) / 4 END
FROM held WHERE t.ctid = held.place AND t.tableoid = held.rel

-- name: set_shards_of_rows
WITH held AS MATERIALIZED (SELECT t.place, t.rel, j.shard
  FROM unnest(CAST(CAST(:positions AS text) AS bigint[]), CAST(CAST(:shards AS text) AS int[])) AS j(position, shard)
  CROSS JOIN LATERAL (SELECT t.ctid AS place, t.tableoid AS rel FROM "items_<feed>" t
    WHERE t.feed_sync_id = j.position OFFSET 0 FOR NO KEY UPDATE OF t SKIP LOCKED) t)
UPDATE "items_<feed>" t SET shard = held.shard FROM held WHERE t.ctid = held.place AND t.tableoid = held.rel

