-- Shards with ULIDs: how a transaction locks a shard, and how it allocates the shard's next ULIDs.
--
-- A shard's row in the table of shards is locked until the transaction ends. Writers of one shard take turns; writers
-- of other shards do not wait.

-- name: begin_savepoint
-- A savepoint is the only way to find out whether a transaction is open: without one, the savepoint is gone after its
-- own statement, and end_savepoint fails.
SAVEPOINT rowfeed_lock

-- name: end_savepoint
RELEASE SAVEPOINT rowfeed_lock

-- name: try_shard
-- Transactions of rowfeed itself do not wait for a shard that another transaction has locked. In READ COMMITTED, the
-- read of a missing row locks nothing.
{{template "shard" .}} FOR UPDATE NOWAIT

-- name: make_shard
-- It inserts the shard's row if it is missing, and locks it. In REPEATABLE READ, an UPDATE or a locking read of a
-- missing row acquires a gap lock, so two transactions that insert the rows of different shards would deadlock.
INSERT INTO {{table "shards"}} (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (:feed, :shard, 0, 0, 0, '')
ON DUPLICATE KEY UPDATE witness = witness

-- name: lock_shard
-- It runs after make_shard. In REPEATABLE READ, a plain read would return the row as of the transaction's snapshot, and
-- the same ULIDs would be allocated twice.
{{template "shard" .}} FOR UPDATE

-- name: shard
SELECT time_ms, ulid_high, ulid_low, witness, {{now}} FROM {{table "shards"}} WHERE feed = :feed AND shard = :shard

-- name: bound_waits
-- MySQL has no bound on lock waits for a single statement. The assignments of one SET are made from left to right.
SET @rowfeed_lock_wait = @@SESSION.innodb_lock_wait_timeout, SESSION innodb_lock_wait_timeout = :seconds

-- name: unbound_waits
SET SESSION innodb_lock_wait_timeout = @rowfeed_lock_wait

-- name: advance_shard
UPDATE {{table "shards"}} SET time_ms = :time, ulid_high = :high, ulid_low = :low, witness = :nonces
WHERE feed = :feed AND shard = :shard

-- name: idle_bound
-- For how many seconds the server lets this session be idle in a transaction.
SELECT @@SESSION.wait_timeout /*M! * 0 + COALESCE(NULLIF(@@SESSION.idle_write_transaction_timeout, 0),
  NULLIF(@@SESSION.idle_transaction_timeout, 0), @@SESSION.wait_timeout) */

-- name: take_shard
-- This is one statement; lock_shard, advance_shard and the bound on waits are five. The procedure sets the bound on
-- waits, and resets it unless it fails.
CALL {{table (print "take_" .Name)}}(:shard, :hint, :word, :wait, :tighter)

-- name: unbound_failed_take
-- If take_shard has failed, this resets the session's bound on lock waits, which the procedure has stored in a
-- variable. The procedure has no handler that does it, because no handler runs when a statement is killed.
SET SESSION innodb_lock_wait_timeout = CAST(COALESCE(@rowfeed_own_wait, @@SESSION.innodb_lock_wait_timeout) AS SIGNED),
  @rowfeed_own_wait = NULL

-- name: nonces
-- It needs no lock: a transaction sees what it has written, whatever its snapshot, and no other transaction writes its
-- nonces.
CALL {{table (print "witness_" .Name)}}(:shard)

-- name: must_be_open
DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000'
    SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;

-- name: variables
DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0);
  DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint;
  DECLARE v_bits char(64);
  DECLARE v_greatest binary(16);

-- name: lock_in_procedure
-- As make_shard and lock_shard do.
INSERT INTO :shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ({{feed}}, v_shard, 0, 0, 0, '')
    ON DUPLICATE KEY UPDATE witness = witness;
  SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM :shards
    WHERE feed = {{feed}} AND shard = v_shard FOR UPDATE;

-- name: take_in_procedure
-- It allocates ULIDs above those of the shard's rows. The server answers this MAX from the unique index, whatever the
-- statistics say. The read must not lock, because a gap at the end of a shard's rows is also the gap of other shards.
IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM :feeds WHERE name = {{feed}} AND state = :active) THEN
    SIGNAL SQLSTATE '42S02'
      SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended';
  END IF;
  SELECT MAX(g.{{quote .ULIDs.Position.Name}}) INTO v_greatest FROM :source g
    WHERE g.{{quote .ULIDs.Shard.Name}} = v_shard;
  IF v_greatest >= :ulid_of_state THEN
    SET v_time = :millis_of_greatest + 1;
    SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1;
  END IF;
  SET v_now = {{now}} DIV 1000;
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
    WHERE feed = {{feed}} AND shard = v_shard;

