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
SELECT CURRENT_USER()
SELECT DEFINER, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND ROUTINE_NAME = ? AND ROUTINE_TYPE = ?
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
SELECT g.`v`, g.`u` FROM `DATABASE`.`kv` g ORDER BY g.`v` DESC, g.`u` DESC LIMIT 1
SELECT CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */), @@GLOBAL.read_only
INSERT INTO `DATABASE`.`rowfeed_feeds` (name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity, created_at) VALUES ('kv', 'blocking', 'none', 'creating', 1, '', 'kv', ?, ?, ?, 1, 'v', 0, 0, ?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT count(*) FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'
INSERT INTO `DATABASE`.`rowfeed_sequences` (name, value, version, updated_at) VALUES ('kv', 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
DROP PROCEDURE IF EXISTS `DATABASE`.`rowfeed_lock_kv`
DROP PROCEDURE IF EXISTS `DATABASE`.`rowfeed_take_kv`
DROP PROCEDURE IF EXISTS `DATABASE`.`rowfeed_witness_kv`
DROP FUNCTION IF EXISTS `DATABASE`.`rowfeed_ulid_kv`
SET SESSION sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES'
CREATE PROCEDURE `DATABASE`.`rowfeed_lock_kv`(IN p_shard bigint, IN p_time_hint datetime(6), OUT p_ulid binary(16), OUT p_ulid_high bigint, OUT p_ulid_low bigint) MODIFIES SQL DATA SQL SECURITY DEFINER BEGIN DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0); DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint; DECLARE v_bits char(64); DECLARE v_greatest binary(16); DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit'; SAVEPOINT rowfeed_lock; RELEASE SAVEPOINT rowfeed_lock; INSERT INTO `rowfeed_shards` (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('kv', v_shard, 0, 0, 0, '') ON DUPLICATE KEY UPDATE witness = witness; SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM `rowfeed_shards` WHERE feed = 'kv' AND shard = v_shard FOR UPDATE; IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM `rowfeed_feeds` WHERE name = 'kv' AND state = 'active') THEN SIGNAL SQLSTATE '42S02' SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended'; END IF; SELECT MAX(g.`u`) INTO v_greatest FROM `kv` g WHERE g.`v` = v_shard; IF v_greatest >= UNHEX(CONCAT(LPAD(HEX(v_high), 16, '0'), LPAD(HEX(v_low), 16, '0'))) THEN SET v_time = CAST(CONV(LEFT(HEX(v_greatest), 12), 16, 10) AS SIGNED) + 1; SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1; END IF; SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000; SET v_hint = GREATEST(COALESCE(FLOOR(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', p_time_hint) / 1000), v_now), 1); IF v_hint > v_now + 60000 THEN SIGNAL SQLSTATE '22007' SET MYSQL_ERRNO = 1292, MESSAGE_TEXT = 'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend the clock that it comes from'; END IF; SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256); SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10); SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED); SET v_first_time = CASE WHEN v_hint > v_time THEN v_hint WHEN CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END; SET v_first_high = CASE WHEN v_hint > v_time OR CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN CAST(((CASE WHEN v_hint > v_time THEN v_hint WHEN CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END) << 16) AS SIGNED) + v_random16 ELSE v_high END; SET v_low = CASE WHEN v_hint > v_time OR CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN CAST((v_random64 & NUMBER) AS SIGNED) ELSE v_low END; IF v_first_time > NUMBER THEN SIGNAL SQLSTATE '22003' SET MYSQL_ERRNO = 1690, MESSAGE_TEXT = 'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it'; END IF; UPDATE `rowfeed_shards` SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + 100000000000, witness = witness WHERE feed = 'kv' AND shard = v_shard; IF @@GLOBAL.log_bin AND NOT @@SESSION.sql_log_bin THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: sql_log_bin is off: readers would be shown a commit that a crash takes back; leave it on'; END IF; SET p_ulid_high = v_first_high, p_ulid_low = v_low; SET p_ulid = UNHEX(CONCAT(LPAD(HEX(v_first_high), 16, '0'), LPAD(HEX(v_low), 16, '0'))); END
CREATE PROCEDURE `DATABASE`.`rowfeed_take_kv`(IN p_shard bigint, IN p_hint bigint, IN p_word varchar(40) CHARACTER SET ascii, IN p_wait int, IN p_tighter bool) MODIFIES SQL DATA SQL SECURITY DEFINER BEGIN DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0); DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint; DECLARE v_bits char(64); DECLARE v_greatest binary(16); DECLARE v_own int DEFAULT @@SESSION.innodb_lock_wait_timeout; DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit'; SAVEPOINT rowfeed_lock; RELEASE SAVEPOINT rowfeed_lock; IF p_wait > 0 AND NOT (p_tighter AND v_own <= p_wait) THEN SET @rowfeed_own_wait = v_own, SESSION innodb_lock_wait_timeout = p_wait; END IF; INSERT INTO `rowfeed_shards` (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('kv', v_shard, 0, 0, 0, '') ON DUPLICATE KEY UPDATE witness = witness; SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM `rowfeed_shards` WHERE feed = 'kv' AND shard = v_shard FOR UPDATE; SET SESSION innodb_lock_wait_timeout = v_own, @rowfeed_own_wait = NULL; IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM `rowfeed_feeds` WHERE name = 'kv' AND state = 'active') THEN SIGNAL SQLSTATE '42S02' SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended'; END IF; SELECT MAX(g.`u`) INTO v_greatest FROM `kv` g WHERE g.`v` = v_shard; IF v_greatest >= UNHEX(CONCAT(LPAD(HEX(v_high), 16, '0'), LPAD(HEX(v_low), 16, '0'))) THEN SET v_time = CAST(CONV(LEFT(HEX(v_greatest), 12), 16, 10) AS SIGNED) + 1; SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1; END IF; SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000; SET v_hint = GREATEST(COALESCE(p_hint, v_now), 1); IF v_hint > v_now + 60000 THEN SIGNAL SQLSTATE '22007' SET MYSQL_ERRNO = 1292, MESSAGE_TEXT = 'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend the clock that it comes from'; END IF; SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256); SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10); SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED); SET v_first_time = CASE WHEN v_hint > v_time THEN v_hint WHEN CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END; SET v_first_high = CASE WHEN v_hint > v_time OR CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN CAST(((CASE WHEN v_hint > v_time THEN v_hint WHEN CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END) << 16) AS SIGNED) + v_random16 ELSE v_high END; SET v_low = CASE WHEN v_hint > v_time OR CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN CAST((v_random64 & NUMBER) AS SIGNED) ELSE v_low END; IF v_first_time > NUMBER THEN SIGNAL SQLSTATE '22003' SET MYSQL_ERRNO = 1690, MESSAGE_TEXT = 'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it'; END IF; UPDATE `rowfeed_shards` SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + 100000000000, witness = SUBSTRING_INDEX(CONCAT_WS(' ', p_word, NULLIF(witness, '')), ' ', 8) WHERE feed = 'kv' AND shard = v_shard; SELECT v_first_time, v_first_high, v_low, @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, @@SESSION.sql_log_bin; END
CREATE PROCEDURE `DATABASE`.`rowfeed_witness_kv`(IN p_shard bigint) READS SQL DATA SQL SECURITY DEFINER BEGIN DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit'; SAVEPOINT rowfeed_lock; RELEASE SAVEPOINT rowfeed_lock; SELECT COALESCE((SELECT witness FROM `rowfeed_shards` WHERE feed = 'kv' AND shard = p_shard), ''); END
CREATE FUNCTION `DATABASE`.`rowfeed_ulid_kv`(p_ulid_high bigint, p_ulid_low bigint, i bigint) RETURNS binary(16) DETERMINISTIC NO SQL SQL SECURITY INVOKER BEGIN IF p_ulid_high IS NULL OR p_ulid_low IS NULL OR i IS NULL OR i < 0 OR i >= 100000000000 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: give both halves of a lock, and a number below 100000000000; lock again for more'; END IF; RETURN UNHEX(CONCAT(LPAD(HEX(p_ulid_high), 16, '0'), LPAD(HEX((p_ulid_low + i)), 16, '0'))); END
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'active', fill_after = NULL WHERE name = 'kv'
SET SESSION lock_wait_timeout = 5, sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'
SELECT DATABASE()
DO RELEASE_LOCK('rowfeed.DIGEST')

