-- rowfeed's own tables, in the order in which they are made. Text is compared byte by byte. Times are microseconds
-- since the Unix epoch. No table here has AUTOINCREMENT, which would leave SQLite's table sqlite_sequence behind
-- forever.

-- name: schema_version
CREATE TABLE {{table "schema_version"}} (
  version INTEGER PRIMARY KEY,
  applied_at INTEGER NOT NULL
)

-- name: sequences
-- Publishers lock the row of their feed. Its term is the present publisher's, or NULL if that is another program.
CREATE TABLE {{table "sequences"}} (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL,
  version INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  term INTEGER
)

-- name: feeds
-- failure, failing_since, attempts and next_try are about the feed's publisher. source_schema is empty if the table is
-- in the schema of rowfeed's own tables.
CREATE TABLE {{table "feeds"}} (
  name TEXT NOT NULL PRIMARY KEY,
  mode TEXT NOT NULL,
  capture TEXT NOT NULL,
  state TEXT NOT NULL,
  generation INTEGER NOT NULL,
  source_schema TEXT,
  source_table TEXT NOT NULL,
  key_columns TEXT NOT NULL,
  delivered_columns TEXT,
  options TEXT NOT NULL,
  data_shards INTEGER NOT NULL,
  shard_column TEXT,
  tombstones_seconds INTEGER NOT NULL,
  tombstones_below INTEGER NOT NULL,
  database_identity TEXT,
  fill_after TEXT,
  created_at INTEGER NOT NULL,
  failure TEXT,
  failing_since INTEGER,
  attempts INTEGER,
  next_try INTEGER
)

-- name: terms
-- The last position of each former term, and when the term ended: see package history.
CREATE TABLE {{table "terms"}} (
  feed TEXT NOT NULL,
  term INTEGER NOT NULL,
  upto INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  PRIMARY KEY (feed, term)
)

-- name: cursors
-- aside counts the dead letters of a shard, so that no query looks for them while there are none. failure says why the
-- shard rests.
CREATE TABLE {{table "cursors"}} (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  shard_count INTEGER NOT NULL,
  value TEXT NOT NULL,
  generation INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  version INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  aside INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL,
  failure TEXT,
  failing_since INTEGER,
  attempts INTEGER,
  next_try INTEGER,
  target TEXT,
  PRIMARY KEY (consumer, feed, shard)
)

-- name: dead_letters
-- data_shard is the key's: the dead letter follows its key to another shard of the consumer.
CREATE TABLE {{table "dead_letters"}} (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  key_digest TEXT NOT NULL,
  key_json TEXT NOT NULL,
  generation INTEGER NOT NULL,
  position TEXT NOT NULL,
  op TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  collapsed INTEGER NOT NULL,
  error TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  data_shard INTEGER,
  PRIMARY KEY (consumer, feed, shard, key_digest)
)

-- name: dead_letters_first
-- Dead letters are read in pages, the oldest first.
CREATE INDEX {{own_index "dead_letters_first"}} ON {{table "dead_letters"}} (consumer, feed, shard, first_at, key_digest)

-- name: processed
CREATE TABLE {{table "processed"}} (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  generation INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  position TEXT NOT NULL,
  processed_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
) WITHOUT ROWID

-- name: leases
-- expires_at is NULL while a lease is free.
CREATE TABLE {{table "leases"}} (
  name TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  expires_at INTEGER,
  acquired_at INTEGER NOT NULL,
  renewals INTEGER NOT NULL
)

-- name: shards
-- The state of each shard with ULIDs, the position up to which its entries were purged (below_high, below_low), and the
-- state of back-fill. live_from is the time, in milliseconds, at which the live part of the shard begins; back-fill
-- places rows below it. It is 0 until the live part begins. filled_by is the run of back-fill that came to the shard
-- first.
CREATE TABLE {{table "shards"}} (
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  time_ms INTEGER NOT NULL,
  ulid_high INTEGER NOT NULL,
  ulid_low INTEGER NOT NULL,
  below_high INTEGER NOT NULL DEFAULT 0,
  below_low INTEGER NOT NULL DEFAULT 0,
  witness TEXT NOT NULL,
  live_from INTEGER NOT NULL DEFAULT 0,
  filled_by INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard)
)

-- name: consumers
-- What a consumer's shards of a feed with ULIDs have in common.
CREATE TABLE {{table "consumers"}} (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard_count INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed)
)

-- name: tokens
-- Of an access token only the SHA-256 of its text is kept. expires_at and revoked_at are NULL if they never happen.
CREATE TABLE {{table "tokens"}} (
  name TEXT NOT NULL PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE,
  grants TEXT NOT NULL,
  view TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
)

-- name: audit
-- A row for each action of an operator. mark identifies the row, so that the outcome can be added when the action has
-- ended.
CREATE TABLE {{table "audit"}} (
  id INTEGER PRIMARY KEY,
  mark TEXT NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  act TEXT NOT NULL,
  object TEXT NOT NULL,
  detail TEXT NOT NULL,
  outcome TEXT NOT NULL
)

-- name: has_schema
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = :table

-- name: version
SELECT max(version) FROM {{table "schema_version"}}

-- name: lock_schema
-- Changes of rowfeed's schema are one transaction, which has the write lock from its begin.
BEGIN IMMEDIATE

-- name: table_or_view
SELECT type, name, COALESCE(sql, '') FROM sqlite_schema WHERE lower(name) = lower(:table) AND type IN ('table', 'view')

-- name: kind_of_table
-- wr and strict are the flags WITHOUT ROWID and STRICT. On tables older than these features they are 0.
SELECT type, wr, strict FROM pragma_table_list(:table) WHERE schema = 'main'

-- name: columns
SELECT name, type, "notnull", pk, COALESCE(dflt_value, ''), hidden FROM pragma_table_xinfo(:table)
WHERE hidden <> 1 ORDER BY cid

-- name: unique_indexes
-- The primary key comes first.
SELECT name, origin, partial, {{template "index_made"}} FROM pragma_index_list(:table)
WHERE "unique" = 1 ORDER BY origin <> 'pk', name

-- name: index_made
-- The statement that made an index. It is empty for an index of a constraint in the CREATE TABLE.
COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'index' AND sqlite_schema.name = :index), '')

-- name: index_columns
SELECT COALESCE(name, ''), COALESCE(coll, 'BINARY') FROM pragma_index_xinfo(:index) WHERE key = 1 ORDER BY seqno

-- name: indexes
SELECT name FROM pragma_index_list(:table)

-- name: triggers
SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(:table) ORDER BY name

-- name: made
-- The statements that made all tables and triggers.
SELECT name, COALESCE(sql, '') FROM sqlite_schema WHERE type IN ('table', 'trigger')
