-- feed add
SET NOEXEC OFF; SET ANSI_NULLS, QUOTED_IDENTIFIER, XACT_ABORT ON; SET LOCK_TIMEOUT 2000;
BEGIN TRANSACTION
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_feeds] (name, mode, capture, state, generation, source_schema, source_table, key_columns,
  delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity,
  created_at)
VALUES (N'kv', N'blocking', N'none', N'creating', 1, N'', N'kv', N'[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]',
  NULL, N'{"ulids":{"Position":{"name":"u","type":"binary(16)","decl":"binary(16)","kind":"binary","exact":true},"Shard":{"name":"v","type":"int","decl":"int","kind":"integer","exact":true},"Index":""}}', 1, N'v', 0, 0, NULL, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_sequences] (name, value, version, updated_at) VALUES (N'kv', 0, 0, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE OR ALTER PROCEDURE [dbo].[rowfeed_lock_kv]
  @shard bigint = 0, @time_hint datetime2(3) = NULL,
  @ulid binary(16) = NULL OUTPUT, @ulid_high bigint = NULL OUTPUT, @ulid_low bigint = NULL OUTPUT,
  @hint_ms bigint = NULL, @word nvarchar(40) = NULL, @wait int = 10000
WITH EXECUTE AS OWNER AS
BEGIN
  SET NOCOUNT ON;
  IF @@TRANCOUNT = 0
    THROW 77100, N'rowfeed: no transaction is open: begin one, lock, insert, commit', 1;
  DECLARE @time bigint, @high bigint, @low bigint, @greatest binary(16), @now bigint, @hint bigint,
    @most bigint = CONVERT(bigint, 0x7FFFFFFFFFFFFFFF), @count bigint = CONVERT(bigint, 100000000000), @fresh bit = 0,
    @bits binary(10) = CRYPT_GEN_RANDOM(10), @transaction bigint = CURRENT_TRANSACTION_ID(), @name nvarchar(32);
  SET @shard = COALESCE(@shard, 0);
  SET @name = CONCAT(N'rf1e4181d0:', @shard);
  EXEC [dbo].[rowfeed_turn] @name = @name, @wait = @wait;
  SELECT @time = s.time_ms, @high = s.ulid_high, @low = s.ulid_low FROM [dbo].[rowfeed_shards] AS s WITH (UPDLOCK, ROWLOCK)
  WHERE s.feed = N'kv' AND s.shard = @shard;
  IF @time IS NULL
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM [dbo].[rowfeed_feeds] AS f WITH (REPEATABLEREAD, ROWLOCK)
      WHERE f.name = N'kv' AND f.state = N'active')
      THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
    INSERT INTO [dbo].[rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
    VALUES (N'kv', @shard, 0, 0, 0, N'');
    SELECT @time = 0, @high = 0, @low = 0;
  END;
  SELECT TOP (1) @greatest = g.[u] FROM [dbo].[kv] AS g WITH (FORCESEEK)
  WHERE g.[v] = @shard ORDER BY g.[u] DESC;
  IF @greatest >= CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))
  BEGIN
    SET @time = CONVERT(bigint, SUBSTRING(@greatest, 1, 6)) + 1;
    SET @high = CONVERT(bigint, SUBSTRING(CONVERT(binary(8), @time), 3, 6) + 0x0000);
    SET @low = -1;
  END;
  SET @now = DATEDIFF_BIG(millisecond, '1970-01-01', SYSUTCDATETIME());
  SET @hint = COALESCE(@hint_ms, DATEDIFF_BIG(millisecond, '1970-01-01', @time_hint), @now);
  IF @hint < 1
    SET @hint = 1;
  IF @hint > @now + 60000
    THROW 77102, N'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend its clock', 1;
  IF @hint > @time
    SELECT @time = @hint, @fresh = 1;
  ELSE IF (@low & @most) > @most - @count
    SELECT @time = @time + 1, @fresh = 1;
  IF @time > CONVERT(bigint, 281474976710655)
    THROW 77103, N'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it', 1;
  IF @fresh = 1
  BEGIN
    SET @high = CONVERT(bigint, SUBSTRING(CONVERT(binary(8), @time), 3, 6) + SUBSTRING(@bits, 1, 2));
    SET @low = CONVERT(bigint, SUBSTRING(@bits, 3, 8)) & CONVERT(bigint, 0xBFFFFFFFFFFFFFFF);
  END;
  UPDATE s SET time_ms = @time, ulid_high = @high, ulid_low = @low + @count,
    witness = CASE WHEN @word IS NULL THEN s.witness ELSE LEFT(CONCAT(@word, N' ', s.witness), 320) END
  FROM [dbo].[rowfeed_shards] AS s WHERE s.feed = N'kv' AND s.shard = @shard;
  EXEC sys.sp_set_session_context @key = N'rowfeed.1e4181d0.tx', @value = @transaction;
  EXEC sys.sp_set_session_context @key = N'rowfeed.1e4181d0.high', @value = @high;
  EXEC sys.sp_set_session_context @key = N'rowfeed.1e4181d0.low', @value = @low;
  SELECT @ulid = CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low)), @ulid_high = @high, @ulid_low = @low;
