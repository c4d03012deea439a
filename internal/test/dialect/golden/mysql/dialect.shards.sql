-- name: advance_shard
UPDATE `rowfeed_shards` SET time_ms = :time, ulid_high = :high, ulid_low = :low, witness = :nonces
WHERE feed = :feed AND shard = :shard

-- name: begin_savepoint
SAVEPOINT rowfeed_lock

-- name: bound_waits
SET @rowfeed_lock_wait = @@SESSION.innodb_lock_wait_timeout, SESSION innodb_lock_wait_timeout = :seconds

-- name: drop_lock_procedure
DROP PROCEDURE IF EXISTS `rowfeed_lock_<feed>`

-- name: drop_nonce_procedure
DROP PROCEDURE IF EXISTS `rowfeed_witness_<feed>`

-- name: drop_take_procedure
DROP PROCEDURE IF EXISTS `rowfeed_take_<feed>`

-- name: drop_ulid_function
DROP FUNCTION IF EXISTS `rowfeed_ulid_<feed>`

-- name: end_savepoint
RELEASE SAVEPOINT rowfeed_lock

-- name: idle_bound
SELECT @@SESSION.wait_timeout /*M! * 0 + COALESCE(NULLIF(@@SESSION.idle_write_transaction_timeout, 0),
  NULLIF(@@SESSION.idle_transaction_timeout, 0), @@SESSION.wait_timeout) */

-- name: lock_in_procedure
INSERT INTO :shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('<feed>', v_shard, 0, 0, 0, '')
    ON DUPLICATE KEY UPDATE witness = witness;
  SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM :shards
    WHERE feed = '<feed>' AND shard = v_shard FOR UPDATE;

-- name: lock_procedure
CREATE PROCEDURE `rowfeed_lock_<feed>`(IN p_shard bigint, IN p_time_hint datetime(6), OUT p_ulid binary(16),
  OUT p_ulid_high bigint, OUT p_ulid_low bigint)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0);
  DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint;
  DECLARE v_bits char(64);
  DECLARE v_greatest binary(16);
  DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000'
    SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;
  INSERT INTO :shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('<feed>', v_shard, 0, 0, 0, '')
    ON DUPLICATE KEY UPDATE witness = witness;
  SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM :shards
    WHERE feed = '<feed>' AND shard = v_shard FOR UPDATE;
  IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM :feeds WHERE name = '<feed>' AND state = :active) THEN
    SIGNAL SQLSTATE '42S02'
      SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended';
  END IF;
  SELECT MAX(g.`ulid`) INTO v_greatest FROM :source g
    WHERE g.`shard` = v_shard;
  IF v_greatest >= :ulid_of_state THEN
    SET v_time = :millis_of_greatest + 1;
    SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1;
  END IF;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000;
  SET v_hint = GREATEST(COALESCE(:hint, v_now), 1);
  IF v_hint > v_now + :most_ahead THEN
    SIGNAL SQLSTATE '22007'
      SET MYSQL_ERRNO = :hint_ahead, MESSAGE_TEXT =
        'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend the clock that it comes from';
  END IF;
  SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256);
  SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10);
  SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED);
  SET v_first_time = :next_time;
  SET v_first_high = :next_high;
  SET v_low = :next_low;
  IF v_first_time > :last_time THEN
    SIGNAL SQLSTATE '22003'
      SET MYSQL_ERRNO = :no_ulids, MESSAGE_TEXT =
        'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it';
  END IF;
  UPDATE :shards SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + :count, witness = :witness
    WHERE feed = '<feed>' AND shard = v_shard;
  IF @@GLOBAL.log_bin AND NOT @@SESSION.sql_log_bin THEN
    SIGNAL SQLSTATE '45000'
      SET MESSAGE_TEXT = 'rowfeed: sql_log_bin is off: readers would be shown a commit that a crash takes back; leave it on';
  END IF;
  SET p_ulid_high = v_first_high, p_ulid_low = v_low;
  SET p_ulid = :ulid;
