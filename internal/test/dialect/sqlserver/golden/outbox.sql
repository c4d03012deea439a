-- feed add
SET NOEXEC OFF; SET ANSI_NULLS, QUOTED_IDENTIFIER, XACT_ABORT ON; SET LOCK_TIMEOUT 2000;
BEGIN TRANSACTION
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_feeds] (name, mode, capture, state, generation, source_schema, source_table, key_columns,
  delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity,
  created_at)
VALUES (N'kv', N'outbox', N'app', N'creating', 1, N'', N'kv', N'[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]',
  NULL, N'{"ulids":{"Position":{"name":"ulid","type":"binary(16)","decl":"binary(16)","kind":"binary"},"Shard":{"name":"shard","type":"bigint","kind":"integer"},"Index":"place"},"runs":1}', 1, NULL, 0, 0, NULL, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))
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
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
ALTER TABLE [dbo].[rowfeed_outbox_kv] SET (LOCK_ESCALATION = DISABLE)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF OBJECT_ID(N'[dbo].[rowfeed_feed_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_feed_kv] (
    shard bigint NOT NULL,
    ulid binary(16) NOT NULL,
    [id] bigint NOT NULL,
    CONSTRAINT [rowfeed_kv_places] PRIMARY KEY NONCLUSTERED ([id]) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX place UNIQUE CLUSTERED (shard, ulid) WITH (ALLOW_PAGE_LOCKS = OFF)
  )
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
ALTER TABLE [dbo].[rowfeed_feed_kv] SET (LOCK_ESCALATION = DISABLE)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF SCHEMA_ID(N'changefeed') IS NULL
  EXEC (N'CREATE SCHEMA changefeed AUTHORIZATION dbo')
ELSE IF NOT EXISTS (SELECT 1 FROM sys.schemas AS s
  WHERE s.name = N'changefeed' AND s.principal_id = DATABASE_PRINCIPAL_ID(N'dbo'))
  THROW 77116, N'rowfeed: dbo must own the schema: run ALTER AUTHORIZATION ON SCHEMA::changefeed TO dbo', 1
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DECLARE @taken nvarchar(1000) = (SELECT MIN(o.name) FROM (
  SELECT o.name, m.definition FROM sys.objects AS o LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.name IN (N'lock:dbo.kv',
      N'ulid:dbo.kv', N'state:dbo.kv', N'feed:dbo.kv',
      N'outbox:dbo.kv', N'read_feed:dbo.kv')
  UNION ALL SELECT t.name, N'' FROM sys.types AS t
    WHERE t.schema_id = SCHEMA_ID(N'changefeed') AND t.name = N'type:read:dbo.kv'
      AND OBJECT_ID(N'[changefeed].[read_feed:dbo.kv]') IS NULL) AS o
  CROSS APPLY (SELECT COALESCE(o.definition, N'') AS definition) AS m
  WHERE NOT (CHARINDEX(N'[dbo].[rowfeed_outbox_kv]', m.definition) > 0 OR CHARINDEX(N'[dbo].[rowfeed_feed_kv]', m.definition) > 0));
IF @taken IS NOT NULL
BEGIN
  SET @taken = CONCAT(N'rowfeed: changefeed.[', @taken, N'] exists, and does not belong to feed ', N'kv',
    N'. If another feed has the table, drop that feed. If mssql-changefeed made it, stop the writers, and move its ',
    N'objects of this table to another schema: docs/FROM-MSSQL-CHANGEFEED.md has the statements');
  THROW 77107, @taken, 1;
END
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE OR ALTER VIEW [changefeed].[outbox:dbo.kv] AS
SELECT CASE WHEN c.shard IS NOT NULL THEN CONVERT(int, c.shard) END AS shard_id,
  CASE WHEN c.order_sequence IS NOT NULL THEN c.order_sequence END AS order_sequence,
  DATEADD(millisecond, CONVERT(int, c.time_hint % 60000),
    DATEADD(minute, CONVERT(int, c.time_hint / 60000), CONVERT(datetime2(3), '1970-01-01'))) AS time_hint,
  c.[id] AS [id]