-- add it again, list the feeds, describe it
SELECT shard FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv' AND time_ms <> 0 ORDER BY shard LIMIT 10001

-- write
CALL `DATABASE`.`rowfeed_take_kv`(?, ?, ?, ?, ?)
CALL `DATABASE`.`rowfeed_witness_kv`(?)

-- publish first

-- publish without changes

-- publish again

-- read pages of the part: shard 1
BEGIN -- isolation: Read Committed, read only
SELECT f.generation, @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END, /*M! @@SESSION.autocommit = 1 AND @@SESSION.tx_isolation IN ('READ-COMMITTED', 'REPEATABLE-READ') OR */ 0, /*M! @@SESSION.in_transaction + */ 0, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), (SELECT g.`u` FROM `DATABASE`.`kv` g WHERE g.`v` = CAST(1 AS DECIMAL(20,0)) ORDER BY g.`u` DESC LIMIT 1), 0, 0, 0 FROM `DATABASE`.`rowfeed_sequences` s JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = s.name LEFT JOIN `DATABASE`.`rowfeed_shards` h ON h.feed = f.name AND h.shard = 1 WHERE f.name = 'kv'
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), CAST(? AS BINARY), 0, 0, 0, CASE WHEN f.database_identity <> CASE WHEN CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') THEN CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */) END THEN '' ELSE (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') END, p.place, p.present, p.v0, p.v1, p.v2, p.v3 FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN `DATABASE`.`rowfeed_shards` h ON h.feed = f.name AND h.shard = 1 LEFT JOIN (SELECT t.`u` AS ordered, t.`u` AS place, 1 AS present, t.`id` AS v0, t.`id` AS v1, t.`v` AS v2, t.`u` AS v3 FROM `DATABASE`.`kv` t FORCE INDEX (`kv_feed`) WHERE t.`v` = CAST(1 AS DECIMAL(20,0)) AND t.`u` > CAST(? AS BINARY) AND t.`u` <= CAST(? AS BINARY) ORDER BY t.`u` LIMIT 2) p ON 1 = 1 WHERE f.name = 'kv' ORDER BY p.ordered LIMIT 2
BEGIN -- isolation: Read Committed
INSERT INTO `DATABASE`.`rowfeed_flushes` (id, flush_count) SELECT MOD(CONNECTION_ID(), 16), 1 FROM DUAL WHERE CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') ON DUPLICATE KEY UPDATE flush_count = flush_count + 1
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), CAST(? AS BINARY), 0, 0, 0, CASE WHEN f.database_identity <> CASE WHEN CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') THEN CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */) END THEN '' ELSE (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') END, p.place, p.present, p.v0, p.v1, p.v2, p.v3 FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN `DATABASE`.`rowfeed_shards` h ON h.feed = f.name AND h.shard = 1 LEFT JOIN (SELECT t.`u` AS ordered, t.`u` AS place, 1 AS present, t.`id` AS v0, t.`id` AS v1, t.`v` AS v2, t.`u` AS v3 FROM `DATABASE`.`kv` t FORCE INDEX (`kv_feed`) WHERE t.`v` = CAST(1 AS DECIMAL(20,0)) AND t.`u` > CAST(? AS BINARY) AND t.`u` <= CAST(? AS BINARY) ORDER BY t.`u` LIMIT 100) p ON 1 = 1 WHERE f.name = 'kv' ORDER BY p.ordered LIMIT 100
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), CAST(? AS BINARY), 0, 0, 0, CASE WHEN f.database_identity <> CASE WHEN CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') THEN CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */) END THEN '' ELSE (SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0)) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') END, p.place, p.present, p.v0, p.v1, p.v2, p.v3 FROM `DATABASE`.`rowfeed_feeds` f JOIN `DATABASE`.`rowfeed_sequences` s ON s.name = f.name LEFT JOIN `DATABASE`.`rowfeed_shards` h ON h.feed = f.name AND h.shard = 1 LEFT JOIN (SELECT t.`u` AS ordered, t.`u` AS place, 1 AS present, t.`id` AS v0, t.`id` AS v1, t.`v` AS v2, t.`u` AS v3 FROM `DATABASE`.`kv` t FORCE INDEX (`kv_feed`) WHERE t.`v` = CAST(1 AS DECIMAL(20,0)) AND t.`u` > CAST(? AS BINARY) AND t.`u` <= CAST(? AS BINARY) ORDER BY t.`u` LIMIT 1) p ON 1 = 1 WHERE f.name = 'kv' ORDER BY p.ordered LIMIT 1

