-- name: audit
CREATE TABLE "rowfeed_audit" (
  id INTEGER PRIMARY KEY,
  mark TEXT NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  act TEXT NOT NULL,
  object TEXT NOT NULL,
  detail TEXT NOT NULL,
  outcome TEXT NOT NULL
)

-- name: columns
SELECT name, type, "notnull", pk, COALESCE(dflt_value, ''), hidden FROM pragma_table_xinfo(:table)
WHERE hidden <> 1 ORDER BY cid

-- name: consumers
CREATE TABLE "rowfeed_consumers" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard_count INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed)
)

-- name: cursors
CREATE TABLE "rowfeed_cursors" (
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
CREATE TABLE "rowfeed_dead_letters" (
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
CREATE INDEX "rowfeed_dead_letters_first" ON "rowfeed_dead_letters" (consumer, feed, shard, first_at, key_digest)

-- name: feeds
CREATE TABLE "rowfeed_feeds" (
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

-- name: has_schema
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = :table

-- name: index_columns
SELECT COALESCE(name, ''), COALESCE(coll, 'BINARY') FROM pragma_index_xinfo(:index) WHERE key = 1 ORDER BY seqno

-- name: index_made
COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'index' AND sqlite_schema.name = :index), '')

-- name: indexes
SELECT name FROM pragma_index_list(:table)

-- name: kind_of_table
SELECT type, wr, strict FROM pragma_table_list(:table) WHERE schema = 'main'

-- name: leases
CREATE TABLE "rowfeed_leases" (
  name TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  expires_at INTEGER,
  acquired_at INTEGER NOT NULL,
  renewals INTEGER NOT NULL
)

-- name: lock_schema
BEGIN IMMEDIATE

-- name: made
SELECT name, COALESCE(sql, '') FROM sqlite_schema WHERE type IN ('table', 'trigger')

-- name: processed
CREATE TABLE "rowfeed_processed" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  generation INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  position TEXT NOT NULL,
  processed_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
) WITHOUT ROWID

-- name: schema_version
CREATE TABLE "rowfeed_schema_version" (
  version INTEGER PRIMARY KEY,
  applied_at INTEGER NOT NULL
)

-- name: sequences
CREATE TABLE "rowfeed_sequences" (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL,
  version INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  term INTEGER
)

-- name: shards
CREATE TABLE "rowfeed_shards" (
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

-- name: table_or_view
SELECT type, name, COALESCE(sql, '') FROM sqlite_schema WHERE lower(name) = lower(:table) AND type IN ('table', 'view')

-- name: terms
CREATE TABLE "rowfeed_terms" (
  feed TEXT NOT NULL,
  term INTEGER NOT NULL,
  upto INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  PRIMARY KEY (feed, term)
)

-- name: tokens
CREATE TABLE "rowfeed_tokens" (
  name TEXT NOT NULL PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE,
  grants TEXT NOT NULL,
  view TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
)

-- name: triggers
SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(:table) ORDER BY name

-- name: unique_indexes
SELECT name, origin, partial, COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'index' AND sqlite_schema.name = :index), '') FROM pragma_index_list(:table)
WHERE "unique" = 1 ORDER BY origin <> 'pk', name

-- name: version
SELECT max(version) FROM "rowfeed_schema_version"

