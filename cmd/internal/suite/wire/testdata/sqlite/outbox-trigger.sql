-- add the feed
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?
SELECT max(version) FROM "rowfeed_schema_version"
BEGIN IMMEDIATE
SELECT type, name, COALESCE(sql, '') FROM sqlite_schema WHERE lower(name) = lower(?) AND type IN ('table', 'view')
SELECT type, wr, strict FROM pragma_table_list(?) WHERE schema = 'main'
SELECT name, type, "notnull", pk, COALESCE(dflt_value, ''), hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid
SELECT name, origin, partial, COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'index' AND sqlite_schema.name = pragma_index_list.name), '') FROM pragma_index_list(?) WHERE "unique" = 1 ORDER BY origin <> 'pk', name
SELECT COALESCE(name, ''), COALESCE(coll, 'BINARY') FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno
SELECT name FROM pragma_index_list(?)
SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(?) ORDER BY name
SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column, failure, failing_since, attempts, next_try FROM "rowfeed_feeds" ORDER BY name
SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column, failure, failing_since, attempts, next_try FROM "rowfeed_feeds" WHERE name = ?
SELECT +t."id" FROM "kv" t WHERE typeof(t."v") <> 'integer' LIMIT 1
INSERT INTO "rowfeed_feeds" (name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
SELECT count(*) FROM "rowfeed_sequences" WHERE name = ?
INSERT INTO "rowfeed_sequences" (name, value, version, updated_at) VALUES (?, ?, 0, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
CREATE TABLE IF NOT EXISTS "rowfeed_outbox_kv" ( order_sequence INTEGER PRIMARY KEY AUTOINCREMENT, shard INTEGER NOT NULL DEFAULT 0 CHECK (typeof(shard) = 'integer'), time_hint INTEGER CHECK (typeof(time_hint) IN ('integer', 'null')), appended_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000), "id" BIGINT NOT NULL COLLATE "BINARY" )
CREATE INDEX IF NOT EXISTS "rowfeed_kv_outbox" ON "rowfeed_outbox_kv" (shard, order_sequence)
CREATE TABLE IF NOT EXISTS "rowfeed_feed_kv" ( shard INTEGER NOT NULL, ulid BLOB NOT NULL, "id" BIGINT NOT NULL COLLATE "BINARY", PRIMARY KEY (shard, ulid), UNIQUE ("id") ) WITHOUT ROWID
DROP TRIGGER IF EXISTS "rowfeed_kv_insert"
CREATE TRIGGER "rowfeed_kv_insert" AFTER INSERT ON "kv" BEGIN INSERT INTO "rowfeed_outbox_kv" (shard, "id") VALUES (CASE typeof(NEW."v") WHEN 'integer' THEN NEW."v" ELSE RAISE(ABORT, 'rowfeed: column "v" of table "kv", a row''s shard in feed "kv", holds no integer') END, NEW."id"); END
DROP TRIGGER IF EXISTS "rowfeed_kv_update"
CREATE TRIGGER "rowfeed_kv_update" AFTER UPDATE ON "kv" WHEN OLD."id" COLLATE "BINARY" IS NOT NEW."id" BEGIN INSERT INTO "rowfeed_outbox_kv" (shard, "id") VALUES (CASE typeof(NEW."v") WHEN 'integer' THEN NEW."v" ELSE RAISE(ABORT, 'rowfeed: column "v" of table "kv", a row''s shard in feed "kv", holds no integer') END, NEW."id"); END
UPDATE "rowfeed_feeds" SET state = ?, fill_after = NULL WHERE name = ?
COMMIT
SELECT shard FROM "rowfeed_outbox_kv" ORDER BY shard LIMIT 1
BEGIN -- isolation: Default
UPDATE "rowfeed_sequences" SET version = version WHERE 0
SELECT +t."id" FROM "kv" t WHERE 1 = 1 ORDER BY t."id" COLLATE "BINARY" LIMIT 1 OFFSET ?
SELECT +t."id" FROM "kv" t LEFT JOIN "rowfeed_feed_kv" g ON g."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_outbox_kv") c ON c."id" = t."id" WHERE 1 = 1 AND typeof(t."v") <> 'integer' AND g."id" IS NULL AND c."id" IS NULL LIMIT 1
SELECT x.shard FROM (SELECT DISTINCT t."v" AS shard FROM "kv" t LEFT JOIN "rowfeed_feed_kv" g ON g."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_outbox_kv") c ON c."id" = t."id" WHERE 1 = 1 AND g."id" IS NULL AND c."id" IS NULL) x LEFT JOIN "rowfeed_shards" s ON s.feed = ? AND s.shard = x.shard WHERE COALESCE(s.filled_by, 0) = 0 ORDER BY x.shard
BEGIN
INSERT INTO "rowfeed_shards" (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (?, ?, 0, 0, 0, '') ON CONFLICT (feed, shard) DO NOTHING
SELECT time_ms, ulid_high, ulid_low, witness, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_shards" WHERE feed = ? AND shard = ?
SELECT created_at FROM "rowfeed_feeds" WHERE name = ?
UPDATE "rowfeed_shards" SET time_ms = ?, ulid_high = ?, ulid_low = ?, witness = ? WHERE feed = ? AND shard = ?
UPDATE "rowfeed_shards" SET live_from = ? WHERE feed = ? AND shard = ?
UPDATE "rowfeed_shards" SET filled_by = ? WHERE feed = ? AND shard = ? AND filled_by = 0
UPDATE "rowfeed_feeds" SET state = ?, fill_after = NULL WHERE name = ? AND generation = ? AND data_shards = ? AND state = ? AND fill_after IS NULL
INSERT INTO "rowfeed_feed_kv" (shard, ulid, "id") SELECT x.shard, unhex(printf('%016x%016x', (x.live - 1) * 65536 + ?, ? + x.n)), x.k0 FROM (SELECT t."v" AS shard, s.live_from AS live, s.filled_by AS first_run, t."id" AS k0, row_number() OVER (ORDER BY t."id" COLLATE "BINARY") AS n FROM "kv" t JOIN "rowfeed_shards" s ON s.feed = ? AND s.shard = t."v" AND s.live_from > 0 AND s.filled_by > 0 LEFT JOIN "rowfeed_feed_kv" g ON g."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_outbox_kv") c ON c."id" = t."id" WHERE 1 = 1 AND g."id" IS NULL AND c."id" IS NULL) x WHERE true ON CONFLICT ("id") DO NOTHING