FROM [dbo].[rowfeed_outbox_kv] AS c
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE OR ALTER TRIGGER [changefeed].[outbox:dbo.kv:insert]
ON [changefeed].[outbox:dbo.kv] INSTEAD OF INSERT AS
BEGIN
  SET NOCOUNT ON;
  SET ROWCOUNT 0;
  IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.order_sequence IS NOT NULL)
    THROW 77109, N'rowfeed: order_sequence is given by the database: leave it out', 1;
  INSERT INTO [dbo].[rowfeed_outbox_kv] (shard, time_hint, [id])
  SELECT COALESCE(i.shard_id, 0), DATEDIFF_BIG(millisecond, '1970-01-01', i.time_hint), i.[id] FROM inserted AS i;
END
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE OR ALTER VIEW [changefeed].[feed:dbo.kv] AS
SELECT CONVERT(int, c.shard) AS shard_id, c.ulid, c.[id] AS [id] FROM [dbo].[rowfeed_feed_kv] AS c
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE OR ALTER PROCEDURE [changefeed].[read_feed:dbo.kv]
  @shard_id int, @cursor binary(16), @pagesize int = 1000
AS
BEGIN
  SET XACT_ABORT, NOCOUNT ON;
  SET IMPLICIT_TRANSACTIONS OFF;
  SET ROWCOUNT 0;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  IF @@TRANCOUNT > 0
    THROW 77100, N'rowfeed: a transaction is open: end it, then read a page', 1;
  IF @cursor IS NULL
    THROW 77112, N'rowfeed: the cursor is NULL: give the ULID of the last entry, or 0x00 for the beginning', 1;
  IF NOT EXISTS (SELECT 1 FROM [dbo].[rowfeed_feeds] AS f WHERE f.name = N'kv' AND f.state = N'active')
    THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
  IF EXISTS (SELECT 1 FROM sys.databases AS d WHERE d.name = DB_NAME() AND d.is_read_committed_snapshot_on = 0)
  THROW 77111, N'rowfeed: READ_COMMITTED_SNAPSHOT of the database is OFF, so changes would be missed: set it to ON', 1;
  DECLARE @identity nvarchar(200) = N'';
