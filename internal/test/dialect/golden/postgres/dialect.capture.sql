-- name: bucket_index
CREATE INDEX IF NOT EXISTS "rowfeed_<feed>_bucket" ON "rowfeed_positions_<feed>" (bucket, feed_sync_id, shard)

-- name: capture_function
CREATE OR REPLACE FUNCTION "rowfeed_<feed>_capture"() RETURNS trigger LANGUAGE plpgsql :rights AS $rowfeed$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' OR TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND (:other_key) THEN
    INSERT INTO "rowfeed_changes_<feed>" ("id") VALUES (OLD."id");
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE' THEN
    INSERT INTO "rowfeed_changes_<feed>" ("id") VALUES (NEW."id");
  END IF;
  RETURN NULL;
END
$rowfeed$

-- name: capture_function (composite_key_feed)
CREATE OR REPLACE FUNCTION "rowfeed_<feed>_capture"() RETURNS trigger LANGUAGE plpgsql :rights AS $rowfeed$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' OR TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND (:other_key) THEN
    INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") VALUES (OLD."kind", OLD."id");
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE' THEN
    INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") VALUES (NEW."kind", NEW."id");
  END IF;
  RETURN NULL;
END
$rowfeed$

-- name: capture_trigger
CREATE OR REPLACE TRIGGER "rowfeed_<feed>_capture" AFTER INSERT OR UPDATE OR DELETE ON "items_<feed>"
FOR EACH ROW EXECUTE FUNCTION "rowfeed_<feed>_capture"()

-- name: capture_trigger (outbox_feed)
CREATE OR REPLACE TRIGGER "rowfeed_<feed>_capture" AFTER INSERT OR UPDATE ON "items_<feed>"
FOR EACH ROW EXECUTE FUNCTION "rowfeed_<feed>_capture"()

-- name: changes
CREATE TABLE IF NOT EXISTS "rowfeed_changes_<feed>" (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  "id" bigint NOT NULL,
  kind smallint NOT NULL DEFAULT 0,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.1)

-- name: changes (composite_key_feed)
CREATE TABLE IF NOT EXISTS "rowfeed_changes_<feed>" (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  "key_kind" text NOT NULL,
  "id" bigint NOT NULL,
  kind smallint NOT NULL DEFAULT 0,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.1)

-- name: declare_key
ALTER TABLE :table ALTER COLUMN :column TYPE :type

-- name: delete_row
DELETE FROM "items_<feed>" WHERE :key

-- name: delete_row_and_record
WITH gone AS (DELETE FROM "items_<feed>" WHERE :key RETURNING "id")
INSERT INTO "rowfeed_changes_<feed>" ("id") SELECT "id" FROM gone

-- name: delete_row_and_record (composite_key_feed)
WITH gone AS (DELETE FROM "items_<feed>" WHERE :key RETURNING "kind", "id")
INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") SELECT "kind", "id" FROM gone

-- name: deleted_index
CREATE INDEX IF NOT EXISTS "rowfeed_<feed>_deleted" ON "rowfeed_positions_<feed>" (feed_sync_id) WHERE deleted = 1

-- name: drop_bucket_index
DROP INDEX IF EXISTS "rowfeed_<feed>_bucket"

-- name: drop_changes
DROP TABLE IF EXISTS "rowfeed_changes_<feed>"

-- name: drop_column
ALTER TABLE "items_<feed>" DROP COLUMN IF EXISTS :column

-- name: drop_fence
DROP FUNCTION IF EXISTS "rowfeed_<feed>_fence"() CASCADE

-- name: drop_index
DROP INDEX IF EXISTS :index

-- name: drop_outbox
DROP TABLE IF EXISTS "rowfeed_outbox_<feed>"

-- name: drop_places
DROP TABLE IF EXISTS "rowfeed_feed_<feed>"

-- name: drop_positions
DROP TABLE IF EXISTS "rowfeed_positions_<feed>"

-- name: drop_trigger
DROP FUNCTION IF EXISTS "rowfeed_<feed>_capture"() CASCADE

-- name: drop_triggers
DROP FUNCTION IF EXISTS "rowfeed_<feed>_capture"() CASCADE

-- name: drop_truncate
DROP FUNCTION IF EXISTS "rowfeed_<feed>_truncate"() CASCADE

-- name: drop_unfinished
DROP INDEX IF EXISTS :index

-- name: enable_always
ALTER TABLE :table ENABLE ALWAYS TRIGGER "rowfeed_<feed>_capture", ENABLE ALWAYS TRIGGER "rowfeed_<feed>_truncate"

-- name: enable_always (outbox_feed)
ALTER TABLE :table ENABLE ALWAYS TRIGGER "rowfeed_<feed>_capture"

-- name: exists
SELECT to_regclass(:table) IS NOT NULL

-- name: fence_body
SELECT COALESCE((SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure(:function)), '')

-- name: fence_function
CREATE OR REPLACE FUNCTION "rowfeed_<feed>_fence"() RETURNS trigger LANGUAGE plpgsql AS $rowfeed$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'rowfeed: only feed <feed> sets feed_sync_id. Stop your own publisher; writers set it to NULL.';
END
$rowfeed$

