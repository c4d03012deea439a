-- migrate up
CREATE TABLE [dbo].[rowfeed_schema_version] (
  version int NOT NULL PRIMARY KEY,
  applied_at bigint NOT NULL
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_sequences] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  value bigint NOT NULL,
  version bigint NOT NULL,
  updated_at bigint NOT NULL,
  term bigint NULL
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_feeds] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  mode nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  capture nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  state nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  generation bigint NOT NULL,
  source_schema nvarchar(150) COLLATE Latin1_General_100_BIN2 NULL,
  source_table nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  key_columns nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  delivered_columns nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  options nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  data_shards int NOT NULL,
  shard_column nvarchar(150) COLLATE Latin1_General_100_BIN2 NULL,
  tombstones_seconds bigint NOT NULL,
  tombstones_below bigint NOT NULL,
  database_identity nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  fill_after nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  created_at bigint NOT NULL,
  failure nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  failing_since bigint NULL,
  attempts bigint NULL,
  next_try bigint NULL
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_terms] (
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  term bigint NOT NULL,
  upto bigint NOT NULL,
  ended_at bigint NOT NULL,
  PRIMARY KEY (feed, term)
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_cursors] (
  consumer nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  shard bigint NOT NULL,
  shard_count int NOT NULL,
  value nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  generation bigint NOT NULL,
  epoch bigint NOT NULL,
  version bigint NOT NULL,
  paused smallint NOT NULL,
  aside bigint NOT NULL DEFAULT 0,
  updated_at bigint NOT NULL,
  failure nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  failing_since bigint NULL,
  attempts bigint NULL,
  next_try bigint NULL,
  target nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  PRIMARY KEY (consumer, feed, shard) WITH (ALLOW_PAGE_LOCKS = OFF)
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_dead_letters] (
  consumer nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  shard bigint NOT NULL,
  key_digest nchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
  key_json nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  generation bigint NOT NULL,
  position nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
  op nvarchar(10) COLLATE Latin1_General_100_BIN2 NOT NULL,
  state nvarchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
  attempts bigint NOT NULL,
  collapsed bigint NOT NULL,
  error nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  data_shard bigint NULL,
  PRIMARY KEY (consumer, feed, shard, key_digest)
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE INDEX [rowfeed_dead_letters_first] ON [dbo].[rowfeed_dead_letters]
  (consumer, feed, shard, first_at, key_digest)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_processed] (
  consumer nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  generation bigint NOT NULL,
  shard bigint NOT NULL,
  position nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
  processed_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_leases] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  owner nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  epoch bigint NOT NULL,
  expires_at bigint NULL,
  acquired_at bigint NOT NULL,
  renewals bigint NOT NULL
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_shards] (
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  shard bigint NOT NULL,
  time_ms bigint NOT NULL,
  ulid_high bigint NOT NULL,
  ulid_low bigint NOT NULL,
  below_high bigint NOT NULL DEFAULT 0,
  below_low bigint NOT NULL DEFAULT 0,
  witness nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
  live_from bigint NOT NULL DEFAULT 0,
  filled_by bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard) WITH (ALLOW_PAGE_LOCKS = OFF)
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_consumers] (
  consumer nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  shard_count int NOT NULL,
  paused smallint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (consumer, feed)
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_tokens] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY,
  sha256 nchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL UNIQUE,
  grants nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  [view] nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NULL,
  revoked_at bigint NULL
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE TABLE [dbo].[rowfeed_audit] (
  id bigint IDENTITY PRIMARY KEY,
  mark nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  at bigint NOT NULL,
  actor nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  act nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  object nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  detail nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  outcome nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL
)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
CREATE PROCEDURE [dbo].[rowfeed_turn] @name nvarchar(32), @wait int
WITH EXECUTE AS OWNER AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @got int, @most int = COALESCE(@wait, @@LOCK_TIMEOUT);
  IF @@TRANCOUNT = 0
    THROW 77100, N'rowfeed: no transaction is open: begin one, lock, insert, commit', 1;
  EXEC @got = sys.sp_getapplock @Resource = @name, @LockMode = N'Exclusive', @LockOwner = N'Transaction',
    @LockTimeout = @most, @DbPrincipal = N'dbo';
  IF @got = -1
    THROW 77101, N'rowfeed: another transaction has the lock', 1;
  IF @got = -3
    THROW 77105, N'rowfeed: this transaction and another one wait for each other', 1;
  IF @got < 0
    THROW 77106, N'rowfeed: the lock was refused: dbo must own the schema of rowfeed''s tables', 1;
END
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_schema_version] (version, applied_at) VALUES (11, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO

-- migrate down
DELETE FROM [dbo].[rowfeed_schema_version]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_audit]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_tokens]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_consumers]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_shards]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_leases]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_processed]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_dead_letters]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_cursors]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_terms]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_feeds]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_sequences]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_schema_version]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP PROCEDURE IF EXISTS [dbo].[rowfeed_turn]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO

