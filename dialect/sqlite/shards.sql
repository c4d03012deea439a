-- Shards with ULIDs: how a transaction locks a shard, and how it allocates the shard's next ULIDs.
--
-- The lock is the file's, so writers of all shards take turns. Shards separate orders, but not writers.

-- name: make_shard
-- It acquires the write lock, also if the row exists. It fails in a transaction that has read before another one wrote.
INSERT INTO {{table "shards"}} (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (:feed, :shard, 0, 0, 0, '')
ON CONFLICT (feed, shard) DO NOTHING

-- name: lock_shard
-- It only reads the row: make_shard has acquired the lock.
SELECT time_ms, ulid_high, ulid_low, witness, {{now}} FROM {{table "shards"}} WHERE feed = :feed AND shard = :shard

-- name: bound_of_session
-- How long the connection waits for the write lock, in milliseconds. 0 is the default.
PRAGMA busy_timeout

-- name: advance_shard
UPDATE {{table "shards"}} SET time_ms = :time, ulid_high = :high, ulid_low = :low, witness = :nonces
WHERE feed = :feed AND shard = :shard
