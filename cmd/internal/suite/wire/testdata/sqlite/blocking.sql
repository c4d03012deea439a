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
SELECT count(*) FROM "kv" t WHERE (typeof(t."u") <> 'blob' OR length(t."u") <> 16 OR typeof(t."v") <> 'integer')
SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000
SELECT g."v", +g."u" FROM "kv" g ORDER BY g."v" DESC, g."u" DESC LIMIT 1
INSERT INTO "rowfeed_feeds" (name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
SELECT count(*) FROM "rowfeed_sequences" WHERE name = ?
INSERT INTO "rowfeed_sequences" (name, value, version, updated_at) VALUES (?, ?, 0, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
UPDATE "rowfeed_feeds" SET state = ?, fill_after = NULL WHERE name = ?
COMMIT

-- add it again, list the feeds, describe it
SELECT shard FROM "rowfeed_shards" WHERE feed = ? AND time_ms <> 0 ORDER BY shard LIMIT ?

-- write
BEGIN
PRAGMA busy_timeout
INSERT INTO "rowfeed_shards" (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (?, ?, 0, 0, 0, '') ON CONFLICT (feed, shard) DO NOTHING
SELECT time_ms, ulid_high, ulid_low, witness, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_shards" WHERE feed = ? AND shard = ?
SELECT count(*) FROM "rowfeed_feeds" WHERE name = ? AND state = ?
SELECT +g."u" FROM "kv" g WHERE g."v" = ? ORDER BY g."u" DESC LIMIT 1
UPDATE "rowfeed_shards" SET time_ms = ?, ulid_high = ?, ulid_low = ?, witness = ? WHERE feed = ? AND shard = ?
PRAGMA synchronous

-- publish first
UPDATE "rowfeed_feeds" SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL WHERE name = ? AND failure IS NOT NULL

-- publish without changes

-- publish again

-- read pages of the part: shard 1
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0), COALESCE(h.below_low, 0), (SELECT +g."u" FROM "kv" g WHERE g."v" = ? ORDER BY g."u" DESC LIMIT 1), 0, 0, 0, CASE WHEN NOT COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'index' AND sqlite_schema.name = 'kv_feed'), '') = 'CREATE UNIQUE INDEX kv_feed ON kv (v, u)' THEN '' ELSE COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'kv'), '') END, p.place, p.present, p.v0, p.v1, p.v2, p.v3 FROM "rowfeed_feeds" f JOIN "rowfeed_sequences" s ON s.name = f.name LEFT JOIN "rowfeed_shards" h ON h.feed = f.name AND h.shard = ? LEFT JOIN (SELECT t."u" AS ordered, +t."u" AS place, 1 AS present, +t."id" AS v0, +t."id" AS v1, +t."v" AS v2, +t."u" AS v3 FROM "kv" t WHERE t."v" = ? AND t."u" > ? ORDER BY t."u" LIMIT ?) p ON 1 = 1 WHERE f.name = ? ORDER BY p.ordered LIMIT ?

-- wait for an entry of the part: shard 1
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0) FROM "rowfeed_sequences" s JOIN "rowfeed_feeds" f ON f.name = s.name UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0 FROM "rowfeed_shards" h JOIN "rowfeed_feeds" f ON f.name = h.feed WHERE h.feed = ? AND h.shard IN (?)

-- read a consistent page of the part: shard 1

-- tell how far the shards are
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0) FROM "rowfeed_sequences" s JOIN "rowfeed_feeds" f ON f.name = s.name UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0 FROM "rowfeed_shards" h JOIN "rowfeed_feeds" f ON f.name = h.feed WHERE h.feed = ?

-- consume, set an entry aside, list it and try it again
BEGIN -- isolation: Default
DELETE FROM "rowfeed_dead_letters" WHERE consumer = ? AND feed = ? AND shard = ? AND key_digest = ? AND generation = ? AND position = ? AND state = ?
INSERT INTO "rowfeed_consumers" (consumer, feed, shard_count, paused, version) VALUES (?, ?, ?, 0, 0) ON CONFLICT (consumer, feed) DO NOTHING
INSERT INTO "rowfeed_cursors" (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, 0, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
INSERT INTO "rowfeed_dead_letters" (consumer, feed, shard, key_digest, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, data_shard) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, ?) ON CONFLICT (consumer, feed, shard, key_digest) DO NOTHING
RELEASE SAVEPOINT rowfeed
SAVEPOINT rowfeed
SELECT 1 AS shard, g0.* FROM (SELECT +g."u" FROM "kv" g WHERE g."v" = ? ORDER BY g."u" DESC LIMIT 1) g0
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
UPDATE "rowfeed_sequences" SET version = version WHERE 0

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
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE name = ?

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
SELECT s.shard, (SELECT +g."u" FROM "kv" g WHERE g."v" = s.shard ORDER BY g."u" DESC LIMIT 1) FROM "rowfeed_shards" s WHERE s.feed = ? ORDER BY s.shard LIMIT ?
SELECT file FROM pragma_database_list WHERE name = 'main'
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "rowfeed_cursors" WHERE 1 = 1 AND feed = ? ORDER BY consumer, feed, shard
SELECT consumer, feed, shard_count, paused FROM "rowfeed_consumers" WHERE 1 = 1 AND feed = ?

-- who has the shards

-- verify

-- check
BEGIN -- isolation: Default, read only
SELECT +t."id" FROM "kv" t WHERE (typeof(t."u") <> 'blob' OR length(t."u") <> 16 OR typeof(t."v") <> 'integer') LIMIT 100
SELECT g."v", +g."u" FROM "kv" g WHERE g."v" < ? ORDER BY g."v" DESC, g."u" DESC LIMIT 1

-- repair

-- upgrade
SELECT value FROM "rowfeed_sequences" WHERE name = ?

-- adopt the database, and begin a new generation
SELECT value, version, COALESCE(term, 0), updated_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_sequences" WHERE name = ?
UPDATE "rowfeed_sequences" SET version = version + NUMBER WHERE name = 'kv'
UPDATE "rowfeed_feeds" SET generation = CASE WHEN ROUND(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 / 1000000, 0) > generation + 1 THEN ROUND(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 / 1000000, 0) ELSE generation + 1 END, database_identity = NULL WHERE name = 'kv'

-- drop the feed
DELETE FROM "rowfeed_shards" WHERE feed = ?
DELETE FROM "rowfeed_sequences" WHERE name = ?
DELETE FROM "rowfeed_terms" WHERE feed = ?

