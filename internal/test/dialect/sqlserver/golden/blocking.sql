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
  @hint_ms bigint = NULL, @word nvarchar(40) = NULL, @wait int = 10000, @session_context bit = 1
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
  SELECT @time = s.time_ms, @high = s.ulid_high, @low = s.ulid_low
  FROM [dbo].[rowfeed_shards] AS s WITH (READCOMMITTEDLOCK, UPDLOCK, ROWLOCK)
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
  IF @@ROWCOUNT <> 1
    THROW 77105, N'rowfeed: another transaction had the shard since the snapshot: roll back, and begin again', 1;
  IF @session_context = 1
  BEGIN
    EXEC sys.sp_set_session_context @key = N'rowfeed.1e4181d0.tx', @value = @transaction;
    EXEC sys.sp_set_session_context @key = N'rowfeed.1e4181d0.high', @value = @high;
    EXEC sys.sp_set_session_context @key = N'rowfeed.1e4181d0.low', @value = @low;
  END;
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
  WHERE NOT (CHARINDEX(N'[dbo].[rowfeed_lock_kv]', m.definition) > 0
  OR CHARINDEX(N'[dbo].[rowfeed_ulid_kv]', m.definition) > 0));
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
CREATE OR ALTER PROCEDURE [changefeed].[lock:dbo.kv]
  @shard_id int = 0, @time_hint datetime2(3) = NULL, @session_context bit = 1,
  @ulid_high binary(8) = NULL OUTPUT, @ulid_low bigint = NULL OUTPUT, @ulid binary(16) = NULL OUTPUT
AS
BEGIN
  SET XACT_ABORT, NOCOUNT ON;
  EXEC [dbo].[rowfeed_lock_kv] @shard = @shard_id, @time_hint = @time_hint, @wait = NULL,
    @session_context = @session_context, @ulid = @ulid OUTPUT, @ulid_low = @ulid_low OUTPUT;
  SET @ulid_high = SUBSTRING(@ulid, 1, 8);
END
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE OR ALTER FUNCTION [changefeed].[ulid:dbo.kv] (@i bigint) RETURNS binary(16) AS
BEGIN
  RETURN [dbo].[rowfeed_ulid_kv](@i);
END
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF DATABASE_PRINCIPAL_ID(N'changefeed.writers:dbo.kv') IS NULL
  CREATE ROLE [changefeed.writers:dbo.kv] AUTHORIZATION dbo;
GRANT EXECUTE ON OBJECT::[changefeed].[lock:dbo.kv]
  TO [changefeed.writers:dbo.kv];
GRANT EXECUTE ON OBJECT::[changefeed].[ulid:dbo.kv]
  TO [changefeed.writers:dbo.kv]
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
INSERT INTO [dbo].[rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
SELECT N'kv', x.shard, (CONVERT(bigint, SUBSTRING(x.highest, 1, 6)) + 1), CONVERT(bigint, SUBSTRING(CONVERT(binary(8), (CONVERT(bigint, SUBSTRING(x.highest, 1, 6)) + 1)), 3, 6) + 0x0000), -1, ''
FROM (SELECT s.shard, (SELECT g.[u] FROM [dbo].[kv] g WHERE g.[v] = s.shard
    ORDER BY g.[u] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) AS highest
  FROM (SELECT DISTINCT g.[v] AS shard FROM [dbo].[kv] g) s) x
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
UPDATE [dbo].[rowfeed_feeds] SET state = N'active' WHERE name = N'kv'
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
COMMIT
GO
SET NOEXEC OFF
GO

-- feed drop
DECLARE @drop nvarchar(max) = (SELECT STRING_AGG(CONVERT(nvarchar(max), CONCAT(N'DROP ',
    CASE o.type WHEN 'P' THEN N'PROCEDURE ' WHEN 'V' THEN N'VIEW ' ELSE N'FUNCTION ' END, N'[changefeed].',
    QUOTENAME(o.name))), N'; ')
  FROM sys.objects AS o JOIN sys.sql_modules AS m ON m.object_id = o.object_id
  WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.type IN ('P', 'V', 'FN')
    AND (CHARINDEX(N'[dbo].[rowfeed_lock_kv]', m.definition) > 0
  OR CHARINDEX(N'[dbo].[rowfeed_ulid_kv]', m.definition) > 0));
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
DROP PROCEDURE IF EXISTS [dbo].[rowfeed_lock_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP FUNCTION IF EXISTS [dbo].[rowfeed_ulid_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO

