-- name: advance_shard
UPDATE [rowfeed_shards] SET time_ms = :time, ulid_high = :high, ulid_low = :low, witness = :nonces
WHERE feed = :feed AND shard = :shard AND CONVERT(nvarchar(20), CURRENT_TRANSACTION_ID()) = :transaction

-- name: drop_lock_procedure
DROP PROCEDURE IF EXISTS [rowfeed_lock_<feed>]

-- name: drop_ulid_function
DROP FUNCTION IF EXISTS [rowfeed_ulid_<feed>]

-- name: lock_procedure
CREATE OR ALTER PROCEDURE [rowfeed_lock_<feed>]
  @shard bigint = 0, @time_hint datetime2(3) = NULL,
  @ulid binary(16) = NULL OUTPUT, @ulid_high bigint = NULL OUTPUT, @ulid_low bigint = NULL OUTPUT,
  @hint_ms bigint = NULL, @word nvarchar(40) = NULL, @wait int = :wait, @session_context bit = 1
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
  EXEC [rowfeed_turn] @name = @name, @wait = @wait;
  SELECT @time = s.time_ms, @high = s.ulid_high, @low = s.ulid_low
  FROM [rowfeed_shards] AS s WITH (READCOMMITTEDLOCK, UPDLOCK, ROWLOCK)
  WHERE s.feed = N'<feed>' AND s.shard = @shard;
  IF @time IS NULL
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM [rowfeed_feeds] AS f WITH (REPEATABLEREAD, ROWLOCK)
      WHERE f.name = N'<feed>' AND f.state = :active)
      THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
    INSERT INTO [rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
    VALUES (N'<feed>', @shard, 0, 0, 0, N'');
    SELECT @time = 0, @high = 0, @low = 0;
  END;
  SELECT TOP (1) @greatest = g.[ulid] FROM [items_<feed>] AS g WITH (FORCESEEK)
  WHERE g.[shard] = @shard ORDER BY g.[ulid] DESC;
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
  FROM [rowfeed_shards] AS s WHERE s.feed = N'<feed>' AND s.shard = @shard;
  IF @@ROWCOUNT <> 1
    THROW 77105, N'rowfeed: another transaction had the shard since the snapshot: roll back, and begin again', 1;
  IF @session_context = 1
  BEGIN
    EXEC sys.sp_set_session_context @key = :key_tx, @value = @transaction;
    EXEC sys.sp_set_session_context @key = :key_high, @value = @high;
    EXEC sys.sp_set_session_context @key = :key_low, @value = @low;
  END;
  SELECT @ulid = CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low)), @ulid_high = @high, @ulid_low = @low;
END

-- name: lock_procedure (blocking_feed)
CREATE OR ALTER PROCEDURE [rowfeed_lock_<feed>]
  @shard bigint = 0, @time_hint datetime2(3) = NULL,
  @ulid binary(16) = NULL OUTPUT, @ulid_high bigint = NULL OUTPUT, @ulid_low bigint = NULL OUTPUT,
  @hint_ms bigint = NULL, @word nvarchar(40) = NULL, @wait int = :wait, @session_context bit = 1
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
  EXEC [rowfeed_turn] @name = @name, @wait = @wait;
  SELECT @time = s.time_ms, @high = s.ulid_high, @low = s.ulid_low
  FROM [rowfeed_shards] AS s WITH (READCOMMITTEDLOCK, UPDLOCK, ROWLOCK)
  WHERE s.feed = N'<feed>' AND s.shard = @shard;
  IF @time IS NULL
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM [rowfeed_feeds] AS f WITH (REPEATABLEREAD, ROWLOCK)
      WHERE f.name = N'<feed>' AND f.state = :active)
      THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
    INSERT INTO [rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
    VALUES (N'<feed>', @shard, 0, 0, 0, N'');
    SELECT @time = 0, @high = 0, @low = 0;
  END;
  SELECT TOP (1) @greatest = g.[position] FROM [items_<feed>] AS g WITH (FORCESEEK)
  WHERE g.[tenant] = @shard ORDER BY g.[position] DESC;
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
  FROM [rowfeed_shards] AS s WHERE s.feed = N'<feed>' AND s.shard = @shard;
  IF @@ROWCOUNT <> 1
    THROW 77105, N'rowfeed: another transaction had the shard since the snapshot: roll back, and begin again', 1;
  IF @session_context = 1
  BEGIN
    EXEC sys.sp_set_session_context @key = :key_tx, @value = @transaction;
    EXEC sys.sp_set_session_context @key = :key_high, @value = @high;
    EXEC sys.sp_set_session_context @key = :key_low, @value = @low;
  END;
  SELECT @ulid = CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low)), @ulid_high = @high, @ulid_low = @low;
END

-- name: lock_shard
SET NOCOUNT ON;
:demand_versions
DECLARE @wait int = :wait;
EXEC [rowfeed_turn] @name = :turn, @wait = @wait;
IF NOT EXISTS (SELECT 1 FROM [rowfeed_shards] WITH (UPDLOCK, ROWLOCK) WHERE feed = :feed AND shard = :shard)
  INSERT INTO [rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
  VALUES (:feed, :shard, 0, 0, 0, N'');
SELECT time_ms, ulid_high, ulid_low, witness, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), CONVERT(nvarchar(20), CURRENT_TRANSACTION_ID())
FROM [rowfeed_shards] WITH (UPDLOCK, ROWLOCK) WHERE feed = :feed AND shard = :shard

-- name: nonces
SELECT witness FROM [rowfeed_shards] WHERE feed = :feed AND shard = :shard

-- name: routine_state
SELECT COALESCE(m.definition, N''), CASE WHEN m.execute_as_principal_id IS NULL THEN 0 ELSE 1 END
FROM sys.sql_modules AS m WHERE m.object_id = OBJECT_ID(:routine)

-- name: take_shard
SET NOCOUNT ON;
DECLARE @wait int = :wait, @hint bigint = NULLIF(:hint, 0), @ulid binary(16), @high bigint, @low bigint;
IF :tighter = 1 AND @@LOCK_TIMEOUT >= 0 AND @@LOCK_TIMEOUT < @wait
  SET @wait = @@LOCK_TIMEOUT;
EXEC [rowfeed_lock_<feed>] @shard = :shard, @hint_ms = @hint, @word = :word, @wait = @wait,
  @ulid = @ulid OUTPUT, @ulid_high = @high OUTPUT, @ulid_low = @low OUTPUT;
SELECT @high, @low, d.delayed_durability_desc FROM sys.databases AS d WHERE d.name = DB_NAME()

-- name: ulid_function
CREATE OR ALTER FUNCTION [rowfeed_ulid_<feed>] (@i bigint) RETURNS binary(16) AS
BEGIN
  DECLARE @high bigint = CONVERT(bigint, SESSION_CONTEXT(:key_high)), @low bigint;
  SET @low = CONVERT(bigint, SESSION_CONTEXT(:key_low)) + @i;
  IF @i >= 0 AND @i < CONVERT(bigint, :count)
    AND CONVERT(bigint, SESSION_CONTEXT(:key_tx)) = CURRENT_TRANSACTION_ID()
    RETURN CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low));
  RETURN CONVERT(binary(16), CONVERT(int, CONCAT(:call_first, @i)));
END

-- name: ulid_of_state
CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))

-- name: usable
IF @@TRANCOUNT = 0
  THROW 77100, N'rowfeed: no transaction is open: begin one, lock, insert, commit', 1;
SELECT XACT_STATE()

