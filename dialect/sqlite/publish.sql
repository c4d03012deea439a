-- Publishing: what a transaction locks, and how changes get their positions.
--
-- The lock is the file's: SQLite has one writer at a time. A publisher holds it from its first statement to its COMMIT.
-- Meanwhile the publisher sees every change, and no other transaction has locked a row.
--
-- CROSS JOIN makes SQLite join in the order of the text: an assignment, its change by rowid, then the row and the old
-- position each by key.

-- name: begin_write
-- The first statement of every transaction that may write acquires the write lock, whatever BEGIN the driver sends. A
-- transaction that reads first and then writes fails with SQLITE_BUSY if another writer came between, at once, whatever
-- busy_timeout is.
UPDATE :sequences SET version = version WHERE 0

-- name: durability
PRAGMA synchronous

-- name: lock_sequence
-- It only reads the row: the transaction has the only write lock.
SELECT value, version, COALESCE(term, 0), updated_at, {{now}} FROM {{table "sequences"}} WHERE name = :feed

-- name: oldest
SELECT seq, kind, {{read_key}} FROM {{changes}} ORDER BY seq LIMIT :limit

-- name: assign_positions
-- It upserts the keys that have a row, and counts them. Only if some keys have none, assign_tombstones looks for their
-- positions. A single statement would read the table that it writes; for that, SQLite collects all rows before it
-- writes the first one.
--
-- EXISTS, not a join. If the key's index was dropped, two rows may have the same key. A join would count both, and so
-- hide a key without a row.
{{template "into_positions" .}}
SELECT {{key "c"}}, {{template "assignment" .}}, 0, 0, :published
FROM {{template "assigned" .}}
WHERE {{template "has_row" .}}
{{template "upsert" .}}

-- name: assign_positions_of_run
-- Changes with consecutive seqs are read as a range, and their positions follow from the seqs.
{{template "into_positions" .}}
SELECT {{key "c"}}, :offset + c.seq, 0, 0, 0, 0, :published
FROM {{changes}} c
WHERE c.seq BETWEEN :first AND :last AND {{template "has_row" .}}
{{template "upsert" .}}

-- name: assign_tombstones
{{template "into_positions" .}}
SELECT {{key "c"}}, {{template "assignment" .}}, 1, 0, :published
FROM {{template "assigned" .}}
LEFT JOIN {{source}} t ON {{row_of "t" "c"}}
WHERE {{template "has_position_only" .}}
{{template "upsert" .}}

-- name: assign_tombstones_of_run
{{template "into_positions" .}}
SELECT {{key "c"}}, :offset + c.seq, 0, 0, 1, 0, :published
FROM {{changes}} c
LEFT JOIN {{source}} t ON {{row_of "t" "c"}}
WHERE c.seq BETWEEN :first AND :last AND {{template "has_position_only" .}}
{{template "upsert" .}}

-- name: assign_positions_by_kind
-- Some changes have another kind than 0, changed: 1 republished, 2 unpublished, 3 placed. The former position of each
-- key is looked up.
{{template "into_positions" .}}
SELECT {{key "c"}}, CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE :offset + j.place END,
  {{template "shard_and_bucket" .}}, {{one_of_row "t"}} IS NULL,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE :published END
FROM {{template "assigned_with_kinds" .}}
LEFT JOIN {{source}} t ON {{row_of "t" "c"}}
LEFT JOIN {{positions}} old ON {{same_key "old" "c"}}
WHERE {{if .ReadsRows}}1 = 1{{else}}{{one_of_row "t"}} IS NOT NULL OR {{one_of_key "old"}} IS NOT NULL{{end}}
{{template "order_of_changes" .}}
ON CONFLICT ({{key}}) DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden
{{- if .OwnShard}},
  shard = CASE WHEN {{template "shard_changes_by_kind" .}} THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN {{template "shard_changes_by_kind" .}} THEN excluded.bucket ELSE p.bucket END{{end}}

-- name: into_positions
INSERT INTO {{positions}} AS p ({{key}}, feed_sync_id, shard, bucket, deleted, hidden, published_at)

