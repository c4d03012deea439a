-- Shards with ULIDs (mode "blocking"): how a transaction locks a shard, and how it allocates the shard's next ULIDs.
--
-- A shard's row in the table of shards is locked FOR UPDATE until the transaction ends. Writers of one shard take
-- turns. Writers of other shards do not wait. The first writer of a new shard also locks the feed's row, FOR SHARE.

-- name: lock_shard
-- A locking read comes before an INSERT, because a shard's row is inserted only once, and a locking read leaves no dead
-- version of the row behind. The transaction's id is for advance_shard: a statement outside of a transaction has an id
-- of its own.
SELECT time_ms, ulid_high, ulid_low, witness, {{now}}, pg_current_xact_id()::text
FROM {{table "shards"}} WHERE feed = :feed AND shard = :shard FOR UPDATE

-- name: try_shard
-- Transactions of rowfeed itself do not wait for a shard that another transaction has locked.
SELECT time_ms, ulid_high, ulid_low, witness, {{now}}, pg_current_xact_id()::text
FROM {{table "shards"}} WHERE feed = :feed AND shard = :shard FOR UPDATE NOWAIT

-- name: make_shard
INSERT INTO {{table "shards"}} (feed, shard, time_ms, ulid_high, ulid_low, witness)
SELECT CAST(:feed AS text), CAST(:shard AS bigint), 0, 0, 0, '' FROM (SELECT {{template "first_use" .}}) first_use
ON CONFLICT (feed, shard) DO NOTHING

-- name: first_use
-- The first transaction of a shard also acquires an advisory lock, until the shard's row is committed. Other sessions
-- do not see the uncommitted row, so only this lock shows them which session they wait for. The keys of the lock are
-- the feed and the shard. A shard number beyond 32 bits has no such lock.
CASE WHEN CAST(:shard AS bigint) BETWEEN -2147483648 AND 2147483647
  THEN pg_advisory_xact_lock({{template "feed_hash" .}}, CAST(CAST(:shard AS bigint) AS int)) END

-- name: feed_hash
hashtext({{literal (print (table "shards") " " .Name)}})

-- name: bound_waits
SELECT set_config('lock_timeout', :wait::text, true)

-- name: advance_shard
-- It changes nothing if lock_shard ran in another transaction.
UPDATE {{table "shards"}} SET time_ms = :time, ulid_high = :high, ulid_low = :low, witness = :nonces
WHERE feed = :feed AND shard = :shard AND pg_current_xact_id()::text = CAST(:transaction AS text)

-- name: bounds
-- It sets the timeouts of a transaction before it allocates ULIDs, and returns the former values.
SELECT pg_current_xact_id()::text, current_setting('lock_timeout'), :bounds

-- name: bound
set_config(:setting, CAST(:to AS text), true)

-- name: tighter_bound
set_config(:setting, CASE WHEN current_setting(:setting) <> '0'
  AND current_setting(:setting)::interval < CAST(:to AS text)::interval
  THEN current_setting(:setting) ELSE CAST(:to AS text) END, true)

-- name: take_shard
-- It calls the feed's function with the transaction's id. The function fails in any other transaction. After the call,
-- lock_timeout is reset; after an error, the rollback resets it.
SELECT ulid_high, ulid_low, set_config('lock_timeout', CAST(:wait AS text), true), current_setting('fsync'),
  current_setting('full_page_writes')
FROM {{table (print "lock_" .Name)}}(CAST(:shard AS bigint),
  CASE WHEN CAST(:hint AS bigint) <> 0 THEN to_timestamp(CAST(:hint AS bigint) / 1000.0) END, CAST(:word AS text),
  CAST(:transaction AS text))

-- name: usable
-- A transaction that cannot continue refuses every statement.
SELECT 1

-- name: nonces
-- It needs no lock: a transaction sees what it has written, whatever its snapshot, and no other transaction writes its
-- nonces.
SELECT witness FROM {{table "shards"}} WHERE feed = :feed AND shard = :shard

-- name: ulid
-- The ULID with these halves.
{{if eq .ULIDs.Position.Type "uuid"}}CAST(encode(int8send(:high) || int8send(:low), 'hex') AS uuid){{else -}}
int8send(:high) || int8send(:low){{end}}

