--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: rowfeed_captured_capture(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_captured_capture() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    AS $$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND NOT (OLD."id" OPERATOR(pg_catalog.<>) NEW."id") THEN
    RETURN NULL;
  END IF;
  INSERT INTO "public"."rowfeed_outbox_captured" (shard, "id") VALUES (NEW."v", NEW."id");
  RETURN NULL;
END
$$;


--
-- Name: rowfeed_composite_capture(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_composite_capture() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    AS $$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' OR TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND (OLD."ns" OPERATOR(pg_catalog.<>) NEW."ns" OR OLD."id" OPERATOR(pg_catalog.<>) NEW."id") THEN
    INSERT INTO "public"."rowfeed_changes_composite" ("ns", "id") VALUES (OLD."ns", OLD."id");
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE' THEN
    INSERT INTO "public"."rowfeed_changes_composite" ("ns", "id") VALUES (NEW."ns", NEW."id");
  END IF;
  RETURN NULL;
END
$$;


--
-- Name: rowfeed_composite_truncate(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_composite_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET row_security TO 'off'
    AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'TRUNCATE of a table with a rowfeed feed needs READ COMMITTED'
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin the transaction in READ COMMITTED, or use DELETE.';
  END IF;
  EXECUTE format('INSERT INTO "public"."rowfeed_changes_composite" ("ns", "id") SELECT "ns", "id" FROM %I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  RETURN NULL;
END
$$;


--
-- Name: rowfeed_lock_blocking(bigint, timestamp with time zone, text, text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_lock_blocking(shard bigint DEFAULT 0, time_hint timestamp with time zone DEFAULT NULL::timestamp with time zone, word text DEFAULT NULL::text, transaction_id text DEFAULT NULL::text, OUT ulid uuid, OUT ulid_high bigint, OUT ulid_low bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $_$
DECLARE
  lock_shard bigint := COALESCE(shard, 0);
  own text := ' ' || lock_shard || ':'; others text;
  v_time bigint; v_high bigint; v_low bigint; now_ms bigint; hint_ms bigint; random16 bigint; random64 bigint;
  bits bytea; greatest uuid;
  -- the library has its own bounds
  unbounded boolean := word IS NULL AND current_setting('lock_timeout') = '0';
BEGIN
  IF transaction_id <> pg_current_xact_id()::text THEN
    RAISE EXCEPTION 'feed %: no transaction is open', 'blocking' USING ERRCODE = '25P01';
  END IF;
  IF transaction_id IS NULL AND statement_timestamp() = transaction_timestamp()
    AND current_query() ~* '^[[:space:]]*SELECT[[:>:]][^;]*;?[[:space:]]*$'
    AND strpos(lower(current_query()), lower('rowfeed_lock_blocking')) > 0 THEN
    RAISE EXCEPTION 'feed %: no transaction is open, so the lock would end with its own statement', 'blocking'
      USING ERRCODE = '25P01', HINT = 'begin a transaction, lock, insert rows with rowfeed_ulid_blocking(i, shard), commit';
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
    WHERE s.feed = 'blocking' AND s.shard = lock_shard FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM FROM "public"."rowfeed_feeds" f WHERE f.name = 'blocking' AND f.state = 'active' FOR SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'feed % is not ready', 'blocking'
        USING ERRCODE = 'undefined_function', HINT = 'wait until feed add has ended';
    END IF;
    INSERT INTO "public"."rowfeed_shards" AS s (feed, shard, time_ms, ulid_high, ulid_low, witness)
      SELECT 'blocking', lock_shard, 0, 0, 0, '' FROM (SELECT CASE WHEN CAST(lock_shard AS bigint) BETWEEN -2147483648 AND 2147483647
  THEN pg_advisory_xact_lock(hashtext('"public"."rowfeed_shards" blocking'), CAST(CAST(lock_shard AS bigint) AS int)) END) first_use ON CONFLICT DO NOTHING;
    SELECT s.time_ms, s.ulid_high, s.ulid_low INTO v_time, v_high, v_low FROM "public"."rowfeed_shards" s
      WHERE s.feed = 'blocking' AND s.shard = lock_shard FOR UPDATE;
  END IF;
  IF unbounded THEN
    PERFORM set_config('lock_timeout', '0', true);
  END IF;
  IF v_time = 0 OR current_setting('transaction_isolation') <> 'serializable' THEN
    SELECT g."u" INTO greatest FROM "public"."blocking" g WHERE g."v" = lock_shard
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
    RAISE EXCEPTION 'feed %, shard %: the hint % is more than a minute ahead of the clock', 'blocking', lock_shard, time_hint
      USING ERRCODE = '22023', HINT = 'leave the hint out, or mend the clock that it comes from';
  END IF;
  -- bytes of a random UUID that are random as a whole
  bits := uuid_send(gen_random_uuid());
  random16 := get_byte(bits, 0) * 256 + get_byte(bits, 1);
  random64 := ('x' || encode(substr(bits, 10, 7) || substr(bits, 3, 1), 'hex'))::bit(64)::bigint;
  SELECT CASE WHEN hint_ms > v_time THEN hint_ms WHEN (v_low & 9223372036854775807) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END,
    CASE WHEN hint_ms > v_time OR (v_low & 9223372036854775807) > 9223372036854775807 - 100000000000 THEN ((CASE WHEN hint_ms > v_time THEN hint_ms WHEN (v_low & 9223372036854775807) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END) << 16) + random16 ELSE v_high END,
    CASE WHEN hint_ms > v_time OR (v_low & 9223372036854775807) > 9223372036854775807 - 100000000000 THEN (random64 & -4611686018427387905) ELSE v_low END
    INTO v_time, v_high, v_low;
  IF v_time > 281474976710655 THEN
    RAISE EXCEPTION 'feed %, shard %: there is no ULID above those of the shard', 'blocking', lock_shard
      USING ERRCODE = '2200H', HINT = 'rowfeed check names the row that nobody was given a ULID for: delete it';
  END IF;
  UPDATE "public"."rowfeed_shards" s SET time_ms = v_time, ulid_high = v_high, ulid_low = v_low + 100000000000,
    witness = CASE WHEN word IS NULL THEN s.witness ELSE array_to_string((string_to_array(concat_ws(' ',
      left(split_part(word, ' ', 1), 40), NULLIF(s.witness, '')), ' '))[1:8], ' ') END
    WHERE s.feed = 'blocking' AND s.shard = lock_shard;
  IF transaction_id IS NOT NULL THEN
    ulid := CAST(encode(int8send(v_high) || int8send(v_low), 'hex') AS uuid);
    ulid_high := v_high;
    ulid_low := v_low;
  END IF;
  -- of each shard the last ones: " shard:high,low"
  others := COALESCE(current_setting('rowfeed.taken_2b0beb03af0d4f31', true), '');
  IF strpos(others, own) > 0 THEN
    others := replace(others, own || split_part(split_part(others, own, 2), ' ', 1), '');
  END IF;
  PERFORM set_config('rowfeed.taken_2b0beb03af0d4f31', others || own || v_high || ',' || v_low, true);
END $_$;


--
-- Name: rowfeed_sharded_capture(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_sharded_capture() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    AS $$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' OR TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND (OLD."id" OPERATOR(pg_catalog.<>) NEW."id") THEN
    INSERT INTO "public"."rowfeed_changes_sharded" ("id") VALUES (OLD."id");
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE' THEN
    INSERT INTO "public"."rowfeed_changes_sharded" ("id") VALUES (NEW."id");
  END IF;
  RETURN NULL;
END
$$;


--
-- Name: rowfeed_sharded_truncate(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_sharded_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET row_security TO 'off'
    AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'TRUNCATE of a table with a rowfeed feed needs READ COMMITTED'
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin the transaction in READ COMMITTED, or use DELETE.';
  END IF;
  EXECUTE format('INSERT INTO "public"."rowfeed_changes_sharded" ("id") SELECT "id" FROM %I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  RETURN NULL;
END
$$;


--
-- Name: rowfeed_single_capture(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_single_capture() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    AS $$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' OR TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND (OLD."id" OPERATOR(pg_catalog.<>) NEW."id") THEN
    INSERT INTO "public"."rowfeed_changes_single" ("id") VALUES (OLD."id");
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE' THEN
    INSERT INTO "public"."rowfeed_changes_single" ("id") VALUES (NEW."id");
  END IF;
  RETURN NULL;
END
$$;


--
-- Name: rowfeed_single_truncate(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_single_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET row_security TO 'off'
    AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'TRUNCATE of a table with a rowfeed feed needs READ COMMITTED'
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin the transaction in READ COMMITTED, or use DELETE.';
  END IF;
  EXECUTE format('INSERT INTO "public"."rowfeed_changes_single" ("id") SELECT "id" FROM %I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  RETURN NULL;
END
$$;


--
-- Name: rowfeed_ulid_blocking(bigint, bigint); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_ulid_blocking(i bigint, shard bigint DEFAULT NULL::bigint) RETURNS uuid
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  halves text := current_setting('rowfeed.taken_2b0beb03af0d4f31', true);
BEGIN
  IF shard IS NOT NULL THEN
    halves := split_part(split_part(halves, ' ' || shard || ':', 2), ' ', 1);
  ELSIF strpos(ltrim(halves), ' ') > 0 THEN
    RAISE EXCEPTION 'feed %: this transaction has locked several shards, each with ULIDs of its own', 'blocking'
      USING ERRCODE = 'ambiguous_parameter', HINT = 'name the shard of the row: rowfeed_ulid_blocking(i, shard)';
  ELSE
    halves := split_part(halves, ':', 2);
  END IF;
  IF COALESCE(halves, '') = '' THEN
    RAISE EXCEPTION 'feed %: this transaction has taken no ULIDs%, or a savepoint took them back', 'blocking',
      COALESCE(' of shard ' || shard, '')
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'begin a transaction, and call rowfeed_lock_blocking first';
  END IF;
  IF i IS NULL OR i < 0 OR i >= 100000000000 THEN
    RAISE EXCEPTION 'feed %: % is not between 0 and 99999999999', 'blocking', i
      USING ERRCODE = 'invalid_parameter_value', HINT = 'call rowfeed_lock_blocking again for more';
  END IF;
  RETURN CAST(encode(int8send(split_part(halves, ',', 1)::bigint) || int8send((split_part(halves, ',', 2)::bigint + i)), 'hex') AS uuid);
END $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: appended; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.appended (
    id bigint NOT NULL,
    v integer NOT NULL
);


--
-- Name: blocking; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.blocking (
    id bigint NOT NULL,
    v integer NOT NULL,
    u uuid NOT NULL
);


--
-- Name: captured; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.captured (
    id bigint NOT NULL,
    v integer NOT NULL
);


--
-- Name: columned; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.columned (
    id bigint NOT NULL,
    v integer NOT NULL,
    feed_sync_id bigint,
    shard integer DEFAULT 0 NOT NULL
);


--
-- Name: composite; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.composite (
    ns character varying(50) NOT NULL,
    id character varying(50) NOT NULL,
    v integer NOT NULL
);


--
-- Name: rowfeed_audit; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_audit (
    id bigint NOT NULL,
    mark text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    actor text NOT NULL,
    act text NOT NULL,
    object text NOT NULL,
    detail text NOT NULL,
    outcome text NOT NULL
);


--
-- Name: rowfeed_audit_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.rowfeed_audit ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.rowfeed_audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rowfeed_changes_columned; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_changes_columned (
    seq bigint NOT NULL,
    id bigint NOT NULL,
    kind smallint DEFAULT 0 NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.1');


--
-- Name: rowfeed_changes_columned_seq_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.rowfeed_changes_columned ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rowfeed_changes_columned_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rowfeed_changes_composite; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_changes_composite (
    seq bigint NOT NULL,
    ns character varying(50) NOT NULL,
    id character varying(50) NOT NULL,
    kind smallint DEFAULT 0 NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.1');


--
-- Name: rowfeed_changes_composite_seq_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.rowfeed_changes_composite ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rowfeed_changes_composite_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rowfeed_changes_sharded; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_changes_sharded (
    seq bigint NOT NULL,
    id bigint NOT NULL,
    kind smallint DEFAULT 0 NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.1');


--
-- Name: rowfeed_changes_sharded_seq_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.rowfeed_changes_sharded ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rowfeed_changes_sharded_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rowfeed_changes_single; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_changes_single (
    seq bigint NOT NULL,
    id bigint NOT NULL,
    kind smallint DEFAULT 0 NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.1');


--
-- Name: rowfeed_changes_single_seq_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.rowfeed_changes_single ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rowfeed_changes_single_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rowfeed_consumers; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_consumers (
    consumer text NOT NULL COLLATE pg_catalog."C",
    feed text NOT NULL COLLATE pg_catalog."C",
    shard_count integer NOT NULL,
    paused smallint NOT NULL,
    version bigint NOT NULL
);


--
-- Name: rowfeed_cursors; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_cursors (
    consumer text NOT NULL COLLATE pg_catalog."C",
    feed text NOT NULL COLLATE pg_catalog."C",
    shard bigint NOT NULL,
    shard_count integer NOT NULL,
    value text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    epoch bigint NOT NULL,
    version bigint NOT NULL,
    paused smallint NOT NULL,
    aside bigint DEFAULT 0 NOT NULL,
    updated_at bigint NOT NULL,
    failure text,
    failing_since bigint,
    attempts bigint,
    next_try bigint,
    target text
)
WITH (fillfactor='10');


--
-- Name: rowfeed_dead_letters; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_dead_letters (
    consumer text NOT NULL COLLATE pg_catalog."C",
    feed text NOT NULL COLLATE pg_catalog."C",
    shard bigint NOT NULL,
    key_digest text NOT NULL COLLATE pg_catalog."C",
    key_json text NOT NULL,
    generation bigint NOT NULL,
    "position" text NOT NULL COLLATE pg_catalog."C",
    op text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    attempts bigint NOT NULL,
    collapsed bigint NOT NULL,
    error text NOT NULL,
    first_at bigint NOT NULL,
    last_at bigint NOT NULL,
    data_shard bigint
);


--
-- Name: rowfeed_feed_appended; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_feed_appended (
    shard bigint NOT NULL,
    ulid uuid NOT NULL,
    id bigint NOT NULL
);


--
-- Name: rowfeed_feed_captured; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_feed_captured (
    shard bigint NOT NULL,
    ulid uuid NOT NULL,
    id bigint NOT NULL
);


--
-- Name: rowfeed_feeds; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_feeds (
    name text NOT NULL,
    mode text NOT NULL,
    capture text NOT NULL,
    state text NOT NULL,
    generation bigint NOT NULL,
    source_schema text,
    source_table text NOT NULL,
    key_columns text NOT NULL,
    delivered_columns text,
    options text NOT NULL,
    data_shards integer NOT NULL,
    shard_column text,
    tombstones_seconds bigint NOT NULL,
    tombstones_below bigint NOT NULL,
    database_identity text,
    fill_after text,
    created_at bigint NOT NULL,
    failure text,
    failing_since bigint,
    attempts bigint,
    next_try bigint
);


--
-- Name: rowfeed_leases; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_leases (
    name text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    expires_at bigint,
    acquired_at bigint NOT NULL,
    renewals bigint NOT NULL
)
WITH (fillfactor='10');


--
-- Name: rowfeed_outbox_appended; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_outbox_appended (
    order_sequence bigint NOT NULL,
    shard bigint DEFAULT 0 NOT NULL,
    time_hint bigint,
    appended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    id bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.1');


--
-- Name: rowfeed_outbox_appended_order_sequence_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.rowfeed_outbox_appended ALTER COLUMN order_sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rowfeed_outbox_appended_order_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rowfeed_outbox_captured; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_outbox_captured (
    order_sequence bigint NOT NULL,
    shard bigint DEFAULT 0 NOT NULL,
    time_hint bigint,
    appended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    id bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.1');


--
-- Name: rowfeed_outbox_captured_order_sequence_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.rowfeed_outbox_captured ALTER COLUMN order_sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rowfeed_outbox_captured_order_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rowfeed_positions_columned; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_positions_columned (
    id bigint NOT NULL,
    feed_sync_id bigint NOT NULL,
    shard integer NOT NULL,
    bucket integer NOT NULL,
    deleted smallint NOT NULL,
    hidden smallint NOT NULL,
    published_at bigint NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: rowfeed_positions_composite; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_positions_composite (
    ns character varying(50) NOT NULL,
    id character varying(50) NOT NULL,
    feed_sync_id bigint NOT NULL,
    shard integer NOT NULL,
    bucket integer NOT NULL,
    deleted smallint NOT NULL,
    hidden smallint NOT NULL,
    published_at bigint NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: rowfeed_positions_sharded; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_positions_sharded (
    id bigint NOT NULL,
    feed_sync_id bigint NOT NULL,
    shard integer NOT NULL,
    bucket integer NOT NULL,
    deleted smallint NOT NULL,
    hidden smallint NOT NULL,
    published_at bigint NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: rowfeed_positions_single; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_positions_single (
    id bigint NOT NULL,
    feed_sync_id bigint NOT NULL,
    shard integer NOT NULL,
    bucket integer NOT NULL,
    deleted smallint NOT NULL,
    hidden smallint NOT NULL,
    published_at bigint NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: rowfeed_processed; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_processed (
    consumer text NOT NULL COLLATE pg_catalog."C",
    feed text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    shard bigint NOT NULL,
    "position" text NOT NULL COLLATE pg_catalog."C",
    processed_at bigint NOT NULL
);


--
-- Name: rowfeed_schema_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_schema_version (
    version integer NOT NULL,
    applied_at bigint NOT NULL
);


--
-- Name: rowfeed_sequences; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_sequences (
    name text NOT NULL,
    value bigint NOT NULL,
    version bigint NOT NULL,
    updated_at bigint NOT NULL,
    term bigint
)
WITH (fillfactor='10');


--
-- Name: rowfeed_shards; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_shards (
    feed text NOT NULL COLLATE pg_catalog."C",
    shard bigint NOT NULL,
    time_ms bigint NOT NULL,
    ulid_high bigint NOT NULL,
    ulid_low bigint NOT NULL,
    below_high bigint DEFAULT 0 NOT NULL,
    below_low bigint DEFAULT 0 NOT NULL,
    witness text NOT NULL COLLATE pg_catalog."C",
    live_from bigint DEFAULT 0 NOT NULL,
    filled_by bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='10');


--
-- Name: rowfeed_terms; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_terms (
    feed text NOT NULL,
    term bigint NOT NULL,
    upto bigint NOT NULL,
    ended_at bigint NOT NULL
);


--
-- Name: rowfeed_tokens; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_tokens (
    name text NOT NULL COLLATE pg_catalog."C",
    sha256 text NOT NULL COLLATE pg_catalog."C",
    grants text NOT NULL,
    view text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);


--
-- Name: saved; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.saved (
    feed character varying(50) NOT NULL,
    after character varying(100) NOT NULL,
    entries text
);


--
-- Name: sharded; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sharded (
    id bigint NOT NULL,
    v integer NOT NULL
);


--
-- Name: single; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.single (
    id bigint NOT NULL,
    v integer NOT NULL
);


--
-- Name: texts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.texts (
    token character varying(100) NOT NULL
);


--
-- Data for Name: appended; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.appended VALUES (1, 1);
INSERT INTO public.appended VALUES (2, 1);
INSERT INTO public.appended VALUES (3, 1);
INSERT INTO public.appended VALUES (4, 1);
INSERT INTO public.appended VALUES (5, 1);
INSERT INTO public.appended VALUES (6, 1);


--
-- Data for Name: blocking; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.blocking VALUES (1, 1, '01a21fca-6d42-babb-b7cc-5540092e24e4');
INSERT INTO public.blocking VALUES (2, 1, '01a21fca-6d9c-113c-811e-aa1321b4fd1b');
INSERT INTO public.blocking VALUES (3, 1, '01a21fca-6dea-f01c-af43-a98e8411ef59');
INSERT INTO public.blocking VALUES (4, 1, '01a21fca-6e35-c7a2-b4bf-71ed6ce1d3ac');
INSERT INTO public.blocking VALUES (5, 1, '01a21fca-6fbf-47a8-97b0-903fb3555e8b');
INSERT INTO public.blocking VALUES (6, 1, '01a21fca-6fc4-3533-0c5c-2c118ae5d321');


--
-- Data for Name: captured; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.captured VALUES (1, 1);
INSERT INTO public.captured VALUES (2, 1);
INSERT INTO public.captured VALUES (3, 1);
INSERT INTO public.captured VALUES (4, 1);
INSERT INTO public.captured VALUES (5, 1);
INSERT INTO public.captured VALUES (6, 1);


--
-- Data for Name: columned; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.columned VALUES (1, 1, 1, 0);
INSERT INTO public.columned VALUES (2, 1, 2, 0);
INSERT INTO public.columned VALUES (4, 1, 4, 0);
INSERT INTO public.columned VALUES (5, 1, 6, 0);
INSERT INTO public.columned VALUES (6, 1, NULL, 0);


--
-- Data for Name: composite; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.composite VALUES ('ü', '1', 1);
INSERT INTO public.composite VALUES ('ü', '2', 1);
INSERT INTO public.composite VALUES ('ü', '4', 1);
INSERT INTO public.composite VALUES ('ü', '5', 1);
INSERT INTO public.composite VALUES ('ü', '6', 1);


--
-- Data for Name: rowfeed_audit; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_audit VALUES (1, 'pzykui5na4hwsnmqxvg37mi2ue', 1795829690318501, 'ü@stored', 'consumer pause', 'consumer paused', 'one feed', 'done');


--
-- Data for Name: rowfeed_changes_columned; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: rowfeed_changes_composite; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_changes_composite OVERRIDING SYSTEM VALUE VALUES (7, 'ü', '6', 0, '2026-11-28 01:34:47.038261+00');


--
-- Data for Name: rowfeed_changes_sharded; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_changes_sharded OVERRIDING SYSTEM VALUE VALUES (7, 6, 0, '2026-11-28 01:34:47.711595+00');


--
-- Data for Name: rowfeed_changes_single; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_changes_single OVERRIDING SYSTEM VALUE VALUES (7, 6, 0, '2026-11-28 01:34:46.692783+00');


--
-- Data for Name: rowfeed_consumers; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_consumers VALUES ('app', 'appended', 1, 0, 1);
INSERT INTO public.rowfeed_consumers VALUES ('app', 'captured', 1, 0, 1);
INSERT INTO public.rowfeed_consumers VALUES ('app', 'blocking', 1, 0, 1);


--
-- Data for Name: rowfeed_cursors; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_cursors VALUES ('app', 'single', 0, 1, '4.6tu1brsp95', 1, 0, 6, 0, 1, 1795829686680347, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('app', 'composite', 0, 1, '4.3vgofboq9p', 1, 0, 6, 0, 1, 1795829686972618, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('app', 'columned', 0, 1, '4.62e6jtlenr', 1, 0, 6, 0, 1, 1795829687313764, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('app', 'sharded', 0, 1, '4.7sqrf2hvdu', 1, 0, 6, 0, 1, 1795829687527577, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('halves', 'sharded', 0, 2, '6.7sqrf2hvdu', 1, 0, 3, 0, 0, 1795829687634924, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('halves', 'sharded', 1, 2, '6.7sqrf2hvdu', 1, 0, 1, 0, 0, 1795829687640167, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('paused', 'sharded', 0, 1, '6.7sqrf2hvdu', 1, 0, 7, 1, 0, 1795829687699724, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('app', 'appended', 1, 1, '01M8FWMSPNSEYK3NMNV3G3WV29', 1, 0, 4, 0, 1, 1795829688210450, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('app', 'captured', 1, 1, '01M8FWMTEM2VASH7RPFSN8WJ2N', 1, 0, 4, 0, 1, 1795829689152827, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('app', 'blocking', 1, 1, '01M8FWMVHNRYHB9FVHXNPE3MXC', 1, 0, 4, 0, 1, 1795829690235155, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: rowfeed_dead_letters; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_dead_letters VALUES ('app', 'single', 0, '9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8', '{"id":2}', 1, '2', 'upsert', 'aside', 2, 0, 'the handler fails for this row', 1795829686676623, 1795829686676629, 0);
INSERT INTO public.rowfeed_dead_letters VALUES ('app', 'composite', 0, 'c1a6bcd0cdf9d1276383bca80fe614acacefc699915ad049916febfc1bdaf635', '{"ns":"ü","id":"2"}', 1, '2', 'upsert', 'aside', 2, 0, 'the handler fails for this row', 1795829686964320, 1795829686964324, 0);
INSERT INTO public.rowfeed_dead_letters VALUES ('app', 'columned', 0, '9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8', '{"id":2}', 1, '2', 'upsert', 'aside', 2, 0, 'the handler fails for this row', 1795829687309320, 1795829687309325, 0);
INSERT INTO public.rowfeed_dead_letters VALUES ('app', 'sharded', 0, '9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8', '{"id":2}', 1, '2', 'upsert', 'aside', 2, 0, 'the handler fails for this row', 1795829687480842, 1795829687480849, 5);
INSERT INTO public.rowfeed_dead_letters VALUES ('app', 'appended', 1, '9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8', '{"id":2}', 1, '01M8FWMSPNSEYK3NMNV3G3WV27', 'upsert', 'aside', 2, 0, 'the handler fails for this row', 1795829688194524, 1795829688194528, 1);
INSERT INTO public.rowfeed_dead_letters VALUES ('app', 'captured', 1, '9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8', '{"id":2}', 1, '01M8FWMTEM2VASH7RPFSN8WJ2K', 'upsert', 'aside', 2, 0, 'the handler fails for this row', 1795829689148528, 1795829689148535, 1);
INSERT INTO public.rowfeed_dead_letters VALUES ('app', 'blocking', 1, '9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8', '{"id":2}', 1, '01M8FWMVCW24Y827NA2CGV9Z8V', 'upsert', 'aside', 2, 0, 'the handler fails for this row', 1795829690200637, 1795829690200644, 1);


--
-- Data for Name: rowfeed_feed_appended; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_feed_appended VALUES (1, '01a21fca-66d5-cbbd-31d6-95d8e03e6c46', 1);
INSERT INTO public.rowfeed_feed_appended VALUES (1, '01a21fca-66d5-cbbd-31d6-95d8e03e6c47', 2);
INSERT INTO public.rowfeed_feed_appended VALUES (1, '01a21fca-66d5-cbbd-31d6-95d8e03e6c48', 3);
INSERT INTO public.rowfeed_feed_appended VALUES (1, '01a21fca-66d5-cbbd-31d6-95d8e03e6c49', 4);
INSERT INTO public.rowfeed_feed_appended VALUES (1, '01a21fca-67e3-b18a-96f6-82df80ab5bdd', 5);


--
-- Data for Name: rowfeed_feed_captured; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_feed_captured VALUES (1, '01a21fca-69d4-16d5-989f-167e6a8e4852', 1);
INSERT INTO public.rowfeed_feed_captured VALUES (1, '01a21fca-69d4-16d5-989f-167e6a8e4853', 2);
INSERT INTO public.rowfeed_feed_captured VALUES (1, '01a21fca-69d4-16d5-989f-167e6a8e4854', 3);
INSERT INTO public.rowfeed_feed_captured VALUES (1, '01a21fca-69d4-16d5-989f-167e6a8e4855', 4);
INSERT INTO public.rowfeed_feed_captured VALUES (1, '01a21fca-6b4f-109f-3746-76a7b296716f', 5);


--
-- Data for Name: rowfeed_feeds; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_feeds VALUES ('blocking', 'blocking', 'none', 'active', 1, '', 'blocking', '[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]', NULL, '{"primary_key":true,"ulids":{"Position":{"name":"u","type":"uuid","decl":"uuid","kind":"text","exact":true},"Shard":{"name":"v","type":"integer","decl":"integer","kind":"integer","exact":true},"Index":"blocking_feed"}}', 1, 'v', 0, 0, 'system 7713029753032782860, timeline 00000001, database 16384, table 16390', NULL, 1795829689279514, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_feeds VALUES ('single', 'sequence', 'trigger', 'active', 1, '', 'single', '[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]', NULL, '{"primary_key":true}', 1, NULL, 2592000, 0, 'system 7713029753032782860, timeline 00000001, database 16384, table 16390', NULL, 1795829686481283, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_feeds VALUES ('composite', 'sequence', 'trigger', 'active', 1, '', 'composite', '[{"name":"ns","type":"character varying(50)","decl":"character varying(50)","kind":"text","stored":"ns","exact":true},{"name":"id","type":"character varying(50)","decl":"character varying(50)","kind":"text","stored":"id","exact":true}]', NULL, '{"primary_key":true}', 1, NULL, 2592000, 0, 'system 7713029753032782860, timeline 00000001, database 16384, table 16390', NULL, 1795829686717895, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_feeds VALUES ('columned', 'sequence', 'column', 'active', 1, '', 'columned', '[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]', NULL, '{"primary_key":true,"added":["feed_sync_id","shard"]}', 1, NULL, 2592000, 0, 'system 7713029753032782860, timeline 00000001, database 16384, table 16390', NULL, 1795829687085439, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_feeds VALUES ('sharded', 'sequence', 'trigger', 'active', 1, '', 'sharded', '[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]', NULL, '{"primary_key":true}', 8, NULL, 2592000, 0, 'system 7713029753032782860, timeline 00000001, database 16384, table 16390', NULL, 1795829687345448, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_feeds VALUES ('appended', 'outbox', 'app', 'active', 1, '', 'appended', '[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]', NULL, '{"primary_key":true,"ulids":{"Position":{"name":"ulid","type":"uuid","decl":"uuid","kind":"text"},"Shard":{"name":"shard","type":"bigint","kind":"integer"},"Index":"place"},"runs":1}', 1, NULL, 0, 0, 'system 7713029753032782860, timeline 00000001, database 16384, table 16390', NULL, 1795829687768268, NULL, NULL, NULL, NULL);
INSERT INTO public.rowfeed_feeds VALUES ('captured', 'outbox', 'trigger', 'active', 1, '', 'captured', '[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]', NULL, '{"primary_key":true,"ulids":{"Position":{"name":"ulid","type":"uuid","decl":"uuid","kind":"text"},"Shard":{"name":"shard","type":"bigint","kind":"integer"},"Index":"place"},"runs":1}', 1, 'v', 0, 0, 'system 7713029753032782860, timeline 00000001, database 16384, table 16390', NULL, 1795829688396884, NULL, NULL, NULL, NULL);


--
-- Data for Name: rowfeed_leases; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_leases VALUES ('stored', 'vm/5098/iqmj7b75mnubho2ja2hsxswnjr', 1, 1795833290337219, 1795829690337226, 0);


--
-- Data for Name: rowfeed_outbox_appended; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_outbox_appended OVERRIDING SYSTEM VALUE VALUES (6, 1, NULL, '2026-11-28 01:34:48.303968+00', 6);


--
-- Data for Name: rowfeed_outbox_captured; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_outbox_captured OVERRIDING SYSTEM VALUE VALUES (6, 1, NULL, '2026-11-28 01:34:49.17762+00', 6);


--
-- Data for Name: rowfeed_positions_columned; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_positions_columned VALUES (3, 5, 0, 0, 1, 0, 1795829687334743);


--
-- Data for Name: rowfeed_positions_composite; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_positions_composite VALUES ('ü', '1', 1, 0, 0, 0, 0, 1795829686753458);
INSERT INTO public.rowfeed_positions_composite VALUES ('ü', '2', 2, 0, 0, 0, 0, 1795829686753458);
INSERT INTO public.rowfeed_positions_composite VALUES ('ü', '4', 4, 0, 0, 0, 0, 1795829686753458);
INSERT INTO public.rowfeed_positions_composite VALUES ('ü', '3', 5, 0, 0, 1, 0, 1795829686975962);
INSERT INTO public.rowfeed_positions_composite VALUES ('ü', '5', 6, 0, 0, 0, 0, 1795829686975962);


--
-- Data for Name: rowfeed_positions_sharded; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_positions_sharded VALUES (1, 1, 7, 7, 0, 0, 1795829687364412);
INSERT INTO public.rowfeed_positions_sharded VALUES (2, 2, 5, 5, 0, 0, 1795829687364412);
INSERT INTO public.rowfeed_positions_sharded VALUES (4, 4, 0, 0, 0, 0, 1795829687364412);
INSERT INTO public.rowfeed_positions_sharded VALUES (3, 5, 3, 3, 1, 0, 1795829687541330);
INSERT INTO public.rowfeed_positions_sharded VALUES (5, 6, 6, 6, 0, 0, 1795829687541330);


--
-- Data for Name: rowfeed_positions_single; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_positions_single VALUES (1, 1, 0, 0, 0, 0, 1795829686517766);
INSERT INTO public.rowfeed_positions_single VALUES (2, 2, 0, 0, 0, 0, 1795829686517766);
INSERT INTO public.rowfeed_positions_single VALUES (4, 4, 0, 0, 0, 0, 1795829686517766);
INSERT INTO public.rowfeed_positions_single VALUES (3, 5, 0, 0, 1, 0, 1795829686688445);
INSERT INTO public.rowfeed_positions_single VALUES (5, 6, 0, 0, 0, 0, 1795829686688445);


--
-- Data for Name: rowfeed_processed; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_processed VALUES ('marks', 'sharded', 1, 7, '00000000000000000011j19gn9faps', 1795829687710598);


--
-- Data for Name: rowfeed_schema_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_schema_version VALUES (11, 1795829686448254);


--
-- Data for Name: rowfeed_sequences; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_sequences VALUES ('appended', 0, 0, 1795829687768785, NULL);
INSERT INTO public.rowfeed_sequences VALUES ('single', 6, 2, 1795829686688445, 244024333985061);
INSERT INTO public.rowfeed_sequences VALUES ('captured', 0, 0, 1795829688398915, NULL);
INSERT INTO public.rowfeed_sequences VALUES ('composite', 6, 2, 1795829686975962, 140214018009401);
INSERT INTO public.rowfeed_sequences VALUES ('blocking', 0, 0, 1795829689280397, NULL);
INSERT INTO public.rowfeed_sequences VALUES ('columned', 6, 2, 1795829687334743, 213793403222779);
INSERT INTO public.rowfeed_sequences VALUES ('sharded', 6, 2, 1795829687541330, 277999780429246);


--
-- Data for Name: rowfeed_shards; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_shards VALUES ('captured', 1, 1795829689167, 117691494509252767, 3983001383083602288, 0, 0, '', 1795829688788, 0);
INSERT INTO public.rowfeed_shards VALUES ('appended', 1, 1795829688291, 117691494451884426, -7568718227301508130, 0, 0, '', 1795829688021, 0);
INSERT INTO public.rowfeed_shards VALUES ('blocking', 1, 1795829690308, 117691494584038707, 890635380168899361, 0, 0, '4cz7FSAATYRaLmEh 19M3V645Ut3rGlLG UwLN2YL9I2bJYnP7 gWfPhmxavuN4bLvn nF85A-O6jHpYZsnl ASJlSl_Uxy8_1H9Z', 0, 0);


--
-- Data for Name: rowfeed_terms; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: rowfeed_tokens; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_tokens VALUES ('stored', '792e6b2824a4d018398ca7b4922a81facd8b5eb55f6572c568cfaed034ae32eb', '[{"right":"read","feed":"single"}]', '{}', 1795829690376658, NULL, NULL);


--
-- Data for Name: saved; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.saved VALUES ('single', '4.6tu1brsp95', '{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}
{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}
{"position":"4","shard":0,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}
{"position":"6","shard":0,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}');
INSERT INTO public.saved VALUES ('composite', '4.3vgofboq9p', '{"position":"1","shard":0,"op":"upsert","key":{"ns":"ü","id":"1"},"row":{"ns":"ü","id":"1","v":1}}
{"position":"2","shard":0,"op":"upsert","key":{"ns":"ü","id":"2"},"row":{"ns":"ü","id":"2","v":1}}
{"position":"4","shard":0,"op":"upsert","key":{"ns":"ü","id":"4"},"row":{"ns":"ü","id":"4","v":1}}
{"position":"6","shard":0,"op":"upsert","key":{"ns":"ü","id":"5"},"row":{"ns":"ü","id":"5","v":1}}');
INSERT INTO public.saved VALUES ('columned', '4.62e6jtlenr', '{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}
{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}
{"position":"4","shard":0,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}
{"position":"6","shard":0,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}');
INSERT INTO public.saved VALUES ('sharded', '4.7sqrf2hvdu', '{"position":"1","shard":7,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}
{"position":"2","shard":5,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}
{"position":"4","shard":0,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}
{"position":"6","shard":6,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}');
INSERT INTO public.saved VALUES ('appended', '01M8FWMSPNSEYK3NMNV3G3WV29', '{"position":"01M8FWMSPNSEYK3NMNV3G3WV26","shard":1,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}
{"position":"01M8FWMSPNSEYK3NMNV3G3WV27","shard":1,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}
{"position":"01M8FWMSPNSEYK3NMNV3G3WV28","shard":1,"op":"upsert","key":{"id":3},"row":{"id":3,"v":1}}
{"position":"01M8FWMSPNSEYK3NMNV3G3WV29","shard":1,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}
{"position":"01M8FWMSZ3P659DXM2VY0APPYX","shard":1,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}');
INSERT INTO public.saved VALUES ('captured', '01M8FWMTEM2VASH7RPFSN8WJ2N', '{"position":"01M8FWMTEM2VASH7RPFSN8WJ2J","shard":1,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}
{"position":"01M8FWMTEM2VASH7RPFSN8WJ2K","shard":1,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}
{"position":"01M8FWMTEM2VASH7RPFSN8WJ2M","shard":1,"op":"upsert","key":{"id":3},"row":{"id":3,"v":1}}
{"position":"01M8FWMTEM2VASH7RPFSN8WJ2N","shard":1,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}
{"position":"01M8FWMTTF22FKEHKPMYS9CWBF","shard":1,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}');
INSERT INTO public.saved VALUES ('blocking', '01M8FWMVHNRYHB9FVHXNPE3MXC', '{"position":"01M8FWMVA2QAXVFK2N804JW974","shard":1,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1,"u":"01a21fca-6d42-babb-b7cc-5540092e24e4"}}
{"position":"01M8FWMVCW24Y827NA2CGV9Z8V","shard":1,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1,"u":"01a21fca-6d9c-113c-811e-aa1321b4fd1b"}}
{"position":"01M8FWMVFAY0EAYGX9HT213VTS","shard":1,"op":"upsert","key":{"id":3},"row":{"id":3,"v":1,"u":"01a21fca-6dea-f01c-af43-a98e8411ef59"}}
{"position":"01M8FWMVHNRYHB9FVHXNPE3MXC","shard":1,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1,"u":"01a21fca-6e35-c7a2-b4bf-71ed6ce1d3ac"}}
{"position":"01M8FWMVXZ8YM9FC4G7YSNAQMB","shard":1,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1,"u":"01a21fca-6fbf-47a8-97b0-903fb3555e8b"}}');


--
-- Data for Name: sharded; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.sharded VALUES (1, 1);
INSERT INTO public.sharded VALUES (2, 1);
INSERT INTO public.sharded VALUES (4, 1);
INSERT INTO public.sharded VALUES (5, 1);
INSERT INTO public.sharded VALUES (6, 1);


--
-- Data for Name: single; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.single VALUES (1, 1);
INSERT INTO public.single VALUES (2, 1);
INSERT INTO public.single VALUES (4, 1);
INSERT INTO public.single VALUES (5, 1);
INSERT INTO public.single VALUES (6, 1);


--
-- Data for Name: texts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.texts VALUES ('rf_Cip-J85vtdNJMDALW7vMX-7KiRM09PDFngf1G0cRHZo');


--
-- Name: rowfeed_audit_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.rowfeed_audit_id_seq', 1, true);


--
-- Name: rowfeed_changes_columned_seq_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.rowfeed_changes_columned_seq_seq', 1, true);


--
-- Name: rowfeed_changes_composite_seq_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.rowfeed_changes_composite_seq_seq', 7, true);


--
-- Name: rowfeed_changes_sharded_seq_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.rowfeed_changes_sharded_seq_seq', 7, true);


--
-- Name: rowfeed_changes_single_seq_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.rowfeed_changes_single_seq_seq', 7, true);


--
-- Name: rowfeed_outbox_appended_order_sequence_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.rowfeed_outbox_appended_order_sequence_seq', 6, true);


--
-- Name: rowfeed_outbox_captured_order_sequence_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.rowfeed_outbox_captured_order_sequence_seq', 6, true);


--
-- Name: appended appended_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.appended
    ADD CONSTRAINT appended_pkey PRIMARY KEY (id);


--
-- Name: blocking blocking_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.blocking
    ADD CONSTRAINT blocking_pkey PRIMARY KEY (id);


--
-- Name: captured captured_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.captured
    ADD CONSTRAINT captured_pkey PRIMARY KEY (id);


--
-- Name: columned columned_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.columned
    ADD CONSTRAINT columned_pkey PRIMARY KEY (id);


--
-- Name: composite composite_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.composite
    ADD CONSTRAINT composite_pkey PRIMARY KEY (ns, id);


--
-- Name: rowfeed_audit rowfeed_audit_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_audit
    ADD CONSTRAINT rowfeed_audit_pkey PRIMARY KEY (id);


--
-- Name: rowfeed_changes_columned rowfeed_changes_columned_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_changes_columned
    ADD CONSTRAINT rowfeed_changes_columned_pkey PRIMARY KEY (seq);


--
-- Name: rowfeed_changes_composite rowfeed_changes_composite_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_changes_composite
    ADD CONSTRAINT rowfeed_changes_composite_pkey PRIMARY KEY (seq);


--
-- Name: rowfeed_changes_sharded rowfeed_changes_sharded_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_changes_sharded
    ADD CONSTRAINT rowfeed_changes_sharded_pkey PRIMARY KEY (seq);


--
-- Name: rowfeed_changes_single rowfeed_changes_single_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_changes_single
    ADD CONSTRAINT rowfeed_changes_single_pkey PRIMARY KEY (seq);


--
-- Name: rowfeed_consumers rowfeed_consumers_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_consumers
    ADD CONSTRAINT rowfeed_consumers_pkey PRIMARY KEY (consumer, feed);


--
-- Name: rowfeed_cursors rowfeed_cursors_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_cursors
    ADD CONSTRAINT rowfeed_cursors_pkey PRIMARY KEY (consumer, feed, shard);


--
-- Name: rowfeed_dead_letters rowfeed_dead_letters_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_dead_letters
    ADD CONSTRAINT rowfeed_dead_letters_pkey PRIMARY KEY (consumer, feed, shard, key_digest);


--
-- Name: rowfeed_feed_appended rowfeed_feed_appended_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_feed_appended
    ADD CONSTRAINT rowfeed_feed_appended_id_key UNIQUE (id);


--
-- Name: rowfeed_feed_appended rowfeed_feed_appended_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_feed_appended
    ADD CONSTRAINT rowfeed_feed_appended_pkey PRIMARY KEY (shard, ulid);


--
-- Name: rowfeed_feed_captured rowfeed_feed_captured_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_feed_captured
    ADD CONSTRAINT rowfeed_feed_captured_id_key UNIQUE (id);


--
-- Name: rowfeed_feed_captured rowfeed_feed_captured_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_feed_captured
    ADD CONSTRAINT rowfeed_feed_captured_pkey PRIMARY KEY (shard, ulid);


--
-- Name: rowfeed_feeds rowfeed_feeds_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_feeds
    ADD CONSTRAINT rowfeed_feeds_pkey PRIMARY KEY (name);


--
-- Name: rowfeed_leases rowfeed_leases_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_leases
    ADD CONSTRAINT rowfeed_leases_pkey PRIMARY KEY (name);


--
-- Name: rowfeed_outbox_appended rowfeed_outbox_appended_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_outbox_appended
    ADD CONSTRAINT rowfeed_outbox_appended_pkey PRIMARY KEY (order_sequence);


--
-- Name: rowfeed_outbox_captured rowfeed_outbox_captured_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_outbox_captured
    ADD CONSTRAINT rowfeed_outbox_captured_pkey PRIMARY KEY (order_sequence);


--
-- Name: rowfeed_positions_columned rowfeed_positions_columned_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_positions_columned
    ADD CONSTRAINT rowfeed_positions_columned_pkey PRIMARY KEY (id);


--
-- Name: rowfeed_positions_composite rowfeed_positions_composite_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_positions_composite
    ADD CONSTRAINT rowfeed_positions_composite_pkey PRIMARY KEY (ns, id);


--
-- Name: rowfeed_positions_sharded rowfeed_positions_sharded_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_positions_sharded
    ADD CONSTRAINT rowfeed_positions_sharded_pkey PRIMARY KEY (id);


--
-- Name: rowfeed_positions_single rowfeed_positions_single_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_positions_single
    ADD CONSTRAINT rowfeed_positions_single_pkey PRIMARY KEY (id);


--
-- Name: rowfeed_processed rowfeed_processed_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_processed
    ADD CONSTRAINT rowfeed_processed_pkey PRIMARY KEY (consumer, feed, generation, shard, "position");


--
-- Name: rowfeed_schema_version rowfeed_schema_version_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_schema_version
    ADD CONSTRAINT rowfeed_schema_version_pkey PRIMARY KEY (version);


--
-- Name: rowfeed_sequences rowfeed_sequences_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_sequences
    ADD CONSTRAINT rowfeed_sequences_pkey PRIMARY KEY (name);


--
-- Name: rowfeed_shards rowfeed_shards_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_shards
    ADD CONSTRAINT rowfeed_shards_pkey PRIMARY KEY (feed, shard);


--
-- Name: rowfeed_terms rowfeed_terms_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_terms
    ADD CONSTRAINT rowfeed_terms_pkey PRIMARY KEY (feed, term);


--
-- Name: rowfeed_tokens rowfeed_tokens_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_tokens
    ADD CONSTRAINT rowfeed_tokens_pkey PRIMARY KEY (name);


--
-- Name: rowfeed_tokens rowfeed_tokens_sha256_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_tokens
    ADD CONSTRAINT rowfeed_tokens_sha256_key UNIQUE (sha256);


--
-- Name: saved saved_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.saved
    ADD CONSTRAINT saved_pkey PRIMARY KEY (feed);


--
-- Name: sharded sharded_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sharded
    ADD CONSTRAINT sharded_pkey PRIMARY KEY (id);


--
-- Name: single single_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.single
    ADD CONSTRAINT single_pkey PRIMARY KEY (id);


--
-- Name: blocking_feed; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX blocking_feed ON public.blocking USING btree (v, u);


--
-- Name: rowfeed_appended_outbox; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_appended_outbox ON public.rowfeed_outbox_appended USING btree (shard, order_sequence);


--
-- Name: rowfeed_captured_outbox; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_captured_outbox ON public.rowfeed_outbox_captured USING btree (shard, order_sequence);


--
-- Name: rowfeed_columned_deleted; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_columned_deleted ON public.rowfeed_positions_columned USING btree (feed_sync_id) WHERE (deleted = 1);


--
-- Name: rowfeed_columned_position; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX rowfeed_columned_position ON public.rowfeed_positions_columned USING btree (feed_sync_id);


--
-- Name: rowfeed_columned_row_position; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_columned_row_position ON public.columned USING btree (feed_sync_id, shard) WHERE (feed_sync_id IS NOT NULL);


--
-- Name: rowfeed_columned_row_waiting; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_columned_row_waiting ON public.columned USING btree (id) WHERE (feed_sync_id IS NULL);


--
-- Name: rowfeed_composite_deleted; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_composite_deleted ON public.rowfeed_positions_composite USING btree (feed_sync_id) WHERE (deleted = 1);


--
-- Name: rowfeed_composite_position; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX rowfeed_composite_position ON public.rowfeed_positions_composite USING btree (feed_sync_id);


--
-- Name: rowfeed_dead_letters_first; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_dead_letters_first ON public.rowfeed_dead_letters USING btree (consumer, feed, shard, first_at, key_digest);


--
-- Name: rowfeed_sharded_bucket; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_sharded_bucket ON public.rowfeed_positions_sharded USING btree (bucket, feed_sync_id, shard);


--
-- Name: rowfeed_sharded_deleted; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_sharded_deleted ON public.rowfeed_positions_sharded USING btree (feed_sync_id) WHERE (deleted = 1);


--
-- Name: rowfeed_sharded_position; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX rowfeed_sharded_position ON public.rowfeed_positions_sharded USING btree (feed_sync_id);


--
-- Name: rowfeed_single_deleted; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_single_deleted ON public.rowfeed_positions_single USING btree (feed_sync_id) WHERE (deleted = 1);


--
-- Name: rowfeed_single_position; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX rowfeed_single_position ON public.rowfeed_positions_single USING btree (feed_sync_id);


--
-- Name: captured rowfeed_captured_capture; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER rowfeed_captured_capture AFTER INSERT OR UPDATE ON public.captured FOR EACH ROW EXECUTE FUNCTION public.rowfeed_captured_capture();

ALTER TABLE public.captured ENABLE ALWAYS TRIGGER rowfeed_captured_capture;


--
-- Name: composite rowfeed_composite_capture; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER rowfeed_composite_capture AFTER INSERT OR DELETE OR UPDATE ON public.composite FOR EACH ROW EXECUTE FUNCTION public.rowfeed_composite_capture();

ALTER TABLE public.composite ENABLE ALWAYS TRIGGER rowfeed_composite_capture;


--
-- Name: composite rowfeed_composite_truncate; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER rowfeed_composite_truncate BEFORE TRUNCATE ON public.composite FOR EACH STATEMENT EXECUTE FUNCTION public.rowfeed_composite_truncate();

ALTER TABLE public.composite ENABLE ALWAYS TRIGGER rowfeed_composite_truncate;


--
-- Name: sharded rowfeed_sharded_capture; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER rowfeed_sharded_capture AFTER INSERT OR DELETE OR UPDATE ON public.sharded FOR EACH ROW EXECUTE FUNCTION public.rowfeed_sharded_capture();

ALTER TABLE public.sharded ENABLE ALWAYS TRIGGER rowfeed_sharded_capture;


--
-- Name: sharded rowfeed_sharded_truncate; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER rowfeed_sharded_truncate BEFORE TRUNCATE ON public.sharded FOR EACH STATEMENT EXECUTE FUNCTION public.rowfeed_sharded_truncate();

ALTER TABLE public.sharded ENABLE ALWAYS TRIGGER rowfeed_sharded_truncate;


--
-- Name: single rowfeed_single_capture; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER rowfeed_single_capture AFTER INSERT OR DELETE OR UPDATE ON public.single FOR EACH ROW EXECUTE FUNCTION public.rowfeed_single_capture();

ALTER TABLE public.single ENABLE ALWAYS TRIGGER rowfeed_single_capture;


--
-- Name: single rowfeed_single_truncate; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER rowfeed_single_truncate BEFORE TRUNCATE ON public.single FOR EACH STATEMENT EXECUTE FUNCTION public.rowfeed_single_truncate();

ALTER TABLE public.single ENABLE ALWAYS TRIGGER rowfeed_single_truncate;


--
-- PostgreSQL database dump complete
--


