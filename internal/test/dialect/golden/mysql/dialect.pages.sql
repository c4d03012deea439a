-- name: all_changes
FROM `rowfeed_changes_<feed>`

-- name: all_of_shard
FROM `rowfeed_outbox_<feed>` FORCE INDEX (shard) WHERE shard = :shard :but ORDER BY order_sequence

-- name: all_records
FROM `rowfeed_outbox_<feed>`

-- name: begin_page
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name

-- name: begin_page (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`key_kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name

-- name: begin_page (column_capture_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name

-- name: begin_page (own_shards_in_rows_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`key_kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name

-- name: begin_page (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name

-- name: blocking_page
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), :head, 0, 0, 0, :signature, p.place, p.present, p.v0, p.v1, p.v2, p.v3
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN `rowfeed_shards` h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT t.`ulid` AS ordered, t.`ulid` AS place, 1 AS present, IF(TRUE, t.`key_kind`, CAST('' AS BINARY)) AS v0, t.`id` AS v1, t.`id` AS v2, IF(TRUE, t.`kind`, CAST('' AS BINARY)) AS v3
  FROM `items_<feed>` t FORCE INDEX (`place`)
  WHERE t.`shard` = CAST(:shard AS DECIMAL(20,0)) AND t.`ulid` > :after AND t.`ulid` <= :head
  ORDER BY t.`ulid` LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: blocking_page (blocking_feed)
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), :head, 0, 0, 0, :signature, p.place, p.present, p.v0, p.v1, p.v2, p.v3
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN `rowfeed_shards` h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT t.`position` AS ordered, t.`position` AS place, 1 AS present, IF(TRUE, t.`kind`, CAST('' AS BINARY)) AS v0, t.`id` AS v1, t.`id` AS v2, IF(TRUE, t.`kind`, CAST('' AS BINARY)) AS v3
  FROM `items_<feed>` t FORCE INDEX (`place`)
  WHERE t.`tenant` = CAST(:shard AS DECIMAL(20,0)) AND t.`position` > :after AND t.`position` <= :head
  ORDER BY t.`position` LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: bucket
SELECT `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>` FORCE INDEX (bucket)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= :head
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: bucket (composite_key_feed)
SELECT `key_kind`, `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>` FORCE INDEX (bucket)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= :head
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: changes_among
FROM `rowfeed_changes_<feed>` FORCE INDEX (PRIMARY) WHERE :numbers

-- name: end_page
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: end_page (composite_key_feed)
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: filling
0, 0

-- name: filling (outbox_feed)
CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0)

-- name: first_shard
SELECT shard FROM `rowfeed_outbox_<feed>` FORCE INDEX (shard) ORDER BY shard LIMIT 1

-- name: greatest_ulid
SELECT g.`ulid` FROM `rowfeed_feed_<feed>` g WHERE g.`shard` = CAST(:shard AS DECIMAL(20,0))
ORDER BY g.`ulid` DESC LIMIT 1

-- name: greatest_ulid (blocking_feed)
SELECT g.`position` FROM `items_<feed>` g WHERE g.`tenant` = CAST(:shard AS DECIMAL(20,0))
ORDER BY g.`position` DESC LIMIT 1

-- name: head
SELECT s.value, COALESCE(s.term, 0), f.generation, @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL'
  WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE'
  /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END,
/*M! @@SESSION.autocommit = 1 AND @@SESSION.tx_isolation IN ('READ-COMMITTED', 'REPEATABLE-READ') OR */ 0,
/*M! @@SESSION.in_transaction + */ 0
FROM `rowfeed_sequences` s JOIN `rowfeed_feeds` f ON f.name = s.name
WHERE s.name = '<feed>'

-- name: head_of_shard
SELECT f.generation, @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL'
  WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE'
  /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END,
/*M! @@SESSION.autocommit = 1 AND @@SESSION.tx_isolation IN ('READ-COMMITTED', 'REPEATABLE-READ') OR */ 0,
/*M! @@SESSION.in_transaction + */ 0, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0),
  (SELECT g.`ulid` FROM `rowfeed_feed_<feed>` g WHERE g.`shard` = CAST(:shard AS DECIMAL(20,0))
ORDER BY g.`ulid` DESC LIMIT 1), COALESCE(:waiting, 0), CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0)
FROM `rowfeed_sequences` s JOIN `rowfeed_feeds` f ON f.name = s.name
LEFT JOIN `rowfeed_shards` h ON h.feed = f.name AND h.shard = :shard
WHERE f.name = :feed

-- name: head_of_shard (blocking_feed)
SELECT f.generation, @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL'
  WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE'
  /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END,
