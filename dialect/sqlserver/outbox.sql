-- The outbox: its records get places. The transaction that moves records has locked their shard.
--
-- A place is found by its key or by its shard and ULID, so that movers of different shards meet only where they move
-- the same key.

-- name: has_records
-- The level is set as in publish.sql.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT TOP (1) x.shard FROM (:scans) AS x

-- name: first_record
SELECT * FROM (SELECT TOP (1) shard :scan ORDER BY order_sequence) AS o

-- name: first_record_of_shard
SELECT * FROM (SELECT shard :scan OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) AS o

-- name: place_records
-- One batch. The keys stay in the server. A ULID that exists already is an error, because a record would be lost. Of
-- several records with the same key the last one counts. The place of a key only rises. The range lock of the INSERT
-- makes it wait for a mover of another shard that inserts the same key. The UPDATE comes behind it: before it, the key
-- of a mover that was waited for would be found by neither, and its record would be deleted.
SET NOCOUNT ON;
DECLARE @done bigint;
DECLARE @moved TABLE (
  seq bigint NOT NULL PRIMARY KEY, ulid binary(16) NOT NULL,
  {{declared_key}}
);
INSERT INTO @moved (seq, ulid, {{key}})
SELECT x.seq, x.ulid, {{key "x"}} FROM (
  SELECT j.seq, CONVERT(binary(16), j.ulid, 2) AS ulid, {{key "o"}},
    ROW_NUMBER() OVER (PARTITION BY {{key "o"}} ORDER BY j.seq DESC) AS rowid
  FROM OPENJSON(:places) WITH (seq bigint N'$[0]', ulid char(32) N'$[1]') AS j
  INNER LOOP JOIN {{records}} AS o WITH (FORCESEEK) ON o.order_sequence = j.seq AND o.shard = :shard) AS x
WHERE x.rowid = 1 OPTION (FORCE ORDER, MAXDOP 1);
{{template "give_places" .}}
SELECT (SELECT COUNT_BIG(*) FROM @moved) - @done

-- name: give_places
INSERT INTO {{places}} (shard, ulid, {{key}})
SELECT :shard, m.ulid, {{key "m"}} FROM @moved AS m
WHERE NOT EXISTS (SELECT 1 FROM {{places}} AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
  WHERE {{same_key "g" "m"}}) OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
SET @done = @@ROWCOUNT;
UPDATE g SET shard = :shard, ulid = m.ulid
FROM @moved AS m INNER LOOP JOIN {{places}} AS g WITH (ROWLOCK, FORCESEEK) ON {{same_key "g" "m"}}
WHERE m.ulid > g.ulid OPTION (FORCE ORDER, MAXDOP 1);
SET @done = @done + @@ROWCOUNT;

