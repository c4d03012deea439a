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
-- Name: rowfeed_ev_capture(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_ev_capture() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET row_security TO 'off'
    AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND NOT (OLD."id" OPERATOR(pg_catalog.<>) NEW."id") THEN
    RETURN NULL;
  END IF;
  INSERT INTO "public"."rowfeed_outbox_ev" (shard, "id") VALUES (NEW."customer", NEW."id");
  RETURN NULL;
END
$$;


--
-- Name: rowfeed_kv_capture(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_kv_capture() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    AS $$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' OR TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND (OLD."id" OPERATOR(pg_catalog.<>) NEW."id") THEN
    INSERT INTO "public"."rowfeed_changes_kv" ("id") VALUES (OLD."id");
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE' THEN
    INSERT INTO "public"."rowfeed_changes_kv" ("id") VALUES (NEW."id");
  END IF;
  RETURN NULL;
END
$$;


--
-- Name: rowfeed_kv_truncate(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.rowfeed_kv_truncate() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET row_security TO 'off'
    AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'TRUNCATE of a table with a rowfeed feed needs READ COMMITTED'
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin the transaction in READ COMMITTED, or use DELETE.';
  END IF;
  EXECUTE format('INSERT INTO "public"."rowfeed_changes_kv" ("id") SELECT "id" FROM %I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  RETURN NULL;
END
$$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: ev; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.ev (
    customer integer NOT NULL,
    id bigint NOT NULL,
    v character varying(100)
);


--
-- Name: kv; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kv (
    id bigint NOT NULL,
    v character varying(100)
);


--
-- Name: rowfeed_changes_kv; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_changes_kv (
    seq bigint NOT NULL,
    id bigint NOT NULL,
    kind smallint DEFAULT 0 NOT NULL,
    changed_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.1');


--
-- Name: rowfeed_changes_kv_seq_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.rowfeed_changes_kv ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rowfeed_changes_kv_seq_seq
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
    failure text
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
-- Name: rowfeed_feed_ev; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_feed_ev (
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
    created_at bigint NOT NULL
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
-- Name: rowfeed_outbox_ev; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_outbox_ev (
    order_sequence bigint NOT NULL,
    shard bigint DEFAULT 0 NOT NULL,
    time_hint bigint,
    appended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    id bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.1');


--
-- Name: rowfeed_outbox_ev_order_sequence_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.rowfeed_outbox_ev ALTER COLUMN order_sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.rowfeed_outbox_ev_order_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rowfeed_positions_kv; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rowfeed_positions_kv (
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
    updated_at bigint NOT NULL
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
-- Data for Name: ev; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.ev VALUES (1, 1, 'a');
INSERT INTO public.ev VALUES (1, 2, 'b');
INSERT INTO public.ev VALUES (2, 3, 'c');
INSERT INTO public.ev VALUES (2, 4, 'd');


--
-- Data for Name: kv; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.kv VALUES (1, 'a');
INSERT INTO public.kv VALUES (2, 'b');
INSERT INTO public.kv VALUES (4, 'd');
INSERT INTO public.kv VALUES (6, 'f');
INSERT INTO public.kv VALUES (7, 'g');
INSERT INTO public.kv VALUES (8, NULL);
INSERT INTO public.kv VALUES (9, '');
INSERT INTO public.kv VALUES (10, 'ü');
INSERT INTO public.kv VALUES (5, 'E');
INSERT INTO public.kv VALUES (11, 'k');
INSERT INTO public.kv VALUES (12, 'l');


--
-- Data for Name: rowfeed_changes_kv; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_changes_kv OVERRIDING SYSTEM VALUE VALUES (14, 12, 0, '2026-11-23 01:59:02.520985+00');


--
-- Data for Name: rowfeed_consumers; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_consumers VALUES ('evlines', 'ev', 1, 0, 3);


--
-- Data for Name: rowfeed_cursors; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_cursors VALUES ('lines', 'kv', 0, 1, '10', 1, 1, 4, 0, 0, 1795399140395160, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('hook', 'kv', 0, 1, '10', 1, 1, 6, 0, 1, 1795399142386326, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('evlines', 'ev', 1, 1, '01M8321KC89X9VWBY504NG1WCR', 1, 1, 2, 0, 0, 1795399143342293, NULL);
INSERT INTO public.rowfeed_cursors VALUES ('evlines', 'ev', 2, 1, '01M8321KCVK05GA29V2ZH8BP25', 1, 1, 2, 0, 0, 1795399143345831, NULL);


--
-- Data for Name: rowfeed_dead_letters; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_dead_letters VALUES ('hook', 'kv', 0, 'fe94ccbd074bb18b213f513152e3e3d0503e3746292df1d92bdd30aa4aaaee76', '{"id":4}', 1, '4', 'upsert', 'aside', 5, 0, 'the endpoint answered 422 Unprocessable Entity', 1795399142385142, 1795399142385144, 0);


--
-- Data for Name: rowfeed_feed_ev; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_feed_ev VALUES (1, '01a20620-cd88-4f53-be2f-c5012b00f197', 1);
INSERT INTO public.rowfeed_feed_ev VALUES (1, '01a20620-cd88-4f53-be2f-c5012b00f198', 2);
INSERT INTO public.rowfeed_feed_ev VALUES (2, '01a20620-cd9b-980b-0509-3b17e285d845', 3);


--
-- Data for Name: rowfeed_feeds; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_feeds VALUES ('kv', 'sequence', 'trigger', 'active', 1, 'public', 'kv', '[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]', NULL, '{"primary_key":true}', 8, NULL, 2592000, 0, 'system 7711180575464368602, timeline 00000001, database 16384, table 16400', NULL, 1795399139784662);
INSERT INTO public.rowfeed_feeds VALUES ('ev', 'outbox', 'trigger', 'active', 1, 'public', 'ev', '[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]', NULL, '{"primary_key":true,"ulids":{"Position":{"name":"ulid","type":"uuid","decl":"uuid","kind":"text"},"Shard":{"name":"shard","type":"bigint","kind":"integer"},"Index":"place"},"runs":1}', 1, 'customer', 0, 0, 'system 7711180575464368602, timeline 00000001, database 16384, table 16400', NULL, 1795399142666088);


--
-- Data for Name: rowfeed_leases; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_leases VALUES ('relay:kv:lines', '', 1, NULL, 1795399140330484, 1);
INSERT INTO public.rowfeed_leases VALUES ('relay:kv:hook', '', 1, NULL, 1795399140597404, 1);
INSERT INTO public.rowfeed_leases VALUES ('relay:ev:evlines', '', 1, NULL, 1795399143210439, 1);


--
-- Data for Name: rowfeed_outbox_ev; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_outbox_ev OVERRIDING SYSTEM VALUE VALUES (4, 2, NULL, '2026-11-23 01:59:03.353576+00', 4);


--
-- Data for Name: rowfeed_positions_kv; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_positions_kv VALUES (1, 1, 7, 7, 0, 0, 1795399139979369);
INSERT INTO public.rowfeed_positions_kv VALUES (2, 2, 5, 5, 0, 0, 1795399139979369);
INSERT INTO public.rowfeed_positions_kv VALUES (4, 4, 0, 0, 0, 0, 1795399139979369);
INSERT INTO public.rowfeed_positions_kv VALUES (6, 6, 4, 4, 0, 0, 1795399139979369);
INSERT INTO public.rowfeed_positions_kv VALUES (7, 7, 2, 2, 0, 0, 1795399139979369);
INSERT INTO public.rowfeed_positions_kv VALUES (8, 8, 3, 3, 0, 0, 1795399139979369);
INSERT INTO public.rowfeed_positions_kv VALUES (9, 9, 5, 5, 0, 0, 1795399139979369);
INSERT INTO public.rowfeed_positions_kv VALUES (10, 10, 1, 1, 0, 0, 1795399139979369);
INSERT INTO public.rowfeed_positions_kv VALUES (3, 11, 3, 3, 1, 0, 1795399142493173);
INSERT INTO public.rowfeed_positions_kv VALUES (5, 12, 6, 6, 0, 0, 1795399142493173);
INSERT INTO public.rowfeed_positions_kv VALUES (11, 13, 7, 7, 0, 0, 1795399142493173);


--
-- Data for Name: rowfeed_processed; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: rowfeed_schema_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_schema_version VALUES (1, 1795399139601119);
INSERT INTO public.rowfeed_schema_version VALUES (2, 1795399139615597);
INSERT INTO public.rowfeed_schema_version VALUES (3, 1795399139616388);
INSERT INTO public.rowfeed_schema_version VALUES (4, 1795399139623721);
INSERT INTO public.rowfeed_schema_version VALUES (5, 1795399139628549);
INSERT INTO public.rowfeed_schema_version VALUES (6, 1795399139631272);
INSERT INTO public.rowfeed_schema_version VALUES (7, 1795399139647045);


--
-- Data for Name: rowfeed_sequences; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_sequences VALUES ('kv', 13, 2, 1795399142493173);
INSERT INTO public.rowfeed_sequences VALUES ('ev', 0, 0, 1795399142673161);


--
-- Data for Name: rowfeed_shards; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rowfeed_shards VALUES ('ev', 1, 1795399142792, 117663278222036819, -4742355273790721639, 0, 0, '', 1795399142792, 0);
INSERT INTO public.rowfeed_shards VALUES ('ev', 2, 1795399142811, 117663278223300619, 362886218750744646, 0, 0, '', 1795399142811, 0);


--
-- Name: rowfeed_changes_kv_seq_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.rowfeed_changes_kv_seq_seq', 14, true);


--
-- Name: rowfeed_outbox_ev_order_sequence_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.rowfeed_outbox_ev_order_sequence_seq', 4, true);


--
-- Name: ev ev_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.ev
    ADD CONSTRAINT ev_pkey PRIMARY KEY (id);


--
-- Name: kv kv_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kv
    ADD CONSTRAINT kv_pkey PRIMARY KEY (id);


--
-- Name: rowfeed_changes_kv rowfeed_changes_kv_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_changes_kv
    ADD CONSTRAINT rowfeed_changes_kv_pkey PRIMARY KEY (seq);


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
-- Name: rowfeed_feed_ev rowfeed_feed_ev_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_feed_ev
    ADD CONSTRAINT rowfeed_feed_ev_id_key UNIQUE (id);


--
-- Name: rowfeed_feed_ev rowfeed_feed_ev_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_feed_ev
    ADD CONSTRAINT rowfeed_feed_ev_pkey PRIMARY KEY (shard, ulid);


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
-- Name: rowfeed_outbox_ev rowfeed_outbox_ev_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_outbox_ev
    ADD CONSTRAINT rowfeed_outbox_ev_pkey PRIMARY KEY (order_sequence);


--
-- Name: rowfeed_positions_kv rowfeed_positions_kv_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rowfeed_positions_kv
    ADD CONSTRAINT rowfeed_positions_kv_pkey PRIMARY KEY (id);


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
-- Name: rowfeed_ev_outbox; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_ev_outbox ON public.rowfeed_outbox_ev USING btree (shard, order_sequence);


--
-- Name: rowfeed_kv_bucket; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_kv_bucket ON public.rowfeed_positions_kv USING btree (bucket, feed_sync_id, shard);


--
-- Name: rowfeed_kv_deleted; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rowfeed_kv_deleted ON public.rowfeed_positions_kv USING btree (feed_sync_id) WHERE (deleted = 1);


--
-- Name: rowfeed_kv_position; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX rowfeed_kv_position ON public.rowfeed_positions_kv USING btree (feed_sync_id);


--
-- Name: ev rowfeed_ev_capture; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER rowfeed_ev_capture AFTER INSERT OR UPDATE ON public.ev FOR EACH ROW EXECUTE FUNCTION public.rowfeed_ev_capture();

ALTER TABLE public.ev ENABLE ALWAYS TRIGGER rowfeed_ev_capture;


--
-- Name: kv rowfeed_kv_capture; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER rowfeed_kv_capture AFTER INSERT OR DELETE OR UPDATE ON public.kv FOR EACH ROW EXECUTE FUNCTION public.rowfeed_kv_capture();

ALTER TABLE public.kv ENABLE ALWAYS TRIGGER rowfeed_kv_capture;


--
-- Name: kv rowfeed_kv_truncate; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER rowfeed_kv_truncate BEFORE TRUNCATE ON public.kv FOR EACH STATEMENT EXECUTE FUNCTION public.rowfeed_kv_truncate();

ALTER TABLE public.kv ENABLE ALWAYS TRIGGER rowfeed_kv_truncate;


--
-- PostgreSQL database dump complete
--