/*M! @@SESSION.autocommit = 1 AND @@SESSION.tx_isolation IN ('READ-COMMITTED', 'REPEATABLE-READ') OR */ 0,
/*M! @@SESSION.in_transaction + */ 0, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0),
  (SELECT g.`position` FROM `items_<feed>` g WHERE g.`tenant` = CAST(:shard AS DECIMAL(20,0))
ORDER BY g.`position` DESC LIMIT 1), 0, 0, 0
FROM `rowfeed_sequences` s JOIN `rowfeed_feeds` f ON f.name = s.name
LEFT JOIN `rowfeed_shards` h ON h.feed = f.name AND h.shard = :shard
WHERE f.name = :feed

-- name: in_any_order
LIMIT :more

-- name: in_order
ORDER BY p.feed_sync_id LIMIT :limit

-- name: newest_of_shard
SELECT order_sequence FROM `rowfeed_outbox_<feed>` FORCE INDEX (shard) WHERE shard = :shard ORDER BY order_sequence DESC LIMIT 1

-- name: next_shard
SELECT shard FROM `rowfeed_outbox_<feed>` FORCE INDEX (shard) WHERE shard > :above ORDER BY shard LIMIT 1

-- name: not_old_tombstone
NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: of_part
AND shard >= :from AND shard < :to

-- name: of_part (own_shards_feed)
AND (shard >= :from AND shard < :to OR shard < 0 AND (hidden = 1 OR deleted = 1
    AND NOT EXISTS (SELECT 1 FROM `items_<feed>` t WHERE o.`key_kind` = t.`kind` AND o.`id` = t.`id`)))

-- name: of_shard_among
FROM `rowfeed_outbox_<feed>` FORCE INDEX (shard) WHERE shard = :shard /*M! AND (:numbers) */ :but ORDER BY order_sequence

-- name: one_of_buckets
(SELECT `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>` FORCE INDEX (bucket)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= :head
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :share)

-- name: one_of_buckets (composite_key_feed)
(SELECT `key_kind`, `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>` FORCE INDEX (bucket)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= :head
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :share)

