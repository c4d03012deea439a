-- name: all_changes
FROM [rowfeed_changes_<feed>]

-- name: all_of_shard
FROM [rowfeed_outbox_<feed>] WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard :but ORDER BY order_sequence

-- name: all_records
FROM [rowfeed_outbox_<feed>]

-- name: begin_page
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[id] IS NULL THEN 0 ELSE 1 END, p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name

-- name: begin_page (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[kind] IS NULL THEN 0 ELSE 1 END, CONVERT(nvarchar(max), p.[key_kind]), p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name

-- name: begin_page (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[kind] IS NULL THEN 0 ELSE 1 END, CONVERT(nvarchar(max), p.[kind]), p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name

-- name: blocking_page
SET NOCOUNT ON;
:identity
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), (SELECT TOP (1) g.[ulid] FROM [rowfeed_feed_<feed>] AS g WITH (INDEX([place]), FORCESEEK)
WHERE g.[shard] = :shard ORDER BY g.[ulid] DESC), 0, 0, 0, :signature, p.place, p.present,
  p.v0, p.v1, p.v2, p.v3
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN [rowfeed_shards] AS h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT TOP (:limit) t.[ulid] AS place, 1 AS present, CONVERT(nvarchar(max), t.[key_kind]) AS v0, t.[id] AS v1, t.[id] AS v2, CONVERT(nvarchar(max), t.[kind]) AS v3
  FROM [items_<feed>] AS t WITH (INDEX([place]), FORCESEEK)
  WHERE t.[shard] = :shard AND t.[ulid] > :after
  ORDER BY t.[ulid]) AS p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.place
OPTION (FORCE ORDER, MAXDOP 1)

-- name: blocking_page (blocking_feed)
SET NOCOUNT ON;
:identity
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), (SELECT TOP (1) g.[position] FROM [items_<feed>] AS g WITH (INDEX([place]), FORCESEEK)
WHERE g.[tenant] = :shard ORDER BY g.[position] DESC), 0, 0, 0, :signature, p.place, p.present,
  p.v0, p.v1, p.v2, p.v3
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN [rowfeed_shards] AS h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT TOP (:limit) t.[position] AS place, 1 AS present, CONVERT(nvarchar(max), t.[kind]) AS v0, t.[id] AS v1, t.[id] AS v2, CONVERT(nvarchar(max), t.[kind]) AS v3
  FROM [items_<feed>] AS t WITH (INDEX([place]), FORCESEEK)
  WHERE t.[tenant] = :shard AND t.[position] > :after
  ORDER BY t.[position]) AS p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.place
OPTION (FORCE ORDER, MAXDOP 1)

-- name: bucket
SELECT [id], feed_sync_id, shard, deleted, hidden, published_at
  FROM [rowfeed_positions_<feed>] WITH (INDEX(by_bucket), FORCESEEK)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed)
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: bucket (composite_key_feed)
SELECT [key_kind], [id], feed_sync_id, shard, deleted, hidden, published_at
  FROM [rowfeed_positions_<feed>] WITH (INDEX(by_bucket), FORCESEEK)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed)
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: changes_above
FROM [rowfeed_changes_<feed>] WHERE seq > :above

-- name: changes_between
FROM [rowfeed_changes_<feed>] WHERE seq BETWEEN :first AND :last

-- name: end_page
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: end_page (composite_key_feed)
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: first_shard
SELECT TOP (1) shard FROM [rowfeed_outbox_<feed>] WITH (INDEX(by_shard)) ORDER BY shard

-- name: greatest_ulid
SELECT TOP (1) g.[ulid] FROM [rowfeed_feed_<feed>] AS g WITH (INDEX([place]), FORCESEEK)
WHERE g.[shard] = :shard ORDER BY g.[ulid] DESC

-- name: greatest_ulid (blocking_feed)
SELECT TOP (1) g.[position] FROM [items_<feed>] AS g WITH (INDEX([place]), FORCESEEK)
WHERE g.[tenant] = :shard ORDER BY g.[position] DESC

-- name: head
(SELECT value FROM [rowfeed_sequences] WHERE name = :feed)