-- name: read_procedure
-- writes a page of a shard into the reader's table #read, and moves records if there is no entry above the cursor
--
-- It is for readers in SQL, and does what a mover of this program does: it locks the shard, takes the oldest committed
-- records (500 to 5000, as package ulidfeed does), gives them ULIDs above all places of their keys, and advances the
-- shard. A hint counts if it is later than the shard's time, and not in the future. The records of one millisecond
-- follow each other.
--
-- Without a place above the cursor the page is read again under the lock, after the move: then it is at the head.
--
-- Some drivers have IMPLICIT_TRANSACTIONS on. Then the first SELECT would begin a transaction, which COMMIT would not
-- end, and other readers would wait for its shard. Whether entries above the cursor were purged is looked up after the
-- page, so that none is purged in between.
CREATE OR ALTER PROCEDURE [changefeed].{{quote (print "read_feed:" .Source)}}
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
  IF NOT EXISTS (SELECT 1 FROM {{table "feeds"}} AS f WHERE f.name = {{feed}} AND f.state = :active)
    THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
  :demand_versions
  :set_identity
  IF EXISTS (SELECT 1 FROM {{table "feeds"}} AS f
    WHERE f.name = {{feed}} AND f.database_identity <> NULLIF(@identity, N''))
    THROW 77113, N'rowfeed: the database is not the one in which the ULIDs were given: run rowfeed feed bump', 1;
  DECLARE @start binary(16) = 0x00, @done bigint;
  DELETE FROM #read;
  {{template "read_places" .}}
  SET @done = @@ROWCOUNT;
  {{template "refuse_purged" .}}
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
    {{declared_key}}
  );
  DECLARE @moved TABLE (
    seq bigint NOT NULL PRIMARY KEY, ulid binary(16) NOT NULL,
    {{declared_key}}
  );
  SET @name = CONCAT(:turn, @shard_id);
  BEGIN TRANSACTION;
  EXEC {{table "turn"}} @name = @name, @wait = NULL;
  SELECT @time = s.time_ms, @high = s.ulid_high, @low = s.ulid_low FROM {{table "shards"}} AS s WITH (UPDLOCK, ROWLOCK)
  WHERE s.feed = {{feed}} AND s.shard = @shard_id;
  IF @time IS NULL
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM {{table "feeds"}} AS f WITH (REPEATABLEREAD, ROWLOCK)
      WHERE f.name = {{feed}} AND f.state = :active)
      THROW 77104, N'rowfeed: the feed is not ready: wait until feed add has ended', 1;
    INSERT INTO {{table "shards"}} (feed, shard, time_ms, ulid_high, ulid_low, witness)
    VALUES ({{feed}}, @shard_id, 0, 0, 0, N'');
    SELECT @time = 0, @high = 0, @low = 0;
  END;
  {{template "refuse_purged" .}}
  IF @cursor > @start AND @cursor >= {{template "ulid_of" .}}
    AND NOT EXISTS (SELECT 1 FROM {{table "shards"}} AS s
      WHERE s.feed = {{feed}} AND s.shard = @shard_id AND @cursor = {{template "purged_below"}})
    AND NOT EXISTS (SELECT 1 FROM {{places}} AS g WITH (INDEX(place), FORCESEEK)
      WHERE g.shard = @shard_id AND g.ulid >= @cursor)
    THROW 77114, N'rowfeed: the cursor is ahead of the shard: it is of another feed, or the database was set back', 1;
  INSERT INTO @taken (n, seq, time_ms, {{key}})
  SELECT ROW_NUMBER() OVER (ORDER BY o.order_sequence), o.order_sequence,
    MAX(o.hint) OVER (ORDER BY o.order_sequence ROWS UNBOUNDED PRECEDING), {{key "o"}}
  FROM (SELECT TOP (CASE WHEN @pagesize < 500 THEN 500 WHEN @pagesize > 5000 THEN 5000 ELSE @pagesize END)
      c.order_sequence, {{key "c"}},
      CASE WHEN c.time_hint < 1 THEN 1 WHEN c.time_hint < @now THEN c.time_hint ELSE @now END AS hint
    FROM {{records}} AS c WITH (INDEX(by_shard), FORCESEEK) WHERE c.shard = @shard_id ORDER BY c.order_sequence) AS o;
  SET @count = @@ROWCOUNT;
  IF @count > 0
  BEGIN
    SELECT TOP (1) @greatest = g.ulid
    FROM @taken AS m INNER LOOP JOIN {{places}} AS g WITH (FORCESEEK) ON {{same_key "g" "m"}}
    ORDER BY g.ulid DESC OPTION (FORCE ORDER, MAXDOP 1);
    IF @greatest >= {{template "ulid_of" .}}
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
    INSERT INTO @moved (seq, ulid, {{key}})
    SELECT x.seq, CONVERT(binary(16), x.high + CONVERT(binary(8), x.low + x.n - 1)), {{key "x"}} FROM (
      SELECT m.seq, m.n, {{key "m"}}, ROW_NUMBER() OVER (PARTITION BY {{key "m"}} ORDER BY m.seq DESC) AS rowid,
        CASE WHEN m.time_ms > @time THEN {{template "high_of" .}} ELSE CONVERT(binary(8), @high) END AS high,
        CASE WHEN m.time_ms > @time THEN @new_low ELSE @low END AS low
      FROM @taken AS m) AS x
    WHERE x.rowid = 1;
    SELECT TOP (1) @last = m.time_ms, @new_high = {{template "high_of" .}} FROM @taken AS m ORDER BY m.n DESC;
    UPDATE s SET time_ms = CASE WHEN @last > @time THEN @last ELSE @time END,
      ulid_high = CASE WHEN @last > @time THEN CONVERT(bigint, @new_high) ELSE @high END,
      ulid_low = CASE WHEN @last > @time THEN @new_low ELSE @low END + @count,
      live_from = CASE WHEN s.time_ms > 0 THEN s.live_from
        ELSE (SELECT CASE WHEN MIN(m.time_ms) > @time THEN MIN(m.time_ms) ELSE @time END FROM @taken AS m) END
    FROM {{table "shards"}} AS s WHERE s.feed = {{feed}} AND s.shard = @shard_id;
    {{template "give_places" .}}
    IF @done <> (SELECT COUNT_BIG(*) FROM @moved)
      THROW 77105, N'rowfeed: a key has got a place in another shard meanwhile: read the page again', 1;
    DELETE c FROM @taken AS m
    INNER LOOP JOIN {{records}} AS c WITH (ROWLOCK, FORCESEEK) ON c.order_sequence = m.seq
    OPTION (FORCE ORDER, MAXDOP 1);
    IF @@ROWCOUNT <> @count
      THROW 77110, N'rowfeed: another program deletes records of the outbox', 1;
  END;
  {{template "read_places" .}}
  COMMIT;
