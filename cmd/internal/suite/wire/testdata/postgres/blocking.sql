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
SELECT p.prosrc, p.prosecdef AND COALESCE(EXISTS (SELECT 1 FROM pg_class c WHERE c.oid IN (to_regclass($1::text), to_regclass($2::text)) AND NOT has_schema_privilege(p.proowner, c.relnamespace, 'USAGE')) OR EXISTS ( SELECT 1 FROM (VALUES ($3::text, 'SELECT'), ($4::text, 'UPDATE'), ($5::text, 'SELECT'), ($6::text, 'INSERT'), ($7::text, 'UPDATE'), ($8::text, 'SELECT')) n(on_table, need) WHERE NOT has_table_privilege(p.proowner, to_regclass(n.on_table), n.need)), false) FROM pg_proc p WHERE p.oid = to_regprocedure($9)
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
SELECT g."v", g."u"::text FROM "public"."kv" g ORDER BY g."v" DESC, g."u" DESC LIMIT 1
SELECT CASE WHEN NOT pg_is_in_recovery() THEN 'system ' || (SELECT system_identifier FROM pg_control_system()) || ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) || ', table ' || '"public"."rowfeed_sequences"'::regclass::oid END
INSERT INTO "public"."rowfeed_feeds" (name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, $14, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
SELECT count(*) FROM "public"."rowfeed_sequences" WHERE name = $1
INSERT INTO "public"."rowfeed_sequences" (name, value, version, updated_at) VALUES ($1, $2, 0, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
CREATE OR REPLACE FUNCTION "public"."rowfeed_lock_kv"(shard bigint DEFAULT 0, time_hint timestamptz DEFAULT NULL, word text DEFAULT NULL, transaction_id text DEFAULT NULL, OUT ulid uuid, OUT ulid_high bigint, OUT ulid_low bigint) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $rowfeed$
DECLARE
  lock_shard bigint := COALESCE(shard, 0);
  own text := ' ' || lock_shard || ':'; others text;
  v_time bigint; v_high bigint; v_low bigint; now_ms bigint; hint_ms bigint; random16 bigint; random64 bigint;
  bits bytea; greatest uuid;
  -- the library has its own bounds
  unbounded boolean := word IS NULL AND current_setting('lock_timeout') = '0';
BEGIN
  IF transaction_id <> pg_current_xact_id()::text THEN
    RAISE EXCEPTION 'feed %: no transaction is open', 'kv' USING ERRCODE = '25P01';
  END IF;
  IF transaction_id IS NULL AND statement_timestamp() = transaction_timestamp()
    AND current_query() ~* '^[[:space:]]*SELECT[[:>:]][^;]*;?[[:space:]]*$'
    AND strpos(lower(current_query()), lower('rowfeed_lock_kv')) > 0 THEN
    RAISE EXCEPTION 'feed %: no transaction is open, so the lock would end with its own statement', 'kv'
      USING ERRCODE = '25P01', HINT = 'begin a transaction, lock, insert rows with rowfeed_ulid_kv(i, shard), commit';
  END IF;
  -- readers see the ULIDs with this commit: it must be on the disk by then
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF word IS NULL AND current_setting('idle_in_transaction_session_timeout') = '0' THEN
    PERFORM set_config('idle_in_transaction_session_timeout', '60000ms', true);
  END IF;
  IF unbounded THEN
    PERFORM set_config('lock_timeout', '10000ms', true);
  END IF;
  SELECT s.time_ms, s.ulid_high, s.ulid_low INTO v_time, v_high, v_low FROM "public"."rowfeed_shards" s
    WHERE s.feed = 'kv' AND s.shard = lock_shard FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM FROM "public"."rowfeed_feeds" f WHERE f.name = 'kv' AND f.state = 'active' FOR SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'feed % is not ready', 'kv'
        USING ERRCODE = 'undefined_function', HINT = 'wait until feed add has ended';
    END IF;
    INSERT INTO "public"."rowfeed_shards" AS s (feed, shard, time_ms, ulid_high, ulid_low, witness)
      SELECT 'kv', lock_shard, 0, 0, 0, '' FROM (SELECT CASE WHEN CAST(lock_shard AS bigint) BETWEEN -2147483648 AND 2147483647
  THEN pg_advisory_xact_lock(hashtext('"public"."rowfeed_shards" kv'), CAST(CAST(lock_shard AS bigint) AS int)) END) first_use ON CONFLICT DO NOTHING;
    SELECT s.time_ms, s.ulid_high, s.ulid_low INTO v_time, v_high, v_low FROM "public"."rowfeed_shards" s
      WHERE s.feed = 'kv' AND s.shard = lock_shard FOR UPDATE;
  END IF;
  IF unbounded THEN
    PERFORM set_config('lock_timeout', '0', true);
  END IF;
  IF v_time = 0 OR current_setting('transaction_isolation') <> 'serializable' THEN
    SELECT g."u" INTO greatest FROM "public"."kv" g WHERE g."v" = lock_shard
      ORDER BY g."u" DESC LIMIT 1;
    IF greatest >= CAST(encode(int8send(v_high) || int8send(v_low), 'hex') AS uuid) THEN
      v_time := ('x' || encode(substr(uuid_send(greatest) ||
  decode('000000000000', 'hex'), 1, 6), 'hex'))::bit(48)::bigint + 1;
      v_high := v_time << 16;
      v_low := -1;
    END IF;
  END IF;
  now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
  hint_ms := GREATEST(CASE time_hint WHEN 'infinity' THEN 9223372036854775807 WHEN '-infinity' THEN 1
    ELSE COALESCE(floor(extract(epoch FROM time_hint) * 1000), now_ms) END, 1);
  IF hint_ms > now_ms + 60000 THEN
    RAISE EXCEPTION 'feed %, shard %: the hint % is more than a minute ahead of the clock', 'kv', lock_shard, time_hint
      USING ERRCODE = '22023', HINT = 'leave the hint out, or mend the clock that it comes from';
  END IF;
  -- bytes of a random UUID that are random as a whole
  bits := uuid_send(gen_random_uuid());
  random16 := get_byte(bits, 0) * 256 + get_byte(bits, 1);
  random64 := ('x' || encode(substr(bits, 10, 7) || substr(bits, 3, 1), 'hex'))::bit(64)::bigint;
  SELECT CASE WHEN hint_ms > v_time THEN hint_ms WHEN (v_low & 9223372036854775807) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END,
    CASE WHEN hint_ms > v_time OR (v_low & 9223372036854775807) > 9223372036854775807 - 100000000000 THEN ((CASE WHEN hint_ms > v_time THEN hint_ms WHEN (v_low & 9223372036854775807) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END) << 16) + random16 ELSE v_high END,
    CASE WHEN hint_ms > v_time OR (v_low & 9223372036854775807) > 9223372036854775807 - 100000000000 THEN (random64 & NUMBER) ELSE v_low END
    INTO v_time, v_high, v_low;
  IF v_time > NUMBER THEN
    RAISE EXCEPTION 'feed %, shard %: there is no ULID above those of the shard', 'kv', lock_shard
      USING ERRCODE = '2200H', HINT = 'rowfeed check names the row that nobody was given a ULID for: delete it';
  END IF;
  UPDATE "public"."rowfeed_shards" s SET time_ms = v_time, ulid_high = v_high, ulid_low = v_low + 100000000000,
    witness = CASE WHEN word IS NULL THEN s.witness ELSE array_to_string((string_to_array(concat_ws(' ',
      left(split_part(word, ' ', 1), 40), NULLIF(s.witness, '')), ' '))[1:8], ' ') END
    WHERE s.feed = 'kv' AND s.shard = lock_shard;
  IF transaction_id IS NOT NULL THEN
    ulid := CAST(encode(int8send(v_high) || int8send(v_low), 'hex') AS uuid);
    ulid_high := v_high;
    ulid_low := v_low;
  END IF;
  -- of each shard the last ones: " shard:high,low"
  others := COALESCE(current_setting('rowfeed.taken_a623de896815e789', true), '');
  IF strpos(others, own) > 0 THEN
    others := replace(others, own || split_part(split_part(others, own, 2), ' ', 1), '');
  END IF;
  PERFORM set_config('rowfeed.taken_a623de896815e789', others || own || v_high || ',' || v_low, true);
END $rowfeed$
CREATE OR REPLACE FUNCTION "public"."rowfeed_ulid_kv"(i bigint, shard bigint DEFAULT NULL) RETURNS uuid LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $rowfeed$
DECLARE
  halves text := current_setting('rowfeed.taken_a623de896815e789', true);
BEGIN
  IF shard IS NOT NULL THEN
    halves := split_part(split_part(halves, ' ' || shard || ':', 2), ' ', 1);
  ELSIF strpos(ltrim(halves), ' ') > 0 THEN
    RAISE EXCEPTION 'feed %: this transaction has locked several shards, each with ULIDs of its own', 'kv'
      USING ERRCODE = 'ambiguous_parameter', HINT = 'name the shard of the row: rowfeed_ulid_kv(i, shard)';
  ELSE
    halves := split_part(halves, ':', 2);
  END IF;
  IF COALESCE(halves, '') = '' THEN
    RAISE EXCEPTION 'feed %: this transaction has taken no ULIDs%, or a savepoint took them back', 'kv',
      COALESCE(' of shard ' || shard, '')
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'begin a transaction, and call rowfeed_lock_kv first';
  END IF;
  IF i IS NULL OR i < 0 OR i >= 100000000000 THEN
    RAISE EXCEPTION 'feed %: % is not between 0 and 99999999999', 'kv', i
      USING ERRCODE = 'invalid_parameter_value', HINT = 'call rowfeed_lock_kv again for more';
  END IF;
  RETURN CAST(encode(int8send(split_part(halves, ',', 1)::bigint) || int8send((split_part(halves, ',', 2)::bigint + i)), 'hex') AS uuid);
END $rowfeed$
REVOKE ALL ON FUNCTION "public"."rowfeed_lock_kv"(bigint, timestamptz, text, text), "public"."rowfeed_ulid_kv"(bigint, bigint) FROM PUBLIC
UPDATE "public"."rowfeed_feeds" SET state = $1, fill_after = NULL WHERE name = $2

-- add it again, list the feeds, describe it
SELECT shard FROM "public"."rowfeed_shards" WHERE feed = $1 AND time_ms <> 0 ORDER BY shard LIMIT $2

-- write
SELECT pg_current_xact_id()::text, current_setting('lock_timeout'), set_config('lock_timeout', CASE WHEN current_setting('lock_timeout') <> '0' AND current_setting('lock_timeout')::interval < CAST($1 AS text)::interval THEN current_setting('lock_timeout') ELSE CAST($2 AS text) END, true) || set_config('idle_in_transaction_session_timeout', CASE WHEN current_setting('idle_in_transaction_session_timeout') <> '0' AND current_setting('idle_in_transaction_session_timeout')::interval < CAST($3 AS text)::interval THEN current_setting('idle_in_transaction_session_timeout') ELSE CAST($4 AS text) END, true)
SELECT ulid_high, ulid_low, set_config('lock_timeout', CAST($1 AS text), true), current_setting('fsync'), current_setting('full_page_writes') FROM "public"."rowfeed_lock_kv"(CAST($2 AS bigint), CASE WHEN CAST($3 AS bigint) <> 0 THEN to_timestamp(CAST($4 AS bigint) / 1000.0) END, CAST($5 AS text), CAST($6 AS text))
SELECT witness FROM "public"."rowfeed_shards" WHERE feed = $1 AND shard = $2

-- publish first
UPDATE "public"."rowfeed_feeds" SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL WHERE name = $1 AND failure IS NOT NULL

-- publish without changes

-- publish again

-- read pages of the part: shard 1
BEGIN -- isolation: Read Committed, read only
SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601'; SET LOCAL extra_float_digits = '1'; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = 'off'; SET LOCAL enable_hashjoin = 'off'; SET LOCAL enable_mergejoin = 'off'; SET LOCAL enable_seqscan = 'off'; SET LOCAL enable_bitmapscan = 'off'; SET LOCAL jit = 'off'; SET LOCAL lock_timeout = '2s'
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), (SELECT g."u"::text FROM "public"."kv" g WHERE g."v" = CAST($1 AS bigint) ORDER BY g."u" DESC LIMIT 1), 0, 0, 0, CASE WHEN f.database_identity <> CASE WHEN NOT pg_is_in_recovery() THEN 'system ' || (SELECT system_identifier FROM pg_control_system()) || ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) || ', table ' || '"public"."rowfeed_sequences"'::regclass::oid END THEN '' WHEN NOT EXISTS (SELECT 1 FROM pg_catalog.pg_index i WHERE i.indexrelid = CAST('OID' AS oid) AND i.indisvalid) THEN '' ELSE COALESCE((SELECT string_agg(a.attname::text || ' ' || a.atttypid::text || ' ' || a.atttypmod::text, ',' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = '"public"."kv"'::regclass AND a.attnum > 0 AND NOT a.attisdropped), '') END, p.place, p.present, p.v0, p.v1, p.v2, p.v3 FROM "public"."rowfeed_feeds" f JOIN "public"."rowfeed_sequences" s ON s.name = f.name LEFT JOIN "public"."rowfeed_shards" h ON h.feed = f.name AND h.shard = $2 LEFT JOIN (SELECT t."u" AS ordered, t."u"::text AS place, 1 AS present, t."id" AS v0, t."id" AS v1, t."v" AS v2, t."u"::text AS v3 FROM "public"."kv" t WHERE t."v" = CAST($3 AS bigint) AND t."u" > CAST(CAST($4 AS text) AS uuid) ORDER BY t."u" LIMIT $5) p ON 1 = 1 WHERE f.name = $6 ORDER BY p.ordered LIMIT $7

-- wait for an entry of the part: shard 1
SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE CAST(pg_current_snapshot() AS text) END
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0) FROM "public"."rowfeed_sequences" s JOIN "public"."rowfeed_feeds" f ON f.name = s.name UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0 FROM "public"."rowfeed_shards" h JOIN "public"."rowfeed_feeds" f ON f.name = h.feed WHERE h.feed = $1 AND h.shard IN ($2)

