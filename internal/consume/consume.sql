-- Consumers' cursors, one row for each shard. Every write increments version, except for failures and targets: a cursor
-- that was moved and moved back differs, and every database counts the row as affected.

-- name: cursors
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target,
  failure, failing_since, attempts, next_try
FROM {{table "cursors"}} WHERE consumer = :consumer AND feed = :feed ORDER BY shard

-- name: cursor
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target,
  failure, failing_since, attempts, next_try
FROM {{table "cursors"}} WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: feeds
-- The feeds that a consumer reads, with its number of shards.
SELECT feed, max(shard_count) FROM {{table "cursors"}} WHERE consumer = :consumer GROUP BY feed ORDER BY feed

-- name: consumer
-- What a consumer of a ULID feed has once for all its shards.
SELECT shard_count, paused FROM {{table "consumers"}} WHERE consumer = :consumer AND feed = :feed

-- name: advance
-- Compare and set: if the row has changed, another instance has handled the page, or an operator has moved or paused
-- the cursor. The meaning of a cursor depends on shard_count and generation too, so all are compared. A paused consumer
-- stores nothing.
UPDATE {{table "cursors"}}
SET value = :to, generation = :to_generation, aside = :to_aside, version = version + 1,
  failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = {{now}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard
  AND shard_count = :shard_count
  AND version = :version
  AND value = :value
  AND generation = :generation
  AND epoch = :epoch
  AND aside = :aside
  AND paused = 0

-- name: claim
-- Epochs of another number of shards are of other leases.
UPDATE {{table "cursors"}} SET epoch = :epoch, version = version + 1, updated_at = {{now}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND shard_count = :shard_count AND epoch < :epoch

-- name: letters_in_state
SELECT COUNT(*) FROM {{table "dead_letters"}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND state = :state

-- name: recovered
UPDATE {{table "cursors"}} SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND version = :version

-- name: target
UPDATE {{table "cursors"}} SET target = :target WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: processed_parts
SELECT DISTINCT generation, shard FROM {{table "processed"}}
WHERE consumer = :consumer AND feed = :feed AND generation <= :generation

-- name: processed_without_stamp
-- An id that was marked before entries had stamps, and not before this entry was published.
SELECT count(*) FROM {{table "processed"}}
WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position = :position
  AND processed_at >= :published

-- name: purge_processed
DELETE FROM {{table "processed"}}
WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position <= :last
