-- feed add
SET NOEXEC OFF; SET ANSI_NULLS, QUOTED_IDENTIFIER, XACT_ABORT ON; SET LOCK_TIMEOUT 2000;
BEGIN TRANSACTION
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_feeds] (name, mode, capture, state, generation, source_schema, source_table, key_columns,
  delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity,
  created_at)
VALUES (N'kv', N'sequence', N'trigger', N'creating', 1, N'', N'kv', N'[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]',
  NULL, N'{}', 64, NULL, 2592000, 0, NULL, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_sequences] (name, value, version, updated_at) VALUES (N'kv', 0, 0, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF OBJECT_ID(N'[dbo].[rowfeed_kv_seq]', N'SO') IS NULL
  CREATE SEQUENCE [dbo].[rowfeed_kv_seq] AS bigint START WITH 1 INCREMENT BY 1 CACHE 1000
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF OBJECT_ID(N'[dbo].[rowfeed_changes_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_changes_kv] (
    seq bigint NOT NULL DEFAULT (NEXT VALUE FOR [dbo].[rowfeed_kv_seq]),
    [id] bigint NOT NULL,
    kind smallint NOT NULL DEFAULT 0,
    changed_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    PRIMARY KEY CLUSTERED (seq) WITH (ALLOW_PAGE_LOCKS = OFF)
  )
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
ALTER TABLE [dbo].[rowfeed_changes_kv] SET (LOCK_ESCALATION = DISABLE)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF OBJECT_ID(N'[dbo].[rowfeed_positions_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_positions_kv] (
    [id] bigint NOT NULL,
    feed_sync_id bigint NOT NULL,
    shard int NOT NULL,
    bucket int NOT NULL,
    deleted smallint NOT NULL,
    hidden smallint NOT NULL,
    published_at bigint NOT NULL,
    CONSTRAINT [rowfeed_kv_positions] PRIMARY KEY CLUSTERED ([id])
  )
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF INDEXPROPERTY(OBJECT_ID(N'[dbo].[rowfeed_positions_kv]'), N'by_position', N'IndexID') IS NULL
  CREATE UNIQUE INDEX by_position ON [dbo].[rowfeed_positions_kv] (feed_sync_id) INCLUDE (shard, deleted, hidden, published_at)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF INDEXPROPERTY(OBJECT_ID(N'[dbo].[rowfeed_positions_kv]'), N'by_deleted', N'IndexID') IS NULL
  CREATE INDEX by_deleted ON [dbo].[rowfeed_positions_kv] (feed_sync_id) WHERE deleted = 1
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF INDEXPROPERTY(OBJECT_ID(N'[dbo].[rowfeed_positions_kv]'), N'by_bucket', N'IndexID') IS NULL
  CREATE INDEX by_bucket ON [dbo].[rowfeed_positions_kv] (bucket, feed_sync_id) INCLUDE (shard, deleted, hidden, published_at)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE OR ALTER TRIGGER [dbo].[rowfeed_kv_capture] ON [dbo].[kv]  AFTER INSERT, UPDATE, DELETE AS
BEGIN
  SET NOCOUNT ON;
  INSERT INTO [dbo].[rowfeed_changes_kv] ([id])
  SELECT d.[id] FROM deleted AS d WHERE NOT EXISTS (SELECT 1 FROM inserted AS i WHERE i.[id] = d.[id])
  UNION ALL SELECT i.[id] FROM inserted AS i;
END
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_changes_kv] ([id])
SELECT [id] FROM [dbo].[kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
UPDATE [dbo].[rowfeed_feeds] SET state = N'active', database_identity = CASE WHEN DATABASEPROPERTYEX(DB_NAME(), N'Updateability') = N'READ_WRITE' THEN (SELECT CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID()) END WHERE name = N'kv'
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
COMMIT
GO
SET NOEXEC OFF
GO

-- feed drop
DROP TRIGGER IF EXISTS [dbo].[rowfeed_kv_capture]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_changes_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_positions_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP SEQUENCE IF EXISTS [dbo].[rowfeed_kv_seq]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO

-- name: changes_sequence
IF OBJECT_ID(N'[dbo].[rowfeed_kv_seq]', N'SO') IS NULL
  CREATE SEQUENCE [dbo].[rowfeed_kv_seq] AS bigint START WITH 1 INCREMENT BY 1 CACHE 1000

-- name: changes
IF OBJECT_ID(N'[dbo].[rowfeed_changes_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_changes_kv] (
    seq bigint NOT NULL DEFAULT (NEXT VALUE FOR [dbo].[rowfeed_kv_seq]),
    [id] bigint NOT NULL,
    kind smallint NOT NULL DEFAULT 0,
    changed_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    PRIMARY KEY CLUSTERED (seq) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: changes_locks
ALTER TABLE [dbo].[rowfeed_changes_kv] SET (LOCK_ESCALATION = DISABLE)

-- name: positions
IF OBJECT_ID(N'[dbo].[rowfeed_positions_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_positions_kv] (
    [id] bigint NOT NULL,
    feed_sync_id bigint NOT NULL,
    shard int NOT NULL,
    bucket int NOT NULL,
    deleted smallint NOT NULL,
    hidden smallint NOT NULL,
    published_at bigint NOT NULL,
    CONSTRAINT [rowfeed_kv_positions] PRIMARY KEY CLUSTERED ([id])
  )

-- name: position_index
IF INDEXPROPERTY(OBJECT_ID(N'[dbo].[rowfeed_positions_kv]'), N'by_position', N'IndexID') IS NULL
  CREATE UNIQUE INDEX by_position ON [dbo].[rowfeed_positions_kv] (feed_sync_id) INCLUDE (shard, deleted, hidden, published_at)

-- name: deleted_index
IF INDEXPROPERTY(OBJECT_ID(N'[dbo].[rowfeed_positions_kv]'), N'by_deleted', N'IndexID') IS NULL
  CREATE INDEX by_deleted ON [dbo].[rowfeed_positions_kv] (feed_sync_id) WHERE deleted = 1

-- name: bucket_index
IF INDEXPROPERTY(OBJECT_ID(N'[dbo].[rowfeed_positions_kv]'), N'by_bucket', N'IndexID') IS NULL
  CREATE INDEX by_bucket ON [dbo].[rowfeed_positions_kv] (bucket, feed_sync_id) INCLUDE (shard, deleted, hidden, published_at)

-- name: drop_bucket_index
DROP INDEX IF EXISTS by_bucket ON [dbo].[rowfeed_positions_kv]

-- name: has_bucket_index
SELECT CASE WHEN INDEXPROPERTY(OBJECT_ID(N'[dbo].[rowfeed_positions_kv]'), N'by_bucket', N'IndexID') IS NULL THEN 0 ELSE 1 END

-- name: outbox
IF OBJECT_ID(N'[dbo].[rowfeed_outbox_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_outbox_kv] (
    order_sequence bigint NOT NULL DEFAULT (NEXT VALUE FOR [dbo].[rowfeed_kv_seq]),
    shard bigint NOT NULL DEFAULT 0,
    time_hint bigint NULL,
    appended_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    [id] bigint NOT NULL,
    PRIMARY KEY CLUSTERED (order_sequence) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX by_shard (shard, order_sequence) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: outbox_locks
ALTER TABLE [dbo].[rowfeed_outbox_kv] SET (LOCK_ESCALATION = DISABLE)

-- name: places
IF OBJECT_ID(N'[dbo].[rowfeed_feed_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_feed_kv] (
    shard bigint NOT NULL,
    ulid binary(16) NOT NULL,
    [id] bigint NOT NULL,
    CONSTRAINT [rowfeed_kv_places] PRIMARY KEY NONCLUSTERED ([id]) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX place UNIQUE CLUSTERED (shard, ulid) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: places_locks
ALTER TABLE [dbo].[rowfeed_feed_kv] SET (LOCK_ESCALATION = DISABLE)

-- name: position_column
IF COL_LENGTH(N'[dbo].[kv]', N'feed_sync_id') IS NULL
  ALTER TABLE [dbo].[kv] ADD feed_sync_id bigint NULL

-- name: shard_column
IF COL_LENGTH(N'[dbo].[kv]', N'shard') IS NULL
  ALTER TABLE [dbo].[kv] ADD shard int NOT NULL CONSTRAINT [rowfeed_kv_shard] DEFAULT 0

-- name: row_position_index
IF INDEXPROPERTY(OBJECT_ID(N'[dbo].[kv]'),
  N'rowfeed_kv_row_position', N'IndexID') IS NULL
  CREATE INDEX [rowfeed_kv_row_position] ON [dbo].[kv] (feed_sync_id, [id])

-- name: drop_row_index
DROP INDEX IF EXISTS [rowfeed_kv_row_position] ON [dbo].[kv]

-- name: drop_position_column
ALTER TABLE [dbo].[kv] DROP COLUMN IF EXISTS feed_sync_id

-- name: drop_shard_column
ALTER TABLE [dbo].[kv] DROP CONSTRAINT IF EXISTS [rowfeed_kv_shard], COLUMN IF EXISTS shard

-- name: same_row
i.[id] = d.[id]

-- name: capture_trigger
CREATE OR ALTER TRIGGER :trigger ON [dbo].[kv] :rights AFTER INSERT, UPDATE, DELETE AS
BEGIN
  SET NOCOUNT ON;
  INSERT INTO [dbo].[rowfeed_changes_kv] ([id])
  SELECT d.[id] FROM deleted AS d WHERE NOT EXISTS (SELECT 1 FROM inserted AS i WHERE i.[id] = d.[id])
  UNION ALL SELECT i.[id] FROM inserted AS i;
END

-- name: record_trigger
CREATE OR ALTER TRIGGER :trigger ON [dbo].[kv] :rights AFTER INSERT, UPDATE AS
BEGIN
  SET NOCOUNT ON;
  INSERT INTO [dbo].[rowfeed_outbox_kv] (shard, [id])
  SELECT :shard, i.[id] FROM inserted AS i
  WHERE NOT EXISTS (SELECT 1 FROM deleted AS d WHERE i.[id] = d.[id]);
END

-- name: drop_trigger
DROP TRIGGER IF EXISTS :trigger

-- name: drop_outbox
DROP TABLE IF EXISTS [dbo].[rowfeed_outbox_kv]

-- name: drop_places
DROP TABLE IF EXISTS [dbo].[rowfeed_feed_kv]

-- name: drop_changes
DROP TABLE IF EXISTS [dbo].[rowfeed_changes_kv]

-- name: drop_positions
DROP TABLE IF EXISTS [dbo].[rowfeed_positions_kv]

-- name: drop_sequence
DROP SEQUENCE IF EXISTS [dbo].[rowfeed_kv_seq]

-- name: drop_key
ALTER TABLE :table DROP CONSTRAINT IF EXISTS :constraint

-- name: declare_key
ALTER TABLE :table ALTER COLUMN :column :type NOT NULL

-- name: add_position_key
ALTER TABLE [dbo].[rowfeed_positions_kv] ADD CONSTRAINT [rowfeed_kv_positions] PRIMARY KEY CLUSTERED ([id])

-- name: add_place_key
ALTER TABLE [dbo].[rowfeed_feed_kv] ADD CONSTRAINT [rowfeed_kv_places] PRIMARY KEY NONCLUSTERED ([id])
WITH (ALLOW_PAGE_LOCKS = OFF)

-- name: delete_row
DELETE FROM [dbo].[kv] WHERE :key

-- name: record_delete
INSERT INTO [dbo].[rowfeed_changes_kv] ([id]) VALUES (:values)

-- name: missing
SELECT CASE WHEN OBJECT_ID(:object) IS NULL THEN 1 ELSE 0 END

-- name: trigger_state
SELECT COALESCE(m.definition, N''), CONVERT(int, g.is_disabled), CONVERT(int, g.is_instead_of_trigger),
  CONVERT(int, m.uses_ansi_nulls), CONVERT(int, m.uses_quoted_identifier),
  CASE WHEN m.execute_as_principal_id IS NULL THEN 0 ELSE 1 END,
  (SELECT COUNT(*) FROM sys.trigger_events AS e WHERE e.object_id = g.object_id),
  CASE WHEN OBJECTPROPERTY(g.parent_id, N'OwnerId') = OBJECTPROPERTY(OBJECT_ID(:written), N'OwnerId')
    AND OBJECTPROPERTY(g.parent_id, N'OwnerId') = OBJECTPROPERTY(OBJECT_ID(:sequence), N'OwnerId') THEN 1 ELSE 0 END,
  COALESCE((SELECT CONVERT(int, n.value_in_use) FROM sys.configurations AS n WHERE n.name = N'nested triggers'), 1)
FROM sys.triggers AS g JOIN sys.sql_modules AS m ON m.object_id = g.object_id
WHERE g.object_id = OBJECT_ID(:trigger, N'TR') AND g.parent_id = OBJECT_ID(:source, N'U')

-- name: strays
SELECT SCHEMA_NAME(o.schema_id), o.name, g.name FROM sys.triggers AS g
JOIN sys.objects AS o ON o.object_id = g.parent_id
WHERE g.parent_id <> OBJECT_ID(:source, N'U') AND EXISTS (SELECT 1 FROM sys.sql_expression_dependencies AS d
  WHERE d.referencing_id = g.object_id AND d.referenced_id = OBJECT_ID(:written, N'U'))
ORDER BY 1, 2, 3

-- name: moved
SELECT SCHEMA_NAME(t.schema_id) FROM sys.tables AS t
WHERE t.name = :table AND t.schema_id <> COALESCE(SCHEMA_ID(:former), 0)
  AND (:triggers = 1 AND EXISTS (SELECT 1 FROM sys.triggers AS g WHERE g.parent_id = t.object_id AND g.name = :trigger)
    OR :triggers = 0 AND t.schema_id = SCHEMA_ID(:own) AND SCHEMA_ID(:former) IS NULL)

-- name: page
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[id] IS NULL THEN 0 ELSE 1 END, p.[id], t.[id], CONVERT(varchar(41), t.[v]), CONVERT(varchar(33), CONVERT(datetime2(3), SWITCHOFFSET(t.[at], 0)), 121) + '+00'
FROM [dbo].[rowfeed_feeds] AS f
JOIN [dbo].[rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) [id], feed_sync_id, shard, deleted, hidden, published_at
  FROM [dbo].[rowfeed_positions_kv] WITH (INDEX(by_position), FORCESEEK)
  WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [dbo].[rowfeed_sequences] WHERE name = :feed)
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id) AS p ON 1 = 1
LEFT JOIN [dbo].[kv] AS t WITH (FORCESEEK) ON p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: page_of_part
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[id] IS NULL THEN 0 ELSE 1 END, p.[id], t.[id], CONVERT(varchar(41), t.[v]), CONVERT(varchar(33), CONVERT(datetime2(3), SWITCHOFFSET(t.[at], 0)), 121) + '+00'
FROM [dbo].[rowfeed_feeds] AS f
JOIN [dbo].[rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) x.* FROM (:buckets) AS x
  ORDER BY x.feed_sync_id) AS p ON 1 = 1
LEFT JOIN [dbo].[kv] AS t WITH (FORCESEEK) ON p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: bucket
SELECT [id], feed_sync_id, shard, deleted, hidden, published_at
  FROM [dbo].[rowfeed_positions_kv] WITH (INDEX(by_bucket), FORCESEEK)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [dbo].[rowfeed_sequences] WHERE name = :feed)
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: one_of_buckets
SELECT * FROM (SELECT [id], feed_sync_id, shard, deleted, hidden, published_at
  FROM [dbo].[rowfeed_positions_kv] WITH (INDEX(by_bucket), FORCESEEK)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [dbo].[rowfeed_sequences] WHERE name = :feed)
    AND shard >= :from AND shard < :to
    AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
  ORDER BY feed_sync_id OFFSET 0 ROWS FETCH NEXT :share ROWS ONLY) AS b

