-- name: append_record
INSERT INTO "rowfeed_outbox_<feed>" (shard, "id") VALUES (0, NEW."id")

-- name: append_record (composite_key_feed)
INSERT INTO "rowfeed_outbox_<feed>" (shard, "key_kind", "id") VALUES (0, NEW."kind", NEW."id")

-- name: bucket_index
CREATE INDEX IF NOT EXISTS "rowfeed_<feed>_bucket" ON "rowfeed_positions_<feed>"
  (bucket, feed_sync_id, shard, deleted, hidden, published_at)

-- name: capture_deletes
CREATE TRIGGER "rowfeed_<feed>_delete" AFTER DELETE ON "items_<feed>"
BEGIN
  INSERT INTO "rowfeed_changes_<feed>" ("id") VALUES (OLD."id");
END

-- name: capture_deletes (composite_key_feed)
CREATE TRIGGER "rowfeed_<feed>_delete" AFTER DELETE ON "items_<feed>"
BEGIN
  INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") VALUES (OLD."kind", OLD."id");
END

-- name: capture_inserts
CREATE TRIGGER "rowfeed_<feed>_insert" AFTER INSERT ON "items_<feed>"
BEGIN
  INSERT INTO "rowfeed_changes_<feed>" ("id") VALUES (NEW."id");
END

-- name: capture_inserts (composite_key_feed)
CREATE TRIGGER "rowfeed_<feed>_insert" AFTER INSERT ON "items_<feed>"
BEGIN
  INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") VALUES (NEW."kind", NEW."id");
END

-- name: capture_replaced_by_inserts
CREATE TRIGGER "rowfeed_<feed>_insert_replace" BEFORE INSERT ON "items_<feed>"
BEGIN
  :records;
END

-- name: capture_replaced_by_updates
CREATE TRIGGER "rowfeed_<feed>_update_replace" BEFORE UPDATE ON "items_<feed>"
BEGIN
  :records;
END

-- name: capture_updates
CREATE TRIGGER "rowfeed_<feed>_update" AFTER UPDATE ON "items_<feed>"
BEGIN
  INSERT INTO "rowfeed_changes_<feed>" ("id") SELECT OLD."id" WHERE OLD."id" IS NOT NEW."id";
  INSERT INTO "rowfeed_changes_<feed>" ("id") VALUES (NEW."id");
END

-- name: capture_updates (composite_key_feed)
CREATE TRIGGER "rowfeed_<feed>_update" AFTER UPDATE ON "items_<feed>"
BEGIN
  INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") SELECT OLD."kind", OLD."id" WHERE OLD."kind" IS NOT NEW."kind" OR OLD."id" IS NOT NEW."id";
  INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") VALUES (NEW."kind", NEW."id");
END

-- name: changes
CREATE TABLE IF NOT EXISTS "rowfeed_changes_<feed>" (
  seq INTEGER PRIMARY KEY,
  "id" bigint NOT NULL,
  kind INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
)

-- name: changes (composite_key_feed)
CREATE TABLE IF NOT EXISTS "rowfeed_changes_<feed>" (
  seq INTEGER PRIMARY KEY,
  "key_kind" text NOT NULL,
  "id" bigint NOT NULL,
  kind INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
)

-- name: delete_row
DELETE FROM "items_<feed>" WHERE :key

-- name: deleted_index
CREATE INDEX IF NOT EXISTS "rowfeed_<feed>_deleted" ON "rowfeed_positions_<feed>" (feed_sync_id) WHERE deleted = 1

-- name: drop_bucket_index
DROP INDEX IF EXISTS "rowfeed_<feed>_bucket"

-- name: drop_changes
DROP TABLE IF EXISTS "rowfeed_changes_<feed>"

-- name: drop_column
ALTER TABLE "items_<feed>" DROP COLUMN :column

-- name: drop_fence
DROP TABLE IF EXISTS "rowfeed_batch_<feed>"

-- name: drop_index
DROP INDEX IF EXISTS :index

-- name: drop_older_trigger
DROP TRIGGER IF EXISTS :name

-- name: drop_outbox
DROP TABLE IF EXISTS "rowfeed_outbox_<feed>"

-- name: drop_places
DROP TABLE IF EXISTS "rowfeed_feed_<feed>"

