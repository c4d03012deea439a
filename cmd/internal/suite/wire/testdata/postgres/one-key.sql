-- add the feed
SELECT to_regclass('"public"."rowfeed_schema_version"') IS NOT NULL
SELECT max(version) FROM "public"."rowfeed_schema_version"
BEGIN -- isolation: Read Committed
SET LOCAL lock_timeout = '1s'; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')
SELECT pg_advisory_xact_lock(hashtextextended($1, 0))
SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text, row_security_active(c.oid), EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhparent = c.oid), COALESCE((SELECT string_agg(a.attname::text || ' ' || a.atttypid::text || ' ' || a.atttypmod::text, ',' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)
WITH RECURSIVE chain AS ( SELECT a.attnum, a.atttypid AS oid FROM pg_attribute a WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped UNION ALL SELECT c.attnum, t.typbasetype FROM chain c JOIN pg_type t ON t.oid = c.oid WHERE t.typtype = 'd' ) SELECT a.attname::text, CASE WHEN e.typnamespace <> 'pg_catalog'::regnamespace AND pg_type_is_visible(e.oid) THEN quote_ident(en.nspname) || '.' ELSE '' END || format_type(a.atttypid, a.atttypmod), e.typnamespace = 'pg_catalog'::regnamespace, a.attnotnull, b.typname::text, b.typnamespace = 'pg_catalog'::regnamespace, b.typcategory::text, t.typtype = 'd' AND b.typtype IN ('e', 'r', 'm'), COALESCE((SELECT pn.nspname::text FROM pg_opclass k JOIN pg_am m ON m.oid = k.opcmethod AND m.amname = 'btree' JOIN pg_amop o ON o.amopfamily = k.opcfamily AND o.amopstrategy = 3 AND o.amoplefttype = k.opcintype AND o.amoprighttype = k.opcintype JOIN pg_operator p ON p.oid = o.amopopr JOIN pg_namespace pn ON pn.oid = p.oprnamespace WHERE k.opcintype = b.oid AND k.opcdefault AND pn.nspname <> 'pg_catalog'), ''), CASE WHEN a.attcollation <> t.typcollation THEN quote_ident(cn.nspname) || '.' || quote_ident(co.collname) ELSE '' END, COALESCE(co.collisdeterministic, true), a.attgenerated::text <> '' OR a.attidentity::text = 'a', a.attgenerated::text = 'v' FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_type e ON e.oid = CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END JOIN pg_namespace en ON en.oid = e.typnamespace JOIN chain c ON c.attnum = a.attnum JOIN pg_type b ON b.oid = c.oid AND b.typtype <> 'd' LEFT JOIN pg_collation co ON co.oid = a.attcollation LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace WHERE a.attrelid = $2::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = $1::bigint::oid AND i.indisvalid = $2 ORDER BY 1
SELECT DISTINCT g.tgname::text FROM pg_trigger g WHERE g.tgrelid IN (SELECT $1::bigint::oid UNION SELECT relid::oid FROM pg_partition_tree($2::bigint::oid::regclass)) AND NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgtype::int & 16 <> 0 AND (g.tgattr::text = '' OR EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = g.tgrelid AND a.attname = 'feed_sync_id' AND a.attnum = ANY (g.tgattr::int2[]))) ORDER BY 1
SELECT c.relname::text, c.oid::text, i.indisprimary, i.indpred IS NOT NULL, CASE WHEN k.attnum = 0 OR (x.coll <> 0 AND x.coll <> a.attcollation) OR NOT oc.opcdefault AND oc.opcname NOT IN ('text_pattern_ops', 'varchar_pattern_ops', 'bpchar_pattern_ops') THEN '' ELSE a.attname::text END FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, n) JOIN LATERAL unnest(i.indcollation::oid[]) WITH ORDINALITY x(coll, n) ON x.n = k.n JOIN LATERAL unnest(i.indclass::oid[]) WITH ORDINALITY o(class, n) ON o.n = k.n JOIN pg_opclass oc ON oc.oid = o.class LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE i.indrelid = $1::bigint::oid AND i.indisunique AND i.indisvalid AND k.n <= i.indnkeyatts ORDER BY NOT i.indisprimary, c.relname, k.n
SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column, failure, failing_since, attempts, next_try FROM "public"."rowfeed_feeds" ORDER BY name
SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column, failure, failing_since, attempts, next_try FROM "public"."rowfeed_feeds" WHERE name = $1
SELECT CASE WHEN NOT pg_is_in_recovery() THEN 'system ' || (SELECT system_identifier FROM pg_control_system()) || ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) || ', table ' || '"public"."rowfeed_sequences"'::regclass::oid END
INSERT INTO "public"."rowfeed_feeds" (name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, $14, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
SELECT count(*) FROM "public"."rowfeed_sequences" WHERE name = $1
INSERT INTO "public"."rowfeed_sequences" (name, value, version, updated_at) VALUES ($1, $2, 0, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
CREATE TABLE IF NOT EXISTS "public"."rowfeed_changes_kv" ( seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "id" bigint NOT NULL, kind smallint NOT NULL DEFAULT 0, changed_at timestamptz NOT NULL DEFAULT clock_timestamp() ) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.1)
CREATE TABLE IF NOT EXISTS "public"."rowfeed_positions_kv" ( "id" bigint NOT NULL, feed_sync_id bigint NOT NULL, shard integer NOT NULL, bucket integer NOT NULL, deleted smallint NOT NULL, hidden smallint NOT NULL, published_at bigint NOT NULL, PRIMARY KEY ("id") ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)
CREATE UNIQUE INDEX IF NOT EXISTS "rowfeed_kv_position" ON "public"."rowfeed_positions_kv" (feed_sync_id)
CREATE INDEX IF NOT EXISTS "rowfeed_kv_deleted" ON "public"."rowfeed_positions_kv" (feed_sync_id) WHERE deleted = 1
CREATE OR REPLACE FUNCTION "public"."rowfeed_kv_capture"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $rowfeed$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' OR TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND (OLD."id" OPERATOR(pg_catalog.<>) NEW."id") THEN
    INSERT INTO "public"."rowfeed_changes_kv" ("id") VALUES (OLD."id");
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE' THEN
    INSERT INTO "public"."rowfeed_changes_kv" ("id") VALUES (NEW."id");
  END IF;
  RETURN NULL;
END
$rowfeed$
CREATE OR REPLACE FUNCTION "public"."rowfeed_kv_truncate"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET row_security = off AS $rowfeed$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'TRUNCATE of a table with a rowfeed feed needs READ COMMITTED'
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin the transaction in READ COMMITTED, or use DELETE.';
  END IF;
  EXECUTE format('INSERT INTO "public"."rowfeed_changes_kv" ("id") SELECT "id" FROM %I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  RETURN NULL;
END
$rowfeed$
REVOKE ALL ON FUNCTION "public"."rowfeed_kv_capture"(), "public"."rowfeed_kv_truncate"() FROM PUBLIC
DO $rowfeed$BEGIN EXECUTE format('GRANT EXECUTE ON FUNCTION %s, %s TO %I',
  '"public"."rowfeed_kv_capture"()', '"public"."rowfeed_kv_truncate"()',
  (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '"public"."kv"'::regclass)); END$rowfeed$
CREATE OR REPLACE TRIGGER "rowfeed_kv_capture" AFTER INSERT OR UPDATE OR DELETE ON "public"."kv" FOR EACH ROW EXECUTE FUNCTION "public"."rowfeed_kv_capture"()
CREATE OR REPLACE TRIGGER "rowfeed_kv_truncate" BEFORE TRUNCATE ON "public"."kv" FOR EACH STATEMENT EXECUTE FUNCTION "public"."rowfeed_kv_truncate"()
ALTER TABLE "public"."kv" ENABLE ALWAYS TRIGGER "rowfeed_kv_capture", ENABLE ALWAYS TRIGGER "rowfeed_kv_truncate"
UPDATE "public"."rowfeed_feeds" SET state = $1, fill_after = NULL WHERE name = $2
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local'); SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true), set_config('IntervalStyle', 'iso_8601', true), set_config('extra_float_digits', '1', true), set_config('bytea_output', 'hex', true), set_config('row_security', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true), set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', '30s', true), set_config('statement_timeout', '120s', true)
SELECT t."id" FROM "public"."kv" t WHERE 1 = 1 ORDER BY t."id" LIMIT 1 OFFSET $1
INSERT INTO "public"."rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT t."id" AS k0 FROM "public"."kv" t WHERE 1 = 1 ORDER BY t."id" LIMIT $1) x
UPDATE "public"."rowfeed_feeds" SET state = $1, fill_after = NULL WHERE name = $2 AND generation = $3 AND data_shards = $4 AND state = $5 AND fill_after IS NULL

-- add it again, list the feeds, describe it
BEGIN -- isolation: Read Committed, read only
SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601'; SET LOCAL extra_float_digits = '1'; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = 'off'; SET LOCAL enable_hashjoin = 'off'; SET LOCAL enable_mergejoin = 'off'; SET LOCAL enable_seqscan = 'off'; SET LOCAL enable_bitmapscan = 'off'; SET LOCAL jit = 'off'; SET LOCAL lock_timeout = '2s'
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), COALESCE((SELECT string_agg(a.attname::text || ' ' || a.atttypid::text || ' ' || a.atttypmod::text, ',' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = '"public"."kv"'::regclass AND a.attnum > 0 AND NOT a.attisdropped), ''), p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at, CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, p."id", t."id", t."k"::text, t."v" FROM "public"."rowfeed_feeds" f JOIN "public"."rowfeed_sequences" s ON s.name = f.name LEFT JOIN (SELECT "id", feed_sync_id, shard, deleted, hidden, published_at FROM "public"."rowfeed_positions_kv" WHERE feed_sync_id > $1 AND feed_sync_id <= (SELECT value FROM "public"."rowfeed_sequences" WHERE name = $2) AND NOT (feed_sync_id <= $3 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT $4) p ON 1 = 1 LEFT JOIN LATERAL (SELECT * FROM "public"."kv" t WHERE p."id" = t."id" OFFSET 0) t ON true WHERE f.name = $5 LIMIT $6

-- write

-- publish first
SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true); SELECT seq FROM (SELECT seq FROM "public"."rowfeed_changes_kv" ORDER BY seq LIMIT 1) c0
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local'); SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601'; SET LOCAL extra_float_digits = '1'; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = 'off'; SET LOCAL enable_hashjoin = 'off'; SET LOCAL enable_mergejoin = 'off'; SET LOCAL enable_seqscan = 'off'; SET LOCAL enable_bitmapscan = 'off'; SET LOCAL jit = 'off'; SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '120s'
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')
SELECT value, version, COALESCE(term, 0), updated_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'system ' || (SELECT system_identifier FROM pg_control_system()) || ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) || ', table ' || '"public"."rowfeed_sequences"'::regclass::oid FROM "public"."rowfeed_sequences" WHERE name = $1 FOR UPDATE
UPDATE "public"."rowfeed_terms" SET upto = $1 WHERE feed = $2 AND upto > $3
WITH batch AS MATERIALIZED (SELECT seq, kind FROM "public"."rowfeed_changes_kv" ORDER BY seq LIMIT 1000), asked AS MATERIALIZED (SELECT min(kind) AS kind FROM batch HAVING min(kind) = max(kind)), gone AS (DELETE FROM "public"."rowfeed_changes_kv" WHERE seq = ANY (ARRAY(SELECT seq FROM batch WHERE EXISTS (SELECT 1 FROM asked))) RETURNING seq, "id"), keys AS (SELECT "id", max(seq) AS seq FROM gone GROUP BY "id"), placed AS (INSERT INTO "public"."rowfeed_positions_kv" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at) SELECT c."id", CAST($1 AS bigint) + row_number() OVER (ORDER BY c.seq), 0, 0, CASE WHEN t."id" IS NULL THEN 1 ELSE 0 END, CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE 0 END, CAST($2 AS bigint) FROM keys c LEFT JOIN LATERAL (SELECT t."id" FROM "public"."kv" t WHERE c."id" = t."id" OFFSET 0) t ON true WHERE t."id" IS NOT NULL OR EXISTS (SELECT 1 FROM "public"."rowfeed_positions_kv" old WHERE old."id" = c."id" OFFSET 0) ON CONFLICT ("id") DO UPDATE SET feed_sync_id = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.feed_sync_id ELSE excluded.feed_sync_id END, published_at = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.published_at ELSE excluded.published_at END, deleted = excluded.deleted, hidden = CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END), advanced AS (UPDATE "public"."rowfeed_sequences" SET value = CAST($3 AS bigint) + (SELECT count(*) FROM keys), term = $4, version = version + 1, updated_at = $5 WHERE name = $6 AND version = $7 AND EXISTS (SELECT 1 FROM "public"."rowfeed_feeds" WHERE name = $8 AND generation = $9 AND data_shards = 1) AND EXISTS (SELECT 1 FROM asked) RETURNING 1) SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM asked) > 0, (SELECT count(*) FROM gone), (SELECT count(*) FROM keys), (SELECT count(*) FROM advanced) > 0, array_to_string(ARRAY(SELECT seq FROM gone ORDER BY seq), ',')
SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true); SELECT seq FROM (SELECT seq FROM "public"."rowfeed_changes_kv" WHERE seq > 8 ORDER BY seq LIMIT 1) c0
UPDATE "public"."rowfeed_feeds" SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL WHERE name = $1 AND failure IS NOT NULL

