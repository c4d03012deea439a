-- name: count_at_position
SELECT count(*) FROM [items_<feed>] t WHERE t.feed_sync_id = :position

-- name: count_vanished
SELECT COUNT_BIG(*) FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[id] = t.[id] LEFT JOIN (SELECT DISTINCT [id] FROM [rowfeed_changes_<feed>]) c ON c.[id] = p.[id]
WHERE p.deleted = 0 AND t.[id] IS NULL AND c.[id] IS NULL

-- name: count_vanished (composite_key_feed)
SELECT COUNT_BIG(*) FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[key_kind] = t.[kind] AND p.[id] = t.[id] LEFT JOIN (SELECT DISTINCT [key_kind], [id] FROM [rowfeed_changes_<feed>]) c ON c.[key_kind] = p.[key_kind] AND c.[id] = p.[id]
WHERE p.deleted = 0 AND t.[kind] IS NULL AND c.[key_kind] IS NULL

-- name: deleted_position_with_row
FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[id] = t.[id] LEFT JOIN (SELECT DISTINCT [id] FROM [rowfeed_changes_<feed>]) c ON c.[id] = p.[id]
WHERE p.deleted = 1
  AND NOT (t.[id] IS NULL) AND c.[id] IS NULL

-- name: deleted_position_with_row (composite_key_feed)
FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[key_kind] = t.[kind] AND p.[id] = t.[id] LEFT JOIN (SELECT DISTINCT [key_kind], [id] FROM [rowfeed_changes_<feed>]) c ON c.[key_kind] = p.[key_kind] AND c.[id] = p.[id]
WHERE p.deleted = 1
  AND NOT (t.[kind] IS NULL) AND c.[key_kind] IS NULL

-- name: deleted_position_with_row (column_capture_feed)
FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[id] = t.[id] LEFT JOIN (SELECT DISTINCT [id] FROM [rowfeed_changes_<feed>]) c ON c.[id] = p.[id]
WHERE p.deleted = 1 AND p.hidden = 0 AND t.feed_sync_id IS NOT NULL
  AND NOT (t.[id] IS NULL) AND c.[id] IS NULL

-- name: deleted_position_with_row (own_shards_in_rows_feed)
FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[key_kind] = t.[kind] AND p.[id] = t.[id] LEFT JOIN (SELECT DISTINCT [key_kind], [id] FROM [rowfeed_changes_<feed>]) c ON c.[key_kind] = p.[key_kind] AND c.[id] = p.[id]
WHERE p.deleted = 1 AND p.hidden = 0 AND t.feed_sync_id IS NOT NULL
  AND NOT (t.[kind] IS NULL) AND c.[key_kind] IS NULL

-- name: find_positions
SELECT p.[id] :rule ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: find_positions (composite_key_feed)
SELECT CONVERT(nvarchar(max), p.[key_kind]), p.[id] :rule ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: find_rows
SELECT t.[id] :rule ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: find_rows (composite_key_feed)
SELECT CONVERT(nvarchar(max), t.[kind]), t.[id] :rule ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: find_shared_positions
SELECT feed_sync_id FROM [rowfeed_positions_<feed>] GROUP BY feed_sync_id HAVING count(*) > 1 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: find_shared_positions (column_capture_feed)
SELECT feed_sync_id FROM (SELECT feed_sync_id FROM [rowfeed_positions_<feed>]
  UNION ALL SELECT feed_sync_id FROM [items_<feed>] WHERE feed_sync_id IS NOT NULL) x
GROUP BY feed_sync_id HAVING count(*) > 1 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: head
SELECT value, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) FROM [rowfeed_sequences] WHERE name = :feed

-- name: heads_of_named_shards
SELECT s.shard, (SELECT g.[ulid] FROM [rowfeed_feed_<feed>] g WHERE g.[shard] = s.shard
  ORDER BY g.[ulid] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY)
FROM [rowfeed_shards] s WHERE s.feed = :feed
ORDER BY CASE WHEN s.shard IN (:named) THEN 0 ELSE 1 END, s.shard OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: heads_of_named_shards (blocking_feed)
SELECT s.shard, (SELECT g.[position] FROM [items_<feed>] g WHERE g.[tenant] = s.shard
  ORDER BY g.[position] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY)
FROM [rowfeed_shards] s WHERE s.feed = :feed
ORDER BY CASE WHEN s.shard IN (:named) THEN 0 ELSE 1 END, s.shard OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: heads_of_shards
SELECT s.shard, (SELECT g.[ulid] FROM [rowfeed_feed_<feed>] g WHERE g.[shard] = s.shard
  ORDER BY g.[ulid] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY)
FROM [rowfeed_shards] s WHERE s.feed = :feed ORDER BY s.shard OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: heads_of_shards (blocking_feed)
SELECT s.shard, (SELECT g.[position] FROM [items_<feed>] g WHERE g.[tenant] = s.shard
  ORDER BY g.[position] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY)
FROM [rowfeed_shards] s WHERE s.feed = :feed ORDER BY s.shard OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: impossible_rows
t.feed_sync_id < 1 OR t.feed_sync_id > (SELECT value FROM [rowfeed_sequences] WHERE name = :feed)
  OR t.feed_sync_id IN (SELECT feed_sync_id FROM (SELECT feed_sync_id FROM (SELECT feed_sync_id FROM [rowfeed_positions_<feed>]
  UNION ALL SELECT feed_sync_id FROM [items_<feed>] WHERE feed_sync_id IS NOT NULL) x
GROUP BY feed_sync_id HAVING count(*) > 1) shared)
  OR t.feed_sync_id > :former AND t.feed_sync_id <= :now