-- name: in_any_order
ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :more ROWS ONLY

-- name: in_order
ORDER BY p.feed_sync_id OFFSET 0 ROWS FETCH NEXT :limit ROWS ONLY

-- name: newest_of_shard
SELECT TOP (1) order_sequence FROM [rowfeed_outbox_<feed>] WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard
ORDER BY order_sequence DESC

-- name: next_shard
SELECT TOP (1) shard FROM [rowfeed_outbox_<feed>] WITH (INDEX(by_shard), FORCESEEK) WHERE shard > :above ORDER BY shard

-- name: not_old_tombstone
NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: of_part
AND shard >= :from AND shard < :to

-- name: of_shard_above
FROM [rowfeed_outbox_<feed>] WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard AND order_sequence > :above :but
ORDER BY order_sequence

-- name: of_shard_between
FROM [rowfeed_outbox_<feed>] WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard AND order_sequence BETWEEN :first AND :last :but
ORDER BY order_sequence

-- name: one_of_buckets
SELECT * FROM (SELECT [id], feed_sync_id, shard, deleted, hidden, published_at
  FROM [rowfeed_positions_<feed>] WITH (INDEX(by_bucket), FORCESEEK)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed)
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id OFFSET 0 ROWS FETCH NEXT :share ROWS ONLY) AS b

-- name: one_of_buckets (composite_key_feed)
SELECT * FROM (SELECT [key_kind], [id], feed_sync_id, shard, deleted, hidden, published_at
  FROM [rowfeed_positions_<feed>] WITH (INDEX(by_bucket), FORCESEEK)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed)
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id OFFSET 0 ROWS FETCH NEXT :share ROWS ONLY) AS b

-- name: open_state_of_head
SET NOCOUNT ON; SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
SELECT CONCAT(f.generation, N' ', s.value, N' ', s.term)
FROM [rowfeed_sequences] AS s JOIN [rowfeed_feeds] AS f ON f.name = s.name
WHERE s.name = :feed

-- name: open_state_of_head (outbox_feed)
SET NOCOUNT ON; SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
SELECT CONCAT(f.generation, N' ', h.ulid_high, N' ', h.ulid_low)
FROM [rowfeed_feeds] AS f LEFT JOIN [rowfeed_shards] AS h ON h.feed = f.name AND h.shard = :shard
WHERE f.name = :feed