-- publish without changes

-- publish again
WITH batch AS MATERIALIZED (SELECT seq, kind FROM "public"."rowfeed_changes_kv" WHERE seq > $1 ORDER BY seq LIMIT 1000), asked AS MATERIALIZED (SELECT min(kind) AS kind FROM batch HAVING min(kind) = max(kind)), gone AS (DELETE FROM "public"."rowfeed_changes_kv" WHERE seq = ANY (ARRAY(SELECT seq FROM batch WHERE EXISTS (SELECT 1 FROM asked))) RETURNING seq, "id"), keys AS (SELECT "id", max(seq) AS seq FROM gone GROUP BY "id"), placed AS (INSERT INTO "public"."rowfeed_positions_kv" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at) SELECT c."id", CAST($2 AS bigint) + row_number() OVER (ORDER BY c.seq), 0, 0, CASE WHEN t."id" IS NULL THEN 1 ELSE 0 END, CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE 0 END, CAST($3 AS bigint) FROM keys c LEFT JOIN LATERAL (SELECT t."id" FROM "public"."kv" t WHERE c."id" = t."id" OFFSET 0) t ON true WHERE t."id" IS NOT NULL OR EXISTS (SELECT 1 FROM "public"."rowfeed_positions_kv" old WHERE old."id" = c."id" OFFSET 0) ON CONFLICT ("id") DO UPDATE SET feed_sync_id = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.feed_sync_id ELSE excluded.feed_sync_id END, published_at = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.published_at ELSE excluded.published_at END, deleted = excluded.deleted, hidden = CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END), advanced AS (UPDATE "public"."rowfeed_sequences" SET value = CAST($4 AS bigint) + (SELECT count(*) FROM keys), term = $5, version = version + 1, updated_at = $6 WHERE name = $7 AND version = $8 AND EXISTS (SELECT 1 FROM "public"."rowfeed_feeds" WHERE name = $9 AND generation = $10 AND data_shards = 1) AND EXISTS (SELECT 1 FROM asked) RETURNING 1) SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM asked) > 0, (SELECT count(*) FROM gone), (SELECT count(*) FROM keys), (SELECT count(*) FROM advanced) > 0, array_to_string(ARRAY(SELECT seq FROM gone ORDER BY seq), ',')
SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true); SELECT seq FROM (SELECT seq FROM "public"."rowfeed_changes_kv" WHERE seq > 18 ORDER BY seq LIMIT 1) c0

