-- add the feed
SELECT MAX(version) FROM `DATABASE`.`rowfeed_schema_version`
SELECT @@SESSION.lock_wait_timeout, @@SESSION.sql_mode, @@SESSION.autocommit, DATABASE(), CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END
SELECT GET_LOCK(?, ?)
SET SESSION lock_wait_timeout = 1
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND t.TABLE_NAME = ?
SELECT IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)), IF(TRUE, COLUMN_TYPE, CAST('' AS BINARY)), DATA_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_DEFAULT, GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION LIMIT NUMBER
SELECT IF(TRUE, INDEX_NAME, CAST('' AS BINARY)), IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)), SUB_PART, INDEX_TYPE, 0 /*!80000 + (IS_VISIBLE = 'NO') */ /*M!100600 + (IGNORED = 'YES') */ FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND NON_UNIQUE = 0 AND COALESCE(COLUMN_NAME, '') NOT IN ( SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND GENERATION_EXPRESSION = 'ROW END') ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX LIMIT NUMBER
SELECT DISTINCT IF(TRUE, INDEX_NAME, CAST('' AS BINARY)) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? LIMIT NUMBER
SELECT IF(TRUE, TRIGGER_NAME, CAST('' AS BINARY)) FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = ? AND EVENT_MANIPULATION = 'UPDATE' ORDER BY 1 LIMIT NUMBER
SELECT @@SESSION.character_set_client
SELECT CONSTRAINT_NAME, REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = ? AND TABLE_NAME = ? AND (DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')) ORDER BY CONSTRAINT_NAME LIMIT NUMBER
SELECT (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv')
SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column FROM `DATABASE`.`rowfeed_feeds` ORDER BY name
SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column FROM `DATABASE`.`rowfeed_feeds` WHERE name = 'kv' ORDER BY name
SELECT CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */), @@GLOBAL.read_only
INSERT INTO `DATABASE`.`rowfeed_feeds` (name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity, created_at) VALUES ('kv', 'sequence', 'trigger', 'creating', 1, '', 'kv', ?, ?, ?, 1, ?, 2592000, 0, ?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT count(*) FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'
INSERT INTO `DATABASE`.`rowfeed_sequences` (name, value, version, updated_at) VALUES ('kv', 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_changes_kv` ( seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `id` bigint NOT NULL, kind tinyint NOT NULL DEFAULT 0, changed_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_positions_kv` ( `id` bigint NOT NULL, feed_sync_id bigint NOT NULL, shard int NOT NULL, bucket int NOT NULL, deleted tinyint NOT NULL, hidden tinyint NOT NULL, published_at bigint NOT NULL, PRIMARY KEY (`id`), KEY feed_sync_id (feed_sync_id, shard, deleted, hidden), KEY deleted (deleted) ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
SET SESSION sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES'
USE `DATABASE`
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_insert`
CREATE TRIGGER `rowfeed_kv_insert` AFTER INSERT ON `kv` FOR EACH ROW INSERT INTO `rowfeed_changes_kv` (`id`) VALUES (NEW.`id`)
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_update`
CREATE TRIGGER `rowfeed_kv_update` AFTER UPDATE ON `kv` FOR EACH ROW BEGIN IF NOT (OLD.`id` <=> NEW.`id`) THEN INSERT INTO `rowfeed_changes_kv` (`id`) VALUES (OLD.`id`); END IF; INSERT INTO `rowfeed_changes_kv` (`id`) VALUES (NEW.`id`); END
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_delete`
CREATE TRIGGER `rowfeed_kv_delete` AFTER DELETE ON `kv` FOR EACH ROW INSERT INTO `rowfeed_changes_kv` (`id`) VALUES (OLD.`id`)
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'filling', fill_after = NULL WHERE name = 'kv'
SET SESSION lock_wait_timeout = 5, sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'
SELECT DATABASE()
DO RELEASE_LOCK('rowfeed.DIGEST')
BEGIN -- isolation: Read Committed
SELECT t.`id` FROM `DATABASE`.`kv` t WHERE 1 = 1 ORDER BY t.`id` LIMIT 1 OFFSET 1999
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) SELECT x.k0, 0 FROM (SELECT t.`id` AS k0 FROM `DATABASE`.`kv` t WHERE 1 = 1 ORDER BY t.`id` LIMIT 9223372036854775807) x
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'active', fill_after = NULL WHERE name = 'kv' AND generation = 1 AND state = 'filling' AND fill_after IS NULL

-- add it again, list the feeds, describe it
BEGIN -- isolation: Read Committed, read only
SELECT s.value, f.generation, @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END, /*M! @@SESSION.autocommit = 1 AND @@SESSION.tx_isolation IN ('READ-COMMITTED', 'REPEATABLE-READ') OR */ 0, /*M! @@SESSION.in_transaction + */ 0 FROM `DATABASE`.`rowfeed_sequences` s JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = s.name WHERE s.name = 'kv'
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 9223372036854775807 AND feed_sync_id <= 0 AND NOT (feed_sync_id <= 0 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 100) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 101

-- write

-- publish first
SELECT seq FROM (SELECT seq FROM `DATABASE`.`rowfeed_changes_kv` ORDER BY seq LIMIT 1) c0
SELECT @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, @@SESSION.sql_log_bin
SELECT value, version, updated_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */), @@GLOBAL.read_only, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv' FOR UPDATE
SELECT seq, kind, `id` FROM `DATABASE`.`rowfeed_changes_kv` ORDER BY seq LIMIT 1000
INSERT INTO `DATABASE`.`rowfeed_positions_kv` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at) SELECT c.`id`, c.seq + CASE WHEN c.seq <= 2 THEN 0 WHEN c.seq <= 9 THEN -1 END, 0, 0, t.`id` IS NULL, 0, NUMBER FROM `DATABASE`.`rowfeed_changes_kv` c FORCE INDEX (PRIMARY) LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id` WHERE (c.seq BETWEEN 1 AND 2 OR c.seq BETWEEN 4 AND 9) AND (t.`id` IS NOT NULL OR EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_positions_kv` old FORCE INDEX (PRIMARY) WHERE old.`id` = c.`id`)) ON DUPLICATE KEY UPDATE feed_sync_id = IF(`DATABASE`.`rowfeed_positions_kv`.hidden = 1, `DATABASE`.`rowfeed_positions_kv`.feed_sync_id, VALUES(feed_sync_id)), published_at = IF(`DATABASE`.`rowfeed_positions_kv`.hidden = 1, `DATABASE`.`rowfeed_positions_kv`.published_at, VALUES(published_at)), deleted = VALUES(deleted)
DELETE FROM `DATABASE`.`rowfeed_changes_kv` WHERE seq >= 1 AND seq <= 2 ORDER BY seq LIMIT 2
DELETE FROM `DATABASE`.`rowfeed_changes_kv` WHERE seq >= 4 AND seq <= 9 ORDER BY seq LIMIT 6
UPDATE `DATABASE`.`rowfeed_sequences` SET value = 8, version = version + 1, updated_at = NUMBER WHERE name = 'kv' AND version = 0 AND EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_feeds` WHERE name = 'kv' AND generation = 1)
SELECT seq FROM (SELECT seq FROM `DATABASE`.`rowfeed_changes_kv` FORCE INDEX (PRIMARY) WHERE seq > 2 ORDER BY seq LIMIT 1) c0

-- publish without changes

-- publish again
SELECT seq, kind, `id` FROM `DATABASE`.`rowfeed_changes_kv` FORCE INDEX (PRIMARY) WHERE seq > 2 ORDER BY seq LIMIT 1000
INSERT INTO `DATABASE`.`rowfeed_positions_kv` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at) SELECT c.`id`, c.seq + CASE WHEN c.seq <= 11 THEN -1 WHEN c.seq <= 19 THEN -2 END, 0, 0, t.`id` IS NULL, 0, NUMBER FROM `DATABASE`.`rowfeed_changes_kv` c FORCE INDEX (PRIMARY) LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id` WHERE (c.seq BETWEEN 10 AND 11 OR c.seq BETWEEN 13 AND 19) AND (t.`id` IS NOT NULL OR EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_positions_kv` old FORCE INDEX (PRIMARY) WHERE old.`id` = c.`id`)) ON DUPLICATE KEY UPDATE feed_sync_id = IF(`DATABASE`.`rowfeed_positions_kv`.hidden = 1, `DATABASE`.`rowfeed_positions_kv`.feed_sync_id, VALUES(feed_sync_id)), published_at = IF(`DATABASE`.`rowfeed_positions_kv`.hidden = 1, `DATABASE`.`rowfeed_positions_kv`.published_at, VALUES(published_at)), deleted = VALUES(deleted)
DELETE FROM `DATABASE`.`rowfeed_changes_kv` WHERE seq >= 10 AND seq <= 19 ORDER BY seq LIMIT 10
UPDATE `DATABASE`.`rowfeed_sequences` SET value = 17, version = version + 1, updated_at = NUMBER WHERE name = 'kv' AND version = 1 AND EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_feeds` WHERE name = 'kv' AND generation = 1)

-- run a publisher
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name = 'publish:kv'
INSERT INTO `DATABASE`.`rowfeed_leases` (name, owner, epoch, expires_at, acquired_at, renewals) VALUES ('publish:kv', 'OWNER', 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 3600000000, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 0)
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 9223372036854775807 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 0 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 1) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 2
SELECT EVENT_OBJECT_TABLE, TRIGGER_NAME, EVENT_MANIPULATION, ACTION_TIMING, ACTION_STATEMENT, DEFINER FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ? AND (EVENT_OBJECT_TABLE = ? OR TRIGGER_NAME IN (?, ?, ?, ?, ?, ?)) ORDER BY TRIGGER_NAME LIMIT NUMBER
SELECT CURRENT_USER()
SELECT RTRIM(Host) FROM mysql.user WHERE RTRIM(User) = ? AND (? LIKE RTRIM(Host) OR LOCATE('/', Host) > 0)
SELECT EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?)), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_changes_kv') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_changes_kv'), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'TRIGGER') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'TRIGGER' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'TRIGGER' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'TRIGGER' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv')
SHOW CREATE TRIGGER `DATABASE`.`rowfeed_kv_delete`
SHOW CREATE TRIGGER `DATABASE`.`rowfeed_kv_insert`
SHOW CREATE TRIGGER `DATABASE`.`rowfeed_kv_update`
SELECT feed_sync_id, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - published_at FROM `DATABASE`.`rowfeed_positions_kv` WHERE deleted = 1 AND hidden = 0 ORDER BY feed_sync_id LIMIT 1
SELECT 'kv', -1, 0, NULL, 0 FROM (SELECT seq FROM (SELECT seq FROM `DATABASE`.`rowfeed_changes_kv` FORCE INDEX (PRIMARY) WHERE seq > 2 ORDER BY seq LIMIT 1) c0) w
UPDATE `DATABASE`.`rowfeed_leases` SET owner = '', expires_at = NULL, renewals = renewals + 1 WHERE name = 'publish:kv' AND owner = 'OWNER' AND epoch = 1

-- read pages of the part: all
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 0 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 9223372036854775807 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 2) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 3
INSERT INTO `DATABASE`.`rowfeed_flushes` (id, flush_count) SELECT MOD(CONNECTION_ID(), 16), 1 FROM DUAL WHERE CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') ON DUPLICATE KEY UPDATE flush_count = flush_count + 1
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 10 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 17 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 2) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 3
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 12 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 17 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 100) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 101
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 17 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 0 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 100) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 101
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 9223372036854775807 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 0 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 100) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 101
SELECT feed_sync_id, published_at FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 8 ORDER BY feed_sync_id LIMIT 1
SELECT feed_sync_id, published_at FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 4 ORDER BY feed_sync_id LIMIT 1
SELECT feed_sync_id, published_at FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 2 ORDER BY feed_sync_id LIMIT 1
SELECT feed_sync_id, published_at FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 1 ORDER BY feed_sync_id LIMIT 1
SELECT feed_sync_id, published_at FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 0 ORDER BY feed_sync_id LIMIT 1
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 8 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 0 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 100) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 101

-- wait for an entry of the part: all
SELECT s.name, f.generation, s.value, NULL, 0 FROM `DATABASE`.`rowfeed_sequences` s JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = s.name

-- read a consistent page of the part: all
SELECT seq FROM `DATABASE`.`rowfeed_changes_kv` ORDER BY seq DESC LIMIT 1
SELECT seq FROM `DATABASE`.`rowfeed_changes_kv` ORDER BY seq ASC LIMIT 1
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 10 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 17 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 100) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 101

-- consume, set an entry aside, list it and try it again
DELETE FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard >= 1
DELETE FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0 AND key_digest = 'DIGEST' AND generation = 1 AND position = '11' AND state = 'retry'
INSERT IGNORE INTO `DATABASE`.`rowfeed_cursors` (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ('wire', 'kv', 0, 1, '', 0, 0, 0, 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
INSERT IGNORE INTO `DATABASE`.`rowfeed_dead_letters` (consumer, feed, shard, key_digest, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, data_shard) VALUES ('wire', 'kv', 0, 'DIGEST', ?, 1, '11', 'upsert', 'aside', 2, 0, ?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 0)
RELEASE SAVEPOINT rowfeed
SAVEPOINT rowfeed
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' ORDER BY consumer, feed, shard, first_at, key_digest
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 ORDER BY consumer, feed, shard, first_at, key_digest
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' ORDER BY consumer, feed, shard
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'wire' AND feed = 'kv' ORDER BY shard
SELECT consumer, feed, shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 10 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 0 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 1) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 2
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 12 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 17 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 2) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 3
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 14 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 17 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 2) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 3
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 17 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 0 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 2) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 3
SELECT key_digest, key_json, generation, position, op, data_shard FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0 AND state = 'retry' ORDER BY first_at, key_digest LIMIT 1
SELECT key_digest, state FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0
SELECT shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'wire' AND feed = 'kv'
SELECT value, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET shard_count = 1, value = '', generation = 0, epoch = 0, paused = 0, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = '17', generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 7 AND value = '17' AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = '17', generation = 1, aside = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 6 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 2 AND value = '' AND generation = 0 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 3 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 4 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 5 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard = 0
UPDATE `DATABASE`.`rowfeed_dead_letters` SET op = 'delete' WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0 AND generation < 0
UPDATE `DATABASE`.`rowfeed_dead_letters` SET state = 'retry', last_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 0 AND key_digest = 'DIGEST'

-- drop dead letters
SELECT count(*) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'

-- pause, resume, seek and reset the consumer
UPDATE `DATABASE`.`rowfeed_consumers` SET paused = 1, version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET paused = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT shard FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND paused <> 0 ORDER BY shard
UPDATE `DATABASE`.`rowfeed_consumers` SET paused = 0, version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET paused = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET value = '17', generation = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_dead_letters` SET generation = -ABS(generation), op = 'upsert' WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_consumers` k WHERE k.consumer = `DATABASE`.`rowfeed_cursors`.consumer AND k.feed = `DATABASE`.`rowfeed_cursors`.feed)
SELECT feed, MAX(epoch) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_consumers` k WHERE k.consumer = `DATABASE`.`rowfeed_cursors`.consumer AND k.feed = `DATABASE`.`rowfeed_cursors`.feed) GROUP BY feed ORDER BY feed
UPDATE `DATABASE`.`rowfeed_cursors` SET value = '', generation = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name = 'consumer:kv:wire/dropped'

