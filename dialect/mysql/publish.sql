-- Publishing: what a transaction sets, what it locks, and how changes get their positions.
--
-- One row of the table of sequences is locked, FOR UPDATE, from the begin of a pass to its COMMIT. All is READ
-- COMMITTED: the server's default, REPEATABLE READ, would read an old snapshot under the lock, and acquire gap locks.
-- In READ COMMITTED the SELECT part of an INSERT locks nothing and waits for no other transaction.
--
-- STRAIGHT_JOIN, LEFT JOIN and FORCE INDEX fix the order of every join: each step is a lookup by a unique key, with
-- tables of any size, before and after ANALYZE. No statement that runs often has parameters, see inline in mysql.go.

-- name: begin_publish
-- The server ends a publisher's session that is silent for ten seconds inside a transaction. Otherwise a stopped
-- process would keep the lock of the sequence's row until the server's own timeout, eight hours by default. MySQL has
-- no other bound for that, and none that ends with the transaction. The assignments of one SET are made from left to
-- right.
SET @rowfeed_wait_timeout = @@SESSION.wait_timeout,
  SESSION wait_timeout = CAST(LEAST(@@SESSION.wait_timeout, 10) AS SIGNED)

-- name: end_publish
-- Otherwise the bound would affect the next user of a pooled connection.
SET SESSION wait_timeout = @rowfeed_wait_timeout

-- name: read_only
-- It tells whether the server accepts writes. rowfeed does not try a write: its user may have the right to write to a
-- replica, which would make the replica differ from its primary.
@@GLOBAL.read_only

-- name: identity_of_server
-- The server_id, which the administrator sets, and on MySQL the server_uuid, which the server makes for its data
-- directory. MariaDB reads the part for MySQL 8 as a comment.
CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */)

-- name: identity
-- It is NULL on a server that is read-only. Newer servers answer ON and OFF, older ones 1 and 0. Both are compared as
-- text, because in an UPDATE the conversion of OFF to a number would fail.
CASE WHEN CAST({{template "read_only"}} AS CHAR) IN ('0', 'OFF') THEN {{template "identity_of_server"}} END

-- name: ask_identity
SELECT {{template "identity_of_server"}}, {{template "read_only"}}

-- name: lock_sequence
-- This row lock makes positions visible in ascending order: the transaction that holds it sees all positions that were
-- given before. :unfit names a mode of the session under which keys would be read as other keys.
SELECT value, version, COALESCE(term, 0), updated_at, {{now}}, {{template "identity_of_server"}},
  {{template "read_only"}}, :unfit
FROM {{table "sequences"}} WHERE name = :feed FOR UPDATE

-- name: among
-- It limits a scan to some numbers. The numbers of gaps are listed one by one: a range that ends in deleted records is
-- read far beyond its end, up to the first record that exists. The hint keeps the planner from reading the index from
-- its beginning.
FORCE INDEX (PRIMARY) WHERE :numbers

-- name: oldest
-- A consistent read. A locking read has no snapshot, and would wait for open writers. Text is read as bytes, so 'Fred'
-- is not 'fred'.
SELECT seq, kind, {{read_key}} FROM {{changes}} :range ORDER BY seq LIMIT :limit

-- name: by_key
-- It keeps the planner on the source's primary key. With statistics from a time when the table was empty, it would read
-- the whole table for every batch and every page. Another unique index is not named, because it may be renamed. A feed
-- with ULIDs names its index.
{{if .ULIDs}}FORCE INDEX ({{quote .ULIDs.Index}}){{else if .Primary}}FORCE INDEX (PRIMARY){{end}}

-- name: in_key_mode
-- This statement alone runs under the sql_mode of triggers: a zero date that the source has accepted must not stop the
-- feed. It is spelled for MariaDB and for MySQL; each server reads the other's part as a comment.
/*M! SET STATEMENT sql_mode='STRICT_ALL_TABLES,ALLOW_INVALID_DATES' FOR */ :verb
/*+ SET_VAR(sql_mode='STRICT_ALL_TABLES,ALLOW_INVALID_DATES') */