-- name: millis
-- The time of a ULID. Zeros are appended, because a bytea may be too short.
('x' || encode(substr({{if eq .ULIDs.Position.Type "uuid"}}uuid_send(:ulid){{else}}:ulid{{end}} ||
  decode('000000000000', 'hex'), 1, 6), 'hex'))::bit(48)::bigint

-- name: lock_function
-- allocates ULIDs of a shard, and locks the shard until the transaction ends; ulid_function returns the ULIDs
--
-- If the statement is its own transaction (autocommit), the lock ends with the statement. The function cannot detect
-- that for certain: with the messages Parse and Bind, statement_timestamp() is later than transaction_timestamp() even
-- then. So the function returns NULL unless the caller passes the transaction's id, and ulid_function works only in the
-- transaction that has the lock. If both times are equal, the function fails for a single SELECT. They are also equal
-- in a function, in a DO block and in one message with several statements. These may write after the lock, so the
-- function also tests the text of the statement.
--
-- The allocated ULIDs are stored in a setting that is local to the transaction. The setting ends with the transaction,
-- and a rollback to a savepoint restores it. So ulid_function cannot return a ULID that was rolled back.
--
-- The feed's row is read FOR SHARE. The transaction that drops the feed writes this row first, so it waits, and then
-- sees the shard's row that is inserted here. The greatest ULID is read by a separate statement, which sees the commit
-- of the shard's previous writer. SERIALIZABLE has no such read: it would report a conflict between writers of
-- different shards whose ULIDs are in the same page of the index.
CREATE OR REPLACE FUNCTION {{table (print "lock_" .Name)}}(shard bigint DEFAULT 0, time_hint timestamptz DEFAULT NULL,
  word text DEFAULT NULL, transaction_id text DEFAULT NULL,
  OUT ulid {{.ULIDs.Position.Type}}, OUT ulid_high bigint, OUT ulid_low bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET enable_bitmapscan = off AS $rowfeed$
DECLARE
  lock_shard bigint := COALESCE(shard, 0);
  own text := ' ' || lock_shard || ':'; others text;
  v_time bigint; v_high bigint; v_low bigint; now_ms bigint; hint_ms bigint; random16 bigint; random64 bigint;
  bits bytea; greatest {{.ULIDs.Position.Type}};
  -- the library has its own bounds
  unbounded boolean := word IS NULL AND current_setting('lock_timeout') = '0';
BEGIN
  IF transaction_id <> pg_current_xact_id()::text THEN
    RAISE EXCEPTION 'feed %: no transaction is open', {{feed}} USING ERRCODE = :no_transaction;
  END IF;
  IF transaction_id IS NULL AND statement_timestamp() = transaction_timestamp()
    AND current_query() ~* '^[[:space:]]*SELECT[[:>:]][^;]*;?[[:space:]]*$'
    AND strpos(lower(current_query()), lower(:name)) > 0 THEN
    RAISE EXCEPTION 'feed %: no transaction is open, so the lock would end with its own statement', {{feed}}
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
  SELECT s.time_ms, s.ulid_high, s.ulid_low INTO v_time, v_high, v_low FROM {{table "shards"}} s
    WHERE s.feed = {{feed}} AND s.shard = lock_shard FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM FROM {{table "feeds"}} f WHERE f.name = {{feed}} AND f.state = :active FOR SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'feed % is not ready', {{feed}}
        USING ERRCODE = 'undefined_function', HINT = 'wait until feed add has ended';
    END IF;
    INSERT INTO {{table "shards"}} AS s (feed, shard, time_ms, ulid_high, ulid_low, witness)
      SELECT {{feed}}, lock_shard, 0, 0, 0, '' FROM (SELECT {{template "first_use" .}}) first_use ON CONFLICT DO NOTHING;
    SELECT s.time_ms, s.ulid_high, s.ulid_low INTO v_time, v_high, v_low FROM {{table "shards"}} s
      WHERE s.feed = {{feed}} AND s.shard = lock_shard FOR UPDATE;
  END IF;
  IF unbounded THEN
    PERFORM set_config('lock_timeout', '0', true);
  END IF;
  IF v_time = 0 OR current_setting('transaction_isolation') <> 'serializable' THEN
    SELECT g.{{quote .ULIDs.Position.Name}} INTO greatest FROM {{source}} g WHERE g.{{quote .ULIDs.Shard.Name}} = lock_shard
      ORDER BY g.{{quote .ULIDs.Position.Name}} DESC LIMIT 1;
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
    RAISE EXCEPTION 'feed %, shard %: the hint % is more than a minute ahead of the clock', {{feed}}, lock_shard, time_hint
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
    RAISE EXCEPTION 'feed %, shard %: there is no ULID above those of the shard', {{feed}}, lock_shard
      USING ERRCODE = :no_ulids, HINT = 'rowfeed check names the row that nobody was given a ULID for: delete it';
  END IF;
  UPDATE {{table "shards"}} s SET time_ms = v_time, ulid_high = v_high, ulid_low = v_low + :count,
    witness = CASE WHEN word IS NULL THEN s.witness ELSE array_to_string((string_to_array(concat_ws(' ',
      left(split_part(word, ' ', 1), 40), NULLIF(s.witness, '')), ' ')):newest, ' ') END
    WHERE s.feed = {{feed}} AND s.shard = lock_shard;
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

-- name: ulid_function
-- returns the i-th of the ULIDs that this transaction has allocated last in a shard; the shard may be omitted if the
-- transaction has locked only one
CREATE OR REPLACE FUNCTION {{table (print "ulid_" .Name)}}(i bigint, shard bigint DEFAULT NULL)
RETURNS {{.ULIDs.Position.Type}}
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $rowfeed$
DECLARE
  halves text := current_setting(:setting, true);
BEGIN
  IF shard IS NOT NULL THEN
    halves := split_part(split_part(halves, ' ' || shard || ':', 2), ' ', 1);
  ELSIF strpos(ltrim(halves), ' ') > 0 THEN
    RAISE EXCEPTION 'feed %: this transaction has locked several shards, each with ULIDs of its own', {{feed}}
      USING ERRCODE = 'ambiguous_parameter', HINT = :name_shard;
  ELSE
    halves := split_part(halves, ':', 2);
  END IF;
  IF COALESCE(halves, '') = '' THEN
    RAISE EXCEPTION 'feed %: this transaction has taken no ULIDs%, or a savepoint took them back', {{feed}},
      COALESCE(' of shard ' || shard, '')
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = :lock_first;
  END IF;
  IF i IS NULL OR i < 0 OR i >= :count THEN
    RAISE EXCEPTION 'feed %: % is not between 0 and 99999999999', {{feed}}, i
      USING ERRCODE = 'invalid_parameter_value', HINT = :lock_again;
  END IF;
  RETURN :ulid;
END $rowfeed$

-- name: revoke_shard_functions
-- only roles with a granted right can allocate ULIDs
REVOKE ALL ON FUNCTION {{table (print "lock_" .Name)}}(bigint, timestamptz, text, text),
  {{table (print "ulid_" .Name)}}(bigint, bigint) FROM PUBLIC

-- name: drop_lock_function
-- its function
DROP FUNCTION IF EXISTS {{table (print "lock_" .Name)}}(bigint, timestamptz, text, text)

-- name: drop_ulid_function
-- its function
DROP FUNCTION IF EXISTS {{table (print "ulid_" .Name)}}(bigint, bigint)

-- name: shard_function_state
-- The body of a function, and whether its owner lacks a right that it needs.
SELECT p.prosrc, p.prosecdef AND COALESCE(EXISTS (SELECT 1 FROM pg_class c
    WHERE c.oid IN (to_regclass(:shards::text), to_regclass(:source::text))
      AND NOT has_schema_privilege(p.proowner, c.relnamespace, 'USAGE')) OR EXISTS (
    SELECT 1 FROM (VALUES (:feeds::text, 'SELECT'), (:feeds::text, 'UPDATE'), (:shards::text, 'SELECT'),
      (:shards::text, 'INSERT'), (:shards::text, 'UPDATE'), (:source::text, 'SELECT')) n(on_table, need)
    WHERE NOT has_table_privilege(p.proowner, to_regclass(n.on_table), n.need)), false)
FROM pg_proc p WHERE p.oid = to_regprocedure(:function)
