-- Shards with ULIDs: what locks a shard, and how its next ULIDs are taken.
--
-- A shard is locked by its name until the transaction ends, and so is its row in the table of shards. Writers of one
-- shard take turns; those of other shards do not wait.
--
-- A product or a shift of bigints can be out of range, and << does not exist before SQL Server 2022. So the two halves
-- of a ULID are put together from bytes.

-- name: usable
IF @@TRANCOUNT = 0
  THROW 77100, N'rowfeed: no transaction is open: begin one, lock, insert, commit', 1;
SELECT XACT_STATE()

-- name: lock_shard
-- It is for movers, which read records as publishers read changes. The lock by name exists for a shard without a row,
-- so only one transaction inserts the row.
SET NOCOUNT ON;
:demand_versions
DECLARE @wait int = :wait;
EXEC {{table "turn"}} @name = :turn, @wait = @wait;
IF NOT EXISTS (SELECT 1 FROM {{table "shards"}} WITH (UPDLOCK, ROWLOCK) WHERE feed = :feed AND shard = :shard)
  INSERT INTO {{table "shards"}} (feed, shard, time_ms, ulid_high, ulid_low, witness)
  VALUES (:feed, :shard, 0, 0, 0, N'');
SELECT time_ms, ulid_high, ulid_low, witness, {{now}}, CONVERT(nvarchar(20), CURRENT_TRANSACTION_ID())
FROM {{table "shards"}} WITH (UPDLOCK, ROWLOCK) WHERE feed = :feed AND shard = :shard

-- name: advance_shard
-- In another transaction than lock_shard's it changes nothing.
UPDATE {{table "shards"}} SET time_ms = :time, ulid_high = :high, ulid_low = :low, witness = :nonces
WHERE feed = :feed AND shard = :shard AND CONVERT(nvarchar(20), CURRENT_TRANSACTION_ID()) = :transaction

-- name: nonces
-- It needs no lock: a transaction sees what it has written, whatever its snapshot, and no other transaction writes its
-- nonces.
SELECT witness FROM {{table "shards"}} WHERE feed = :feed AND shard = :shard

-- name: take_shard
-- With :tighter, the session's own lock timeout holds if it is shorter than :wait.
SET NOCOUNT ON;
DECLARE @wait int = :wait, @hint bigint = NULLIF(:hint, 0), @ulid binary(16), @high bigint, @low bigint;
IF :tighter = 1 AND @@LOCK_TIMEOUT >= 0 AND @@LOCK_TIMEOUT < @wait
  SET @wait = @@LOCK_TIMEOUT;
EXEC {{table (print "lock_" .Name)}} @shard = :shard, @hint_ms = @hint, @word = :word, @wait = @wait,
  @ulid = @ulid OUTPUT, @ulid_high = @high OUTPUT, @ulid_low = @low OUTPUT;
SELECT @high, @low, d.delayed_durability_desc FROM sys.databases AS d WHERE d.name = DB_NAME()

-- name: ulid_of_state
CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))

-- name: lock_procedure
-- takes ULIDs of a shard, and the shard for the rest of the transaction
--
-- The greatest ULID of the rows is read after the lock, so READ COMMITTED sees what the holder before has committed. A
-- SNAPSHOT transaction may not see it; then the UPDATE of the shard's row fails with error 3960, or does not find the
-- row. READCOMMITTEDLOCK reads the row as it is committed, so that no row is inserted twice. What drops the feed writes
-- the row of the feed first, waits for the shared lock, and then sees the row that is made here.
--
-- What was taken is in the session's context, with the id of the transaction. It does not go back with a savepoint,
-- and only the last call for a feed counts. With @session_context = 0 the context stays as it is.
CREATE OR ALTER PROCEDURE {{table (print "lock_" .Name)}}
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
  EXEC {{table "turn"}} @name = @name, @wait = @wait;
  SELECT @time = s.time_ms, @high = s.ulid_high, @low = s.ulid_low
  FROM {{table "shards"}} AS s WITH (READCOMMITTEDLOCK, UPDLOCK, ROWLOCK)
  WHERE s.feed = {{feed}} AND s.shard = @shard;
  IF @time IS NULL
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM {{table "feeds"}} AS f WITH (REPEATABLEREAD, ROWLOCK)
      WHERE f.name = {{feed}} AND f.state = :active)
      THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
    INSERT INTO {{table "shards"}} (feed, shard, time_ms, ulid_high, ulid_low, witness)
    VALUES ({{feed}}, @shard, 0, 0, 0, N'');
    SELECT @time = 0, @high = 0, @low = 0;
  END;
  SELECT TOP (1) @greatest = g.{{quote .ULIDs.Position.Name}} FROM {{source}} AS g WITH (FORCESEEK)
  WHERE g.{{quote .ULIDs.Shard.Name}} = @shard ORDER BY g.{{quote .ULIDs.Position.Name}} DESC;
  IF @greatest >= {{template "ulid_of_state"}}
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
  FROM {{table "shards"}} AS s WHERE s.feed = {{feed}} AND s.shard = @shard;
  IF @@ROWCOUNT <> 1
    THROW 77105, N'rowfeed: another transaction had the shard since the snapshot: roll back, and begin again', 1;
  IF @session_context = 1
  BEGIN
    EXEC sys.sp_set_session_context @key = :key_tx, @value = @transaction;
    EXEC sys.sp_set_session_context @key = :key_high, @value = @high;
    EXEC sys.sp_set_session_context @key = :key_low, @value = @low;
  END;
  SELECT @ulid = {{template "ulid_of_state"}}, @ulid_high = @high, @ulid_low = @low;
END

-- name: ulid_function
-- the i-th of the ULIDs that this transaction took last
--
-- A function cannot throw: it fails by the conversion of a message to a number.
CREATE OR ALTER FUNCTION {{table (print "ulid_" .Name)}} (@i bigint) RETURNS binary(16) AS
BEGIN
  DECLARE @high bigint = CONVERT(bigint, SESSION_CONTEXT(:key_high)), @low bigint;
  SET @low = CONVERT(bigint, SESSION_CONTEXT(:key_low)) + @i;
  IF @i >= 0 AND @i < CONVERT(bigint, :count)
    AND CONVERT(bigint, SESSION_CONTEXT(:key_tx)) = CURRENT_TRANSACTION_ID()
    RETURN {{template "ulid_of_state"}};
  RETURN CONVERT(binary(16), CONVERT(int, CONCAT(:call_first, @i)));
END

-- name: drop_lock_procedure
-- its procedure
DROP PROCEDURE IF EXISTS {{table (print "lock_" .Name)}}

-- name: drop_ulid_function
-- its function
DROP FUNCTION IF EXISTS {{table (print "ulid_" .Name)}}

-- name: routine_state
-- The text of a routine, and whether it runs with the rights of its owner.
SELECT COALESCE(m.definition, N''), CASE WHEN m.execute_as_principal_id IS NULL THEN 0 ELSE 1 END
FROM sys.sql_modules AS m WHERE m.object_id = OBJECT_ID(:routine)