-- name: page_of_rows
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[id] IS NULL THEN 0 ELSE 1 END, p.[id], t.[id], CONVERT(varchar(41), t.[v]), CONVERT(varchar(33), CONVERT(datetime2(3), SWITCHOFFSET(t.[at], 0)), 121) + '+00'
FROM [dbo].[rowfeed_feeds] AS f
JOIN [dbo].[rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN (SELECT TOP (:limit) x.* FROM (
  SELECT * FROM (SELECT TOP (:limit) [id], feed_sync_id, shard, deleted, hidden, published_at
    FROM [dbo].[rowfeed_positions_kv] WITH (INDEX(by_position), FORCESEEK)
    WHERE feed_sync_id > :after AND feed_sync_id <= (SELECT value FROM [dbo].[rowfeed_sequences] WHERE name = :feed) :of_part
      AND NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))
    ORDER BY feed_sync_id) AS own
  UNION ALL SELECT * FROM (SELECT TOP (:limit) r.[id] AS [id], r.feed_sync_id AS feed_sync_id,
      COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, CONVERT(bigint, 0) AS published_at
    FROM [dbo].[kv] AS r WITH (INDEX([rowfeed_kv_row_position]), FORCESEEK)
    WHERE r.feed_sync_id > :after AND r.feed_sync_id <= (SELECT value FROM [dbo].[rowfeed_sequences] WHERE name = :feed) :row_of_part
      AND NOT EXISTS (SELECT 1 FROM [dbo].[rowfeed_positions_kv] AS h WITH (FORCESEEK)
        WHERE h.[id] = r.[id] AND (h.hidden = 1 OR h.feed_sync_id > r.feed_sync_id))
    ORDER BY r.feed_sync_id) AS placed) AS x
  ORDER BY x.feed_sync_id) AS p ON 1 = 1