-- run a publisher
SELECT name, owner, epoch, acquired_at, renewals, expires_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "public"."rowfeed_leases" WHERE name = $1
INSERT INTO "public"."rowfeed_leases" (name, owner, epoch, expires_at, acquired_at, renewals) VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $4, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0)
SELECT to_regclass($1) IS NOT NULL
SELECT COALESCE(min(CASE WHEN a.atttypid <> 'int8'::regtype THEN format_type(a.atttypid, a.atttypmod) END), ''), COALESCE(min(CASE WHEN a.atthasdef OR a.attidentity <> '' THEN COALESCE(pg_get_expr(e.adbin, e.adrelid), 'identity') END), ''), COALESCE(min((SELECT min(i.indexrelid::regclass::text) FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhrelid = i.indexrelid) AND a.attnum = ANY ((i.indkey::int2[])[0 : i.indnkeyatts - 1]))), '') FROM pg_attribute a LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum WHERE a.attrelid IN (SELECT $1::bigint::oid UNION SELECT relid::oid FROM pg_partition_tree($2::bigint::oid::regclass)) AND a.attname = 'feed_sync_id' AND NOT a.attisdropped
SELECT COALESCE(min('ALTER TABLE ' || k.conrelid::regclass || ' DROP CONSTRAINT ' || quote_ident(k.conname)), 'DROP INDEX ' || min(i.indexrelid::regclass::text)) || '; ' || min(replace(pg_get_indexdef(i.indexrelid), quote_ident(c.relname) || ' ON ONLY ', quote_ident(c.relname) || ' ON ')) || ' WHERE feed_sync_id IS NOT NULL' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('u', 'p') WHERE i.indexrelid = CAST($1 AS regclass)
SELECT COALESCE((SELECT CASE WHEN NOT p.prosecdef OR $1::boolean AND NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) c WHERE c LIKE 'search_path=%') THEN 'changed' WHEN EXISTS (SELECT 1 FROM pg_class c WHERE c.oid IN (to_regclass($2::text), to_regclass($3::text)) AND NOT has_schema_privilege(p.proowner, c.relnamespace, 'USAGE')) OR NOT has_table_privilege(p.proowner, $4::text, 'INSERT') OR NOT has_table_privilege(p.proowner, $5::text, 'SELECT') THEN 'powerless' ELSE 'ok' END FROM pg_proc p WHERE p.oid = to_regprocedure($6)), 'missing'), COALESCE((SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure($7)), '')
SELECT COALESCE((SELECT CASE WHEN g.tgfoid = to_regprocedure($1) AND g.tgtype = $2::smallint THEN g.tgenabled::text ELSE 'foreign' END FROM pg_trigger g WHERE g.tgrelid = to_regclass($3) AND g.tgname = $4::text), 'missing')
SELECT feed_sync_id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - published_at FROM "public"."rowfeed_positions_kv" WHERE deleted = 1 AND hidden = 0 ORDER BY feed_sync_id LIMIT $1
SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE CAST(pg_current_snapshot() AS text) END
UPDATE "public"."rowfeed_leases" SET owner = '', expires_at = NULL, renewals = renewals + NUMBER WHERE name = $1 AND owner = $2 AND epoch = $3

