-- name: assign_positions
SET NOCOUNT ON;
DECLARE @assigned TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY, shard int NOT NULL, kind int NOT NULL, deleted int NOT NULL,
  [id] bigint NOT NULL
);
INSERT INTO @assigned (feed_sync_id, shard, kind, deleted, [id])
SELECT x.feed_sync_id, x.shard, x.kind, x.deleted, x.[id] FROM (
  SELECT :base + j.place AS feed_sync_id, j.shard, j.kind,
    CASE WHEN t.[id] IS NULL THEN 1 ELSE 0 END AS deleted, c.[id],
    ROW_NUMBER() OVER (PARTITION BY c.[id] ORDER BY j.place DESC) AS rowid
  FROM (SELECT CONVERT(bigint, l.[key]) + 1 AS place, CONVERT(bigint, JSON_VALUE(l.value, N'$[0]')) AS seq,
      CONVERT(int, JSON_VALUE(l.value, N'$[1]')) AS shard, CONVERT(int, JSON_VALUE(l.value, N'$[2]')) AS kind
    FROM OPENJSON(:list) AS l) AS j
  INNER LOOP JOIN [rowfeed_changes_<feed>] AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN [items_<feed>] AS t WITH (FORCESEEK) ON c.[id] = t.[id]) AS x
WHERE x.rowid = 1 OPTION (FORCE ORDER, MAXDOP 1);
UPDATE p SET
  feed_sync_id = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.feed_sync_id ELSE a.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.published_at ELSE :published END,
  deleted = a.deleted,
  hidden = CASE a.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END
FROM @assigned AS a INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.[id] = a.[id]
OPTION (FORCE ORDER, MAXDOP 1);
INSERT INTO [rowfeed_positions_<feed>] ([id], feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT a.[id], a.feed_sync_id, a.shard, 0, a.deleted, CASE a.kind WHEN 2 THEN 1 ELSE 0 END,
  :published
FROM @assigned AS a
WHERE a.deleted = 0 AND NOT EXISTS (
  SELECT 1 FROM [rowfeed_positions_<feed>] AS p WITH (FORCESEEK) WHERE p.[id] = a.[id])
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: assign_positions (composite_key_feed)
SET NOCOUNT ON;
DECLARE @assigned TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY, shard int NOT NULL, kind int NOT NULL, deleted int NOT NULL,
  [key_kind] text NOT NULL,
  [id] bigint NOT NULL
);
INSERT INTO @assigned (feed_sync_id, shard, kind, deleted, [key_kind], [id])
SELECT x.feed_sync_id, x.shard, x.kind, x.deleted, x.[key_kind], x.[id] FROM (
  SELECT :base + j.place AS feed_sync_id, j.shard, j.kind,
    CASE WHEN t.[kind] IS NULL THEN 1 ELSE 0 END AS deleted, c.[key_kind], c.[id],
    ROW_NUMBER() OVER (PARTITION BY c.[key_kind], c.[id] ORDER BY j.place DESC) AS rowid
  FROM (SELECT CONVERT(bigint, l.[key]) + 1 AS place, CONVERT(bigint, JSON_VALUE(l.value, N'$[0]')) AS seq,
      CONVERT(int, JSON_VALUE(l.value, N'$[1]')) AS shard, CONVERT(int, JSON_VALUE(l.value, N'$[2]')) AS kind
    FROM OPENJSON(:list) AS l) AS j
  INNER LOOP JOIN [rowfeed_changes_<feed>] AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN [items_<feed>] AS t WITH (FORCESEEK) ON c.[key_kind] = t.[kind] AND c.[id] = t.[id]) AS x
WHERE x.rowid = 1 OPTION (FORCE ORDER, MAXDOP 1);
UPDATE p SET
  feed_sync_id = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.feed_sync_id ELSE a.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.published_at ELSE :published END,
  deleted = a.deleted,
  hidden = CASE a.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END