-- wait for an entry of the part: shard 1
SELECT s.name, f.generation, s.value, NULL, 0 FROM `DATABASE`.`rowfeed_sequences` s JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = s.name UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high FROM `DATABASE`.`rowfeed_shards` h JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = h.feed WHERE h.feed = 'kv' AND h.shard IN (1)

-- read a consistent page of the part: shard 1

-- tell how far the shards are
SELECT s.name, f.generation, s.value, NULL, 0 FROM `DATABASE`.`rowfeed_sequences` s JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = s.name UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high FROM `DATABASE`.`rowfeed_shards` h JOIN `DATABASE`.`rowfeed_feeds` f ON f.name = h.feed WHERE h.feed = 'kv'

-- consume, set an entry aside, list it and try it again
DELETE FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND key_digest = 'DIGEST' AND generation = 1 AND position = 'ULID' AND state = 'retry'
INSERT IGNORE INTO `DATABASE`.`rowfeed_consumers` (consumer, feed, shard_count, paused, version) VALUES ('wire', 'kv', 1, 0, 0)
INSERT IGNORE INTO `DATABASE`.`rowfeed_dead_letters` (consumer, feed, shard, key_digest, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, data_shard) VALUES ('wire', 'kv', 1, 'DIGEST', ?, 1, 'ULID', 'upsert', 'aside', 2, 0, ?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)
INSERT INTO `DATABASE`.`rowfeed_cursors` (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ('wire', 'kv', 1, 1, '', 0, 0, 0, 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
RELEASE SAVEPOINT rowfeed
SAVEPOINT rowfeed
SELECT 1 AS shard, g0.* FROM (SELECT g.`u` FROM `DATABASE`.`kv` g WHERE g.`v` = CAST(1 AS DECIMAL(20,0)) ORDER BY g.`u` DESC LIMIT 1) g0
SELECT DISTINCT shard FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND state = 'retry'
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' ORDER BY consumer, feed, shard, first_at, key_digest
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 ORDER BY consumer, feed, shard, first_at, key_digest
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' ORDER BY consumer, feed, shard
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'wire' AND feed = 'kv' ORDER BY shard
SELECT consumer, feed, shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT key_digest, key_json, generation, position, op, data_shard FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND state = 'retry' ORDER BY first_at, key_digest LIMIT 1
SELECT key_digest, state FROM `DATABASE`.`rowfeed_dead_letters` WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1
SELECT shard FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv' AND time_ms <> 0 ORDER BY shard LIMIT 21
SELECT shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'wire' AND feed = 'kv'
SELECT shard_count, version FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 5 AND value = 'ULID' AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, aside = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 4 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 0 AND value = '' AND generation = 0 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 1 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 2 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 3 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 1 AND paused = 0
UPDATE `DATABASE`.`rowfeed_dead_letters` SET op = 'delete' WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND generation < 0
UPDATE `DATABASE`.`rowfeed_dead_letters` SET state = 'retry', last_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND key_digest = 'DIGEST'

-- drop dead letters
SELECT count(*) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'

-- pause, resume, seek and reset the consumer
UPDATE `DATABASE`.`rowfeed_consumers` SET paused = 1, version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET paused = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT shard FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND paused <> 0 ORDER BY shard
UPDATE `DATABASE`.`rowfeed_consumers` SET paused = 0, version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET paused = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard = 1
UPDATE `DATABASE`.`rowfeed_dead_letters` SET generation = -ABS(generation), op = 'upsert' WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_consumers` k WHERE k.consumer = `DATABASE`.`rowfeed_cursors`.consumer AND k.feed = `DATABASE`.`rowfeed_cursors`.feed)
SELECT feed, MAX(epoch) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv' AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM `DATABASE`.`rowfeed_consumers` k WHERE k.consumer = `DATABASE`.`rowfeed_cursors`.consumer AND k.feed = `DATABASE`.`rowfeed_cursors`.feed) GROUP BY feed ORDER BY feed
UPDATE `DATABASE`.`rowfeed_cursors` SET value = '', generation = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name = 'consumer:kv:wire/dropped'

-- consume with two shards
UPDATE `DATABASE`.`rowfeed_consumers` SET shard_count = 2, version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET shard_count = 2, version = version + 1 WHERE 1 = 1 AND consumer = 'wire' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 2 AND version = 14 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 2 AND version = 11 AND value = '' AND generation = 0 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 2 AND version = 12 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'wire' AND feed = 'kv' AND shard = 1 AND shard_count = 2 AND version = 13 AND value = ? AND generation = 1 AND epoch = 0 AND aside = 0 AND paused = 0

-- deliver outside of transactions, under an epoch
SELECT shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'deliver' AND feed = 'kv'
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'deliver' AND feed = 'kv' ORDER BY shard
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + 1 WHERE 1 = 1 AND consumer = 'deliver' AND feed = 'kv'
INSERT IGNORE INTO `DATABASE`.`rowfeed_consumers` (consumer, feed, shard_count, paused, version) VALUES ('deliver', 'kv', 1, 0, 0)
INSERT INTO `DATABASE`.`rowfeed_cursors` (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ('deliver', 'kv', 1, 1, '', 0, 0, 0, 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name >= 'consumer:kv:deliver/' AND name < 'consumer:kv:deliver0' OR name = ''
SELECT shard_count, version FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'deliver' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET epoch = 7, version = version + 1, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard_count = 1 AND epoch < 7 AND shard IN (1)
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 1 AND value = '' AND generation = 0 AND epoch = 7 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 2 AND value = ? AND generation = 1 AND epoch = 7 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = ?, generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 3 AND value = ? AND generation = 1 AND epoch = 7 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'deliver' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 4 AND value = ? AND generation = 1 AND epoch = 7 AND aside = 0 AND paused = 0

-- note an entry as processed, and forget it
INSERT IGNORE INTO `DATABASE`.`rowfeed_processed` (consumer, feed, generation, shard, position, processed_at) VALUES ('wire', 'kv', 1, 1, 'ULID', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT DISTINCT generation, shard FROM `DATABASE`.`rowfeed_processed` WHERE consumer = 'wire' AND feed = 'kv' AND generation <= 1
SELECT position FROM `DATABASE`.`rowfeed_processed` WHERE consumer = 'wire' AND feed = 'kv' AND generation = 1 AND shard = 1 AND position <= 'ULID' ORDER BY position LIMIT 1 OFFSET 1999
DELETE FROM `DATABASE`.`rowfeed_processed` WHERE consumer = 'wire' AND feed = 'kv' AND generation = 1 AND shard = 1 AND position <= 'ULID'

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
DELETE FROM `DATABASE`.`rowfeed_dead_letters` WHERE 1 = 1 AND consumer = 'again'
DELETE FROM `DATABASE`.`rowfeed_processed` WHERE 1 = 1 AND consumer = 'again'
INSERT IGNORE INTO `DATABASE`.`rowfeed_consumers` (consumer, feed, shard_count, paused, version) VALUES ('again', 'kv', 1, 0, 0)
INSERT INTO `DATABASE`.`rowfeed_cursors` (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES ('again', 'kv', 1, 1, '', 0, 0, 0, 0, 0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
SELECT consumer, feed, MAX(epoch) FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND consumer = 'again' GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'again' AND feed = 'kv' AND shard = 1
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE consumer = 'again' AND feed = 'kv' ORDER BY shard
SELECT shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'again' AND feed = 'kv'
SELECT shard_count, version FROM `DATABASE`.`rowfeed_consumers` WHERE consumer = 'again' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + 1 WHERE 1 = 1 AND consumer = 'again'
UPDATE `DATABASE`.`rowfeed_consumers` SET version = version + 1 WHERE 1 = 1 AND consumer = 'again' AND feed = 'kv'
UPDATE `DATABASE`.`rowfeed_cursors` SET value = 'ULID', generation = 1, aside = 0, version = version + 1, failure = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) WHERE consumer = 'again' AND feed = 'kv' AND shard = 1 AND shard_count = 1 AND version = 0 AND value = '' AND generation = 0 AND epoch = 0 AND aside = 0 AND paused = 0
UPDATE `DATABASE`.`rowfeed_cursors` SET version = version + 1 WHERE 1 = 1 AND consumer = 'again'

-- status
SELECT l.LOCK_DATA, l.LOCK_STATUS = 'WAITING', th.PROCESSLIST_ID, l.ENGINE_TRANSACTION_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, (SELECT c.ATTR_VALUE FROM performance_schema.session_account_connect_attrs c WHERE c.PROCESSLIST_ID = th.PROCESSLIST_ID AND c.ATTR_NAME = 'program_name'), e.TIMER_WAIT DIV 1000000, th.PROCESSLIST_COMMAND, th.PROCESSLIST_TIME * 1000000, COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT FROM performance_schema.events_statements_current s WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1)) FROM performance_schema.data_locks l JOIN performance_schema.threads th ON th.THREAD_ID = l.THREAD_ID LEFT JOIN performance_schema.events_transactions_current e ON e.THREAD_ID = l.THREAD_ID AND e.STATE = 'ACTIVE' WHERE l.OBJECT_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND l.OBJECT_NAME = ? AND l.LOCK_TYPE = 'RECORD' AND l.INDEX_NAME = 'PRIMARY' AND l.LOCK_MODE IN ('X', 'X,REC_NOT_GAP') AND SUBSTRING_INDEX(l.LOCK_DATA, ',', 1) = ? ORDER BY 2, 8 DESC, 3 LIMIT NUMBER
SELECT @@GLOBAL.performance_schema
SELECT s.shard, (SELECT g.`u` FROM `DATABASE`.`kv` g WHERE g.`v` = s.shard ORDER BY g.`u` DESC LIMIT 1) FROM `DATABASE`.`rowfeed_shards` s WHERE s.feed = 'kv' ORDER BY s.shard LIMIT 1000
SELECT name, owner, epoch, acquired_at, renewals, expires_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_leases` WHERE name = 'publish:kv'
SELECT RTRIM(Host) FROM mysql.user WHERE RTRIM(User) = ? AND (? LIKE RTRIM(Host) OR LOCATE('/', Host) > 0)
SELECT EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?)), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_shards') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_shards'), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_shards') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'INSERT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_shards'), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'UPDATE') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'UPDATE' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'UPDATE' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_shards') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'UPDATE' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_shards'), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_feeds') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'rowfeed_feeds'), EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT') OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND 'DATABASE' LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv') OR EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE IN (?, ?) AND PRIVILEGE_TYPE = 'SELECT' AND TABLE_SCHEMA = 'DATABASE' AND TABLE_NAME = 'kv')
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, failure FROM `DATABASE`.`rowfeed_cursors` WHERE 1 = 1 AND feed = 'kv' ORDER BY consumer, feed, shard
SELECT consumer, feed, shard_count, paused FROM `DATABASE`.`rowfeed_consumers` WHERE 1 = 1 AND feed = 'kv'