END

-- name: read_places
INSERT INTO #read (ulid, {{row}})
  SELECT TOP (@pagesize) g.ulid, {{key "g"}} FROM {{places}} AS g WITH (INDEX(place), FORCESEEK)
  WHERE g.shard = @shard_id AND g.ulid > @cursor ORDER BY g.ulid;

-- name: refuse_purged
IF @cursor > @start AND EXISTS (SELECT 1 FROM {{table "shards"}} AS s
    WHERE s.feed = {{feed}} AND s.shard = @shard_id AND @cursor < {{template "purged_below"}})
    THROW 77112, N'rowfeed: entries above the cursor were purged: read on from 0x00, and the rest in the table', 1;

-- name: purged_below
CONVERT(binary(16), CONVERT(binary(8), s.below_high) + CONVERT(binary(8), s.below_low))

-- name: ulid_of
CONVERT(binary(16), CONVERT(binary(8), @high) + CONVERT(binary(8), @low))

-- name: high_of
CONVERT(binary(8), SUBSTRING(CONVERT(binary(8), m.time_ms), 3, 6) + SUBSTRING(@bits, 1, 2))

-- name: delete_records
DELETE c FROM OPENJSON(:seqs) WITH (seq bigint N'$') AS j
INNER LOOP JOIN {{records}} AS c WITH (ROWLOCK, FORCESEEK) ON c.order_sequence = j.seq OPTION (FORCE ORDER, MAXDOP 1)

-- name: delete_places
-- It finds them by shard and ULID.
DELETE g FROM {{places}} AS g WITH (ROWLOCK, INDEX(place), FORCESEEK)

-- name: time_of_row
-- The first run in a shard follows the times of the rows: no reader can have passed these positions. A later run
-- places its rows above all of them.
CASE WHEN x.at IS NULL OR x.first_run <> :run OR x.at >= x.live THEN x.live - 1 WHEN x.at < 0 THEN 0 ELSE x.at END

-- name: place_behind
-- Rows with neither a record nor a place get places below the live part of their shard. A mover that places the same
-- key meanwhile is waited for, and wins. FORCESEEK keeps the range locks to the keys of these rows: a scan would lock
-- all places against all movers.
INSERT INTO {{places}} (shard, ulid, {{key}})
SELECT x.shard, CONVERT(binary(16), SUBSTRING(CONVERT(binary(8), :time), 3, 6) + CONVERT(binary(2), :run) +
  CONVERT(binary(8), CONVERT(bigint, :batch) + x.n)), {{numbered "x"}} FROM (
  SELECT CONVERT(bigint, :shard_of_row) AS shard, s.live_from AS live, s.filled_by AS first_run, :at AS at,
    {{numbered_row "t"}}, ROW_NUMBER() OVER (ORDER BY {{ordered "t"}}) AS n
  FROM {{source}} AS t
  JOIN {{table "shards"}} AS s ON s.feed = {{feed}} AND s.shard = :shard_of_row AND s.live_from > 0 AND s.filled_by > 0
  WHERE :rows
    AND NOT EXISTS (SELECT 1 FROM {{records}} AS c WHERE {{row_of "t" "c"}})
    AND NOT EXISTS (SELECT 1 FROM {{places}} AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
      WHERE {{row_of "t" "g"}})
) AS x
