-- rowfeed's own tables, in the order in which they are made. Names, digests and positions are compared by their code
-- points, whatever the database's collation: parameters are nvarchar, so no column is converted. Times are
-- microseconds since the Unix epoch. All of it is made in one transaction.

-- name: name
nvarchar(150) COLLATE Latin1_General_100_BIN2

-- name: text
nvarchar(max) COLLATE Latin1_General_100_BIN2

-- name: schema_version
CREATE TABLE {{table "schema_version"}} (
  version int NOT NULL PRIMARY KEY,
  applied_at bigint NOT NULL
)

-- name: sequences
-- The row of a feed is what publishers lock. Its term is that of the present publisher, or NULL if that is another
-- program.
CREATE TABLE {{table "sequences"}} (
  name {{template "name"}} NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  value bigint NOT NULL,
  version bigint NOT NULL,
  updated_at bigint NOT NULL,
  term bigint NULL
)

-- name: feeds
-- failure, failing_since, attempts and next_try are those of the feed's publisher. source_schema is empty if the table
-- is in the schema of rowfeed's own tables.
CREATE TABLE {{table "feeds"}} (
  name {{template "name"}} NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  mode {{template "name"}} NOT NULL,
  capture {{template "name"}} NOT NULL,
  state {{template "name"}} NOT NULL,
  generation bigint NOT NULL,
  source_schema {{template "name"}} NULL,
  source_table {{template "name"}} NOT NULL,
  key_columns {{template "text"}} NOT NULL,
  delivered_columns {{template "text"}} NULL,
  options {{template "text"}} NOT NULL,
  data_shards int NOT NULL,
  shard_column {{template "name"}} NULL,
  tombstones_seconds bigint NOT NULL,
  tombstones_below bigint NOT NULL,
  database_identity {{template "text"}} NULL,
  fill_after {{template "text"}} NULL,
  created_at bigint NOT NULL,
  failure {{template "text"}} NULL,
  failing_since bigint NULL,
  attempts bigint NULL,
  next_try bigint NULL
)

-- name: terms
-- Up to which position each term before the present one went, and when it ended: see package history.
CREATE TABLE {{table "terms"}} (
  feed {{template "name"}} NOT NULL,
  term bigint NOT NULL,
  upto bigint NOT NULL,
  ended_at bigint NOT NULL,
  PRIMARY KEY (feed, term)
)

-- name: cursors
-- aside counts the dead letters of a shard, so that no query looks for them while there are none. failure says why the
-- shard rests.
CREATE TABLE {{table "cursors"}} (
  consumer {{template "name"}} NOT NULL,
  feed {{template "name"}} NOT NULL,
  shard bigint NOT NULL,
  shard_count int NOT NULL,
  value {{template "text"}} NOT NULL,
  generation bigint NOT NULL,
  epoch bigint NOT NULL,
  version bigint NOT NULL,
  paused smallint NOT NULL,
  aside bigint NOT NULL DEFAULT 0,
  updated_at bigint NOT NULL,
  failure {{template "text"}} NULL,
  failing_since bigint NULL,
  attempts bigint NULL,
  next_try bigint NULL,
  target {{template "text"}} NULL,
  PRIMARY KEY (consumer, feed, shard) WITH (ALLOW_PAGE_LOCKS = OFF)
)

-- name: dead_letters
-- data_shard is that of the key, which the dead letter follows to another shard of the consumer. A key's text can be
-- longer than an index accepts, so the primary key contains its digest.
CREATE TABLE {{table "dead_letters"}} (
  consumer {{template "name"}} NOT NULL,
  feed {{template "name"}} NOT NULL,
  shard bigint NOT NULL,
  key_digest nchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
  key_json {{template "text"}} NOT NULL,
  generation bigint NOT NULL,
  position nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
  op nvarchar(10) COLLATE Latin1_General_100_BIN2 NOT NULL,
  state nvarchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
  attempts bigint NOT NULL,
  collapsed bigint NOT NULL,
  error {{template "text"}} NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  data_shard bigint NULL,
  PRIMARY KEY (consumer, feed, shard, key_digest)
)

-- name: dead_letters_first
-- Dead letters are read in pages, the oldest first.
CREATE INDEX {{own_index "dead_letters_first"}} ON {{table "dead_letters"}}
  (consumer, feed, shard, first_at, key_digest)

-- name: processed
CREATE TABLE {{table "processed"}} (
  consumer {{template "name"}} NOT NULL,
  feed {{template "name"}} NOT NULL,
  generation bigint NOT NULL,
  shard bigint NOT NULL,
  position nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
  processed_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
)

-- name: leases
-- expires_at is NULL while a lease is free.
CREATE TABLE {{table "leases"}} (
  name {{template "name"}} NOT NULL PRIMARY KEY WITH (ALLOW_PAGE_LOCKS = OFF),
  owner {{template "name"}} NOT NULL,
  epoch bigint NOT NULL,
  expires_at bigint NULL,
  acquired_at bigint NOT NULL,
  renewals bigint NOT NULL
)

