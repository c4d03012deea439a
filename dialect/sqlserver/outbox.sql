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
INSERT INTO {{places}} (shard, ulid, {{key}})
SELECT :shard, m.ulid, {{key "m"}} FROM @moved AS m
WHERE NOT EXISTS (SELECT 1 FROM {{places}} AS g WITH (UPDLOCK, SERIALIZABLE, ROWLOCK, FORCESEEK)
  WHERE {{same_key "g" "m"}}) OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
SET @done = @@ROWCOUNT;
UPDATE g SET shard = :shard, ulid = m.ulid
FROM @moved AS m INNER LOOP JOIN {{places}} AS g WITH (ROWLOCK, FORCESEEK) ON {{same_key "g" "m"}}
WHERE m.ulid > g.ulid OPTION (FORCE ORDER, MAXDOP 1);
SET @done = @done + @@ROWCOUNT;
SELECT (SELECT COUNT_BIG(*) FROM @moved) - @done

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