LEFT JOIN [dbo].[kv] AS t WITH (FORCESEEK) ON p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: of_part
AND shard >= :from AND shard < :to

-- name: row_of_part
AND COALESCE(r.shard, 0) >= :from AND COALESCE(r.shard, 0) < :to

-- name: begin_page
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN t.[id] IS NULL THEN 0 ELSE 1 END, p.[id], t.[id], CONVERT(varchar(41), t.[v]), CONVERT(varchar(33), CONVERT(datetime2(3), SWITCHOFFSET(t.[at], 0)), 121) + '+00'
FROM [dbo].[rowfeed_feeds] AS f
JOIN [dbo].[rowfeed_sequences] AS s ON s.name = f.name

-- name: end_page
LEFT JOIN [dbo].[kv] AS t WITH (FORCESEEK) ON p.[id] = t.[id]
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: in_order
ORDER BY p.feed_sync_id OFFSET 0 ROWS FETCH NEXT :limit ROWS ONLY

-- name: in_any_order
ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :more ROWS ONLY

-- name: head
(SELECT value FROM [dbo].[rowfeed_sequences] WHERE name = :feed)

-- name: not_old_tombstone
NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: signature
COALESCE((SELECT CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
    (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
  FROM sys.objects AS o WHERE o.object_id = OBJECT_ID(N'[dbo].[kv]')), N'')

-- name: signature_if_served
CASE WHEN f.state IN (:unserved) OR f.data_shards <> :data_shards THEN N'' ELSE COALESCE((SELECT CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
    (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
  FROM sys.objects AS o WHERE o.object_id = OBJECT_ID(N'[dbo].[kv]')), N'') END

-- name: signature_here
CASE WHEN f.database_identity <> :identity THEN N'' ELSE COALESCE((SELECT CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
    (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
  FROM sys.objects AS o WHERE o.object_id = OBJECT_ID(N'[dbo].[kv]')), N'') END

-- name: signature_anywhere
COALESCE((SELECT CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
    (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
  FROM sys.objects AS o WHERE o.object_id = OBJECT_ID(N'[dbo].[kv]')), N'')

-- name: all_changes
FROM [dbo].[rowfeed_changes_kv]

-- name: changes_between
FROM [dbo].[rowfeed_changes_kv] WHERE seq BETWEEN :first AND :last

-- name: changes_above
FROM [dbo].[rowfeed_changes_kv] WHERE seq > :above

-- name: all_records
FROM [dbo].[rowfeed_outbox_kv]

-- name: records_between
FROM [dbo].[rowfeed_outbox_kv] WHERE order_sequence BETWEEN :first AND :last

-- name: records_above
FROM [dbo].[rowfeed_outbox_kv] WHERE order_sequence > :above

-- name: all_of_shard
FROM [dbo].[rowfeed_outbox_kv] WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard :but ORDER BY order_sequence

-- name: of_shard_between
FROM [dbo].[rowfeed_outbox_kv] WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard AND order_sequence BETWEEN :first AND :last :but
ORDER BY order_sequence

-- name: of_shard_above
FROM [dbo].[rowfeed_outbox_kv] WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard AND order_sequence > :above :but
ORDER BY order_sequence

-- name: newest_of_shard
SELECT TOP (1) order_sequence FROM [dbo].[rowfeed_outbox_kv] WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard
ORDER BY order_sequence DESC

-- name: first_shard
SELECT TOP (1) shard FROM [dbo].[rowfeed_outbox_kv] WITH (INDEX(by_shard)) ORDER BY shard

-- name: next_shard
SELECT TOP (1) shard FROM [dbo].[rowfeed_outbox_kv] WITH (INDEX(by_shard), FORCESEEK) WHERE shard > :above ORDER BY shard

-- name: settings
SET XACT_ABORT OFF; SET LOCK_TIMEOUT :wait; SET DEADLOCK_PRIORITY :priority

-- name: restore_isolation
SET TRANSACTION ISOLATION LEVEL READ COMMITTED

-- name: durability
SELECT d.delayed_durability_desc FROM sys.databases AS d WHERE d.database_id = DB_ID()

-- name: identity_of_primary
(SELECT CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID())

-- name: identity
CASE WHEN DATABASEPROPERTYEX(DB_NAME(), N'Updateability') = N'READ_WRITE' THEN (SELECT CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID()) END

-- name: read_identity
SELECT CASE WHEN DATABASEPROPERTYEX(DB_NAME(), N'Updateability') = N'READ_WRITE' THEN (SELECT CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID()) END

-- name: has_changes
SELECT TOP (1) x.seq FROM (:scans) AS x

-- name: first_change
SELECT * FROM (SELECT TOP (1) seq :scan ORDER BY seq) AS c

-- name: first_row
SELECT * FROM (SELECT TOP (1) CONVERT(bigint, 0) AS seq FROM [dbo].[kv] WHERE feed_sync_id IS NULL) AS t

-- name: lock_sequence
SET NOCOUNT ON;
EXEC [dbo].[rowfeed_turn] @name = :turn, @wait = NULL;
SELECT value, version, COALESCE(term, 0), updated_at, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), (SELECT CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID())
FROM [dbo].[rowfeed_sequences] WITH (UPDLOCK, ROWLOCK) WHERE name = :feed

-- name: oldest
SELECT * FROM (SELECT TOP (:limit) seq, kind, [id] :scan ORDER BY seq) AS c

-- name: take_changes
SELECT TOP (:limit) x.seq, x.kind, x.[id] FROM (:scans) AS x ORDER BY x.seq OPTION (MAXDOP 1)

-- name: assigned
SELECT x.feed_sync_id, x.shard, x.kind, x.deleted, x.[id] FROM (
  SELECT :base + j.place AS feed_sync_id, j.shard, j.kind,
    CASE WHEN t.[id] IS NULL THEN 1 ELSE 0 END AS deleted, c.[id],
    ROW_NUMBER() OVER (PARTITION BY c.[id] ORDER BY j.place DESC) AS rowid
  FROM (SELECT CONVERT(bigint, l.[key]) + 1 AS place, CONVERT(bigint, JSON_VALUE(l.value, N'$[0]')) AS seq,
      CONVERT(int, JSON_VALUE(l.value, N'$[1]')) AS shard, CONVERT(int, JSON_VALUE(l.value, N'$[2]')) AS kind
    FROM OPENJSON(:list) AS l) AS j
  INNER LOOP JOIN [dbo].[rowfeed_changes_kv] AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN [dbo].[kv] AS t WITH (FORCESEEK) ON c.[id] = t.[id]) AS x
WHERE x.rowid = 1

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
  INNER LOOP JOIN [dbo].[rowfeed_changes_kv] AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN [dbo].[kv] AS t WITH (FORCESEEK) ON c.[id] = t.[id]) AS x
WHERE x.rowid = 1 OPTION (FORCE ORDER, MAXDOP 1);
UPDATE p SET
  feed_sync_id = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.feed_sync_id ELSE a.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.published_at ELSE :published END,
  deleted = a.deleted,
  hidden = CASE a.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END
FROM @assigned AS a INNER LOOP JOIN [dbo].[rowfeed_positions_kv] AS p WITH (ROWLOCK, FORCESEEK) ON p.[id] = a.[id]
OPTION (FORCE ORDER, MAXDOP 1);
INSERT INTO [dbo].[rowfeed_positions_kv] ([id], feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT a.[id], a.feed_sync_id, a.shard, ((a.shard + 1) * 32 - 1) / 64, a.deleted, CASE a.kind WHEN 2 THEN 1 ELSE 0 END,
  :published
FROM @assigned AS a
WHERE a.deleted = 0 AND NOT EXISTS (
  SELECT 1 FROM [dbo].[rowfeed_positions_kv] AS p WITH (FORCESEEK) WHERE p.[id] = a.[id])
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: delete_changes
DELETE c FROM OPENJSON(:seqs) WITH (seq bigint N'$') AS j
INNER LOOP JOIN [dbo].[rowfeed_changes_kv] AS c WITH (ROWLOCK, FORCESEEK) ON c.seq = j.seq OPTION (FORCE ORDER, MAXDOP 1)

-- name: writers
SELECT DISTINCT CONVERT(nvarchar(20), l.request_owner_id), CASE WHEN l.request_session_id < 0 THEN 1 ELSE 0 END
FROM sys.dm_tran_locks AS l
WHERE l.resource_type = N'OBJECT' AND l.resource_database_id = DB_ID()
  AND l.resource_associated_entity_id = OBJECT_ID(:table, N'U') AND l.request_mode IN (N'IX', N'SIX', N'X')

-- name: unlocked
WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK, INDEX([rowfeed_kv_row_position]))

-- name: place_rows
SET NOCOUNT ON;
DECLARE @placed TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY,
  [id] bigint NOT NULL
);
WITH waiting AS (
  SELECT TOP (:limit) t.feed_sync_id, t.[id], ROW_NUMBER() OVER (ORDER BY t.[id]) AS rowfeed_place
  FROM [dbo].[kv] AS t WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK, INDEX([rowfeed_kv_row_position])) :waiting
)
UPDATE waiting SET feed_sync_id = :base + waiting.rowfeed_place
OUTPUT inserted.feed_sync_id, inserted.[id] INTO @placed (feed_sync_id, [id])
OPTION (MAXDOP 1);
DELETE p FROM @placed AS b INNER LOOP JOIN [dbo].[rowfeed_positions_kv] AS p WITH (ROWLOCK, FORCESEEK) ON p.[id] = b.[id]
WHERE p.hidden = 0 OPTION (FORCE ORDER, MAXDOP 1);
SELECT CONVERT(nvarchar(20), b.feed_sync_id), b.[id] FROM @placed AS b ORDER BY b.feed_sync_id

