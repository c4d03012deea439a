-- name: any_change
SELECT count(*) FROM (SELECT 1 AS n FROM :changes ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) x

-- name: begin_filling
UPDATE [rowfeed_feeds] SET state = :filling, fill_after = NULL, options = :options
WHERE name = :feed AND generation = :generation AND state = :active

-- name: begin_moving
UPDATE [rowfeed_feeds] SET state = :moving, capture = :trigger, fill_after = NULL, options = :options
WHERE name = :feed AND generation = :generation AND state = :active AND capture = :column

-- name: begin_sharding
UPDATE [rowfeed_feeds] SET state = :sharding, fill_after = NULL, data_shards = :data_shards
WHERE name = :feed AND state = :active AND generation = :generation

-- name: behind
(:position < :value OR :position IS NULL)

-- name: bounds_of_positions
SELECT min(feed_sync_id), max(feed_sync_id) FROM [items_<feed>]

-- name: bump
UPDATE [rowfeed_feeds]
SET generation = CASE WHEN ROUND(DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) / 1000000, 0) > generation + 1 THEN ROUND(DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) / 1000000, 0)
    ELSE generation + 1 END,
  database_identity = :identity
WHERE name = N'<feed>'

-- name: bump_sequence
UPDATE [rowfeed_sequences] SET version = version + 1 WHERE name = N'<feed>'

-- name: count_former_sequences
SELECT count(*) FROM :table WHERE name = :name

-- name: count_gaining_shard
SELECT COUNT_BIG(*) FROM [items_<feed>] t WHERE -1 < 0 AND :in_shard

-- name: count_gaining_shard (own_shards_feed)
SELECT COUNT_BIG(*) FROM [items_<feed>] t WHERE CASE WHEN t.[tenant] >= 0 AND t.[tenant] < 4 THEN t.[tenant] ELSE -1 END < 0 AND :in_shard

-- name: count_null_keys
SELECT count(*) FROM (SELECT 1 AS one FROM [items_<feed>] t WHERE NOT (1 = 1) ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY) x

-- name: count_outdated
SELECT COUNT_BIG(*) FROM [items_<feed>] t WHERE :outdated

-- name: count_rows_without_ulid
SELECT COUNT_BIG(*) :from

-- name: count_sequences
SELECT count(*) FROM [rowfeed_sequences] WHERE name = :feed

-- name: count_unchanged
SELECT count(*) FROM [rowfeed_feeds] WHERE :unchanged

-- name: created_at
SELECT created_at FROM [rowfeed_feeds] WHERE name = :feed

-- name: cursors_of_feed
SELECT consumer, shard, shard_count, value, generation FROM [rowfeed_cursors] WHERE feed = :feed
ORDER BY consumer, shard

-- name: drop_sequence
DELETE FROM [rowfeed_sequences] WHERE name = :feed

-- name: drop_shards
DELETE FROM [rowfeed_shards] WHERE feed = :feed

-- name: drop_terms
DELETE FROM [rowfeed_terms] WHERE feed = :feed

-- name: end_of_batch
SELECT COALESCE(max(x.at), :to) FROM (SELECT p.feed_sync_id AS at FROM [rowfeed_positions_<feed>] p
  WHERE p.feed_sync_id > :above AND p.feed_sync_id <= :to ORDER BY p.feed_sync_id OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY) x

-- name: end_walk
UPDATE [rowfeed_feeds] SET state = :active, fill_after = NULL WHERE :unchanged

-- name: feeds_left
SELECT name FROM [rowfeed_feeds] WHERE state <> :dropped ORDER BY name

-- name: first_row
SELECT t.[id] :from ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: first_row (composite_key_feed)
SELECT CONVERT(nvarchar(max), t.[kind]), t.[id] :from ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: forget_identity
UPDATE [rowfeed_feeds] SET database_identity = NULL WHERE name = N'<feed>'

-- name: former_cursors
SELECT name, :position, COALESCE(:shard, 0), COALESCE(:shard_count, 1) FROM :table ORDER BY name, :position

-- name: former_cursors_of_feed
SELECT name, :position, COALESCE(:shard, 0), COALESCE(:shard_count, 1) FROM :table WHERE feed = :feed ORDER BY name, :position

-- name: former_cursors_of_others
SELECT feed, count(*) FROM :table WHERE feed IS NULL OR feed <> :feed GROUP BY feed
ORDER BY CASE WHEN feed IS NULL THEN 0 ELSE 1 END, feed

-- name: former_sequence
SELECT value FROM :table WHERE name = :name

-- name: gains_shard
t.feed_sync_id > :from AND -1 < 0 AND :in_shard

-- name: gains_shard (own_shards_feed)
t.feed_sync_id > :from AND CASE WHEN t.[tenant] >= 0 AND t.[tenant] < 4 THEN t.[tenant] ELSE -1 END < 0 AND :in_shard

