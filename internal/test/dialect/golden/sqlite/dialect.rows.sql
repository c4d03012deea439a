-- name: clear_positions
DELETE FROM "rowfeed_positions_<feed>" WHERE hidden = 0 AND ("id") IN (SELECT t."id" FROM "items_<feed>" t
  WHERE t.feed_sync_id > :base AND t.feed_sync_id <= :last)

-- name: clear_positions (composite_key_feed)
DELETE FROM "rowfeed_positions_<feed>" WHERE hidden = 0 AND ("key_kind", "id") IN (SELECT t."kind", t."id" FROM "items_<feed>" t
  WHERE t.feed_sync_id > :base AND t.feed_sync_id <= :last)

-- name: close_fence
DELETE FROM "rowfeed_batch_<feed>"

-- name: is_numbered
j.k0 = r."id"

-- name: is_numbered (composite_key_feed)
j.k0 = r."kind" AND j.k1 = r."id"

-- name: open_fence
INSERT INTO "rowfeed_batch_<feed>" (open) VALUES (1)

-- name: order_of_numbered
k0

-- name: order_of_numbered (composite_key_feed)
k0, k1

-- name: place_rows
UPDATE "items_<feed>" AS r SET feed_sync_id = :base + j.n
FROM (SELECT *, row_number() OVER (ORDER BY k0) AS n
  FROM (SELECT t."id" AS k0 FROM "items_<feed>" t :waiting LIMIT :limit)) j
WHERE j.k0 = r."id"

-- name: place_rows (composite_key_feed)
UPDATE "items_<feed>" AS r SET feed_sync_id = :base + j.n
FROM (SELECT *, row_number() OVER (ORDER BY k0, k1) AS n
  FROM (SELECT t."kind" AS k0, t."id" AS k1 FROM "items_<feed>" t :waiting LIMIT :limit)) j
WHERE j.k0 = r."kind" AND j.k1 = r."id"

-- name: place_rows (sharded_feed)
UPDATE "items_<feed>" AS r SET feed_sync_id = :base + j.n, shard = CAST(substr(:shards, j.n * 5 - 4, 5) AS INTEGER)
FROM (SELECT *, row_number() OVER (ORDER BY k0, k1) AS n
  FROM (SELECT t."kind" AS k0, t."id" AS k1 FROM "items_<feed>" t :waiting LIMIT :limit)) j
WHERE j.k0 = r."kind" AND j.k1 = r."id"

-- name: reset_rows
UPDATE "items_<feed>" AS t SET feed_sync_id = NULL WHERE

-- name: set_shards
UPDATE "rowfeed_positions_<feed>" SET shard = :shard, bucket = :bucket WHERE feed_sync_id = :position

-- name: set_shards_of_rows
UPDATE "items_<feed>" SET shard = :shard WHERE feed_sync_id = :position

-- name: waiting_keys
SELECT +t."id" FROM "items_<feed>" t :waiting LIMIT :limit

-- name: waiting_keys (composite_key_feed)
SELECT +t."kind", +t."id" FROM "items_<feed>" t :waiting LIMIT :limit