-- name: shards
-- The state of each shard with ULIDs, the position up to which its entries were purged (below_high, below_low), and
-- the state of back-fill. live_from is the time, in milliseconds, at which the live part of the shard begins;
-- back-fill places rows below it. It is 0 until the live part begins. filled_by is the run of back-fill that came to
-- the shard first.
CREATE TABLE {{table "shards"}} (
  feed {{template "name"}} NOT NULL,
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
-- What a consumer's shards of a feed with ULIDs have in common.
CREATE TABLE {{table "consumers"}} (
  consumer {{template "name"}} NOT NULL,
  feed {{template "name"}} NOT NULL,
  shard_count int NOT NULL,
  paused smallint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (consumer, feed)
)

-- name: tokens
-- Of an access token only the SHA-256 of its text is kept. expires_at and revoked_at are NULL if they never happen.
CREATE TABLE {{table "tokens"}} (
  name {{template "name"}} NOT NULL PRIMARY KEY,
  sha256 nchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL UNIQUE,
  grants {{template "text"}} NOT NULL,
  {{quote "view"}} {{template "text"}} NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NULL,
  revoked_at bigint NULL
)

-- name: audit
-- A row for each action of an operator. mark identifies the row, so that the outcome can be added when the action has
-- ended. No trigger writes here, so an IDENTITY changes no writer's @@IDENTITY.
CREATE TABLE {{table "audit"}} (
  id bigint IDENTITY PRIMARY KEY,
  mark {{template "name"}} NOT NULL,
  at bigint NOT NULL,
  actor {{template "text"}} NOT NULL,
  act {{template "text"}} NOT NULL,
  object {{template "text"}} NOT NULL,
  detail {{template "text"}} NOT NULL,
  outcome {{template "text"}} NOT NULL
)

-- name: turn
-- Acquires a lock by its name until the transaction ends: a feed's turn, or a shard.
--
-- Such a lock has a timeout of its own, exists for shards that have no row yet, is listed with the first 32 characters
-- of its name, and stays if the transaction rolls back to a savepoint. It answers with a code, which dooms no
-- transaction. It answers nothing if it fails itself, and the procedure would continue without the lock: hence
-- COALESCE. The lock belongs to dbo, so that only this procedure, which runs with the rights of its owner, can get
-- it: with a lock of public, any user could stop the feed. @wait is in milliseconds; NULL means the session's own
-- bound.
CREATE PROCEDURE {{table "turn"}} @name nvarchar(32), @wait int
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

-- name: drop_turn
DROP PROCEDURE IF EXISTS {{table "turn"}}

-- name: bound_schema_changes
-- Sent without parameters: a SET inside of sp_executesql ends with it. A wait for a table that must be changed is
-- bounded, because all later statements on the table wait behind it.
SET XACT_ABORT ON; SET LOCK_TIMEOUT 1000; SET ANSI_NULLS, QUOTED_IDENTIFIER ON

-- name: lock_schema
-- Changes of rowfeed's schema run one after the other.
DECLARE @got int;
EXEC @got = sys.sp_getapplock @Resource = :lock, @LockMode = N'Exclusive', @LockOwner = N'Transaction',
  @LockTimeout = 10000, @DbPrincipal = N'public';
IF COALESCE(@got, -999) < 0
  THROW 77101, N'rowfeed: another session is changing rowfeed''s tables', 1

-- name: requirements
-- What rowfeed needs of the server and the database.
--
-- Without READ_COMMITTED_SNAPSHOT, a reader of changes waits for the first open writer, or passes it and publishes a
-- later change first; a look at the source waits for a stuck writer, or takes an uncommitted DELETE for one. `check`
-- reads everything in one snapshot. OPENJSON needs level 130. With delayed durability forced, a power failure undoes
-- positions that readers have seen. The services of Azure (editions above 4) have versions of their own. There DB_ID()
-- can differ from the number in this view, so the database is found by its name.
SELECT d.name, CONVERT(int, d.is_read_committed_snapshot_on), CONVERT(int, d.snapshot_isolation_state),
  CONVERT(int, d.compatibility_level), d.delayed_durability_desc, CONVERT(int, SERVERPROPERTY(N'EngineEdition')),
  CONVERT(int, PARSENAME(CONVERT(nvarchar(128), SERVERPROPERTY(N'ProductVersion')), 4))
FROM sys.databases AS d WHERE d.name = DB_NAME()

-- name: version
-- A table that is missing is an error only if its statement runs.
IF OBJECT_ID({{literal (table "schema_version")}}) IS NULL
  SELECT 0
ELSE
  SELECT MAX(version) FROM {{table "schema_version"}}

-- name: current_schema
-- The schema in which a name without one is found, and made.
SELECT COALESCE(SCHEMA_NAME(), N'dbo')

-- name: other_schemas
-- Two of rowfeed's tables in a schema, so that a user's table is not mistaken for one of them.
SELECT TOP (5) s.name FROM sys.schemas AS s WHERE s.name <> :own
  AND 2 = (SELECT COUNT(*) FROM sys.tables AS t WHERE t.schema_id = s.schema_id AND t.name IN (:feeds, :version))
ORDER BY s.name
