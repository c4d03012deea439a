-- A feed's own objects: its tables, and the triggers that record what was written.
--
-- Triggers append keys to the table of changes and do nothing else, whatever columns an UPDATE names. So they also
-- record changes of columns that were added later, and of values that compare as equal (collations, numeric scale,
-- json). They run with the rights of the login that made them: a writer needs no right on rowfeed's tables.

-- name: changes
-- changes: which keys were written; writers append, publishers delete what they have published
--
-- The identity's sequence caches one value, so seqs follow the order of the INSERTs.
CREATE TABLE IF NOT EXISTS {{changes}} (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  {{declared_key}},
  kind smallint NOT NULL DEFAULT 0,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.1)

-- name: positions
-- positions: the position of each key in the feed; only publishers write it
CREATE TABLE IF NOT EXISTS {{positions}} (
  {{declared_key}},
  feed_sync_id bigint NOT NULL,
  shard integer NOT NULL,
  bucket integer NOT NULL,
  deleted smallint NOT NULL,
  hidden smallint NOT NULL,
  published_at bigint NOT NULL,
  PRIMARY KEY ({{key}})
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)

-- name: position_index
-- pages are read in this order; no position is given twice
CREATE UNIQUE INDEX IF NOT EXISTS {{object "position"}} ON {{positions}} (feed_sync_id)

-- name: deleted_index
-- old tombstones are found here
CREATE INDEX IF NOT EXISTS {{object "deleted"}} ON {{positions}} (feed_sync_id) WHERE deleted = 1

-- name: bucket_index
-- pages of a part of the shards are read in this order
--
-- It contains the shard, so that an entry of another shard in the same bucket is excluded by the index alone. Making it
-- keeps publishers out, but not readers. CONCURRENTLY cannot run in a transaction, and leaves an invalid index behind
-- if it fails.
CREATE INDEX IF NOT EXISTS {{object "bucket"}} ON {{positions}} (bucket, feed_sync_id, shard)

-- name: drop_bucket_index
-- pages of a part of the shards no longer use it
DROP INDEX IF EXISTS {{routine "bucket"}}

-- name: has_bucket_index
SELECT to_regclass({{literal (routine "bucket")}}) IS NOT NULL

-- name: outbox
-- outbox: keys that wait for a place; writers append
--
-- The identity's sequence caches one value, so records are numbered in the order of the INSERTs.
CREATE TABLE IF NOT EXISTS {{records}} (
  order_sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  shard bigint NOT NULL DEFAULT 0,
  time_hint bigint,
  appended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  {{declared_key}}
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.1)

-- name: outbox_index
-- a shard's records are read in this order
CREATE INDEX IF NOT EXISTS {{object "outbox"}} ON {{records}} (shard, order_sequence)

-- name: places
-- the place of every key; only readers and publishers write it
CREATE TABLE IF NOT EXISTS {{places}} (
  shard bigint NOT NULL,
  ulid uuid NOT NULL,
  {{declared_key}},
  PRIMARY KEY (shard, ulid),
  UNIQUE ({{key}})
)

-- name: position_column
-- each row's position; NULL while it waits for one
--
-- ADD COLUMN is fast, but keeps all other sessions out until the commit.
ALTER TABLE {{source}} ADD COLUMN IF NOT EXISTS feed_sync_id bigint

-- name: shard_column
-- each row's shard
ALTER TABLE {{source}} ADD COLUMN IF NOT EXISTS shard integer NOT NULL DEFAULT 0

-- name: row_position_index
-- pages are read in this order
--
-- CREATE INDEX reads the whole table, and keeps writers out meanwhile.
CREATE INDEX IF NOT EXISTS {{object "row_position"}} ON {{source}} (feed_sync_id, {{shard_name}})
  WHERE feed_sync_id IS NOT NULL

-- name: row_waiting_index
-- rows that wait are found here, in key order
CREATE INDEX IF NOT EXISTS {{object "row_waiting"}} ON {{source}} ({{ordered}}) WHERE feed_sync_id IS NULL

-- name: drop_unfinished
-- an invalid index that a failed CREATE INDEX CONCURRENTLY left
DROP INDEX IF EXISTS :index

-- name: drop_index
-- index
DROP INDEX IF EXISTS :index

-- name: drop_column
-- column
ALTER TABLE {{source}} DROP COLUMN IF EXISTS :column

-- name: capture_function
-- records the keys that a statement wrote
--
-- All its names and operators are qualified, so that it works without a search_path of its own. A search_path would add
-- a third to the trigger's cost for each row. :rights has one if a key column has a type that is not built into the
-- server. After ALTER TABLE has changed the key's type, and until `feed upgrade`, PostgreSQL casts the keys to the
-- former type; and the CHECK of a domain may call functions of users, which find names by the search_path. A writer
-- could then make them run its own code with the owner's rights.
CREATE OR REPLACE FUNCTION {{routine "capture"}}() RETURNS trigger LANGUAGE plpgsql :rights AS $rowfeed$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' OR TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND (:other_key) THEN
    INSERT INTO {{changes}} ({{key}}) VALUES ({{row "OLD"}});
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE' THEN
    INSERT INTO {{changes}} ({{key}}) VALUES ({{row "NEW"}});
  END IF;
  RETURN NULL;