-- deliver outside of transactions, under an epoch
SELECT shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'deliver' AND feed = 'kv'
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'deliver' AND feed = 'kv' ORDER BY shard
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + 1 WHERE 1 = 1 AND consumer = 'deliver' AND feed = 'kv' AND shard = 0
INSERT IGNORE INTO `DATABASE`.`rowfeed_cursors` (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ('deliver', 'kv', 0, 1, '', 0, 0, 0, 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
UPDATE `DATABASE`.`rowfeed_cursors` SET shard_count = 1, value = '', generation = 0, epoch = 0, paused = 0, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'deliver' AND feed = 'kv' AND shard = 0
DELETE FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'deliver' AND feed = 'kv' AND shard >= 1
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name >= 'consumer:kv:deliver/' AND name < 'consumer:kv:deliver0' OR name = ''
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET epoch = 7, version = version + 1, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND epoch < 7
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 3 AND value = '' AND generation = 0 AND epoch = 7 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 4 AND value = ? AND generation = 1 AND epoch = 7 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 5 AND value = ? AND generation = 1 AND epoch = 7 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = '17', generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 6 AND value = ? AND generation = 1 AND epoch = 7 AND aside = 0 AND paused = 0

-- note an entry as processed, and forget it
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 0 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 9223372036854775807 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 1) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 2
INSERT IGNORE INTO `DATABASE`.`rowfeed_processed` (consumer, feed, generation, shard, position, processed_at) VALUES ('wire', 'kv', 1, 0, 'NUMBER', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT DISTINCT generation, shard FROM `DATABASE`.`rowfeed_processed` WHERE consumer = 'wire' AND feed = 'kv' AND generation <= 1
SELECT position FROM `DATABASE`.`rowfeed_processed` WHERE consumer = 'wire' AND feed = 'kv' AND generation = 1 AND shard = 0 AND position <= 'NUMBER' ORDER BY position LIMIT 1 OFFSET 1999
DELETE FROM `DATABASE`.`rowfeed_processed` WHERE consumer = 'wire' AND feed = 'kv' AND generation = 1 AND shard = 0 AND position <= 'NUMBER'

-- drop the consumer
DELETE FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
DELETE FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
DELETE FROM `DATABASE`.`rowfeed_processed` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT consumer, feed, MAX(epoch) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed
DELETE FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'

-- fail once, and handle the entries at the second attempt
DELETE FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND consumer = 'again'
DELETE FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'again'
DELETE FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'again' AND feed = 'kv' AND shard >= 1
DELETE FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'again'
DELETE FROM `DATABASE`.`rowfeed_processed` WHERE 1 = 1 AND consumer = 'again'
INSERT IGNORE INTO `DATABASE`.`rowfeed_cursors` (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ('again', 'kv', 0, 1, '', 0, 0, 0, 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT consumer, feed, MAX(epoch) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'again' GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'again' AND feed = 'kv' AND shard = 0
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'again' AND feed = 'kv' ORDER BY shard
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 0 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 9223372036854775807 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 100) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 101
SELECT shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'again' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + 1 WHERE 1 = 1 AND consumer = 'again'
UPDATE `DATABASE`.`rowfeed_cursors` SET shard_count = 1, value = '', generation = 0, epoch = 0, paused = 0, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'again' AND feed = 'kv' AND shard = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = '17', generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'again' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 2 AND value = '' AND generation = 0 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + 1 WHERE 1 = 1 AND consumer = 'again'
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + 1 WHERE 1 = 1 AND consumer = 'again' AND feed = 'kv' AND shard = 0

-- relay into a mirror table
CREATE TABLE IF NOT EXISTS `rowfeed_sweep_mirror` (`id` bigint NOT NULL, PRIMARY KEY (`id`))
DELETE FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND consumer = 'mirror'
DELETE FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'mirror'
DELETE FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'mirror' AND feed = 'kv' AND shard >= 1
DELETE FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'mirror'
DELETE FROM `DATABASE`.`rowfeed_processed` WHERE 1 = 1 AND consumer = 'mirror'
DELETE FROM `rowfeed_sweep_mirror`
INSERT IGNORE INTO `DATABASE`.`rowfeed_cursors` (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ('mirror', 'kv', 0, 1, '', 0, 0, 0, 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
INSERT IGNORE INTO `DATABASE`.`rowfeed_leases` (name, owner, epoch, expires_at, acquired_at, renewals) VALUES ('consumer:kv:mirror/dropped', '', 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 0)
INSERT INTO `DATABASE`.`rowfeed_leases` (name, owner, epoch, expires_at, acquired_at, renewals) VALUES ('relay:kv:mirror', 'OWNER', 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 10000000, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 0)
INSERT INTO `mirror` (`id`, `k`, `v`) VALUES (1, 'k', 2), (2, 'k', 2), (4, 'k', 2) ON DUPLICATE KEY UPDATE `id` = VALUES(`id`), `k` = VALUES(`k`), `v` = VALUES(`v`)
INSERT INTO `mirror` (`id`, `k`, `v`) VALUES (5, 'k', 2), (6, 'k', 2), (7, 'k', 2) ON DUPLICATE KEY UPDATE `id` = VALUES(`id`), `k` = VALUES(`k`), `v` = VALUES(`v`)
INSERT INTO `mirror` (`id`, `k`, `v`) VALUES (8, 'k', 2), (9, 'k', 1) ON DUPLICATE KEY UPDATE `id` = VALUES(`id`), `k` = VALUES(`k`), `v` = VALUES(`v`)
INSERT INTO `rowfeed_sweep_mirror` (`id`) SELECT `id` FROM `mirror`
SELECT (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'mirror')
SELECT 1 FROM `rowfeed_sweep_mirror` LIMIT 1
SELECT consumer, feed, MAX(epoch) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'mirror' GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'mirror' AND feed = 'kv' AND shard = 0
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'mirror' AND feed = 'kv' ORDER BY shard
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 0 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 9223372036854775807 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 3) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 4
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 11 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 17 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 3) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 4
SELECT f.generation, f.tombstones_below, s.value, (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), p.feed_sync_id, p.shard, p.deleted, p.hidden, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END, p.`id`, t.`id`, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)), t.`v` FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN (SELECT `id`, feed_sync_id, shard, deleted, hidden FROM `DATABASE`.`rowfeed_positions_kv` WHERE feed_sync_id > 14 AND feed_sync_id <= 17 AND NOT (feed_sync_id <= 17 AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT 3) p ON 1 = 1 LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON p.`id` = t.`id` WHERE f.name = 'kv' LIMIT 4
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name = 'consumer:kv:mirror/dropped'
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name = 'relay:kv:mirror'
SELECT shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'mirror' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + 1 WHERE 1 = 1 AND consumer = 'mirror'
UPDATE `DATABASE`.`rowfeed_cursors` SET epoch = 1, version = version + 1, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'mirror' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND epoch < 1
UPDATE `DATABASE`.`rowfeed_cursors` SET shard_count = 1, value = '', generation = 0, epoch = 0, paused = 0, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'mirror' AND feed = 'kv' AND shard = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = '17', generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'mirror' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 5 AND value = ? AND generation = 1 AND epoch = 1 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'mirror' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 3 AND value = '' AND generation = 0 AND epoch = 1 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'mirror' AND feed = 'kv' AND shard = 0 AND shard_count = 1 AND version = 4 AND value = ? AND generation = 1 AND epoch = 1 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + 1 WHERE 1 = 1 AND consumer = 'mirror'
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + 1 WHERE 1 = 1 AND consumer = 'mirror' AND feed = 'kv' AND shard = 0
UPDATE `DATABASE`.`rowfeed_leases` SET epoch = 1, acquired_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE name = 'consumer:kv:mirror/dropped' AND epoch < 1
UPDATE `DATABASE`.`rowfeed_leases` SET owner = '', expires_at = NULL, renewals = renewals + 1 WHERE name = 'relay:kv:mirror' AND owner = 'OWNER' AND epoch = 1

-- status
SELECT value, updated_at FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'
SELECT (SELECT count(*) FROM (SELECT 1 FROM `DATABASE`.`rowfeed_changes_kv` LIMIT 1000000) x), (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - CAST(UNIX_TIMESTAMP(changed_at) * 1000000 AS SIGNED) FROM `DATABASE`.`rowfeed_changes_kv` ORDER BY seq LIMIT 1)
SELECT count(*) FROM `DATABASE`.`rowfeed_positions_kv` p LEFT JOIN `DATABASE`.`kv` t ON p.`id` = t.`id` LEFT JOIN (SELECT DISTINCT `id` FROM `DATABASE`.`rowfeed_changes_kv`) c ON c.`id` = p.`id` WHERE p.deleted = 0 AND t.`id` IS NULL AND c.`id` IS NULL
SELECT COUNT(*) FROM performance_schema.setup_instruments WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES' AND @@GLOBAL.performance_schema = 1
SELECT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, TIMESTAMPDIFF(MICROSECOND, x.trx_started, CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', 'SYSTEM')), COALESCE(COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT FROM performance_schema.events_statements_current s WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1)), ''), 'wrote to the feed' FROM performance_schema.metadata_locks m JOIN performance_schema.threads th ON th.THREAD_ID = m.OWNER_THREAD_ID JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = th.PROCESSLIST_ID AND x.trx_rows_modified > 0 WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND m.OBJECT_NAME = ? AND m.LOCK_TYPE = 'SHARED_WRITE' AND m.LOCK_DURATION = 'TRANSACTION' AND m.LOCK_STATUS = 'GRANTED' AND th.PROCESSLIST_ID <> CONNECTION_ID() ORDER BY 4 DESC LIMIT NUMBER
SELECT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, th.PROCESSLIST_TIME * 1000000, COALESCE(COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT FROM performance_schema.events_statements_current s WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1)), ''), IF(m.LOCK_TYPE IN ('EXCLUSIVE', 'SHARED_NO_READ_WRITE'), 'locks the feed''s table, or waits to lock it', 'has used the feed''s table, which another session waits to lock') FROM performance_schema.metadata_locks m JOIN performance_schema.threads th ON th.THREAD_ID = m.OWNER_THREAD_ID WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND m.OBJECT_NAME = ? AND th.PROCESSLIST_ID <> CONNECTION_ID() AND (m.LOCK_TYPE IN ('EXCLUSIVE', 'SHARED_NO_READ_WRITE') OR m.LOCK_STATUS = 'GRANTED' AND EXISTS ( SELECT 1 FROM performance_schema.metadata_locks x WHERE x.OBJECT_TYPE = 'TABLE' AND x.OBJECT_SCHEMA = m.OBJECT_SCHEMA AND x.OBJECT_NAME = m.OBJECT_NAME AND x.LOCK_TYPE = 'EXCLUSIVE' AND x.LOCK_STATUS = 'PENDING' AND x.OWNER_THREAD_ID <> m.OWNER_THREAD_ID)) ORDER BY 4 DESC LIMIT NUMBER
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND feed = 'kv' ORDER BY consumer, feed, shard
SELECT consumer, feed, shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND feed = 'kv'
SELECT (SELECT count(*) FROM (SELECT 1 FROM `DATABASE`.`rowfeed_changes_kv` LIMIT 10) x), (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - CAST(UNIX_TIMESTAMP(changed_at) * 1000000 AS SIGNED) FROM `DATABASE`.`rowfeed_changes_kv` ORDER BY seq LIMIT 1)

-- verify

-- republish, unpublish and delete keys
SELECT (SELECT count(*) FROM `DATABASE`.`kv` x WHERE x.`id` = 1) + (SELECT count(*) FROM `DATABASE`.`rowfeed_positions_kv` x WHERE x.`id` = 1)
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) VALUES (1, 1)
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) VALUES (2, 1)
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) VALUES (5, 2)
DELETE FROM `DATABASE`.`kv` WHERE `id` = ?
SELECT count(*) FROM `DATABASE`.`kv` t WHERE (v > 0)
SELECT t.`id` FROM `DATABASE`.`kv` t WHERE 1 = 1 AND (v > 0) ORDER BY t.`id` LIMIT 1 OFFSET 1
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) SELECT x.k0, 0 FROM (SELECT t.`id` AS k0 FROM `DATABASE`.`kv` t WHERE 1 = 1 AND (v > 0) AND t.`id` <= CAST(2 AS DECIMAL(20,0)) ORDER BY t.`id` LIMIT 9223372036854775807) x
SELECT t.`id` FROM `DATABASE`.`kv` t WHERE 1 = 1 AND (v > 0) AND t.`id` > CAST(2 AS DECIMAL(20,0)) ORDER BY t.`id` LIMIT 1 OFFSET 1
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) SELECT x.k0, 0 FROM (SELECT t.`id` AS k0 FROM `DATABASE`.`kv` t WHERE 1 = 1 AND (v > 0) AND t.`id` > CAST(2 AS DECIMAL(20,0)) AND t.`id` <= CAST(5 AS DECIMAL(20,0)) ORDER BY t.`id` LIMIT 9223372036854775807) x
SELECT t.`id` FROM `DATABASE`.`kv` t WHERE 1 = 1 AND (v > 0) AND t.`id` > CAST(5 AS DECIMAL(20,0)) ORDER BY t.`id` LIMIT 1 OFFSET 1
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) SELECT x.k0, 0 FROM (SELECT t.`id` AS k0 FROM `DATABASE`.`kv` t WHERE 1 = 1 AND (v > 0) AND t.`id` > CAST(5 AS DECIMAL(20,0)) AND t.`id` <= CAST(8 AS DECIMAL(20,0)) ORDER BY t.`id` LIMIT 9223372036854775807) x
SELECT t.`id` FROM `DATABASE`.`kv` t WHERE 1 = 1 AND (v > 0) AND t.`id` > CAST(8 AS DECIMAL(20,0)) ORDER BY t.`id` LIMIT 1 OFFSET 1
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) SELECT x.k0, 0 FROM (SELECT t.`id` AS k0 FROM `DATABASE`.`kv` t WHERE 1 = 1 AND (v > 0) AND t.`id` > CAST(8 AS DECIMAL(20,0)) ORDER BY t.`id` LIMIT 9223372036854775807) x
INSERT INTO `DATABASE`.`rowfeed_positions_kv` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at) SELECT c.`id`, 17 + j.place, j.shard, 0, t.`id` IS NULL, j.kind = 2, NUMBER FROM JSON_TABLE('[[23,0,0],[24,0,1],[25,0,1],[27,0,0],[28,0,2],[30,0,0],[31,0,0],[33,0,0]]', '$[*]' COLUMNS (place FOR ORDINALITY, seq BIGINT PATH '$[0]', shard INT PATH '$[1]', kind INT PATH '$[2]')) j STRAIGHT_JOIN `DATABASE`.`rowfeed_changes_kv` c FORCE INDEX (PRIMARY) ON c.seq = j.seq LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id` WHERE (t.`id` IS NOT NULL OR EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_positions_kv` old FORCE INDEX (PRIMARY) WHERE old.`id` = c.`id`)) ON DUPLICATE KEY UPDATE feed_sync_id = IF(`DATABASE`.`rowfeed_positions_kv`.hidden = 1 AND j.kind = 0, `DATABASE`.`rowfeed_positions_kv`.feed_sync_id, VALUES(feed_sync_id)), published_at = IF(`DATABASE`.`rowfeed_positions_kv`.hidden = 1 AND j.kind = 0, `DATABASE`.`rowfeed_positions_kv`.published_at, VALUES(published_at)), deleted = VALUES(deleted), hidden = (j.kind = 2 OR `DATABASE`.`rowfeed_positions_kv`.hidden = 1 AND j.kind <> 1)
DELETE FROM `DATABASE`.`rowfeed_changes_kv` WHERE seq >= 20 AND seq <= 25 ORDER BY seq LIMIT 6
DELETE FROM `DATABASE`.`rowfeed_changes_kv` WHERE seq >= 27 AND seq <= 28 ORDER BY seq LIMIT 2
DELETE FROM `DATABASE`.`rowfeed_changes_kv` WHERE seq >= 30 AND seq <= 31 ORDER BY seq LIMIT 2
DELETE FROM `DATABASE`.`rowfeed_changes_kv` WHERE seq >= 33 AND seq <= 33 ORDER BY seq LIMIT 1
UPDATE `DATABASE`.`rowfeed_sequences` SET value = 25, version = version + 1, updated_at = NUMBER WHERE name = 'kv' AND version = 2 AND EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_feeds` WHERE name = 'kv' AND generation = 1)

-- purge deletes
SELECT feed_sync_id, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - published_at FROM `DATABASE`.`rowfeed_positions_kv` WHERE deleted = 1 AND hidden = 0 AND feed_sync_id >= 16 ORDER BY feed_sync_id LIMIT 1
SELECT feed_sync_id, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - published_at FROM `DATABASE`.`rowfeed_positions_kv` WHERE deleted = 1 AND hidden = 0 AND feed_sync_id >= 16 ORDER BY feed_sync_id LIMIT 500
DELETE FROM `DATABASE`.`rowfeed_positions_kv` WHERE deleted = 1 AND feed_sync_id IN (16, 18)
UPDATE `DATABASE`.`rowfeed_feeds` SET tombstones_below = 18 WHERE name = 'kv' AND tombstones_below < 18

-- check
BEGIN -- isolation: Repeatable Read, read only
SELECT feed_sync_id FROM `DATABASE`.`rowfeed_positions_kv` GROUP BY feed_sync_id HAVING count(*) > 1 LIMIT 100
SELECT p.`id` FROM `DATABASE`.`rowfeed_positions_kv` p LEFT JOIN `DATABASE`.`kv` t ON p.`id` = t.`id` JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = 'kv' WHERE (p.feed_sync_id > s.value) LIMIT 100
SELECT t.`id` FROM `DATABASE`.`kv` t LEFT JOIN `DATABASE`.`rowfeed_positions_kv` p ON p.`id` = t.`id` LEFT JOIN (SELECT DISTINCT `id` FROM `DATABASE`.`rowfeed_changes_kv`) c ON c.`id` = t.`id` WHERE p.feed_sync_id IS NULL AND c.`id` IS NULL LIMIT 100
SELECT p.`id` FROM `DATABASE`.`rowfeed_positions_kv` p LEFT JOIN `DATABASE`.`kv` t ON p.`id` = t.`id` LEFT JOIN (SELECT DISTINCT `id` FROM `DATABASE`.`rowfeed_changes_kv`) c ON c.`id` = p.`id` WHERE p.deleted = 0 AND t.`id` IS NULL AND c.`id` IS NULL LIMIT 100
SELECT p.`id` FROM `DATABASE`.`rowfeed_positions_kv` p LEFT JOIN `DATABASE`.`kv` t ON p.`id` = t.`id` LEFT JOIN (SELECT DISTINCT `id` FROM `DATABASE`.`rowfeed_changes_kv`) c ON c.`id` = p.`id` WHERE p.deleted = 1 AND NOT (t.`id` IS NULL) AND c.`id` IS NULL LIMIT 100

-- repair
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) SELECT x.k0, 0 FROM (SELECT t.`id` AS k0 FROM `DATABASE`.`kv` t LEFT JOIN `DATABASE`.`rowfeed_positions_kv` p ON p.`id` = t.`id` LEFT JOIN (SELECT DISTINCT `id` FROM `DATABASE`.`rowfeed_changes_kv`) c ON c.`id` = t.`id` WHERE p.feed_sync_id IS NULL AND c.`id` IS NULL LIMIT 9223372036854775807) x
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) SELECT x.k0, 0 FROM (SELECT p.`id` AS k0 FROM `DATABASE`.`rowfeed_positions_kv` p LEFT JOIN `DATABASE`.`kv` t ON p.`id` = t.`id` LEFT JOIN (SELECT DISTINCT `id` FROM `DATABASE`.`rowfeed_changes_kv`) c ON c.`id` = p.`id` WHERE p.deleted = 0 AND t.`id` IS NULL AND c.`id` IS NULL LIMIT 9223372036854775807) x
INSERT INTO `DATABASE`.`rowfeed_changes_kv` (`id`, kind) SELECT x.k0, 0 FROM (SELECT p.`id` AS k0 FROM `DATABASE`.`rowfeed_positions_kv` p LEFT JOIN `DATABASE`.`kv` t ON p.`id` = t.`id` LEFT JOIN (SELECT DISTINCT `id` FROM `DATABASE`.`rowfeed_changes_kv`) c ON c.`id` = p.`id` WHERE p.deleted = 1 AND NOT (t.`id` IS NULL) AND c.`id` IS NULL LIMIT 9223372036854775807) x
INSERT INTO `DATABASE`.`rowfeed_positions_kv` (`id`, feed_sync_id, shard, bucket, deleted, hidden, published_at) SELECT c.`id`, c.seq + CASE WHEN c.seq <= 34 THEN -8 END, 0, 0, t.`id` IS NULL, 0, NUMBER FROM `DATABASE`.`rowfeed_changes_kv` c FORCE INDEX (PRIMARY) LEFT JOIN `DATABASE`.`kv` t FORCE INDEX (PRIMARY) ON c.`id` = t.`id` WHERE (c.seq BETWEEN 34 AND 34) AND (t.`id` IS NOT NULL OR EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_positions_kv` old FORCE INDEX (PRIMARY) WHERE old.`id` = c.`id`)) ON DUPLICATE KEY UPDATE feed_sync_id = IF(`DATABASE`.`rowfeed_positions_kv`.hidden = 1, `DATABASE`.`rowfeed_positions_kv`.feed_sync_id, VALUES(feed_sync_id)), published_at = IF(`DATABASE`.`rowfeed_positions_kv`.hidden = 1, `DATABASE`.`rowfeed_positions_kv`.published_at, VALUES(published_at)), deleted = VALUES(deleted)
DELETE FROM `DATABASE`.`rowfeed_changes_kv` WHERE seq >= 34 AND seq <= 34 ORDER BY seq LIMIT 1
UPDATE `DATABASE`.`rowfeed_sequences` SET value = 26, version = version + 1, updated_at = NUMBER WHERE name = 'kv' AND version = 3 AND EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_feeds` WHERE name = 'kv' AND generation = 1)

-- upgrade
UPDATE `DATABASE`.`rowfeed_feeds` SET options = ? WHERE name = 'kv'
UPDATE `DATABASE`.`rowfeed_feeds` SET key_columns = ? WHERE name = 'kv'
SELECT value FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'

-- divide by another number of data shards
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'sharding', fill_after = NULL, data_shards = 8 WHERE name = 'kv' AND state = 'active' AND generation = 1
UPDATE `DATABASE`.`rowfeed_sequences` SET version = version + 1 WHERE name = 'kv'
UPDATE `DATABASE`.`rowfeed_feeds` SET generation = CASE WHEN ROUND(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000) > generation + 1 THEN ROUND(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000) ELSE generation + 1 END, database_identity = 'server_id 1, server_uuid UUID' WHERE name = 'kv'
SELECT t.feed_sync_id, t.shard, t.bucket, t.`id` FROM `DATABASE`.`rowfeed_positions_kv` t ORDER BY t.`id` LIMIT 500
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (position BIGINT PATH '$[0]', shard INT PATH '$[1]')) j STRAIGHT_JOIN `DATABASE`.`rowfeed_positions_kv` p FORCE INDEX (feed_sync_id) ON p.feed_sync_id = j.position SET p.shard = j.shard, p.bucket = ((j.shard + 1) * 8 - 1) DIV 8
SELECT count(*) FROM `DATABASE`.`rowfeed_feeds` WHERE name = 'kv' AND generation = SECONDS AND state = 'sharding' AND fill_after IS NULL
UPDATE `DATABASE`.`rowfeed_feeds` SET fill_after = ? WHERE name = 'kv' AND generation = SECONDS AND state = 'sharding' AND fill_after IS NULL
SELECT count(*) FROM `DATABASE`.`rowfeed_feeds` WHERE name = 'kv' AND generation = SECONDS AND state = 'sharding' AND fill_after = ?
ALTER TABLE `DATABASE`.`rowfeed_positions_kv` ADD INDEX `bucket` (bucket, feed_sync_id, shard, deleted, hidden)
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'active', fill_after = NULL WHERE name = 'kv' AND generation = SECONDS AND state = 'sharding' AND fill_after = ?

-- adopt the database, and begin a new generation

-- grant and revoke
SET @rowfeed_grant = NULL /*M!100200 , SESSION sql_mode = CONCAT_WS(',', NULLIF(@@SESSION.sql_mode, ''), 'NO_AUTO_CREATE_USER') */
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_schema_version` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_feeds` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_sequences` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_positions_kv` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_flushes` TO 'wire_DATABASE'@'localhost'
GRANT INSERT ON TABLE `DATABASE`.`rowfeed_flushes` TO 'wire_DATABASE'@'localhost'
GRANT UPDATE ON TABLE `DATABASE`.`rowfeed_flushes` TO 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_schema_version` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_feeds` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_sequences` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_positions_kv` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_flushes` FROM 'wire_DATABASE'@'localhost'
REVOKE INSERT ON TABLE `DATABASE`.`rowfeed_flushes` FROM 'wire_DATABASE'@'localhost'
REVOKE UPDATE ON TABLE `DATABASE`.`rowfeed_flushes` FROM 'wire_DATABASE'@'localhost'

-- drop the feed
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'dropping', fill_after = NULL WHERE name = 'kv'
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_insert_2`
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_update_2`
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_delete_2`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_changes_kv`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_positions_kv`
DELETE FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'dropped', fill_after = NULL WHERE name = 'kv'

