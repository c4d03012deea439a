-- rowfeed's own tables, in the order in which they are made. Names, digests and positions are compared byte by byte,
-- whatever the database's collation. Times are microseconds since the Unix epoch.
--
-- A row that is updated with every batch, page or renewal has a table with a low fill factor: there is space for its
-- next version in the same page of the table.

-- name: schema_version
CREATE TABLE {{table "schema_version"}} (
  version integer PRIMARY KEY,
  applied_at bigint NOT NULL
)

-- name: sequences
-- Publishers lock the row of their feed. term is the term of the present publisher. It is NULL if another program gives
-- the positions, and until the first pass.
CREATE TABLE {{table "sequences"}} (
  name text PRIMARY KEY,
  value bigint NOT NULL,
  version bigint NOT NULL,
  updated_at bigint NOT NULL,
  term bigint
) WITH (fillfactor = 10)

-- name: feeds
-- failure, failing_since, attempts and next_try are about failed passes of the feed's publisher. source_schema is empty
-- if the table is in the schema of rowfeed's own tables.
CREATE TABLE {{table "feeds"}} (
  name text PRIMARY KEY,
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
)

-- name: terms
-- The highest position of each former term, and when the term ended: see package history.
CREATE TABLE {{table "terms"}} (
  feed text NOT NULL,
  term bigint NOT NULL,
  upto bigint NOT NULL,
  ended_at bigint NOT NULL,
  PRIMARY KEY (feed, term)
)

-- name: cursors
-- aside is the number of the shard's dead letters, so that no query searches for them while there are none. failure is
-- the error of the consumer's last attempt to deliver the shard's entries.
CREATE TABLE {{table "cursors"}} (
  consumer text COLLATE "C" NOT NULL,
  feed text COLLATE "C" NOT NULL,
  shard bigint NOT NULL,
  shard_count integer NOT NULL,
  value text COLLATE "C" NOT NULL,
  generation bigint NOT NULL,
  epoch bigint NOT NULL,
  version bigint NOT NULL,
  paused smallint NOT NULL,
  aside bigint NOT NULL DEFAULT 0,
  updated_at bigint NOT NULL,
  failure text,
  failing_since bigint,
  attempts bigint,
  next_try bigint,
  target text,
  PRIMARY KEY (consumer, feed, shard)
) WITH (fillfactor = 10)

-- name: dead_letters
-- data_shard is the data shard of the key. If the key moves to another shard of the consumer, the dead letter moves
-- too.
CREATE TABLE {{table "dead_letters"}} (
  consumer text COLLATE "C" NOT NULL,
  feed text COLLATE "C" NOT NULL,
  shard bigint NOT NULL,
  key_digest text COLLATE "C" NOT NULL,
  key_json text NOT NULL,
  generation bigint NOT NULL,
  position text COLLATE "C" NOT NULL,
  op text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  attempts bigint NOT NULL,
  collapsed bigint NOT NULL,
  error text NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  data_shard bigint,
  PRIMARY KEY (consumer, feed, shard, key_digest)
)

-- name: dead_letters_first
-- Dead letters are read in pages, the oldest first.
CREATE INDEX {{own_index "dead_letters_first"}} ON {{table "dead_letters"}} (consumer, feed, shard, first_at, key_digest)

-- name: processed
CREATE TABLE {{table "processed"}} (
  consumer text COLLATE "C" NOT NULL,
  feed text COLLATE "C" NOT NULL,
  generation bigint NOT NULL,
  shard bigint NOT NULL,
  position text COLLATE "C" NOT NULL,
  processed_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
)

-- name: leases
-- expires_at is NULL while a lease is free.
CREATE TABLE {{table "leases"}} (
  name text COLLATE "C" PRIMARY KEY,
  owner text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  expires_at bigint,
  acquired_at bigint NOT NULL,
  renewals bigint NOT NULL
) WITH (fillfactor = 10)

-- name: shards
-- The state of each shard with ULIDs, the position up to which its entries were purged (below_high, below_low), and the
-- state of back-fill. live_from is the time, in milliseconds, at which the live part of the shard begins; back-fill
-- places rows below it. It is 0 until the live part begins. filled_by is the run of back-fill that came to the shard
-- first.
CREATE TABLE {{table "shards"}} (
  feed text COLLATE "C" NOT NULL,
  shard bigint NOT NULL,
  time_ms bigint NOT NULL,
  ulid_high bigint NOT NULL,
  ulid_low bigint NOT NULL,
  below_high bigint NOT NULL DEFAULT 0,
  below_low bigint NOT NULL DEFAULT 0,
  witness text COLLATE "C" NOT NULL,
  live_from bigint NOT NULL DEFAULT 0,
  filled_by bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard)
) WITH (fillfactor = 10)

-- name: consumers
-- What a consumer's shards of a feed with ULIDs have in common.
CREATE TABLE {{table "consumers"}} (
  consumer text COLLATE "C" NOT NULL,
  feed text COLLATE "C" NOT NULL,
  shard_count integer NOT NULL,
  paused smallint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (consumer, feed)
)

-- name: tokens
-- Of an access token only the SHA-256 of its text is kept. expires_at and revoked_at are NULL if they never happen.
CREATE TABLE {{table "tokens"}} (
  name text COLLATE "C" PRIMARY KEY,
  sha256 text COLLATE "C" NOT NULL UNIQUE,
  grants text NOT NULL,
  view text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
)

-- name: audit
-- A row for each action of an operator. mark identifies the row, so that the outcome can be added when the action has
-- ended.
CREATE TABLE {{table "audit"}} (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  mark text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  actor text NOT NULL,
  act text NOT NULL,
  object text NOT NULL,
  detail text NOT NULL,
  outcome text NOT NULL
)

-- name: lock_schema
-- Changes of rowfeed's schema run one after the other. lock_timeout bounds the wait for that lock, and for the tables
-- that are changed: while ALTER TABLE or CREATE TRIGGER waits for a table, all later statements on the table wait
-- behind it.
SELECT pg_advisory_xact_lock(hashtextextended(:lock, 0))

-- name: bound_schema_changes
SET LOCAL lock_timeout = '1s'

-- name: has_schema
SELECT to_regclass({{literal (table "schema_version")}}) IS NOT NULL

-- name: version
SELECT max(version) FROM {{table "schema_version"}}

-- name: current_schema
-- The first schema of the search_path that exists. Trigger functions must not depend on the session's search_path, so
-- names in them are qualified.
SELECT COALESCE(current_schema()::text, '')

-- name: other_schemas
-- Other schemas with tables of rowfeed. A schema counts only if it has two of them, because one table of that name may
-- be a user's.
SELECT s.nspname::text FROM pg_namespace s WHERE s.nspname <> :own::text
  AND 2 = (SELECT count(*) FROM pg_class c
    WHERE c.relnamespace = s.oid AND c.relkind = 'r' AND c.relname IN (:feeds::text, :version::text))
ORDER BY 1 LIMIT 5