-- who has the shards

-- verify

-- check
SELECT time_ms, ulid_high, ulid_low, witness, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv' AND shard = 1
SELECT g.`v`, g.`u` FROM `DATABASE`.`kv` g WHERE g.`v` < 1 ORDER BY g.`v` DESC, g.`u` DESC LIMIT 1

-- repair

-- upgrade
SELECT value FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'

-- adopt the database, and begin a new generation
SELECT value, version, updated_at, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), CONCAT('server_id ', @@GLOBAL.server_id /*!80000 , ', server_uuid ', @@GLOBAL.server_uuid */), @@GLOBAL.read_only, CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv' FOR UPDATE
UPDATE `DATABASE`.`rowfeed_sequences` SET version = version + 1 WHERE name = 'kv'
UPDATE `DATABASE`.`rowfeed_feeds` SET generation = CASE WHEN ROUND(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000) > generation + 1 THEN ROUND(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000) ELSE generation + 1 END, database_identity = 'server_id 1, server_uuid UUID' WHERE name = 'kv'

-- grant and revoke
UPDATE `DATABASE`.`rowfeed_feeds` SET options = ? WHERE name = 'kv'
SET @rowfeed_grant = NULL /*M!100200 , SESSION sql_mode = CONCAT_WS(',', NULLIF(@@SESSION.sql_mode, ''), 'NO_AUTO_CREATE_USER') */
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_schema_version` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_feeds` TO 'wire_DATABASE'@'localhost'
GRANT EXECUTE ON PROCEDURE `DATABASE`.`rowfeed_lock_kv` TO 'wire_DATABASE'@'localhost'
GRANT EXECUTE ON PROCEDURE `DATABASE`.`rowfeed_take_kv` TO 'wire_DATABASE'@'localhost'
GRANT EXECUTE ON PROCEDURE `DATABASE`.`rowfeed_witness_kv` TO 'wire_DATABASE'@'localhost'
GRANT EXECUTE ON FUNCTION `DATABASE`.`rowfeed_ulid_kv` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_sequences` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_shards` TO 'wire_DATABASE'@'localhost'
GRANT SELECT ON TABLE `DATABASE`.`rowfeed_flushes` TO 'wire_DATABASE'@'localhost'
GRANT INSERT ON TABLE `DATABASE`.`rowfeed_flushes` TO 'wire_DATABASE'@'localhost'
GRANT UPDATE ON TABLE `DATABASE`.`rowfeed_flushes` TO 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_schema_version` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_feeds` FROM 'wire_DATABASE'@'localhost'
REVOKE EXECUTE ON PROCEDURE `DATABASE`.`rowfeed_lock_kv` FROM 'wire_DATABASE'@'localhost'
REVOKE EXECUTE ON PROCEDURE `DATABASE`.`rowfeed_take_kv` FROM 'wire_DATABASE'@'localhost'
REVOKE EXECUTE ON PROCEDURE `DATABASE`.`rowfeed_witness_kv` FROM 'wire_DATABASE'@'localhost'
REVOKE EXECUTE ON FUNCTION `DATABASE`.`rowfeed_ulid_kv` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_sequences` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_shards` FROM 'wire_DATABASE'@'localhost'
REVOKE SELECT ON TABLE `DATABASE`.`rowfeed_flushes` FROM 'wire_DATABASE'@'localhost'
REVOKE INSERT ON TABLE `DATABASE`.`rowfeed_flushes` FROM 'wire_DATABASE'@'localhost'
REVOKE UPDATE ON TABLE `DATABASE`.`rowfeed_flushes` FROM 'wire_DATABASE'@'localhost'

-- drop the feed
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'dropping', fill_after = NULL WHERE name = 'kv'
DELETE FROM `DATABASE`.`rowfeed_shards` WHERE feed = 'kv'
DELETE FROM `DATABASE`.`rowfeed_sequences` WHERE name = 'kv'
UPDATE `DATABASE`.`rowfeed_feeds` SET state = 'dropped', fill_after = NULL WHERE name = 'kv'

