-- name: delete_places
DELETE g FROM [rowfeed_feed_<feed>] AS g WITH (ROWLOCK, INDEX(place), FORCESEEK)

-- name: delete_records
DELETE c FROM OPENJSON(:seqs) WITH (seq bigint N'$') AS j
INNER LOOP JOIN [rowfeed_outbox_<feed>] AS c WITH (ROWLOCK, FORCESEEK) ON c.order_sequence = j.seq OPTION (FORCE ORDER, MAXDOP 1)

-- name: first_record
SELECT * FROM (SELECT TOP (1) shard :scan ORDER BY order_sequence) AS o

-- name: first_record_of_shard
SELECT * FROM (SELECT shard :scan OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) AS o

-- name: give_places
INSERT INTO [rowfeed_feed_<feed>] (shard, ulid, [id])
SELECT :shard, m.ulid, m.[id] FROM @moved AS m
WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
  WHERE g.[id] = m.[id]) OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
SET @done = @@ROWCOUNT;
UPDATE g SET shard = :shard, ulid = m.ulid
FROM @moved AS m INNER LOOP JOIN [rowfeed_feed_<feed>] AS g WITH (ROWLOCK, FORCESEEK) ON g.[id] = m.[id]
WHERE m.ulid > g.ulid OPTION (FORCE ORDER, MAXDOP 1);
SET @done = @done + @@ROWCOUNT;

-- name: give_places (composite_key_feed)
INSERT INTO [rowfeed_feed_<feed>] (shard, ulid, [key_kind], [id])
SELECT :shard, m.ulid, m.[key_kind], m.[id] FROM @moved AS m
WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
  WHERE g.[key_kind] = m.[key_kind] AND g.[id] = m.[id]) OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
SET @done = @@ROWCOUNT;
UPDATE g SET shard = :shard, ulid = m.ulid
FROM @moved AS m INNER LOOP JOIN [rowfeed_feed_<feed>] AS g WITH (ROWLOCK, FORCESEEK) ON g.[key_kind] = m.[key_kind] AND g.[id] = m.[id]
WHERE m.ulid > g.ulid OPTION (FORCE ORDER, MAXDOP 1);
SET @done = @done + @@ROWCOUNT;

-- name: has_records
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT TOP (1) x.shard FROM (:scans) AS x

-- name: high_of
CONVERT(binary(8), SUBSTRING(CONVERT(binary(8), m.time_ms), 3, 6) + SUBSTRING(@bits, 1, 2))

-- name: place_behind
INSERT INTO [rowfeed_feed_<feed>] (shard, ulid, [id])
SELECT x.shard, CONVERT(binary(16), SUBSTRING(CONVERT(binary(8), :time), 3, 6) + CONVERT(binary(2), :run) +
  CONVERT(binary(8), CONVERT(bigint, :batch) + x.n)), x.k0 FROM (
  SELECT CONVERT(bigint, :shard_of_row) AS shard, s.live_from AS live, s.filled_by AS first_run, :at AS at,
    t.[id] AS k0, ROW_NUMBER() OVER (ORDER BY t.[id]) AS n
  FROM [items_<feed>] AS t
  JOIN [rowfeed_shards] AS s ON s.feed = N'<feed>' AND s.shard = :shard_of_row AND s.live_from > 0 AND s.filled_by > 0
  WHERE :rows
    AND NOT EXISTS (SELECT 1 FROM [rowfeed_outbox_<feed>] AS c WHERE c.[id] = t.[id])
    AND NOT EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
      WHERE g.[id] = t.[id])
) AS x

-- name: place_behind (composite_key_feed)
INSERT INTO [rowfeed_feed_<feed>] (shard, ulid, [key_kind], [id])
SELECT x.shard, CONVERT(binary(16), SUBSTRING(CONVERT(binary(8), :time), 3, 6) + CONVERT(binary(2), :run) +
  CONVERT(binary(8), CONVERT(bigint, :batch) + x.n)), x.k0, x.k1 FROM (
  SELECT CONVERT(bigint, :shard_of_row) AS shard, s.live_from AS live, s.filled_by AS first_run, :at AS at,
    t.[kind] AS k0, t.[id] AS k1, ROW_NUMBER() OVER (ORDER BY t.[kind], t.[id]) AS n
  FROM [items_<feed>] AS t
  JOIN [rowfeed_shards] AS s ON s.feed = N'<feed>' AND s.shard = :shard_of_row AND s.live_from > 0 AND s.filled_by > 0
  WHERE :rows
    AND NOT EXISTS (SELECT 1 FROM [rowfeed_outbox_<feed>] AS c WHERE c.[key_kind] = t.[kind] AND c.[id] = t.[id])
    AND NOT EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
      WHERE g.[key_kind] = t.[kind] AND g.[id] = t.[id])
) AS x