END
$rowfeed$

-- name: record_function
-- appends the key of a new row, or of a row whose key has changed, to the outbox
--
-- It appends a record when a row is inserted or gets another key. A condition in the trigger's WHEN would keep the
-- table's owner from changing the type of a key column.
CREATE OR REPLACE FUNCTION {{routine "capture"}}() RETURNS trigger LANGUAGE plpgsql :rights AS $rowfeed$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND NOT (:other_key) THEN
    RETURN NULL;
  END IF;
  INSERT INTO {{records}} (shard, {{key}}) VALUES (:shard, {{row "NEW"}});
  RETURN NULL;
END
$rowfeed$

-- name: truncate_function
-- records every key before a TRUNCATE
--
-- It runs before a TRUNCATE of the table or of one partition. A snapshot that is older than the TRUNCATE may not show
-- all rows that it removes.
CREATE OR REPLACE FUNCTION {{routine "truncate"}}() RETURNS trigger LANGUAGE plpgsql :rights AS $rowfeed$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'TRUNCATE of a table with a rowfeed feed needs READ COMMITTED'
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin the transaction in READ COMMITTED, or use DELETE.';
  END IF;
  EXECUTE format(:insert, TG_TABLE_SCHEMA, TG_TABLE_NAME);
  RETURN NULL;
END
$rowfeed$

-- name: fence_function
-- refuses positions that the publisher does not give
CREATE OR REPLACE FUNCTION {{routine "fence"}}() RETURNS trigger LANGUAGE plpgsql AS $rowfeed$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = {{literal .FenceText}};
END
$rowfeed$

-- name: fence_inserts
-- refuse a row inserted with a position that the publisher does not give
--
-- After the row: a trigger before it may have set the position. The condition is part of the trigger, so that a writer
-- that sets the position to NULL pays for no call. A transaction's setting ends with it, and with a savepoint.
CREATE OR REPLACE TRIGGER {{object "fence_insert"}} AFTER INSERT ON {{source}} FOR EACH ROW
WHEN (NEW.feed_sync_id IS NOT NULL AND {{template "not_publishing" .}})
EXECUTE FUNCTION {{routine "fence"}}()

-- name: fence_updates
-- refuse a position that the publisher does not give
CREATE OR REPLACE TRIGGER {{object "fence_update"}} AFTER UPDATE ON {{source}} FOR EACH ROW
WHEN (NEW.feed_sync_id IS NOT NULL AND NEW.feed_sync_id IS DISTINCT FROM OLD.feed_sync_id
  AND {{template "not_publishing" .}})
EXECUTE FUNCTION {{routine "fence"}}()

-- name: not_publishing
pg_catalog.current_setting('rowfeed.publisher', true) IS DISTINCT FROM {{literal .Name}}

-- name: drop_fence
-- the fence
DROP FUNCTION IF EXISTS {{routine "fence"}}() CASCADE

-- name: fence_body
SELECT COALESCE((SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure(:function)), '')

-- name: owner_rights
-- A function runs with its owner's rights. So writers need no right on rowfeed's tables.
SECURITY DEFINER

-- name: owner_rights_and_path
-- The search_path is fixed, so that writers cannot make the function use their own objects. With row_security off,
-- PostgreSQL fails if a policy would hide rows.
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET row_security = off

-- name: record_all
-- What the TRUNCATE trigger runs. format() interprets % in it.
INSERT INTO {{changes}} ({{key}}) SELECT {{row}}

-- name: other_key
-- An UPDATE has changed the key, whose columns are never NULL. If equal values of a column can have different text,
-- bytes are compared: the text of a float depends on extra_float_digits, and the operator of the type may be in any
-- schema. PostgreSQL would compare two row constructors column by column; the cast makes them records.
{{range $i, $c := .Key}}{{if $i}} OR {{end}}{{if $c.Exact -}}
OLD.{{quote $c.Name}} OPERATOR(pg_catalog.<>) NEW.{{quote $c.Name}}{{else -}}
ROW(OLD.{{quote $c.Name}})::pg_catalog.record OPERATOR(pg_catalog.*<>) ROW(NEW.{{quote $c.Name}}){{end}}{{end}}

-- name: functions
{{routine "capture"}}(){{if not .Outbox}}, {{routine "truncate"}}(){{end}}

-- name: revoke_functions
-- only the functions' owner makes triggers with them
REVOKE ALL ON FUNCTION {{template "functions" .}} FROM PUBLIC

-- name: grant_functions
-- and the table's owner, which makes partitions
DO $rowfeed$BEGIN EXECUTE format('GRANT EXECUTE ON FUNCTION %s{{if not .Outbox}}, %s{{end}} TO %I',
  {{literal (print (routine "capture") "()")}},{{if not .Outbox}} {{literal (print (routine "truncate") "()")}},{{end}}
  (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = {{literal source}}::regclass)); END$rowfeed$