IF OBJECT_ID(N'sys.database_recovery_status') IS NOT NULL
  SELECT @identity = CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID();
  IF EXISTS (SELECT 1 FROM [dbo].[rowfeed_feeds] AS f
    WHERE f.name = N'kv' AND f.database_identity <> NULLIF(@identity, N''))
    THROW 77113, N'rowfeed: the database is not the one in which the ULIDs were given: run rowfeed feed bump', 1;
  DECLARE @start binary(16) = 0x00, @done bigint;
  DELETE FROM #read;
  INSERT INTO #read (ulid, [id])
  SELECT TOP (@pagesize) g.ulid, g.[id] FROM [dbo].[rowfeed_feed_kv] AS g WITH (INDEX(place), FORCESEEK)
  WHERE g.shard = @shard_id AND g.ulid > @cursor ORDER BY g.ulid;
  SET @done = @@ROWCOUNT;
  IF @cursor > @start AND EXISTS (SELECT 1 FROM [dbo].[rowfeed_shards] AS s
    WHERE s.feed = N'kv' AND s.shard = @shard_id AND @cursor < CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low)))
    THROW 77112, N'rowfeed: entries above the cursor were purged: read on from 0x00, and the rest in the table', 1;
  IF @done > 0
    RETURN;
  IF EXISTS (SELECT 1 FROM sys.databases AS d WHERE d.name = DB_NAME() AND d.delayed_durability_desc = N'FORCED')
    THROW 77115, N'rowfeed: DELAYED_DURABILITY of the database is FORCED: set it to DISABLED or ALLOWED', 1;
  DECLARE @time bigint, @high bigint, @low bigint, @greatest binary(16), @last bigint, @count bigint,
    @new_high binary(8), @new_low bigint, @bits binary(10) = CRYPT_GEN_RANDOM(10), @name nvarchar(32),
    @now bigint = DATEDIFF_BIG(millisecond, '1970-01-01', SYSUTCDATETIME()),
    @most bigint = CONVERT(bigint, 0x7FFFFFFFFFFFFFFF);
  DECLARE @taken TABLE (
    n bigint NOT NULL PRIMARY KEY, seq bigint NOT NULL, time_ms bigint NOT NULL,
    [id] bigint NOT NULL
  );
  DECLARE @moved TABLE (
    seq bigint NOT NULL PRIMARY KEY, ulid binary(16) NOT NULL,
    [id] bigint NOT NULL
  );
  SET @name = CONCAT(N'rf1e4181d0:', @shard_id);
  BEGIN TRANSACTION;
  EXEC [dbo].[rowfeed_turn] @name = @name, @wait = NULL;
  SELECT @time = s.time_ms, @high = s.ulid_high, @low = s.ulid_low FROM [dbo].[rowfeed_shards] AS s WITH (UPDLOCK, ROWLOCK)
  WHERE s.feed = N'kv' AND s.shard = @shard_id;
  IF @time IS NULL
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM [dbo].[rowfeed_feeds] AS f WITH (REPEATABLEREAD, ROWLOCK)
      WHERE f.name = N'kv' AND f.state = N'active')
      THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
    INSERT INTO [dbo].[rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
    VALUES (N'kv', @shard_id, 0, 0, 0, N'');
    SELECT @time = 0, @high = 0, @low = 0;
  END;
  IF @cursor > @start AND EXISTS (SELECT 1 FROM [dbo].[rowfeed_shards] AS s
    WHERE s.feed = N'kv' AND s.shard = @shard_id AND @cursor < CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low)))
    THROW 77112, N'rowfeed: entries above the cursor were purged: read on from 0x00, and the rest in the table', 1;
  IF @cursor > @start AND @cursor >= CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))
    AND NOT EXISTS (SELECT 1 FROM [dbo].[rowfeed_shards] AS s
      WHERE s.feed = N'kv' AND s.shard = @shard_id AND @cursor = CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low)))
    AND NOT EXISTS (SELECT 1 FROM [dbo].[rowfeed_feed_kv] AS g WITH (INDEX(place), FORCESEEK)
      WHERE g.shard = @shard_id AND g.ulid >= @cursor)
    THROW 77114, N'rowfeed: the cursor is ahead of the shard: it is of another feed, or the database was set back', 1;
  INSERT INTO @taken (n, seq, time_ms, [id])
  SELECT ROW_NUMBER() OVER (ORDER BY o.order_sequence), o.order_sequence,
    MAX(o.hint) OVER (ORDER BY o.order_sequence ROWS UNBOUNDED PRECEDING), o.[id]
  FROM (SELECT TOP (CASE WHEN @pagesize < 500 THEN 500 WHEN @pagesize > 5000 THEN 5000 ELSE @pagesize END)
      c.order_sequence, c.[id],
      CASE WHEN c.time_hint < 1 THEN 1 WHEN c.time_hint < @now THEN c.time_hint ELSE @now END AS hint
    FROM [dbo].[rowfeed_outbox_kv] AS c WITH (INDEX(by_shard), FORCESEEK) WHERE c.shard = @shard_id ORDER BY c.order_sequence) AS o;
  SET @count = @@ROWCOUNT;
  IF @count > 0
  BEGIN
    SELECT TOP (1) @greatest = g.ulid
    FROM @taken AS m INNER LOOP JOIN [dbo].[rowfeed_feed_kv] AS g WITH (FORCESEEK) ON g.[id] = m.[id]
    ORDER BY g.ulid DESC OPTION (FORCE ORDER, MAXDOP 1);
    IF @greatest >= CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))
      SELECT @time = CONVERT(bigint, SUBSTRING(@greatest, 1, 6)), @low = -1;
    SET @new_low = CONVERT(bigint, SUBSTRING(@bits, 3, 8)) & CONVERT(bigint, 0xBFFFFFFFFFFFFFFF);
    IF (@low & @most) > @most - @count
    BEGIN
      SET @time = @time + 1;
      SET @high = CONVERT(bigint, SUBSTRING(CONVERT(binary(8), @time), 3, 6) + SUBSTRING(@bits, 1, 2));
      SET @low = @new_low;
    END;
    IF @time > CONVERT(bigint, 281474976710655)
      THROW 77103, N'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it', 1;
    INSERT INTO @moved (seq, ulid, [id])
    SELECT x.seq, CONVERT(binary(16), x.high + CONVERT(binary(8), x.low + x.n - 1)), x.[id] FROM (
      SELECT m.seq, m.n, m.[id], ROW_NUMBER() OVER (PARTITION BY m.[id] ORDER BY m.seq DESC) AS rowid,
        CASE WHEN m.time_ms > @time THEN CONVERT(binary(8), SUBSTRING(CONVERT(binary(8), m.time_ms), 3, 6) + SUBSTRING(@bits, 1, 2)) ELSE CONVERT(binary(8), @high) END AS high,
        CASE WHEN m.time_ms > @time THEN @new_low ELSE @low END AS low
      FROM @taken AS m) AS x
    WHERE x.rowid = 1;
    SELECT TOP (1) @last = m.time_ms, @new_high = CONVERT(binary(8), SUBSTRING(CONVERT(binary(8), m.time_ms), 3, 6) + SUBSTRING(@bits, 1, 2)) FROM @taken AS m ORDER BY m.n DESC;
    UPDATE s SET time_ms = CASE WHEN @last > @time THEN @last ELSE @time END,
      ulid_high = CASE WHEN @last > @time THEN CONVERT(bigint, @new_high) ELSE @high END,
      ulid_low = CASE WHEN @last > @time THEN @new_low ELSE @low END + @count,
      live_from = CASE WHEN s.time_ms > 0 THEN s.live_from
        ELSE (SELECT CASE WHEN MIN(m.time_ms) > @time THEN MIN(m.time_ms) ELSE @time END FROM @taken AS m) END
    FROM [dbo].[rowfeed_shards] AS s WHERE s.feed = N'kv' AND s.shard = @shard_id;
    INSERT INTO [dbo].[rowfeed_feed_kv] (shard, ulid, [id])