-- add it again, list the feeds, describe it
SELECT shard FROM "rowfeed_shards" WHERE feed = ? ORDER BY shard LIMIT ?
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), (SELECT +g."ulid" FROM "rowfeed_feed_kv" g WHERE g."shard" = ? ORDER BY g."ulid" DESC LIMIT 1), COALESCE((SELECT 1 FROM "rowfeed_outbox_kv" WHERE shard BETWEEN ? AND ? ORDER BY shard, order_sequence LIMIT 1), 0), CASE WHEN f.state IN ('creating', 'filling') THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'kv'), ''), p.place, p.present, p.v0, p.v1, p.v2, p.v3 FROM "rowfeed_feeds" f JOIN "rowfeed_sequences" s ON s.name = f.name LEFT JOIN "rowfeed_shards" h ON h.feed = f.name AND h.shard = ? LEFT JOIN (SELECT g."ulid" AS ordered, +g."ulid" AS place, CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END AS present, +g."id" AS v0, +t."id" AS v1, +t."k" AS v2, +t."v" AS v3 FROM "rowfeed_feed_kv" g LEFT JOIN "kv" t ON g."id" = t."id" WHERE g."shard" = ? AND g."ulid" > ? ORDER BY g."ulid" LIMIT ?) p ON 1 = 1 WHERE f.name = ? ORDER BY p.ordered LIMIT ?

-- write

