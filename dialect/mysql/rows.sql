-- Positions in the rows of the user's table, for feeds with capture "column".
--
-- Rows are locked FOR UPDATE SKIP LOCKED, so no publisher waits for a writer. An UPDATE that searches for the rows
-- itself, also by a join with a subquery or by user variables, locks every row that it scans. It would wait for the
-- oldest open writer. So a locking read first copies the keys of the rows into the batch. Only publishers write this
-- table, and it is empty between their transactions. The UPDATE begins with these keys, and reads only locked rows.

-- name: lock_waiting
-- It follows the index, in which the rows that wait are in key order. Without the hint, the planner would take the
-- primary key's order and read the whole table.
:insert INTO {{batch}} ({{key}}) SELECT {{row "t"}} FROM {{source}} t FORCE INDEX ({{object "row_position"}}) :waiting
LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: kept_columns
-- The columns that an UPDATE would set to its own time. It runs while rows are locked, so no such column can be added
-- meanwhile.
SELECT IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)) FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND TABLE_NAME = :table AND EXTRA LIKE '%on update%'
LIMIT 18446744073709551615

-- name: keep
, :column = :column

-- name: lookup
-- How a row is found by its key: by the primary key, or by the index of rows that wait, which has the whole key after
-- the NULL.
FORCE INDEX ({{if .Primary}}PRIMARY{{else}}{{object "row_position"}}{{end}})
  ON {{row_of "t" "b"}} AND t.feed_sync_id IS NULL

-- name: place_rows
-- The batch's column seq numbers the keys. A key column that is called seq has another name in the batch.
:update (SELECT ROW_NUMBER() OVER (ORDER BY k.seq) AS seq, {{key}} FROM {{batch}} k) b
STRAIGHT_JOIN {{source}} t {{template "lookup" .}}
SET t.feed_sync_id = :base + b.seq:keep

-- name: placed_keys
-- The client computes the data shards of these keys.
SELECT b.seq, {{read_key "b"}} FROM {{batch}} b ORDER BY b.seq LIMIT 18446744073709551615

-- name: place_sharded_rows
:update JSON_TABLE(:places, '$[*]' COLUMNS (place FOR ORDINALITY, seq BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN {{batch}} b FORCE INDEX (PRIMARY) ON b.seq = j.seq
STRAIGHT_JOIN {{source}} t {{template "lookup" .}}
SET t.feed_sync_id = :base + j.place, t.shard = j.shard:keep

-- name: open_fence
SET @rowfeed_publisher = {{feed}}

-- name: close_fence
SET @rowfeed_publisher = NULL

-- name: clear_positions
-- The entry of a key in the table of positions is deleted, unless the key is hidden.
DELETE p FROM {{batch}} b STRAIGHT_JOIN {{positions}} p FORCE INDEX (PRIMARY) ON {{same_key "b" "p"}} WHERE p.hidden = 0

-- name: last_key
SELECT {{read_key "b"}} FROM {{batch}} b ORDER BY b.seq DESC LIMIT 1

-- name: empty_batch
-- WHERE with a key, for sessions with sql_safe_updates.
DELETE FROM {{batch}} WHERE seq > 0

-- name: reset_rows
:update {{source}} t SET t.feed_sync_id = NULL:keep WHERE :where

-- name: close_changes
-- It waits for open transactions that have used the table.
RENAME TABLE {{changes}} TO {{table (print "closed_" .Name)}}

-- name: set_shards
-- Keys are found by their positions in an index that begins with these, so only the entries to be written are read. A
-- list in IN (…) would become a scan of the index if it is long.
UPDATE JSON_TABLE(:places, '$[*]' COLUMNS (position BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN {{positions}} p FORCE INDEX (feed_sync_id) ON p.feed_sync_id = j.position
SET p.shard = j.shard, p.bucket = {{bucket "j.shard" "DIV"}}

-- name: positions_in_rows
JSON_TABLE(:places, '$[*]' COLUMNS (position BIGINT PATH '$[0]', shard INT PATH '$[1]')) j
STRAIGHT_JOIN {{source}} t FORCE INDEX ({{object "row_position"}}) ON t.feed_sync_id = j.position

-- name: lock_positions
-- It leaves out rows that other transactions have locked. The UPDATE then names only the locked ones. MySQL has to be
-- told not to lock the list; MariaDB does not have that syntax.
SELECT t.feed_sync_id FROM {{template "positions_in_rows" .}}
LIMIT 18446744073709551615 FOR UPDATE /*!80000 OF t */ SKIP LOCKED

-- name: set_shards_of_rows
:update {{template "positions_in_rows" .}} SET t.shard = j.shard:keep
