-- rowfeed's own tables, in the order in which they are made. All that is compared is ASCII. Times are microseconds
-- since the Unix epoch. DDL commits by itself, so every statement can be repeated.

-- name: options
-- In DYNAMIC rows, an index can have keys as long as the source's, whatever innodb_default_row_format says.
ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: schema_version
CREATE TABLE IF NOT EXISTS {{table "schema_version"}} (
  version int NOT NULL PRIMARY KEY,
  applied_at bigint NOT NULL
) {{template "options"}}

-- name: sequences
-- Publishers lock the row of their feed. Its term is the present publisher's, or NULL if that is another program.
CREATE TABLE IF NOT EXISTS {{table "sequences"}} (
  name varchar(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  value bigint NOT NULL,
  version bigint NOT NULL,
  updated_at bigint NOT NULL,
  term bigint NULL
) {{template "options"}}

-- name: feeds
-- failure, failing_since, attempts and next_try are about the feed's publisher. source_schema is empty if the table is
-- in the schema of rowfeed's own tables.
CREATE TABLE IF NOT EXISTS {{table "feeds"}} (
  name varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  mode varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  capture varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  generation bigint NOT NULL,
  source_schema varchar(64) NULL,
  source_table varchar(64) NOT NULL,
  key_columns longtext NOT NULL,
  delivered_columns longtext NULL,
  options longtext NOT NULL,
  data_shards int NOT NULL DEFAULT 1,
  shard_column varchar(64) NULL,
  tombstones_seconds bigint NOT NULL,
  tombstones_below bigint NOT NULL DEFAULT 0,
  database_identity varchar(255) NULL,
  fill_after longtext NULL,
  created_at bigint NOT NULL,
  failure text NULL,
  failing_since bigint NULL,
  attempts bigint NULL,
  next_try bigint NULL
) {{template "options"}}

-- name: terms
-- The last position of each former term, and when the term ended: see package history.
CREATE TABLE IF NOT EXISTS {{table "terms"}} (
  feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  term bigint NOT NULL,
  upto bigint NOT NULL,
  ended_at bigint NOT NULL,
  PRIMARY KEY (feed, term)
) {{template "options"}}

-- name: cursors
-- aside counts the dead letters of a shard, so that no query looks for them while there are none. failure says why the
-- shard rests.
CREATE TABLE IF NOT EXISTS {{table "cursors"}} (
  consumer varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  shard bigint NOT NULL,
  shard_count int NOT NULL,
  value text CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  generation bigint NOT NULL,
  epoch bigint NOT NULL,
  version bigint NOT NULL,
  paused smallint NOT NULL,
  aside bigint NOT NULL DEFAULT 0,
  updated_at bigint NOT NULL,
  failure longtext NULL,
  failing_since bigint NULL,
  attempts bigint NULL,
  next_try bigint NULL,
  target text NULL,
  PRIMARY KEY (consumer, feed, shard)
) {{template "options"}}

-- name: dead_letters
-- data_shard is the key's: the dead letter follows its key to another shard of the consumer. A key's text can be longer
-- than an index accepts, so the primary key contains its digest. Dead letters are read in pages, the oldest first.
CREATE TABLE IF NOT EXISTS {{table "dead_letters"}} (
  consumer varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  shard bigint NOT NULL,
  key_digest char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  key_json longtext NOT NULL,
  generation bigint NOT NULL,
  position varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  op varchar(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  attempts bigint NOT NULL,
  collapsed bigint NOT NULL,
  error longtext NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  data_shard bigint NULL,
  PRIMARY KEY (consumer, feed, shard, key_digest),
  KEY {{own_index "dead_letters_first"}} (consumer, feed, shard, first_at, key_digest)
) {{template "options"}}

-- name: processed
CREATE TABLE IF NOT EXISTS {{table "processed"}} (
  consumer varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  generation bigint NOT NULL,
  shard bigint NOT NULL,
  position varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  processed_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
) {{template "options"}}

-- name: leases
-- expires_at is NULL while a lease is free.
CREATE TABLE IF NOT EXISTS {{table "leases"}} (
  name varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  owner varchar(150) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  epoch bigint NOT NULL,
  expires_at bigint NULL,
  acquired_at bigint NOT NULL,
  renewals bigint NOT NULL
) {{template "options"}}

-- name: shards
-- The state of each shard with ULIDs, the position up to which its entries were purged (below_high, below_low), and the
-- state of back-fill. live_from is the time, in milliseconds, at which the live part of the shard begins; back-fill
-- places rows below it. It is 0 until the live part begins. filled_by is the run of back-fill that came to the shard
-- first.
CREATE TABLE IF NOT EXISTS {{table "shards"}} (
  feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  shard bigint NOT NULL,
  time_ms bigint NOT NULL,
  ulid_high bigint NOT NULL,
  ulid_low bigint NOT NULL,
  below_high bigint NOT NULL DEFAULT 0,
  below_low bigint NOT NULL DEFAULT 0,
  witness varchar(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  live_from bigint NOT NULL DEFAULT 0,
  filled_by bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard)
) {{template "options"}}

-- name: consumers
-- What a consumer's shards of a feed with ULIDs have in common.
CREATE TABLE IF NOT EXISTS {{table "consumers"}} (
  consumer varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  shard_count int NOT NULL,
  paused smallint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (consumer, feed)
) {{template "options"}}

-- name: tokens
-- Of an access token only the SHA-256 of its text is kept. expires_at and revoked_at are NULL if they never happen.
CREATE TABLE IF NOT EXISTS {{table "tokens"}} (
  name varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  sha256 char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
  grants longtext NOT NULL,
  view longtext NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NULL,
  revoked_at bigint NULL
) {{template "options"}}

-- name: audit
-- A row for each action of an operator. mark identifies the row, so that the outcome can be added when the action has
-- ended.
CREATE TABLE IF NOT EXISTS {{table "audit"}} (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  mark varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  at bigint NOT NULL,
  actor longtext NOT NULL,
  act longtext NOT NULL,
  object longtext NOT NULL,
  detail longtext NOT NULL,
  outcome longtext NOT NULL
) {{template "options"}}

-- name: flushes
-- A reader's commit to this table brings everything on the disk that the reader has seen: see flush.sql.
CREATE TABLE IF NOT EXISTS {{table "flushes"}} (
  id int NOT NULL PRIMARY KEY,
  flush_count bigint NOT NULL
) {{template "options"}}

-- name: version
SELECT MAX(version) FROM {{table "schema_version"}}

-- name: current_schema
-- Names in a trigger are looked up in the trigger's own database, so it must be known.
SELECT DATABASE()

-- name: session_settings
-- What a change of the schema sets, or cannot work with.
SELECT @@SESSION.lock_wait_timeout, @@SESSION.sql_mode, @@SESSION.autocommit, DATABASE(), :unfit

-- name: lock_schema
SELECT GET_LOCK(:lock, :seconds)

-- name: begin_together
START TRANSACTION

-- name: commit_together
COMMIT

-- name: roll_back_together
ROLLBACK

-- name: unlock_schema
DO RELEASE_LOCK(:lock)

-- name: bound_schema_changes
-- How long a DDL statement may wait for a table. Writers wait behind it.
SET SESSION lock_wait_timeout = :seconds

-- name: restore_session
SET SESSION lock_wait_timeout = :wait, sql_mode = :mode
