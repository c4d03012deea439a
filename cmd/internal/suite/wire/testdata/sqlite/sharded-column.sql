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
INSERT INTO "rowfeed_feeds" (name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
SELECT count(*) FROM "rowfeed_sequences" WHERE name = ?
INSERT INTO "rowfeed_sequences" (name, value, version, updated_at) VALUES (?, ?, 0, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
CREATE TABLE IF NOT EXISTS "rowfeed_changes_kv" ( seq INTEGER PRIMARY KEY, "id" BIGINT NOT NULL COLLATE "BINARY", kind INTEGER NOT NULL DEFAULT 0, changed_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) )
CREATE TABLE IF NOT EXISTS "rowfeed_positions_kv" ( "id" BIGINT NOT NULL COLLATE "BINARY", feed_sync_id INTEGER NOT NULL, shard INTEGER NOT NULL, bucket INTEGER NOT NULL, deleted INTEGER NOT NULL, hidden INTEGER NOT NULL, published_at INTEGER NOT NULL, PRIMARY KEY ("id") ) WITHOUT ROWID
CREATE UNIQUE INDEX IF NOT EXISTS "rowfeed_kv_position" ON "rowfeed_positions_kv" (feed_sync_id)
CREATE INDEX IF NOT EXISTS "rowfeed_kv_deleted" ON "rowfeed_positions_kv" (feed_sync_id) WHERE deleted = 1
ALTER TABLE "kv" ADD COLUMN "feed_sync_id" INTEGER
ALTER TABLE "kv" ADD COLUMN "shard" INTEGER NOT NULL DEFAULT 0
CREATE INDEX IF NOT EXISTS "rowfeed_kv_row_position" ON "kv" (feed_sync_id, shard) WHERE feed_sync_id IS NOT NULL
CREATE INDEX IF NOT EXISTS "rowfeed_kv_row_waiting" ON "kv" ("id" COLLATE "BINARY") WHERE feed_sync_id IS NULL
UPDATE "rowfeed_feeds" SET state = ?, fill_after = NULL WHERE name = ?
COMMIT
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), CASE WHEN f.capture = 'column' THEN COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'kv'), '') ELSE '' END, p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at, CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, +p."id", +t."id", +t."k", +t."v" FROM "rowfeed_feeds" f JOIN "rowfeed_sequences" s ON s.name = f.name LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT "id", feed_sync_id, shard, deleted, hidden, published_at FROM "rowfeed_positions_kv" WHERE feed_sync_id > ? AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = ?) AND NOT (feed_sync_id <= ? AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT ?) own UNION ALL SELECT * FROM (SELECT r."id" AS "id", r.feed_sync_id AS feed_sync_id, COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at FROM "kv" r WHERE r.feed_sync_id > ? AND r.feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = ?) AND NOT EXISTS (SELECT 1 FROM "rowfeed_positions_kv" h WHERE h."id" = r."id" AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id)) ORDER BY r.feed_sync_id LIMIT ?) placed) both_parts ORDER BY feed_sync_id LIMIT ?) p ON 1 = 1 LEFT JOIN "kv" t ON p."id" = t."id" WHERE f.name = ? LIMIT ?

-- add it again, list the feeds, describe it

-- write