END

-- name: lock_procedure (blocking_feed)
CREATE PROCEDURE `rowfeed_lock_<feed>`(IN p_shard bigint, IN p_time_hint datetime(6), OUT p_ulid binary(16),
  OUT p_ulid_high bigint, OUT p_ulid_low bigint)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0);
  DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint;
  DECLARE v_bits char(64);
  DECLARE v_greatest binary(16);
  DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000'
    SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;
  INSERT INTO :shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('<feed>', v_shard, 0, 0, 0, '')
    ON DUPLICATE KEY UPDATE witness = witness;
  SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM :shards
    WHERE feed = '<feed>' AND shard = v_shard FOR UPDATE;
  IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM :feeds WHERE name = '<feed>' AND state = :active) THEN
    SIGNAL SQLSTATE '42S02'
      SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended';
  END IF;
  SELECT MAX(g.`position`) INTO v_greatest FROM :source g
    WHERE g.`tenant` = v_shard;
  IF v_greatest >= :ulid_of_state THEN
    SET v_time = :millis_of_greatest + 1;
    SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1;
  END IF;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000;
  SET v_hint = GREATEST(COALESCE(:hint, v_now), 1);
  IF v_hint > v_now + :most_ahead THEN
    SIGNAL SQLSTATE '22007'
      SET MYSQL_ERRNO = :hint_ahead, MESSAGE_TEXT =
        'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend the clock that it comes from';
  END IF;
  SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256);
  SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10);
  SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED);
  SET v_first_time = :next_time;
  SET v_first_high = :next_high;
  SET v_low = :next_low;
  IF v_first_time > :last_time THEN
    SIGNAL SQLSTATE '22003'
      SET MYSQL_ERRNO = :no_ulids, MESSAGE_TEXT =
        'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it';
  END IF;
  UPDATE :shards SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + :count, witness = :witness
    WHERE feed = '<feed>' AND shard = v_shard;
  IF @@GLOBAL.log_bin AND NOT @@SESSION.sql_log_bin THEN
    SIGNAL SQLSTATE '45000'
      SET MESSAGE_TEXT = 'rowfeed: sql_log_bin is off: readers would be shown a commit that a crash takes back; leave it on';
  END IF;
  SET p_ulid_high = v_first_high, p_ulid_low = v_low;
  SET p_ulid = :ulid;
END

-- name: lock_shard
SELECT time_ms, ulid_high, ulid_low, witness, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `rowfeed_shards` WHERE feed = :feed AND shard = :shard FOR UPDATE

-- name: make_shard
INSERT INTO `rowfeed_shards` (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (:feed, :shard, 0, 0, 0, '')
ON DUPLICATE KEY UPDATE witness = witness

-- name: must_be_open
DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000'
    SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;

-- name: nonce_procedure
CREATE PROCEDURE `rowfeed_witness_<feed>`(IN p_shard bigint)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000'
    SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;
  SELECT COALESCE((SELECT witness FROM :shards WHERE feed = '<feed>' AND shard = p_shard), '');
END

-- name: nonces
CALL `rowfeed_witness_<feed>`(:shard)

-- name: routine_state
SELECT DEFINER, ROUTINE_DEFINITION FROM information_schema.ROUTINES
WHERE ROUTINE_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND ROUTINE_NAME = :name AND ROUTINE_TYPE = :kind

-- name: shard
SELECT time_ms, ulid_high, ulid_low, witness, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `rowfeed_shards` WHERE feed = :feed AND shard = :shard

-- name: take_in_procedure
IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM :feeds WHERE name = '<feed>' AND state = :active) THEN
    SIGNAL SQLSTATE '42S02'
      SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended';
  END IF;
  SELECT MAX(g.`ulid`) INTO v_greatest FROM :source g
    WHERE g.`shard` = v_shard;
  IF v_greatest >= :ulid_of_state THEN
    SET v_time = :millis_of_greatest + 1;
    SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1;
  END IF;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000;
  SET v_hint = GREATEST(COALESCE(:hint, v_now), 1);
  IF v_hint > v_now + :most_ahead THEN
    SIGNAL SQLSTATE '22007'
      SET MYSQL_ERRNO = :hint_ahead, MESSAGE_TEXT =
        'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend the clock that it comes from';
  END IF;
  SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256);
  SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10);
  SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED);
  SET v_first_time = :next_time;
  SET v_first_high = :next_high;
  SET v_low = :next_low;
  IF v_first_time > :last_time THEN
    SIGNAL SQLSTATE '22003'
      SET MYSQL_ERRNO = :no_ulids, MESSAGE_TEXT =
        'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it';
  END IF;
  UPDATE :shards SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + :count, witness = :witness
    WHERE feed = '<feed>' AND shard = v_shard;

