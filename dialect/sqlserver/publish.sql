-- Publishing: what a transaction sets, what it locks, and how changes get their positions.
--
-- A publisher has the feed's turn, a lock by name, and the feed's row of the table of sequences, from the begin of a
-- pass to its COMMIT. Everything else that it writes belongs to publishers alone, so no writer waits for it: the table
-- of positions, and changes that are committed. A scan of changes and a look at the source read row versions
-- (READ_COMMITTED_SNAPSHOT): they lock nothing and wait for nothing.
--
-- The target of an UPDATE or DELETE is read with U locks at every isolation level, so such a statement finds each row
-- by its key: LOOP JOIN and FORCE ORDER begin with the list, FORCESEEK looks each of its keys up. Otherwise it would
-- wait for the first open writer that it meets.

-- name: settings
-- Sent without parameters, so that they last for the session. The driver resets the session for its next user. An
-- error does not end the transaction: some are answered by another statement. SQL Server has no bound on an idle
-- transaction.
SET XACT_ABORT OFF; SET LOCK_TIMEOUT :wait; SET DEADLOCK_PRIORITY :priority

-- name: restore_isolation
-- A session's reset does not reset the isolation level: the next user of the connection would run in SNAPSHOT.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED

-- name: durability
-- With ALLOWED, a COMMIT that does not ask for delayed durability is durable, and so is all that is visible to it. On
-- Azure SQL Database, DB_ID() can differ from the number in this view.
SELECT d.delayed_durability_desc FROM sys.databases AS d WHERE d.name = DB_NAME()

-- name: demand_versions
-- Changes would be lost if READ_COMMITTED_SNAPSHOT was switched off after `rowfeed init` had checked it: see the
-- statement "requirements" in schema.sql.
IF EXISTS (SELECT 1 FROM sys.databases AS d WHERE d.name = DB_NAME() AND d.is_read_committed_snapshot_on = 0)
  THROW 77111, N'rowfeed: READ_COMMITTED_SNAPSHOT of the database is OFF, so changes would be missed: set it to ON', 1;

-- name: set_identity
-- A restore to an earlier point, and a forced failover, begin a new fork of the database's log. @identity is empty if
-- it is unknown: to a login that may not see the database (VIEW ANY DATABASE, which public has), and on Azure SQL
-- Database, which lacks this view. A table that is missing is an error only if its statement runs.
DECLARE @identity nvarchar(200) = N'';
IF OBJECT_ID(N'sys.database_recovery_status') IS NOT NULL
  SELECT @identity = CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID();

-- name: read_identity
-- NULL on a server that accepts no writes.
SET NOCOUNT ON;
{{template "set_identity"}}
SELECT CASE WHEN DATABASEPROPERTYEX(DB_NAME(), N'Updateability') = N'READ_WRITE' THEN @identity END

-- name: has_changes
-- It runs without a transaction, and a session's reset leaves it the isolation level of the application's last
-- transaction: at SERIALIZABLE it would wait for the first open writer. The level ends with this batch, if that has
-- parameters; a session's own level is READ COMMITTED anyway.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT TOP (1) x.seq FROM (:scans) AS x

-- name: first_change
SELECT * FROM (SELECT TOP (1) seq :scan ORDER BY seq) AS c

-- name: first_row
-- A row that waits for a position is a change, too.
SELECT * FROM (SELECT TOP (1) CONVERT(bigint, 0) AS seq FROM {{source}} WHERE feed_sync_id IS NULL) AS t

-- name: lock_sequence
-- The procedure "turn" takes an application lock first. That lock has a timeout of its own, and is listed by its name.
-- The row's lock is for statements that change the row without the application lock. A locking read also reads the
-- row's last version.
SET NOCOUNT ON;
{{template "demand_versions"}}
EXEC {{table "turn"}} @name = :turn, @wait = NULL;
{{template "set_identity"}}
SELECT value, version, COALESCE(term, 0), updated_at, {{now}}, @identity
FROM {{table "sequences"}} WITH (UPDLOCK, ROWLOCK) WHERE name = :feed

-- name: oldest
SELECT * FROM (SELECT TOP (:limit) seq, kind, {{key}} :scan ORDER BY seq) AS c

-- name: take_changes
-- One statement, and so one snapshot. It locks nothing: it does not read past a locked row, which would let a later
-- change have the lower position. Each range is scanned by itself.
SELECT TOP (:limit) x.seq, x.kind, {{read_key "x"}} FROM (:scans) AS x ORDER BY x.seq OPTION (MAXDOP 1)