-- name: outbox_page
SET NOCOUNT ON;
:identity
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), (SELECT TOP (1) g.[ulid] FROM [rowfeed_feed_<feed>] AS g WITH (INDEX([place]), FORCESEEK)
WHERE g.[shard] = :shard ORDER BY g.[ulid] DESC), COALESCE(:waiting, 0),
  CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), :signature, p.place, p.present,
  p.v0, p.v1, p.v2, p.v3
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN [rowfeed_shards] AS h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT TOP (:limit) g.[ulid] AS place,
    CASE WHEN t.[kind] IS NULL THEN 0 ELSE 1 END AS present, CONVERT(nvarchar(max), g.[key_kind]) AS v0, g.[id] AS v1, t.[id] AS v2, CONVERT(nvarchar(max), t.[kind]) AS v3
  FROM [rowfeed_feed_<feed>] AS g WITH (INDEX([place]), FORCESEEK)
  LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON g.[key_kind] = t.[kind] AND g.[id] = t.[id]
  WHERE g.[shard] = :shard AND g.[ulid] > :after
  ORDER BY g.[ulid]) AS p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.place
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: outbox_page (blocking_feed)
SET NOCOUNT ON;
:identity
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), (SELECT TOP (1) g.[position] FROM [items_<feed>] AS g WITH (INDEX([place]), FORCESEEK)
WHERE g.[tenant] = :shard ORDER BY g.[position] DESC), COALESCE(:waiting, 0),
  CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), :signature, p.place, p.present,
  p.v0, p.v1, p.v2, p.v3
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN [rowfeed_shards] AS h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT TOP (:limit) g.[position] AS place,
    CASE WHEN t.[kind] IS NULL THEN 0 ELSE 1 END AS present, CONVERT(nvarchar(max), g.[kind]) AS v0, g.[id] AS v1, t.[id] AS v2, CONVERT(nvarchar(max), t.[kind]) AS v3
  FROM [rowfeed_feed_<feed>] AS g WITH (INDEX([place]), FORCESEEK)
  LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON g.[key_kind] = t.[kind] AND g.[id] = t.[id]
  WHERE g.[tenant] = :shard AND g.[position] > :after
  ORDER BY g.[position]) AS p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.place
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: page
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[id] IS NULL THEN 0 ELSE 1 END, p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) [id], feed_sync_id, shard, deleted, hidden, published_at
  FROM [rowfeed_positions_<feed>] WITH (INDEX(by_position), FORCESEEK)
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed)
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id) AS p ON 1 = 1
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: page (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[kind] IS NULL THEN 0 ELSE 1 END, CONVERT(nvarchar(max), p.[key_kind]), p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) [key_kind], [id], feed_sync_id, shard, deleted, hidden, published_at
  FROM [rowfeed_positions_<feed>] WITH (INDEX(by_position), FORCESEEK)
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed)
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id) AS p ON 1 = 1
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: page (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[kind] IS NULL THEN 0 ELSE 1 END, CONVERT(nvarchar(max), p.[kind]), p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) [key_kind], [id], feed_sync_id, shard, deleted, hidden, published_at
  FROM [rowfeed_positions_<feed>] WITH (INDEX(by_position), FORCESEEK)
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed)
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id) AS p ON 1 = 1
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: page_of_part
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[id] IS NULL THEN 0 ELSE 1 END, p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) x.* FROM (:buckets) AS x
  ORDER BY x.feed_sync_id) AS p ON 1 = 1
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: page_of_part (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[kind] IS NULL THEN 0 ELSE 1 END, CONVERT(nvarchar(max), p.[key_kind]), p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) x.* FROM (:buckets) AS x
  ORDER BY x.feed_sync_id) AS p ON 1 = 1
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: page_of_part (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[kind] IS NULL THEN 0 ELSE 1 END, CONVERT(nvarchar(max), p.[kind]), p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) x.* FROM (:buckets) AS x
  ORDER BY x.feed_sync_id) AS p ON 1 = 1
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: page_of_rows
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[id] IS NULL THEN 0 ELSE 1 END, p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) x.* FROM (
  SELECT * FROM (SELECT TOP (:limit) [id], feed_sync_id, shard, deleted, hidden, published_at
    FROM [rowfeed_positions_<feed>] WITH (INDEX(by_position), FORCESEEK)
    WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed) :of_part
      AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
    ORDER BY feed_sync_id) AS own
  UNION ALL SELECT * FROM (SELECT TOP (:limit) r.[id] AS [id], r.feed_sync_id AS feed_sync_id,
      COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, CONVERT(bigint, 0) AS published_at
    FROM [items_<feed>] AS r WITH (INDEX([rowfeed_<feed>_row_position]), FORCESEEK)
    WHERE r.feed_sync_id > :after AND r.feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed) :row_of_part
      AND NOT EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] AS h WITH (FORCESEEK)
        WHERE h.[id] = r.[id] AND (h.hidden = 1 OR h.feed_sync_id > r.feed_sync_id))
    ORDER BY r.feed_sync_id) AS placed) AS x
  ORDER BY x.feed_sync_id) AS p ON 1 = 1
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: page_of_rows (composite_key_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[kind] IS NULL THEN 0 ELSE 1 END, CONVERT(nvarchar(max), p.[key_kind]), p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) x.* FROM (
  SELECT * FROM (SELECT TOP (:limit) [key_kind], [id], feed_sync_id, shard, deleted, hidden, published_at
    FROM [rowfeed_positions_<feed>] WITH (INDEX(by_position), FORCESEEK)
    WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed) :of_part
      AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
    ORDER BY feed_sync_id) AS own
  UNION ALL SELECT * FROM (SELECT TOP (:limit) r.[kind] AS [key_kind], r.[id] AS [id], r.feed_sync_id AS feed_sync_id,
      COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, CONVERT(bigint, 0) AS published_at
    FROM [items_<feed>] AS r WITH (INDEX([rowfeed_<feed>_row_position]), FORCESEEK)
    WHERE r.feed_sync_id > :after AND r.feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed) :row_of_part
      AND NOT EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] AS h WITH (FORCESEEK)
        WHERE h.[key_kind] = r.[kind] AND h.[id] = r.[id] AND (h.hidden = 1 OR h.feed_sync_id > r.feed_sync_id))
    ORDER BY r.feed_sync_id) AS placed) AS x
  ORDER BY x.feed_sync_id) AS p ON 1 = 1
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: page_of_rows (blocking_feed)
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[kind] IS NULL THEN 0 ELSE 1 END, CONVERT(nvarchar(max), p.[kind]), p.[id], t.[id], CONVERT(nvarchar(max), t.[kind])
FROM [rowfeed_feeds] AS f
JOIN [rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) x.* FROM (
  SELECT * FROM (SELECT TOP (:limit) [key_kind], [id], feed_sync_id, shard, deleted, hidden, published_at
    FROM [rowfeed_positions_<feed>] WITH (INDEX(by_position), FORCESEEK)
    WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed) :of_part
      AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
    ORDER BY feed_sync_id) AS own
  UNION ALL SELECT * FROM (SELECT TOP (:limit) r.[kind] AS [key_kind], r.[id] AS [id], r.feed_sync_id AS feed_sync_id,
      COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, CONVERT(bigint, 0) AS published_at
    FROM [items_<feed>] AS r WITH (INDEX([rowfeed_<feed>_row_position]), FORCESEEK)
    WHERE r.feed_sync_id > :after AND r.feed_sync_id <= (SELECT value FROM [rowfeed_sequences] WHERE name = :feed) :row_of_part
      AND NOT EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] AS h WITH (FORCESEEK)
        WHERE h.[key_kind] = r.[kind] AND h.[id] = r.[id] AND (h.hidden = 1 OR h.feed_sync_id > r.feed_sync_id))
    ORDER BY r.feed_sync_id) AS placed) AS x
  ORDER BY x.feed_sync_id) AS p ON 1 = 1