-- name: reset_rows
UPDATE t SET feed_sync_id = NULL FROM [dbo].[kv] AS t WHERE

-- name: assigned_shards
OPENJSON(:places) WITH (position bigint N'$[0]', shard int N'$[1]') AS j

-- name: set_shards
UPDATE p SET shard = j.shard, bucket = ((j.shard + 1) * 32 - 1) / 64
FROM OPENJSON(:places) WITH (position bigint N'$[0]', shard int N'$[1]') AS j
INNER LOOP JOIN [dbo].[rowfeed_positions_kv] AS p WITH (ROWLOCK, FORCESEEK) ON p.feed_sync_id = j.position
OPTION (FORCE ORDER, MAXDOP 1)

-- name: set_shards_of_rows
UPDATE t SET shard = j.shard
FROM OPENJSON(:places) WITH (position bigint N'$[0]', shard int N'$[1]') AS j
INNER LOOP JOIN [dbo].[kv] AS t WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK, INDEX([rowfeed_kv_row_position])) ON t.feed_sync_id = j.position OPTION (FORCE ORDER, MAXDOP 1)

-- name: session_columns
CONVERT(nvarchar(20), l.request_session_id), COALESCE(s.login_name, N''), COALESCE(s.host_name, N''),
  COALESCE(DATEDIFF_BIG(microsecond, a.transaction_begin_time, SYSDATETIME()), -1),
  COALESCE(LEFT(b.event_info, 500), N'')