-- name: assigned
-- The assignments with their keys. The key of a change may be spelled in two ways that are equal by collation: the
-- last one counts. deleted says that the key has no row. The names of these columns are those that no key column has.
SELECT x.feed_sync_id, x.shard, x.kind, x.deleted, {{key "x"}} FROM (
  SELECT :base + j.place AS feed_sync_id, j.shard, j.kind,
    CASE WHEN {{one_of_row "t"}} IS NULL THEN 1 ELSE 0 END AS deleted, {{key "c"}},
    ROW_NUMBER() OVER (PARTITION BY {{key "c"}} ORDER BY j.place DESC) AS rowid
  FROM (SELECT CONVERT(bigint, l.[key]) + 1 AS place, CONVERT(bigint, JSON_VALUE(l.value, N'$[0]')) AS seq,
      CONVERT(int, JSON_VALUE(l.value, N'$[1]')) AS shard, CONVERT(int, JSON_VALUE(l.value, N'$[2]')) AS kind
    FROM OPENJSON(:list) AS l) AS j
  INNER LOOP JOIN {{changes}} AS c WITH (FORCESEEK) ON c.seq = j.seq
  LEFT LOOP JOIN {{source}} AS t WITH (FORCESEEK) ON {{row_of "t" "c"}}) AS x
WHERE x.rowid = 1

-- name: assign_positions
-- An UPDATE gives the new positions to keys that have one, then an INSERT adds the other keys. lock_sequence keeps
-- other writers of positions out, so no key can appear between the two.
--
-- kind is a dialect.ChangeKind: 0 for a changed key, 1 for one that is shown again, 2 for one that is hidden. A hidden
-- key keeps its position if its kind is 0.
--
-- A key without a row and without a position gets none. But if rows hold their positions, no query can tell whether
-- such a key was ever shown. Then it gets a tombstone.
SET NOCOUNT ON;
DECLARE @assigned TABLE (
  feed_sync_id bigint NOT NULL PRIMARY KEY, shard int NOT NULL, kind int NOT NULL, deleted int NOT NULL,
  {{declared_key}}
);
INSERT INTO @assigned (feed_sync_id, shard, kind, deleted, {{key}})
{{template "assigned" .}} OPTION (FORCE ORDER, MAXDOP 1);
UPDATE p SET
  feed_sync_id = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.feed_sync_id ELSE a.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 AND a.kind = 0 THEN p.published_at ELSE :published END,
  deleted = a.deleted,
  hidden = CASE a.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END
FROM @assigned AS a INNER LOOP JOIN {{positions}} AS p WITH (ROWLOCK, FORCESEEK) ON {{same_key "p" "a"}}
OPTION (FORCE ORDER, MAXDOP 1);
INSERT INTO {{positions}} ({{key}}, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT {{key "a"}}, a.feed_sync_id, a.shard, {{bucket "a.shard" "/"}}, a.deleted, CASE a.kind WHEN 2 THEN 1 ELSE 0 END,
  :published
FROM @assigned AS a
WHERE {{if not .ReadsRows}}a.deleted = 0 AND {{end}}NOT EXISTS (
  SELECT 1 FROM {{positions}} AS p WITH (FORCESEEK) WHERE {{same_key "p" "a"}})
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: delete_changes
DELETE c FROM OPENJSON(:seqs) WITH (seq bigint N'$') AS j
INNER LOOP JOIN {{changes}} AS c WITH (ROWLOCK, FORCESEEK) ON c.seq = j.seq OPTION (FORCE ORDER, MAXDOP 1)

-- name: writers
-- An INSERT locks the table in mode IX before its first row, and the lock is kept until the transaction has ended. A
-- session below 0 is a transaction that has no session.
--
-- OBJECT_ID is NULL if the table is gone, or the login may not see it. Without the first column, that would look like a
-- table without writers, and their changes would be missed.
SELECT DISTINCT CASE WHEN o.id IS NULL THEN 0 ELSE 1 END, COALESCE(CONVERT(nvarchar(20), l.request_owner_id), N''),
  CASE WHEN l.request_session_id < 0 THEN 1 ELSE 0 END
FROM (SELECT OBJECT_ID(:table, N'U') AS id) AS o
LEFT JOIN sys.dm_tran_locks AS l ON l.resource_type = N'OBJECT' AND l.resource_database_id = DB_ID()
  AND l.resource_associated_entity_id = o.id AND l.request_mode IN (N'IX', N'SIX', N'X')
