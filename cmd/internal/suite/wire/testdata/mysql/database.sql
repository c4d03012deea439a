-- migrate
SELECT @@SESSION.lock_wait_timeout, @@SESSION.sql_mode, @@SESSION.autocommit, DATABASE(), CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END
SELECT GET_LOCK('rowfeed.DIGEST', 10)
SET SESSION lock_wait_timeout = 1
SELECT MAX(version) FROM `DATABASE`.`rowfeed_schema_version`
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_schema_version'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_sequences'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_feeds'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_cursors'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_dead_letters'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_processed'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_flushes'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_leases'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_shards'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_consumers'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_tokens'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_audit'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_terms'
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_schema_version` ( version int NOT NULL PRIMARY KEY, applied_at bigint NOT NULL ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_sequences` ( name varchar(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, value bigint NOT NULL, version bigint NOT NULL, updated_at bigint NOT NULL, term bigint NULL ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_feeds` ( name varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, mode varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, capture varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, state varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, generation bigint NOT NULL, source_schema varchar(64) NULL, source_table varchar(64) NOT NULL, key_columns longtext NOT NULL, delivered_columns longtext NULL, options longtext NOT NULL, data_shards int NOT NULL DEFAULT 1, shard_column varchar(64) NULL, tombstones_seconds bigint NOT NULL, tombstones_below bigint NOT NULL DEFAULT 0, database_identity varchar(255) NULL, fill_after longtext NULL, created_at bigint NOT NULL, failure text NULL, failing_since bigint NULL, attempts bigint NULL, next_try bigint NULL ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_terms` ( feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, term bigint NOT NULL, upto bigint NOT NULL, ended_at bigint NOT NULL, PRIMARY KEY (feed, term) ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_cursors` ( consumer varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, shard bigint NOT NULL, shard_count int NOT NULL, value text CHARACTER SET ascii COLLATE ascii_bin NOT NULL, generation bigint NOT NULL, epoch bigint NOT NULL, version bigint NOT NULL, paused smallint NOT NULL, aside bigint NOT NULL DEFAULT 0, updated_at bigint NOT NULL, failure longtext NULL, failing_since bigint NULL, attempts bigint NULL, next_try bigint NULL, target text NULL, PRIMARY KEY (consumer, feed, shard) ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_dead_letters` ( consumer varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, shard bigint NOT NULL, key_digest char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, key_json longtext NOT NULL, generation bigint NOT NULL, position varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, op varchar(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, state varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, attempts bigint NOT NULL, collapsed bigint NOT NULL, error longtext NOT NULL, first_at bigint NOT NULL, last_at bigint NOT NULL, data_shard bigint NULL, PRIMARY KEY (consumer, feed, shard, key_digest), KEY `rowfeed_dead_letters_first` (consumer, feed, shard, first_at, key_digest) ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_processed` ( consumer varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, generation bigint NOT NULL, shard bigint NOT NULL, position varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, processed_at bigint NOT NULL, PRIMARY KEY (consumer, feed, generation, shard, position) ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_leases` ( name varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, owner varchar(150) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, epoch bigint NOT NULL, expires_at bigint NULL, acquired_at bigint NOT NULL, renewals bigint NOT NULL ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_shards` ( feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, shard bigint NOT NULL, time_ms bigint NOT NULL, ulid_high bigint NOT NULL, ulid_low bigint NOT NULL, below_high bigint NOT NULL DEFAULT 0, below_low bigint NOT NULL DEFAULT 0, witness varchar(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, live_from bigint NOT NULL DEFAULT 0, filled_by bigint NOT NULL DEFAULT 0, PRIMARY KEY (feed, shard) ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_consumers` ( consumer varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, feed varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, shard_count int NOT NULL, paused smallint NOT NULL, version bigint NOT NULL, PRIMARY KEY (consumer, feed) ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_tokens` ( name varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, sha256 char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE, grants longtext NOT NULL, view longtext NOT NULL, created_at bigint NOT NULL, expires_at bigint NULL, revoked_at bigint NULL ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_audit` ( id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, mark varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, at bigint NOT NULL, actor longtext NOT NULL, act longtext NOT NULL, object longtext NOT NULL, detail longtext NOT NULL, outcome longtext NOT NULL ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_flushes` ( id int NOT NULL PRIMARY KEY, flush_count bigint NOT NULL ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
INSERT INTO `DATABASE`.`rowfeed_schema_version` (version, applied_at) VALUES (11, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SET SESSION lock_wait_timeout = 5, sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'
SELECT DATABASE()
DO RELEASE_LOCK('rowfeed.DIGEST')

-- migrate again, and list the migrations

-- acquire, renew, assert and release a lease
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name = 'wire'
BEGIN -- isolation: Read Committed
INSERT INTO `DATABASE`.`rowfeed_leases` (name, owner, epoch, expires_at, acquired_at, renewals) VALUES ('wire', 'OWNER', 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 60000000, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 0)
UPDATE `DATABASE`.`rowfeed_leases` SET expires_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 60000000, renewals = renewals + NUMBER WHERE expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AND name IN ('wire') AND (name = 'wire' AND owner = 'OWNER' AND epoch = 1)
UPDATE `DATABASE`.`rowfeed_leases` SET renewals = renewals + NUMBER WHERE name = 'wire' AND owner = 'OWNER' AND epoch = 1 AND expires_at > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
UPDATE `DATABASE`.`rowfeed_leases` SET owner = '', expires_at = NULL, renewals = renewals + NUMBER WHERE name = 'wire' AND owner = 'OWNER' AND epoch = 1

-- list the leases, and take one from its holder
UPDATE `DATABASE`.`rowfeed_leases` SET owner = 'OWNER', epoch = 2, expires_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 60000000, acquired_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), renewals = 0 WHERE name = 'wire' AND epoch = 1 AND (expires_at IS NULL OR expires_at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` ORDER BY name
UPDATE `DATABASE`.`rowfeed_leases` SET owner = '', expires_at = NULL, renewals = renewals + NUMBER WHERE name = 'wire' AND owner = 'OWNER' AND epoch = 2

-- share the jobs of a group
INSERT INTO `DATABASE`.`rowfeed_leases` (name, owner, epoch, expires_at, acquired_at, renewals) VALUES ('wire/1/0', 'OWNER', 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 60000000, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 0)
INSERT INTO `DATABASE`.`rowfeed_leases` (name, owner, epoch, expires_at, acquired_at, renewals) VALUES ('wire/1/seat/0', 'OWNER', 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 60000000, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 0)
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name >= 'wire/1/' AND name < 'wire/10'
UPDATE `DATABASE`.`rowfeed_leases` SET owner = '', expires_at = NULL, renewals = renewals + NUMBER WHERE name = 'wire/1/0' AND owner = 'OWNER' AND epoch = 1
UPDATE `DATABASE`.`rowfeed_leases` SET owner = '', expires_at = NULL, renewals = renewals + NUMBER WHERE name = 'wire/1/seat/0' AND owner = 'OWNER' AND epoch = 1

-- make, look up, list and revoke a token
INSERT IGNORE INTO `DATABASE`.`rowfeed_tokens` (name, sha256, grants, `view`, created_at, expires_at) VALUES ('wire', 'DIGEST', ?, ?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 3600000000)
SELECT name, sha256, grants, `view`, created_at, expires_at, revoked_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_tokens` WHERE sha256 = 'DIGEST'
SELECT name, sha256, grants, `view`, created_at, expires_at, revoked_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_tokens` WHERE sha256 IN ('DIGEST')
SELECT name, sha256, grants, `view`, created_at, expires_at, revoked_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_tokens` ORDER BY name
UPDATE `DATABASE`.`rowfeed_tokens` SET revoked_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE name = 'wire' AND revoked_at IS NULL
SELECT count(*) FROM `DATABASE`.`rowfeed_tokens` WHERE name = 'wire'

-- audit an act, list and purge the log
INSERT INTO `DATABASE`.`rowfeed_audit` (mark, at, actor, act, object, detail, outcome) VALUES ('RANDOM', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 'wire', 'test', 'none', '', 'begun')
SELECT id FROM `DATABASE`.`rowfeed_audit` WHERE mark = 'RANDOM' ORDER BY id DESC LIMIT 1
UPDATE `DATABASE`.`rowfeed_audit` SET outcome = 'done' WHERE id = 1
SELECT id, at, actor, act, object, detail, outcome FROM `DATABASE`.`rowfeed_audit` ORDER BY id DESC LIMIT 100
SELECT id, at, actor, act, object, detail, outcome FROM `DATABASE`.`rowfeed_audit` WHERE id < 1000 ORDER BY id DESC LIMIT 1
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
SELECT id FROM `DATABASE`.`rowfeed_audit` WHERE id > 0 ORDER BY id LIMIT 1000
DELETE FROM `DATABASE`.`rowfeed_audit` WHERE id >= 1 AND id <= 1 AND at < NUMBER

-- remove the tables
SELECT IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)), IF(TRUE, COLUMN_TYPE, CAST('' AS BINARY)), DATA_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_DEFAULT, GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_feeds' ORDER BY ORDINAL_POSITION LIMIT NUMBER
SELECT IF(TRUE, INDEX_NAME, CAST('' AS BINARY)), IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)), SUB_PART, INDEX_TYPE, 0 /*!80000 + (IS_VISIBLE = 'NO') */ /*M!100600 + (IGNORED = 'YES') */ FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_feeds' AND NON_UNIQUE = 0 AND COALESCE(COLUMN_NAME, '') NOT IN ( SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_feeds' AND GENERATION_EXPRESSION = 'ROW END') ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX LIMIT NUMBER
SELECT DISTINCT IF(TRUE, INDEX_NAME, CAST('' AS BINARY)) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_feeds' LIMIT NUMBER
SELECT IF(TRUE, TRIGGER_NAME, CAST('' AS BINARY)) FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = 'DATABASE' AND EVENT_OBJECT_TABLE = 'rowfeed_feeds' AND EVENT_MANIPULATION = 'UPDATE' ORDER BY 1 LIMIT NUMBER
SELECT @@SESSION.character_set_client
SELECT CONSTRAINT_NAME, REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_feeds' AND (DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')) ORDER BY CONSTRAINT_NAME LIMIT NUMBER
SELECT (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_feeds')
SELECT name FROM `DATABASE`.`rowfeed_feeds` WHERE state <> 'dropped' ORDER BY name
DELETE FROM `DATABASE`.`rowfeed_schema_version`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_flushes`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_audit`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_tokens`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_consumers`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_shards`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_leases`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_processed`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_dead_letters`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_cursors`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_terms`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_feeds`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_sequences`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_schema_version`