-- name: place_records
SET NOCOUNT ON;
DECLARE @done bigint;
DECLARE @moved TABLE (
  seq bigint NOT NULL PRIMARY KEY, ulid binary(16) NOT NULL,
  [id] bigint NOT NULL
);
INSERT INTO @moved (seq, ulid, [id])
SELECT x.seq, x.ulid, x.[id] FROM (
  SELECT j.seq, CONVERT(binary(16), j.ulid, 2) AS ulid, o.[id],
    ROW_NUMBER() OVER (PARTITION BY o.[id] ORDER BY j.seq DESC) AS rowid
  FROM OPENJSON(:places) WITH (seq bigint N'$[0]', ulid char(32) N'$[1]') AS j
  INNER LOOP JOIN [rowfeed_outbox_<feed>] AS o WITH (FORCESEEK) ON o.order_sequence = j.seq AND o.shard = :shard) AS x
WHERE x.rowid = 1 OPTION (FORCE ORDER, MAXDOP 1);
INSERT INTO [rowfeed_feed_<feed>] (shard, ulid, [id])
SELECT :shard, m.ulid, m.[id] FROM @moved AS m
WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
  WHERE g.[id] = m.[id]) OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
SET @done = @@ROWCOUNT;
UPDATE g SET shard = :shard, ulid = m.ulid
FROM @moved AS m INNER LOOP JOIN [rowfeed_feed_<feed>] AS g WITH (ROWLOCK, FORCESEEK) ON g.[id] = m.[id]
WHERE m.ulid > g.ulid OPTION (FORCE ORDER, MAXDOP 1);
SET @done = @done + @@ROWCOUNT;
SELECT (SELECT COUNT_BIG(*) FROM @moved) - @done

-- name: place_records (composite_key_feed)
SET NOCOUNT ON;
DECLARE @done bigint;
DECLARE @moved TABLE (
  seq bigint NOT NULL PRIMARY KEY, ulid binary(16) NOT NULL,
  [key_kind] text NOT NULL,
  [id] bigint NOT NULL
);
INSERT INTO @moved (seq, ulid, [key_kind], [id])
SELECT x.seq, x.ulid, x.[key_kind], x.[id] FROM (
  SELECT j.seq, CONVERT(binary(16), j.ulid, 2) AS ulid, o.[key_kind], o.[id],
    ROW_NUMBER() OVER (PARTITION BY o.[key_kind], o.[id] ORDER BY j.seq DESC) AS rowid
  FROM OPENJSON(:places) WITH (seq bigint N'$[0]', ulid char(32) N'$[1]') AS j
  INNER LOOP JOIN [rowfeed_outbox_<feed>] AS o WITH (FORCESEEK) ON o.order_sequence = j.seq AND o.shard = :shard) AS x
WHERE x.rowid = 1 OPTION (FORCE ORDER, MAXDOP 1);
INSERT INTO [rowfeed_feed_<feed>] (shard, ulid, [key_kind], [id])
SELECT :shard, m.ulid, m.[key_kind], m.[id] FROM @moved AS m
WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
  WHERE g.[key_kind] = m.[key_kind] AND g.[id] = m.[id]) OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
SET @done = @@ROWCOUNT;
UPDATE g SET shard = :shard, ulid = m.ulid
FROM @moved AS m INNER LOOP JOIN [rowfeed_feed_<feed>] AS g WITH (ROWLOCK, FORCESEEK) ON g.[key_kind] = m.[key_kind] AND g.[id] = m.[id]
WHERE m.ulid > g.ulid OPTION (FORCE ORDER, MAXDOP 1);
SET @done = @done + @@ROWCOUNT;
SELECT (SELECT COUNT_BIG(*) FROM @moved) - @done

-- name: purged_below
CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low))

-- name: read_places
INSERT INTO #read (ulid, [id])
  SELECT TOP (@pagesize) g.ulid, g.[id] FROM [rowfeed_feed_<feed>] AS g WITH (INDEX(place), FORCESEEK)
  WHERE g.shard = @shard_id AND g.ulid > @cursor ORDER BY g.ulid;

-- name: read_places (composite_key_feed)
INSERT INTO #read (ulid, [kind], [id])
  SELECT TOP (@pagesize) g.ulid, g.[key_kind], g.[id] FROM [rowfeed_feed_<feed>] AS g WITH (INDEX(place), FORCESEEK)
  WHERE g.shard = @shard_id AND g.ulid > @cursor ORDER BY g.ulid;

