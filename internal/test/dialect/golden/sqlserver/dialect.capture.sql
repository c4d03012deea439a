-- name: add_place_key
ALTER TABLE [rowfeed_feed_<feed>] ADD CONSTRAINT [rowfeed_<feed>_places] PRIMARY KEY NONCLUSTERED ([id])
WITH (ALLOW_PAGE_LOCKS = OFF)

-- name: add_place_key (composite_key_feed)
ALTER TABLE [rowfeed_feed_<feed>] ADD CONSTRAINT [rowfeed_<feed>_places] PRIMARY KEY NONCLUSTERED ([key_kind], [id])
WITH (ALLOW_PAGE_LOCKS = OFF)

-- name: add_position_key
ALTER TABLE [rowfeed_positions_<feed>] ADD CONSTRAINT [rowfeed_<feed>_positions] PRIMARY KEY CLUSTERED ([id])

-- name: add_position_key (composite_key_feed)
ALTER TABLE [rowfeed_positions_<feed>] ADD CONSTRAINT [rowfeed_<feed>_positions] PRIMARY KEY CLUSTERED ([key_kind], [id])

-- name: bucket_index
IF INDEXPROPERTY(OBJECT_ID(N'[rowfeed_positions_<feed>]'), N'by_bucket', N'IndexID') IS NULL
  CREATE INDEX by_bucket ON [rowfeed_positions_<feed>] (bucket, feed_sync_id) INCLUDE (shard, deleted, hidden, published_at)

-- name: capture_trigger
CREATE OR ALTER TRIGGER :trigger ON [items_<feed>] :rights AFTER INSERT, UPDATE, DELETE AS
BEGIN
  SET NOCOUNT ON;
  SET ROWCOUNT 0;
  INSERT INTO [rowfeed_changes_<feed>] ([id])
  SELECT d.[id] FROM deleted AS d WHERE NOT EXISTS (SELECT 1 FROM inserted AS i WHERE i.[id] = d.[id])
  UNION ALL SELECT i.[id] FROM inserted AS i;
END

-- name: capture_trigger (composite_key_feed)
CREATE OR ALTER TRIGGER :trigger ON [items_<feed>] :rights AFTER INSERT, UPDATE, DELETE AS
BEGIN
  SET NOCOUNT ON;
  SET ROWCOUNT 0;
  INSERT INTO [rowfeed_changes_<feed>] ([key_kind], [id])
  SELECT d.[kind], d.[id] FROM deleted AS d WHERE NOT EXISTS (SELECT 1 FROM inserted AS i WHERE i.[kind] = d.[kind] AND i.[id] = d.[id])
  UNION ALL SELECT i.[kind], i.[id] FROM inserted AS i;
END