-- name: assigned
-- json_each's column key is the index in the list, from 0.
{{if .Sharded}}{{template "assigned_with_kinds" .}}{{else -}}
(SELECT key AS place, value AS seq FROM json_each(:list)) j
CROSS JOIN {{changes}} c ON c.seq = j.seq{{end}}

-- name: assigned_with_kinds
(SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN {{changes}} c ON c.seq = j.seq

-- name: assignment
-- The position, the shard and the bucket.
:offset + j.place, {{if .Sharded}}{{template "shard_and_bucket" .}}{{else}}0, 0{{end}}

-- name: shard_and_bucket
-- A shard column of the table's own is read at the row of the key, if there is one.
{{if .OwnShard}}{{shard_of_key "c"}}, {{bucket (shard_of_key "c") "/"}}{{else}}j.shard, {{bucket "j.shard" "/"}}{{end}}

-- name: has_row
EXISTS (SELECT 1 FROM {{source}} t WHERE {{row_of "t" "c"}})

-- name: has_position_only
-- If rows hold their positions, no query can tell whether a key without a row was ever shown. It always gets a
-- tombstone.
{{one_of_row "t"}} IS NULL
{{- if not .ReadsRows}} AND EXISTS (SELECT 1 FROM {{positions}} old WHERE {{same_key "old" "c"}}){{end}}

-- name: upsert
-- A hidden key keeps its position and stays hidden. The row that is already there shows whether a key is hidden. The
-- target is the key alone, so a position that exists already is an error.
{{template "order_of_changes" .}}
ON CONFLICT ({{key}}) DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted
{{- if .OwnShard}},
  shard = CASE WHEN {{template "shard_changes" .}} THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN {{template "shard_changes" .}} THEN excluded.bucket ELSE p.bucket END{{end}}

-- name: shard_changes
-- A key keeps its first data shard, also if its row holds another one later. A key without a data shard gets the first
-- one that its row holds. If rows hold positions, or have held them, the row's column is the shard, and a hidden key
-- keeps its entry.
{{if .RowShards}}p.hidden = 0{{else}}p.shard < 0{{end}}

-- name: shard_changes_by_kind
{{if .RowShards}}p.feed_sync_id <> excluded.feed_sync_id{{else}}p.shard < 0{{end}}

-- name: order_of_changes
-- If one key has two texts, the later change counts, and the key keeps its text.
{{if not .ExactKey}}ORDER BY c.seq{{end}}

-- name: delete_run
-- A range may be deleted: the changes were read from the lowest seq on, and this transaction sees all changes.
DELETE FROM {{changes}} WHERE seq BETWEEN :first AND :last

-- name: backlog
-- How many changes wait, and since when the oldest has waited. Each kind is counted only up to :limit.
SELECT (SELECT count(*) FROM (SELECT 1 FROM {{changes}} LIMIT :limit) x)
{{- if .InRows}} + (SELECT count(*) FROM (SELECT 1 FROM {{source}} WHERE feed_sync_id IS NULL LIMIT :limit) y){{end}},
  COALESCE((SELECT {{now}} - changed_at FROM {{changes}} ORDER BY seq LIMIT 1), 0)

-- name: backlog_of_outbox
SELECT (SELECT count(*) FROM (SELECT 1 FROM {{records}} LIMIT :limit) x),
  COALESCE((SELECT {{now}} - appended_at FROM {{records}} ORDER BY order_sequence LIMIT 1), 0)

-- name: backlog_of_shard
-- The first column counts the records of all shards, the second is the age of the shard's oldest record. The shard is a
-- range from :shard to :shard, because SQLite then uses the index of shard and order_sequence.
SELECT (SELECT count(*) FROM (SELECT 1 FROM {{records}} LIMIT :limit) x),
  COALESCE((SELECT {{now}} - appended_at FROM {{records}}
    WHERE shard BETWEEN :shard AND :shard ORDER BY shard, order_sequence LIMIT 1), 0)

-- name: file
-- The file whose lock publishers wait for. It is empty for a database in memory.
SELECT file FROM pragma_database_list WHERE name = 'main'