-- name: read_procedure
CREATE OR ALTER PROCEDURE [changefeed].[read_feed:items_<feed>]
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
  IF NOT EXISTS (SELECT 1 FROM [rowfeed_feeds] AS f WHERE f.name = N'<feed>' AND f.state = :active)
    THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
  :demand_versions
  :set_identity
  IF EXISTS (SELECT 1 FROM [rowfeed_feeds] AS f
    WHERE f.name = N'<feed>' AND f.database_identity <> NULLIF(@identity, N''))
    THROW 77113, N'rowfeed: the database is not the one in which the ULIDs were given: run rowfeed feed bump', 1;
  DECLARE @start binary(16) = 0x00, @done bigint;
  DELETE FROM #read;
  INSERT INTO #read (ulid, [id])
  SELECT TOP (@pagesize) g.ulid, g.[id] FROM [rowfeed_feed_<feed>] AS g WITH (INDEX(place), FORCESEEK)
  WHERE g.shard = @shard_id AND g.ulid > @cursor ORDER BY g.ulid;
  SET @done = @@ROWCOUNT;
  IF @cursor > @start AND EXISTS (SELECT 1 FROM [rowfeed_shards] AS s
    WHERE s.feed = N'<feed>' AND s.shard = @shard_id AND @cursor < CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low)))
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
  SET @name = CONCAT(:turn, @shard_id);
  BEGIN TRANSACTION;
  EXEC [rowfeed_turn] @name = @name, @wait = NULL;
  SELECT @time = s.time_ms, @high = s.ulid_high, @low = s.ulid_low FROM [rowfeed_shards] AS s WITH (UPDLOCK, ROWLOCK)
  WHERE s.feed = N'<feed>' AND s.shard = @shard_id;
  IF @time IS NULL
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM [rowfeed_feeds] AS f WITH (REPEATABLEREAD, ROWLOCK)
      WHERE f.name = N'<feed>' AND f.state = :active)
      THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
    INSERT INTO [rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
    VALUES (N'<feed>', @shard_id, 0, 0, 0, N'');
    SELECT @time = 0, @high = 0, @low = 0;
  END;
  IF @cursor > @start AND EXISTS (SELECT 1 FROM [rowfeed_shards] AS s
    WHERE s.feed = N'<feed>' AND s.shard = @shard_id AND @cursor < CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low)))
    THROW 77112, N'rowfeed: entries above the cursor were purged: read on from 0x00, and the rest in the table', 1;
  IF @cursor > @start AND @cursor >= CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))
    AND NOT EXISTS (SELECT 1 FROM [rowfeed_shards] AS s
      WHERE s.feed = N'<feed>' AND s.shard = @shard_id AND @cursor = CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low)))
    AND NOT EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] AS g WITH (INDEX(place), FORCESEEK)
      WHERE g.shard = @shard_id AND g.ulid >= @cursor)
    THROW 77114, N'rowfeed: the cursor is ahead of the shard: it is of another feed, or the database was set back', 1;
  INSERT INTO @taken (n, seq, time_ms, [id])
  SELECT ROW_NUMBER() OVER (ORDER BY o.order_sequence), o.order_sequence,
    MAX(o.hint) OVER (ORDER BY o.order_sequence ROWS UNBOUNDED PRECEDING), o.[id]
  FROM (SELECT TOP (CASE WHEN @pagesize < 500 THEN 500 WHEN @pagesize > 5000 THEN 5000 ELSE @pagesize END)
      c.order_sequence, c.[id],
      CASE WHEN c.time_hint < 1 THEN 1 WHEN c.time_hint < @now THEN c.time_hint ELSE @now END AS hint
    FROM [rowfeed_outbox_<feed>] AS c WITH (INDEX(by_shard), FORCESEEK) WHERE c.shard = @shard_id ORDER BY c.order_sequence) AS o;
  SET @count = @@ROWCOUNT;
  IF @count > 0
  BEGIN
    SELECT TOP (1) @greatest = g.ulid
    FROM @taken AS m INNER LOOP JOIN [rowfeed_feed_<feed>] AS g WITH (FORCESEEK) ON g.[id] = m.[id]
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
    IF @time > CONVERT(bigint, :last_time)
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
    FROM [rowfeed_shards] AS s WHERE s.feed = N'<feed>' AND s.shard = @shard_id;
    INSERT INTO [rowfeed_feed_<feed>] (shard, ulid, [id])