-- read a consistent page of the part: shard 1

-- tell how far the shards are
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0) FROM "public"."rowfeed_sequences" s JOIN "public"."rowfeed_feeds" f ON f.name = s.name UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0 FROM "public"."rowfeed_shards" h JOIN "public"."rowfeed_feeds" f ON f.name = h.feed WHERE h.feed = $1

-- consume, set an entry aside, list it and try it again
DELETE FROM "public"."rowfeed_dead_letters" WHERE consumer = $1 AND feed = $2 AND shard = $3 AND key_digest = $4 AND generation = $5 AND position = $6 AND state = $7
INSERT INTO "public"."rowfeed_consumers" (consumer, feed, shard_count, paused, version) VALUES ($1, $2, $3, 0, 0) ON CONFLICT (consumer, feed) DO NOTHING
INSERT INTO "public"."rowfeed_cursors" (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ($1, $2, $3, $4, $5, $6, 0, 0, $7, 0, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
INSERT INTO "public"."rowfeed_dead_letters" (consumer, feed, shard, key_digest, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, data_shard) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $12) ON CONFLICT (consumer, feed, shard, key_digest) DO NOTHING
RELEASE SAVEPOINT rowfeed
SAVEPOINT rowfeed
SELECT 1 AS shard, g0.* FROM (SELECT g."u"::text FROM "public"."kv" g WHERE g."v" = CAST($1 AS bigint) ORDER BY g."u" DESC LIMIT 1) g0
SELECT DISTINCT shard FROM "public"."rowfeed_dead_letters" WHERE consumer = $1 AND feed = $2 AND state = $3
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
SELECT shard_count, version FROM "public"."rowfeed_consumers" WHERE consumer = $1 AND feed = $2
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local'); SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true), set_config('IntervalStyle', 'iso_8601', true), set_config('extra_float_digits', '1', true), set_config('bytea_output', 'hex', true), set_config('row_security', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true), set_config('idle_in_transaction_session_timeout', '10s', true), set_config('lock_timeout', '30s', true), set_config('statement_timeout', '120s', true)
UPDATE "public"."rowfeed_consumers" SET version = version + NUMBER WHERE 1 = 1 AND consumer = $1 AND feed = $2
UPDATE "public"."rowfeed_cursors" SET failure = $1, failing_since = COALESCE(failing_since, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), attempts = $2, next_try = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $3 WHERE consumer = $4 AND feed = $5 AND shard = $6 AND shard_count = $7 AND version = $8
UPDATE "public"."rowfeed_cursors" SET value = $1, generation = $2, aside = $3, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE consumer = $4 AND feed = $5 AND shard = $6 AND shard_count = $7 AND version = $8 AND value = $9 AND generation = $10 AND epoch = $11 AND aside = $12 AND paused = 0
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
SELECT name, owner, epoch, acquired_at, renewals, expires_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "public"."rowfeed_leases" WHERE name = $1

-- consume with two shards
UPDATE "public"."rowfeed_consumers" SET shard_count = $1, version = version + NUMBER WHERE 1 = 1 AND consumer = $2 AND feed = $3
UPDATE "public"."rowfeed_cursors" SET shard_count = $1, version = version + NUMBER WHERE 1 = 1 AND consumer = $2 AND feed = $3

-- deliver outside of transactions, under an epoch
SELECT name, owner, epoch, acquired_at, renewals, expires_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "public"."rowfeed_leases" WHERE name >= $1 AND name < $2 OR name = $3
UPDATE "public"."rowfeed_cursors" SET epoch = $1, version = version + 1, updated_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE consumer = $2 AND feed = $3 AND shard_count = $4 AND epoch < $5 AND shard IN ($6)

-- note an entry as processed, and forget it
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

-- status
WITH first_use AS MATERIALIZED ( SELECT (l.objid::bigint # 2147483648) - 2147483648 AS shard, l.pid, l.virtualtransaction, l.granted, l.waitstart FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid = (hashtext('"public"."rowfeed_shards" kv')::bigint & 4294967295)::oid AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) ), mine AS MATERIALIZED ( SELECT s.shard, s.ctid AS place, s.xmax FROM "public"."rowfeed_shards" s WHERE s.feed = $1::text ), waiting AS MATERIALIZED ( SELECT m.shard, l.pid, min(l.waitstart) AS since, pg_blocking_pids(l.pid) AS behind FROM mine m JOIN pg_locks l ON l.locktype = 'tuple' AND l.relation = $2::text::regclass AND m.place = format('(%s,%s)', l.page, l.tuple)::tid AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) WHERE cardinality(pg_blocking_pids(l.pid)) > 0 GROUP BY m.shard, l.pid UNION ALL SELECT u.shard, u.pid, u.waitstart, pg_blocking_pids(u.pid) FROM first_use u WHERE NOT u.granted ), holding AS MATERIALIZED ( SELECT m.shard, l.pid, l.virtualtransaction, m.xmax AS xid FROM mine m JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock' AND l.transactionid = m.xmax UNION ALL SELECT w.shard, l.pid, l.virtualtransaction, NULL::xid FROM waiting w JOIN pg_locks l ON l.locktype = 'virtualxid' AND l.granted AND l.pid = ANY (w.behind) WHERE l.virtualtransaction = l.virtualxid AND NOT EXISTS (SELECT 1 FROM waiting o WHERE o.shard = w.shard AND o.pid = l.pid) UNION ALL SELECT u.shard, u.pid, u.virtualtransaction, x.transactionid FROM first_use u LEFT JOIN pg_locks x ON u.pid IS NULL AND x.locktype = 'transactionid' AND x.virtualtransaction = u.virtualtransaction WHERE u.granted ), sessions AS ( SELECT DISTINCT ON (shard, pid) shard, 0 AS waits, pid, virtualtransaction, xid, NULL::timestamptz AS since FROM holding UNION ALL SELECT shard, 1, pid, '', NULL, since FROM waiting ) SELECT b.shard, b.waits, COALESCE(b.pid::text, ''), b.virtualtransaction, COALESCE(a.usename::text, x.owner::text, ''), CASE WHEN a.pid IS NULL OR a.backend_start IS NULL THEN '' ELSE COALESCE(host(a.client_addr), 'local') END, COALESCE(a.application_name, ''), COALESCE((extract(epoch FROM clock_timestamp() - COALESCE(a.xact_start, x.prepared)) * 1000000)::bigint, -1), COALESCE(a.state, CASE WHEN x.gid IS NULL THEN '' ELSE 'prepared' END), COALESCE((extract(epoch FROM clock_timestamp() - COALESCE(a.state_change, x.prepared)) * 1000000)::bigint, -1), COALESCE(left(a.query, 500), 'PREPARE TRANSACTION ' || quote_literal(x.gid), '') FROM sessions b LEFT JOIN pg_stat_activity a ON a.pid = b.pid LEFT JOIN pg_prepared_xacts x ON b.pid IS NULL AND x.transaction = b.xid ORDER BY b.shard, b.waits, b.since, b.pid
SELECT s.shard, (SELECT g."u"::text FROM "public"."kv" g WHERE g."v" = s.shard ORDER BY g."u" DESC LIMIT 1) FROM "public"."rowfeed_shards" s WHERE s.feed = $1 ORDER BY s.shard LIMIT $2
WITH first_use AS MATERIALIZED ( SELECT (l.objid::bigint # 2147483648) - 2147483648 AS shard, l.pid, l.virtualtransaction, l.granted, l.waitstart FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.classid = (hashtext('"public"."rowfeed_shards" kv')::bigint & 4294967295)::oid AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) ), mine AS MATERIALIZED ( SELECT s.shard, s.ctid AS place, s.xmax FROM "public"."rowfeed_shards" s WHERE s.feed = $1::text ), waiting AS MATERIALIZED ( SELECT m.shard, l.pid, min(l.waitstart) AS since, pg_blocking_pids(l.pid) AS behind FROM mine m JOIN pg_locks l ON l.locktype = 'tuple' AND l.relation = $2::text::regclass AND m.place = format('(%s,%s)', l.page, l.tuple)::tid AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) WHERE cardinality(pg_blocking_pids(l.pid)) > 0 GROUP BY m.shard, l.pid UNION ALL SELECT u.shard, u.pid, u.waitstart, pg_blocking_pids(u.pid) FROM first_use u WHERE NOT u.granted ), holding AS MATERIALIZED ( SELECT m.shard, l.pid, l.virtualtransaction, m.xmax AS xid FROM mine m JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock' AND l.transactionid = m.xmax UNION ALL SELECT w.shard, l.pid, l.virtualtransaction, NULL::xid FROM waiting w JOIN pg_locks l ON l.locktype = 'virtualxid' AND l.granted AND l.pid = ANY (w.behind) WHERE l.virtualtransaction = l.virtualxid AND NOT EXISTS (SELECT 1 FROM waiting o WHERE o.shard = w.shard AND o.pid = l.pid) UNION ALL SELECT u.shard, u.pid, u.virtualtransaction, x.transactionid FROM first_use u LEFT JOIN pg_locks x ON u.pid IS NULL AND x.locktype = 'transactionid' AND x.virtualtransaction = u.virtualtransaction WHERE u.granted ) SELECT a.pid::text, COALESCE(a.usename::text, ''), COALESCE(host(a.client_addr), 'local'), COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint, -1), COALESCE(a.state || ': ', '') || left(a.query, 500), 'has a shard: one of this feed that it took under a savepoint, or another feed''s', a.xact_start FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'relation' AND l.granted AND l.mode = 'RowExclusiveLock' AND l.relation = $3::text::regclass AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.pid NOT IN (SELECT h.pid FROM holding h WHERE h.pid IS NOT NULL UNION SELECT w.pid FROM waiting w) AND l.pid <> pg_backend_pid() ORDER BY a.xact_start
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "public"."rowfeed_cursors" WHERE 1 = 1 AND feed = $1 ORDER BY consumer, feed, shard
SELECT consumer, feed, shard_count, paused FROM "public"."rowfeed_consumers" WHERE 1 = 1 AND feed = $1

-- who has the shards

-- verify

-- check
SELECT time_ms, ulid_high, ulid_low, witness, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "public"."rowfeed_shards" WHERE feed = $1 AND shard = $2
SELECT g."v", g."u"::text FROM "public"."kv" g WHERE g."v" < $1 ORDER BY g."v" DESC, g."u" DESC LIMIT 1

-- repair

-- upgrade
SELECT value FROM "public"."rowfeed_sequences" WHERE name = $1

-- adopt the database, and begin a new generation
SELECT value, version, COALESCE(term, 0), updated_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'system ' || (SELECT system_identifier FROM pg_control_system()) || ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) || ', table ' || '"public"."rowfeed_sequences"'::regclass::oid FROM "public"."rowfeed_sequences" WHERE name = $1 FOR UPDATE
UPDATE "public"."rowfeed_sequences" SET version = version + NUMBER WHERE name = 'kv'
UPDATE "public"."rowfeed_feeds" SET generation = CASE WHEN ROUND((extract(epoch FROM clock_timestamp()) * 1000000)::bigint / 1000000, 0) > generation + 1 THEN ROUND((extract(epoch FROM clock_timestamp()) * 1000000)::bigint / 1000000, 0) ELSE generation + 1 END, database_identity = 'IDENTITY' WHERE name = 'kv'

-- grant and revoke
SELECT EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass($1) AND relowner = to_regrole($2))
SELECT EXISTS (SELECT 1 FROM pg_proc WHERE oid = to_regprocedure($1) AND proowner = to_regrole($2))
UPDATE "public"."rowfeed_feeds" SET options = $1 WHERE name = $2
SELECT COALESCE(to_regrole($1)::oid::bigint, 0)
GRANT SELECT ON TABLE "public"."rowfeed_schema_version" TO "wire_DATABASE"
GRANT SELECT ON TABLE "public"."rowfeed_feeds" TO "wire_DATABASE"
GRANT EXECUTE ON FUNCTION "public"."rowfeed_lock_kv"(bigint, timestamptz, text, text) TO "wire_DATABASE"
GRANT EXECUTE ON FUNCTION "public"."rowfeed_ulid_kv"(bigint, bigint) TO "wire_DATABASE"
GRANT SELECT ON TABLE "public"."rowfeed_shards" TO "wire_DATABASE"
GRANT SELECT ON TABLE "public"."rowfeed_sequences" TO "wire_DATABASE"
SELECT has_schema_privilege($1::bigint::oid, c.relnamespace, 'USAGE'), has_table_privilege($2::bigint::oid, c.oid, $3) FROM pg_class c WHERE c.oid = to_regclass($4)
SELECT has_schema_privilege($1::bigint::oid, p.pronamespace, 'USAGE'), has_function_privilege($2::bigint::oid, p.oid, $3) FROM pg_proc p WHERE p.oid = to_regprocedure($4)
SELECT to_regclass($1) IS NOT NULL
REVOKE SELECT ON TABLE "public"."rowfeed_schema_version" FROM "wire_DATABASE"
REVOKE SELECT ON TABLE "public"."rowfeed_feeds" FROM "wire_DATABASE"
SELECT to_regprocedure($1) IS NOT NULL
REVOKE EXECUTE ON FUNCTION "public"."rowfeed_lock_kv"(bigint, timestamptz, text, text) FROM "wire_DATABASE"
REVOKE EXECUTE ON FUNCTION "public"."rowfeed_ulid_kv"(bigint, bigint) FROM "wire_DATABASE"
REVOKE SELECT ON TABLE "public"."rowfeed_shards" FROM "wire_DATABASE"
REVOKE SELECT ON TABLE "public"."rowfeed_sequences" FROM "wire_DATABASE"

-- drop the feed
DROP FUNCTION IF EXISTS "public"."rowfeed_lock_kv"(bigint, timestamptz, text, text)
DROP FUNCTION IF EXISTS "public"."rowfeed_ulid_kv"(bigint, bigint)
DELETE FROM "public"."rowfeed_shards" WHERE feed = $1
DELETE FROM "public"."rowfeed_sequences" WHERE name = $1
DELETE FROM "public"."rowfeed_terms" WHERE feed = $1