-- name: changes
IF OBJECT_ID(N'[rowfeed_changes_<feed>]', N'U') IS NULL
  CREATE TABLE [rowfeed_changes_<feed>] (
    seq bigint NOT NULL DEFAULT (NEXT VALUE FOR [rowfeed_<feed>_seq]),
    [id] bigint NOT NULL,
    kind smallint NOT NULL DEFAULT 0,
    changed_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    PRIMARY KEY CLUSTERED (seq) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: changes (composite_key_feed)
IF OBJECT_ID(N'[rowfeed_changes_<feed>]', N'U') IS NULL
  CREATE TABLE [rowfeed_changes_<feed>] (
    seq bigint NOT NULL DEFAULT (NEXT VALUE FOR [rowfeed_<feed>_seq]),
    [key_kind] text NOT NULL,
  [id] bigint NOT NULL,
    kind smallint NOT NULL DEFAULT 0,
    changed_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    PRIMARY KEY CLUSTERED (seq) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: changes_locks
ALTER TABLE [rowfeed_changes_<feed>] SET (LOCK_ESCALATION = DISABLE)

-- name: changes_sequence
IF OBJECT_ID(N'[rowfeed_<feed>_seq]', N'SO') IS NULL
  CREATE SEQUENCE [rowfeed_<feed>_seq] AS bigint START WITH 1 INCREMENT BY 1 CACHE 1000

-- name: declare_key
ALTER TABLE :table ALTER COLUMN :column :type NOT NULL

-- name: delete_row
DELETE FROM [items_<feed>] WHERE :key

-- name: deleted_index
IF INDEXPROPERTY(OBJECT_ID(N'[rowfeed_positions_<feed>]'), N'by_deleted', N'IndexID') IS NULL
  CREATE INDEX by_deleted ON [rowfeed_positions_<feed>] (feed_sync_id) WHERE deleted = 1

-- name: drop_bucket_index
DROP INDEX IF EXISTS by_bucket ON [rowfeed_positions_<feed>]

-- name: drop_changes
DROP TABLE IF EXISTS [rowfeed_changes_<feed>]

-- name: drop_key
ALTER TABLE :table DROP CONSTRAINT IF EXISTS :constraint

-- name: drop_outbox
DROP TABLE IF EXISTS [rowfeed_outbox_<feed>]

-- name: drop_places
DROP TABLE IF EXISTS [rowfeed_feed_<feed>]

-- name: drop_position_column
ALTER TABLE [items_<feed>] DROP COLUMN IF EXISTS feed_sync_id

-- name: drop_positions
DROP TABLE IF EXISTS [rowfeed_positions_<feed>]

-- name: drop_row_index
DROP INDEX IF EXISTS [rowfeed_<feed>_row_position] ON [items_<feed>]

-- name: drop_sequence
DROP SEQUENCE IF EXISTS [rowfeed_<feed>_seq]

-- name: drop_shard_column
ALTER TABLE [items_<feed>] DROP CONSTRAINT IF EXISTS [rowfeed_<feed>_shard], COLUMN IF EXISTS shard

-- name: drop_trigger
DROP TRIGGER IF EXISTS :trigger

-- name: has_bucket_index
SELECT CASE WHEN INDEXPROPERTY(OBJECT_ID(N'[rowfeed_positions_<feed>]'), N'by_bucket', N'IndexID') IS NULL THEN 0 ELSE 1 END

-- name: missing
SELECT CASE WHEN OBJECT_ID(:object) IS NULL THEN 1 ELSE 0 END

-- name: moved
SELECT SCHEMA_NAME(t.schema_id) FROM sys.tables AS t
WHERE t.name = :table AND t.schema_id <> COALESCE(SCHEMA_ID(:former), 0)
  AND (:triggers = 1 AND EXISTS (SELECT 1 FROM sys.triggers AS g WHERE g.parent_id = t.object_id AND g.name = :trigger)
    OR :triggers = 0 AND t.schema_id = SCHEMA_ID(:own) AND SCHEMA_ID(:former) IS NULL)

-- name: outbox
IF OBJECT_ID(N'[rowfeed_outbox_<feed>]', N'U') IS NULL
  CREATE TABLE [rowfeed_outbox_<feed>] (
    order_sequence bigint NOT NULL DEFAULT (NEXT VALUE FOR [rowfeed_<feed>_seq]),
    shard bigint NOT NULL DEFAULT 0,
    time_hint bigint NULL,
    appended_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    [id] bigint NOT NULL,
    PRIMARY KEY CLUSTERED (order_sequence) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX by_shard (shard, order_sequence) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: outbox (composite_key_feed)
IF OBJECT_ID(N'[rowfeed_outbox_<feed>]', N'U') IS NULL
  CREATE TABLE [rowfeed_outbox_<feed>] (
    order_sequence bigint NOT NULL DEFAULT (NEXT VALUE FOR [rowfeed_<feed>_seq]),
    shard bigint NOT NULL DEFAULT 0,
    time_hint bigint NULL,
    appended_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    [key_kind] text NOT NULL,
  [id] bigint NOT NULL,
    PRIMARY KEY CLUSTERED (order_sequence) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX by_shard (shard, order_sequence) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: outbox_locks
ALTER TABLE [rowfeed_outbox_<feed>] SET (LOCK_ESCALATION = DISABLE)

-- name: places
IF OBJECT_ID(N'[rowfeed_feed_<feed>]', N'U') IS NULL
  CREATE TABLE [rowfeed_feed_<feed>] (
    shard bigint NOT NULL,
    ulid binary(16) NOT NULL,
    [id] bigint NOT NULL,
    CONSTRAINT [rowfeed_<feed>_places] PRIMARY KEY NONCLUSTERED ([id]) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX place UNIQUE CLUSTERED (shard, ulid) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: places (composite_key_feed)
IF OBJECT_ID(N'[rowfeed_feed_<feed>]', N'U') IS NULL
  CREATE TABLE [rowfeed_feed_<feed>] (
    shard bigint NOT NULL,
    ulid binary(16) NOT NULL,
    [key_kind] text NOT NULL,
  [id] bigint NOT NULL,
    CONSTRAINT [rowfeed_<feed>_places] PRIMARY KEY NONCLUSTERED ([key_kind], [id]) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX place UNIQUE CLUSTERED (shard, ulid) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: places_locks
ALTER TABLE [rowfeed_feed_<feed>] SET (LOCK_ESCALATION = DISABLE)

-- name: position_column
IF COL_LENGTH(N'[items_<feed>]', N'feed_sync_id') IS NULL
  ALTER TABLE [items_<feed>] ADD feed_sync_id bigint NULL

-- name: position_index
IF INDEXPROPERTY(OBJECT_ID(N'[rowfeed_positions_<feed>]'), N'by_position', N'IndexID') IS NULL
  CREATE UNIQUE INDEX by_position ON [rowfeed_positions_<feed>] (feed_sync_id) INCLUDE (shard, deleted, hidden, published_at)

-- name: positions
IF OBJECT_ID(N'[rowfeed_positions_<feed>]', N'U') IS NULL
  CREATE TABLE [rowfeed_positions_<feed>] (
    [id] bigint NOT NULL,
    feed_sync_id bigint NOT NULL,
    shard int NOT NULL,
    bucket int NOT NULL,
    deleted smallint NOT NULL,
    hidden smallint NOT NULL,
    published_at bigint NOT NULL,
    CONSTRAINT [rowfeed_<feed>_positions] PRIMARY KEY CLUSTERED ([id])
  )

-- name: positions (composite_key_feed)
IF OBJECT_ID(N'[rowfeed_positions_<feed>]', N'U') IS NULL
  CREATE TABLE [rowfeed_positions_<feed>] (
    [key_kind] text NOT NULL,
  [id] bigint NOT NULL,
    feed_sync_id bigint NOT NULL,
    shard int NOT NULL,
    bucket int NOT NULL,
    deleted smallint NOT NULL,
    hidden smallint NOT NULL,
    published_at bigint NOT NULL,
    CONSTRAINT [rowfeed_<feed>_positions] PRIMARY KEY CLUSTERED ([key_kind], [id])
  )

-- name: record_delete
INSERT INTO [rowfeed_changes_<feed>] ([id]) VALUES (:values)

-- name: record_delete (composite_key_feed)
INSERT INTO [rowfeed_changes_<feed>] ([key_kind], [id]) VALUES (:values)

-- name: record_trigger
CREATE OR ALTER TRIGGER :trigger ON [items_<feed>] :rights AFTER INSERT, UPDATE AS
BEGIN
  SET NOCOUNT ON;
  SET ROWCOUNT 0;
  INSERT INTO [rowfeed_outbox_<feed>] (shard, [id])
  SELECT :shard, i.[id] FROM inserted AS i
  WHERE NOT EXISTS (SELECT 1 FROM deleted AS d WHERE i.[id] = d.[id]);
END

-- name: record_trigger (composite_key_feed)
CREATE OR ALTER TRIGGER :trigger ON [items_<feed>] :rights AFTER INSERT, UPDATE AS
BEGIN
  SET NOCOUNT ON;
  SET ROWCOUNT 0;
  INSERT INTO [rowfeed_outbox_<feed>] (shard, [key_kind], [id])
  SELECT :shard, i.[kind], i.[id] FROM inserted AS i
  WHERE NOT EXISTS (SELECT 1 FROM deleted AS d WHERE i.[kind] = d.[kind] AND i.[id] = d.[id]);
END

-- name: row_position_index
IF INDEXPROPERTY(OBJECT_ID(N'[items_<feed>]'),
  N'rowfeed_<feed>_row_position', N'IndexID') IS NULL
  CREATE INDEX [rowfeed_<feed>_row_position] ON [items_<feed>] (feed_sync_id, [id])

-- name: row_position_index (composite_key_feed)
IF INDEXPROPERTY(OBJECT_ID(N'[items_<feed>]'),
  N'rowfeed_<feed>_row_position', N'IndexID') IS NULL
  CREATE INDEX [rowfeed_<feed>_row_position] ON [items_<feed>] (feed_sync_id, [kind], [id])

-- name: same_row
i.[id] = d.[id]

-- name: same_row (composite_key_feed)
i.[kind] = d.[kind] AND i.[id] = d.[id]

-- name: shard_column
IF COL_LENGTH(N'[items_<feed>]', N'shard') IS NULL
  ALTER TABLE [items_<feed>] ADD shard int NOT NULL CONSTRAINT [rowfeed_<feed>_shard] DEFAULT 0

-- name: strays
SELECT SCHEMA_NAME(o.schema_id), o.name, g.name FROM sys.triggers AS g
JOIN sys.objects AS o ON o.object_id = g.parent_id
WHERE g.parent_id <> OBJECT_ID(:source, N'U') AND EXISTS (SELECT 1 FROM sys.sql_expression_dependencies AS d
  WHERE d.referencing_id = g.object_id AND d.referenced_id = OBJECT_ID(:written, N'U'))
ORDER BY 1, 2, 3

-- name: trigger_state
SELECT COALESCE(m.definition, N''), CONVERT(int, g.is_disabled), CONVERT(int, g.is_instead_of_trigger),
  CONVERT(int, m.uses_ansi_nulls), CONVERT(int, m.uses_quoted_identifier),
  CASE WHEN m.execute_as_principal_id IS NULL THEN 0 ELSE 1 END,
  (SELECT COUNT(*) FROM sys.trigger_events AS e WHERE e.object_id = g.object_id),
  CASE WHEN OBJECTPROPERTY(g.parent_id, N'OwnerId') = OBJECTPROPERTY(OBJECT_ID(:written), N'OwnerId')
    AND OBJECTPROPERTY(g.parent_id, N'OwnerId') = OBJECTPROPERTY(OBJECT_ID(:sequence), N'OwnerId')
    OR m.execute_as_principal_id IS NOT NULL AND (
      OBJECTPROPERTY(g.parent_id, N'OwnerId') = DATABASE_PRINCIPAL_ID(N'dbo')
      OR EXISTS (SELECT 1 FROM sys.database_permissions AS p
        WHERE p.class = 1 AND p.major_id = OBJECT_ID(:written) AND p.minor_id = 0 AND p.permission_name = N'INSERT'
          AND p.state_desc LIKE N'GRANT%' AND p.grantee_principal_id = OBJECTPROPERTY(g.parent_id, N'OwnerId')))
    THEN 1 ELSE 0 END,
  COALESCE((SELECT CONVERT(int, n.value_in_use) FROM sys.configurations AS n WHERE n.name = N'nested triggers'), 1)
FROM sys.triggers AS g JOIN sys.sql_modules AS m ON m.object_id = g.object_id
WHERE g.object_id = OBJECT_ID(:trigger, N'TR') AND g.parent_id = OBJECT_ID(:source, N'U')