-- publish first
SELECT seq FROM (SELECT seq FROM "rowfeed_changes_kv" ORDER BY seq LIMIT 1) c0 UNION ALL SELECT 0 FROM (SELECT feed_sync_id FROM "kv" WHERE feed_sync_id IS NULL LIMIT 1) t
BEGIN -- isolation: Default
UPDATE "rowfeed_sequences" SET version = version WHERE 0
PRAGMA synchronous
SELECT value, version, COALESCE(term, 0), updated_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_sequences" WHERE name = ?
UPDATE "rowfeed_terms" SET upto = ? WHERE feed = ? AND upto > ?
SELECT seq, kind, +"id" FROM "rowfeed_changes_kv" ORDER BY seq LIMIT ?
SELECT +t."id" FROM "kv" t WHERE t.feed_sync_id IS NULL ORDER BY t."id" COLLATE "BINARY" LIMIT ?
UPDATE "kv" AS r SET feed_sync_id = ? + j.n, shard = CAST(substr(?, j.n * 5 - 4, 5) AS INTEGER) FROM (SELECT *, row_number() OVER (ORDER BY k0 COLLATE "BINARY") AS n FROM (SELECT t."id" AS k0 FROM "kv" t WHERE t.feed_sync_id IS NULL ORDER BY t."id" COLLATE "BINARY" LIMIT ?)) j WHERE j.k0 COLLATE "BINARY" = r."id"
DELETE FROM "rowfeed_positions_kv" WHERE hidden = 0 AND ("id") IN (SELECT t."id" FROM "kv" t WHERE t.feed_sync_id > ? AND t.feed_sync_id <= ?)
SELECT +t."id" FROM "kv" t WHERE t.feed_sync_id = ?
SELECT count(*) FROM "kv" WHERE feed_sync_id > ?
UPDATE "rowfeed_sequences" SET value = ?, term = ?, version = version + 1, updated_at = ? WHERE name = ? AND version = ? AND EXISTS (SELECT 1 FROM "rowfeed_feeds" WHERE name = ? AND generation = ? AND data_shards = ? AND capture = 'column')
UPDATE "rowfeed_feeds" SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL WHERE name = ? AND failure IS NOT NULL

-- publish without changes

-- publish again
INSERT INTO "rowfeed_positions_kv" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at) SELECT c."id", ? + j.place, j.shard, ((j.shard + 1) * 4 - 1) / 4, 0, 0, ? FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(?)) j CROSS JOIN "rowfeed_changes_kv" c ON c.seq = j.seq WHERE EXISTS (SELECT 1 FROM "kv" t WHERE c."id" = t."id") ON CONFLICT ("id") DO UPDATE SET feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END, published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END, deleted = excluded.deleted
INSERT INTO "rowfeed_positions_kv" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at) SELECT c."id", ? + j.place, j.shard, ((j.shard + 1) * 4 - 1) / 4, 1, 0, ? FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(?)) j CROSS JOIN "rowfeed_changes_kv" c ON c.seq = j.seq LEFT JOIN "kv" t ON c."id" = t."id" WHERE t."id" IS NULL ON CONFLICT ("id") DO UPDATE SET feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END, published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END, deleted = excluded.deleted
DELETE FROM "rowfeed_changes_kv" WHERE seq BETWEEN ? AND ?

-- run a publisher
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE name = ?
INSERT INTO "rowfeed_leases" (name, owner, epoch, expires_at, acquired_at, renewals) VALUES (?, ?, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, 0)
SELECT name, COALESCE(sql, '') FROM sqlite_schema WHERE type IN ('table', 'trigger')
SELECT max(feed_sync_id) FROM "kv"
SELECT value FROM "rowfeed_sequences" WHERE name = ?
SELECT feed_sync_id FROM (SELECT feed_sync_id FROM "rowfeed_positions_kv" WHERE feed_sync_id > ? UNION ALL SELECT feed_sync_id FROM "kv" WHERE feed_sync_id > ?) x GROUP BY feed_sync_id HAVING count(*) > 1 ORDER BY feed_sync_id LIMIT 1
SELECT feed_sync_id, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - published_at FROM "rowfeed_positions_kv" WHERE deleted = 1 AND hidden = 0 ORDER BY feed_sync_id LIMIT ?
SELECT 'kv', -1, 0, NULL, 0, 0 FROM (SELECT seq FROM (SELECT seq FROM "rowfeed_changes_kv" ORDER BY seq LIMIT 1) c0 UNION ALL SELECT 0 FROM (SELECT feed_sync_id FROM "kv" WHERE feed_sync_id IS NULL LIMIT 1) t) w
UPDATE "rowfeed_leases" SET owner = '', expires_at = NULL, renewals = renewals + NUMBER WHERE name = ? AND owner = ? AND epoch = ?

