-- name: assigned_shards
OPENJSON(:places) WITH (position bigint N'$[0]', shard int N'$[1]') AS j

-- name: close_changes
SELECT COUNT_BIG(*) FROM (SELECT TOP (1) 1 AS one FROM [rowfeed_changes_<feed>] WITH (TABLOCKX, HOLDLOCK)) AS c

-- name: place_rows
SET NOCOUNT ON;
DECLARE @placed TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY,
  [id] bigint NOT NULL
);
WITH waiting AS (
  SELECT TOP (:limit) t.feed_sync_id, t.[id], ROW_NUMBER() OVER (ORDER BY t.[id]) AS rowfeed_place
  FROM [items_<feed>] AS t WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK, INDEX([rowfeed_<feed>_row_position])):which AND COALESCE(DATALENGTH(t.shard), 0) >= 0:in_order
)
UPDATE waiting SET feed_sync_id = :base + waiting.rowfeed_place
OUTPUT inserted.feed_sync_id, inserted.[id] INTO @placed (feed_sync_id, [id])
OPTION (MAXDOP 1);
DELETE p FROM @placed AS b INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.[id] = b.[id]
WHERE p.hidden = 0 OPTION (FORCE ORDER, MAXDOP 1);
SELECT CONVERT(nvarchar(20), b.feed_sync_id), b.[id] FROM @placed AS b ORDER BY b.feed_sync_id

-- name: place_rows (composite_key_feed)
SET NOCOUNT ON;
DECLARE @placed TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY,
  [key_kind] text NOT NULL,
  [id] bigint NOT NULL
);
WITH waiting AS (
  SELECT TOP (:limit) t.feed_sync_id, t.[kind], t.[id], ROW_NUMBER() OVER (ORDER BY t.[kind], t.[id]) AS rowfeed_place
  FROM [items_<feed>] AS t WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK, INDEX([rowfeed_<feed>_row_position])):which AND COALESCE(DATALENGTH(t.shard), 0) >= 0:in_order
)
UPDATE waiting SET feed_sync_id = :base + waiting.rowfeed_place
OUTPUT inserted.feed_sync_id, inserted.[kind], inserted.[id] INTO @placed (feed_sync_id, [key_kind], [id])
OPTION (MAXDOP 1);
DELETE p FROM @placed AS b INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.[key_kind] = b.[key_kind] AND p.[id] = b.[id]
WHERE p.hidden = 0 OPTION (FORCE ORDER, MAXDOP 1);
SELECT CONVERT(nvarchar(20), b.feed_sync_id), CONVERT(nvarchar(max), b.[key_kind]), b.[id] FROM @placed AS b ORDER BY b.feed_sync_id

-- name: reset_rows
UPDATE t SET feed_sync_id = NULL FROM [items_<feed>] AS t WHERE

-- name: set_shards
UPDATE p SET shard = j.shard, bucket = 0
FROM OPENJSON(:places) WITH (position bigint N'$[0]', shard int N'$[1]') AS j
INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.feed_sync_id = j.position
OPTION (FORCE ORDER, MAXDOP 1)

-- name: set_shards (sharded_feed)
UPDATE p SET shard = j.shard, bucket = ((j.shard + 1) * 4 - 1) / 4
FROM OPENJSON(:places) WITH (position bigint N'$[0]', shard int N'$[1]') AS j
INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.feed_sync_id = j.position
OPTION (FORCE ORDER, MAXDOP 1)

-- name: set_shards (own_shards_feed)
UPDATE p SET shard = j.shard, bucket = CASE WHEN j.shard < 0 THEN -1 ELSE ((j.shard + 1) * 4 - 1) / 4 END
FROM OPENJSON(:places) WITH (position bigint N'$[0]', shard int N'$[1]') AS j
INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.feed_sync_id = j.position
OPTION (FORCE ORDER, MAXDOP 1)

-- name: set_shards_of_rows
UPDATE t SET shard = j.shard
FROM OPENJSON(:places) WITH (position bigint N'$[0]', shard int N'$[1]') AS j
INNER LOOP JOIN [items_<feed>] AS t WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK, INDEX([rowfeed_<feed>_row_position])) ON t.feed_sync_id = j.position AND COALESCE(DATALENGTH(t.shard), 0) >= 0
OPTION (FORCE ORDER, MAXDOP 1)

-- name: unlocked
WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK, INDEX([rowfeed_<feed>_row_position]))

-- name: whole_row
COALESCE(DATALENGTH(t.shard), 0) >= 0