LEFT JOIN [items_<feed>] AS t WITH (FORCESEEK) ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: records_above
FROM [rowfeed_outbox_<feed>] WHERE order_sequence > :above

-- name: records_between
FROM [rowfeed_outbox_<feed>] WHERE order_sequence BETWEEN :first AND :last

-- name: row_of_part
AND COALESCE(r.shard, 0) >= :from AND COALESCE(r.shard, 0) < :to

-- name: signature
COALESCE((SELECT CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
    (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
  FROM sys.objects AS o WHERE o.object_id = OBJECT_ID(N'[items_<feed>]')), N'')

-- name: signature_anywhere
COALESCE((SELECT CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
    (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
  FROM sys.objects AS o WHERE o.object_id = OBJECT_ID(N'[items_<feed>]')), N'')

-- name: signature_here
CASE WHEN f.database_identity <> NULLIF(@identity, N'') THEN N'' ELSE COALESCE((SELECT CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
    (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
  FROM sys.objects AS o WHERE o.object_id = OBJECT_ID(N'[items_<feed>]')), N'') END

-- name: signature_if_served
CASE WHEN f.state IN (:unserved) OR f.data_shards <> :data_shards THEN N'' ELSE COALESCE((SELECT CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
    (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
  FROM sys.objects AS o WHERE o.object_id = OBJECT_ID(N'[items_<feed>]')), N'') END

-- name: state_of_head
SELECT CONCAT(f.generation, N' ', s.value, N' ', s.term)
FROM [rowfeed_sequences] AS s JOIN [rowfeed_feeds] AS f ON f.name = s.name
WHERE s.name = :feed

-- name: state_of_head (outbox_feed)
SELECT CONCAT(f.generation, N' ', h.ulid_high, N' ', h.ulid_low)
FROM [rowfeed_feeds] AS f LEFT JOIN [rowfeed_shards] AS h ON h.feed = f.name AND h.shard = :shard
WHERE f.name = :feed