SELECT :shard, m.ulid, m.[id] FROM @moved AS m
WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
  WHERE g.[id] = m.[id]) OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
SET @done = @@ROWCOUNT;
UPDATE g SET shard = :shard, ulid = m.ulid
FROM @moved AS m INNER LOOP JOIN [rowfeed_feed_<feed>] AS g WITH (ROWLOCK, FORCESEEK) ON g.[id] = m.[id]
WHERE m.ulid > g.ulid OPTION (FORCE ORDER, MAXDOP 1);
SET @done = @done + @@ROWCOUNT;
    IF @done <> (SELECT COUNT_BIG(*) FROM @moved)
      THROW 77105, N'rowfeed: a key has got a place in another shard meanwhile: read the page again', 1;
    DELETE c FROM @taken AS m
    INNER LOOP JOIN [rowfeed_outbox_<feed>] AS c WITH (ROWLOCK, FORCESEEK) ON c.order_sequence = m.seq
    OPTION (FORCE ORDER, MAXDOP 1);
    IF @@ROWCOUNT <> @count
      THROW 77110, N'rowfeed: another program deletes records of the outbox', 1;
  END;
  INSERT INTO #read (ulid, [id])
  SELECT TOP (@pagesize) g.ulid, g.[id] FROM [rowfeed_feed_<feed>] AS g WITH (INDEX(place), FORCESEEK)
  WHERE g.shard = @shard_id AND g.ulid > @cursor ORDER BY g.ulid;
  COMMIT;
END

-- name: read_procedure (composite_key_feed)
CREATE OR ALTER PROCEDURE [changefeed].[read_feed:items_<feed>]
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
  IF NOT EXISTS (SELECT 1 FROM [rowfeed_feeds] AS f WHERE f.name = N'<feed>' AND f.state = :active)
    THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
  :demand_versions
  :set_identity
  IF EXISTS (SELECT 1 FROM [rowfeed_feeds] AS f
    WHERE f.name = N'<feed>' AND f.database_identity <> NULLIF(@identity, N''))
    THROW 77113, N'rowfeed: the database is not the one in which the ULIDs were given: run rowfeed feed bump', 1;
  DECLARE @start binary(16) = 0x00, @done bigint;
  DELETE FROM #read;
  INSERT INTO #read (ulid, [kind], [id])
  SELECT TOP (@pagesize) g.ulid, g.[key_kind], g.[id] FROM [rowfeed_feed_<feed>] AS g WITH (INDEX(place), FORCESEEK)
  WHERE g.shard = @shard_id AND g.ulid > @cursor ORDER BY g.ulid;
  SET @done = @@ROWCOUNT;
  IF @cursor > @start AND EXISTS (SELECT 1 FROM [rowfeed_shards] AS s
    WHERE s.feed = N'<feed>' AND s.shard = @shard_id AND @cursor < CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low)))
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
    [key_kind] text NOT NULL,
  [id] bigint NOT NULL
  );
  DECLARE @moved TABLE (
    seq bigint NOT NULL PRIMARY KEY, ulid binary(16) NOT NULL,
    [key_kind] text NOT NULL,
  [id] bigint NOT NULL
  );
  SET @name = CONCAT(:turn, @shard_id);
  BEGIN TRANSACTION;
  EXEC [rowfeed_turn] @name = @name, @wait = NULL;
  SELECT @time = s.time_ms, @high = s.ulid_high, @low = s.ulid_low FROM [rowfeed_shards] AS s WITH (UPDLOCK, ROWLOCK)
  WHERE s.feed = N'<feed>' AND s.shard = @shard_id;
  IF @time IS NULL
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM [rowfeed_feeds] AS f WITH (REPEATABLEREAD, ROWLOCK)
      WHERE f.name = N'<feed>' AND f.state = :active)
      THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
    INSERT INTO [rowfeed_shards] (feed, shard, time_ms, ulid_high, ulid_low, witness)
    VALUES (N'<feed>', @shard_id, 0, 0, 0, N'');
    SELECT @time = 0, @high = 0, @low = 0;
  END;
  IF @cursor > @start AND EXISTS (SELECT 1 FROM [rowfeed_shards] AS s
    WHERE s.feed = N'<feed>' AND s.shard = @shard_id AND @cursor < CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low)))
    THROW 77112, N'rowfeed: entries above the cursor were purged: read on from 0x00, and the rest in the table', 1;
  IF @cursor > @start AND @cursor >= CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))
    AND NOT EXISTS (SELECT 1 FROM [rowfeed_shards] AS s
      WHERE s.feed = N'<feed>' AND s.shard = @shard_id AND @cursor = CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low)))
    AND NOT EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] AS g WITH (INDEX(place), FORCESEEK)
      WHERE g.shard = @shard_id AND g.ulid >= @cursor)
    THROW 77114, N'rowfeed: the cursor is ahead of the shard: it is of another feed, or the database was set back', 1;
  INSERT INTO @taken (n, seq, time_ms, [key_kind], [id])
  SELECT ROW_NUMBER() OVER (ORDER BY o.order_sequence), o.order_sequence,
    MAX(o.hint) OVER (ORDER BY o.order_sequence ROWS UNBOUNDED PRECEDING), o.[key_kind], o.[id]
  FROM (SELECT TOP (CASE WHEN @pagesize < 500 THEN 500 WHEN @pagesize > 5000 THEN 5000 ELSE @pagesize END)
      c.order_sequence, c.[key_kind], c.[id],
      CASE WHEN c.time_hint < 1 THEN 1 WHEN c.time_hint < @now THEN c.time_hint ELSE @now END AS hint
    FROM [rowfeed_outbox_<feed>] AS c WITH (INDEX(by_shard), FORCESEEK) WHERE c.shard = @shard_id ORDER BY c.order_sequence) AS o;
  SET @count = @@ROWCOUNT;
  IF @count > 0
  BEGIN
    SELECT TOP (1) @greatest = g.ulid
    FROM @taken AS m INNER LOOP JOIN [rowfeed_feed_<feed>] AS g WITH (FORCESEEK) ON g.[key_kind] = m.[key_kind] AND g.[id] = m.[id]
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
    IF @time > CONVERT(bigint, :last_time)
      THROW 77103, N'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it', 1;
    INSERT INTO @moved (seq, ulid, [key_kind], [id])
    SELECT x.seq, CONVERT(binary(16), x.high + CONVERT(binary(8), x.low + x.n - 1)), x.[key_kind], x.[id] FROM (
      SELECT m.seq, m.n, m.[key_kind], m.[id], ROW_NUMBER() OVER (PARTITION BY m.[key_kind], m.[id] ORDER BY m.seq DESC) AS rowid,
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
    FROM [rowfeed_shards] AS s WHERE s.feed = N'<feed>' AND s.shard = @shard_id;
    INSERT INTO [rowfeed_feed_<feed>] (shard, ulid, [key_kind], [id])
SELECT :shard, m.ulid, m.[key_kind], m.[id] FROM @moved AS m
WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
  WHERE g.[key_kind] = m.[key_kind] AND g.[id] = m.[id]) OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