-- publish first
BEGIN -- isolation: Default, read only
SELECT shard FROM "rowfeed_outbox_kv" WHERE shard > 1 ORDER BY shard LIMIT 1
PRAGMA synchronous
SELECT order_sequence, time_hint FROM "rowfeed_outbox_kv" WHERE shard BETWEEN ? AND ? ORDER BY shard, order_sequence LIMIT ?
INSERT INTO "rowfeed_feed_kv" (shard, ulid, "id") SELECT o.shard, unhex(j.ulid), o."id" FROM (SELECT value ->> 0 AS seq, value ->> 1 AS ulid FROM json_each(?)) j CROSS JOIN "rowfeed_outbox_kv" o ON o.order_sequence = j.seq WHERE o.shard = ? ON CONFLICT ("id") DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > ulid
DELETE FROM "rowfeed_outbox_kv" WHERE order_sequence IN (1,2,3,4,5,6)
UPDATE "rowfeed_feeds" SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL WHERE name = ? AND failure IS NOT NULL

-- publish without changes

-- publish again
DELETE FROM "rowfeed_outbox_kv" WHERE order_sequence IN (7)

-- run a publisher
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE name = ?
INSERT INTO "rowfeed_leases" (name, owner, epoch, expires_at, acquired_at, renewals) VALUES (?, ?, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, 0)
SELECT name, COALESCE(sql, '') FROM sqlite_schema WHERE type IN ('table', 'trigger')
SELECT 'kv', -1, 0, NULL, 0, 0 FROM (SELECT shard FROM "rowfeed_outbox_kv" ORDER BY shard LIMIT 1) w
UPDATE "rowfeed_leases" SET owner = '', expires_at = NULL, renewals = renewals + NUMBER WHERE name = ? AND owner = ? AND epoch = ?

-- read pages of the part: shard 1

-- wait for an entry of the part: shard 1
SELECT shard FROM (SELECT shard FROM "rowfeed_outbox_kv" WHERE shard BETWEEN 1 AND 1 ORDER BY shard, order_sequence LIMIT 1) s0
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0) FROM "rowfeed_sequences" s JOIN "rowfeed_feeds" f ON f.name = s.name UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0 FROM "rowfeed_shards" h JOIN "rowfeed_feeds" f ON f.name = h.feed WHERE h.feed = ? AND h.shard IN (?)

-- read a consistent page of the part: shard 1
SELECT order_sequence FROM "rowfeed_outbox_kv" WHERE shard BETWEEN ? AND ? ORDER BY shard DESC, order_sequence DESC LIMIT 1

-- tell how far the shards are
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0) FROM "rowfeed_sequences" s JOIN "rowfeed_feeds" f ON f.name = s.name UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0 FROM "rowfeed_shards" h JOIN "rowfeed_feeds" f ON f.name = h.feed WHERE h.feed = ?