-- read pages of the part: all
SELECT feed_sync_id, published_at FROM "public"."rowfeed_positions_kv" WHERE feed_sync_id > $1 ORDER BY feed_sync_id LIMIT 1

-- wait for an entry of the part: all
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0) FROM "public"."rowfeed_sequences" s JOIN "public"."rowfeed_feeds" f ON f.name = s.name

-- read a consistent page of the part: all
SELECT seq FROM "public"."rowfeed_changes_kv" ORDER BY seq DESC LIMIT 1
SELECT seq FROM "public"."rowfeed_changes_kv" ORDER BY seq ASC LIMIT 1

-- consume, set an entry aside, list it and try it again
DELETE FROM "public"."rowfeed_cursors" WHERE consumer = $1 AND feed = $2 AND shard >= $3
DELETE FROM "public"."rowfeed_dead_letters" WHERE consumer = $1 AND feed = $2 AND shard = $3 AND key_digest = $4 AND generation = $5 AND position = $6 AND state = $7
INSERT INTO "public"."rowfeed_cursors" (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) ON CONFLICT (consumer, feed, shard) DO NOTHING
INSERT INTO "public"."rowfeed_dead_letters" (consumer, feed, shard, key_digest, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, data_shard) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $12) ON CONFLICT (consumer, feed, shard, key_digest) DO NOTHING
RELEASE SAVEPOINT rowfeed
SAVEPOINT rowfeed
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, key_digest FROM "public"."rowfeed_dead_letters" WHERE 1 = 1 AND consumer = $1 AND feed = $2 AND key_digest IN ($3) ORDER BY consumer, feed, shard, first_at, key_digest LIMIT $4
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, key_digest FROM "public"."rowfeed_dead_letters" WHERE 1 = 1 AND consumer = $1 AND feed = $2 ORDER BY consumer, feed, shard, first_at, key_digest LIMIT $3
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, key_digest FROM "public"."rowfeed_dead_letters" WHERE 1 = 1 AND key_digest IN ($1) AND consumer > $2 ORDER BY consumer, feed, shard, first_at, key_digest LIMIT $3
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "public"."rowfeed_cursors" WHERE 1 = 1 AND consumer = $1 AND feed = $2 ORDER BY consumer, feed, shard
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "public"."rowfeed_cursors" WHERE consumer = $1 AND feed = $2 AND shard = $3
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "public"."rowfeed_cursors" WHERE consumer = $1 AND feed = $2 ORDER BY shard
SELECT consumer, feed, shard_count, paused FROM "public"."rowfeed_consumers" WHERE 1 = 1 AND consumer = $1 AND feed = $2
SELECT key_digest, key_json, generation, position, op, data_shard FROM "public"."rowfeed_dead_letters" WHERE consumer = $1 AND feed = $2 AND shard = $3 AND state = $4 ORDER BY first_at, key_digest LIMIT 1
SELECT key_digest, state FROM "public"."rowfeed_dead_letters" WHERE consumer = $1 AND feed = $2 AND shard = $3
SELECT name, owner, epoch, acquired_at, renewals, expires_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "public"."rowfeed_leases" WHERE name >= $1 AND name < $2 OR name >= $3 AND name < $4
SELECT shard_count, paused FROM "public"."rowfeed_consumers" WHERE consumer = $1 AND feed = $2
SELECT value, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "public"."rowfeed_sequences" WHERE name = $1
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')
UPDATE "public"."rowfeed_consumers" SET version = version + NUMBER WHERE 1 = 1 AND consumer = $1 AND feed = $2
UPDATE "public"."rowfeed_cursors" SET failure = $1, failing_since = COALESCE(failing_since, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), attempts = $2, next_try = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $3 WHERE consumer = $4 AND feed = $5 AND shard = $6 AND shard_count = $7 AND version = $8
UPDATE "public"."rowfeed_cursors" SET shard_count = $1, value = $2, generation = $3, epoch = $4, paused = $5, aside = $6, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE consumer = $7 AND feed = $8 AND shard = $9
UPDATE "public"."rowfeed_cursors" SET value = $1, generation = $2, aside = $3, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE consumer = $4 AND feed = $5 AND shard = $6 AND shard_count = $7 AND version = $8 AND value = $9 AND generation = $10 AND epoch = $11 AND aside = $12 AND paused = 0
UPDATE "public"."rowfeed_cursors" SET version = version + NUMBER WHERE 1 = 1 AND consumer = $1 AND feed = $2 AND shard = $3
UPDATE "public"."rowfeed_dead_letters" SET op = $1 WHERE consumer = $2 AND feed = $3 AND shard = $4 AND generation < 0
UPDATE "public"."rowfeed_dead_letters" SET state = $1, last_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE 1 = 1 AND consumer = $2 AND feed = $3 AND shard = $4 AND key_digest IN ($5) AND first_at >= $6 AND first_at <= $7