-- name: hand_back_cursor
UPDATE :table SET :position = :value WHERE name = :name AND (:position < :value OR :position IS NULL)

-- name: hand_back_cursor_of_feed
UPDATE :table SET :position = :value WHERE name = :name AND feed = :feed AND (:position < :value OR :position IS NULL)

-- name: hand_back_sequence
UPDATE :table SET value = :value :version WHERE name = :name AND value = :was

-- name: head_elsewhere
SELECT s.value FROM [rowfeed_sequences] s WHERE s.name = :feed

-- name: highest_position
SELECT max(feed_sync_id) FROM [items_<feed>]

-- name: highest_shard
SELECT max(shard) FROM [rowfeed_positions_<feed>] WHERE bucket >= :bucket

-- name: highest_tombstone
SELECT COALESCE(max(feed_sync_id), 0) FROM [rowfeed_positions_<feed>] WHERE deleted = 1

-- name: in_shard
-1 >= 0

-- name: in_shard (own_shards_feed)
CASE WHEN t.[tenant] >= 0 AND t.[tenant] < 4 THEN t.[tenant] ELSE -1 END >= 0

-- name: insert_cursor
INSERT INTO [rowfeed_cursors] (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) SELECT :consumer, :feed, 0, 1, :value, :generation, 0, 0, 0, 0, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_cursors] WITH (UPDLOCK, SERIALIZABLE) WHERE consumer = :consumer AND feed = :feed AND shard = 0)

-- name: insert_sequence
INSERT INTO [rowfeed_sequences] (name, value, version, updated_at) VALUES (:feed, :value, 0, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))

-- name: insert_shard
INSERT INTO [rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness) SELECT :feed, :shard, :time, :high, :low, '' WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_shards] WITH (UPDLOCK, SERIALIZABLE) WHERE feed = :feed AND shard = :shard)

-- name: insert_shards
INSERT INTO [rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
SELECT N'<feed>', x.shard, :time, :high, :low, ''
FROM (SELECT s.shard, (SELECT g.[ulid] FROM [items_<feed>] g WHERE g.[shard] = s.shard
    ORDER BY g.[ulid] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) AS highest
  FROM (SELECT DISTINCT g.[shard] AS shard FROM [items_<feed>] g) s) x

-- name: insert_shards (blocking_feed)
INSERT INTO [rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
SELECT N'<feed>', x.shard, :time, :high, :low, ''
FROM (SELECT s.shard, (SELECT g.[position] FROM [items_<feed>] g WHERE g.[tenant] = s.shard
    ORDER BY g.[position] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) AS highest
  FROM (SELECT DISTINCT g.[tenant] AS shard FROM [items_<feed>] g) s) x

-- name: letters_of_feed
SELECT consumer, position FROM [rowfeed_dead_letters] WHERE feed = :feed

-- name: lock_former_sequence
SELECT value FROM :table WHERE name = :name :unlocked

-- name: lock_record
UPDATE [rowfeed_feeds] SET state = state WHERE name = :feed AND generation = :generation

-- name: move_positions
INSERT INTO [rowfeed_positions_<feed>] ([id], feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT t.[id], t.feed_sync_id, :shard, :bucket, 0, 0, COALESCE((SELECT b.published_at FROM [rowfeed_positions_<feed>] b
    WHERE b.feed_sync_id > t.feed_sync_id ORDER BY b.feed_sync_id OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY),
  :published)
FROM [items_<feed>] t
WHERE :which AND t.feed_sync_id >= 1 AND t.feed_sync_id <= :since
  AND NOT EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] h WHERE h.[id] = t.[id])
  AND NOT EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] h WHERE h.feed_sync_id = t.feed_sync_id)
  AND (SELECT count(*) FROM [items_<feed>] o WHERE o.feed_sync_id = t.feed_sync_id) = 1

-- name: move_positions (composite_key_feed)
INSERT INTO [rowfeed_positions_<feed>] ([key_kind], [id], feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT t.[kind], t.[id], t.feed_sync_id, :shard, :bucket, 0, 0, COALESCE((SELECT b.published_at FROM [rowfeed_positions_<feed>] b
    WHERE b.feed_sync_id > t.feed_sync_id ORDER BY b.feed_sync_id OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY),
  :published)
FROM [items_<feed>] t
WHERE :which AND t.feed_sync_id >= 1 AND t.feed_sync_id <= :since
  AND NOT EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] h WHERE h.[key_kind] = t.[kind] AND h.[id] = t.[id])
  AND NOT EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] h WHERE h.feed_sync_id = t.feed_sync_id)
  AND (SELECT count(*) FROM [items_<feed>] o WHERE o.feed_sync_id = t.feed_sync_id) = 1