-- consume, set an entry aside, list it and try it again
DELETE FROM "rowfeed_dead_letters" WHERE consumer = ? AND feed = ? AND shard = ? AND key_digest = ? AND generation = ? AND position = ? AND state = ?
INSERT INTO "rowfeed_consumers" (consumer, feed, shard_count, paused, version) VALUES (?, ?, ?, 0, 0) ON CONFLICT (consumer, feed) DO NOTHING
INSERT INTO "rowfeed_cursors" (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, 0, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
INSERT INTO "rowfeed_dead_letters" (consumer, feed, shard, key_digest, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, data_shard) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, ?) ON CONFLICT (consumer, feed, shard, key_digest) DO NOTHING
RELEASE SAVEPOINT rowfeed
SAVEPOINT rowfeed
SELECT 1 AS shard, g0.* FROM (SELECT +g."ulid" FROM "rowfeed_feed_kv" g WHERE g."shard" = ? ORDER BY g."ulid" DESC LIMIT 1) g0
SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
SELECT DISTINCT shard FROM "rowfeed_dead_letters" WHERE consumer = ? AND feed = ? AND state = ?
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, key_digest FROM "rowfeed_dead_letters" WHERE 1 = 1 AND consumer = ? AND feed = ? AND key_digest IN (?) ORDER BY consumer, feed, shard, first_at, key_digest LIMIT ?
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, key_digest FROM "rowfeed_dead_letters" WHERE 1 = 1 AND consumer = ? AND feed = ? ORDER BY consumer, feed, shard, first_at, key_digest LIMIT ?
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, key_digest FROM "rowfeed_dead_letters" WHERE 1 = 1 AND key_digest IN (?) AND consumer > ? ORDER BY consumer, feed, shard, first_at, key_digest LIMIT ?
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "rowfeed_cursors" WHERE 1 = 1 AND consumer = ? AND feed = ? ORDER BY consumer, feed, shard
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "rowfeed_cursors" WHERE consumer = ? AND feed = ? AND shard = ?
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "rowfeed_cursors" WHERE consumer = ? AND feed = ? ORDER BY shard
SELECT consumer, feed, shard_count, paused FROM "rowfeed_consumers" WHERE 1 = 1 AND consumer = ? AND feed = ?
SELECT key_digest, key_json, generation, position, op, data_shard FROM "rowfeed_dead_letters" WHERE consumer = ? AND feed = ? AND shard = ? AND state = ? ORDER BY first_at, key_digest LIMIT 1
SELECT key_digest, state FROM "rowfeed_dead_letters" WHERE consumer = ? AND feed = ? AND shard = ?
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE name >= ? AND name < ? OR name >= ? AND name < ?
SELECT shard_count, paused FROM "rowfeed_consumers" WHERE consumer = ? AND feed = ?
SELECT shard_count, version FROM "rowfeed_consumers" WHERE consumer = ? AND feed = ?
UPDATE "rowfeed_consumers" SET version = version + NUMBER WHERE 1 = 1 AND consumer = ? AND feed = ?
UPDATE "rowfeed_cursors" SET failure = ?, failing_since = COALESCE(failing_since, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000), attempts = ?, next_try = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ? WHERE consumer = ? AND feed = ? AND shard = ? AND shard_count = ? AND version = ?
UPDATE "rowfeed_cursors" SET value = ?, generation = ?, aside = ?, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE consumer = ? AND feed = ? AND shard = ? AND shard_count = ? AND version = ? AND value = ? AND generation = ? AND epoch = ? AND aside = ? AND paused = 0
UPDATE "rowfeed_dead_letters" SET op = ? WHERE consumer = ? AND feed = ? AND shard = ? AND generation < 0
UPDATE "rowfeed_dead_letters" SET state = ?, last_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE 1 = 1 AND consumer = ? AND feed = ? AND shard = ? AND key_digest IN (?) AND first_at >= ? AND first_at <= ?

-- drop dead letters
SELECT count(*) FROM "rowfeed_cursors" WHERE 1 = 1 AND consumer = ? AND feed = ?

-- pause, resume, seek and reset the consumer
UPDATE "rowfeed_consumers" SET paused = ?, version = version + NUMBER WHERE 1 = 1 AND consumer = ? AND feed = ?
UPDATE "rowfeed_cursors" SET paused = ?, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE 1 = 1 AND consumer = ? AND feed = ?
SELECT shard FROM "rowfeed_cursors" WHERE 1 = 1 AND consumer = ? AND feed = ? AND paused <> 0 ORDER BY shard
UPDATE "rowfeed_cursors" SET value = ?, generation = ?, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE 1 = 1 AND consumer = ? AND feed = ? AND shard = ?
UPDATE "rowfeed_dead_letters" SET generation = -ABS(generation), op = ? WHERE 1 = 1 AND consumer = ? AND feed = ?
UPDATE "rowfeed_cursors" SET version = version + NUMBER WHERE 1 = 1 AND consumer = ? AND feed = ? AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM "rowfeed_consumers" k WHERE k.consumer = "rowfeed_cursors".consumer AND k.feed = "rowfeed_cursors".feed)
SELECT feed, MAX(epoch) FROM "rowfeed_cursors" WHERE 1 = 1 AND consumer = ? AND feed = ? AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM "rowfeed_consumers" k WHERE k.consumer = "rowfeed_cursors".consumer AND k.feed = "rowfeed_cursors".feed) GROUP BY feed ORDER BY feed
UPDATE "rowfeed_cursors" SET value = ?, generation = ?, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE 1 = 1 AND consumer = ? AND feed = ?

