-- migrate
BEGIN IMMEDIATE
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?
SELECT type, name, COALESCE(sql, '') FROM sqlite_schema WHERE lower(name) = lower(?) AND type IN ('table', 'view')
CREATE TABLE "rowfeed_schema_version" ( version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL )
CREATE TABLE "rowfeed_sequences" ( name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL, version INTEGER NOT NULL, updated_at INTEGER NOT NULL, term INTEGER )
CREATE TABLE "rowfeed_feeds" ( name TEXT NOT NULL PRIMARY KEY, mode TEXT NOT NULL, capture TEXT NOT NULL, state TEXT NOT NULL, generation INTEGER NOT NULL, source_schema TEXT, source_table TEXT NOT NULL, key_columns TEXT NOT NULL, delivered_columns TEXT, options TEXT NOT NULL, data_shards INTEGER NOT NULL, shard_column TEXT, tombstones_seconds INTEGER NOT NULL, tombstones_below INTEGER NOT NULL, database_identity TEXT, fill_after TEXT, created_at INTEGER NOT NULL, failure TEXT, failing_since INTEGER, attempts INTEGER, next_try INTEGER )
CREATE TABLE "rowfeed_terms" ( feed TEXT NOT NULL, term INTEGER NOT NULL, upto INTEGER NOT NULL, ended_at INTEGER NOT NULL, PRIMARY KEY (feed, term) )
CREATE TABLE "rowfeed_cursors" ( consumer TEXT NOT NULL, feed TEXT NOT NULL, shard INTEGER NOT NULL, shard_count INTEGER NOT NULL, value TEXT NOT NULL, generation INTEGER NOT NULL, epoch INTEGER NOT NULL, version INTEGER NOT NULL, paused INTEGER NOT NULL, aside INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL, failure TEXT, failing_since INTEGER, attempts INTEGER, next_try INTEGER, target TEXT, PRIMARY KEY (consumer, feed, shard) )
CREATE TABLE "rowfeed_dead_letters" ( consumer TEXT NOT NULL, feed TEXT NOT NULL, shard INTEGER NOT NULL, key_digest TEXT NOT NULL, key_json TEXT NOT NULL, generation INTEGER NOT NULL, position TEXT NOT NULL, op TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, collapsed INTEGER NOT NULL, error TEXT NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL, data_shard INTEGER, PRIMARY KEY (consumer, feed, shard, key_digest) )
CREATE INDEX "rowfeed_dead_letters_first" ON "rowfeed_dead_letters" (consumer, feed, shard, first_at, key_digest)
CREATE TABLE "rowfeed_processed" ( consumer TEXT NOT NULL, feed TEXT NOT NULL, generation INTEGER NOT NULL, shard INTEGER NOT NULL, position TEXT NOT NULL, processed_at INTEGER NOT NULL, PRIMARY KEY (consumer, feed, generation, shard, position) ) WITHOUT ROWID
CREATE TABLE "rowfeed_leases" ( name TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, epoch INTEGER NOT NULL, expires_at INTEGER, acquired_at INTEGER NOT NULL, renewals INTEGER NOT NULL )
CREATE TABLE "rowfeed_shards" ( feed TEXT NOT NULL, shard INTEGER NOT NULL, time_ms INTEGER NOT NULL, ulid_high INTEGER NOT NULL, ulid_low INTEGER NOT NULL, below_high INTEGER NOT NULL DEFAULT 0, below_low INTEGER NOT NULL DEFAULT 0, witness TEXT NOT NULL, live_from INTEGER NOT NULL DEFAULT 0, filled_by INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (feed, shard) )
CREATE TABLE "rowfeed_consumers" ( consumer TEXT NOT NULL, feed TEXT NOT NULL, shard_count INTEGER NOT NULL, paused INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (consumer, feed) )
CREATE TABLE "rowfeed_tokens" ( name TEXT NOT NULL PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, grants TEXT NOT NULL, view TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER, revoked_at INTEGER )
CREATE TABLE "rowfeed_audit" ( id INTEGER PRIMARY KEY, mark TEXT NOT NULL, at INTEGER NOT NULL, actor TEXT NOT NULL, act TEXT NOT NULL, object TEXT NOT NULL, detail TEXT NOT NULL, outcome TEXT NOT NULL )
INSERT INTO "rowfeed_schema_version" (version, applied_at) VALUES (11, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
COMMIT

-- migrate again, and list the migrations
SELECT max(version) FROM "rowfeed_schema_version"

-- acquire, renew, assert and release a lease
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE name = ?
BEGIN -- isolation: Default
UPDATE "rowfeed_sequences" SET version = version WHERE 0
INSERT INTO "rowfeed_leases" (name, owner, epoch, expires_at, acquired_at, renewals) VALUES (?, ?, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, 0)
UPDATE "rowfeed_leases" SET expires_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ?, renewals = renewals + NUMBER WHERE expires_at > CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AND name IN (?) AND (name = ? AND owner = ? AND epoch = ?)
UPDATE "rowfeed_leases" SET renewals = renewals + NUMBER WHERE name = ? AND owner = ? AND epoch = ? AND expires_at > CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
UPDATE "rowfeed_leases" SET owner = '', expires_at = NULL, renewals = renewals + NUMBER WHERE name = ? AND owner = ? AND epoch = ?

-- list the leases, and take one from its holder
UPDATE "rowfeed_leases" SET owner = ?, epoch = ?, expires_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ?, acquired_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, renewals = 0 WHERE name = ? AND epoch = ? AND (expires_at IS NULL OR expires_at <= CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" ORDER BY name

-- share the jobs of a group
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE name >= ? AND name < ?

-- make, look up, list and revoke a token
INSERT INTO "rowfeed_tokens" (name, sha256, grants, "view", created_at, expires_at) VALUES (?, ?, ?, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ?) ON CONFLICT (name) DO NOTHING
SELECT name, sha256, grants, "view", created_at, expires_at, revoked_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_tokens" WHERE sha256 = ?
SELECT name, sha256, grants, "view", created_at, expires_at, revoked_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_tokens" WHERE sha256 IN (?)
SELECT name, sha256, grants, "view", created_at, expires_at, revoked_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_tokens" ORDER BY name
UPDATE "rowfeed_tokens" SET revoked_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE name = ? AND revoked_at IS NULL
SELECT count(*) FROM "rowfeed_tokens" WHERE name = ?

-- audit an act, list and purge the log
INSERT INTO "rowfeed_audit" (mark, at, actor, act, object, detail, outcome) VALUES (?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, ?, ?, ?, ?, ?)
SELECT id FROM "rowfeed_audit" WHERE mark = ? ORDER BY id DESC LIMIT 1
UPDATE "rowfeed_audit" SET outcome = ? WHERE id = ?
SELECT id, at, actor, act, object, detail, outcome FROM "rowfeed_audit" ORDER BY id DESC LIMIT ?
SELECT id, at, actor, act, object, detail, outcome FROM "rowfeed_audit" WHERE id < ? ORDER BY id DESC LIMIT ?
SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
SELECT id FROM "rowfeed_audit" WHERE id > ? ORDER BY id LIMIT ?
DELETE FROM "rowfeed_audit" WHERE id >= ? AND id <= ? AND at < ?

-- remove the tables
SELECT type, wr, strict FROM pragma_table_list(?) WHERE schema = 'main'
SELECT name, type, "notnull", pk, COALESCE(dflt_value, ''), hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid
SELECT name, origin, partial, COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'index' AND sqlite_schema.name = pragma_index_list.name), '') FROM pragma_index_list(?) WHERE "unique" = 1 ORDER BY origin <> 'pk', name
SELECT COALESCE(name, ''), COALESCE(coll, 'BINARY') FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno
SELECT name FROM pragma_index_list(?)
SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(?) ORDER BY name
SELECT name FROM "rowfeed_feeds" WHERE state <> ? ORDER BY name
DELETE FROM "rowfeed_schema_version"
DROP TABLE IF EXISTS "rowfeed_audit"
DROP TABLE IF EXISTS "rowfeed_tokens"
DROP TABLE IF EXISTS "rowfeed_consumers"
DROP TABLE IF EXISTS "rowfeed_shards"
DROP TABLE IF EXISTS "rowfeed_leases"
DROP TABLE IF EXISTS "rowfeed_processed"
DROP TABLE IF EXISTS "rowfeed_dead_letters"
DROP TABLE IF EXISTS "rowfeed_cursors"
DROP TABLE IF EXISTS "rowfeed_terms"
DROP TABLE IF EXISTS "rowfeed_feeds"
DROP TABLE IF EXISTS "rowfeed_sequences"
DROP TABLE IF EXISTS "rowfeed_schema_version"

