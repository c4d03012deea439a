-- name: delete_places
DELETE g FROM `rowfeed_feed_<feed>` g FORCE INDEX (place)

-- name: delete_records
DELETE c FROM JSON_TABLE(:seqs, '$[*]' COLUMNS (seq BIGINT PATH '$')) j
STRAIGHT_JOIN `rowfeed_outbox_<feed>` c FORCE INDEX (PRIMARY) ON c.order_sequence = j.seq
STRAIGHT_JOIN `rowfeed_feed_<feed>` g FORCE INDEX (PRIMARY) ON g.`id` = c.`id` AND g.shard = c.shard

-- name: delete_records (composite_key_feed)
DELETE c FROM JSON_TABLE(:seqs, '$[*]' COLUMNS (seq BIGINT PATH '$')) j
STRAIGHT_JOIN `rowfeed_outbox_<feed>` c FORCE INDEX (PRIMARY) ON c.order_sequence = j.seq
STRAIGHT_JOIN `rowfeed_feed_<feed>` g FORCE INDEX (PRIMARY) ON g.`key_kind` = c.`key_kind` AND g.`id` = c.`id` AND g.shard = c.shard

-- name: place_behind
:insert INTO `rowfeed_feed_<feed>` (shard, ulid, `id`)
SELECT x.shard, UNHEX(CONCAT(LPAD(HEX(CAST((:time) * 65536 + :run AS UNSIGNED)), 16, '0'),
  LPAD(HEX(CAST(:batch + x.n AS UNSIGNED)), 16, '0'))), x.k0
FROM (SELECT :shard AS shard, s.live_from AS live, s.filled_by AS first_run, :at t.`id` AS k0,
    row_number() OVER (ORDER BY t.`id`) AS n
  FROM `items_<feed>` t
  JOIN `rowfeed_shards` s ON s.feed = :feed AND s.shard = :shard AND s.live_from > 0 AND s.filled_by > 0
  LEFT JOIN `rowfeed_feed_<feed>` g ON g.`id` = t.`id`
  LEFT JOIN (SELECT DISTINCT `id` FROM `rowfeed_outbox_<feed>`) c ON c.`id` = t.`id`
  WHERE :rows g.`id` IS NULL AND c.`id` IS NULL) x
ON DUPLICATE KEY UPDATE shard = `rowfeed_feed_<feed>`.shard

-- name: place_behind (composite_key_feed)
:insert INTO `rowfeed_feed_<feed>` (shard, ulid, `key_kind`, `id`)
SELECT x.shard, UNHEX(CONCAT(LPAD(HEX(CAST((:time) * 65536 + :run AS UNSIGNED)), 16, '0'),
  LPAD(HEX(CAST(:batch + x.n AS UNSIGNED)), 16, '0'))), x.k0, x.k1
FROM (SELECT :shard AS shard, s.live_from AS live, s.filled_by AS first_run, :at t.`kind` AS k0, t.`id` AS k1,
    row_number() OVER (ORDER BY t.`kind`, t.`id`) AS n
  FROM `items_<feed>` t
  JOIN `rowfeed_shards` s ON s.feed = :feed AND s.shard = :shard AND s.live_from > 0 AND s.filled_by > 0
  LEFT JOIN `rowfeed_feed_<feed>` g ON g.`key_kind` = t.`kind` AND g.`id` = t.`id`
  LEFT JOIN (SELECT DISTINCT `key_kind`, `id` FROM `rowfeed_outbox_<feed>`) c ON c.`key_kind` = t.`kind` AND c.`id` = t.`id`
  WHERE :rows g.`key_kind` IS NULL AND c.`key_kind` IS NULL) x
ON DUPLICATE KEY UPDATE shard = `rowfeed_feed_<feed>`.shard

-- name: place_records
:insert INTO `rowfeed_feed_<feed>` (shard, ulid, `id`)
SELECT o.shard, UNHEX(j.ulid), o.`id`
FROM JSON_TABLE(:places, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', ulid CHAR(32) PATH '$[1]')) j
STRAIGHT_JOIN `rowfeed_outbox_<feed>` o FORCE INDEX (PRIMARY) ON o.order_sequence = j.seq
WHERE o.shard = :shard ORDER BY j.seq
ON DUPLICATE KEY UPDATE shard = IF(UNHEX(j.ulid) > `rowfeed_feed_<feed>`.ulid, o.shard, `rowfeed_feed_<feed>`.shard),
  ulid = GREATEST(UNHEX(j.ulid), `rowfeed_feed_<feed>`.ulid)

-- name: place_records (composite_key_feed)
:insert INTO `rowfeed_feed_<feed>` (shard, ulid, `key_kind`, `id`)
SELECT o.shard, UNHEX(j.ulid), o.`key_kind`, o.`id`
FROM JSON_TABLE(:places, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', ulid CHAR(32) PATH '$[1]')) j
STRAIGHT_JOIN `rowfeed_outbox_<feed>` o FORCE INDEX (PRIMARY) ON o.order_sequence = j.seq
WHERE o.shard = :shard ORDER BY j.seq
ON DUPLICATE KEY UPDATE shard = IF(UNHEX(j.ulid) > `rowfeed_feed_<feed>`.ulid, o.shard, `rowfeed_feed_<feed>`.shard),
  ulid = GREATEST(UNHEX(j.ulid), `rowfeed_feed_<feed>`.ulid)

-- name: time_of_row
CASE WHEN x.at IS NULL OR x.first_run <> :run OR x.at >= x.live THEN x.live - 1 WHEN x.at < 0 THEN 0 ELSE x.at END

