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
UPDATE [dbo].[rowfeed_feeds] SET state = N'active', database_identity = CASE WHEN DATABASEPROPERTYEX(DB_NAME(), N'Updateability') = N'READ_WRITE' THEN COALESCE((SELECT CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID()), N'') END WHERE name = N'kv'
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