-- name: fence_inserts
CREATE OR REPLACE TRIGGER "rowfeed_<feed>_fence_insert" AFTER INSERT ON "items_<feed>" FOR EACH ROW
WHEN (NEW.feed_sync_id IS NOT NULL AND pg_catalog.current_setting('rowfeed.publisher', true) IS DISTINCT FROM '<feed>')
EXECUTE FUNCTION "rowfeed_<feed>_fence"()

-- name: fence_updates
CREATE OR REPLACE TRIGGER "rowfeed_<feed>_fence_update" AFTER UPDATE ON "items_<feed>" FOR EACH ROW
WHEN (NEW.feed_sync_id IS NOT NULL AND NEW.feed_sync_id IS DISTINCT FROM OLD.feed_sync_id
  AND pg_catalog.current_setting('rowfeed.publisher', true) IS DISTINCT FROM '<feed>')
EXECUTE FUNCTION "rowfeed_<feed>_fence"()

-- name: function_state
SELECT COALESCE((SELECT CASE WHEN NOT p.prosecdef
      OR :own_path::boolean AND NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) c WHERE c LIKE 'search_path=%')
    THEN 'changed'
    WHEN EXISTS (SELECT 1 FROM pg_class c WHERE c.oid IN (to_regclass(:written::text), to_regclass(:source::text))
  AND NOT has_schema_privilege(p.proowner, c.relnamespace, 'USAGE'))
      OR NOT has_table_privilege(p.proowner, :written::text, 'INSERT')
      OR NOT has_table_privilege(p.proowner, :source::text, 'SELECT') THEN 'powerless' ELSE 'ok' END
  FROM pg_proc p WHERE p.oid = to_regprocedure(:function)), 'missing'),
  COALESCE((SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure(:function)), '')

-- name: functions
"rowfeed_<feed>_capture"(), "rowfeed_<feed>_truncate"()

-- name: functions (outbox_feed)
"rowfeed_<feed>_capture"()

-- name: grant_functions
DO $rowfeed$BEGIN EXECUTE format('GRANT EXECUTE ON FUNCTION %s, %s TO %I',
  '"rowfeed_<feed>_capture"()', '"rowfeed_<feed>_truncate"()',
  (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '"items_<feed>"'::regclass)); END$rowfeed$

-- name: grant_functions (outbox_feed)
DO $rowfeed$BEGIN EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I',
  '"rowfeed_<feed>_capture"()',
  (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '"items_<feed>"'::regclass)); END$rowfeed$

-- name: has_bucket_index
SELECT to_regclass('"rowfeed_<feed>_bucket"') IS NOT NULL

-- name: moved
SELECT n.nspname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = :table::text AND c.relkind IN ('r', 'p') AND n.nspname <> :former::text
  AND CASE WHEN :triggers::boolean THEN EXISTS (SELECT 1 FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
      JOIN pg_namespace o ON o.oid = p.pronamespace
    WHERE g.tgrelid = c.oid AND g.tgparentid = 0 AND p.proname = :function::text AND o.nspname = :own::text)
  ELSE n.nspname = :own::text AND NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = :former::text) END

-- name: new_partitions
SELECT n.nspname::text, c.relname::text,
  quote_ident(pg_get_userbyid(c.relowner)), quote_ident(current_user),
  quote_ident(pg_get_userbyid(f.proowner)), pg_has_role(c.relowner, 'USAGE'), has_function_privilege(f.oid, 'EXECUTE'),
  has_table_privilege(f.proowner, c.oid, 'SELECT')
FROM pg_partition_tree(to_regclass(:source)) p JOIN pg_class c ON c.oid = p.relid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_proc f ON f.oid = to_regprocedure(:function)
WHERE p.level > 0 AND NOT EXISTS (SELECT 1 FROM pg_trigger g WHERE g.tgrelid = p.relid AND g.tgname = :trigger::text)
ORDER BY 1, 2

-- name: not_publishing
pg_catalog.current_setting('rowfeed.publisher', true) IS DISTINCT FROM '<feed>'

-- name: other_key
OLD."id" OPERATOR(pg_catalog.<>) NEW."id"

-- name: other_key (composite_key_feed)
OLD."kind" OPERATOR(pg_catalog.<>) NEW."kind" OR OLD."id" OPERATOR(pg_catalog.<>) NEW."id"

-- name: outbox
CREATE TABLE IF NOT EXISTS "rowfeed_outbox_<feed>" (
  order_sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  shard bigint NOT NULL DEFAULT 0,
  time_hint bigint,
  appended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  "id" bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.1)

-- name: outbox (composite_key_feed)
CREATE TABLE IF NOT EXISTS "rowfeed_outbox_<feed>" (
  order_sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  shard bigint NOT NULL DEFAULT 0,
  time_hint bigint,
  appended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  "key_kind" text NOT NULL,
  "id" bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.1)

-- name: outbox_index
CREATE INDEX IF NOT EXISTS "rowfeed_<feed>_outbox" ON "rowfeed_outbox_<feed>" (shard, order_sequence)

