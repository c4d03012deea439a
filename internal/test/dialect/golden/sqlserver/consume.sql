-- name: advance
UPDATE [rowfeed_cursors]
SET value = :to, generation = :to_generation, aside = :to_aside, version = version + 1,
  failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())
WHERE consumer = :consumer AND feed = :feed AND shard = :shard
  AND shard_count = :shard_count
  AND version = :version
  AND value = :value
  AND generation = :generation
  AND epoch = :epoch
  AND aside = :aside
  AND paused = 0

-- name: aside
SELECT key_digest, state FROM [rowfeed_dead_letters]
WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: aside_among
SELECT key_digest, state FROM [rowfeed_dead_letters]
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND (state = :retry OR key_digest IN (:digests))

-- name: ask_for_release
UPDATE [rowfeed_dead_letters] SET state = :retry, last_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) WHERE :which

-- name: begun_between
first_at >= :first AND first_at <= :last

-- name: claim
UPDATE [rowfeed_cursors] SET epoch = :epoch, version = version + 1, updated_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND shard_count = :shard_count AND epoch < :epoch

-- name: claim_all
UPDATE [rowfeed_cursors] SET epoch = :epoch, version = version + 1, updated_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())
WHERE consumer = :consumer AND feed = :feed AND shard_count = :shard_count AND epoch < :epoch AND shard IN (:shards)

-- name: collapse
UPDATE [rowfeed_dead_letters]
SET generation = :generation, position = :position, op = :op, data_shard = :data_shard, collapsed = collapsed + 1,
  last_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest

-- name: columns
consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target,
  failure, failing_since, attempts, next_try

-- name: consumer
SELECT shard_count, paused FROM [rowfeed_consumers] WHERE consumer = :consumer AND feed = :feed

-- name: consumer_version
SELECT shard_count, version FROM [rowfeed_consumers] WHERE consumer = :consumer AND feed = :feed

-- name: consumers
SELECT consumer, feed, shard_count, paused FROM [rowfeed_consumers] WHERE :which

-- name: count_cursors
SELECT count(*) FROM [rowfeed_cursors] WHERE :which

-- name: count_dropped
UPDATE [rowfeed_cursors] SET aside = aside - :dropped, version = version + 1
WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: count_letters
SELECT count(*) FROM [rowfeed_dead_letters] WHERE :which

-- name: cursor
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target,
  failure, failing_since, attempts, next_try FROM [rowfeed_cursors] WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: cursors
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target,
  failure, failing_since, attempts, next_try FROM [rowfeed_cursors] WHERE consumer = :consumer AND feed = :feed ORDER BY shard

-- name: drop_consumers
DELETE FROM [rowfeed_consumers] WHERE :which

-- name: drop_cursors
DELETE FROM [rowfeed_cursors] WHERE :which

-- name: drop_cursors_from
DELETE FROM [rowfeed_cursors] WHERE consumer = :consumer AND feed = :feed AND shard >= :first

-- name: drop_letter
DELETE FROM [rowfeed_dead_letters]
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest

-- name: drop_letters
DELETE FROM [rowfeed_dead_letters] WHERE :which

-- name: drop_processed
DELETE FROM [rowfeed_processed] WHERE :which

-- name: end_of_batch
SELECT position FROM [rowfeed_processed]
WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position <= :last
ORDER BY position OFFSET :others ROWS FETCH NEXT 1 ROWS ONLY

-- name: end_pass
UPDATE [rowfeed_dead_letters] SET op = :delete
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND generation < 0

-- name: error_group
replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
  substring(error, 1, 200),
  '0', '#'), '1', '#'), '2', '#'), '3', '#'), '4', '#'), '5', '#'), '6', '#'), '7', '#'), '8', '#'), '9', '#'),
  '################', '#'), '####', '#'), '##', '#'), '##', '#'), '##', '#')

-- name: failed
UPDATE [rowfeed_cursors]
SET failure = :failure, failing_since = COALESCE(failing_since, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())), attempts = :attempts,
  next_try = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) + :pause
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND shard_count = :shard_count AND version = :version

-- name: failed_under_lease
UPDATE [rowfeed_cursors]
SET failure = :failure, failing_since = COALESCE(failing_since, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())), attempts = :attempts,
  next_try = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) + :pause
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND shard_count = :shard_count AND version = :version AND epoch = :epoch

-- name: failing_cursors
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target,
  failure, failing_since, attempts, next_try FROM [rowfeed_cursors] WHERE failure IS NOT NULL AND paused = 0