-- name: capture_trigger
-- row level: statement triggers of a partitioned table miss writes to a partition, and logical replication fires none
--
-- Rows of an outbox feed are only appended, and a row with another key counts as another row.
CREATE OR REPLACE TRIGGER {{object "capture"}} AFTER INSERT OR UPDATE{{if not .Outbox}} OR DELETE{{end}} ON {{source}}
FOR EACH ROW EXECUTE FUNCTION {{routine "capture"}}()

-- name: truncate_trigger
-- TRUNCATE fires no row trigger
--
-- PostgreSQL copies the row trigger to a new partition, with its ENABLE ALWAYS, but not this one.
CREATE OR REPLACE TRIGGER {{object "truncate"}} BEFORE TRUNCATE ON :table
FOR EACH STATEMENT EXECUTE FUNCTION {{routine "truncate"}}()

-- name: enable_always
-- fire also for rows that logical replication applies
ALTER TABLE :table ENABLE ALWAYS TRIGGER {{object "capture"}}
{{- if not .Outbox}}, ENABLE ALWAYS TRIGGER {{object "truncate"}}{{end}}

-- name: drop_trigger
-- its trigger
DROP FUNCTION IF EXISTS {{routine "capture"}}() CASCADE

-- name: drop_triggers
-- triggers
--
-- On whatever table they are.
DROP FUNCTION IF EXISTS {{routine "capture"}}() CASCADE

-- name: drop_truncate
-- triggers for TRUNCATE
DROP FUNCTION IF EXISTS {{routine "truncate"}}() CASCADE

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

-- name: declare_key
-- declare the key as the table does
ALTER TABLE :table ALTER COLUMN :column TYPE :type

-- name: delete_row
DELETE FROM {{source}} WHERE :key

-- name: delete_row_and_record
-- It is for feeds without a trigger that records the delete.
WITH gone AS (DELETE FROM {{source}} WHERE :key RETURNING {{row}})
INSERT INTO {{changes}} ({{key}}) SELECT {{row}} FROM gone

-- name: new_partitions
-- A new partition lacks the TRUNCATE trigger.
SELECT n.nspname::text, c.relname::text,
  quote_ident(pg_get_userbyid(c.relowner)), quote_ident(current_user),
  quote_ident(pg_get_userbyid(f.proowner)), pg_has_role(c.relowner, 'USAGE'), has_function_privilege(f.oid, 'EXECUTE'),
  has_table_privilege(f.proowner, c.oid, 'SELECT')
FROM pg_partition_tree(to_regclass(:source)) p JOIN pg_class c ON c.oid = p.relid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_proc f ON f.oid = to_regprocedure(:function)
WHERE p.level > 0 AND NOT EXISTS (SELECT 1 FROM pg_trigger g WHERE g.tgrelid = p.relid AND g.tgname = :trigger::text)
ORDER BY 1, 2

-- name: exists
SELECT to_regclass(:table) IS NOT NULL

-- name: owner_may_not_use
-- The owner of a function (p) may not use the schema of one of two tables.
EXISTS (SELECT 1 FROM pg_class c WHERE c.oid IN (to_regclass(:written::text), to_regclass(:source::text))
  AND NOT has_schema_privilege(p.proowner, c.relnamespace, 'USAGE'))

-- name: function_state
-- A trigger function is missing, runs with other rights, or its owner lacks some. The second column is its body.
SELECT COALESCE((SELECT CASE WHEN NOT p.prosecdef
      OR :own_path::boolean AND NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) c WHERE c LIKE 'search_path=%')
    THEN 'changed'
    WHEN {{template "owner_may_not_use"}}
      OR NOT has_table_privilege(p.proowner, :written::text, 'INSERT')
      OR NOT has_table_privilege(p.proowner, :source::text, 'SELECT') THEN 'powerless' ELSE 'ok' END
  FROM pg_proc p WHERE p.oid = to_regprocedure(:function)), 'missing'),
  COALESCE((SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure(:function)), '')

-- name: trigger_state
-- tgenabled is O for a trigger that fires only in ordinary sessions, and A for one that also fires in replication.
-- tgtype: row 1, before 2, INSERT 4, DELETE 8, UPDATE 16, TRUNCATE 32.
SELECT COALESCE((SELECT CASE WHEN g.tgfoid = to_regprocedure(:function) AND g.tgtype = :fires::smallint
      THEN g.tgenabled::text ELSE 'foreign' END
  FROM pg_trigger g WHERE g.tgrelid = to_regclass(:table) AND g.tgname = :trigger::text), 'missing')

-- name: moved
-- It finds the table by the feed's trigger, which stays on the table if a schema is renamed. For a feed without
-- triggers it searches rowfeed's own schema, if the former schema does not exist any more.
SELECT n.nspname::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = :table::text AND c.relkind IN ('r', 'p') AND n.nspname <> :former::text
  AND CASE WHEN :triggers::boolean THEN EXISTS (SELECT 1 FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
      JOIN pg_namespace o ON o.oid = p.pronamespace
    WHERE g.tgrelid = c.oid AND g.tgparentid = 0 AND p.proname = :function::text AND o.nspname = :own::text)
  ELSE n.nspname = :own::text AND NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = :former::text) END