SET @done = @@ROWCOUNT;
UPDATE g SET shard = :shard, ulid = m.ulid
FROM @moved AS m INNER LOOP JOIN [rowfeed_feed_<feed>] AS g WITH (ROWLOCK, FORCESEEK) ON g.[key_kind] = m.[key_kind] AND g.[id] = m.[id]
WHERE m.ulid > g.ulid OPTION (FORCE ORDER, MAXDOP 1);
SET @done = @done + @@ROWCOUNT;
    IF @done <> (SELECT COUNT_BIG(*) FROM @moved)
      THROW 77105, N'rowfeed: a key has got a place in another shard meanwhile: read the page again', 1;
    DELETE c FROM @taken AS m
    INNER LOOP JOIN [rowfeed_outbox_<feed>] AS c WITH (ROWLOCK, FORCESEEK) ON c.order_sequence = m.seq
    OPTION (FORCE ORDER, MAXDOP 1);
    IF @@ROWCOUNT <> @count
      THROW 77110, N'rowfeed: another program deletes records of the outbox', 1;
  END;
  INSERT INTO #read (ulid, [kind], [id])
  SELECT TOP (@pagesize) g.ulid, g.[key_kind], g.[id] FROM [rowfeed_feed_<feed>] AS g WITH (INDEX(place), FORCESEEK)
  WHERE g.shard = @shard_id AND g.ulid > @cursor ORDER BY g.ulid;
  COMMIT;
END

-- name: refuse_purged
IF @cursor > @start AND EXISTS (SELECT 1 FROM [rowfeed_shards] AS s
    WHERE s.feed = N'<feed>' AND s.shard = @shard_id AND @cursor < CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low)))
    THROW 77112, N'rowfeed: entries above the cursor were purged: read on from 0x00, and the rest in the table', 1;

-- name: time_of_row
CASE WHEN x.at IS NULL OR x.first_run <> :run OR x.at >= x.live THEN x.live - 1 WHEN x.at < 0 THEN 0 ELSE x.at END

-- name: ulid_of
CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))