-- name: take_in_procedure (blocking_feed)
IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM :feeds WHERE name = '<feed>' AND state = :active) THEN
    SIGNAL SQLSTATE '42S02'
      SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended';
  END IF;
  SELECT MAX(g.`position`) INTO v_greatest FROM :source g
    WHERE g.`tenant` = v_shard;
  IF v_greatest >= :ulid_of_state THEN
    SET v_time = :millis_of_greatest + 1;
    SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1;
  END IF;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000;
  SET v_hint = GREATEST(COALESCE(:hint, v_now), 1);
  IF v_hint > v_now + :most_ahead THEN
    SIGNAL SQLSTATE '22007'
      SET MYSQL_ERRNO = :hint_ahead, MESSAGE_TEXT =
        'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend the clock that it comes from';
  END IF;
  SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256);
  SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10);
  SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED);
  SET v_first_time = :next_time;
  SET v_first_high = :next_high;
  SET v_low = :next_low;
  IF v_first_time > :last_time THEN
    SIGNAL SQLSTATE '22003'
      SET MYSQL_ERRNO = :no_ulids, MESSAGE_TEXT =
        'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it';
  END IF;
  UPDATE :shards SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + :count, witness = :witness
    WHERE feed = '<feed>' AND shard = v_shard;

-- name: take_procedure
CREATE PROCEDURE `rowfeed_take_<feed>`(IN p_shard bigint, IN p_hint bigint,
  IN p_word varchar(40) CHARACTER SET ascii, IN p_wait int, IN p_tighter bool)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0);
  DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint;
  DECLARE v_bits char(64);
  DECLARE v_greatest binary(16);
  DECLARE v_own int DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000'
    SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;
  IF p_wait > 0 AND NOT (p_tighter AND v_own <= p_wait) THEN
    SET @rowfeed_own_wait = v_own, SESSION innodb_lock_wait_timeout = p_wait;
  END IF;
  INSERT INTO :shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('<feed>', v_shard, 0, 0, 0, '')
    ON DUPLICATE KEY UPDATE witness = witness;
  SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM :shards
    WHERE feed = '<feed>' AND shard = v_shard FOR UPDATE;
  SET SESSION innodb_lock_wait_timeout = v_own, @rowfeed_own_wait = NULL;
  IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM :feeds WHERE name = '<feed>' AND state = :active) THEN
    SIGNAL SQLSTATE '42S02'
      SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended';
  END IF;
  SELECT MAX(g.`ulid`) INTO v_greatest FROM :source g
    WHERE g.`shard` = v_shard;
  IF v_greatest >= :ulid_of_state THEN
    SET v_time = :millis_of_greatest + 1;
    SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1;
  END IF;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000;
  SET v_hint = GREATEST(COALESCE(:hint, v_now), 1);
  IF v_hint > v_now + :most_ahead THEN
    SIGNAL SQLSTATE '22007'
      SET MYSQL_ERRNO = :hint_ahead, MESSAGE_TEXT =
        'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend the clock that it comes from';
  END IF;
  SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256);
  SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10);
  SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED);
  SET v_first_time = :next_time;
  SET v_first_high = :next_high;
  SET v_low = :next_low;
  IF v_first_time > :last_time THEN
    SIGNAL SQLSTATE '22003'
      SET MYSQL_ERRNO = :no_ulids, MESSAGE_TEXT =
        'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it';
  END IF;
  UPDATE :shards SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + :count, witness = :witness
    WHERE feed = '<feed>' AND shard = v_shard;
  SELECT v_first_time, v_first_high, v_low, :commit_variables;
