-- name: audit
CREATE TABLE [rowfeed_audit] (
  id bigint IDENTITY PRIMARY KEY,
  mark nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  at bigint NOT NULL,
  actor nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  act nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  object nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  detail nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  outcome nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL
)

-- name: bound_schema_changes
SET XACT_ABORT ON; SET LOCK_TIMEOUT 1000; SET ANSI_NULLS, QUOTED_IDENTIFIER ON

-- name: consumers
CREATE TABLE [rowfeed_consumers] (
  consumer nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  shard_count int NOT NULL,
  paused smallint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (consumer, feed)
)

-- name: current_schema
SELECT COALESCE(SCHEMA_NAME(), N'dbo')

-- name: cursors
CREATE TABLE [rowfeed_cursors] (
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
CREATE TABLE [rowfeed_dead_letters] (
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
CREATE INDEX [rowfeed_dead_letters_first] ON [rowfeed_dead_letters]
  (consumer, feed, shard, first_at, key_digest)

-- name: drop_turn
DROP PROCEDURE IF EXISTS [rowfeed_turn]

-- name: feeds
CREATE TABLE [rowfeed_feeds] (
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

-- name: leases
CREATE TABLE [rowfeed_leases] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  owner nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  epoch bigint NOT NULL,
  expires_at bigint NULL,
  acquired_at bigint NOT NULL,
  renewals bigint NOT NULL
)

-- name: lock_schema
DECLARE @got int;
EXEC @got = sys.sp_getapplock @Resource = :lock, @LockMode = N'Exclusive', @LockOwner = N'Transaction',
  @LockTimeout = 10000, @DbPrincipal = N'public';
IF COALESCE(@got, -999) < 0
  THROW 77101, N'rowfeed: another session is changing rowfeed''s tables', 1

-- name: name
nvarchar(150) COLLATE Latin1_General_100_BIN2

-- name: other_schemas
SELECT TOP (5) s.name FROM sys.schemas AS s WHERE s.name <> :own
  AND 2 = (SELECT COUNT(*) FROM sys.tables AS t WHERE t.schema_id = s.schema_id AND t.name IN (:feeds, :version))
ORDER BY s.name

-- name: processed
CREATE TABLE [rowfeed_processed] (
  consumer nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  generation bigint NOT NULL,
  shard bigint NOT NULL,
  position nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
  processed_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
)

-- name: requirements
SELECT d.name, CONVERT(int, d.is_read_committed_snapshot_on), CONVERT(int, d.snapshot_isolation_state),
  CONVERT(int, d.compatibility_level), d.delayed_durability_desc, CONVERT(int, SERVERPROPERTY(N'EngineEdition')),
  CONVERT(int, PARSENAME(CONVERT(nvarchar(128), SERVERPROPERTY(N'ProductVersion')), 4))
FROM sys.databases AS d WHERE d.name = DB_NAME()

-- name: schema_version
CREATE TABLE [rowfeed_schema_version] (
  version int NOT NULL PRIMARY KEY,
  applied_at bigint NOT NULL
)

-- name: sequences
CREATE TABLE [rowfeed_sequences] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  value bigint NOT NULL,
  version bigint NOT NULL,
  updated_at bigint NOT NULL,
  term bigint NULL
)

-- name: shards
CREATE TABLE [rowfeed_shards] (
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

-- name: terms
CREATE TABLE [rowfeed_terms] (
  feed nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL,
  term bigint NOT NULL,
  upto bigint NOT NULL,
  ended_at bigint NOT NULL,
  PRIMARY KEY (feed, term)
)

-- name: text
nvarchar(max) COLLATE Latin1_General_100_BIN2

-- name: tokens
CREATE TABLE [rowfeed_tokens] (
  name nvarchar(150) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY,
  sha256 nchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL UNIQUE,
  grants nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  [view] nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NULL,
  revoked_at bigint NULL
)

-- name: turn
CREATE PROCEDURE [rowfeed_turn] @name nvarchar(32), @wait int
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
  IF COALESCE(@got, -999) < 0
    THROW 77106, N'rowfeed: the lock was refused: dbo must own the schema of rowfeed''s tables', 1;
END

-- name: version
IF OBJECT_ID(N'[rowfeed_schema_version]') IS NULL
  SELECT 0
ELSE
  SELECT MAX(version) FROM [rowfeed_schema_version]

