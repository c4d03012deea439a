-- add the feed
SELECT MAX(version) FROM `DATABASE`.`rowfeed_schema_version`
SELECT @@SESSION.lock_wait_timeout, @@SESSION.sql_mode, @@SESSION.autocommit, DATABASE(), CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END
SELECT GET_LOCK('rowfeed.DIGEST', 10)
SET SESSION lock_wait_timeout = 1
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('', ''), DATABASE()) AND t.TABLE_NAME = 'kv'
SELECT IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)), IF(TRUE, COLUMN_TYPE, CAST('' AS BINARY)), DATA_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_DEFAULT, GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv' ORDER BY ORDINAL_POSITION LIMIT NUMBER
SELECT IF(TRUE, INDEX_NAME, CAST('' AS BINARY)), IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)), SUB_PART, INDEX_TYPE, 0 /*!80000 + (IS_VISIBLE = 'NO') */ /*M!100600 + (IGNORED = 'YES') */ FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv' AND NON_UNIQUE = 0 AND COALESCE(COLUMN_NAME, '') NOT IN ( SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv' AND GENERATION_EXPRESSION = 'ROW END') ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX LIMIT NUMBER
SELECT DISTINCT IF(TRUE, INDEX_NAME, CAST('' AS BINARY)) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv' LIMIT NUMBER
SELECT IF(TRUE, TRIGGER_NAME, CAST('' AS BINARY)) FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = 'DATABASE' AND EVENT_OBJECT_TABLE = 'kv' AND EVENT_MANIPULATION = 'UPDATE' ORDER BY 1 LIMIT NUMBER
SELECT @@SESSION.character_set_client
SELECT CONSTRAINT_NAME, REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv' AND (DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')) ORDER BY CONSTRAINT_NAME LIMIT NUMBER
SELECT (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv')
SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column, failure, failing_since, attempts, next_try FROM `DATABASE`.`rowfeed_feeds` ORDER BY name
SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column, failure, failing_since, attempts, next_try FROM `DATABASE`.`rowfeed_feeds` WHERE name = 'kv'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_outbox_kv'
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'rowfeed_feed_kv'
SELECT CURRENT_USER()
SELECT DEFINER, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND ROUTINE_NAME = 'rowfeed_lock_kv' AND ROUTINE_TYPE = 'PROCEDURE'
SELECT DEFINER, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND ROUTINE_NAME = 'rowfeed_take_kv' AND ROUTINE_TYPE = 'PROCEDURE'
SELECT DEFINER, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND ROUTINE_NAME = 'rowfeed_witness_kv' AND ROUTINE_TYPE = 'PROCEDURE'
SELECT DEFINER, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND ROUTINE_NAME = 'rowfeed_ulid_kv' AND ROUTINE_TYPE = 'FUNCTION'
SELECT CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */), @@GLOBAL.read_only
INSERT INTO `DATABASE`.`rowfeed_feeds` (name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity, created_at) VALUES ('kv', 'outbox', 'trigger', 'creating', 1, '', 'kv', ?, ?, ?, 1, 'v', 0, 0, ?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT count(*) FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'
INSERT INTO `DATABASE`.`rowfeed_sequences` (name, value, version, updated_at) VALUES ('kv', 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_outbox_kv` ( order_sequence bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, shard bigint NOT NULL DEFAULT 0, time_hint bigint NULL, appended_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), `id` bigint(20) NOT NULL, KEY shard (shard, order_sequence) ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE IF NOT EXISTS `DATABASE`.`rowfeed_feed_kv` ( shard bigint NOT NULL, ulid binary(16) NOT NULL, `id` bigint(20) NOT NULL, PRIMARY KEY (`id`), UNIQUE KEY place (shard, ulid) ) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
SET SESSION sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES'
USE `DATABASE`
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_insert`
CREATE TRIGGER `rowfeed_kv_insert` AFTER INSERT ON `kv` FOR EACH ROW INSERT INTO `rowfeed_outbox_kv` (shard, `id`) VALUES (NEW.`v`, NEW.`id`)
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_update`
CREATE TRIGGER `rowfeed_kv_update` AFTER UPDATE ON `kv` FOR EACH ROW BEGIN IF NOT (OLD.`id` <=> NEW.`id`) THEN INSERT INTO `rowfeed_outbox_kv` (shard, `id`) VALUES (NEW.`v`, NEW.`id`); END IF; END
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'filling', fill_after = NULL WHERE name = 'kv'
SET SESSION lock_wait_timeout = 5, sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'
SELECT DATABASE()
DO RELEASE_LOCK('rowfeed.DIGEST')
SELECT shard FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) ORDER BY shard LIMIT 1
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE, @@GLOBAL.log_bin, @@GLOBAL.binlog_format FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND t.TABLE_NAME = 'kv'
BEGIN -- isolation: Read Committed
SELECT t.`id` FROM `DATABASE`.`kv` t WHERE 1 = 1 ORDER BY t.`id` LIMIT 1 OFFSET 1999
SELECT x.shard FROM (SELECT DISTINCT t.`v` AS shard FROM `DATABASE`.`kv` t LEFT JOIN `DATABASE`.`rowfeed_feed_kv` g ON g.`id` = t.`id` LEFT JOIN (SELECT DISTINCT `id` FROM `DATABASE`.`rowfeed_outbox_kv`) c ON c.`id` = t.`id` WHERE 1 = 1 AND g.`id` IS NULL AND c.`id` IS NULL) x LEFT JOIN `DATABASE`.`rowfeed_shards` s ON s.feed = 'kv' AND s.shard = x.shard WHERE COALESCE(s.filled_by, 0) = 0 ORDER BY x.shard
SET @rowfeed_wait_timeout = @@SESSION.wait_timeout, SESSION wait_timeout = CAST(LEAST(@@SESSION.wait_timeout, 10) AS SIGNED)
SAVEPOINT rowfeed_lock
RELEASE SAVEPOINT rowfeed_lock
INSERT INTO `DATABASE`.`rowfeed_shards` (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('kv', 1, 0, 0, 0, '') ON DUPLICATE KEY UPDATE witness = witness
SELECT time_ms, ulid_high, ulid_low, witness, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv' AND shard = 1 FOR UPDATE
SELECT created_at FROM `DATABASE`.`rowfeed_feeds` WHERE name = 'kv'
UPDATE `DATABASE`.`rowfeed_shards` SET time_ms = NUMBER, ulid_high = NUMBER, ulid_low = NUMBER, witness = '' WHERE feed = 'kv' AND shard = 1
UPDATE `DATABASE`.`rowfeed_shards` SET live_from = NUMBER WHERE feed = 'kv' AND shard = 1
UPDATE `DATABASE`.`rowfeed_shards` SET filled_by = 1 WHERE feed = 'kv' AND shard = 1 AND filled_by = 0
SET SESSION wait_timeout = @rowfeed_wait_timeout
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'active', fill_after = NULL WHERE name = 'kv' AND generation = 1 AND data_shards = 1 AND state = 'filling' AND fill_after IS NULL
INSERT INTO `DATABASE`.`rowfeed_feed_kv` (shard, ulid, `id`) SELECT x.shard, UNHEX(CONCAT(LPAD(HEX(CAST((x.live - 1) * 65536 + 1 AS UNSIGNED)), 16, '0'), LPAD(HEX(CAST(16777216 + x.n AS UNSIGNED)), 16, '0'))), x.k0 FROM (SELECT t.`v` AS shard, s.live_from AS live, s.filled_by AS first_run, t.`id` AS k0, row_number() OVER (ORDER BY t.`id`) AS n FROM `DATABASE`.`kv` t JOIN `DATABASE`.`rowfeed_shards` s ON s.feed = 'kv' AND s.shard = t.`v` AND s.live_from > 0 AND s.filled_by > 0 LEFT JOIN `DATABASE`.`rowfeed_feed_kv` g ON g.`id` = t.`id` LEFT JOIN (SELECT DISTINCT `id` FROM `DATABASE`.`rowfeed_outbox_kv`) c ON c.`id` = t.`id` WHERE 1 = 1 AND g.`id` IS NULL AND c.`id` IS NULL) x ON DUPLICATE KEY UPDATE shard = `DATABASE`.`rowfeed_feed_kv`.shard

-- add it again, list the feeds, describe it
SELECT shard FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv' ORDER BY shard LIMIT 10001
SELECT shard FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv' ORDER BY shard LIMIT 21
BEGIN -- isolation: Read Committed, read only
SELECT f.generation, @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END, /*M! @@SESSION.autocommit = 1 AND @@SESSION.tx_isolation IN ('READ-COMMITTED', 'REPEATABLE-READ') OR */ 0, /*M! @@SESSION.in_transaction + */ 0, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), (SELECT g.`ulid` FROM `DATABASE`.`rowfeed_feed_kv` g WHERE g.`shard` = CAST(1 AS DECIMAL(20,0)) ORDER BY g.`ulid` DESC LIMIT 1), COALESCE((SELECT 1 FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 ORDER BY order_sequence LIMIT 1), 0), CASE WHEN f.state IN ('creating', 'filling') THEN 1 ELSE 0 END, COALESCE(h.live_from, 0) FROM `DATABASE`.`rowfeed_sequences` s JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = s.name LEFT JOIN `DATABASE`.`rowfeed_shards` h ON h.feed = f.name AND h.shard = 1 WHERE f.name = 'kv'
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), CAST(? AS BINARY), COALESCE((SELECT 1 FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 ORDER BY order_sequence LIMIT 1), 0), CASE WHEN f.state IN ('creating', 'filling') THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), CASE WHEN f.database_identity <> CASE WHEN CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') THEN CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */) END THEN '' ELSE (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') END, p.place, p.present, p.v0, p.v1, p.v2, p.v3 FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN `DATABASE`.`rowfeed_shards` h ON h.feed = f.name AND h.shard = 1 LEFT JOIN (SELECT g.`ulid` AS ordered, g.`ulid` AS place, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END AS present, g.`id` AS v0, t.`id` AS v1, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)) AS v2, t.`v` AS v3 FROM `DATABASE`.`rowfeed_feed_kv` g FORCE INDEX (`place`) LEFT JOIN `DATABASE`.`kv` t ON g.`id` = t.`id` WHERE g.`shard` = CAST(1 AS DECIMAL(20,0)) AND g.`ulid` > CAST(? AS BINARY) AND g.`ulid` <= CAST(? AS BINARY) ORDER BY g.`ulid` LIMIT 100) p ON 1 = 1 WHERE f.name = 'kv' ORDER BY p.ordered LIMIT 100
INSERT INTO `DATABASE`.`rowfeed_flushes` (id, flush_count) SELECT MOD(CONNECTION_ID(), 16), 1 FROM DUAL WHERE CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') AND @@SESSION.autocommit = 1 AND @@SESSION.in_transaction = 0 ON DUPLICATE KEY UPDATE flush_count = flush_count + 1

-- write

-- publish first
SELECT shard FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard > 1 ORDER BY shard LIMIT 1
SELECT @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, @@SESSION.sql_log_bin
SELECT time_ms, ulid_high, ulid_low, witness, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv' AND shard = 1 FOR UPDATE NOWAIT
SELECT order_sequence, time_hint FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 ORDER BY order_sequence LIMIT 1000
INSERT INTO `DATABASE`.`rowfeed_feed_kv` (shard, ulid, `id`) SELECT o.shard, UNHEX(j.ulid), o.`id` FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', ulid CHAR(32) PATH '$[1]')) j STRAIGHT_JOIN `DATABASE`.`rowfeed_outbox_kv` o FORCE INDEX (PRIMARY) ON o.order_sequence = j.seq WHERE o.shard = 1 ORDER BY j.seq ON DUPLICATE KEY UPDATE shard = IF(UNHEX(j.ulid) > `DATABASE`.`rowfeed_feed_kv`.ulid, o.shard, `DATABASE`.`rowfeed_feed_kv`.shard), ulid = GREATEST(UNHEX(j.ulid), `DATABASE`.`rowfeed_feed_kv`.ulid)
DELETE c FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) j STRAIGHT_JOIN `DATABASE`.`rowfeed_outbox_kv` c FORCE INDEX (PRIMARY) ON c.order_sequence = j.seq STRAIGHT_JOIN `DATABASE`.`rowfeed_feed_kv` g FORCE INDEX (PRIMARY) ON g.`id` = c.`id` AND g.shard = c.shard
SELECT shard FROM (SELECT shard FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (PRIMARY) WHERE order_sequence > 6 ORDER BY order_sequence LIMIT 1) c0
UPDATE `DATABASE`.`rowfeed_feeds` SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL WHERE name = 'kv' AND failure IS NOT NULL

-- publish without changes

-- publish again
SELECT shard, count(*) FROM (SELECT shard FROM (SELECT shard FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (PRIMARY) WHERE order_sequence > 6 ORDER BY order_sequence LIMIT 1000) c0) r GROUP BY shard ORDER BY shard
SELECT order_sequence, time_hint FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 /*M! AND (order_sequence > 6) */ ORDER BY order_sequence LIMIT 1000
SELECT shard FROM (SELECT shard FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (PRIMARY) WHERE order_sequence > 7 ORDER BY order_sequence LIMIT 1) c0

-- run a publisher
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name = 'publish:kv'
INSERT INTO `DATABASE`.`rowfeed_leases` (name, owner, epoch, expires_at, acquired_at, renewals) VALUES ('publish:kv', 'OWNER', 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 3600000000, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 0)
SELECT EVENT_OBJECT_TABLE, TRIGGER_NAME, EVENT_MANIPULATION, ACTION_TIMING, ACTION_STATEMENT, DEFINER FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'DATABASE' AND (EVENT_OBJECT_TABLE = 'kv' OR TRIGGER_NAME IN ('rowfeed_kv_insert', 'rowfeed_kv_insert_2', 'rowfeed_kv_update', 'rowfeed_kv_update_2')) ORDER BY TRIGGER_NAME LIMIT NUMBER
SELECT RTRIM(Host) FROM mysql.user WHERE RTRIM(User) = 'root' AND ('127.0.0.1' LIKE RTRIM(Host) OR LOCATE('/', Host) > 0)
SELECT EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?)), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_outbox_kv') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_outbox_kv'), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv'), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'TRIGGER') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'TRIGGER' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'TRIGGER' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'TRIGGER' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv')
SHOW CREATE TRIGGER `DATABASE`.`rowfeed_kv_insert`
SHOW CREATE TRIGGER `DATABASE`.`rowfeed_kv_update`
SELECT IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)), IF(TRUE, COLUMN_TYPE, CAST('' AS BINARY)), DATA_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_DEFAULT, GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_outbox_kv' ORDER BY ORDINAL_POSITION LIMIT NUMBER
SELECT IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)), IF(TRUE, COLUMN_TYPE, CAST('' AS BINARY)), DATA_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_DEFAULT, GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_feed_kv' ORDER BY ORDINAL_POSITION LIMIT NUMBER
SELECT 'kv', -1, 0, NULL, 0, 0 FROM (SELECT shard FROM (SELECT shard FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (PRIMARY) WHERE order_sequence > 7 ORDER BY order_sequence LIMIT 1) c0) w
UPDATE `DATABASE`.`rowfeed_leases` SET owner = '', expires_at = NULL, renewals = renewals + NUMBER WHERE name = 'publish:kv' AND owner = 'OWNER' AND epoch = 1

-- read pages of the part: shard 1
SELECT f.generation, @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END, /*M! @@SESSION.autocommit = 1 AND @@SESSION.tx_isolation IN ('READ-COMMITTED', 'REPEATABLE-READ') OR */ 0, /*M! @@SESSION.in_transaction + */ 0, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), (SELECT g.`ulid` FROM `DATABASE`.`rowfeed_feed_kv` g WHERE g.`shard` = CAST(1 AS DECIMAL(20,0)) ORDER BY g.`ulid` DESC LIMIT 1), COALESCE((SELECT 1 FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 /*M! AND (order_sequence > 7) */ ORDER BY order_sequence LIMIT 1), 0), CASE WHEN f.state IN ('creating', 'filling') THEN 1 ELSE 0 END, COALESCE(h.live_from, 0) FROM `DATABASE`.`rowfeed_sequences` s JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = s.name LEFT JOIN `DATABASE`.`rowfeed_shards` h ON h.feed = f.name AND h.shard = 1 WHERE f.name = 'kv'
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), CAST(? AS BINARY), COALESCE((SELECT 1 FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 /*M! AND (order_sequence > 7) */ ORDER BY order_sequence LIMIT 1), 0), CASE WHEN f.state IN ('creating', 'filling') THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), CASE WHEN f.database_identity <> CASE WHEN CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') THEN CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */) END THEN '' ELSE (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') END, p.place, p.present, p.v0, p.v1, p.v2, p.v3 FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN `DATABASE`.`rowfeed_shards` h ON h.feed = f.name AND h.shard = 1 LEFT JOIN (SELECT g.`ulid` AS ordered, g.`ulid` AS place, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END AS present, g.`id` AS v0, t.`id` AS v1, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)) AS v2, t.`v` AS v3 FROM `DATABASE`.`rowfeed_feed_kv` g FORCE INDEX (`place`) LEFT JOIN `DATABASE`.`kv` t ON g.`id` = t.`id` WHERE g.`shard` = CAST(1 AS DECIMAL(20,0)) AND g.`ulid` > CAST(? AS BINARY) AND g.`ulid` <= CAST(? AS BINARY) ORDER BY g.`ulid` LIMIT 2) p ON 1 = 1 WHERE f.name = 'kv' ORDER BY p.ordered LIMIT 2
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), CAST(? AS BINARY), COALESCE((SELECT 1 FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 /*M! AND (order_sequence > 7) */ ORDER BY order_sequence LIMIT 1), 0), CASE WHEN f.state IN ('creating', 'filling') THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), CASE WHEN f.database_identity <> CASE WHEN CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') THEN CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */) END THEN '' ELSE (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') END, p.place, p.present, p.v0, p.v1, p.v2, p.v3 FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN `DATABASE`.`rowfeed_shards` h ON h.feed = f.name AND h.shard = 1 LEFT JOIN (SELECT g.`ulid` AS ordered, g.`ulid` AS place, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END AS present, g.`id` AS v0, t.`id` AS v1, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)) AS v2, t.`v` AS v3 FROM `DATABASE`.`rowfeed_feed_kv` g FORCE INDEX (`place`) LEFT JOIN `DATABASE`.`kv` t ON g.`id` = t.`id` WHERE g.`shard` = CAST(1 AS DECIMAL(20,0)) AND g.`ulid` > CAST(? AS BINARY) AND g.`ulid` <= CAST(? AS BINARY) ORDER BY g.`ulid` LIMIT 100) p ON 1 = 1 WHERE f.name = 'kv' ORDER BY p.ordered LIMIT 100
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), CAST(? AS BINARY), COALESCE((SELECT 1 FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 /*M! AND (order_sequence > 7) */ ORDER BY order_sequence LIMIT 1), 0), CASE WHEN f.state IN ('creating', 'filling') THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), CASE WHEN f.database_identity <> CASE WHEN CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') THEN CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */) END THEN '' ELSE (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') END, p.place, p.present, p.v0, p.v1, p.v2, p.v3 FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN `DATABASE`.`rowfeed_shards` h ON h.feed = f.name AND h.shard = 1 LEFT JOIN (SELECT g.`ulid` AS ordered, g.`ulid` AS place, CASE WHEN t.`id` IS NULL THEN 0 ELSE 1 END AS present, g.`id` AS v0, t.`id` AS v1, IF(TRUE, RTRIM(t.`k`), CAST('' AS BINARY)) AS v2, t.`v` AS v3 FROM `DATABASE`.`rowfeed_feed_kv` g FORCE INDEX (`place`) LEFT JOIN `DATABASE`.`kv` t ON g.`id` = t.`id` WHERE g.`shard` = CAST(1 AS DECIMAL(20,0)) AND g.`ulid` > CAST(? AS BINARY) AND g.`ulid` <= CAST(? AS BINARY) ORDER BY g.`ulid` LIMIT 1) p ON 1 = 1 WHERE f.name = 'kv' ORDER BY p.ordered LIMIT 1

-- wait for an entry of the part: shard 1
SELECT shard FROM (SELECT shard FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 /*M! AND (order_sequence > 7) */ ORDER BY order_sequence LIMIT 1) s0
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0) FROM `DATABASE`.`rowfeed_sequences` s JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = s.name UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0 FROM `DATABASE`.`rowfeed_shards` h JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = h.feed WHERE h.feed = 'kv' AND h.shard IN (1)

-- read a consistent page of the part: shard 1
SELECT order_sequence FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 ORDER BY order_sequence DESC LIMIT 1

-- tell how far the shards are
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0) FROM `DATABASE`.`rowfeed_sequences` s JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = s.name UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0 FROM `DATABASE`.`rowfeed_shards` h JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = h.feed WHERE h.feed = 'kv'

-- consume, set an entry aside, list it and try it again
DELETE FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND key_digest = 'DIGEST' AND generation = 1 AND position = 'ULID' AND state = 'retry'
INSERT IGNORE INTO `DATABASE`.`rowfeed_consumers` (consumer, feed, shard_count, paused, version) VALUES ('wire', 'kv', 1, 0, 0)
INSERT IGNORE INTO `DATABASE`.`rowfeed_dead_letters` (consumer, feed, shard, key_digest, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, data_shard) VALUES ('wire', 'kv', 1, 'DIGEST', ?, 1, 'ULID', 'upsert', 'aside', 2, 0, ?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)
INSERT INTO `DATABASE`.`rowfeed_cursors` (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ('wire', 'kv', 1, 1, '', 0, 0, 0, 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
RELEASE SAVEPOINT rowfeed
SAVEPOINT rowfeed
SELECT 1 AS shard, g0.* FROM (SELECT g.`ulid` FROM `DATABASE`.`rowfeed_feed_kv` g WHERE g.`shard` = CAST(1 AS DECIMAL(20,0)) ORDER BY g.`ulid` DESC LIMIT 1) g0
SELECT DISTINCT shard FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND state = 'retry'
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, key_digest FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND key_digest IN ('DIGEST') ORDER BY consumer, feed, shard, first_at, key_digest LIMIT 201
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, key_digest FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' ORDER BY consumer, feed, shard, first_at, key_digest LIMIT 101
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, key_digest FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND key_digest IN ('DIGEST') AND consumer > '' ORDER BY consumer, feed, shard, first_at, key_digest LIMIT 101
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' ORDER BY consumer, feed, shard
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'wire' AND feed = 'kv' ORDER BY shard
SELECT consumer, feed, shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT key_digest, key_json, generation, position, op, data_shard FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND state = 'retry' ORDER BY first_at, key_digest LIMIT 1
SELECT key_digest, state FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name >= 'consumer:' AND name < ? OR name >= 'relay:' AND name < ?
SELECT shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'wire' AND feed = 'kv'
SELECT shard_count, version FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + NUMBER WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET failure = ?, failing_since = COALESCE(failing_since, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), attempts = 1, next_try = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + NUMBER WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 1
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 6 AND value = 'ULID' AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, aside = 1, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 5 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 0 AND value = '' AND generation = 0 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 1 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 1, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 2 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 1, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 3 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 1, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 4 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_dead_letters` SET op = 'delete' WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND generation < 0
UPDATE `DATABASE`.`rowfeed_dead_letters` SET state = 'retry', last_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard = 1 AND key_digest IN ('DIGEST') AND first_at >= NUMBER AND first_at <= NUMBER

-- drop dead letters
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, key_digest FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' ORDER BY consumer, feed, shard, first_at, key_digest LIMIT 201
SELECT count(*) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'

-- pause, resume, seek and reset the consumer
UPDATE `DATABASE`.`rowfeed_consumers` SET paused = 1, version = version + NUMBER WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET paused = 1, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT shard FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND paused <> 0 ORDER BY shard
UPDATE `DATABASE`.`rowfeed_consumers` SET paused = 0, version = version + NUMBER WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET paused = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard = 1
UPDATE `DATABASE`.`rowfeed_dead_letters` SET generation = -ABS(generation), op = 'upsert' WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + NUMBER WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_consumers` k WHERE k.consumer = `DATABASE`.`rowfeed_cursors`.consumer AND k.feed = `DATABASE`.`rowfeed_cursors`.feed)
SELECT feed, MAX(epoch) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_consumers` k WHERE k.consumer = `DATABASE`.`rowfeed_cursors`.consumer AND k.feed = `DATABASE`.`rowfeed_cursors`.feed) GROUP BY feed ORDER BY feed
UPDATE `DATABASE`.`rowfeed_cursors` SET value = '', generation = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name = 'consumer:kv:wire/dropped'

-- consume with two shards
UPDATE `DATABASE`.`rowfeed_consumers` SET shard_count = 2, version = version + NUMBER WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET shard_count = 2, version = version + NUMBER WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 2 AND version = 16 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 2 AND version = 12 AND value = '' AND generation = 0 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 2 AND version = 13 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 2 AND version = 14 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 2 AND version = 15 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0

-- deliver outside of transactions, under an epoch
SELECT shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'deliver' AND feed = 'kv'
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'deliver' AND feed = 'kv' ORDER BY shard
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + NUMBER WHERE 1 = 1 AND consumer = 'deliver' AND feed = 'kv'
INSERT IGNORE INTO `DATABASE`.`rowfeed_consumers` (consumer, feed, shard_count, paused, version) VALUES ('deliver', 'kv', 1, 0, 0)
INSERT INTO `DATABASE`.`rowfeed_cursors` (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ('deliver', 'kv', 1, 1, '', 0, 0, 0, 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name >= 'consumer:kv:deliver/' AND name < 'consumer:kv:deliver0' OR name = ''
SELECT shard_count, version FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'deliver' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET epoch = 7, version = version + 1, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard_count = 1 AND epoch < 7 AND shard IN (1)
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 1 AND value = '' AND generation = 0 AND epoch = 7 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 2 AND value = ? AND generation = 1 AND epoch = 7 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 3 AND value = ? AND generation = 1 AND epoch = 7 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 4 AND value = ? AND generation = 1 AND epoch = 7 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 5 AND value = ? AND generation = 1 AND epoch = 7 AND aside = 0 AND paused = 0

-- note an entry as processed, and forget it
INSERT IGNORE INTO `DATABASE`.`rowfeed_processed` (consumer, feed, generation, shard, position, processed_at) VALUES ('wire', 'kv', 1, 1, 'ULID', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT DISTINCT generation, shard FROM `DATABASE`.`rowfeed_processed` WHERE consumer = 'wire' AND feed = 'kv' AND generation <= 1
SELECT position FROM `DATABASE`.`rowfeed_processed` WHERE consumer = 'wire' AND feed = 'kv' AND generation = 1 AND shard = 1 AND position <= 'ULIDz' ORDER BY position LIMIT 1 OFFSET 1999
DELETE FROM `DATABASE`.`rowfeed_processed` WHERE consumer = 'wire' AND feed = 'kv' AND generation = 1 AND shard = 1 AND position <= 'ULIDz'

-- drop the consumer
DELETE FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
DELETE FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
DELETE FROM `DATABASE`.`rowfeed_processed` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + NUMBER WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT consumer, feed, MAX(epoch) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed
DELETE FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'

-- fail once, and handle the entries at the second attempt
DELETE FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND consumer = 'again'
DELETE FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'again'
DELETE FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'again'
DELETE FROM `DATABASE`.`rowfeed_processed` WHERE 1 = 1 AND consumer = 'again'
INSERT IGNORE INTO `DATABASE`.`rowfeed_consumers` (consumer, feed, shard_count, paused, version) VALUES ('again', 'kv', 1, 0, 0)
INSERT INTO `DATABASE`.`rowfeed_cursors` (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ('again', 'kv', 1, 1, '', 0, 0, 0, 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT consumer, feed, MAX(epoch) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'again' GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'again' AND feed = 'kv' AND shard = 1
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'again' AND feed = 'kv' ORDER BY shard
SELECT shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'again' AND feed = 'kv'
SELECT shard_count, version FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'again' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + NUMBER WHERE 1 = 1 AND consumer = 'again'
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + NUMBER WHERE 1 = 1 AND consumer = 'again' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET failure = ?, failing_since = COALESCE(failing_since, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), attempts = 1, next_try = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + NUMBER WHERE consumer = 'again' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, aside = 0, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'again' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 0 AND value = '' AND generation = 0 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + NUMBER WHERE 1 = 1 AND consumer = 'again'

-- status
SELECT l.LOCK_DATA, l.LOCK_STATUS = 'WAITING', th.PROCESSLIST_ID, l.ENGINE_TRANSACTION_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, (SELECT c.ATTR_VALUE FROM performance_schema.session_account_connect_attrs c WHERE c.PROCESSLIST_ID = th.PROCESSLIST_ID AND c.ATTR_NAME = 'program_name'), e.TIMER_WAIT DIV 1000000, th.PROCESSLIST_COMMAND, th.PROCESSLIST_TIME * 1000000, COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT FROM performance_schema.events_statements_current s WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1)) FROM performance_schema.data_locks l JOIN performance_schema.threads th ON th.THREAD_ID = l.THREAD_ID LEFT JOIN performance_schema.events_transactions_current e ON e.THREAD_ID = l.THREAD_ID AND e.STATE = 'ACTIVE' WHERE l.OBJECT_SCHEMA = COALESCE(NULLIF('DATABASE', ''), DATABASE()) AND l.OBJECT_NAME = 'rowfeed_shards' AND l.LOCK_TYPE = 'RECORD' AND l.INDEX_NAME = 'PRIMARY' AND l.LOCK_MODE IN ('X', 'X,REC_NOT_GAP') AND SUBSTRING_INDEX(l.LOCK_DATA, ',', 1) = ? ORDER BY 2, 8 DESC, 3 LIMIT NUMBER
SELECT l.lock_data, x.trx_requested_lock_id <=> l.lock_id, x.trx_mysql_thread_id, x.trx_id, p.USER, p.HOST, '', TIMESTAMPDIFF(MICROSECOND, x.trx_started, CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', 'SYSTEM')), p.COMMAND, CAST(p.TIME_MS * 1000 AS SIGNED), COALESCE(p.INFO, x.trx_query) FROM information_schema.INNODB_LOCKS l JOIN information_schema.INNODB_TRX x ON x.trx_id = l.lock_trx_id JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id WHERE l.lock_table = CONCAT('`', REPLACE(COALESCE(NULLIF('DATABASE', ''), DATABASE()), '`', '``'), '`.`', REPLACE('rowfeed_shards', '`', '``'), '`') AND l.lock_type = 'RECORD' AND l.lock_index = 'PRIMARY' AND l.lock_mode = 'X' AND SUBSTRING_INDEX(l.lock_data, ',', 1) = ? ORDER BY 2, 8 DESC, 3 LIMIT NUMBER
SELECT s.shard, (SELECT g.`ulid` FROM `DATABASE`.`rowfeed_feed_kv` g WHERE g.`shard` = s.shard ORDER BY g.`ulid` DESC LIMIT 1) FROM `DATABASE`.`rowfeed_shards` s WHERE s.feed = 'kv' ORDER BY s.shard LIMIT 1000
SELECT (SELECT count(*) FROM (SELECT 1 FROM `DATABASE`.`rowfeed_outbox_kv` LIMIT 1000000) x), (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - CAST(UNIX_TIMESTAMP(appended_at) * 1000000 AS SIGNED) FROM `DATABASE`.`rowfeed_outbox_kv` ORDER BY order_sequence LIMIT 1)
SELECT x.trx_mysql_thread_id, p.USER, p.HOST, TIMESTAMPDIFF(MICROSECOND, x.trx_started, CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', 'SYSTEM')), COALESCE(x.trx_query, ''), 'wrote to some table' FROM information_schema.INNODB_TRX x LEFT JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id WHERE x.trx_rows_modified > 0 AND x.trx_mysql_thread_id <> CONNECTION_ID() UNION ALL SELECT p.ID, p.USER, p.HOST, p.TIME * 1000000, p.INFO, 'waits to lock a table' FROM information_schema.PROCESSLIST p WHERE p.STATE = 'Waiting for table metadata lock' AND p.INFO REGEXP '^(ALTER|CREATE|DROP|LOCK|OPTIMIZE|RENAME|TRUNCATE) ' ORDER BY 4 DESC LIMIT NUMBER
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND feed = 'kv' ORDER BY consumer, feed, shard
SELECT consumer, feed, shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND feed = 'kv'
SELECT (SELECT count(*) FROM (SELECT 1 FROM `DATABASE`.`rowfeed_outbox_kv` LIMIT 10) x), (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - CAST(UNIX_TIMESTAMP(appended_at) * 1000000 AS SIGNED) FROM `DATABASE`.`rowfeed_outbox_kv` ORDER BY order_sequence LIMIT 1)

-- who has the shards

-- verify

-- purge entries, and back-fill rows
UPDATE `DATABASE`.`rowfeed_feeds` SET options = ? WHERE name = 'kv'
SELECT s.shard, (SELECT g.`ulid` FROM `DATABASE`.`rowfeed_feed_kv` g WHERE g.shard = s.shard ORDER BY g.ulid DESC LIMIT 1 OFFSET 3) FROM `DATABASE`.`rowfeed_shards` s WHERE s.feed = 'kv' ORDER BY s.shard
SELECT g.`ulid` FROM `DATABASE`.`rowfeed_feed_kv` g WHERE g.shard = 1 AND g.ulid <= CAST(? AS BINARY) ORDER BY g.ulid LIMIT 500
SELECT below_high, below_low FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv' AND shard = 1
UPDATE `DATABASE`.`rowfeed_shards` SET below_high = NUMBER, below_low = NUMBER WHERE feed = 'kv' AND shard = 1
DELETE g FROM `DATABASE`.`rowfeed_feed_kv` g FORCE INDEX (place) WHERE g.shard = 1 AND g.ulid >= CAST(? AS BINARY) AND g.ulid <= CAST(? AS BINARY)
SELECT count(*) FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv' AND (below_high <> 0 OR below_low <> 0)

-- check
SELECT g.`shard`, g.`ulid` FROM `DATABASE`.`rowfeed_feed_kv` g ORDER BY g.`shard` DESC, g.`ulid` DESC LIMIT 1
SELECT time_ms, ulid_high, ulid_low, witness, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv' AND shard = 1
SELECT g.`shard`, g.`ulid` FROM `DATABASE`.`rowfeed_feed_kv` g WHERE g.`shard` < 1 ORDER BY g.`shard` DESC, g.`ulid` DESC LIMIT 1
BEGIN -- isolation: Repeatable Read, read only

-- repair
SELECT shard, count(*) FROM (SELECT shard FROM (SELECT shard FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (PRIMARY) WHERE order_sequence > 7 ORDER BY order_sequence LIMIT 1000) c0) r GROUP BY shard ORDER BY shard
SELECT order_sequence, time_hint FROM `DATABASE`.`rowfeed_outbox_kv` FORCE INDEX (shard) WHERE shard = 1 /*M! AND (order_sequence > 7) */ ORDER BY order_sequence LIMIT 5000
UPDATE `DATABASE`.`rowfeed_feeds` SET state = state WHERE name = 'kv' AND generation = 1
SELECT state FROM `DATABASE`.`rowfeed_feeds` WHERE name = 'kv' AND generation = 1
INSERT INTO `DATABASE`.`rowfeed_outbox_kv` (shard, `id`) SELECT x.shard, x.k0 FROM (SELECT t.`v` AS shard, t.`id` AS k0 FROM `DATABASE`.`kv` t LEFT JOIN `DATABASE`.`rowfeed_feed_kv` g ON g.`id` = t.`id` LEFT JOIN (SELECT DISTINCT `id` FROM `DATABASE`.`rowfeed_outbox_kv`) c ON c.`id` = t.`id` WHERE 1 = 1 AND g.`id` IS NULL AND c.`id` IS NULL ORDER BY t.`id` LIMIT 9223372036854775807) x

-- upgrade
UPDATE `DATABASE`.`rowfeed_feeds` SET key_columns = ? WHERE name = 'kv'
SELECT value FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'

-- adopt the database, and begin a new generation
SELECT value, version, COALESCE(term, 0), updated_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */), @@GLOBAL.read_only, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv' FOR UPDATE
UPDATE `DATABASE`.`rowfeed_sequences` SET version = version + NUMBER WHERE name = 'kv'
UPDATE `DATABASE`.`rowfeed_feeds` SET generation = CASE WHEN ROUND(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000, 0) > generation + 1 THEN ROUND(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000, 0) ELSE generation + 1 END, database_identity = 'server_id 1' WHERE name = 'kv'

-- grant and revoke
SET @rowfeed_grant = NULL /*M!100200 , SESSION sql_mode = CONCAT_WS(',', NULLIF(@@SESSION.sql_mode, ''), 'NO_AUTO_CREATE_USER') */
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_schema_version` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_feeds` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_sequences` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_shards` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_outbox_kv` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_feed_kv` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_flushes` TO 'wire_DATABASE'@'localhost'
GRANT INSERT ON TABLE `DATABASE`.`rowfeed_flushes` TO 'wire_DATABASE'@'localhost'
GRANT UPDATE ON TABLE `DATABASE`.`rowfeed_flushes` TO 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_schema_version` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_feeds` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_sequences` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_shards` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_outbox_kv` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_feed_kv` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_flushes` FROM 'wire_DATABASE'@'localhost'
REVOKE INSERT ON TABLE `DATABASE`.`rowfeed_flushes` FROM 'wire_DATABASE'@'localhost'
REVOKE UPDATE ON TABLE `DATABASE`.`rowfeed_flushes` FROM 'wire_DATABASE'@'localhost'

-- drop the feed
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'dropping', fill_after = NULL WHERE name = 'kv'
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_insert_2`
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_update_2`
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_delete`
DROP TRIGGER IF EXISTS `DATABASE`.`rowfeed_kv_delete_2`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_outbox_kv`
DROP TABLE IF EXISTS `DATABASE`.`rowfeed_feed_kv`
DELETE FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv'
DELETE FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'
DELETE FROM `DATABASE`.`rowfeed_terms` WHERE feed = 'kv'
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'dropped', fill_after = NULL WHERE name = 'kv'

