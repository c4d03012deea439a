-- name: advance_shard
UPDATE "rowfeed_shards" SET time_ms = :time, ulid_high = :high, ulid_low = :low, witness = :nonces
WHERE feed = :feed AND shard = :shard AND pg_current_xact_id()::text = CAST(:transaction AS text)

-- name: bound
set_config(:setting, CAST(:to AS text), true)

-- name: bound_waits
SELECT set_config('lock_timeout', :wait::text, true)

-- name: bounds
SELECT pg_current_xact_id()::text, current_setting('lock_timeout'), :bounds

-- name: drop_lock_function
DROP FUNCTION IF EXISTS "rowfeed_lock_<feed>"(bigint, timestamptz, text, text)

-- name: drop_ulid_function
DROP FUNCTION IF EXISTS "rowfeed_ulid_<feed>"(bigint, bigint)

-- name: feed_hash
hashtext('"rowfeed_shards" <feed>')

-- name: first_use
CASE WHEN CAST(:shard AS bigint) BETWEEN -2147483648 AND 2147483647
  THEN pg_advisory_xact_lock(hashtext('"rowfeed_shards" <feed>'), CAST(CAST(:shard AS bigint) AS int)) END

-- name: lock_function
CREATE OR REPLACE FUNCTION "rowfeed_lock_<feed>"(shard bigint DEFAULT 0, time_hint timestamptz DEFAULT NULL,
  word text DEFAULT NULL, transaction_id text DEFAULT NULL,
  OUT ulid , OUT ulid_high bigint, OUT ulid_low bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET enable_bitmapscan = off AS $rowfeed$
DECLARE
  lock_shard bigint := COALESCE(shard, 0);
  own text := ' ' || lock_shard || ':'; others text;
  v_time bigint; v_high bigint; v_low bigint; now_ms bigint; hint_ms bigint; random16 bigint; random64 bigint;
  bits bytea; greatest ;
  -- the library has its own bounds
  unbounded boolean := word IS NULL AND current_setting('lock_timeout') = '0';
BEGIN
  IF transaction_id <> pg_current_xact_id()::text THEN
    RAISE EXCEPTION 'feed %: no transaction is open', '<feed>' USING ERRCODE = :no_transaction;
  END IF;
  IF transaction_id IS NULL AND statement_timestamp() = transaction_timestamp()
    AND current_query() ~* '^[[:space:]]*SELECT[[:>:]][^;]*;?[[:space:]]*$'
    AND strpos(lower(current_query()), lower(:name)) > 0 THEN
    RAISE EXCEPTION 'feed %: no transaction is open, so the lock would end with its own statement', '<feed>'
      USING ERRCODE = :no_transaction, HINT = :begin_first;
  END IF;
  -- readers see the ULIDs with this commit: it must be on the disk by then
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF word IS NULL AND current_setting('idle_in_transaction_session_timeout') = '0' THEN
    PERFORM set_config('idle_in_transaction_session_timeout', :idle, true);
  END IF;
  IF unbounded THEN
    PERFORM set_config('lock_timeout', :wait, true);
  END IF;
  SELECT s.time_ms, s.ulid_high, s.ulid_low INTO v_time, v_high, v_low FROM "rowfeed_shards" s
    WHERE s.feed = '<feed>' AND s.shard = lock_shard FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM FROM "rowfeed_feeds" f WHERE f.name = '<feed>' AND f.state = :active FOR SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'feed % is not ready', '<feed>'
        USING ERRCODE = 'undefined_function', HINT = 'wait until feed add has ended';
    END IF;
    INSERT INTO "rowfeed_shards" AS s (feed, shard, time_ms, ulid_high, ulid_low, witness)
      SELECT '<feed>', lock_shard, 0, 0, 0, '' FROM (SELECT CASE WHEN CAST(:shard AS bigint) BETWEEN -2147483648 AND 2147483647
  THEN pg_advisory_xact_lock(hashtext('"rowfeed_shards" <feed>'), CAST(CAST(:shard AS bigint) AS int)) END) first_use ON CONFLICT DO NOTHING;
    SELECT s.time_ms, s.ulid_high, s.ulid_low INTO v_time, v_high, v_low FROM "rowfeed_shards" s
      WHERE s.feed = '<feed>' AND s.shard = lock_shard FOR UPDATE;
  END IF;
  IF unbounded THEN
    PERFORM set_config('lock_timeout', '0', true);
  END IF;
  IF v_time = 0 OR current_setting('transaction_isolation') <> 'serializable' THEN
    SELECT g."ulid" INTO greatest FROM "items_<feed>" g WHERE g."shard" = lock_shard
      ORDER BY g."ulid" DESC LIMIT 1;
    IF greatest >= :ulid_of_state THEN
      v_time := :millis_of_greatest + 1;
      v_high := v_time << 16;
      v_low := -1;
    END IF;
  END IF;
  now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
  hint_ms := GREATEST(CASE time_hint WHEN 'infinity' THEN 9223372036854775807 WHEN '-infinity' THEN 1
    ELSE COALESCE(floor(extract(epoch FROM time_hint) * 1000), now_ms) END, 1);
  IF hint_ms > now_ms + :most_ahead THEN
    RAISE EXCEPTION 'feed %, shard %: the hint % is more than a minute ahead of the clock', '<feed>', lock_shard, time_hint
      USING ERRCODE = :hint_ahead, HINT = 'leave the hint out, or mend the clock that it comes from';
  END IF;
  -- bytes of a random UUID that are random as a whole
  bits := uuid_send(gen_random_uuid());
  random16 := get_byte(bits, 0) * 256 + get_byte(bits, 1);
  random64 := ('x' || encode(substr(bits, 10, 7) || substr(bits, 3, 1), 'hex'))::bit(64)::bigint;
  SELECT :next_time,
    :next_high,
    :next_low
    INTO v_time, v_high, v_low;
  IF v_time > :last_time THEN
    RAISE EXCEPTION 'feed %, shard %: there is no ULID above those of the shard', '<feed>', lock_shard
      USING ERRCODE = :no_ulids, HINT = 'rowfeed check names the row that nobody was given a ULID for: delete it';
  END IF;
  UPDATE "rowfeed_shards" s SET time_ms = v_time, ulid_high = v_high, ulid_low = v_low + :count,
    witness = CASE WHEN word IS NULL THEN s.witness ELSE array_to_string((string_to_array(concat_ws(' ',
      left(split_part(word, ' ', 1), 40), NULLIF(s.witness, '')), ' ')):newest, ' ') END
    WHERE s.feed = '<feed>' AND s.shard = lock_shard;
  IF transaction_id IS NOT NULL THEN
    ulid := :ulid_of_state;
    ulid_high := v_high;
    ulid_low := v_low;
  END IF;
  -- of each shard the last ones: " shard:high,low"
  others := COALESCE(current_setting(:setting, true), '');
  IF strpos(others, own) > 0 THEN
    others := replace(others, own || split_part(split_part(others, own, 2), ' ', 1), '');
  END IF;
  PERFORM set_config(:setting, others || own || v_high || ',' || v_low, true);
END $rowfeed$

-- name: lock_function (blocking_feed)
CREATE OR REPLACE FUNCTION "rowfeed_lock_<feed>"(shard bigint DEFAULT 0, time_hint timestamptz DEFAULT NULL,
  word text DEFAULT NULL, transaction_id text DEFAULT NULL,
  OUT ulid , OUT ulid_high bigint, OUT ulid_low bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET enable_bitmapscan = off AS $rowfeed$
DECLARE
  lock_shard bigint := COALESCE(shard, 0);
  own text := ' ' || lock_shard || ':'; others text;
  v_time bigint; v_high bigint; v_low bigint; now_ms bigint; hint_ms bigint; random16 bigint; random64 bigint;
  bits bytea; greatest ;
  -- the library has its own bounds
  unbounded boolean := word IS NULL AND current_setting('lock_timeout') = '0';
BEGIN
  IF transaction_id <> pg_current_xact_id()::text THEN
    RAISE EXCEPTION 'feed %: no transaction is open', '<feed>' USING ERRCODE = :no_transaction;
  END IF;
  IF transaction_id IS NULL AND statement_timestamp() = transaction_timestamp()
    AND current_query() ~* '^[[:space:]]*SELECT[[:>:]][^;]*;?[[:space:]]*$'
    AND strpos(lower(current_query()), lower(:name)) > 0 THEN
    RAISE EXCEPTION 'feed %: no transaction is open, so the lock would end with its own statement', '<feed>'
      USING ERRCODE = :no_transaction, HINT = :begin_first;
  END IF;
  -- readers see the ULIDs with this commit: it must be on the disk by then
  IF current_setting('synchronous_commit') IN ('off', 'local') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF word IS NULL AND current_setting('idle_in_transaction_session_timeout') = '0' THEN
    PERFORM set_config('idle_in_transaction_session_timeout', :idle, true);
  END IF;
  IF unbounded THEN
    PERFORM set_config('lock_timeout', :wait, true);
  END IF;
  SELECT s.time_ms, s.ulid_high, s.ulid_low INTO v_time, v_high, v_low FROM "rowfeed_shards" s
    WHERE s.feed = '<feed>' AND s.shard = lock_shard FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM FROM "rowfeed_feeds" f WHERE f.name = '<feed>' AND f.state = :active FOR SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'feed % is not ready', '<feed>'
        USING ERRCODE = 'undefined_function', HINT = 'wait until feed add has ended';
    END IF;
    INSERT INTO "rowfeed_shards" AS s (feed, shard, time_ms, ulid_high, ulid_low, witness)
      SELECT '<feed>', lock_shard, 0, 0, 0, '' FROM (SELECT CASE WHEN CAST(:shard AS bigint) BETWEEN -2147483648 AND 2147483647
  THEN pg_advisory_xact_lock(hashtext('"rowfeed_shards" <feed>'), CAST(CAST(:shard AS bigint) AS int)) END) first_use ON CONFLICT DO NOTHING;
    SELECT s.time_ms, s.ulid_high, s.ulid_low INTO v_time, v_high, v_low FROM "rowfeed_shards" s
      WHERE s.feed = '<feed>' AND s.shard = lock_shard FOR UPDATE;
  END IF;
  IF unbounded THEN
    PERFORM set_config('lock_timeout', '0', true);
  END IF;
  IF v_time = 0 OR current_setting('transaction_isolation') <> 'serializable' THEN
    SELECT g."position" INTO greatest FROM "items_<feed>" g WHERE g."tenant" = lock_shard
      ORDER BY g."position" DESC LIMIT 1;
    IF greatest >= :ulid_of_state THEN
      v_time := :millis_of_greatest + 1;
      v_high := v_time << 16;
      v_low := -1;
    END IF;
  END IF;
  now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
  hint_ms := GREATEST(CASE time_hint WHEN 'infinity' THEN 9223372036854775807 WHEN '-infinity' THEN 1
    ELSE COALESCE(floor(extract(epoch FROM time_hint) * 1000), now_ms) END, 1);
  IF hint_ms > now_ms + :most_ahead THEN
    RAISE EXCEPTION 'feed %, shard %: the hint % is more than a minute ahead of the clock', '<feed>', lock_shard, time_hint
      USING ERRCODE = :hint_ahead, HINT = 'leave the hint out, or mend the clock that it comes from';
  END IF;
  -- bytes of a random UUID that are random as a whole
  bits := uuid_send(gen_random_uuid());
  random16 := get_byte(bits, 0) * 256 + get_byte(bits, 1);
  random64 := ('x' || encode(substr(bits, 10, 7) || substr(bits, 3, 1), 'hex'))::bit(64)::bigint;
  SELECT :next_time,
    :next_high,
    :next_low
    INTO v_time, v_high, v_low;
  IF v_time > :last_time THEN
    RAISE EXCEPTION 'feed %, shard %: there is no ULID above those of the shard', '<feed>', lock_shard
      USING ERRCODE = :no_ulids, HINT = 'rowfeed check names the row that nobody was given a ULID for: delete it';
  END IF;
  UPDATE "rowfeed_shards" s SET time_ms = v_time, ulid_high = v_high, ulid_low = v_low + :count,
    witness = CASE WHEN word IS NULL THEN s.witness ELSE array_to_string((string_to_array(concat_ws(' ',
      left(split_part(word, ' ', 1), 40), NULLIF(s.witness, '')), ' ')):newest, ' ') END
    WHERE s.feed = '<feed>' AND s.shard = lock_shard;
  IF transaction_id IS NOT NULL THEN
    ulid := :ulid_of_state;
    ulid_high := v_high;
    ulid_low := v_low;
  END IF;
  -- of each shard the last ones: " shard:high,low"
  others := COALESCE(current_setting(:setting, true), '');
  IF strpos(others, own) > 0 THEN
    others := replace(others, own || split_part(split_part(others, own, 2), ' ', 1), '');
  END IF;
  PERFORM set_config(:setting, others || own || v_high || ',' || v_low, true);
END $rowfeed$

-- name: lock_shard
SELECT time_ms, ulid_high, ulid_low, witness, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_current_xact_id()::text
FROM "rowfeed_shards" WHERE feed = :feed AND shard = :shard FOR UPDATE

-- name: make_shard
INSERT INTO "rowfeed_shards" (feed, shard, time_ms, ulid_high, ulid_low, witness)
SELECT CAST(:feed AS text), CAST(:shard AS bigint), 0, 0, 0, '' FROM (SELECT CASE WHEN CAST(:shard AS bigint) BETWEEN -2147483648 AND 2147483647
  THEN pg_advisory_xact_lock(hashtext('"rowfeed_shards" <feed>'), CAST(CAST(:shard AS bigint) AS int)) END) first_use
ON CONFLICT (feed, shard) DO NOTHING

-- name: millis
('x' || encode(substr(:ulid ||
  decode('000000000000', 'hex'), 1, 6), 'hex'))::bit(48)::bigint

-- name: nonces
SELECT witness FROM "rowfeed_shards" WHERE feed = :feed AND shard = :shard

-- name: revoke_shard_functions
REVOKE ALL ON FUNCTION "rowfeed_lock_<feed>"(bigint, timestamptz, text, text),
  "rowfeed_ulid_<feed>"(bigint, bigint) FROM PUBLIC

-- name: shard_function_state
SELECT p.prosrc, p.prosecdef AND COALESCE(EXISTS (SELECT 1 FROM pg_class c
    WHERE c.oid IN (to_regclass(:shards::text), to_regclass(:source::text))
      AND NOT has_schema_privilege(p.proowner, c.relnamespace, 'USAGE')) OR EXISTS (
    SELECT 1 FROM (VALUES (:feeds::text, 'SELECT'), (:feeds::text, 'UPDATE'), (:shards::text, 'SELECT'),
      (:shards::text, 'INSERT'), (:shards::text, 'UPDATE'), (:source::text, 'SELECT')) n(on_table, need)
    WHERE NOT has_table_privilege(p.proowner, to_regclass(n.on_table), n.need)), false)
FROM pg_proc p WHERE p.oid = to_regprocedure(:function)

-- name: take_shard
SELECT ulid_high, ulid_low, set_config('lock_timeout', CAST(:wait AS text), true), current_setting('fsync'),
  current_setting('full_page_writes')
FROM "rowfeed_lock_<feed>"(CAST(:shard AS bigint),
  CASE WHEN CAST(:hint AS bigint) <> 0 THEN to_timestamp(CAST(:hint AS bigint) / 1000.0) END, CAST(:word AS text),
  CAST(:transaction AS text))

-- name: tighter_bound
set_config(:setting, CASE WHEN current_setting(:setting) <> '0'
  AND current_setting(:setting)::interval < CAST(:to AS text)::interval
  THEN current_setting(:setting) ELSE CAST(:to AS text) END, true)

-- name: try_shard
SELECT time_ms, ulid_high, ulid_low, witness, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_current_xact_id()::text
FROM "rowfeed_shards" WHERE feed = :feed AND shard = :shard FOR UPDATE NOWAIT

-- name: ulid
int8send(:high) || int8send(:low)

-- name: ulid_function
CREATE OR REPLACE FUNCTION "rowfeed_ulid_<feed>"(i bigint, shard bigint DEFAULT NULL)
RETURNS 
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $rowfeed$
DECLARE
  halves text := current_setting(:setting, true);
BEGIN
  IF shard IS NOT NULL THEN
    halves := split_part(split_part(halves, ' ' || shard || ':', 2), ' ', 1);
  ELSIF strpos(ltrim(halves), ' ') > 0 THEN
    RAISE EXCEPTION 'feed %: this transaction has locked several shards, each with ULIDs of its own', '<feed>'
      USING ERRCODE = 'ambiguous_parameter', HINT = :name_shard;
  ELSE
    halves := split_part(halves, ':', 2);
  END IF;
  IF COALESCE(halves, '') = '' THEN
    RAISE EXCEPTION 'feed %: this transaction has taken no ULIDs%, or a savepoint took them back', '<feed>',
      COALESCE(' of shard ' || shard, '')
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = :lock_first;
  END IF;
  IF i IS NULL OR i < 0 OR i >= :count THEN
    RAISE EXCEPTION 'feed %: % is not between 0 and 99999999999', '<feed>', i
      USING ERRCODE = 'invalid_parameter_value', HINT = :lock_again;
  END IF;
  RETURN :ulid;
END $rowfeed$

-- name: usable
SELECT 1

