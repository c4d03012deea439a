-- A feed's own objects: its tables, and the triggers that record what was written.
--
-- Triggers append keys to the table of changes and do nothing else. They run on every UPDATE, because a comparison of
-- values would miss changes: of columns that were added later, and of values that are equal by collation. They read
-- only key columns. A trigger belongs to the whole table, partitions included. TRUNCATE fires none.

-- name: options
ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: batch
-- the keys that a publisher is processing; empty between its transactions
CREATE TABLE IF NOT EXISTS {{batch}} (
  seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  {{declared_key}}
) {{template "options"}}

-- name: changes
-- changes waiting for the publisher; writers only append, publishers only delete
CREATE TABLE IF NOT EXISTS {{changes}} (
  seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  {{declared_key}},
  kind tinyint NOT NULL DEFAULT 0,
  changed_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
) {{template "options"}}

-- name: positions
-- the position of every key in the feed; written by publishers only
--
-- The lock on the sequence makes feed_sync_id unique. Its index is not unique: so ON DUPLICATE KEY UPDATE can only meet
-- the key, and takes no gap lock on this index. The index covers all that a page reads. MySQL fetches 500 rows ahead;
-- with a smaller index these are 500 lookups for the shortest page (5 ms instead of 1).
CREATE TABLE IF NOT EXISTS {{positions}} (
  {{declared_key}},
  feed_sync_id bigint NOT NULL,
  shard int NOT NULL,
  bucket int NOT NULL,
  deleted tinyint NOT NULL,
  hidden tinyint NOT NULL,
  published_at bigint NOT NULL,
  PRIMARY KEY ({{key}}),
  KEY feed_sync_id (feed_sync_id, shard, deleted, hidden, published_at),
  KEY deleted (deleted)
{{- if .ByBucket}},
  KEY bucket (bucket, feed_sync_id, shard, deleted, hidden, published_at){{end}}
) {{template "options"}}

-- name: bucket_index
-- pages of a part of the shards are read in this order
--
-- It covers all that they read of positions. The table can be read and written meanwhile.
ALTER TABLE {{positions}} ADD INDEX `bucket` (bucket, feed_sync_id, shard, deleted, hidden, published_at)

-- name: drop_bucket_index
-- pages of a part of the shards are read otherwise
ALTER TABLE {{positions}} DROP INDEX `bucket`

-- name: outbox
-- outbox: keys that wait for a place; writers append
CREATE TABLE IF NOT EXISTS {{records}} (
  order_sequence bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  shard bigint NOT NULL DEFAULT 0,
  time_hint bigint NULL,
  appended_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  {{declared_key}},
  KEY shard (shard, order_sequence)
) {{template "options"}}

-- name: places
-- the place of every key; only readers and publishers write it
--
-- The key is the primary key. In a primary key, InnoDB locks only a duplicate. In another unique index, it also locks
-- the gaps next to the duplicate and the following key. A transaction that moves a known key would then keep
-- transactions of other shards from inserting new keys.
CREATE TABLE IF NOT EXISTS {{places}} (
  shard bigint NOT NULL,
  ulid binary(16) NOT NULL,
  {{declared_key}},
  PRIMARY KEY ({{key}}),
  UNIQUE KEY place (shard, ulid)
) {{template "options"}}

-- name: add_columns
-- each row's position, NULL while it waits for one, and shard
--
-- The columns are added first, which is instant, and then the index. The table can be written while the index is made.
-- If the server can, the columns are hidden from SELECT * and from INSERT without a list of columns. Each server reads
-- the other's word as a comment.
ALTER TABLE {{source}} :adds

-- name: add_column
ADD COLUMN :column :type /*!80023 INVISIBLE */ /*M! INVISIBLE */

-- name: drop_rest_of_index
-- the rest of the index
--
-- A column that was dropped is removed from the index, which stays.
ALTER TABLE {{source}} DROP INDEX {{object "row_position"}}

-- name: row_index
-- pages are read in this order; rows that wait are found in key order
--
-- Neither needs a lookup of rows. The index is not unique: with a unique index on feed_sync_id, the locking read of
-- PlaceRows sorts, and locks, every row that waits.
ALTER TABLE {{source}} ADD INDEX {{object "row_position"}} (:columns)

-- name: drop_own
-- the columns and the index that the table got
ALTER TABLE {{source}} :drops

-- name: key_mode
-- triggers and routines keep this mode: they accept every key that the table accepts, and shorten none
--
-- It accepts all that the source has accepted, such as a zero date, and never shortens a value to fit. A trigger keeps
-- the sql_mode of the session that made it. With the server's default mode, it would fail the writes of sessions with a
-- laxer one.
SET SESSION sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES'

-- name: use
-- triggers do not name their database, so that a dump can be loaded into another database
--
-- MariaDB stores the text of the statement, which a dump repeats wherever it is loaded.
USE :database

-- name: capture_inserts
-- record the keys of every INSERT
CREATE TRIGGER :name AFTER INSERT ON :table FOR EACH ROW
INSERT INTO :changes ({{key}}) VALUES ({{row "NEW"}})

-- name: capture_updates
-- record the keys of every UPDATE
CREATE TRIGGER :name AFTER UPDATE ON :table FOR EACH ROW
BEGIN
  IF NOT ({{same_rows "OLD" "NEW"}}) THEN
    INSERT INTO :changes ({{key}}) VALUES ({{row "OLD"}});
  END IF;
  INSERT INTO :changes ({{key}}) VALUES ({{row "NEW"}});
END

-- name: capture_deletes
-- record the keys of every DELETE
CREATE TRIGGER :name AFTER DELETE ON :table FOR EACH ROW
INSERT INTO :changes ({{key}}) VALUES ({{row "OLD"}})

-- name: record_inserts
-- record the keys of every INSERT
CREATE TRIGGER :name AFTER INSERT ON :table FOR EACH ROW
INSERT INTO :changes (shard, {{key}}) VALUES (:shard, {{row "NEW"}})

-- name: record_updates
-- record the keys of every UPDATE
--
-- Rows are only appended, and a row with another key counts as another row.
CREATE TRIGGER :name AFTER UPDATE ON :table FOR EACH ROW
BEGIN
  IF NOT ({{same_rows "OLD" "NEW"}}) THEN
    INSERT INTO :changes (shard, {{key}}) VALUES (:shard, {{row "NEW"}});
  END IF;
END

-- name: fence_inserts
-- refuse a row inserted with a position that the publisher does not give
CREATE TRIGGER :name AFTER INSERT ON :table FOR EACH ROW
BEGIN
  IF NEW.feed_sync_id IS NOT NULL THEN
    {{template "fence"}}
  END IF;
END

-- name: fence_updates
-- refuse a position that the publisher does not give
CREATE TRIGGER :name AFTER UPDATE ON :table FOR EACH ROW
BEGIN
  IF NEW.feed_sync_id IS NOT NULL AND NOT (NEW.feed_sync_id <=> OLD.feed_sync_id) THEN
    {{template "fence"}}
  END IF;
END

-- name: fence
-- The publisher sets the variable, and puts keys into the table. A connection that it gives back to a pool after an
-- error may keep the variable; the rollback has emptied the table. Other sessions do not read the table: in REPEATABLE
-- READ they would lock its end, and the publisher would wait for them.
IF NOT (@rowfeed_publisher <=> :feed) THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = :text;
    ELSEIF (SELECT max(seq) FROM :changes) IS NULL THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = :text;
    END IF;

-- name: drop_left_trigger
-- a trigger that an interrupted run may have left
DROP TRIGGER IF EXISTS :name

-- name: drop_trigger
-- stop recording
--
-- Before its table: without it, the trigger would fail every write.
DROP TRIGGER IF EXISTS :name

-- name: drop_stale_trigger
-- the stale trigger
DROP TRIGGER IF EXISTS :name

-- name: drop_batch
-- the publisher's list of keys
DROP TABLE IF EXISTS {{batch}}

-- name: drop_outbox
-- forget the records that wait
DROP TABLE IF EXISTS {{records}}

-- name: drop_places
-- forget the places
DROP TABLE IF EXISTS {{places}}

-- name: drop_closed
-- forget the changes that were closed
DROP TABLE IF EXISTS {{table (print "closed_" .Name)}}

-- name: drop_changes
-- forget the changes that wait
DROP TABLE IF EXISTS {{changes}}

-- name: drop_positions
-- forget the positions
DROP TABLE IF EXISTS {{positions}}

-- name: declare_key
-- declare the key as the table does
ALTER TABLE :table MODIFY :column

-- name: delete_row
DELETE FROM {{source}} WHERE :key

-- name: record_delete
-- It follows delete_row if a feed has no trigger that records the delete. MySQL and MariaDB have no single statement
-- that deletes from one table and inserts into another one.
INSERT INTO {{changes}} ({{key}}) VALUES (:key)

-- name: triggers
-- The triggers of the source table, and triggers of other tables of its database that have one of the feed's names.
SELECT EVENT_OBJECT_TABLE, TRIGGER_NAME, EVENT_MANIPULATION, ACTION_TIMING, ACTION_STATEMENT, DEFINER
FROM information_schema.TRIGGERS
WHERE TRIGGER_SCHEMA = :schema AND (EVENT_OBJECT_TABLE = :table OR TRIGGER_NAME IN (:names))
ORDER BY TRIGGER_NAME LIMIT 18446744073709551615

-- name: made_as
-- MariaDB stores the text of the statement that made a trigger or a routine. information_schema does not show it.
SHOW CREATE :kind :name

-- name: strays
-- Triggers elsewhere that write into this feed's tables.
SELECT TRIGGER_SCHEMA, TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS
WHERE CAST(TRIM(ACTION_STATEMENT) AS CHAR) IN (:bodies) AND TRIGGER_SCHEMA <> :schema ORDER BY 1, 2