-- name: outbox_page
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), :head, COALESCE(:waiting, 0), CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), :signature,
  p.place, p.present, p.v0, p.v1, p.v2, p.v3
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN `rowfeed_shards` h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT g.`ulid` AS ordered, g.`ulid` AS place,
    CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END AS present, IF(TRUE, g.`key_kind`, CAST('' AS BINARY)) AS v0, g.`id` AS v1, t.`id` AS v2, IF(TRUE, t.`kind`, CAST('' AS BINARY)) AS v3
  FROM `rowfeed_feed_<feed>` g FORCE INDEX (`place`) LEFT JOIN `items_<feed>` t ON g.`key_kind` = t.`kind` AND g.`id` = t.`id`
  WHERE g.`shard` = CAST(:shard AS DECIMAL(20,0)) AND g.`ulid` > :after AND g.`ulid` <= :head
  ORDER BY g.`ulid` LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: outbox_page (blocking_feed)
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), :head, 0, 0, 0, :signature,
  p.place, p.present, p.v0, p.v1, p.v2, p.v3
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN `rowfeed_shards` h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT g.`position` AS ordered, g.`position` AS place,
    CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END AS present, IF(TRUE, g.`kind`, CAST('' AS BINARY)) AS v0, g.`id` AS v1, t.`id` AS v2, IF(TRUE, t.`kind`, CAST('' AS BINARY)) AS v3
  FROM `rowfeed_feed_<feed>` g FORCE INDEX (`place`) LEFT JOIN `items_<feed>` t ON g.`key_kind` = t.`kind` AND g.`id` = t.`id`
  WHERE g.`tenant` = CAST(:shard AS DECIMAL(20,0)) AND g.`position` > :after AND g.`position` <= :head
  ORDER BY g.`position` LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: page
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>`
  WHERE feed_sync_id > :after AND feed_sync_id <= :head
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`key_kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT `key_kind`, `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>`
  WHERE feed_sync_id > :after AND feed_sync_id <= :head
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page (column_capture_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>`
  WHERE feed_sync_id > :after AND feed_sync_id <= :head
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page (own_shards_in_rows_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`key_kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT `key_kind`, `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>` o
  WHERE feed_sync_id > :after AND feed_sync_id <= :head :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT `key_kind`, `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>`
  WHERE feed_sync_id > :after AND feed_sync_id <= :head
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_part
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (:buckets
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_part (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`key_kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (:buckets
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_part (column_capture_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (:buckets
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_part (own_shards_in_rows_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`key_kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (:buckets
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_part (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (:buckets
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_rows
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>`
  WHERE feed_sync_id > :after AND feed_sync_id <= :head :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r.`id` AS `id`, r.feed_sync_id AS feed_sync_id,
    COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM `items_<feed>` r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= :head :row_of_part
    AND NOT EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` h
      WHERE h.`id` = r.`id` AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_rows (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`key_kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT `key_kind`, `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>`
  WHERE feed_sync_id > :after AND feed_sync_id <= :head :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r.`kind` AS `key_kind`, r.`id` AS `id`, r.feed_sync_id AS feed_sync_id,
    COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM `items_<feed>` r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= :head :row_of_part
    AND NOT EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` h
      WHERE h.`key_kind` = r.`kind` AND h.`id` = r.`id` AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_rows (column_capture_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>`
  WHERE feed_sync_id > :after AND feed_sync_id <= :head :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r.`id` AS `id`, r.feed_sync_id AS feed_sync_id,
    COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM `items_<feed>` r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= :head :row_of_part
    AND NOT EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` h
      WHERE h.`id` = r.`id` AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_rows (own_shards_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`key_kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT `key_kind`, `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>` o
  WHERE feed_sync_id > :after AND feed_sync_id <= :head :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r.`kind` AS `key_kind`, r.`id` AS `id`, r.feed_sync_id AS feed_sync_id,
    CASE WHEN r.`tenant` >= 0 AND r.`tenant` < 4 THEN r.`tenant` ELSE -1 END AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM `items_<feed>` r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= :head :row_of_part
    AND NOT EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` h
      WHERE h.`key_kind` = r.`kind` AND h.`id` = r.`id` AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_rows (own_shards_in_rows_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`key_kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT `key_kind`, `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>` o
  WHERE feed_sync_id > :after AND feed_sync_id <= :head :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r.`kind` AS `key_kind`, r.`id` AS `id`, r.feed_sync_id AS feed_sync_id,
    CASE WHEN r.`tenant` >= 0 AND r.`tenant` < 4 THEN r.`tenant` ELSE -1 END AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM `items_<feed>` r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= :head :row_of_part
    AND NOT EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` h
      WHERE h.`key_kind` = r.`kind` AND h.`id` = r.`id` AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: page_of_rows (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.`kind` IS NULL THEN 0 ELSE 1 END, IF(TRUE, p.`kind`, CAST('' AS BINARY)), p.`id`, t.`id`, IF(TRUE, t.`kind`, CAST('' AS BINARY))
FROM `rowfeed_feeds` f
JOIN `rowfeed_sequences` s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT `key_kind`, `id`, feed_sync_id, shard, deleted, hidden, published_at
  FROM `rowfeed_positions_<feed>`
  WHERE feed_sync_id > :after AND feed_sync_id <= :head :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r.`kind` AS `key_kind`, r.`id` AS `id`, r.feed_sync_id AS feed_sync_id,
    COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM `items_<feed>` r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= :head :row_of_part
    AND NOT EXISTS (SELECT 1 FROM `rowfeed_positions_<feed>` h
      WHERE h.`key_kind` = r.`kind` AND h.`id` = r.`id` AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN `items_<feed>` t FORCE INDEX (PRIMARY) ON p.`key_kind` = t.`kind` AND p.`id` = t.`id`
WHERE f.name = :feed
:order

-- name: record_waits
0

-- name: record_waits (outbox_feed)
COALESCE(:waiting, 0)

-- name: records_among
FROM `rowfeed_outbox_<feed>` FORCE INDEX (PRIMARY) WHERE :numbers

-- name: row_of_part
AND COALESCE(r.shard, 0) >= :from AND COALESCE(r.shard, 0) < :to

-- name: row_of_part (own_shards_feed)
AND CASE WHEN r.`tenant` >= 0 AND r.`tenant` < 4 THEN r.`tenant` ELSE -1 END >= :from AND CASE WHEN r.`tenant` >= 0 AND r.`tenant` < 4 THEN r.`tenant` ELSE -1 END < :to

-- name: signature
:columns

-- name: signature_anywhere
:columns

-- name: signature_here
CASE WHEN f.database_identity <> :identity THEN '' ELSE :columns END

-- name: signature_if_served
CASE WHEN f.state IN (:unserved) OR f.data_shards <> :data_shards THEN '' ELSE :columns END

-- name: state_of_head
SELECT CONCAT_WS(' ', f.generation, s.value, s.term)
FROM `rowfeed_sequences` s JOIN `rowfeed_feeds` f ON f.name = s.name
WHERE s.name = '<feed>'

-- name: state_of_head (outbox_feed)
SELECT CONCAT_WS(' ', f.generation, h.ulid_high, h.ulid_low)
FROM `rowfeed_feeds` f LEFT JOIN `rowfeed_shards` h ON h.feed = f.name AND h.shard = :shard
WHERE f.name = '<feed>'

-- name: still_in_rows
f.capture = 'column'

-- name: unfit
CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL'
  WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE'
  /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END

-- name: variables
@@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL'
  WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE'
  /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END,
/*M! @@SESSION.autocommit = 1 AND @@SESSION.tx_isolation IN ('READ-COMMITTED', 'REPEATABLE-READ') OR */ 0,
/*M! @@SESSION.in_transaction + */ 0

