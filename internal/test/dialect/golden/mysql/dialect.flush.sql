-- name: commit_variables
@@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, @@SESSION.sql_log_bin

-- name: durability
SELECT @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, @@SESSION.sql_log_bin

-- name: flush
INSERT INTO :flushes (id, flush_count)
SELECT MOD(CONNECTION_ID(), 16), 1 FROM DUAL WHERE CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')
ON DUPLICATE KEY UPDATE flush_count = flush_count + 1

-- name: flush_alone
INSERT INTO :flushes (id, flush_count)
SELECT MOD(CONNECTION_ID(), 16), 1 FROM DUAL WHERE CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')
  AND @@SESSION.autocommit = 1 AND @@SESSION.in_transaction = 0
ON DUPLICATE KEY UPDATE flush_count = flush_count + 1

-- name: log_variables
@@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog

