-- name: all_changes
FROM "rowfeed_changes_<feed>"

-- name: all_of_shard
FROM "rowfeed_outbox_<feed>" WHERE shard BETWEEN :shard AND :shard :but ORDER BY shard, order_sequence

-- name: all_records
FROM "rowfeed_outbox_<feed>"

-- name: begin_page
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name

-- name: begin_page (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."key_kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name

-- name: begin_page (column_capture_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name

-- name: begin_page (own_shards_in_rows_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."key_kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name

-- name: begin_page (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name

-- name: blocking_page
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), (SELECT g."ulid" FROM "rowfeed_feed_<feed>" g WHERE g."shard" = CAST(:shard AS bigint)
ORDER BY g."ulid" DESC LIMIT 1), 0, 0, 0, :signature,
  p.place, p.present, p.v0, p.v1, p.v2, p.v3
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN "rowfeed_shards" h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT t."ulid" AS ordered, t."ulid" AS place, 1 AS present, t."key_kind" AS v0, t."id" AS v1, t."id" AS v2, t."kind" AS v3
  FROM "items_<feed>" t
  WHERE t."shard" = CAST(:shard AS bigint) AND t."ulid" > :after
  ORDER BY t."ulid" LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: blocking_page (blocking_feed)
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), (SELECT g."position" FROM "items_<feed>" g WHERE g."tenant" = CAST(:shard AS bigint)
ORDER BY g."position" DESC LIMIT 1), 0, 0, 0, :signature,
  p.place, p.present, p.v0, p.v1, p.v2, p.v3
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN "rowfeed_shards" h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT t."position" AS ordered, t."position" AS place, 1 AS present, t."kind" AS v0, t."id" AS v1, t."id" AS v2, t."kind" AS v3
  FROM "items_<feed>" t
  WHERE t."tenant" = CAST(:shard AS bigint) AND t."position" > :after
  ORDER BY t."position" LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: changes_above
FROM "rowfeed_changes_<feed>" WHERE seq > :above

-- name: changes_between
FROM "rowfeed_changes_<feed>" WHERE seq BETWEEN :first AND :last

-- name: end_page
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: end_page (composite_key_feed)
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: first_shard
SELECT shard FROM "rowfeed_outbox_<feed>" ORDER BY shard LIMIT 1

-- name: greatest_ulid
SELECT g."ulid" FROM "rowfeed_feed_<feed>" g WHERE g."shard" = CAST(:shard AS bigint)
ORDER BY g."ulid" DESC LIMIT 1

-- name: greatest_ulid (blocking_feed)
SELECT g."position" FROM "items_<feed>" g WHERE g."tenant" = CAST(:shard AS bigint)
ORDER BY g."position" DESC LIMIT 1

-- name: head
(SELECT value FROM "rowfeed_sequences" WHERE name = :feed)

-- name: in_any_order
LIMIT :more

-- name: in_order
ORDER BY p.feed_sync_id LIMIT :limit

-- name: indexed
EXISTS (SELECT 1 FROM pg_catalog.pg_index i
  WHERE i.indexrelid = CAST('' AS oid) AND i.indisvalid)

-- name: newest_of_shard
SELECT order_sequence FROM "rowfeed_outbox_<feed>" WHERE shard BETWEEN :shard AND :shard
ORDER BY shard DESC, order_sequence DESC LIMIT 1

-- name: next_shard
SELECT shard FROM "rowfeed_outbox_<feed>" WHERE shard > :above ORDER BY shard LIMIT 1

-- name: not_old_tombstone
NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: of_part
AND shard >= :from AND shard < :to

-- name: of_part (own_shards_feed)
AND (shard >= :from AND shard < :to OR shard < 0 AND (hidden = 1 OR deleted = 1
    AND NOT EXISTS (SELECT 1 FROM "items_<feed>" t WHERE o."key_kind" = t."kind" AND o."id" = t."id")))

-- name: of_shard_above
FROM "rowfeed_outbox_<feed>" WHERE (shard, order_sequence) > (:shard, :above) AND shard <= :shard :but
ORDER BY shard, order_sequence

-- name: of_shard_between
FROM "rowfeed_outbox_<feed>" WHERE (shard, order_sequence) >= (:shard, :first) AND (shard, order_sequence) <= (:shard, :last) :but
ORDER BY shard, order_sequence

-- name: outbox_page
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), (SELECT g."ulid" FROM "rowfeed_feed_<feed>" g WHERE g."shard" = CAST(:shard AS bigint)
ORDER BY g."ulid" DESC LIMIT 1), COALESCE(:waiting, 0),
  CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), :signature,
  p.place, p.present, p.v0, p.v1, p.v2, p.v3
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN "rowfeed_shards" h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT g."ulid" AS ordered, g."ulid" AS place,
    CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END AS present, g."key_kind" AS v0, g."id" AS v1, t."id" AS v2, t."kind" AS v3
  FROM "rowfeed_feed_<feed>" g LEFT JOIN "items_<feed>" t ON g."key_kind" = t."kind" AND g."id" = t."id"
  WHERE g."shard" = CAST(:shard AS bigint) AND g."ulid" > :after
  ORDER BY g."ulid" LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: outbox_page (blocking_feed)
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), (SELECT g."position" FROM "items_<feed>" g WHERE g."tenant" = CAST(:shard AS bigint)
ORDER BY g."position" DESC LIMIT 1), COALESCE(:waiting, 0),
  CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), :signature,
  p.place, p.present, p.v0, p.v1, p.v2, p.v3
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN "rowfeed_shards" h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT g."position" AS ordered, g."position" AS place,
    CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END AS present, g."kind" AS v0, g."id" AS v1, t."id" AS v2, t."kind" AS v3
  FROM "rowfeed_feed_<feed>" g LEFT JOIN "items_<feed>" t ON g."key_kind" = t."kind" AND g."id" = t."id"
  WHERE g."tenant" = CAST(:shard AS bigint) AND g."position" > :after
  ORDER BY g."position" LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: page
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed)
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."key_kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT "key_kind", "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed)
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page (column_capture_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed)
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page (own_shards_in_rows_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."key_kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT "key_kind", "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>" o
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT "key_kind", "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed)
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_part
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT x.* FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS b (n)
  CROSS JOIN LATERAL (
  SELECT "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE (bucket, feed_sync_id) > (b.n, :after) AND (bucket, feed_sync_id) <= (b.n, (SELECT value FROM "rowfeed_sequences" WHERE name = :feed))
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY bucket, feed_sync_id LIMIT :share) x
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_part (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."key_kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT x.* FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS b (n)
  CROSS JOIN LATERAL (
  SELECT "key_kind", "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE (bucket, feed_sync_id) > (b.n, :after) AND (bucket, feed_sync_id) <= (b.n, (SELECT value FROM "rowfeed_sequences" WHERE name = :feed))
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY bucket, feed_sync_id LIMIT :share) x
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_part (column_capture_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT x.* FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS b (n)
  CROSS JOIN LATERAL (
  SELECT "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE (bucket, feed_sync_id) > (b.n, :after) AND (bucket, feed_sync_id) <= (b.n, (SELECT value FROM "rowfeed_sequences" WHERE name = :feed))
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY bucket, feed_sync_id LIMIT :share) x
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_part (own_shards_in_rows_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."key_kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT x.* FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS b (n)
  CROSS JOIN LATERAL (
  SELECT "key_kind", "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE (bucket, feed_sync_id) > (b.n, :after) AND (bucket, feed_sync_id) <= (b.n, (SELECT value FROM "rowfeed_sequences" WHERE name = :feed))
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY bucket, feed_sync_id LIMIT :share) x
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_part (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT x.* FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS b (n)
  CROSS JOIN LATERAL (
  SELECT "key_kind", "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE (bucket, feed_sync_id) > (b.n, :after) AND (bucket, feed_sync_id) <= (b.n, (SELECT value FROM "rowfeed_sequences" WHERE name = :feed))
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY bucket, feed_sync_id LIMIT :share) x
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_rows
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r."id" AS "id", r.feed_sync_id AS feed_sync_id,
    COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM "items_<feed>" r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :row_of_part
    AND NOT EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" h
      WHERE h."id" = r."id" AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_rows (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."key_kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT "key_kind", "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r."kind" AS "key_kind", r."id" AS "id", r.feed_sync_id AS feed_sync_id,
    COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM "items_<feed>" r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :row_of_part
    AND NOT EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" h
      WHERE h."key_kind" = r."kind" AND h."id" = r."id" AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_rows (column_capture_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r."id" AS "id", r.feed_sync_id AS feed_sync_id,
    COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM "items_<feed>" r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :row_of_part
    AND NOT EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" h
      WHERE h."id" = r."id" AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_rows (own_shards_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."key_kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT "key_kind", "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>" o
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r."kind" AS "key_kind", r."id" AS "id", r.feed_sync_id AS feed_sync_id,
    CASE WHEN r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM "items_<feed>" r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :row_of_part
    AND NOT EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" h
      WHERE h."key_kind" = r."kind" AND h."id" = r."id" AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_rows (own_shards_in_rows_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  CASE WHEN f.capture = 'column' THEN :signature ELSE '' END,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."key_kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT "key_kind", "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>" o
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r."kind" AS "key_kind", r."id" AS "id", r.feed_sync_id AS feed_sync_id,
    CASE WHEN r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM "items_<feed>" r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :row_of_part
    AND NOT EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" h
      WHERE h."key_kind" = r."kind" AND h."id" = r."id" AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: page_of_rows (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t."kind" IS NULL THEN 0 ELSE 1 END, p."kind", p."id", t."id", t."kind"
FROM "rowfeed_feeds" f
JOIN "rowfeed_sequences" s ON s.name = f.name
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT "key_kind", "id", feed_sync_id, shard, deleted, hidden, published_at
  FROM "rowfeed_positions_<feed>"
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :of_part
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT r."kind" AS "key_kind", r."id" AS "id", r.feed_sync_id AS feed_sync_id,
    COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM "items_<feed>" r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = :feed) :row_of_part
    AND NOT EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" h
      WHERE h."key_kind" = r."kind" AND h."id" = r."id" AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
LEFT JOIN LATERAL (SELECT * FROM "items_<feed>" t WHERE p."key_kind" = t."kind" AND p."id" = t."id" OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: records_above
FROM "rowfeed_outbox_<feed>" WHERE order_sequence > :above

-- name: records_between
FROM "rowfeed_outbox_<feed>" WHERE order_sequence BETWEEN :first AND :last

-- name: row_of_part
AND COALESCE(r.shard, 0) >= :from AND COALESCE(r.shard, 0) < :to

-- name: row_of_part (own_shards_feed)
AND CASE WHEN r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END >= :from AND CASE WHEN r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END < :to

-- name: signature
:columns

-- name: signature_anywhere
:columns

-- name: signature_anywhere (blocking_feed)
CASE WHEN NOT EXISTS (SELECT 1 FROM pg_catalog.pg_index i
  WHERE i.indexrelid = CAST('' AS oid) AND i.indisvalid) THEN ''
  ELSE :columns END

-- name: signature_here
CASE WHEN f.database_identity <> :identity THEN ''
  ELSE :columns END

-- name: signature_here (blocking_feed)
CASE WHEN f.database_identity <> :identity THEN '' WHEN NOT EXISTS (SELECT 1 FROM pg_catalog.pg_index i
  WHERE i.indexrelid = CAST('' AS oid) AND i.indisvalid) THEN ''
  ELSE :columns END

-- name: signature_if_served
CASE WHEN f.state IN (:unserved) OR f.data_shards <> :data_shards THEN '' ELSE :columns END

-- name: still_in_rows
f.capture = 'column'