-- consume with two shards
UPDATE "rowfeed_consumers" SET shard_count = ?, version = version + NUMBER WHERE 1 = 1 AND consumer = ? AND feed = ?
UPDATE "rowfeed_cursors" SET shard_count = ?, version = version + NUMBER WHERE 1 = 1 AND consumer = ? AND feed = ?

-- deliver outside of transactions, under an epoch
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE name >= ? AND name < ? OR name = ?
UPDATE "rowfeed_cursors" SET epoch = ?, version = version + 1, updated_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE consumer = ? AND feed = ? AND shard_count = ? AND epoch < ? AND shard IN (?)

-- note an entry as processed, and forget it
INSERT INTO "rowfeed_processed" (consumer, feed, generation, shard, position, processed_at) VALUES (?, ?, ?, ?, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) ON CONFLICT (consumer, feed, generation, shard, position) DO NOTHING
SELECT DISTINCT generation, shard FROM "rowfeed_processed" WHERE consumer = ? AND feed = ? AND generation <= ?
SELECT position FROM "rowfeed_processed" WHERE consumer = ? AND feed = ? AND generation = ? AND shard = ? AND position <= ? ORDER BY position LIMIT 1 OFFSET 1999
DELETE FROM "rowfeed_processed" WHERE consumer = ? AND feed = ? AND generation = ? AND shard = ? AND position <= ?

-- drop the consumer
DELETE FROM "rowfeed_consumers" WHERE 1 = 1 AND consumer = ? AND feed = ?
DELETE FROM "rowfeed_dead_letters" WHERE 1 = 1 AND consumer = ? AND feed = ?
DELETE FROM "rowfeed_processed" WHERE 1 = 1 AND consumer = ? AND feed = ?
UPDATE "rowfeed_cursors" SET version = version + NUMBER WHERE 1 = 1 AND consumer = ? AND feed = ?
SELECT consumer, feed, MAX(epoch) FROM "rowfeed_cursors" WHERE 1 = 1 AND consumer = ? AND feed = ? GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed
DELETE FROM "rowfeed_cursors" WHERE 1 = 1 AND consumer = ? AND feed = ?

-- fail once, and handle the entries at the second attempt
DELETE FROM "rowfeed_consumers" WHERE 1 = 1 AND consumer = ?
DELETE FROM "rowfeed_cursors" WHERE 1 = 1 AND consumer = ?
DELETE FROM "rowfeed_dead_letters" WHERE 1 = 1 AND consumer = ?
DELETE FROM "rowfeed_processed" WHERE 1 = 1 AND consumer = ?
SELECT consumer, feed, MAX(epoch) FROM "rowfeed_cursors" WHERE 1 = 1 AND consumer = ? GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed
UPDATE "rowfeed_consumers" SET version = version + NUMBER WHERE 1 = 1 AND consumer = ?
UPDATE "rowfeed_cursors" SET version = version + NUMBER WHERE 1 = 1 AND consumer = ?

-- status
SELECT s.shard, (SELECT +g."ulid" FROM "rowfeed_feed_kv" g WHERE g."shard" = s.shard ORDER BY g."ulid" DESC LIMIT 1) FROM "rowfeed_shards" s WHERE s.feed = ? ORDER BY s.shard LIMIT ?
SELECT (SELECT count(*) FROM (SELECT 1 FROM "rowfeed_outbox_kv" LIMIT ?) x), COALESCE((SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - appended_at FROM "rowfeed_outbox_kv" ORDER BY order_sequence LIMIT 1), 0)
SELECT file FROM pragma_database_list WHERE name = 'main'
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "rowfeed_cursors" WHERE 1 = 1 AND feed = ? ORDER BY consumer, feed, shard
SELECT consumer, feed, shard_count, paused FROM "rowfeed_consumers" WHERE 1 = 1 AND feed = ?