FROM @assigned AS a INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.[key_kind] = a.[key_kind] AND p.[id] = a.[id]
OPTION (FORCE ORDER, MAXDOP 1);
INSERT INTO [rowfeed_positions_<feed>] ([key_kind], [id], feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT a.[key_kind], a.[id], a.feed_sync_id, a.shard, 0, a.deleted, CASE a.kind WHEN 2 THEN 1 ELSE 0 END,
  :published
FROM @assigned AS a
WHERE a.deleted = 0 AND NOT EXISTS (
  SELECT 1 FROM [rowfeed_positions_<feed>] AS p WITH (FORCESEEK) WHERE p.[key_kind] = a.[key_kind] AND p.[id] = a.[id])
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: assign_positions (column_capture_feed)
SET NOCOUNT ON;
DECLARE @assigned TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY, shard int NOT NULL, kind int NOT NULL, deleted int NOT NULL,
  [id] bigint NOT NULL
);
INSERT INTO @assigned (feed_sync_id, shard, kind, deleted, [id])
SELECT x.feed_sync_id, x.shard, x.kind, x.deleted, x.[id] FROM (
  SELECT :base + j.place AS feed_sync_id, j.shard, j.kind,
    CASE WHEN t.[id] IS NULL THEN 1 ELSE 0 END AS deleted, c.[id],
    ROW_NUMBER() OVER (PARTITION BY c.[id] ORDER BY j.place DESC) AS rowid
  FROM (SELECT CONVERT(bigint, l.[key]) + 1 AS place, CONVERT(bigint, JSON_VALUE(l.value, N'$[0]')) AS seq,
      CONVERT(int, JSON_VALUE(l.value, N'$[1]')) AS shard, CONVERT(int, JSON_VALUE(l.value, N'$[2]')) AS kind
    FROM OPENJSON(:list) AS l) AS j
  INNER LOOP JOIN [rowfeed_changes_<feed>] AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN [items_<feed>] AS t WITH (FORCESEEK) ON c.[id] = t.[id]) AS x
WHERE x.rowid = 1 OPTION (FORCE ORDER, MAXDOP 1);
UPDATE p SET
  feed_sync_id = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.feed_sync_id ELSE a.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.published_at ELSE :published END,
  deleted = a.deleted,
  hidden = CASE a.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END
FROM @assigned AS a INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.[id] = a.[id]
OPTION (FORCE ORDER, MAXDOP 1);
INSERT INTO [rowfeed_positions_<feed>] ([id], feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT a.[id], a.feed_sync_id, a.shard, 0, a.deleted, CASE a.kind WHEN 2 THEN 1 ELSE 0 END,
  :published
FROM @assigned AS a
WHERE NOT EXISTS (
  SELECT 1 FROM [rowfeed_positions_<feed>] AS p WITH (FORCESEEK) WHERE p.[id] = a.[id])
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: assign_positions (sharded_feed)
SET NOCOUNT ON;
DECLARE @assigned TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY, shard int NOT NULL, kind int NOT NULL, deleted int NOT NULL,
  [key_kind] text NOT NULL,
  [id] bigint NOT NULL
);
INSERT INTO @assigned (feed_sync_id, shard, kind, deleted, [key_kind], [id])
SELECT x.feed_sync_id, x.shard, x.kind, x.deleted, x.[key_kind], x.[id] FROM (
  SELECT :base + j.place AS feed_sync_id, j.shard, j.kind,
    CASE WHEN t.[kind] IS NULL THEN 1 ELSE 0 END AS deleted, c.[key_kind], c.[id],
    ROW_NUMBER() OVER (PARTITION BY c.[key_kind], c.[id] ORDER BY j.place DESC) AS rowid
  FROM (SELECT CONVERT(bigint, l.[key]) + 1 AS place, CONVERT(bigint, JSON_VALUE(l.value, N'$[0]')) AS seq,
      CONVERT(int, JSON_VALUE(l.value, N'$[1]')) AS shard, CONVERT(int, JSON_VALUE(l.value, N'$[2]')) AS kind
    FROM OPENJSON(:list) AS l) AS j
  INNER LOOP JOIN [rowfeed_changes_<feed>] AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN [items_<feed>] AS t WITH (FORCESEEK) ON c.[key_kind] = t.[kind] AND c.[id] = t.[id]) AS x
WHERE x.rowid = 1 OPTION (FORCE ORDER, MAXDOP 1);
UPDATE p SET
  feed_sync_id = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.feed_sync_id ELSE a.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.published_at ELSE :published END,
  deleted = a.deleted,
  hidden = CASE a.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END