END

-- name: take_procedure (blocking_feed)
CREATE PROCEDURE `rowfeed_take_<feed>`(IN p_shard bigint, IN p_hint bigint,
  IN p_word varchar(40) CHARACTER SET ascii, IN p_wait int, IN p_tighter bool)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0);
  DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint;
  DECLARE v_bits char(64);
  DECLARE v_greatest binary(16);
  DECLARE v_own int DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000'
    SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;
  IF p_wait > 0 AND NOT (p_tighter AND v_own <= p_wait) THEN
    SET @rowfeed_own_wait = v_own, SESSION innodb_lock_wait_timeout = p_wait;
  END IF;
  INSERT INTO :shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('<feed>', v_shard, 0, 0, 0, '')
    ON DUPLICATE KEY UPDATE witness = witness;
  SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM :shards
    WHERE feed = '<feed>' AND shard = v_shard FOR UPDATE;
  SET SESSION innodb_lock_wait_timeout = v_own, @rowfeed_own_wait = NULL;
  IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM :feeds WHERE name = '<feed>' AND state = :active) THEN
    SIGNAL SQLSTATE '42S02'
      SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended';
  END IF;
  SELECT MAX(g.`position`) INTO v_greatest FROM :source g
    WHERE g.`tenant` = v_shard;
  IF v_greatest >= :ulid_of_state THEN
    SET v_time = :millis_of_greatest + 1;
    SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1;
  END IF;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000;
  SET v_hint = GREATEST(COALESCE(:hint, v_now), 1);
  IF v_hint > v_now + :most_ahead THEN
    SIGNAL SQLSTATE '22007'
      SET MYSQL_ERRNO = :hint_ahead, MESSAGE_TEXT =
        'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend the clock that it comes from';
  END IF;
  SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256);
  SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10);
  SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED);
  SET v_first_time = :next_time;
  SET v_first_high = :next_high;
  SET v_low = :next_low;
  IF v_first_time > :last_time THEN
    SIGNAL SQLSTATE '22003'
      SET MYSQL_ERRNO = :no_ulids, MESSAGE_TEXT =
        'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it';
  END IF;
  UPDATE :shards SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + :count, witness = :witness
    WHERE feed = '<feed>' AND shard = v_shard;
  SELECT v_first_time, v_first_high, v_low, :commit_variables;
END

-- name: take_shard
CALL `rowfeed_take_<feed>`(:shard, :hint, :word, :wait, :tighter)

-- name: try_shard
SELECT time_ms, ulid_high, ulid_low, witness, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM `rowfeed_shards` WHERE feed = :feed AND shard = :shard FOR UPDATE NOWAIT

-- name: ulid_function
CREATE FUNCTION `rowfeed_ulid_<feed>`(p_ulid_high bigint, p_ulid_low bigint, i bigint) RETURNS binary(16)
DETERMINISTIC NO SQL SQL SECURITY INVOKER
BEGIN
  IF p_ulid_high IS NULL OR p_ulid_low IS NULL OR i IS NULL OR i < 0 OR i >= :count THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = :lock_again;
  END IF;
  RETURN :ulid;
END

-- name: unbound_failed_take
SET SESSION innodb_lock_wait_timeout = CAST(COALESCE(@rowfeed_own_wait, @@SESSION.innodb_lock_wait_timeout) AS SIGNED),
  @rowfeed_own_wait = NULL

-- name: unbound_waits
SET SESSION innodb_lock_wait_timeout = @rowfeed_lock_wait

-- name: variables
DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0);
  DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint;
  DECLARE v_bits char(64);
  DECLARE v_greatest binary(16);