-- name: drop_positions
DROP TABLE IF EXISTS "rowfeed_positions_<feed>"

-- name: drop_trigger
DROP TRIGGER IF EXISTS :name

-- name: fence
CREATE TABLE IF NOT EXISTS "rowfeed_batch_<feed>" (open INTEGER PRIMARY KEY)

-- name: fence_inserts
CREATE TRIGGER "rowfeed_<feed>_insert" AFTER INSERT ON "items_<feed>"
WHEN NEW.feed_sync_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "rowfeed_batch_<feed>")
BEGIN
  SELECT RAISE(ABORT, 'rowfeed: only feed <feed> sets feed_sync_id. Stop your own publisher; writers set it to NULL.');
END

-- name: fence_updates
CREATE TRIGGER "rowfeed_<feed>_update" AFTER UPDATE OF feed_sync_id ON "items_<feed>"
WHEN NEW.feed_sync_id IS NOT NULL AND NEW.feed_sync_id IS NOT OLD.feed_sync_id
  AND NOT EXISTS (SELECT 1 FROM "rowfeed_batch_<feed>")
BEGIN
  SELECT RAISE(ABORT, 'rowfeed: only feed <feed> sets feed_sync_id. Stop your own publisher; writers set it to NULL.');
END

-- name: has_bucket_index
SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = :index

-- name: key_changed
OLD."id" IS NOT NEW."id"

-- name: key_changed (composite_key_feed)
OLD."kind" IS NOT NEW."kind" OR OLD."id" IS NOT NEW."id"

-- name: other_key
OLD."id" IS NOT NEW."id"

-- name: other_key (composite_key_feed)
OLD."kind" IS NOT NEW."kind" OR OLD."id" IS NOT NEW."id"

-- name: outbox
CREATE TABLE IF NOT EXISTS "rowfeed_outbox_<feed>" (
  order_sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  shard INTEGER NOT NULL DEFAULT 0 CHECK (typeof(shard) = 'integer'),
  time_hint INTEGER CHECK (typeof(time_hint) IN ('integer', 'null')),
  appended_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
  "id" bigint NOT NULL
)

-- name: outbox (composite_key_feed)
CREATE TABLE IF NOT EXISTS "rowfeed_outbox_<feed>" (
  order_sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  shard INTEGER NOT NULL DEFAULT 0 CHECK (typeof(shard) = 'integer'),
  time_hint INTEGER CHECK (typeof(time_hint) IN ('integer', 'null')),
  appended_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
  "key_kind" text NOT NULL,
  "id" bigint NOT NULL
)

-- name: outbox_index
CREATE INDEX IF NOT EXISTS "rowfeed_<feed>_outbox" ON "rowfeed_outbox_<feed>" (shard, order_sequence)

-- name: places
CREATE TABLE IF NOT EXISTS "rowfeed_feed_<feed>" (
  shard INTEGER NOT NULL,
  ulid BLOB NOT NULL,
  "id" bigint NOT NULL,
  PRIMARY KEY (shard, ulid),
  UNIQUE ("id")
) WITHOUT ROWID

-- name: places (composite_key_feed)
CREATE TABLE IF NOT EXISTS "rowfeed_feed_<feed>" (
  shard INTEGER NOT NULL,
  ulid BLOB NOT NULL,
  "key_kind" text NOT NULL,
  "id" bigint NOT NULL,
  PRIMARY KEY (shard, ulid),
  UNIQUE ("key_kind", "id")
) WITHOUT ROWID

-- name: position_column
ALTER TABLE "items_<feed>" ADD COLUMN "feed_sync_id" INTEGER

-- name: position_index
CREATE UNIQUE INDEX IF NOT EXISTS "rowfeed_<feed>_position" ON "rowfeed_positions_<feed>" (feed_sync_id)

-- name: positions
CREATE TABLE IF NOT EXISTS "rowfeed_positions_<feed>" (
  "id" bigint NOT NULL,
  feed_sync_id INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  PRIMARY KEY ("id")
):shape

-- name: positions (composite_key_feed)
CREATE TABLE IF NOT EXISTS "rowfeed_positions_<feed>" (
  "key_kind" text NOT NULL,
  "id" bigint NOT NULL,
  feed_sync_id INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  PRIMARY KEY ("key_kind", "id")
):shape