-- who has the shards

-- verify

-- purge entries, and back-fill rows
UPDATE "rowfeed_feeds" SET options = ? WHERE name = ?
SELECT s.shard, (SELECT +g."ulid" FROM "rowfeed_feed_kv" g WHERE g.shard = s.shard ORDER BY g.ulid DESC LIMIT 1 OFFSET ?) FROM "rowfeed_shards" s WHERE s.feed = ? ORDER BY s.shard
SELECT +g."ulid" FROM "rowfeed_feed_kv" g WHERE g.shard = ? AND g.ulid <= ? ORDER BY g.ulid LIMIT ?
SELECT below_high, below_low FROM "rowfeed_shards" WHERE feed = ? AND shard = ?
UPDATE "rowfeed_shards" SET below_high = ?, below_low = ? WHERE feed = ? AND shard = ?
DELETE FROM "rowfeed_feed_kv" AS g WHERE g.shard = ? AND g.ulid >= ? AND g.ulid <= ?
SELECT count(*) FROM "rowfeed_shards" WHERE feed = ? AND (below_high <> 0 OR below_low <> 0)
ROLLBACK

-- check
SELECT g."shard", +g."ulid" FROM "rowfeed_feed_kv" g ORDER BY g."shard" DESC, g."ulid" DESC LIMIT 1
SELECT g."shard", +g."ulid" FROM "rowfeed_feed_kv" g WHERE g."shard" < ? ORDER BY g."shard" DESC, g."ulid" DESC LIMIT 1

-- repair
DELETE FROM "rowfeed_outbox_kv" WHERE order_sequence IN (8)
UPDATE "rowfeed_feeds" SET state = state WHERE name = ? AND generation = ?
SELECT state FROM "rowfeed_feeds" WHERE name = ? AND generation = ?
INSERT INTO "rowfeed_outbox_kv" (shard, "id") SELECT x.shard, x.k0 FROM (SELECT t."v" AS shard, t."id" AS k0 FROM "kv" t LEFT JOIN "rowfeed_feed_kv" g ON g."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_outbox_kv") c ON c."id" = t."id" WHERE 1 = 1 AND g."id" IS NULL AND c."id" IS NULL ORDER BY t."id" COLLATE "BINARY" LIMIT ?) x

-- upgrade
UPDATE "rowfeed_feeds" SET key_columns = ? WHERE name = ?
SELECT value FROM "rowfeed_sequences" WHERE name = ?

-- adopt the database, and begin a new generation
SELECT value, version, COALESCE(term, 0), updated_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_sequences" WHERE name = ?
UPDATE "rowfeed_sequences" SET version = version + NUMBER WHERE name = 'kv'
UPDATE "rowfeed_feeds" SET generation = CASE WHEN ROUND(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 / 1000000, 0) > generation + 1 THEN ROUND(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 / 1000000, 0) ELSE generation + 1 END, database_identity = NULL WHERE name = 'kv'

-- drop the feed
DROP TRIGGER IF EXISTS "rowfeed_kv_delete"
DROP TRIGGER IF EXISTS "rowfeed_kv_insert_replace"
DROP TRIGGER IF EXISTS "rowfeed_kv_update_replace"
DROP TABLE IF EXISTS "rowfeed_outbox_kv"
DROP TABLE IF EXISTS "rowfeed_feed_kv"
DELETE FROM "rowfeed_shards" WHERE feed = ?
DELETE FROM "rowfeed_sequences" WHERE name = ?
DELETE FROM "rowfeed_terms" WHERE feed = ?

