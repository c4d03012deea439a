-- name: advance_shard
UPDATE "rowfeed_shards" SET time_ms = :time, ulid_high = :high, ulid_low = :low, witness = :nonces
WHERE feed = :feed AND shard = :shard

-- name: bound_of_session
PRAGMA busy_timeout

-- name: lock_shard
SELECT time_ms, ulid_high, ulid_low, witness, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_shards" WHERE feed = :feed AND shard = :shard

-- name: make_shard
INSERT INTO "rowfeed_shards" (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (:feed, :shard, 0, 0, 0, '')
ON CONFLICT (feed, shard) DO NOTHING