-- name: session_tables
LEFT JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
LEFT JOIN sys.dm_tran_active_transactions AS a ON a.transaction_id = l.request_owner_id
OUTER APPLY sys.dm_exec_input_buffer(l.request_session_id, NULL) AS b

-- name: blockers
SELECT CONVERT(nvarchar(20), l.request_session_id), COALESCE(s.login_name, N''), COALESCE(s.host_name, N''),
  COALESCE(DATEDIFF_BIG(microsecond, a.transaction_begin_time, SYSDATETIME()), -1),
  COALESCE(LEFT(b.event_info, 500), N''), l.scope
FROM (
  SELECT DISTINCT w.request_session_id, w.request_owner_id, N'wrote to the feed''s table' AS scope
  FROM sys.dm_tran_locks AS w
  WHERE w.resource_type = N'OBJECT' AND w.resource_database_id = DB_ID()
    AND w.resource_associated_entity_id = OBJECT_ID(:written, N'U') AND w.request_status = N'GRANT'
    AND w.request_mode IN (N'IX', N'SIX', N'X')
    AND NOT EXISTS (SELECT 1 FROM sys.dm_tran_locks AS p
      WHERE p.resource_type = N'OBJECT' AND p.resource_database_id = DB_ID()
        AND p.request_owner_id = w.request_owner_id AND p.resource_associated_entity_id = OBJECT_ID(:positions, N'U')
        AND p.request_mode IN (N'IX', N'SIX', N'X'))
  UNION ALL
  SELECT DISTINCT m.request_session_id, m.request_owner_id, N'locks the feed''s table, or waits to lock it'
  FROM sys.dm_tran_locks AS m
  WHERE m.resource_type = N'OBJECT' AND m.resource_database_id = DB_ID()
    AND m.resource_associated_entity_id = OBJECT_ID(:source, N'U') AND m.request_mode = N'Sch-M'
) AS l
LEFT JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
LEFT JOIN sys.dm_tran_active_transactions AS a ON a.transaction_id = l.request_owner_id
OUTER APPLY sys.dm_exec_input_buffer(l.request_session_id, NULL) AS b
WHERE l.request_session_id <> @@SPID
ORDER BY a.transaction_begin_time