-- read pages of the part: all
SELECT s.value, COALESCE(s.term, 0), COALESCE(t.term, 0), COALESCE(t.upto, 0) FROM "rowfeed_sequences" s LEFT JOIN "rowfeed_terms" t ON t.feed = s.name WHERE s.name = ?

-- wait for an entry of the part: all
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0) FROM "rowfeed_sequences" s JOIN "rowfeed_feeds" f ON f.name = s.name

-- read a consistent page of the part: all
BEGIN -- isolation: Default, read only
SELECT seq FROM "rowfeed_changes_kv" ORDER BY seq DESC LIMIT 1
SELECT seq FROM "rowfeed_changes_kv" ORDER BY seq ASC LIMIT 1

-- read pages of the part: shard 0 of 2
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), CASE WHEN f.capture = 'column' THEN CASE WHEN f.state IN ('creating', 'sharding') OR f.data_shards <> ? THEN '' ELSE COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'kv'), '') END ELSE '' END, p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at, CASE WHEN t."id" IS NULL THEN 0 ELSE 1 END, +p."id", +t."id", +t."k", +t."v" FROM "rowfeed_feeds" f JOIN "rowfeed_sequences" s ON s.name = f.name LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT "id", feed_sync_id, shard, deleted, hidden, published_at FROM "rowfeed_positions_kv" WHERE feed_sync_id > ? AND feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = ?) AND shard >= ? AND shard < ? AND NOT (feed_sync_id <= ? AND (deleted = 1 OR hidden = 1)) ORDER BY feed_sync_id LIMIT ?) own UNION ALL SELECT * FROM (SELECT r."id" AS "id", r.feed_sync_id AS feed_sync_id, COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at FROM "kv" r WHERE r.feed_sync_id > ? AND r.feed_sync_id <= (SELECT value FROM "rowfeed_sequences" WHERE name = ?) AND COALESCE(r.shard, 0) >= ? AND COALESCE(r.shard, 0) < ? AND NOT EXISTS (SELECT 1 FROM "rowfeed_positions_kv" h WHERE h."id" = r."id" AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id)) ORDER BY r.feed_sync_id LIMIT ?) placed) both_parts ORDER BY feed_sync_id LIMIT ?) p ON 1 = 1 LEFT JOIN "kv" t ON p."id" = t."id" WHERE f.name = ? LIMIT ?

-- wait for an entry of the part: shard 0 of 2

-- read a consistent page of the part: shard 0 of 2

-- read pages of the part: shard 1

-- wait for an entry of the part: shard 1

-- read a consistent page of the part: shard 1

-- consume, set an entry aside, list it and try it again
DELETE FROM "rowfeed_cursors" WHERE consumer = ? AND feed = ? AND shard >= ?
DELETE FROM "rowfeed_dead_letters" WHERE consumer = ? AND feed = ? AND shard = ? AND key_digest = ? AND generation = ? AND position = ? AND state = ?
INSERT INTO "rowfeed_cursors" (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000) ON CONFLICT (consumer, feed, shard) DO NOTHING
INSERT INTO "rowfeed_dead_letters" (consumer, feed, shard, key_digest, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, data_shard) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, ?) ON CONFLICT (consumer, feed, shard, key_digest) DO NOTHING
RELEASE SAVEPOINT rowfeed
SAVEPOINT rowfeed
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
SELECT value, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_sequences" WHERE name = ?
UPDATE "rowfeed_consumers" SET version = version + NUMBER WHERE 1 = 1 AND consumer = ? AND feed = ?
UPDATE "rowfeed_cursors" SET failure = ?, failing_since = COALESCE(failing_since, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000), attempts = ?, next_try = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + ? WHERE consumer = ? AND feed = ? AND shard = ? AND shard_count = ? AND version = ?
UPDATE "rowfeed_cursors" SET shard_count = ?, value = ?, generation = ?, epoch = ?, paused = ?, aside = ?, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE consumer = ? AND feed = ? AND shard = ?
UPDATE "rowfeed_cursors" SET value = ?, generation = ?, aside = ?, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE consumer = ? AND feed = ? AND shard = ? AND shard_count = ? AND version = ? AND value = ? AND generation = ? AND epoch = ? AND aside = ? AND paused = 0
UPDATE "rowfeed_cursors" SET version = version + NUMBER WHERE 1 = 1 AND consumer = ? AND feed = ? AND shard = ?
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