-- name: moved_shard
CASE WHEN t.shard >= 0 AND t.shard < 0 THEN t.shard ELSE 0 END

-- name: moved_shard (sharded_feed)
CASE WHEN t.shard >= 0 AND t.shard < 4 THEN t.shard ELSE 0 END

-- name: moved_shard (own_shards_feed)
CASE WHEN t.[tenant] >= 0 AND t.[tenant] < 4 THEN t.[tenant] ELSE -1 END

-- name: no_mark
fill_after IS NULL

-- name: outdated
t.feed_sync_id IS NOT NULL AND EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] p WHERE p.[id] = t.[id] AND p.deleted = 0)

-- name: outdated (composite_key_feed)
t.feed_sync_id IS NOT NULL AND EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] p WHERE p.[key_kind] = t.[kind] AND p.[id] = t.[id] AND p.deleted = 0)

-- name: own_value
0

-- name: own_value (own_shards_feed)
t.[tenant]

-- name: positions_outside_shards
SELECT 0, t.[id] FROM [rowfeed_positions_<feed>] p JOIN [items_<feed>] t ON p.[id] = t.[id]
WHERE p.bucket = -1 AND p.deleted = 0 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: positions_outside_shards (composite_key_feed)
SELECT 0, CONVERT(nvarchar(max), t.[kind]), t.[id] FROM [rowfeed_positions_<feed>] p JOIN [items_<feed>] t ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]
WHERE p.bucket = -1 AND p.deleted = 0 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: positions_outside_shards (own_shards_feed)
SELECT t.[tenant], CONVERT(nvarchar(max), t.[kind]), t.[id] FROM [rowfeed_positions_<feed>] p JOIN [items_<feed>] t ON p.[key_kind] = t.[kind] AND p.[id] = t.[id]
WHERE p.bucket = -1 AND p.deleted = 0 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: purged_shards
SELECT count(*) FROM [rowfeed_shards] WHERE feed = :feed AND (below_high <> 0 OR below_low <> 0)

-- name: raise_sequence
UPDATE [rowfeed_sequences] SET value = :value, version = version + 1, updated_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())
WHERE name = :feed AND value < :value

-- name: raise_shard
UPDATE [rowfeed_shards] SET time_ms = :time, ulid_high = :high, ulid_low = :low
WHERE feed = :feed AND shard = :shard AND time_ms < :time

-- name: recent_rows_outside_shards
SELECT 0, t.[id] FROM [items_<feed>] t
WHERE t.feed_sync_id > :from AND -1 < 0 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: recent_rows_outside_shards (composite_key_feed)
SELECT 0, CONVERT(nvarchar(max), t.[kind]), t.[id] FROM [items_<feed>] t
WHERE t.feed_sync_id > :from AND -1 < 0 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: recent_rows_outside_shards (own_shards_feed)
SELECT t.[tenant], CONVERT(nvarchar(max), t.[kind]), t.[id] FROM [items_<feed>] t
WHERE t.feed_sync_id > :from AND CASE WHEN t.[tenant] >= 0 AND t.[tenant] < 4 THEN t.[tenant] ELSE -1 END < 0 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: recent_shared_position
SELECT feed_sync_id FROM (SELECT feed_sync_id FROM [rowfeed_positions_<feed>] WHERE feed_sync_id > :from
  UNION ALL SELECT feed_sync_id FROM [items_<feed>] WHERE feed_sync_id > :from) x
GROUP BY feed_sync_id HAVING count(*) > 1 ORDER BY feed_sync_id OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: record_all_rows
INSERT INTO [rowfeed_changes_<feed>] ([id])
SELECT [id] FROM [items_<feed>]

-- name: record_all_rows (composite_key_feed)
INSERT INTO [rowfeed_changes_<feed>] ([key_kind], [id])
SELECT [kind], [id] FROM [items_<feed>]

-- name: record_shardless
INSERT INTO [rowfeed_changes_<feed>] ([id], kind) SELECT x.k0, :placed
FROM (SELECT p.[id] AS k0 FROM [rowfeed_positions_<feed>] p WHERE p.feed_sync_id IN (:positions) ) x

-- name: record_shardless (composite_key_feed)
INSERT INTO [rowfeed_changes_<feed>] ([key_kind], [id], kind) SELECT x.k0, x.k1, :placed
FROM (SELECT p.[key_kind] AS k0, p.[id] AS k1 FROM [rowfeed_positions_<feed>] p WHERE p.feed_sync_id IN (:positions) ) x

-- name: record_unmoved
INSERT INTO [rowfeed_changes_<feed>] ([id], kind) SELECT x.k0, 0
FROM (SELECT t.[id] AS k0 FROM [items_<feed>] t
  WHERE :which AND NOT EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] h WHERE h.[id] = t.[id] AND (h.feed_sync_id > :since
    OR h.deleted = 0 AND t.feed_sync_id IS NOT NULL AND (h.hidden = 1 OR h.feed_sync_id >= t.feed_sync_id)))
  ) x ORDER BY x.k0