-- drop dead letters
SELECT count(*) FROM "public"."rowfeed_cursors" WHERE 1 = 1 AND consumer = $1 AND feed = $2

-- pause, resume, seek and reset the consumer
UPDATE "public"."rowfeed_consumers" SET paused = $1, version = version + NUMBER WHERE 1 = 1 AND consumer = $2 AND feed = $3
UPDATE "public"."rowfeed_cursors" SET paused = $1, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE 1 = 1 AND consumer = $2 AND feed = $3
SELECT shard FROM "public"."rowfeed_cursors" WHERE 1 = 1 AND consumer = $1 AND feed = $2 AND paused <> 0 ORDER BY shard
UPDATE "public"."rowfeed_cursors" SET value = $1, generation = $2, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE 1 = 1 AND consumer = $3 AND feed = $4 AND shard = $5
UPDATE "public"."rowfeed_dead_letters" SET generation = -ABS(generation), op = $1 WHERE 1 = 1 AND consumer = $2 AND feed = $3
UPDATE "public"."rowfeed_cursors" SET version = version + NUMBER WHERE 1 = 1 AND consumer = $1 AND feed = $2 AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM "public"."rowfeed_consumers" k WHERE k.consumer = "public"."rowfeed_cursors".consumer AND k.feed = "public"."rowfeed_cursors".feed)
SELECT feed, MAX(epoch) FROM "public"."rowfeed_cursors" WHERE 1 = 1 AND consumer = $1 AND feed = $2 AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM "public"."rowfeed_consumers" k WHERE k.consumer = "public"."rowfeed_cursors".consumer AND k.feed = "public"."rowfeed_cursors".feed) GROUP BY feed ORDER BY feed
UPDATE "public"."rowfeed_cursors" SET value = $1, generation = $2, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE 1 = 1 AND consumer = $3 AND feed = $4

-- deliver outside of transactions, under an epoch
SELECT name, owner, epoch, acquired_at, renewals, expires_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "public"."rowfeed_leases" WHERE name >= $1 AND name < $2 OR name = $3
UPDATE "public"."rowfeed_cursors" SET epoch = $1, version = version + 1, updated_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE consumer = $2 AND feed = $3 AND shard = $4 AND shard_count = $5 AND epoch < $6

-- note an entry as processed, and forget it
SELECT count(*) FROM "public"."rowfeed_processed" WHERE consumer = $1 AND feed = $2 AND generation = $3 AND shard = $4 AND position = $5 AND processed_at >= $6
INSERT INTO "public"."rowfeed_processed" (consumer, feed, generation, shard, position, processed_at) VALUES ($1, $2, $3, $4, $5, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) ON CONFLICT (consumer, feed, generation, shard, position) DO NOTHING
SELECT DISTINCT generation, shard FROM "public"."rowfeed_processed" WHERE consumer = $1 AND feed = $2 AND generation <= $3
SELECT position FROM "public"."rowfeed_processed" WHERE consumer = $1 AND feed = $2 AND generation = $3 AND shard = $4 AND position <= $5 ORDER BY position LIMIT 1 OFFSET 1999
DELETE FROM "public"."rowfeed_processed" WHERE consumer = $1 AND feed = $2 AND generation = $3 AND shard = $4 AND position <= $5

-- drop the consumer
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local'); SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true), set_config('IntervalStyle', 'iso_8601', true), set_config('extra_float_digits', '1', true), set_config('bytea_output', 'hex', true), set_config('row_security', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true), set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', '30s', true), set_config('statement_timeout', '0', true)
DELETE FROM "public"."rowfeed_consumers" WHERE 1 = 1 AND consumer = $1 AND feed = $2
DELETE FROM "public"."rowfeed_dead_letters" WHERE 1 = 1 AND consumer = $1 AND feed = $2
DELETE FROM "public"."rowfeed_processed" WHERE 1 = 1 AND consumer = $1 AND feed = $2
UPDATE "public"."rowfeed_cursors" SET version = version + NUMBER WHERE 1 = 1 AND consumer = $1 AND feed = $2
SELECT consumer, feed, MAX(epoch) FROM "public"."rowfeed_cursors" WHERE 1 = 1 AND consumer = $1 AND feed = $2 GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed
DELETE FROM "public"."rowfeed_cursors" WHERE 1 = 1 AND consumer = $1 AND feed = $2