-- name: table_facts
SELECT s.name, o.name, RTRIM(o.type), CONVERT(int, COALESCE(t.is_memory_optimized, 0)),
  CONVERT(int, COALESCE(t.temporal_type, 0)), CONVERT(int, COALESCE(t.is_external, 0)),
  CONVERT(int, COALESCE(t.is_filetable, 0)), CONVERT(int, o.is_ms_shipped), CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
  (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
FROM sys.objects AS o
JOIN sys.schemas AS s ON s.schema_id = o.schema_id
LEFT JOIN sys.tables AS t ON t.object_id = o.object_id
WHERE o.object_id = OBJECT_ID(:table)

-- name: signature_of_o
CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
  (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))

-- name: columns
SELECT c.name, CASE WHEN y.is_assembly_type = 1 THEN y.name ELSE TYPE_NAME(c.system_type_id) END,
  CONVERT(int, c.max_length), CONVERT(int, c.precision), CONVERT(int, c.scale), COALESCE(c.collation_name, N''),
  CONVERT(int, c.is_nullable), CONVERT(int, c.is_computed), COALESCE(x.definition, N''), CONVERT(int, c.is_identity)
FROM sys.columns AS c
JOIN sys.types AS y ON y.user_type_id = c.user_type_id
LEFT JOIN sys.default_constraints AS x ON x.object_id = c.default_object_id
WHERE c.object_id = OBJECT_ID(:table)
ORDER BY c.column_id

-- name: unique_indexes
SELECT i.name, CONVERT(int, i.is_primary_key), CONVERT(int, i.has_filter), c.name
FROM sys.indexes AS i
JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.is_included_column = 0
JOIN sys.columns AS c ON c.object_id = k.object_id AND c.column_id = k.column_id
WHERE i.object_id = OBJECT_ID(:table) AND i.is_unique = 1 AND i.is_disabled = 0 AND i.is_hypothetical = 0
  AND k.key_ordinal > 0
ORDER BY i.is_primary_key DESC, i.name, k.key_ordinal

-- name: indexes
SELECT i.name, CONVERT(int, i.is_disabled) FROM sys.indexes AS i
WHERE i.object_id = OBJECT_ID(:table) AND i.name IS NOT NULL AND i.is_hypothetical = 0
ORDER BY i.name

-- name: update_triggers
SELECT g.name FROM sys.triggers AS g
WHERE g.parent_id = OBJECT_ID(:table) AND g.is_disabled = 0 AND EXISTS (SELECT 1 FROM sys.trigger_events AS e
  WHERE e.object_id = g.object_id AND e.type_desc = N'UPDATE')
ORDER BY g.name

-- name: grant
GRANT :privilege ON OBJECT:::object TO :login

-- name: revoke
REVOKE :privilege ON OBJECT:::object FROM :login

-- name: account
SELECT p.name FROM sys.database_principals AS p WHERE p.name = :name

-- name: principal
SELECT CASE WHEN DATABASE_PRINCIPAL_ID(:name) IS NULL THEN 0 ELSE 1 END

-- name: owns
SELECT CASE WHEN OBJECTPROPERTY(OBJECT_ID(:object), N'OwnerId') = DATABASE_PRINCIPAL_ID(:name) THEN 1 ELSE 0 END

-- name: visible
SELECT COALESCE(HAS_PERMS_BY_NAME(DB_NAME(), N'DATABASE', N'VIEW DEFINITION'), 0), USER_NAME()

-- name: name
nvarchar(150) COLLATE Latin1_General_100_BIN2

-- name: text
nvarchar(max) COLLATE Latin1_General_100_BIN2

-- name: schema_version
CREATE TABLE [dbo].[rowfeed_schema_version] (
  version int NOT NULL PRIMARY KEY,
  applied_at bigint NOT NULL
)

-- name: sequences
CREATE TABLE [dbo].[rowfeed_sequences] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  value bigint NOT NULL,
  version bigint NOT NULL,
  updated_at bigint NOT NULL,
  term bigint NULL
)

-- name: feeds
CREATE TABLE [dbo].[rowfeed_feeds] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  mode nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  capture nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  state nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  generation bigint NOT NULL,
  source_schema nvarchar(150) COLLATE Latin1_General_100_BIN2 NULL,
  source_table nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  key_columns nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  delivered_columns nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  options nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  data_shards int NOT NULL,
  shard_column nvarchar(150) COLLATE Latin1_General_100_BIN2 NULL,
  tombstones_seconds bigint NOT NULL,
  tombstones_below bigint NOT NULL,
  database_identity nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  fill_after nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  created_at bigint NOT NULL,
  failure nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  failing_since bigint NULL,
  attempts bigint NULL,
  next_try bigint NULL
)

-- name: terms
CREATE TABLE [dbo].[rowfeed_terms] (
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  term bigint NOT NULL,
  upto bigint NOT NULL,
  ended_at bigint NOT NULL,
  PRIMARY KEY (feed, term)
)

-- name: cursors
CREATE TABLE [dbo].[rowfeed_cursors] (
  consumer nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  shard bigint NOT NULL,
  shard_count int NOT NULL,
  value nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  generation bigint NOT NULL,
  epoch bigint NOT NULL,
  version bigint NOT NULL,
  paused smallint NOT NULL,
  aside bigint NOT NULL DEFAULT 0,
  updated_at bigint NOT NULL,
  failure nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  failing_since bigint NULL,
  attempts bigint NULL,
  next_try bigint NULL,
  target nvarchar(max) COLLATE Latin1_General_100_BIN2 NULL,
  PRIMARY KEY (consumer, feed, shard) WITH (ALLOW_PAGE_LOCKS = OFF)
)

