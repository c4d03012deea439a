-- name: among
FORCE INDEX (PRIMARY) WHERE :numbers

-- name: ask_identity
SELECT CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */), @@GLOBAL.read_only

-- name: assign_positions
:insert INTO `rowfeed_positions_<feed>` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`id`, :base + j.place, :shard, :bucket, t.`id` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id`
WHERE (t.`id` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)

-- name: assign_positions (composite_key_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)

-- name: assign_positions (column_capture_feed)
:insert INTO `rowfeed_positions_<feed>` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`id`, :base + j.place, :shard, :bucket, t.`id` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id`
WHERE (1 = 1)

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)

-- name: assign_positions (own_shards_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted),
  bucket = IF(`rowfeed_positions_<feed>`.shard < 0, VALUES(bucket), `rowfeed_positions_<feed>`.bucket),
  shard = IF(`rowfeed_positions_<feed>`.shard < 0, VALUES(shard), `rowfeed_positions_<feed>`.shard)

-- name: assign_positions (own_shards_in_rows_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (1 = 1)

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted),
  bucket = IF(`rowfeed_positions_<feed>`.hidden = 0, VALUES(bucket), `rowfeed_positions_<feed>`.bucket),
  shard = IF(`rowfeed_positions_<feed>`.hidden = 0, VALUES(shard), `rowfeed_positions_<feed>`.shard)

-- name: assign_positions (outbox_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (`place`) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)

-- name: assign_positions_by_kind
:insert INTO `rowfeed_positions_<feed>` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`id`, :base + j.place, :shard, :bucket, t.`id` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id`
WHERE (t.`id` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted), hidden = (j.kind = 2 OR `rowfeed_positions_<feed>`.hidden = 1 AND j.kind <> 1)

-- name: assign_positions_by_kind (composite_key_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted), hidden = (j.kind = 2 OR `rowfeed_positions_<feed>`.hidden = 1 AND j.kind <> 1)

-- name: assign_positions_by_kind (column_capture_feed)
:insert INTO `rowfeed_positions_<feed>` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`id`, :base + j.place, :shard, :bucket, t.`id` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id`
WHERE (1 = 1)

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted), hidden = (j.kind = 2 OR `rowfeed_positions_<feed>`.hidden = 1 AND j.kind <> 1)

-- name: assign_positions_by_kind (own_shards_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted),
  bucket = IF(`rowfeed_positions_<feed>`.shard < 0, VALUES(bucket), `rowfeed_positions_<feed>`.bucket),
  shard = IF(`rowfeed_positions_<feed>`.shard < 0, VALUES(shard), `rowfeed_positions_<feed>`.shard), hidden = (j.kind = 2 OR `rowfeed_positions_<feed>`.hidden = 1 AND j.kind <> 1)

-- name: assign_positions_by_kind (own_shards_in_rows_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (1 = 1)

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted),
  bucket = IF((`rowfeed_positions_<feed>`.hidden = 0 OR j.kind <> 0), VALUES(bucket), `rowfeed_positions_<feed>`.bucket),
  shard = IF((`rowfeed_positions_<feed>`.hidden = 0 OR j.kind <> 0), VALUES(shard), `rowfeed_positions_<feed>`.shard), hidden = (j.kind = 2 OR `rowfeed_positions_<feed>`.hidden = 1 AND j.kind <> 1)

-- name: assign_positions_by_kind (outbox_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (`place`) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1 AND j.kind = 0, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted), hidden = (j.kind = 2 OR `rowfeed_positions_<feed>`.hidden = 1 AND j.kind <> 1)

-- name: assign_positions_of_runs
:insert INTO `rowfeed_positions_<feed>` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`id`, c.seq + CASE :places END, 0, 0, t.`id` IS NULL, 0, :published
FROM `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY)
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id`
WHERE (:ranges) AND (t.`id` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)

-- name: assign_positions_of_runs (composite_key_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, c.seq + CASE :places END, 0, 0, t.`kind` IS NULL, 0, :published
FROM `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY)
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (:ranges) AND (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)

-- name: assign_positions_of_runs (column_capture_feed)
:insert INTO `rowfeed_positions_<feed>` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`id`, c.seq + CASE :places END, 0, 0, t.`id` IS NULL, 0, :published
FROM `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY)
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id`
WHERE (:ranges) AND (1 = 1)

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)

-- name: assign_positions_of_runs (sharded_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, c.seq + CASE :places END, 0, ((0 + 1) * 4 - 1) DIV 4, t.`kind` IS NULL, 0, :published
FROM `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY)
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (:ranges) AND (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)

-- name: assign_positions_of_runs (own_shards_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, c.seq + CASE :places END, 0, CASE WHEN 0 < 0 THEN -1 ELSE ((0 + 1) * 4 - 1) DIV 4 END, t.`kind` IS NULL, 0, :published
FROM `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY)
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (:ranges) AND (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted),
  bucket = IF(`rowfeed_positions_<feed>`.shard < 0, VALUES(bucket), `rowfeed_positions_<feed>`.bucket),
  shard = IF(`rowfeed_positions_<feed>`.shard < 0, VALUES(shard), `rowfeed_positions_<feed>`.shard)

-- name: assign_positions_of_runs (own_shards_in_rows_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, c.seq + CASE :places END, 0, CASE WHEN 0 < 0 THEN -1 ELSE ((0 + 1) * 4 - 1) DIV 4 END, t.`kind` IS NULL, 0, :published
FROM `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY)
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (:ranges) AND (1 = 1)

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted),
  bucket = IF(`rowfeed_positions_<feed>`.hidden = 0, VALUES(bucket), `rowfeed_positions_<feed>`.bucket),
  shard = IF(`rowfeed_positions_<feed>`.hidden = 0, VALUES(shard), `rowfeed_positions_<feed>`.shard)

-- name: assign_positions_of_runs (outbox_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, c.seq + CASE :places END, 0, 0, t.`kind` IS NULL, 0, :published
FROM `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY)
LEFT JOIN `items_<feed>` t FORCE INDEX (`place`) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (:ranges) AND (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))

ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)

-- name: assigned
:insert INTO `rowfeed_positions_<feed>` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`id`, :base + j.place, :shard, :bucket, t.`id` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id`
WHERE (t.`id` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`id` = c.`id`))


-- name: assigned (composite_key_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))


-- name: assigned (column_capture_feed)
:insert INTO `rowfeed_positions_<feed>` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`id`, :base + j.place, :shard, :bucket, t.`id` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id`
WHERE (1 = 1)


-- name: assigned (own_shards_in_rows_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (1 = 1)


-- name: assigned (outbox_feed)
:insert INTO `rowfeed_positions_<feed>` (`key_kind`, `id`, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c.`key_kind`, c.`id`, :base + j.place, :shard, :bucket, t.`kind` IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN `items_<feed>` t FORCE INDEX (`place`) ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
WHERE (t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`))


-- name: begin_publish
SET @rowfeed_wait_timeout = @@SESSION.wait_timeout,
  SESSION wait_timeout = CAST(LEAST(@@SESSION.wait_timeout, 10) AS SIGNED)

-- name: by_key
FORCE INDEX (PRIMARY)

-- name: by_key (outbox_feed)
FORCE INDEX (`place`)

-- name: delete_changes
DELETE c FROM JSON_TABLE(:seqs, '$[*]' COLUMNS (seq BIGINT PATH '$')) j
STRAIGHT_JOIN `rowfeed_changes_<feed>` c FORCE INDEX (PRIMARY) ON c.seq = j.seq

-- name: delete_run
DELETE FROM `rowfeed_changes_<feed>` WHERE seq >= :first AND seq <= :last ORDER BY seq LIMIT :count

-- name: end_publish
SET SESSION wait_timeout = @rowfeed_wait_timeout

-- name: identity
CASE WHEN CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') THEN CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */) END

-- name: identity_of_server
CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */)

-- name: in_key_mode
/*M! SET STATEMENT sql_mode='STRICT_ALL_TABLES,ALLOW_INVALID_DATES' FOR */ :verb
/*+ SET_VAR(sql_mode='STRICT_ALL_TABLES,ALLOW_INVALID_DATES') */

-- name: known
t.`id` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`id` = c.`id`)

-- name: known (composite_key_feed)
t.`kind` IS NOT NULL OR EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` old FORCE INDEX (PRIMARY)
  WHERE old.`key_kind` = c.`key_kind` AND old.`id` = c.`id`)

-- name: known (column_capture_feed)
1 = 1

-- name: lock_sequence
SELECT value, version, COALESCE(term, 0), updated_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */),
  @@GLOBAL.read_only, :unfit
FROM `rowfeed_sequences` WHERE name = :feed FOR UPDATE

-- name: oldest
SELECT seq, kind, `id` FROM `rowfeed_changes_<feed>` :range ORDER BY seq LIMIT :limit

-- name: oldest (composite_key_feed)
SELECT seq, kind, IF(TRUE, `key_kind`, CAST('' AS BINARY)), `id` FROM `rowfeed_changes_<feed>` :range ORDER BY seq LIMIT :limit

-- name: own_shard_of_key
-1

-- name: own_shard_of_key (own_shards_feed)
CASE WHEN t.`tenant` >= 0 AND t.`tenant` < 4 THEN t.`tenant` ELSE -1 END

-- name: place_of_run
WHEN c.seq <= :last THEN :less

-- name: read_only
@@GLOBAL.read_only

-- name: run
c.seq BETWEEN :first AND :last

-- name: shard_changes
`rowfeed_positions_<feed>`.shard < 0

-- name: shard_changes (own_shards_in_rows_feed)
`rowfeed_positions_<feed>`.hidden = 0

-- name: shard_changes_by_kind
`rowfeed_positions_<feed>`.shard < 0

-- name: shard_changes_by_kind (own_shards_in_rows_feed)
(`rowfeed_positions_<feed>`.hidden = 0 OR j.kind <> 0)

-- name: unless_hidden
ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)

-- name: unless_hidden (own_shards_feed)
ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted),
  bucket = IF(`rowfeed_positions_<feed>`.shard < 0, VALUES(bucket), `rowfeed_positions_<feed>`.bucket),
  shard = IF(`rowfeed_positions_<feed>`.shard < 0, VALUES(shard), `rowfeed_positions_<feed>`.shard)

-- name: unless_hidden (own_shards_in_rows_feed)
ON DUPLICATE KEY UPDATE
  feed_sync_id = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF(`rowfeed_positions_<feed>`.hidden = 1, `rowfeed_positions_<feed>`.published_at, VALUES(published_at)),
  deleted = VALUES(deleted),
  bucket = IF(`rowfeed_positions_<feed>`.hidden = 0, VALUES(bucket), `rowfeed_positions_<feed>`.bucket),
  shard = IF(`rowfeed_positions_<feed>`.hidden = 0, VALUES(shard), `rowfeed_positions_<feed>`.shard)