-- name: holders
SELECT l.resource_description, CASE WHEN l.request_status = N'GRANT' THEN 0 ELSE 1 END,
  CONVERT(nvarchar(20), l.request_owner_id), CONVERT(nvarchar(20), l.request_session_id), COALESCE(s.login_name, N''), COALESCE(s.host_name, N''),
  COALESCE(DATEDIFF_BIG(microsecond, a.transaction_begin_time, SYSDATETIME()), -1),
  COALESCE(LEFT(b.event_info, 500), N''), COALESCE(s.program_name, N''),
  COALESCE(s.status, N''), COALESCE(DATEDIFF_BIG(microsecond, s.last_request_end_time, SYSDATETIME()), -1)
FROM sys.dm_tran_locks AS l
LEFT JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
LEFT JOIN sys.dm_tran_active_transactions AS a ON a.transaction_id = l.request_owner_id
OUTER APPLY sys.dm_exec_input_buffer(l.request_session_id, NULL) AS b
WHERE l.resource_type = N'APPLICATION' AND l.resource_database_id = DB_ID()
  AND CHARINDEX(CONCAT(N'[', :turn), l.resource_description) > 0
ORDER BY 2, a.transaction_begin_time

-- name: end_session
KILL :session

-- name: login
SELECT QUOTENAME(SUSER_SNAME())

-- name: backlog
SELECT (SELECT COUNT_BIG(*) FROM (SELECT TOP (:limit) 1 AS one FROM [dbo].[rowfeed_changes_kv]) AS x),
  COALESCE(DATEDIFF_BIG(microsecond, (SELECT TOP (1) c.changed_at FROM [dbo].[rowfeed_changes_kv] AS c ORDER BY c.seq),
    SYSUTCDATETIME()), 0)

-- name: backlog_of_outbox
SELECT (SELECT COUNT_BIG(*) FROM (SELECT TOP (:limit) 1 AS one FROM [dbo].[rowfeed_outbox_kv]) AS x),
  COALESCE(DATEDIFF_BIG(microsecond, (SELECT TOP (1) o.appended_at FROM [dbo].[rowfeed_outbox_kv] AS o :which), SYSUTCDATETIME()), 0)

-- name: oldest_record
ORDER BY o.order_sequence

-- name: oldest_record_of_shard
WITH (INDEX(by_shard), FORCESEEK) WHERE o.shard = :shard ORDER BY o.order_sequence