-- name: assign_positions_of_runs
-- The changes are a few runs of consecutive seqs, without other kinds or data shards: positions are computed from seqs,
-- and nothing is looked up in a list. The keys stay in the server. A run has no room for a change that is committed
-- meanwhile.
--
-- Only publishers and the purge write positions, both under the sequence's lock. Looking for old positions makes the
-- server collect all rows before it writes one, which is cheaper (0.3 µs a key) than any second statement.
:insert INTO {{positions}} ({{key}}, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT {{key "c"}}, c.seq + CASE :places END, 0, {{bucket "0" "DIV"}}, {{one_of_row "t"}} IS NULL, 0, :published
FROM {{changes}} c FORCE INDEX (PRIMARY)
LEFT JOIN {{source}} t {{template "by_key" .}} ON {{row_of "t" "c"}}
WHERE (:ranges) AND ({{template "known" .}})
{{if not .ExactKey}}ORDER BY c.seq{{end}}
{{template "unless_hidden" .}}

-- name: run
c.seq BETWEEN :first AND :last

-- name: place_of_run
WHEN c.seq <= :last THEN :less

-- name: known
-- A key gets a position if it has a row or a position. If rows hold their positions, no query can tell whether a key
-- without a row was ever shown, and it always gets a tombstone.
{{if .ReadsRows}}1 = 1{{else}}{{one_of_row "t"}} IS NOT NULL OR EXISTS (SELECT 1 FROM {{positions}} old FORCE INDEX (PRIMARY)
  WHERE {{same_key "old" "c"}}){{end}}

-- name: unless_hidden
-- Of keys that are equal by collation, the later change counts, and the key keeps its text. So the new values are
-- computed from the current row, and not from the row that the join has found. VALUES() is deprecated since MySQL
-- 8.0.20, but MariaDB does not know its successor.
ON DUPLICATE KEY UPDATE
  feed_sync_id = IF({{positions}}.hidden = 1, {{positions}}.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF({{positions}}.hidden = 1, {{positions}}.published_at, VALUES(published_at)),
  deleted = VALUES(deleted)
{{- if .OwnShard}},
  bucket = IF({{template "shard_changes" .}}, VALUES(bucket), {{positions}}.bucket),
  shard = IF({{template "shard_changes" .}}, VALUES(shard), {{positions}}.shard){{end}}

-- name: shard_changes
-- A key keeps its first data shard, also if its row holds another one later. A key without a data shard gets the first
-- one that its row holds. If rows hold positions, or have held them, the row's column is the shard, and a hidden key
-- keeps its entry.
{{if .RowShards}}{{positions}}.hidden = 0{{else}}{{positions}}.shard < 0{{end}}

-- name: shard_changes_by_kind
{{if .RowShards}}({{positions}}.hidden = 0 OR j.kind <> 0){{else}}{{positions}}.shard < 0{{end}}

-- name: own_shard_of_key
{{own_shard "t"}}

-- name: assign_positions
-- The same for changes in many runs, or with data shards: their seqs are sent as a JSON list.
{{template "assigned" .}}
{{template "unless_hidden" .}}

-- name: assign_positions_by_kind
-- Some keys are republished, hidden or placed. Assignments are made from left to right, so hidden has its old value
-- until its own turn.
{{template "assigned" .}}
ON DUPLICATE KEY UPDATE
  feed_sync_id = IF({{positions}}.hidden = 1 AND j.kind = 0, {{positions}}.feed_sync_id, VALUES(feed_sync_id)),
  published_at = IF({{positions}}.hidden = 1 AND j.kind = 0, {{positions}}.published_at, VALUES(published_at)),
  deleted = VALUES(deleted),
{{- if .OwnShard}}
  bucket = IF({{template "shard_changes_by_kind" .}}, VALUES(bucket), {{positions}}.bucket),
  shard = IF({{template "shard_changes_by_kind" .}}, VALUES(shard), {{positions}}.shard),
{{- end}} hidden = (j.kind = 2 OR {{positions}}.hidden = 1 AND j.kind <> 1)

-- name: assigned
-- It is sorted only if two keys may be equal by collation.
:insert INTO {{positions}} ({{key}}, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT {{key "c"}}, :base + j.place, :shard, :bucket, {{one_of_row "t"}} IS NULL, :hides, :published
FROM JSON_TABLE(:list, '$[*]' COLUMNS (place FOR ORDINALITY, :columns)) j
STRAIGHT_JOIN {{changes}} c FORCE INDEX (PRIMARY) ON c.seq = j.seq
LEFT JOIN {{source}} t {{template "by_key" .}} ON {{row_of "t" "c"}}
WHERE ({{template "known" .}})
{{if not .ExactKey}}ORDER BY j.place{{end}}

-- name: delete_run
-- A DELETE that scans waits for the first record of an open writer that it meets, even outside of its range. LIMIT ends
-- this scan at the last change of the run, before the next record is read. The upper bound matters if another program
-- has deleted a change of the run: LIMIT alone would then reach for a change that was not read.
DELETE FROM {{changes}} WHERE seq >= :first AND seq <= :last ORDER BY seq LIMIT :count

-- name: delete_changes
-- Each change is looked up, so no other one is read.
DELETE c FROM JSON_TABLE(:seqs, '$[*]' COLUMNS (seq BIGINT PATH '$')) j
STRAIGHT_JOIN {{changes}} c FORCE INDEX (PRIMARY) ON c.seq = j.seq