ORDER BY consumer, feed, shard

-- name: feeds
SELECT feed, max(shard_count) FROM [rowfeed_cursors] WHERE consumer = :consumer GROUP BY feed ORDER BY feed

-- name: feeds_aside
SELECT DISTINCT consumer, feed FROM [rowfeed_cursors] WHERE :which AND aside > 0

-- name: first_key
SELECT key_json FROM [rowfeed_dead_letters] WHERE :which
ORDER BY consumer, feed, shard, first_at, key_digest OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: forget_positions
UPDATE [rowfeed_dead_letters] SET generation = -ABS(generation), op = :upsert WHERE :which

-- name: group_letters
SELECT consumer, feed, kind, count(*), min(first_at), max(last_at)
FROM (SELECT consumer, feed, replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
  substring(error, 1, 200),
  '0', '#'), '1', '#'), '2', '#'), '3', '#'), '4', '#'), '5', '#'), '6', '#'), '7', '#'), '8', '#'), '9', '#'),
  '################', '#'), '####', '#'), '##', '#'), '##', '#'), '##', '#') AS kind, first_at, last_at
  FROM [rowfeed_dead_letters] WHERE :which) g
GROUP BY consumer, feed, kind ORDER BY count(*) DESC, consumer, feed, kind OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: has_text
lower(error) LIKE lower(:part) ESCAPE '!'

-- name: has_text_or_group
(lower(error) LIKE lower(:part) ESCAPE '!' OR lower(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
  substring(error, 1, 200),
  '0', '#'), '1', '#'), '2', '#'), '3', '#'), '4', '#'), '5', '#'), '6', '#'), '7', '#'), '8', '#'), '9', '#'),
  '################', '#'), '####', '#'), '##', '#'), '##', '#'), '##', '#')) LIKE lower(:part) ESCAPE '!')

-- name: highest_epochs
SELECT consumer, feed, MAX(epoch) FROM [rowfeed_cursors] WHERE :which
GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed

-- name: highest_epochs_of_parts
SELECT feed, MAX(epoch) FROM [rowfeed_cursors] WHERE :which AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM [rowfeed_consumers] k
  WHERE k.consumer = [rowfeed_cursors].consumer AND k.feed = [rowfeed_cursors].feed) GROUP BY feed ORDER BY feed

-- name: in_group
replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
  substring(error, 1, 200),
  '0', '#'), '1', '#'), '2', '#'), '3', '#'), '4', '#'), '5', '#'), '6', '#'), '7', '#'), '8', '#'), '9', '#'),
  '################', '#'), '####', '#'), '##', '#'), '##', '#'), '##', '#') = :group

-- name: insert_consumer
INSERT INTO [rowfeed_consumers] (consumer, feed, shard_count, paused, version) SELECT :consumer, :feed, :shard_count, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_consumers] WITH (UPDLOCK, SERIALIZABLE) WHERE consumer = :consumer AND feed = :feed)

-- name: insert_cursor
INSERT INTO [rowfeed_cursors] (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at) SELECT :consumer, :feed, :shard, :shard_count, :value, :generation, :epoch, 0, :paused, :aside, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_cursors] WITH (UPDLOCK, SERIALIZABLE) WHERE consumer = :consumer AND feed = :feed AND shard = :shard)

-- name: insert_cursors
INSERT INTO [rowfeed_cursors] (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside,
  updated_at)
VALUES :rows

-- name: insert_dropped_lease
INSERT INTO [rowfeed_leases] (name, owner, epoch, expires_at, acquired_at, renewals) SELECT :name, '', :epoch, NULL, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), 0 WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_leases] WITH (UPDLOCK, SERIALIZABLE) WHERE name = :name)

-- name: leases_of_consumer
name >= :groups AND name < :beyond_groups OR name = :sole

-- name: leases_of_shards
name >= :consumers AND name < :beyond_consumers OR name >= :relays AND name < :beyond_relays

-- name: letters_by_key
SELECT shard, key_digest, key_json, generation, position, data_shard FROM [rowfeed_dead_letters]
WHERE consumer = :consumer AND feed = :feed ORDER BY key_digest, ABS(generation), last_at, shard

-- name: letters_in_state
SELECT COUNT(*) FROM [rowfeed_dead_letters]
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND state = :state

-- name: list_cursors
SELECT consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target,
  failure, failing_since, attempts, next_try FROM [rowfeed_cursors] WHERE :which ORDER BY consumer, feed, shard

-- name: lock_consumers
UPDATE [rowfeed_consumers] SET version = version + 1 WHERE :which

-- name: lock_cursors
UPDATE [rowfeed_cursors] SET version = version + 1 WHERE :which

-- name: lock_letters
UPDATE [rowfeed_dead_letters] SET collapsed = collapsed WHERE consumer = :consumer AND feed = :feed

-- name: lock_parts
UPDATE [rowfeed_cursors] SET version = version + 1 WHERE :which AND shard_count > 1 AND NOT EXISTS (SELECT 1 FROM [rowfeed_consumers] k
  WHERE k.consumer = [rowfeed_cursors].consumer AND k.feed = [rowfeed_cursors].feed)

-- name: mark_processed
INSERT INTO [rowfeed_processed] (consumer, feed, generation, shard, position, processed_at) SELECT :consumer, :feed, :generation, :shard, :position, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_processed] WITH (UPDLOCK, SERIALIZABLE) WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position = :position)

-- name: move_letter
UPDATE [rowfeed_dead_letters] SET shard = :to
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest

-- name: new_cursor
(:consumer, :feed, :shard, :shard_count, :value, :generation, 0, 0, :paused, 0, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))

-- name: next_release
SELECT key_digest, key_json, generation, position, op, data_shard FROM [rowfeed_dead_letters]
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND state = :retry
ORDER BY first_at, key_digest OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: no_failure
failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL

-- name: none
1 = 0

-- name: not_released
UPDATE [rowfeed_dead_letters] SET state = :aside, attempts = attempts + 1, error = :error, last_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest
  AND generation = :generation AND position = :position AND state = :retry

-- name: one_of
key_digest IN (:digests)

-- name: parts
shard_count > 1 AND NOT EXISTS (SELECT 1 FROM [rowfeed_consumers] k
  WHERE k.consumer = [rowfeed_cursors].consumer AND k.feed = [rowfeed_cursors].feed)

-- name: ping
SELECT 1

-- name: processed_parts
SELECT DISTINCT generation, shard FROM [rowfeed_processed]
WHERE consumer = :consumer AND feed = :feed AND generation <= :generation

-- name: processed_without_stamp
SELECT COUNT_BIG(*) FROM [rowfeed_processed]
WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position = :position
  AND processed_at >= :published

-- name: purge_processed
DELETE FROM [rowfeed_processed]
WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position <= :last

-- name: raise_dropped_lease
UPDATE [rowfeed_leases] SET epoch = :epoch, acquired_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) WHERE name = :name AND epoch < :epoch

-- name: raise_epochs
UPDATE [rowfeed_cursors] SET epoch = :epoch WHERE :which

-- name: recovered
UPDATE [rowfeed_cursors] SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND version = :version

-- name: released
DELETE FROM [rowfeed_dead_letters] WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest
  AND generation = :generation AND position = :position AND state = :retry

-- name: save_cursor
UPDATE [rowfeed_cursors]
SET shard_count = :shard_count, value = :value, generation = :generation, epoch = :epoch, paused = :paused,
  aside = :aside, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())
WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: selected_letters
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error,
  first_at, last_at, key_digest
FROM [rowfeed_dead_letters] WHERE :which
ORDER BY consumer, feed, shard, first_at, key_digest OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: set_aside
INSERT INTO [rowfeed_dead_letters] (consumer, feed, shard, key_digest, key_json, generation, position, op, state, attempts, collapsed, error, first_at, last_at, data_shard) SELECT :consumer, :feed, :shard, :digest, :key, :generation, :position, :op, :aside, :attempts, 0, :error, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), :data_shard WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_dead_letters] WITH (UPDLOCK, SERIALIZABLE) WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest)

-- name: set_count_of_consumers
UPDATE [rowfeed_consumers] SET shard_count = :shard_count, version = version + 1 WHERE :which

-- name: set_count_of_cursors
UPDATE [rowfeed_cursors] SET shard_count = :shard_count, version = version + 1 WHERE :which

-- name: shards_in_state
SELECT DISTINCT shard FROM [rowfeed_dead_letters] WHERE consumer = :consumer AND feed = :feed AND state = :state

-- name: target
UPDATE [rowfeed_cursors] SET target = :target WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: unchanged_letter
consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest
  AND generation = :generation AND position = :position AND state = :retry

-- name: values
SELECT value FROM [rowfeed_cursors] WHERE consumer = :consumer AND feed = :feed