FROM @assigned AS a INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.[key_kind] = a.[key_kind] AND p.[id] = a.[id]
OPTION (FORCE ORDER, MAXDOP 1);
INSERT INTO [rowfeed_positions_<feed>] ([key_kind], [id], feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT a.[key_kind], a.[id], a.feed_sync_id, a.shard, ((a.shard + 1) * 4 - 1) / 4, a.deleted, CASE a.kind WHEN 2 THEN 1 ELSE 0 END,
  :published
FROM @assigned AS a
WHERE a.deleted = 0 AND NOT EXISTS (
  SELECT 1 FROM [rowfeed_positions_<feed>] AS p WITH (FORCESEEK) WHERE p.[key_kind] = a.[key_kind] AND p.[id] = a.[id])
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: assign_positions (own_shards_feed)
SET NOCOUNT ON;
DECLARE @assigned TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY, shard int NOT NULL, kind int NOT NULL, deleted int NOT NULL,
  [key_kind] text NOT NULL,
  [id] bigint NOT NULL
);
INSERT INTO @assigned (feed_sync_id, shard, kind, deleted, [key_kind], [id])
SELECT x.feed_sync_id, x.shard, x.kind, x.deleted, x.[key_kind], x.[id] FROM (
  SELECT :base + j.place AS feed_sync_id, j.shard, j.kind,
    CASE WHEN t.[kind] IS NULL THEN 1 ELSE 0 END AS deleted, c.[key_kind], c.[id],
    ROW_NUMBER() OVER (PARTITION BY c.[key_kind], c.[id] ORDER BY j.place DESC) AS rowid
  FROM (SELECT CONVERT(bigint, l.[key]) + 1 AS place, CONVERT(bigint, JSON_VALUE(l.value, N'$[0]')) AS seq,
      CONVERT(int, JSON_VALUE(l.value, N'$[1]')) AS shard, CONVERT(int, JSON_VALUE(l.value, N'$[2]')) AS kind
    FROM OPENJSON(:list) AS l) AS j
  INNER LOOP JOIN [rowfeed_changes_<feed>] AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN [items_<feed>] AS t WITH (FORCESEEK) ON c.[key_kind] = t.[kind] AND c.[id] = t.[id]) AS x
WHERE x.rowid = 1 OPTION (FORCE ORDER, MAXDOP 1);
UPDATE p SET
  feed_sync_id = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.feed_sync_id ELSE a.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.published_at ELSE :published END,
  deleted = a.deleted,
  hidden = CASE a.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END
FROM @assigned AS a INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.[key_kind] = a.[key_kind] AND p.[id] = a.[id]
OPTION (FORCE ORDER, MAXDOP 1);
INSERT INTO [rowfeed_positions_<feed>] ([key_kind], [id], feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT a.[key_kind], a.[id], a.feed_sync_id, a.shard, CASE WHEN a.shard < 0 THEN -1 ELSE ((a.shard + 1) * 4 - 1) / 4 END, a.deleted, CASE a.kind WHEN 2 THEN 1 ELSE 0 END,
  :published
FROM @assigned AS a
WHERE a.deleted = 0 AND NOT EXISTS (
  SELECT 1 FROM [rowfeed_positions_<feed>] AS p WITH (FORCESEEK) WHERE p.[key_kind] = a.[key_kind] AND p.[id] = a.[id])
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: assign_positions (own_shards_in_rows_feed)
SET NOCOUNT ON;
DECLARE @assigned TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY, shard int NOT NULL, kind int NOT NULL, deleted int NOT NULL,
  [key_kind] text NOT NULL,
  [id] bigint NOT NULL
);
INSERT INTO @assigned (feed_sync_id, shard, kind, deleted, [key_kind], [id])
SELECT x.feed_sync_id, x.shard, x.kind, x.deleted, x.[key_kind], x.[id] FROM (
  SELECT :base + j.place AS feed_sync_id, j.shard, j.kind,
    CASE WHEN t.[kind] IS NULL THEN 1 ELSE 0 END AS deleted, c.[key_kind], c.[id],
    ROW_NUMBER() OVER (PARTITION BY c.[key_kind], c.[id] ORDER BY j.place DESC) AS rowid
  FROM (SELECT CONVERT(bigint, l.[key]) + 1 AS place, CONVERT(bigint, JSON_VALUE(l.value, N'$[0]')) AS seq,
      CONVERT(int, JSON_VALUE(l.value, N'$[1]')) AS shard, CONVERT(int, JSON_VALUE(l.value, N'$[2]')) AS kind
    FROM OPENJSON(:list) AS l) AS j
  INNER LOOP JOIN [rowfeed_changes_<feed>] AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN [items_<feed>] AS t WITH (FORCESEEK) ON c.[key_kind] = t.[kind] AND c.[id] = t.[id]) AS x