-- name: lock_procedure
-- allocates ULIDs of a shard, and locks the shard until the transaction ends
--
-- It is a procedure, because a stored function can neither set a savepoint nor lock a row for later statements. It
-- fails if sql_log_bin is off. Without the binary log, the server shows a commit to readers before the commit is on the
-- disk. A crash could then remove an entry that readers have seen.
CREATE PROCEDURE {{table (print "lock_" .Name)}}(IN p_shard bigint, IN p_time_hint datetime(6), OUT p_ulid binary(16),
  OUT p_ulid_high bigint, OUT p_ulid_low bigint)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  {{template "variables"}}
  {{template "must_be_open"}}
  {{template "lock_in_procedure" .}}
  {{template "take_in_procedure" .}}
  IF @@GLOBAL.log_bin AND NOT @@SESSION.sql_log_bin THEN
    SIGNAL SQLSTATE '45000'
      SET MESSAGE_TEXT = 'rowfeed: sql_log_bin is off: readers would be shown a commit that a crash takes back; leave it on';
  END IF;
  SET p_ulid_high = v_first_high, p_ulid_low = v_low;
  SET p_ulid = :ulid;
END

-- name: take_procedure
-- allocates ULIDs for rowfeed's library, and returns them as a row
--
-- p_hint is in milliseconds of Unix time. p_word is the library's nonce, by which it recognizes its own ULIDs. p_wait
-- is the maximum time to wait for a lock, in seconds; 0 leaves the session's setting. With p_tighter, the session's
-- setting applies if it is shorter.
CREATE PROCEDURE {{table (print "take_" .Name)}}(IN p_shard bigint, IN p_hint bigint,
  IN p_word varchar(40) CHARACTER SET ascii, IN p_wait int, IN p_tighter bool)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  {{template "variables"}}
  DECLARE v_own int DEFAULT @@SESSION.innodb_lock_wait_timeout;
  {{template "must_be_open"}}
  IF p_wait > 0 AND NOT (p_tighter AND v_own <= p_wait) THEN
    SET @rowfeed_own_wait = v_own, SESSION innodb_lock_wait_timeout = p_wait;
  END IF;
  {{template "lock_in_procedure" .}}
  SET SESSION innodb_lock_wait_timeout = v_own, @rowfeed_own_wait = NULL;
  {{template "take_in_procedure" .}}
  SELECT v_first_time, v_first_high, v_low, :commit_variables;
END

-- name: nonce_procedure
-- returns the nonces that rowfeed's library has stored in a shard's row
CREATE PROCEDURE {{table (print "witness_" .Name)}}(IN p_shard bigint)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
  {{template "must_be_open"}}
  SELECT COALESCE((SELECT witness FROM :shards WHERE feed = {{feed}} AND shard = p_shard), '');
END

-- name: ulid_function
-- returns the i-th ULID after the one with these two halves
--
-- Neither MariaDB nor MySQL has a cheap variable that is local to a transaction. So the caller passes the halves of the
-- first ULID. The function cannot check that the caller's transaction has allocated that ULID.
CREATE FUNCTION {{table (print "ulid_" .Name)}}(p_ulid_high bigint, p_ulid_low bigint, i bigint) RETURNS binary(16)
DETERMINISTIC NO SQL SQL SECURITY INVOKER
BEGIN
  IF p_ulid_high IS NULL OR p_ulid_low IS NULL OR i IS NULL OR i < 0 OR i >= :count THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = :lock_again;
  END IF;
  RETURN :ulid;
END

-- name: drop_lock_procedure
-- its procedure
DROP PROCEDURE IF EXISTS {{table (print "lock_" .Name)}}

-- name: drop_take_procedure
-- its procedure
DROP PROCEDURE IF EXISTS {{table (print "take_" .Name)}}

-- name: drop_nonce_procedure
-- its procedure
DROP PROCEDURE IF EXISTS {{table (print "witness_" .Name)}}

-- name: drop_ulid_function
-- its function
DROP FUNCTION IF EXISTS {{table (print "ulid_" .Name)}}

-- name: routine_state
-- The account with whose rights a routine runs, and its body, which is NULL if this login may not see it.
SELECT DEFINER, ROUTINE_DEFINITION FROM information_schema.ROUTINES
WHERE ROUTINE_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND ROUTINE_NAME = :name AND ROUTINE_TYPE = :kind
