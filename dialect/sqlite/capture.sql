-- A feed's own objects: its tables, and the triggers that record what was written.
--
-- Triggers append keys to the table of changes and do nothing else. They fire on every UPDATE, whatever its columns,
-- and name only key columns. A plain INSERT into the changes has no conflicts, so the conflict clause of the outer
-- statement never applies to it. Triggers use old SQL only, because they run inside other clients. Neither they nor
-- indexes can name the database of a table.

-- name: changes
-- changes: which keys were written; writers append, publishers delete what they have published
--
-- Without AUTOINCREMENT, seqs start again when the table is empty: see DESIGN.md.
CREATE TABLE IF NOT EXISTS {{changes}} (
  seq INTEGER PRIMARY KEY,
  {{declared_key}},
  kind INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL DEFAULT ({{now}})
)

-- name: positions
-- positions: the position of every key in the feed; only publishers write it
--
-- :shape is WITHOUT ROWID. It is empty if the key is the rowid here as in the source, which makes lookups faster.
CREATE TABLE IF NOT EXISTS {{positions}} (
  {{declared_key}},
  feed_sync_id INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  PRIMARY KEY ({{key}})
):shape

-- name: position_index
-- pages are read in this order; no position is given twice
CREATE UNIQUE INDEX IF NOT EXISTS {{object "position"}} ON {{positions}} (feed_sync_id)

-- name: deleted_index
-- old tombstones are found here
CREATE INDEX IF NOT EXISTS {{object "deleted"}} ON {{positions}} (feed_sync_id) WHERE deleted = 1

-- name: bucket_index
-- pages of a part of the shards are read in this order
--
-- It covers all that a page reads of positions, because the keys of a part are far apart in the table. The marks hardly
-- make it larger: SQLite stores the numbers 0 and 1 in the header of a record.
CREATE INDEX IF NOT EXISTS {{object "bucket"}} ON {{positions}}
  (bucket, feed_sync_id, shard, deleted, hidden, published_at)

-- name: drop_bucket_index
-- pages of a part of the shards are read otherwise
DROP INDEX IF EXISTS {{object "bucket"}}

-- name: has_bucket_index
SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = :index

-- name: outbox
-- outbox: keys that wait for a place; writers append
--
-- Without AUTOINCREMENT, the numbers would start again whenever the outbox is empty. The checks are needed because a
-- column accepts values of any type: a shard that is not a number would stop the transactions that move records.
CREATE TABLE IF NOT EXISTS {{records}} (
  order_sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  shard INTEGER NOT NULL DEFAULT 0 CHECK (typeof(shard) = 'integer'),
  time_hint INTEGER CHECK (typeof(time_hint) IN ('integer', 'null')),
  appended_at INTEGER NOT NULL DEFAULT ({{now}}),
  {{declared_key}}
)

-- name: outbox_index
-- a shard's records are read in this order
CREATE INDEX IF NOT EXISTS {{object "outbox"}} ON {{records}} (shard, order_sequence)

-- name: places
-- the place of every key; only readers and publishers write it
CREATE TABLE IF NOT EXISTS {{places}} (
  shard INTEGER NOT NULL,
  ulid BLOB NOT NULL,
  {{declared_key}},
  PRIMARY KEY (shard, ulid),
  UNIQUE ({{key}})
) WITHOUT ROWID

-- name: position_column
-- each row's position; NULL while it waits for one
--
-- A STRICT table accepts these types, too.
ALTER TABLE {{source}} ADD COLUMN "feed_sync_id" INTEGER

-- name: shard_column
-- each row's shard
ALTER TABLE {{source}} ADD COLUMN "shard" INTEGER NOT NULL DEFAULT 0

-- name: row_position_index
-- pages are read in this order
CREATE INDEX IF NOT EXISTS {{object "row_position"}} ON {{quote .Source.Name}} (feed_sync_id, {{shard_name}})
  WHERE feed_sync_id IS NOT NULL

-- name: row_waiting_index
-- rows that wait are found here, in key order
CREATE INDEX IF NOT EXISTS {{object "row_waiting"}} ON {{quote .Source.Name}} ({{ordered}}) WHERE feed_sync_id IS NULL

-- name: drop_index
-- index
DROP INDEX IF EXISTS :index

-- name: drop_column
-- column
ALTER TABLE {{quote .Source.Name}} DROP COLUMN :column

-- name: capture_inserts
-- a row inserted
CREATE TRIGGER {{object "insert"}} AFTER INSERT ON {{quote .Source.Name}}
BEGIN
  {{template "record_new" .}};
END

-- name: capture_updates
-- a row updated; when its key changed, both keys
CREATE TRIGGER {{object "update"}} AFTER UPDATE ON {{quote .Source.Name}}
BEGIN
  {{template "record" .}} SELECT {{row "OLD"}} WHERE {{template "key_changed" .}};
  {{template "record_new" .}};
END

-- name: capture_deletes
-- a row deleted
CREATE TRIGGER {{object "delete"}} AFTER DELETE ON {{quote .Source.Name}}
BEGIN
  {{template "record" .}} {{with has_key "OLD"}}SELECT {{row "OLD"}} WHERE {{.}}{{else}}VALUES ({{row "OLD"}}){{end}};
END

-- name: capture_replaced_by_inserts
-- rows that INSERT OR REPLACE removes without firing a DELETE trigger
--
-- SQLite fires one only if the writer's connection has recursive_triggers on. For each unique index, but the key's own,
-- the trigger records the keys of rows that have the values of the row which is about to be written. If a recorded row
-- then stays, it is only published once more. For the same reason a partial index is treated as a whole one. The AFTER
-- triggers record the row's own key.
CREATE TRIGGER {{object "insert_replace"}} BEFORE INSERT ON {{quote .Source.Name}}
BEGIN
  :records;