-- name: record_unmoved (composite_key_feed)
INSERT INTO [rowfeed_changes_<feed>] ([key_kind], [id], kind) SELECT x.k0, x.k1, 0
FROM (SELECT t.[kind] AS k0, t.[id] AS k1 FROM [items_<feed>] t
  WHERE :which AND NOT EXISTS (SELECT 1 FROM [rowfeed_positions_<feed>] h WHERE h.[key_kind] = t.[kind] AND h.[id] = t.[id] AND (h.feed_sync_id > :since
    OR h.deleted = 0 AND t.feed_sync_id IS NOT NULL AND (h.hidden = 1 OR h.feed_sync_id >= t.feed_sync_id)))
  ) x ORDER BY x.k0, x.k1

-- name: record_vanished
INSERT INTO [rowfeed_changes_<feed>] ([id], kind) SELECT x.k0, 0
FROM (SELECT p.[id] AS k0 FROM [rowfeed_positions_<feed>] p
  WHERE p.feed_sync_id > :above AND p.feed_sync_id <= :to AND p.deleted = 0
    AND (SELECT 1 FROM [items_<feed>] t WHERE p.[id] = t.[id] ) IS NULL
  ) x

-- name: record_vanished (composite_key_feed)
INSERT INTO [rowfeed_changes_<feed>] ([key_kind], [id], kind) SELECT x.k0, x.k1, 0
FROM (SELECT p.[key_kind] AS k0, p.[id] AS k1 FROM [rowfeed_positions_<feed>] p
  WHERE p.feed_sync_id > :above AND p.feed_sync_id <= :to AND p.deleted = 0
    AND (SELECT 1 FROM [items_<feed>] t WHERE p.[key_kind] = t.[kind] AND p.[id] = t.[id] ) IS NULL
  ) x

-- name: rows_outside_shards
SELECT 0, t.[id] FROM [items_<feed>] t WHERE -1 < 0 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: rows_outside_shards (composite_key_feed)
SELECT 0, CONVERT(nvarchar(max), t.[kind]), t.[id] FROM [items_<feed>] t WHERE -1 < 0 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: rows_outside_shards (own_shards_feed)
SELECT t.[tenant], CONVERT(nvarchar(max), t.[kind]), t.[id] FROM [items_<feed>] t WHERE CASE WHEN t.[tenant] >= 0 AND t.[tenant] < 4 THEN t.[tenant] ELSE -1 END < 0 ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: rows_where
FROM [items_<feed>] t WHERE :condition

-- name: same_mark
fill_after = :mark

-- name: save_mark
UPDATE [rowfeed_feeds] SET fill_after = :to WHERE :unchanged

-- name: sequence_left
SELECT value, COALESCE(term, 0) FROM [rowfeed_sequences] WHERE name = :feed

-- name: sequence_value
SELECT value FROM [rowfeed_sequences] WHERE name = :feed

-- name: set_filled_by
UPDATE [rowfeed_shards] SET filled_by = :run WHERE feed = :feed AND shard = :shard AND filled_by = 0

-- name: set_first_state
UPDATE [rowfeed_feeds] SET state = :state WHERE name = N'<feed>'

-- name: set_first_state_and_identity
UPDATE [rowfeed_feeds] SET state = :state, database_identity = :identity WHERE name = N'<feed>'

-- name: set_identity
UPDATE [rowfeed_feeds] SET database_identity = :identity WHERE name = :feed

-- name: set_key_columns
UPDATE [rowfeed_feeds] SET key_columns = :key WHERE name = :feed

-- name: set_source_schema
UPDATE [rowfeed_feeds] SET source_schema = :schema WHERE name = :feed

-- name: set_state
UPDATE [rowfeed_feeds] SET state = :state, fill_after = NULL WHERE name = :feed

-- name: set_tombstones_below
UPDATE [rowfeed_feeds] SET tombstones_below = :below WHERE name = :feed

-- name: set_unknown_identity
UPDATE [rowfeed_feeds] SET database_identity = :identity WHERE name = :feed AND database_identity IS NULL

-- name: shared_position
SELECT feed_sync_id FROM [items_<feed>] WHERE feed_sync_id IS NOT NULL
GROUP BY feed_sync_id HAVING count(*) > 1 ORDER BY feed_sync_id OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: state
SELECT state FROM [rowfeed_feeds] WHERE name = :feed AND generation = :generation

-- name: take_over
UPDATE [rowfeed_feeds] SET state = :active, options = :options WHERE name = :feed AND state = :elsewhere

-- name: unchanged
name = :feed AND generation = :generation AND data_shards = :data_shards AND state = :state AND :mark