-- fail once, and handle the entries at the second attempt
DELETE FROM "public"."rowfeed_consumers" WHERE 1 = 1 AND consumer = $1
DELETE FROM "public"."rowfeed_cursors" WHERE 1 = 1 AND consumer = $1
DELETE FROM "public"."rowfeed_dead_letters" WHERE 1 = 1 AND consumer = $1
DELETE FROM "public"."rowfeed_processed" WHERE 1 = 1 AND consumer = $1
SELECT consumer, feed, MAX(epoch) FROM "public"."rowfeed_cursors" WHERE 1 = 1 AND consumer = $1 GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed
UPDATE "public"."rowfeed_consumers" SET version = version + NUMBER WHERE 1 = 1 AND consumer = $1
UPDATE "public"."rowfeed_cursors" SET version = version + NUMBER WHERE 1 = 1 AND consumer = $1

-- relay into a mirror table
CREATE TABLE "rowfeed_sweep_mirror" ("id" bigint NOT NULL, PRIMARY KEY ("id"))
DELETE FROM "rowfeed_sweep_mirror"
INSERT INTO "mirror" ("id", "k", "v") VALUES ($1, $2, $3), ($4, $5, $6) ON CONFLICT ("id") DO UPDATE SET "k" = excluded."k", "v" = excluded."v"
INSERT INTO "mirror" ("id", "k", "v") VALUES ($1, $2, $3), ($4, $5, $6), ($7, $8, $9) ON CONFLICT ("id") DO UPDATE SET "k" = excluded."k", "v" = excluded."v"
INSERT INTO "public"."rowfeed_leases" (name, owner, epoch, expires_at, acquired_at, renewals) VALUES ($1, '', $2, NULL, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0) ON CONFLICT (name) DO NOTHING
INSERT INTO "rowfeed_sweep_mirror" ("id") SELECT "id" FROM "mirror"
SELECT 1 FROM "rowfeed_sweep_mirror" LIMIT 1
SELECT 1 FROM "rowfeed_sweep_mirror" WHERE 1 = 0
UPDATE "public"."rowfeed_leases" SET epoch = $1, acquired_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE name = $2 AND epoch < $3

-- status
SELECT s.value, s.updated_at, COALESCE(s.term, 0), (SELECT max(ended_at) FROM "public"."rowfeed_terms" t WHERE t.feed = s.name) FROM "public"."rowfeed_sequences" s WHERE s.name = $1
SELECT (SELECT count(*) FROM (SELECT 1 FROM "public"."rowfeed_changes_kv" LIMIT 1000000) x), COALESCE((SELECT (extract(epoch FROM clock_timestamp() - changed_at) * 1000000)::bigint FROM "public"."rowfeed_changes_kv" ORDER BY seq LIMIT 1), 0)
SELECT count(*) FROM "public"."rowfeed_positions_kv" p LEFT JOIN "public"."kv" t ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "public"."rowfeed_changes_kv") c ON c."id" = p."id" WHERE p.deleted = 0 AND t."id" IS NULL AND c."id" IS NULL
WITH locks AS ( SELECT l.* FROM pg_locks l WHERE l.locktype = 'relation' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) ), held AS ( SELECT l.pid, l.virtualtransaction, 'wrote to the feed''s table' AS scope FROM locks l WHERE l.granted AND l.mode = 'RowExclusiveLock' AND (l.relation = $1::text::regclass OR l.relation IN (SELECT relid FROM pg_partition_tree($2::text::regclass))) AND NOT EXISTS (SELECT 1 FROM pg_locks p WHERE p.locktype = 'relation' AND p.virtualtransaction = l.virtualtransaction AND p.relation = $3::text::regclass AND p.mode = 'RowExclusiveLock') ), locking AS ( SELECT l.pid, l.granted FROM locks l WHERE l.mode = 'AccessExclusiveLock' AND l.relation = $4::text::regclass ), found AS ( SELECT * FROM held UNION ALL SELECT l.pid, '', 'locks the feed''s table, or waits to lock it' FROM locking l UNION ALL SELECT b.pid, '', 'has used the feed''s table, which another session waits to lock' FROM ( SELECT DISTINCT unnest(pg_blocking_pids(l.pid)) AS pid FROM locking l WHERE NOT l.granted ) b ) SELECT 'pid ' || a.pid, COALESCE(a.usename::text, ''), COALESCE(host(a.client_addr), 'local'), COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint, -1), COALESCE(a.state || ': ', '') || left(a.query, 500), found.scope, a.xact_start FROM found JOIN pg_stat_activity a ON a.pid = found.pid WHERE a.pid <> pg_backend_pid() UNION ALL SELECT 'prepared transaction ' || x.gid, x.owner::text, '', (extract(epoch FROM clock_timestamp() - x.prepared) * 1000000)::bigint, 'waits for COMMIT PREPARED or ROLLBACK PREPARED', held.scope, x.prepared FROM held JOIN pg_locks i ON i.pid IS NULL AND i.virtualtransaction = held.virtualtransaction AND i.locktype = 'transactionid' JOIN pg_prepared_xacts x ON x.transaction = i.transactionid WHERE held.pid IS NULL ORDER BY 7
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "public"."rowfeed_cursors" WHERE 1 = 1 AND feed = $1 ORDER BY consumer, feed, shard
SELECT consumer, feed, shard_count, paused FROM "public"."rowfeed_consumers" WHERE 1 = 1 AND feed = $1
SELECT (SELECT count(*) FROM (SELECT 1 FROM "public"."rowfeed_changes_kv" LIMIT 10) x), COALESCE((SELECT (extract(epoch FROM clock_timestamp() - changed_at) * 1000000)::bigint FROM "public"."rowfeed_changes_kv" ORDER BY seq LIMIT 1), 0)

-- verify