WHERE x.rowid = 1 OPTION (FORCE ORDER, MAXDOP 1);
UPDATE p SET
  feed_sync_id = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.feed_sync_id ELSE a.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.published_at ELSE :published END,
  deleted = a.deleted,
  hidden = CASE a.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END
FROM @assigned AS a INNER LOOP JOIN [rowfeed_positions_<feed>] AS p WITH (ROWLOCK, FORCESEEK) ON p.[key_kind] = a.[key_kind] AND p.[id] = a.[id]
OPTION (FORCE ORDER, MAXDOP 1);
INSERT INTO [rowfeed_positions_<feed>] ([key_kind], [id], feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT a.[key_kind], a.[id], a.feed_sync_id, a.shard, CASE WHEN a.shard < 0 THEN -1 ELSE ((a.shard + 1) * 4 - 1) / 4 END, a.deleted, CASE a.kind WHEN 2 THEN 1 ELSE 0 END,
  :published
FROM @assigned AS a
WHERE NOT EXISTS (
  SELECT 1 FROM [rowfeed_positions_<feed>] AS p WITH (FORCESEEK) WHERE p.[key_kind] = a.[key_kind] AND p.[id] = a.[id])
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: assigned
SELECT x.feed_sync_id, x.shard, x.kind, x.deleted, x.[id] FROM (
  SELECT :base + j.place AS feed_sync_id, j.shard, j.kind,
    CASE WHEN t.[id] IS NULL THEN 1 ELSE 0 END AS deleted, c.[id],
    ROW_NUMBER() OVER (PARTITION BY c.[id] ORDER BY j.place DESC) AS rowid
  FROM (SELECT CONVERT(bigint, l.[key]) + 1 AS place, CONVERT(bigint, JSON_VALUE(l.value, N'$[0]')) AS seq,
      CONVERT(int, JSON_VALUE(l.value, N'$[1]')) AS shard, CONVERT(int, JSON_VALUE(l.value, N'$[2]')) AS kind
    FROM OPENJSON(:list) AS l) AS j
  INNER LOOP JOIN [rowfeed_changes_<feed>] AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN [items_<feed>] AS t WITH (FORCESEEK) ON c.[id] = t.[id]) AS x
WHERE x.rowid = 1

-- name: assigned (composite_key_feed)
SELECT x.feed_sync_id, x.shard, x.kind, x.deleted, x.[key_kind], x.[id] FROM (
  SELECT :base + j.place AS feed_sync_id, j.shard, j.kind,
    CASE WHEN t.[kind] IS NULL THEN 1 ELSE 0 END AS deleted, c.[key_kind], c.[id],
    ROW_NUMBER() OVER (PARTITION BY c.[key_kind], c.[id] ORDER BY j.place DESC) AS rowid
  FROM (SELECT CONVERT(bigint, l.[key]) + 1 AS place, CONVERT(bigint, JSON_VALUE(l.value, N'$[0]')) AS seq,
      CONVERT(int, JSON_VALUE(l.value, N'$[1]')) AS shard, CONVERT(int, JSON_VALUE(l.value, N'$[2]')) AS kind
    FROM OPENJSON(:list) AS l) AS j
  INNER LOOP JOIN [rowfeed_changes_<feed>] AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN [items_<feed>] AS t WITH (FORCESEEK) ON c.[key_kind] = t.[kind] AND c.[id] = t.[id]) AS x
WHERE x.rowid = 1

-- name: delete_changes
DELETE c FROM OPENJSON(:seqs) WITH (seq bigint N'$') AS j
INNER LOOP JOIN [rowfeed_changes_<feed>] AS c WITH (ROWLOCK, FORCESEEK) ON c.seq = j.seq OPTION (FORCE ORDER, MAXDOP 1)

-- name: demand_versions
IF EXISTS (SELECT 1 FROM sys.databases AS d WHERE d.name = DB_NAME() AND d.is_read_committed_snapshot_on = 0)
  THROW 77111, N'rowfeed: READ_COMMITTED_SNAPSHOT of the database is OFF, so changes would be missed: set it to ON', 1;

-- name: durability
SELECT d.delayed_durability_desc FROM sys.databases AS d WHERE d.name = DB_NAME()

-- name: first_change
SELECT * FROM (SELECT TOP (1) seq :scan ORDER BY seq) AS c

-- name: first_row
SELECT * FROM (SELECT TOP (1) CONVERT(bigint, 0) AS seq FROM [items_<feed>] WHERE feed_sync_id IS NULL) AS t

-- name: has_changes
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT TOP (1) x.seq FROM (:scans) AS x

-- name: lock_sequence
SET NOCOUNT ON;
IF EXISTS (SELECT 1 FROM sys.databases AS d WHERE d.name = DB_NAME() AND d.is_read_committed_snapshot_on = 0)
  THROW 77111, N'rowfeed: READ_COMMITTED_SNAPSHOT of the database is OFF, so changes would be missed: set it to ON', 1;
EXEC [rowfeed_turn] @name = :turn, @wait = NULL;
DECLARE @identity nvarchar(200) = N'';
IF OBJECT_ID(N'sys.database_recovery_status') IS NOT NULL
  SELECT @identity = CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID();
SELECT value, version, COALESCE(term, 0), updated_at, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), @identity
FROM [rowfeed_sequences] WITH (UPDLOCK, ROWLOCK) WHERE name = :feed

