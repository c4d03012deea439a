-- Positions in the rows of the user's table, for feeds with capture "column".
--
-- A publisher locks rows that wait, and passes those that other transactions have locked. READPAST passes locks on
-- rows only: it waits behind a lock on a page or on the whole table. Under READ_COMMITTED_SNAPSHOT it needs
-- READCOMMITTEDLOCK.
--
-- The index on the positions of rows has all columns that these statements need. A writer of another column locks the
-- row, and not its entry in that index: a statement that reads the index alone passes nothing, and its UPDATE waits.

-- name: whole_row
-- It holds for every row, but its column is not in the index. So the row itself is read, locked, or passed.
COALESCE(DATALENGTH(t.shard), 0) >= 0

-- name: unlocked
WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK, INDEX({{object "row_position"}}))

-- name: place_rows
-- One batch: rows that wait get positions in key order, and their keys leave the table of positions, unless they are
-- hidden. The user's table may have triggers, so OUTPUT goes into a table.
SET NOCOUNT ON;
DECLARE @placed TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY,
  {{declared_key}}
);
WITH waiting AS (
  SELECT TOP (:limit) t.feed_sync_id, {{row "t"}}, ROW_NUMBER() OVER (ORDER BY {{ordered "t"}}) AS rowfeed_place
  FROM {{source}} AS t {{template "unlocked" .}}:which AND {{template "whole_row" .}}:in_order
)
UPDATE waiting SET feed_sync_id = :base + waiting.rowfeed_place
OUTPUT inserted.feed_sync_id, {{row "inserted"}} INTO @placed (feed_sync_id, {{key}})
OPTION (MAXDOP 1);
DELETE p FROM @placed AS b INNER LOOP JOIN {{positions}} AS p WITH (ROWLOCK, FORCESEEK) ON {{same_key "p" "b"}}
WHERE p.hidden = 0 OPTION (FORCE ORDER, MAXDOP 1);
SELECT CONVERT(nvarchar(20), b.feed_sync_id), {{read_key "b"}} FROM @placed AS b ORDER BY b.feed_sync_id

-- name: reset_rows
UPDATE t SET feed_sync_id = NULL FROM {{source}} AS t WHERE

-- name: close_changes
-- It waits for all writers, and locks the table. It reads a row: a statement whose condition is never true does not
-- open the table, and locks nothing.
SELECT COUNT_BIG(*) FROM (SELECT TOP (1) 1 AS one FROM {{changes}} WITH (TABLOCKX, HOLDLOCK)) AS c

-- name: assigned_shards
OPENJSON(:places) WITH (position bigint N'$[0]', shard int N'$[1]') AS j

-- name: set_shards
-- Keys are found by their positions.
UPDATE p SET shard = j.shard, bucket = {{bucket "j.shard" "/"}}
FROM {{template "assigned_shards"}}
INNER LOOP JOIN {{positions}} AS p WITH (ROWLOCK, FORCESEEK) ON p.feed_sync_id = j.position
OPTION (FORCE ORDER, MAXDOP 1)

-- name: set_shards_of_rows
-- Rows that other transactions have locked are left out.
UPDATE t SET shard = j.shard
FROM {{template "assigned_shards"}}
INNER LOOP JOIN {{source}} AS t {{template "unlocked" .}} ON t.feed_sync_id = j.position AND {{template "whole_row" .}}
OPTION (FORCE ORDER, MAXDOP 1)