-- republish, unpublish and delete keys
SELECT (SELECT count(*) FROM "public"."kv" x WHERE x."id" = $1) + (SELECT count(*) FROM "public"."rowfeed_positions_kv" x WHERE x."id" = $2)
INSERT INTO "public"."rowfeed_changes_kv" ("id", kind) VALUES ($1, $2)
DELETE FROM "public"."kv" WHERE "id" = $1
SELECT count(*) FROM "public"."kv" t WHERE (v > 0)
SELECT t."id" FROM "public"."kv" t WHERE (v > 0) ORDER BY t."id" LIMIT 1 OFFSET $1
INSERT INTO "public"."rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT t."id" AS k0 FROM "public"."kv" t WHERE (v > 0) AND t."id" <= CAST($1 AS bigint) ORDER BY t."id" LIMIT $2) x
SELECT t."id" FROM "public"."kv" t WHERE (v > 0) AND t."id" > CAST($1 AS bigint) ORDER BY t."id" LIMIT 1 OFFSET $2
INSERT INTO "public"."rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT t."id" AS k0 FROM "public"."kv" t WHERE (v > 0) AND t."id" > CAST($1 AS bigint) AND t."id" <= CAST($2 AS bigint) ORDER BY t."id" LIMIT $3) x
INSERT INTO "public"."rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT t."id" AS k0 FROM "public"."kv" t WHERE (v > 0) AND t."id" > CAST($1 AS bigint) ORDER BY t."id" LIMIT $2) x
SELECT seq, kind, "id" FROM "public"."rowfeed_changes_kv" WHERE seq > $1 ORDER BY seq LIMIT $2
INSERT INTO "public"."rowfeed_positions_kv" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at) SELECT c."id", CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE CAST($1 AS bigint) + j.place END, j.shard::int, 0, CASE WHEN t."id" IS NULL THEN 1 ELSE 0 END, CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END, CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE CAST($2 AS bigint) END FROM unnest(CAST(CAST($3 AS text) AS bigint[]), CAST(CAST($4 AS text) AS bigint[]), CAST(CAST($5 AS text) AS bigint[])) WITH ORDINALITY AS j(seq, shard, kind, place) CROSS JOIN LATERAL (SELECT c."id" FROM "public"."rowfeed_changes_kv" c WHERE c.seq = j.seq OFFSET 0) c LEFT JOIN LATERAL (SELECT t."id" FROM "public"."kv" t WHERE c."id" = t."id" OFFSET 0) t ON true LEFT JOIN LATERAL (SELECT old."id", old.feed_sync_id, old.hidden, old.published_at FROM "public"."rowfeed_positions_kv" old WHERE old."id" = c."id" OFFSET 0) old ON true WHERE t."id" IS NOT NULL OR old."id" IS NOT NULL ORDER BY j.place ON CONFLICT ("id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at, deleted = excluded.deleted, hidden = excluded.hidden
DELETE FROM "public"."rowfeed_changes_kv" WHERE seq BETWEEN $1 AND $2
UPDATE "public"."rowfeed_sequences" SET value = $1, term = $2, version = version + 1, updated_at = $3 WHERE name = $4 AND version = $5 AND EXISTS (SELECT 1 FROM "public"."rowfeed_feeds" WHERE name = $6 AND generation = $7 AND data_shards = $8)
SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true); SELECT seq FROM (SELECT seq FROM "public"."rowfeed_changes_kv" WHERE seq > 29 ORDER BY seq LIMIT 1) c0

-- purge deletes
SELECT feed_sync_id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - published_at FROM "public"."rowfeed_positions_kv" WHERE deleted = 1 AND hidden = 0 AND feed_sync_id >= $1 ORDER BY feed_sync_id LIMIT $2
DELETE FROM "public"."rowfeed_positions_kv" WHERE deleted = 1 AND feed_sync_id IN ($1, $2)
UPDATE "public"."rowfeed_feeds" SET tombstones_below = $1 WHERE name = $2 AND tombstones_below < $3

-- check
BEGIN -- isolation: Repeatable Read, read only
SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601'; SET LOCAL extra_float_digits = '1'; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = 'off'
SELECT feed_sync_id FROM "public"."rowfeed_positions_kv" GROUP BY feed_sync_id HAVING count(*) > 1 LIMIT 100
SELECT p."id" FROM "public"."rowfeed_positions_kv" p LEFT JOIN "public"."kv" t ON p."id" = t."id" JOIN "public"."rowfeed_sequences" s ON s.name = 'kv' WHERE (p.feed_sync_id > s.value) LIMIT 100
SELECT t."id" FROM "public"."kv" t LEFT JOIN "public"."rowfeed_positions_kv" p ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "public"."rowfeed_changes_kv") c ON c."id" = t."id" WHERE p.feed_sync_id IS NULL AND c."id" IS NULL LIMIT 100
SELECT p."id" FROM "public"."rowfeed_positions_kv" p LEFT JOIN "public"."kv" t ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "public"."rowfeed_changes_kv") c ON c."id" = p."id" WHERE p.deleted = 0 AND t."id" IS NULL AND c."id" IS NULL LIMIT 100
SELECT p."id" FROM "public"."rowfeed_positions_kv" p LEFT JOIN "public"."kv" t ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "public"."rowfeed_changes_kv") c ON c."id" = p."id" WHERE p.deleted = 1 AND NOT (t."id" IS NULL) AND c."id" IS NULL LIMIT 100