SELECT @shard_id, m.ulid, m.[id] FROM @moved AS m
WHERE NOT EXISTS (SELECT 1 FROM [dbo].[rowfeed_feed_kv] AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
  WHERE g.[id] = m.[id]) OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
SET @done = @@ROWCOUNT;
UPDATE g SET shard = @shard_id, ulid = m.ulid
FROM @moved AS m INNER LOOP JOIN [dbo].[rowfeed_feed_kv] AS g WITH (ROWLOCK, FORCESEEK) ON g.[id] = m.[id]
WHERE m.ulid > g.ulid OPTION (FORCE ORDER, MAXDOP 1);
SET @done = @done + @@ROWCOUNT;
    IF @done <> (SELECT COUNT_BIG(*) FROM @moved)
      THROW 77105, N'rowfeed: a key has got a place in another shard meanwhile: read the page again', 1;
    DELETE c FROM @taken AS m
    INNER LOOP JOIN [dbo].[rowfeed_outbox_kv] AS c WITH (ROWLOCK, FORCESEEK) ON c.order_sequence = m.seq
    OPTION (FORCE ORDER, MAXDOP 1);
    IF @@ROWCOUNT <> @count
      THROW 77110, N'rowfeed: another program deletes records of the outbox', 1;
  END;
  INSERT INTO #read (ulid, [id])
  SELECT TOP (@pagesize) g.ulid, g.[id] FROM [dbo].[rowfeed_feed_kv] AS g WITH (INDEX(place), FORCESEEK)
  WHERE g.shard = @shard_id AND g.ulid > @cursor ORDER BY g.ulid;
  COMMIT;
END
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF DATABASE_PRINCIPAL_ID(N'changefeed.writers:dbo.kv') IS NULL
  CREATE ROLE [changefeed.writers:dbo.kv] AUTHORIZATION dbo;