-- name: record
INSERT INTO "rowfeed_changes_<feed>" ("id")

-- name: record (composite_key_feed)
INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id")

-- name: record_delete
INSERT INTO "rowfeed_changes_<feed>" ("id") VALUES (:key)

-- name: record_delete (composite_key_feed)
INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") VALUES (:key)

-- name: record_inserts
CREATE TRIGGER "rowfeed_<feed>_insert" AFTER INSERT ON "items_<feed>"
BEGIN
  INSERT INTO "rowfeed_outbox_<feed>" (shard, "id") VALUES (0, NEW."id");
END

-- name: record_inserts (composite_key_feed)
CREATE TRIGGER "rowfeed_<feed>_insert" AFTER INSERT ON "items_<feed>"
BEGIN
  INSERT INTO "rowfeed_outbox_<feed>" (shard, "key_kind", "id") VALUES (0, NEW."kind", NEW."id");
END

-- name: record_new
INSERT INTO "rowfeed_changes_<feed>" ("id") VALUES (NEW."id")

-- name: record_new (composite_key_feed)
INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") VALUES (NEW."kind", NEW."id")

-- name: record_replaced_by_insert
INSERT INTO "rowfeed_changes_<feed>" ("id") SELECT r."id" FROM "items_<feed>" r WHERE :same

-- name: record_replaced_by_insert (composite_key_feed)
INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") SELECT r."kind", r."id" FROM "items_<feed>" r WHERE :same

-- name: record_replaced_by_update
INSERT INTO "rowfeed_changes_<feed>" ("id") SELECT r."id" FROM "items_<feed>" r WHERE :same AND NOT (r."id" IS OLD."id")

-- name: record_replaced_by_update (composite_key_feed)
INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") SELECT r."kind", r."id" FROM "items_<feed>" r WHERE :same AND NOT (r."kind" IS OLD."kind" AND r."id" IS OLD."id")

-- name: record_updates
CREATE TRIGGER "rowfeed_<feed>_update" AFTER UPDATE ON "items_<feed>" WHEN OLD."id" IS NOT NEW."id"
BEGIN
  INSERT INTO "rowfeed_outbox_<feed>" (shard, "id") VALUES (0, NEW."id");
END

-- name: record_updates (composite_key_feed)
CREATE TRIGGER "rowfeed_<feed>_update" AFTER UPDATE ON "items_<feed>" WHEN OLD."kind" IS NOT NEW."kind" OR OLD."id" IS NOT NEW."id"
BEGIN
  INSERT INTO "rowfeed_outbox_<feed>" (shard, "key_kind", "id") VALUES (0, NEW."kind", NEW."id");
END

-- name: row_position_index
CREATE INDEX IF NOT EXISTS "rowfeed_<feed>_row_position" ON "items_<feed>" (feed_sync_id, shard)
  WHERE feed_sync_id IS NOT NULL

-- name: row_position_index (own_shards_feed)
CREATE INDEX IF NOT EXISTS "rowfeed_<feed>_row_position" ON "items_<feed>" (feed_sync_id, "tenant")
  WHERE feed_sync_id IS NOT NULL

-- name: row_waiting_index
CREATE INDEX IF NOT EXISTS "rowfeed_<feed>_row_waiting" ON "items_<feed>" ("id") WHERE feed_sync_id IS NULL

-- name: row_waiting_index (composite_key_feed)
CREATE INDEX IF NOT EXISTS "rowfeed_<feed>_row_waiting" ON "items_<feed>" ("kind", "id") WHERE feed_sync_id IS NULL

-- name: same_row
r."id" IS OLD."id"

-- name: same_row (composite_key_feed)
r."kind" IS OLD."kind" AND r."id" IS OLD."id"

-- name: same_rowid
r.:rowid = NEW.:rowid

-- name: same_value
r.:column = NEW.:column COLLATE :collation

-- name: same_value_or_default
r.:column = COALESCE(NEW.:column, (:default)) COLLATE :collation

-- name: shard_column
ALTER TABLE "items_<feed>" ADD COLUMN "shard" INTEGER NOT NULL DEFAULT 0

-- name: shard_of_row
0

