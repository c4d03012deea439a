-- How a reader makes sure that a crash cannot undo a commit that the reader has seen.
--
-- With a binary log, the server syncs that log before it shows a commit. Without one, InnoDB shows a commit first and
-- flushes its own log afterwards. A crash in between undoes a commit that readers have seen, and its position would be
-- given again, to another key. A commit of the reader's own flushes the log up to that commit, and so everything that
-- the reader has seen.

-- name: log_variables
-- Which log decides over a commit, and whether it is flushed at each commit.
@@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog

-- name: commit_variables
-- The same, and whether commits of this session are in the binary log.
{{template "log_variables"}}, @@SESSION.sql_log_bin

-- name: durability
SELECT {{template "commit_variables"}}

-- name: flush
-- It changes a row, because a commit without changes flushes nothing. There are 16 rows, so that several readers can
-- commit concurrently. It never writes on a replica, even if the user may.
INSERT INTO :flushes (id, flush_count)
SELECT MOD(CONNECTION_ID(), 16), 1 FROM DUAL WHERE CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')
ON DUPLICATE KEY UPDATE flush_count = flush_count + 1

-- name: flush_alone
-- It commits by itself. It checks that this is so, because it may be sent to another session than the page's.
INSERT INTO :flushes (id, flush_count)
SELECT MOD(CONNECTION_ID(), 16), 1 FROM DUAL WHERE CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')
  AND @@SESSION.autocommit = 1 AND @@SESSION.in_transaction = 0
ON DUPLICATE KEY UPDATE flush_count = flush_count + 1
