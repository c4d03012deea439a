-- name: advance
UPDATE `rowfeed_cursors`
SET value = :to, generation = :to_generation, aside = :to_aside, version = version + 1,
  failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
WHERE consumer = :consumer AND feed = :feed AND shard = :shard
  AND shard_count = :shard_count
  AND version = :version
  AND value = :value
  AND generation = :generation
  AND epoch = :epoch
  AND aside = :aside
  AND paused = 0

-- name: claim
UPDATE `rowfeed_cursors` SET epoch = :epoch, version = version + 1, updated_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND shard_count = :shard_count AND epoch < :epoch

-- name: consumer
SELECT shard_count, paused FROM `rowfeed_consumers` WHERE consumer = :consumer AND feed = :feed

-- name: cursor
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target,
  failure, failing_since, attempts, next_try
FROM `rowfeed_cursors` WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: cursors
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target,
  failure, failing_since, attempts, next_try
FROM `rowfeed_cursors` WHERE consumer = :consumer AND feed = :feed ORDER BY shard

-- name: feeds
SELECT feed, max(shard_count) FROM `rowfeed_cursors` WHERE consumer = :consumer GROUP BY feed ORDER BY feed

-- name: letters_in_state
SELECT COUNT(*) FROM `rowfeed_dead_letters`
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND state = :state

-- name: processed_parts
SELECT DISTINCT generation, shard FROM `rowfeed_processed`
WHERE consumer = :consumer AND feed = :feed AND generation <= :generation

-- name: processed_without_stamp
SELECT count(*) FROM `rowfeed_processed`
WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position = :position
  AND processed_at >= :published

-- name: purge_processed
DELETE FROM `rowfeed_processed`
WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position <= :last

-- name: recovered
UPDATE `rowfeed_cursors` SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND version = :version

-- name: target
UPDATE `rowfeed_cursors` SET target = :target WHERE consumer = :consumer AND feed = :feed AND shard = :shard