-- name: dead_letters
CREATE TABLE [dbo].[rowfeed_dead_letters] (
  consumer nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  shard bigint NOT NULL,
  key_digest nchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
  key_json nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  generation bigint NOT NULL,
  position nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
  op nvarchar(10) COLLATE Latin1_General_100_BIN2 NOT NULL,
  state nvarchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
  attempts bigint NOT NULL,
  collapsed bigint NOT NULL,
  error nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  data_shard bigint NULL,
  PRIMARY KEY (consumer, feed, shard, key_digest)
)

-- name: dead_letters_first
CREATE INDEX [rowfeed_dead_letters_first] ON [dbo].[rowfeed_dead_letters]
  (consumer, feed, shard, first_at, key_digest)

-- name: processed
CREATE TABLE [dbo].[rowfeed_processed] (
  consumer nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  generation bigint NOT NULL,
  shard bigint NOT NULL,
  position nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
  processed_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
)

-- name: leases
CREATE TABLE [dbo].[rowfeed_leases] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  owner nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  epoch bigint NOT NULL,
  expires_at bigint NULL,
  acquired_at bigint NOT NULL,
  renewals bigint NOT NULL
)

-- name: shards
CREATE TABLE [dbo].[rowfeed_shards] (
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  shard bigint NOT NULL,
  time_ms bigint NOT NULL,
  ulid_high bigint NOT NULL,
  ulid_low bigint NOT NULL,
  below_high bigint NOT NULL DEFAULT 0,
  below_low bigint NOT NULL DEFAULT 0,
  witness nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
  live_from bigint NOT NULL DEFAULT 0,
  filled_by bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard) WITH (ALLOW_PAGE_LOCKS = OFF)
)

-- name: consumers
CREATE TABLE [dbo].[rowfeed_consumers] (
  consumer nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  shard_count int NOT NULL,
  paused smallint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (consumer, feed)
)

-- name: tokens
CREATE TABLE [dbo].[rowfeed_tokens] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY,
  sha256 nchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL UNIQUE,
  grants nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  [view] nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NULL,
  revoked_at bigint NULL
)

-- name: audit
CREATE TABLE [dbo].[rowfeed_audit] (
  id bigint IDENTITY PRIMARY KEY,
  mark nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  at bigint NOT NULL,
  actor nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  act nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  object nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  detail nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  outcome nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL
)

-- name: turn
CREATE PROCEDURE [dbo].[rowfeed_turn] @name nvarchar(32), @wait int
WITH EXECUTE AS OWNER AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @got int, @most int = COALESCE(@wait, @@LOCK_TIMEOUT);
  IF @@TRANCOUNT = 0
    THROW 77100, N'rowfeed: no transaction is open: begin one, lock, insert, commit', 1;
  EXEC @got = sys.sp_getapplock @Resource = @name, @LockMode = N'Exclusive', @LockOwner = N'Transaction',
    @LockTimeout = @most, @DbPrincipal = N'dbo';
  IF @got = -1
    THROW 77101, N'rowfeed: another transaction has the lock', 1;
  IF @got = -3
    THROW 77105, N'rowfeed: this transaction and another one wait for each other', 1;
  IF @got < 0
    THROW 77106, N'rowfeed: the lock was refused: dbo must own the schema of rowfeed''s tables', 1;
END

-- name: drop_turn
DROP PROCEDURE IF EXISTS [dbo].[rowfeed_turn]

-- name: bound_schema_changes
SET XACT_ABORT ON; SET LOCK_TIMEOUT 1000; SET ANSI_NULLS, QUOTED_IDENTIFIER ON

-- name: lock_schema
DECLARE @got int;
EXEC @got = sys.sp_getapplock @Resource = :lock, @LockMode = N'Exclusive', @LockOwner = N'Transaction',
  @LockTimeout = 10000, @DbPrincipal = N'public';
IF @got < 0
  THROW 77101, N'rowfeed: another session is changing rowfeed''s tables', 1

-- name: row_versions
SELECT CONVERT(int, d.is_read_committed_snapshot_on), CONVERT(int, d.snapshot_isolation_state), d.name
FROM sys.databases AS d WHERE d.database_id = DB_ID()

-- name: version
IF OBJECT_ID(N'[dbo].[rowfeed_schema_version]') IS NULL
  SELECT 0
ELSE
  SELECT MAX(version) FROM [dbo].[rowfeed_schema_version]

-- name: current_schema
SELECT COALESCE(SCHEMA_NAME(), N'dbo')

-- name: other_schemas
SELECT TOP (5) s.name FROM sys.schemas AS s WHERE s.name <> :own
  AND 2 = (SELECT COUNT(*) FROM sys.tables AS t WHERE t.schema_id = s.schema_id AND t.name IN (:feeds, :version))
ORDER BY s.name

