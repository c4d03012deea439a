-- name: audit
CREATE TABLE IF NOT EXISTS `rowfeed_audit` (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  mark varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  at bigint NOT NULL,
  actor longtext NOT NULL,
  act longtext NOT NULL,
  object longtext NOT NULL,
  detail longtext NOT NULL,
  outcome longtext NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: begin_together
START TRANSACTION

-- name: bound_schema_changes
SET SESSION lock_wait_timeout = :seconds

-- name: commit_together
COMMIT

-- name: consumers
CREATE TABLE IF NOT EXISTS `rowfeed_consumers` (
  consumer varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  shard_count int NOT NULL,
  paused smallint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (consumer, feed)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: current_schema
SELECT DATABASE()

-- name: cursors
CREATE TABLE IF NOT EXISTS `rowfeed_cursors` (
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
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: dead_letters
CREATE TABLE IF NOT EXISTS `rowfeed_dead_letters` (
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
  KEY `rowfeed_dead_letters_first` (consumer, feed, shard, first_at, key_digest)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: feeds
CREATE TABLE IF NOT EXISTS `rowfeed_feeds` (
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
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: flushes
CREATE TABLE IF NOT EXISTS `rowfeed_flushes` (
  id int NOT NULL PRIMARY KEY,
  flush_count bigint NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: leases
CREATE TABLE IF NOT EXISTS `rowfeed_leases` (
  name varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  owner varchar(150) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  epoch bigint NOT NULL,
  expires_at bigint NULL,
  acquired_at bigint NOT NULL,
  renewals bigint NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: lock_schema
SELECT GET_LOCK(:lock, :seconds)

-- name: options
ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: processed
CREATE TABLE IF NOT EXISTS `rowfeed_processed` (
  consumer varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  generation bigint NOT NULL,
  shard bigint NOT NULL,
  position varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  processed_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: restore_session
SET SESSION lock_wait_timeout = :wait, sql_mode = :mode

-- name: roll_back_together
ROLLBACK

-- name: schema_version
CREATE TABLE IF NOT EXISTS `rowfeed_schema_version` (
  version int NOT NULL PRIMARY KEY,
  applied_at bigint NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: sequences
CREATE TABLE IF NOT EXISTS `rowfeed_sequences` (
  name varchar(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  value bigint NOT NULL,
  version bigint NOT NULL,
  updated_at bigint NOT NULL,
  term bigint NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: session_settings
SELECT @@SESSION.lock_wait_timeout, @@SESSION.sql_mode, @@SESSION.autocommit, DATABASE(), :unfit

-- name: shards
CREATE TABLE IF NOT EXISTS `rowfeed_shards` (
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
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: terms
CREATE TABLE IF NOT EXISTS `rowfeed_terms` (
  feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  term bigint NOT NULL,
  upto bigint NOT NULL,
  ended_at bigint NOT NULL,
  PRIMARY KEY (feed, term)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: tokens
CREATE TABLE IF NOT EXISTS `rowfeed_tokens` (
  name varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  sha256 char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
  grants longtext NOT NULL,
  view longtext NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NULL,
  revoked_at bigint NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin

-- name: unlock_schema
DO RELEASE_LOCK(:lock)

-- name: version
SELECT MAX(version) FROM `rowfeed_schema_version`