-- deliver outside of transactions, under an epoch
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE name >= ? AND name < ? OR name = ?
UPDATE "rowfeed_cursors" SET epoch = ?, version = version + 1, updated_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE consumer = ? AND feed = ? AND shard = ? AND shard_count = ? AND epoch < ?

-- note an entry as processed, and forget it
SELECT count(*) FROM "rowfeed_processed" WHERE consumer = ? AND feed = ? AND generation = ? AND shard = ? AND position = ? AND processed_at >= ?
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

-- relay into a mirror table
CREATE TABLE "rowfeed_sweep_mirror" ("id" BIGINT NOT NULL, PRIMARY KEY ("id"))
DELETE FROM "rowfeed_sweep_mirror"
INSERT INTO "mirror" ("id", "k", "v") VALUES (?, ?, ?), (?, ?, ?) ON CONFLICT ("id") DO UPDATE SET "k" = excluded."k", "v" = excluded."v"
INSERT INTO "mirror" ("id", "k", "v") VALUES (?, ?, ?), (?, ?, ?), (?, ?, ?) ON CONFLICT ("id") DO UPDATE SET "k" = excluded."k", "v" = excluded."v"
INSERT INTO "rowfeed_leases" (name, owner, epoch, expires_at, acquired_at, renewals) VALUES (?, '', ?, NULL, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, 0) ON CONFLICT (name) DO NOTHING
INSERT INTO "rowfeed_sweep_mirror" ("id") SELECT "id" FROM "mirror"
SELECT 1 FROM "rowfeed_sweep_mirror" LIMIT 1
SELECT 1 FROM "rowfeed_sweep_mirror" WHERE 1 = 0
UPDATE "rowfeed_leases" SET epoch = ?, acquired_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 WHERE name = ? AND epoch < ?

-- status
SELECT s.value, s.updated_at, COALESCE(s.term, 0), (SELECT max(ended_at) FROM "rowfeed_terms" t WHERE t.feed = s.name) FROM "rowfeed_sequences" s WHERE s.name = ?
SELECT (SELECT count(*) FROM (SELECT 1 FROM "rowfeed_changes_kv" LIMIT ?) x) + (SELECT count(*) FROM (SELECT 1 FROM "kv" WHERE feed_sync_id IS NULL LIMIT ?) y), COALESCE((SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - changed_at FROM "rowfeed_changes_kv" ORDER BY seq LIMIT 1), 0)
SELECT count(*) FROM "rowfeed_positions_kv" p LEFT JOIN "kv" t ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_changes_kv") c ON c."id" = p."id" WHERE p.deleted = 0 AND t."id" IS NULL AND c."id" IS NULL
SELECT file FROM pragma_database_list WHERE name = 'main'
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target, failure, failing_since, attempts, next_try FROM "rowfeed_cursors" WHERE 1 = 1 AND feed = ? ORDER BY consumer, feed, shard
SELECT consumer, feed, shard_count, paused FROM "rowfeed_consumers" WHERE 1 = 1 AND feed = ?

-- verify