END
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE OR ALTER FUNCTION [dbo].[rowfeed_ulid_kv] (@i bigint) RETURNS binary(16) AS
BEGIN
  DECLARE @high bigint = CONVERT(bigint, SESSION_CONTEXT(N'rowfeed.1e4181d0.high')), @low bigint;
  SET @low = CONVERT(bigint, SESSION_CONTEXT(N'rowfeed.1e4181d0.low')) + @i;
  IF @i >= 0 AND @i < CONVERT(bigint, 100000000000)
    AND CONVERT(bigint, SESSION_CONTEXT(N'rowfeed.1e4181d0.tx')) = CURRENT_TRANSACTION_ID()
    RETURN CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low));
  RETURN CONVERT(binary(16), CONVERT(int, CONCAT(N'rowfeed: call rowfeed_lock_kv first in this transaction, and ask for a number from 0 to 99999999999, not ', @i)));
END
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
SELECT N'kv', x.shard, (CONVERT(bigint, SUBSTRING(x.highest, 1, 6)) + 1), CONVERT(bigint, SUBSTRING(CONVERT(binary(8), (CONVERT(bigint, SUBSTRING(x.highest, 1, 6)) + 1)), 3, 6) + 0x0000), -1, ''
FROM (SELECT s.shard, (SELECT g.[u] FROM [dbo].[kv] g WHERE g.[v] = s.shard
    ORDER BY g.[u] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) AS highest
  FROM (SELECT DISTINCT g.[v] AS shard FROM [dbo].[kv] g) s) x
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
DROP PROCEDURE IF EXISTS [dbo].[rowfeed_lock_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP FUNCTION IF EXISTS [dbo].[rowfeed_ulid_kv]
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

-- name: blocking_page
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), (SELECT TOP (1) g.[u] FROM [dbo].[kv] AS g WITH (INDEX([kv_feed]), FORCESEEK)
WHERE g.[v] = :shard ORDER BY g.[u] DESC), 0, 0, 0, :signature, p.place, p.present,
  p.v0, p.v1, p.v2, p.v3
FROM [dbo].[rowfeed_feeds] AS f
JOIN [dbo].[rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN [dbo].[rowfeed_shards] AS h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT TOP (:limit) t.[u] AS place, 1 AS present, t.[id] AS v0, t.[id] AS v1, CONVERT(varchar(41), t.[v]) AS v2, CONVERT(varchar(33), CONVERT(datetime2(3), SWITCHOFFSET(t.[at], 0)), 121) + '+00' AS v3
  FROM [dbo].[kv] AS t WITH (INDEX([kv_feed]), FORCESEEK)
  WHERE t.[v] = :shard AND t.[u] > :after
  ORDER BY t.[u]) AS p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.place
OPTION (FORCE ORDER, MAXDOP 1)

-- name: outbox_page
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), (SELECT TOP (1) g.[u] FROM [dbo].[kv] AS g WITH (INDEX([kv_feed]), FORCESEEK)
WHERE g.[v] = :shard ORDER BY g.[u] DESC), COALESCE(:waiting, 0),
  CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), :signature, p.place, p.present,
  p.v0, p.v1, p.v2, p.v3
FROM [dbo].[rowfeed_feeds] AS f
JOIN [dbo].[rowfeed_sequences] AS s ON s.name = f.name
LEFT JOIN [dbo].[rowfeed_shards] AS h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT TOP (:limit) g.[u] AS place,
    CASE WHEN t.[id] IS NULL THEN 0 ELSE 1 END AS present, g.[id] AS v0, t.[id] AS v1, CONVERT(varchar(41), t.[v]) AS v2, CONVERT(varchar(33), CONVERT(datetime2(3), SWITCHOFFSET(t.[at], 0)), 121) + '+00' AS v3
  FROM [dbo].[rowfeed_feed_kv] AS g WITH (INDEX([kv_feed]), FORCESEEK)
  LEFT JOIN [dbo].[kv] AS t WITH (FORCESEEK) ON g.[id] = t.[id]
  WHERE g.[v] = :shard AND g.[u] > :after
  ORDER BY g.[u]) AS p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.place
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: greatest_ulid
SELECT TOP (1) g.[u] FROM [dbo].[kv] AS g WITH (INDEX([kv_feed]), FORCESEEK)
WHERE g.[v] = :shard ORDER BY g.[u] DESC

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

-- name: usable
IF @@TRANCOUNT = 0
  THROW 77100, N'rowfeed: no transaction is open: begin one, lock, insert, commit', 1;
SELECT XACT_STATE()

-- name: lock_shard
SET NOCOUNT ON;
DECLARE @wait int = :wait;
EXEC [dbo].[rowfeed_turn] @name = :turn, @wait = @wait;
IF NOT EXISTS (SELECT 1 FROM [dbo].[rowfeed_shards] WITH (UPDLOCK, ROWLOCK) WHERE feed = :feed AND shard = :shard)
  INSERT INTO [dbo].[rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
  VALUES (:feed, :shard, 0, 0, 0, N'');
SELECT time_ms, ulid_high, ulid_low, witness, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), CONVERT(nvarchar(20), CURRENT_TRANSACTION_ID())
FROM [dbo].[rowfeed_shards] WITH (UPDLOCK, ROWLOCK) WHERE feed = :feed AND shard = :shard

-- name: advance_shard
UPDATE [dbo].[rowfeed_shards] SET time_ms = :time, ulid_high = :high, ulid_low = :low, witness = :nonces
WHERE feed = :feed AND shard = :shard AND CONVERT(nvarchar(20), CURRENT_TRANSACTION_ID()) = :transaction

-- name: nonces
SELECT witness FROM [dbo].[rowfeed_shards] WHERE feed = :feed AND shard = :shard

-- name: take_shard
SET NOCOUNT ON;
DECLARE @wait int = :wait, @hint bigint = NULLIF(:hint, 0), @ulid binary(16), @high bigint, @low bigint;
IF :tighter = 1 AND @@LOCK_TIMEOUT >= 0 AND @@LOCK_TIMEOUT < @wait
  SET @wait = @@LOCK_TIMEOUT;
EXEC [dbo].[rowfeed_lock_kv] @shard = :shard, @hint_ms = @hint, @word = :word, @wait = @wait,
  @ulid = @ulid OUTPUT, @ulid_high = @high OUTPUT, @ulid_low = @low OUTPUT;
SELECT @high, @low, d.delayed_durability_desc FROM sys.databases AS d WHERE d.database_id = DB_ID()

-- name: ulid_of_state
CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))

-- name: lock_procedure
CREATE OR ALTER PROCEDURE [dbo].[rowfeed_lock_kv]
  @shard bigint = 0, @time_hint datetime2(3) = NULL,
  @ulid binary(16) = NULL OUTPUT, @ulid_high bigint = NULL OUTPUT, @ulid_low bigint = NULL OUTPUT,
  @hint_ms bigint = NULL, @word nvarchar(40) = NULL, @wait int = :wait