END

-- name: capture_replaced_by_updates
-- rows that UPDATE OR REPLACE removes without firing a DELETE trigger
CREATE TRIGGER {{object "update_replace"}} BEFORE UPDATE ON {{quote .Source.Name}}
BEGIN
  :records;
END

-- name: record_new
-- A row with NULL in its key is not recorded.
{{template "record" .}} {{with has_key "NEW"}}SELECT {{row "NEW"}} WHERE {{.}}{{else}}VALUES ({{row "NEW"}}){{end}}

-- name: record
INSERT INTO {{quote .Changes.Name}} ({{key}})

-- name: key_changed
{{with has_key "OLD"}}{{.}} AND ({{template "other_key" $}}){{else}}{{template "other_key" .}}{{end}}

-- name: other_key
-- An UPDATE has changed the key.
{{range $i, $c := .Key}}{{if $i}} OR {{end}}OLD.{{quote $c.Name}}{{$c.Collate}} IS NOT NEW.{{quote $c.Name}}{{end}}

-- name: record_replaced_by_insert
{{template "record" .}} SELECT {{row "r"}} FROM {{quote .Source.Name}} r WHERE {{with has_key "r"}}{{.}} AND {{end}}:same

-- name: record_replaced_by_update
{{template "record_replaced_by_insert" .}} AND NOT ({{template "same_row" .}})

-- name: same_row
{{range $i, $c := .Key}}{{if $i}} AND {{end}}r.{{quote $c.Name}}{{$c.Collate}} IS OLD.{{quote $c.Name}}{{end}}

-- name: same_value
r.:column = NEW.:column COLLATE :collation

-- name: same_value_or_default
-- OR REPLACE writes the default if the value is NULL and the column is NOT NULL.
r.:column = COALESCE(NEW.:column, (:default)) COLLATE :collation

-- name: same_rowid
-- The rowid is unique, too, and statements can write it under this name.
r.:rowid = NEW.:rowid

-- name: record_inserts
-- a row inserted
--
-- OR REPLACE fires it for the new row. The deleted row needs no record, because the table is append-only.
CREATE TRIGGER {{object "insert"}} AFTER INSERT ON {{quote .Source.Name}}
BEGIN
  {{template "append_record" .}};
END

-- name: record_updates
-- a row with another key
CREATE TRIGGER {{object "update"}} AFTER UPDATE ON {{quote .Source.Name}} WHEN {{template "other_key" .}}
BEGIN
  {{template "append_record" .}};
END

-- name: append_record
INSERT INTO {{quote .Records.Name}} (shard, {{key}}) VALUES ({{template "shard_of_row" .}}, {{row "NEW"}})

-- name: shard_of_row
-- A shard that is not an integer must make the writer's statement fail, so the trigger calls RAISE. With an outer
-- OR IGNORE, the CHECK of the outbox would drop the record and keep the row.
{{if .RecordShard}}CASE typeof(NEW.{{quote .RecordShard}}) WHEN 'integer' THEN NEW.{{quote .RecordShard}} ELSE
    RAISE(ABORT, {{literal (printf "rowfeed: column %q of table %q, a row's shard in feed %q, holds no integer"
      .RecordShard .Source.Name .Name)}}) END{{else}}0{{end}}

-- name: fence
-- a table; while it has a row, the fence is open; empty between the publisher's transactions
--
-- A trigger cannot read a variable or a temporary table. The publisher's transaction has the only write lock, so no
-- other transaction finds the publisher's row here, and a rollback removes it.
CREATE TABLE IF NOT EXISTS {{batch}} (open INTEGER PRIMARY KEY)

-- name: fence_inserts
-- refuse a row inserted with a position that the publisher does not give
CREATE TRIGGER {{object "insert"}} AFTER INSERT ON {{quote .Source.Name}}
WHEN NEW.feed_sync_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {{quote .Batch.Name}})
BEGIN
  SELECT RAISE(ABORT, {{literal .FenceText}});
END

-- name: fence_updates
-- refuse a position that the publisher does not give
CREATE TRIGGER {{object "update"}} AFTER UPDATE OF feed_sync_id ON {{quote .Source.Name}}
WHEN NEW.feed_sync_id IS NOT NULL AND NEW.feed_sync_id IS NOT OLD.feed_sync_id
  AND NOT EXISTS (SELECT 1 FROM {{quote .Batch.Name}})
BEGIN
  SELECT RAISE(ABORT, {{literal .FenceText}});
END

-- name: drop_fence
-- the fence
DROP TABLE IF EXISTS {{batch}}

-- name: drop_older_trigger
-- an older form of the trigger
DROP TRIGGER IF EXISTS :name

-- name: drop_trigger
-- trigger
DROP TRIGGER IF EXISTS :name

-- name: drop_outbox
-- its outbox
DROP TABLE IF EXISTS {{records}}

-- name: drop_places
-- its places
DROP TABLE IF EXISTS {{places}}

-- name: drop_changes
-- changes
DROP TABLE IF EXISTS {{changes}}

-- name: drop_positions
-- positions
DROP TABLE IF EXISTS {{positions}}

-- name: delete_row
DELETE FROM {{source}} WHERE :key

-- name: record_delete
-- It follows delete_row if a feed has no trigger that records the delete. SQLite has no single statement that deletes
-- from one table and inserts into another one.
INSERT INTO {{changes}} ({{key}}) VALUES (:key)