GRANT INSERT ON OBJECT::[changefeed].[outbox:dbo.kv]
  TO [changefeed.writers:dbo.kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF TYPE_ID(N'[changefeed].[type:read:dbo.kv]') IS NULL
  CREATE TYPE [changefeed].[type:read:dbo.kv] AS TABLE (
    ulid binary(16) NOT NULL,
    [id] bigint NOT NULL
  )
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF DATABASE_PRINCIPAL_ID(N'changefeed.readers:dbo.kv') IS NULL
  CREATE ROLE [changefeed.readers:dbo.kv] AUTHORIZATION dbo;
GRANT EXECUTE ON OBJECT::[changefeed].[read_feed:dbo.kv]
  TO [changefeed.readers:dbo.kv];
GRANT EXECUTE ON TYPE::[changefeed].[type:read:dbo.kv]
  TO [changefeed.readers:dbo.kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF OBJECT_ID(N'[changefeed].[setup_feed]') IS NULL
  EXEC (N'CREATE PROCEDURE [changefeed].[setup_feed] @table_name nvarchar(max), @outbox bit = 0, @blocking bit = 0 AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @table int = OBJECT_ID(@table_name, N''U'');
  DECLARE @of nvarchar(300) = CONCAT(N'':'', OBJECT_SCHEMA_NAME(@table), N''.'', OBJECT_NAME(@table));
  IF @blocking = 1 AND OBJECT_ID(CONCAT(N''[changefeed].'', QUOTENAME(CONCAT(N''lock'', @of)))) IS NULL
    OR @outbox = 1 AND OBJECT_ID(CONCAT(N''[changefeed].'', QUOTENAME(CONCAT(N''read_feed'', @of)))) IS NULL
    OR @blocking = @outbox
    THROW 77108, N''rowfeed: no feed of this table has this mode: run rowfeed feed add, then this script again'', 1;
END')
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
UPDATE [dbo].[rowfeed_feeds] SET state = N'filling' WHERE name = N'kv'
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
DECLARE @drop nvarchar(max) = (SELECT STRING_AGG(CONVERT(nvarchar(max), CONCAT(N'DROP ',
    CASE o.type WHEN 'P' THEN N'PROCEDURE ' WHEN 'V' THEN N'VIEW ' ELSE N'FUNCTION ' END, N'[changefeed].',
    QUOTENAME(o.name))), N'; ')
  FROM sys.objects AS o JOIN sys.sql_modules AS m ON m.object_id = o.object_id
  WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.type IN ('P', 'V', 'FN')
    AND (CHARINDEX(N'[dbo].[rowfeed_outbox_kv]', m.definition) > 0 OR CHARINDEX(N'[dbo].[rowfeed_feed_kv]', m.definition) > 0));
IF @drop IS NOT NULL
  EXEC (@drop)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TYPE IF EXISTS [changefeed].[type:read:dbo.kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF NOT EXISTS (SELECT 1 FROM sys.database_role_members AS m
  WHERE m.role_principal_id = DATABASE_PRINCIPAL_ID(N'changefeed.writers:dbo.kv'))
  DROP ROLE IF EXISTS [changefeed.writers:dbo.kv];
IF NOT EXISTS (SELECT 1 FROM sys.database_role_members AS m
  WHERE m.role_principal_id = DATABASE_PRINCIPAL_ID(N'changefeed.readers:dbo.kv'))
  DROP ROLE IF EXISTS [changefeed.readers:dbo.kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF SCHEMA_ID(N'changefeed') IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM sys.objects AS o
    WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.name <> N'setup_feed')
  AND NOT EXISTS (SELECT 1 FROM sys.types AS t WHERE t.schema_id = SCHEMA_ID(N'changefeed'))
BEGIN
  DROP PROCEDURE IF EXISTS [changefeed].[setup_feed];
  DROP SCHEMA [changefeed];
END
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_outbox_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_feed_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP SEQUENCE IF EXISTS [dbo].[rowfeed_kv_seq]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO

