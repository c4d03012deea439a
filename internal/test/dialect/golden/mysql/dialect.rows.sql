-- name: clear_positions
DELETE p FROM `rowfeed_batch_<feed>` b STRAIGHT_JOIN `rowfeed_positions_<feed>` p FORCE INDEX (PRIMARY) ON b.`id` = p.`id` WHERE p.hidden = 0

-- name: clear_positions (composite_key_feed)
DELETE p FROM `rowfeed_batch_<feed>` b STRAIGHT_JOIN `rowfeed_positions_<feed>` p FORCE INDEX (PRIMARY) ON b.`key_kind` = p.`key_kind` AND b.`id` = p.`id` WHERE p.hidden = 0

-- name: close_changes
RENAME TABLE `rowfeed_changes_<feed>` TO `rowfeed_closed_<feed>`

-- name: close_fence
SET @rowfeed_publisher = NULL

-- name: empty_batch
DELETE FROM `rowfeed_batch_<feed>` WHERE seq > 0

-- name: keep
, :column = :column

-- name: kept_columns
SELECT IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)) FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND TABLE_NAME = :table AND EXTRA LIKE '%on update%'
LIMIT 18446744073709551615

-- name: last_key
SELECT b.`id` FROM `rowfeed_batch_<feed>` b ORDER BY b.seq DESC LIMIT 1

-- name: last_key (composite_key_feed)
SELECT IF(TRUE, b.`key_kind`, CAST('' AS BINARY)), b.`id` FROM `rowfeed_batch_<feed>` b ORDER BY b.seq DESC LIMIT 1

-- name: lock_positions
SELECT t.feed_sync_id FROM JSON_TABLE(:places, '$[*]' COLUMNS (position BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN `items_<feed>` t FORCE INDEX (`rowfeed_<feed>_row_position`) ON t.feed_sync_id = j.position
LIMIT 18446744073709551615 FOR UPDATE /*!80000 OF t */ SKIP LOCKED

-- name: lock_waiting
:insert INTO `rowfeed_batch_<feed>` (`id`) SELECT t.`id` FROM `items_<feed>` t FORCE INDEX (`rowfeed_<feed>_row_position`) :waiting
LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: lock_waiting (composite_key_feed)
:insert INTO `rowfeed_batch_<feed>` (`key_kind`, `id`) SELECT t.`kind`, t.`id` FROM `items_<feed>` t FORCE INDEX (`rowfeed_<feed>_row_position`) :waiting
LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: lookup
FORCE INDEX (PRIMARY)
  ON b.`id` = t.`id` AND t.feed_sync_id IS NULL

-- name: lookup (composite_key_feed)
FORCE INDEX (PRIMARY)
  ON b.`key_kind` = t.`kind` AND b.`id` = t.`id` AND t.feed_sync_id IS NULL

-- name: open_fence
SET @rowfeed_publisher = '<feed>'

-- name: place_rows
:update (SELECT ROW_NUMBER() OVER (ORDER BY k.seq) AS seq, `id` FROM `rowfeed_batch_<feed>` k) b
STRAIGHT_JOIN `items_<feed>` t FORCE INDEX (PRIMARY)
  ON b.`id` = t.`id` AND t.feed_sync_id IS NULL
SET t.feed_sync_id = :base + b.seq:keep

-- name: place_rows (composite_key_feed)
:update (SELECT ROW_NUMBER() OVER (ORDER BY k.seq) AS seq, `key_kind`, `id` FROM `rowfeed_batch_<feed>` k) b
STRAIGHT_JOIN `items_<feed>` t FORCE INDEX (PRIMARY)
  ON b.`key_kind` = t.`kind` AND b.`id` = t.`id` AND t.feed_sync_id IS NULL
SET t.feed_sync_id = :base + b.seq:keep

-- name: place_sharded_rows
:update JSON_TABLE(:places, '$[*]' COLUMNS (place FOR ORDINALITY, seq BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN `rowfeed_batch_<feed>` b FORCE INDEX (PRIMARY) ON b.seq = j.seq
STRAIGHT_JOIN `items_<feed>` t FORCE INDEX (PRIMARY)
  ON b.`id` = t.`id` AND t.feed_sync_id IS NULL
SET t.feed_sync_id = :base + j.place, t.shard = j.shard:keep

-- name: place_sharded_rows (composite_key_feed)
:update JSON_TABLE(:places, '$[*]' COLUMNS (place FOR ORDINALITY, seq BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN `rowfeed_batch_<feed>` b FORCE INDEX (PRIMARY) ON b.seq = j.seq
STRAIGHT_JOIN `items_<feed>` t FORCE INDEX (PRIMARY)
  ON b.`key_kind` = t.`kind` AND b.`id` = t.`id` AND t.feed_sync_id IS NULL
SET t.feed_sync_id = :base + j.place, t.shard = j.shard:keep

-- name: placed_keys
SELECT b.seq, b.`id` FROM `rowfeed_batch_<feed>` b ORDER BY b.seq LIMIT 18446744073709551615

-- name: placed_keys (composite_key_feed)
SELECT b.seq, IF(TRUE, b.`key_kind`, CAST('' AS BINARY)), b.`id` FROM `rowfeed_batch_<feed>` b ORDER BY b.seq LIMIT 18446744073709551615

-- name: positions_in_rows
JSON_TABLE(:places, '$[*]' COLUMNS (position BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN `items_<feed>` t FORCE INDEX (`rowfeed_<feed>_row_position`) ON t.feed_sync_id = j.position

-- name: reset_rows
:update `items_<feed>` t SET t.feed_sync_id = NULL:keep WHERE :where

-- name: set_shards
UPDATE JSON_TABLE(:places, '$[*]' COLUMNS (position BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN `rowfeed_positions_<feed>` p FORCE INDEX (feed_sync_id) ON p.feed_sync_id = j.position
SET p.shard = j.shard, p.bucket = 0

-- name: set_shards (sharded_feed)
UPDATE JSON_TABLE(:places, '$[*]' COLUMNS (position BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN `rowfeed_positions_<feed>` p FORCE INDEX (feed_sync_id) ON p.feed_sync_id = j.position
SET p.shard = j.shard, p.bucket = ((j.shard + 1) * 4 - 1) DIV 4

-- name: set_shards (own_shards_feed)
UPDATE JSON_TABLE(:places, '$[*]' COLUMNS (position BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN `rowfeed_positions_<feed>` p FORCE INDEX (feed_sync_id) ON p.feed_sync_id = j.position
SET p.shard = j.shard, p.bucket = CASE WHEN j.shard < 0 THEN -1 ELSE ((j.shard + 1) * 4 - 1) DIV 4 END

-- name: set_shards_of_rows
:update JSON_TABLE(:places, '$[*]' COLUMNS (position BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN `items_<feed>` t FORCE INDEX (`rowfeed_<feed>_row_position`) ON t.feed_sync_id = j.position SET t.shard = j.shard:keep