-- name: position_above_sequence
FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[id] = t.[id] JOIN [rowfeed_sequences] s ON s.name = N'<feed>'
WHERE (p.feed_sync_id > s.value)

-- name: position_above_sequence (composite_key_feed)
FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[key_kind] = t.[kind] AND p.[id] = t.[id] JOIN [rowfeed_sequences] s ON s.name = N'<feed>'
WHERE (p.feed_sync_id > s.value)

-- name: position_without_row
FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[id] = t.[id] LEFT JOIN (SELECT DISTINCT [id] FROM [rowfeed_changes_<feed>]) c ON c.[id] = p.[id]
WHERE p.deleted = 0 AND t.[id] IS NULL AND c.[id] IS NULL

-- name: position_without_row (composite_key_feed)
FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[key_kind] = t.[kind] AND p.[id] = t.[id] LEFT JOIN (SELECT DISTINCT [key_kind], [id] FROM [rowfeed_changes_<feed>]) c ON c.[key_kind] = p.[key_kind] AND c.[id] = p.[id]
WHERE p.deleted = 0 AND t.[kind] IS NULL AND c.[key_kind] IS NULL

-- name: positions_and_rows
FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[id] = t.[id]

-- name: positions_and_rows (composite_key_feed)
FROM [rowfeed_positions_<feed>] p LEFT JOIN [items_<feed>] t ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]

-- name: record_is_unchanged
SELECT count(*) FROM [rowfeed_feeds] WHERE name = :feed AND generation = :generation
  AND data_shards = :data_shards AND state IN (:filling, :active)

-- name: record_placed
INSERT INTO [rowfeed_changes_<feed>] ([id], kind) SELECT x.k0, :placed
FROM (SELECT p.[id] AS k0 FROM [rowfeed_positions_<feed>] p WHERE p.feed_sync_id IN (:positions) ) x

-- name: record_placed (composite_key_feed)
INSERT INTO [rowfeed_changes_<feed>] ([key_kind], [id], kind) SELECT x.k0, x.k1, :placed
FROM (SELECT p.[key_kind] AS k0, p.[id] AS k1 FROM [rowfeed_positions_<feed>] p WHERE p.feed_sync_id IN (:positions) ) x

-- name: record_positions
INSERT INTO [rowfeed_changes_<feed>] ([id], kind) SELECT x.k0, 0
FROM (SELECT p.[id] AS k0 :rule ) x

-- name: record_positions (composite_key_feed)
INSERT INTO [rowfeed_changes_<feed>] ([key_kind], [id], kind) SELECT x.k0, x.k1, 0
FROM (SELECT p.[key_kind] AS k0, p.[id] AS k1 :rule ) x

-- name: record_rows
INSERT INTO [rowfeed_changes_<feed>] ([id], kind) SELECT x.k0, 0
FROM (SELECT t.[id] AS k0 :rule ) x

-- name: record_rows (composite_key_feed)
INSERT INTO [rowfeed_changes_<feed>] ([key_kind], [id], kind) SELECT x.k0, x.k1, 0
FROM (SELECT t.[kind] AS k0, t.[id] AS k1 :rule ) x

-- name: row_outside_sequence
FROM [items_<feed>] t LEFT JOIN [rowfeed_positions_<feed>] p ON p.[id] = t.[id] JOIN [rowfeed_sequences] s ON s.name = N'<feed>'
WHERE (t.feed_sync_id > s.value OR t.feed_sync_id < 1)

-- name: row_outside_sequence (composite_key_feed)
FROM [items_<feed>] t LEFT JOIN [rowfeed_positions_<feed>] p ON p.[key_kind] = t.[kind] AND p.[id] = t.[id] JOIN [rowfeed_sequences] s ON s.name = N'<feed>'
WHERE (t.feed_sync_id > s.value OR t.feed_sync_id < 1)

-- name: row_without_position
FROM [items_<feed>] t LEFT JOIN [rowfeed_positions_<feed>] p ON p.[id] = t.[id] LEFT JOIN (SELECT DISTINCT [id] FROM [rowfeed_changes_<feed>]) c ON c.[id] = t.[id]
WHERE p.feed_sync_id IS NULL AND c.[id] IS NULL

-- name: row_without_position (composite_key_feed)
FROM [items_<feed>] t LEFT JOIN [rowfeed_positions_<feed>] p ON p.[key_kind] = t.[kind] AND p.[id] = t.[id] LEFT JOIN (SELECT DISTINCT [key_kind], [id] FROM [rowfeed_changes_<feed>]) c ON c.[key_kind] = t.[kind] AND c.[id] = t.[id]
WHERE p.feed_sync_id IS NULL AND c.[key_kind] IS NULL

-- name: rows_and_positions
FROM [items_<feed>] t LEFT JOIN [rowfeed_positions_<feed>] p ON p.[id] = t.[id]

-- name: rows_and_positions (composite_key_feed)
FROM [items_<feed>] t LEFT JOIN [rowfeed_positions_<feed>] p ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]

-- name: sequence
SELECT s.value, s.updated_at, COALESCE(s.term, 0),
  (SELECT max(ended_at) FROM [rowfeed_terms] t WHERE t.feed = s.name)
FROM [rowfeed_sequences] s WHERE s.name = :feed

-- name: shared_positions
SELECT feed_sync_id FROM [rowfeed_positions_<feed>] GROUP BY feed_sync_id HAVING count(*) > 1

-- name: shared_positions_and_rows
SELECT feed_sync_id FROM (SELECT feed_sync_id FROM [rowfeed_positions_<feed>]
  UNION ALL SELECT feed_sync_id FROM [items_<feed>] WHERE feed_sync_id IS NOT NULL) x
GROUP BY feed_sync_id HAVING count(*) > 1