-- repair
INSERT INTO "public"."rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT t."id" AS k0 FROM "public"."kv" t LEFT JOIN "public"."rowfeed_positions_kv" p ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "public"."rowfeed_changes_kv") c ON c."id" = t."id" WHERE p.feed_sync_id IS NULL AND c."id" IS NULL LIMIT $1) x
INSERT INTO "public"."rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT p."id" AS k0 FROM "public"."rowfeed_positions_kv" p LEFT JOIN "public"."kv" t ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "public"."rowfeed_changes_kv") c ON c."id" = p."id" WHERE p.deleted = 0 AND t."id" IS NULL AND c."id" IS NULL LIMIT $1) x
INSERT INTO "public"."rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT p."id" AS k0 FROM "public"."rowfeed_positions_kv" p LEFT JOIN "public"."kv" t ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "public"."rowfeed_changes_kv") c ON c."id" = p."id" WHERE p.deleted = 1 AND NOT (t."id" IS NULL) AND c."id" IS NULL LIMIT $1) x
SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true); SELECT seq FROM (SELECT seq FROM "public"."rowfeed_changes_kv" WHERE seq > 30 ORDER BY seq LIMIT 1) c0

-- upgrade
UPDATE "public"."rowfeed_feeds" SET options = $1 WHERE name = $2
UPDATE "public"."rowfeed_feeds" SET key_columns = $1 WHERE name = $2
SELECT value FROM "public"."rowfeed_sequences" WHERE name = $1

-- divide by another number of data shards
UPDATE "public"."rowfeed_feeds" SET state = $1, fill_after = NULL, data_shards = $2 WHERE name = $3 AND state = $4 AND generation = $5
SELECT t.feed_sync_id, t.shard, t.bucket, t."id" FROM "public"."rowfeed_positions_kv" t ORDER BY t."id" LIMIT $1
WITH held AS MATERIALIZED (SELECT t.place, t.rel, j.shard FROM unnest(CAST(CAST($1 AS text) AS bigint[]), CAST(CAST($2 AS text) AS int[])) AS j(position, shard) CROSS JOIN LATERAL (SELECT t.ctid AS place, t.tableoid AS rel FROM "public"."rowfeed_positions_kv" t WHERE t.feed_sync_id = j.position OFFSET 0) t) UPDATE "public"."rowfeed_positions_kv" t SET shard = held.shard, bucket = ((held.shard + 1) * 8 - 1) / 8 FROM held WHERE t.ctid = held.place AND t.tableoid = held.rel
SELECT count(*) FROM "public"."rowfeed_feeds" WHERE name = $1 AND generation = $2 AND data_shards = $3 AND state = $4 AND fill_after IS NULL
UPDATE "public"."rowfeed_feeds" SET fill_after = $1 WHERE name = $2 AND generation = $3 AND data_shards = $4 AND state = $5 AND fill_after IS NULL
SELECT count(*) FROM "public"."rowfeed_feeds" WHERE name = $1 AND generation = $2 AND data_shards = $3 AND state = $4 AND fill_after = $5
SELECT to_regclass('"public"."rowfeed_kv_bucket"') IS NOT NULL
CREATE INDEX IF NOT EXISTS "rowfeed_kv_bucket" ON "public"."rowfeed_positions_kv" (bucket, feed_sync_id, shard)
UPDATE "public"."rowfeed_feeds" SET state = $1, fill_after = NULL WHERE name = $2 AND generation = $3 AND data_shards = $4 AND state = $5 AND fill_after = $6

-- adopt the database, and begin a new generation
UPDATE "public"."rowfeed_sequences" SET version = version + NUMBER WHERE name = 'kv'
UPDATE "public"."rowfeed_feeds" SET generation = CASE WHEN ROUND((extract(epoch FROM clock_timestamp()) * 1000000)::bigint / 1000000, 0) > generation + 1 THEN ROUND((extract(epoch FROM clock_timestamp()) * 1000000)::bigint / 1000000, 0) ELSE generation + 1 END, database_identity = 'IDENTITY' WHERE name = 'kv'

-- grant and revoke
SELECT EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass($1) AND relowner = to_regrole($2))
SELECT COALESCE(to_regrole($1)::oid::bigint, 0)
GRANT SELECT ON TABLE "public"."rowfeed_schema_version" TO "wire_DATABASE"
GRANT SELECT ON TABLE "public"."rowfeed_feeds" TO "wire_DATABASE"
GRANT SELECT ON TABLE "public"."rowfeed_sequences" TO "wire_DATABASE"
GRANT SELECT ON TABLE "public"."rowfeed_terms" TO "wire_DATABASE"
GRANT SELECT ON TABLE "public"."rowfeed_positions_kv" TO "wire_DATABASE"
SELECT has_schema_privilege($1::bigint::oid, c.relnamespace, 'USAGE'), has_table_privilege($2::bigint::oid, c.oid, $3) FROM pg_class c WHERE c.oid = to_regclass($4)
REVOKE SELECT ON TABLE "public"."rowfeed_schema_version" FROM "wire_DATABASE"
REVOKE SELECT ON TABLE "public"."rowfeed_feeds" FROM "wire_DATABASE"
REVOKE SELECT ON TABLE "public"."rowfeed_sequences" FROM "wire_DATABASE"
REVOKE SELECT ON TABLE "public"."rowfeed_terms" FROM "wire_DATABASE"
REVOKE SELECT ON TABLE "public"."rowfeed_positions_kv" FROM "wire_DATABASE"

-- drop the feed
DROP FUNCTION IF EXISTS "public"."rowfeed_kv_capture"() CASCADE
DROP FUNCTION IF EXISTS "public"."rowfeed_kv_truncate"() CASCADE
DROP TABLE IF EXISTS "public"."rowfeed_changes_kv"
DROP TABLE IF EXISTS "public"."rowfeed_positions_kv"
DELETE FROM "public"."rowfeed_sequences" WHERE name = $1
DELETE FROM "public"."rowfeed_terms" WHERE feed = $1