-- republish, unpublish and delete keys
SELECT (SELECT count(*) FROM "kv" x WHERE x."id" COLLATE "BINARY" = ?) + (SELECT count(*) FROM "rowfeed_positions_kv" x WHERE x."id" COLLATE "BINARY" = ?)
INSERT INTO "rowfeed_changes_kv" ("id", kind) VALUES (?, ?)
DELETE FROM "kv" WHERE "id" COLLATE "BINARY" = ?
INSERT INTO "rowfeed_changes_kv" ("id") VALUES (?)
SELECT count(*) FROM "kv" t WHERE (v > 0)
SELECT +t."id" FROM "kv" t WHERE (v > 0) ORDER BY t."id" COLLATE "BINARY" LIMIT 1 OFFSET ?
INSERT INTO "rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT t."id" AS k0 FROM "kv" t WHERE (v > 0) AND t."id" COLLATE "BINARY" <= ? ORDER BY t."id" COLLATE "BINARY" LIMIT ?) x
SELECT +t."id" FROM "kv" t WHERE (v > 0) AND t."id" COLLATE "BINARY" > ? ORDER BY t."id" COLLATE "BINARY" LIMIT 1 OFFSET ?
INSERT INTO "rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT t."id" AS k0 FROM "kv" t WHERE (v > 0) AND t."id" COLLATE "BINARY" > ? AND t."id" COLLATE "BINARY" <= ? ORDER BY t."id" COLLATE "BINARY" LIMIT ?) x
INSERT INTO "rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT t."id" AS k0 FROM "kv" t WHERE (v > 0) AND t."id" COLLATE "BINARY" > ? ORDER BY t."id" COLLATE "BINARY" LIMIT ?) x
INSERT INTO "rowfeed_positions_kv" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at) SELECT c."id", CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE ? + j.place END, j.shard, ((j.shard + 1) * 4 - 1) / 4, t."id" IS NULL, CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END, CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE ? END FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(?)) j CROSS JOIN "rowfeed_changes_kv" c ON c.seq = j.seq LEFT JOIN "kv" t ON c."id" = t."id" LEFT JOIN "rowfeed_positions_kv" old ON old."id" = c."id" WHERE 1 = 1 ON CONFLICT ("id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at, deleted = excluded.deleted, hidden = excluded.hidden

-- purge deletes
SELECT feed_sync_id, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - published_at FROM "rowfeed_positions_kv" WHERE deleted = 1 AND hidden = 0 AND feed_sync_id >= ? ORDER BY feed_sync_id LIMIT ?
DELETE FROM "rowfeed_positions_kv" WHERE deleted = 1 AND feed_sync_id IN (?, ?)
UPDATE "rowfeed_feeds" SET tombstones_below = ? WHERE name = ? AND tombstones_below < ?

-- check
SELECT feed_sync_id FROM (SELECT feed_sync_id FROM "rowfeed_positions_kv" UNION ALL SELECT feed_sync_id FROM "kv" WHERE feed_sync_id IS NOT NULL) x GROUP BY feed_sync_id HAVING count(*) > 1 LIMIT 100
SELECT +p."id" FROM "rowfeed_positions_kv" p LEFT JOIN "kv" t ON p."id" = t."id" JOIN "rowfeed_sequences" s ON s.name = 'kv' WHERE (p.feed_sync_id > s.value) LIMIT 100
SELECT +t."id" FROM "kv" t LEFT JOIN "rowfeed_positions_kv" p ON p."id" = t."id" JOIN "rowfeed_sequences" s ON s.name = 'kv' WHERE (t.feed_sync_id > s.value OR t.feed_sync_id < 1) LIMIT 100
SELECT +p."id" FROM "rowfeed_positions_kv" p LEFT JOIN "kv" t ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_changes_kv") c ON c."id" = p."id" WHERE p.deleted = 0 AND t."id" IS NULL AND c."id" IS NULL LIMIT 100
SELECT +p."id" FROM "rowfeed_positions_kv" p LEFT JOIN "kv" t ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_changes_kv") c ON c."id" = p."id" WHERE p.deleted = 1 AND p.hidden = 0 AND t.feed_sync_id IS NOT NULL AND NOT (t."id" IS NULL) AND c."id" IS NULL LIMIT 100
SELECT t.feed_sync_id, t.shard, t.bucket, +t."id" FROM "rowfeed_positions_kv" t ORDER BY t."id" COLLATE "BINARY" LIMIT ?
SELECT count(*) FROM "rowfeed_feeds" WHERE name = ? AND generation = ? AND data_shards = ? AND state IN (?, ?)
SELECT t.feed_sync_id, t.shard, NULL, +t."id" FROM "kv" t ORDER BY t."id" COLLATE "BINARY" LIMIT ?

-- repair
UPDATE "kv" AS t SET feed_sync_id = NULL WHERE t.feed_sync_id < 1 OR t.feed_sync_id > (SELECT value FROM "rowfeed_sequences" WHERE name = ?) OR t.feed_sync_id IN (SELECT feed_sync_id FROM (SELECT feed_sync_id FROM (SELECT feed_sync_id FROM "rowfeed_positions_kv" UNION ALL SELECT feed_sync_id FROM "kv" WHERE feed_sync_id IS NOT NULL) x GROUP BY feed_sync_id HAVING count(*) > 1) shared) OR t.feed_sync_id > ? AND t.feed_sync_id <= ?
INSERT INTO "rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT p."id" AS k0 FROM "rowfeed_positions_kv" p LEFT JOIN "kv" t ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_changes_kv") c ON c."id" = p."id" WHERE p.deleted = 0 AND t."id" IS NULL AND c."id" IS NULL LIMIT ?) x
INSERT INTO "rowfeed_changes_kv" ("id", kind) SELECT x.k0, 0 FROM (SELECT p."id" AS k0 FROM "rowfeed_positions_kv" p LEFT JOIN "kv" t ON p."id" = t."id" LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_changes_kv") c ON c."id" = p."id" WHERE p.deleted = 1 AND p.hidden = 0 AND t.feed_sync_id IS NOT NULL AND NOT (t."id" IS NULL) AND c."id" IS NULL LIMIT ?) x

-- upgrade

-- divide by another number of data shards
UPDATE "rowfeed_feeds" SET state = ?, fill_after = NULL, data_shards = ? WHERE name = ? AND state = ? AND generation = ?
UPDATE "rowfeed_positions_kv" SET shard = ?, bucket = ? WHERE feed_sync_id = ?
SELECT count(*) FROM "rowfeed_feeds" WHERE name = ? AND generation = ? AND data_shards = ? AND state = ? AND fill_after IS NULL
UPDATE "rowfeed_feeds" SET fill_after = ? WHERE name = ? AND generation = ? AND data_shards = ? AND state = ? AND fill_after IS NULL
UPDATE "kv" SET shard = ? WHERE feed_sync_id = ?
SELECT count(*) FROM "rowfeed_feeds" WHERE name = ? AND generation = ? AND data_shards = ? AND state = ? AND fill_after = ?
UPDATE "rowfeed_feeds" SET fill_after = ? WHERE name = ? AND generation = ? AND data_shards = ? AND state = ? AND fill_after = ?
SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?
UPDATE "rowfeed_feeds" SET state = ?, fill_after = NULL WHERE name = ? AND generation = ? AND data_shards = ? AND state = ? AND fill_after = ?

-- adopt the database, and begin a new generation
UPDATE "rowfeed_sequences" SET version = version + NUMBER WHERE name = 'kv'
UPDATE "rowfeed_feeds" SET generation = CASE WHEN ROUND(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 / 1000000, 0) > generation + 1 THEN ROUND(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 / 1000000, 0) ELSE generation + 1 END, database_identity = NULL WHERE name = 'kv'

-- drop the feed
DROP TRIGGER IF EXISTS "rowfeed_kv_insert"
DROP TRIGGER IF EXISTS "rowfeed_kv_update"
DROP TRIGGER IF EXISTS "rowfeed_kv_delete"
DROP TRIGGER IF EXISTS "rowfeed_kv_insert_replace"
DROP TRIGGER IF EXISTS "rowfeed_kv_update_replace"
DROP INDEX IF EXISTS "rowfeed_kv_row_position"
DROP INDEX IF EXISTS "rowfeed_kv_row_waiting"
ALTER TABLE "kv" DROP COLUMN "feed_sync_id"
ALTER TABLE "kv" DROP COLUMN "shard"
DROP TABLE IF EXISTS "rowfeed_changes_kv"
DROP TABLE IF EXISTS "rowfeed_positions_kv"
DELETE FROM "rowfeed_sequences" WHERE name = ?
DELETE FROM "rowfeed_terms" WHERE feed = ?