-- name: owner_may_not_use
EXISTS (SELECT 1 FROM pg_class c WHERE c.oid IN (to_regclass(:written::text), to_regclass(:source::text))
  AND NOT has_schema_privilege(p.proowner, c.relnamespace, 'USAGE'))

-- name: owner_rights
SECURITY DEFINER

-- name: owner_rights_and_path
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET row_security = off

-- name: places
CREATE TABLE IF NOT EXISTS "rowfeed_feed_<feed>" (
  shard bigint NOT NULL,
  ulid uuid NOT NULL,
  "id" bigint NOT NULL,
  PRIMARY KEY (shard, ulid),
  UNIQUE ("id")
)

-- name: places (composite_key_feed)
CREATE TABLE IF NOT EXISTS "rowfeed_feed_<feed>" (
  shard bigint NOT NULL,
  ulid uuid NOT NULL,
  "key_kind" text NOT NULL,
  "id" bigint NOT NULL,
  PRIMARY KEY (shard, ulid),
  UNIQUE ("key_kind", "id")
)

-- name: position_column
ALTER TABLE "items_<feed>" ADD COLUMN IF NOT EXISTS feed_sync_id bigint

-- name: position_index
CREATE UNIQUE INDEX IF NOT EXISTS "rowfeed_<feed>_position" ON "rowfeed_positions_<feed>" (feed_sync_id)

-- name: positions
CREATE TABLE IF NOT EXISTS "rowfeed_positions_<feed>" (
  "id" bigint NOT NULL,
  feed_sync_id bigint NOT NULL,
  shard integer NOT NULL,
  bucket integer NOT NULL,
  deleted smallint NOT NULL,
  hidden smallint NOT NULL,
  published_at bigint NOT NULL,
  PRIMARY KEY ("id")
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)

-- name: positions (composite_key_feed)
CREATE TABLE IF NOT EXISTS "rowfeed_positions_<feed>" (
  "key_kind" text NOT NULL,
  "id" bigint NOT NULL,
  feed_sync_id bigint NOT NULL,
  shard integer NOT NULL,
  bucket integer NOT NULL,
  deleted smallint NOT NULL,
  hidden smallint NOT NULL,
  published_at bigint NOT NULL,
  PRIMARY KEY ("key_kind", "id")
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)

-- name: record_all
INSERT INTO "rowfeed_changes_<feed>" ("id") SELECT "id"

-- name: record_all (composite_key_feed)
INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id") SELECT "kind", "id"

-- name: record_function
CREATE OR REPLACE FUNCTION "rowfeed_<feed>_capture"() RETURNS trigger LANGUAGE plpgsql :rights AS $rowfeed$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND NOT (:other_key) THEN
    RETURN NULL;
  END IF;
  INSERT INTO "rowfeed_outbox_<feed>" (shard, "id") VALUES (:shard, NEW."id");
  RETURN NULL;
END
$rowfeed$

-- name: record_function (composite_key_feed)
CREATE OR REPLACE FUNCTION "rowfeed_<feed>_capture"() RETURNS trigger LANGUAGE plpgsql :rights AS $rowfeed$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND NOT (:other_key) THEN
    RETURN NULL;
  END IF;
  INSERT INTO "rowfeed_outbox_<feed>" (shard, "key_kind", "id") VALUES (:shard, NEW."kind", NEW."id");
  RETURN NULL;
END
$rowfeed$

-- name: revoke_functions
REVOKE ALL ON FUNCTION "rowfeed_<feed>_capture"(), "rowfeed_<feed>_truncate"() FROM PUBLIC

-- name: revoke_functions (outbox_feed)
REVOKE ALL ON FUNCTION "rowfeed_<feed>_capture"() FROM PUBLIC

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

-- name: shard_column
ALTER TABLE "items_<feed>" ADD COLUMN IF NOT EXISTS shard integer NOT NULL DEFAULT 0

-- name: trigger_state
SELECT COALESCE((SELECT CASE WHEN g.tgfoid = to_regprocedure(:function) AND g.tgtype = :fires::smallint
      THEN g.tgenabled::text ELSE 'foreign' END
  FROM pg_trigger g WHERE g.tgrelid = to_regclass(:table) AND g.tgname = :trigger::text), 'missing')

-- name: truncate_function
CREATE OR REPLACE FUNCTION "rowfeed_<feed>_truncate"() RETURNS trigger LANGUAGE plpgsql :rights AS $rowfeed$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'TRUNCATE of a table with a rowfeed feed needs READ COMMITTED'
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin the transaction in READ COMMITTED, or use DELETE.';
  END IF;
  EXECUTE format(:insert, TG_TABLE_SCHEMA, TG_TABLE_NAME);
  RETURN NULL;
END
$rowfeed$

-- name: truncate_trigger
CREATE OR REPLACE TRIGGER "rowfeed_<feed>_truncate" BEFORE TRUNCATE ON :table
FOR EACH STATEMENT EXECUTE FUNCTION "rowfeed_<feed>_truncate"()