-- name: oldest
SELECT * FROM (SELECT TOP (:limit) seq, kind, [id] :scan ORDER BY seq) AS c

-- name: oldest (composite_key_feed)
SELECT * FROM (SELECT TOP (:limit) seq, kind, [key_kind], [id] :scan ORDER BY seq) AS c

-- name: read_identity
SET NOCOUNT ON;
DECLARE @identity nvarchar(200) = N'';
IF OBJECT_ID(N'sys.database_recovery_status') IS NOT NULL
  SELECT @identity = CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID();
SELECT CASE WHEN DATABASEPROPERTYEX(DB_NAME(), N'Updateability') = N'READ_WRITE' THEN @identity END

-- name: restore_isolation
SET TRANSACTION ISOLATION LEVEL READ COMMITTED

-- name: set_identity
DECLARE @identity nvarchar(200) = N'';
IF OBJECT_ID(N'sys.database_recovery_status') IS NOT NULL
  SELECT @identity = CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID();

-- name: settings
SET XACT_ABORT OFF; SET LOCK_TIMEOUT :wait; SET DEADLOCK_PRIORITY :priority

-- name: take_changes
SELECT TOP (:limit) x.seq, x.kind, x.[id] FROM (:scans) AS x ORDER BY x.seq OPTION (MAXDOP 1)

-- name: take_changes (composite_key_feed)
SELECT TOP (:limit) x.seq, x.kind, CONVERT(nvarchar(max), x.[key_kind]), x.[id] FROM (:scans) AS x ORDER BY x.seq OPTION (MAXDOP 1)

-- name: writers
SELECT DISTINCT CASE WHEN o.id IS NULL THEN 0 ELSE 1 END, COALESCE(CONVERT(nvarchar(20), l.request_owner_id), N''),
  CASE WHEN l.request_session_id < 0 THEN 1 ELSE 0 END
FROM (SELECT OBJECT_ID(:table, N'U') AS id) AS o
LEFT JOIN sys.dm_tran_locks AS l ON l.resource_type = N'OBJECT' AND l.resource_database_id = DB_ID()
  AND l.resource_associated_entity_id = o.id AND l.request_mode IN (N'IX', N'SIX', N'X')

