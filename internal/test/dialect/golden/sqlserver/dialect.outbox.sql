-- name: delete_places
DELETE g FROM [rowfeed_feed_<feed>] AS g WITH (ROWLOCK, INDEX(place), FORCESEEK)

-- name: delete_records
DELETE c FROM OPENJSON(:seqs) WITH (seq bigint N'$') AS j
INNER LOOP JOIN [rowfeed_outbox_<feed>] AS c WITH (ROWLOCK, FORCESEEK) ON c.order_sequence = j.seq OPTION (FORCE ORDER, MAXDOP 1)

-- name: first_record
SELECT * FROM (SELECT TOP (1) shard :scan ORDER BY order_sequence) AS o

-- name: first_record_of_shard
SELECT * FROM (SELECT shard :scan OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) AS o

-- name: has_records
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT TOP (1) x.shard FROM (:scans) AS x

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

-- name: time_of_row
CASE WHEN x.at IS NULL OR x.first_run <> :run OR x.at >= x.live THEN x.live - 1 WHEN x.at < 0 THEN 0 ELSE x.at END