WITH EXECUTE AS OWNER AS
BEGIN
  SET NOCOUNT ON;
  IF @@TRANCOUNT = 0
    THROW 77100, N'rowfeed: no transaction is open: begin one, lock, insert, commit', 1;
  DECLARE @time bigint, @high bigint, @low bigint, @greatest binary(16), @now bigint, @hint bigint,
    @most bigint = CONVERT(bigint, 0x7FFFFFFFFFFFFFFF), @count bigint = CONVERT(bigint, :count), @fresh bit = 0,
    @bits binary(10) = CRYPT_GEN_RANDOM(10), @transaction bigint = CURRENT_TRANSACTION_ID(), @name nvarchar(32);
  SET @shard = COALESCE(@shard, 0);
  SET @name = CONCAT(:turn, @shard);
  EXEC [dbo].[rowfeed_turn] @name = @name, @wait = @wait;
  SELECT @time = s.time_ms, @high = s.ulid_high, @low = s.ulid_low FROM [dbo].[rowfeed_shards] AS s WITH (UPDLOCK, ROWLOCK)
  WHERE s.feed = N'kv' AND s.shard = @shard;
  IF @time IS NULL
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM [dbo].[rowfeed_feeds] AS f WITH (REPEATABLEREAD, ROWLOCK)
      WHERE f.name = N'kv' AND f.state = :active)
      THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
    INSERT INTO [dbo].[rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
    VALUES (N'kv', @shard, 0, 0, 0, N'');
    SELECT @time = 0, @high = 0, @low = 0;
  END;
  SELECT TOP (1) @greatest = g.[u] FROM [dbo].[kv] AS g WITH (FORCESEEK)
  WHERE g.[v] = @shard ORDER BY g.[u] DESC;
  IF @greatest >= CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))
  BEGIN
    SET @time = CONVERT(bigint, SUBSTRING(@greatest, 1, 6)) + 1;
    SET @high = CONVERT(bigint, SUBSTRING(CONVERT(binary(8), @time), 3, 6) + 0x0000);
    SET @low = -1;
  END;
  SET @now = DATEDIFF_BIG(millisecond, '1970-01-01', SYSUTCDATETIME());
  SET @hint = COALESCE(@hint_ms, DATEDIFF_BIG(millisecond, '1970-01-01', @time_hint), @now);
  IF @hint < 1
    SET @hint = 1;
  IF @hint > @now + :most_ahead
    THROW 77102, N'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend its clock', 1;
  IF @hint > @time
    SELECT @time = @hint, @fresh = 1;
  ELSE IF (@low & @most) > @most - @count
    SELECT @time = @time + 1, @fresh = 1;
  IF @time > CONVERT(bigint, :last_time)
    THROW 77103, N'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it', 1;
  IF @fresh = 1
  BEGIN
    SET @high = CONVERT(bigint, SUBSTRING(CONVERT(binary(8), @time), 3, 6) + SUBSTRING(@bits, 1, 2));
    SET @low = CONVERT(bigint, SUBSTRING(@bits, 3, 8)) & CONVERT(bigint, 0xBFFFFFFFFFFFFFFF);
  END;
  UPDATE s SET time_ms = @time, ulid_high = @high, ulid_low = @low + @count,
    witness = CASE WHEN @word IS NULL THEN s.witness ELSE LEFT(CONCAT(@word, N' ', s.witness), 320) END
  FROM [dbo].[rowfeed_shards] AS s WHERE s.feed = N'kv' AND s.shard = @shard;
  EXEC sys.sp_set_session_context @key = :key_tx, @value = @transaction;
  EXEC sys.sp_set_session_context @key = :key_high, @value = @high;
  EXEC sys.sp_set_session_context @key = :key_low, @value = @low;
  SELECT @ulid = CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low)), @ulid_high = @high, @ulid_low = @low;
END

-- name: ulid_function
CREATE OR ALTER FUNCTION [dbo].[rowfeed_ulid_kv] (@i bigint) RETURNS binary(16) AS
BEGIN
  DECLARE @high bigint = CONVERT(bigint, SESSION_CONTEXT(:key_high)), @low bigint;
  SET @low = CONVERT(bigint, SESSION_CONTEXT(:key_low)) + @i;
  IF @i >= 0 AND @i < CONVERT(bigint, :count)
    AND CONVERT(bigint, SESSION_CONTEXT(:key_tx)) = CURRENT_TRANSACTION_ID()
    RETURN CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low));
  RETURN CONVERT(binary(16), CONVERT(int, CONCAT(:call_first, @i)));
END

-- name: drop_lock_procedure
DROP PROCEDURE IF EXISTS [dbo].[rowfeed_lock_kv]

-- name: drop_ulid_function
DROP FUNCTION IF EXISTS [dbo].[rowfeed_ulid_kv]

-- name: routine_state
SELECT COALESCE(m.definition, N''), CASE WHEN m.execute_as_principal_id IS NULL THEN 0 ELSE 1 END
FROM sys.sql_modules AS m WHERE m.object_id = OBJECT_ID(:routine)

