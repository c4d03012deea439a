-- Cursors, dead letters and processed ids of consumers.
--
-- Cursors are one row for each shard. Every write increments version, except for failures and targets: a cursor that
-- was moved and moved back differs, and every database counts the row as affected. Transactions lock rows in one order:
-- the row of the consumer, then dead letters, then cursors by shard.
--
-- :which is the condition that selects the rows of consumers, feeds and shards: see Which.

-- name: columns
consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at, version, target,
  failure, failing_since, attempts, next_try

-- name: cursors
SELECT {{template "columns"}} FROM {{table "cursors"}} WHERE consumer = :consumer AND feed = :feed ORDER BY shard

-- name: cursor
SELECT {{template "columns"}} FROM {{table "cursors"}} WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: list_cursors
SELECT {{template "columns"}} FROM {{table "cursors"}} WHERE :which ORDER BY consumer, feed, shard

-- name: failing_cursors
SELECT {{template "columns"}} FROM {{table "cursors"}} WHERE failure IS NOT NULL AND paused = 0
ORDER BY consumer, feed, shard

-- name: count_cursors
SELECT count(*) FROM {{table "cursors"}} WHERE :which

-- name: values
SELECT value FROM {{table "cursors"}} WHERE consumer = :consumer AND feed = :feed

-- name: feeds
-- The feeds that a consumer reads, with its number of shards.
SELECT feed, max(shard_count) FROM {{table "cursors"}} WHERE consumer = :consumer GROUP BY feed ORDER BY feed

-- name: feeds_aside
SELECT DISTINCT consumer, feed FROM {{table "cursors"}} WHERE :which AND aside > 0

-- name: consumer
-- What a consumer of a ULID feed has once for all its shards.
SELECT shard_count, paused FROM {{table "consumers"}} WHERE consumer = :consumer AND feed = :feed

-- name: consumer_version
SELECT shard_count, version FROM {{table "consumers"}} WHERE consumer = :consumer AND feed = :feed

-- name: consumers
SELECT consumer, feed, shard_count, paused FROM {{table "consumers"}} WHERE :which

-- name: lock_consumers
UPDATE {{table "consumers"}} SET version = version + 1 WHERE :which

-- name: insert_consumer
{{insert_new "consumers" "consumer, feed, shard_count, paused, version" ":consumer, :feed, :shard_count, 0, 0"
  "consumer, feed"}}

-- name: set_count_of_consumers
UPDATE {{table "consumers"}} SET shard_count = :shard_count, version = version + 1 WHERE :which

-- name: set_count_of_cursors
UPDATE {{table "cursors"}} SET shard_count = :shard_count, version = version + 1 WHERE :which

-- name: drop_consumers
DELETE FROM {{table "consumers"}} WHERE :which

-- name: drop_cursors
DELETE FROM {{table "cursors"}} WHERE :which

-- name: drop_cursors_from
DELETE FROM {{table "cursors"}} WHERE consumer = :consumer AND feed = :feed AND shard >= :first

-- name: insert_cursor
{{insert_new "cursors"
  "consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at"
  (print ":consumer, :feed, :shard, :shard_count, :value, :generation, :epoch, 0, :paused, :aside, " now)
  "consumer, feed, shard"}}

-- name: insert_cursors
-- :rows are rows as in new_cursor.
INSERT INTO {{table "cursors"}} (consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside,
  updated_at)
VALUES :rows

-- name: new_cursor
(:consumer, :feed, :shard, :shard_count, :value, :generation, 0, 0, :paused, 0, {{now}})

-- name: no_failure
failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL

-- name: save_cursor
UPDATE {{table "cursors"}}
SET shard_count = :shard_count, value = :value, generation = :generation, epoch = :epoch, paused = :paused,
  aside = :aside, version = version + 1, {{template "no_failure"}}, updated_at = {{now}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: advance
-- Compare and set: if the row has changed, another instance has handled the page, or an operator has moved or paused
-- the cursor. The meaning of a cursor depends on shard_count and generation too, so all are compared. A paused consumer
-- stores nothing.
UPDATE {{table "cursors"}}
SET value = :to, generation = :to_generation, aside = :to_aside, version = version + 1,
  {{template "no_failure"}}, updated_at = {{now}}
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

-- name: claim_all
UPDATE {{table "cursors"}} SET epoch = :epoch, version = version + 1, updated_at = {{now}}
WHERE consumer = :consumer AND feed = :feed AND shard_count = :shard_count AND epoch < :epoch AND shard IN (:shards)

-- name: failed
-- It leaves version alone, so that it cannot overtake another instance. A :pause of NULL means that there is no next
-- attempt.
UPDATE {{table "cursors"}}
SET failure = :failure, failing_since = COALESCE(failing_since, {{now}}), attempts = :attempts,
  next_try = {{now}} + :pause
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND shard_count = :shard_count AND version = :version

-- name: failed_under_lease
-- Without a lease the cursor may still have an earlier epoch.
{{template "failed"}} AND epoch = :epoch

-- name: recovered
UPDATE {{table "cursors"}} SET {{template "no_failure"}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND version = :version

-- name: target
UPDATE {{table "cursors"}} SET target = :target WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: lock_cursors
UPDATE {{table "cursors"}} SET version = version + 1 WHERE :which

-- name: parts
-- Shards of ULID feeds keep their keys, so their workers may continue.
shard_count > 1 AND NOT EXISTS (SELECT 1 FROM {{table "consumers"}} k
  WHERE k.consumer = {{table "cursors"}}.consumer AND k.feed = {{table "cursors"}}.feed)

-- name: lock_parts
UPDATE {{table "cursors"}} SET version = version + 1 WHERE :which AND {{template "parts"}}

-- name: highest_epochs_of_parts
SELECT feed, MAX(epoch) FROM {{table "cursors"}} WHERE :which AND {{template "parts"}} GROUP BY feed ORDER BY feed

-- name: raise_epochs
UPDATE {{table "cursors"}} SET epoch = :epoch WHERE :which

-- name: highest_epochs
SELECT consumer, feed, MAX(epoch) FROM {{table "cursors"}} WHERE :which
GROUP BY consumer, feed HAVING MAX(epoch) > 0 ORDER BY feed

-- name: insert_dropped_lease
{{insert_new "leases" "name, owner, epoch, expires_at, acquired_at, renewals"
  (print ":name, '', :epoch, NULL, " now ", 0") "name"}}

-- name: raise_dropped_lease
UPDATE {{table "leases"}} SET epoch = :epoch, acquired_at = {{now}} WHERE name = :name AND epoch < :epoch

-- name: leases_of_shards
-- A condition on leases: those of the groups of consumers, and those of relays.
name >= :consumers AND name < :beyond_consumers OR name >= :relays AND name < :beyond_relays

-- name: leases_of_consumer
-- A condition on leases: those of a consumer's groups, whatever their number of shards, and that of a relay.
name >= :groups AND name < :beyond_groups OR name = :sole

-- name: selected_letters
SELECT consumer, feed, shard, data_shard, key_json, generation, position, op, state, attempts, collapsed, error,
  first_at, last_at, key_digest
FROM {{table "dead_letters"}} WHERE :which
ORDER BY consumer, feed, shard, first_at, key_digest {{limit ":count"}}

-- name: first_key
SELECT key_json FROM {{table "dead_letters"}} WHERE :which
ORDER BY consumer, feed, shard, first_at, key_digest {{limit "1"}}

-- name: count_letters
SELECT count(*) FROM {{table "dead_letters"}} WHERE :which

-- name: group_letters
SELECT consumer, feed, kind, count(*), min(first_at), max(last_at)
FROM (SELECT consumer, feed, {{template "error_group"}} AS kind, first_at, last_at
  FROM {{table "dead_letters"}} WHERE :which) g
GROUP BY consumer, feed, kind ORDER BY count(*) DESC, consumer, feed, kind {{limit ":count"}}

-- name: error_group
-- The text of an error without its numbers: feedtype.LetterGroup.Error. Not every database has regular expressions, but
-- all have replace(). The last replacements shorten up to 200 "#" in a row to one.
replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
  substring(error, 1, 200),
  '0', '#'), '1', '#'), '2', '#'), '3', '#'), '4', '#'), '5', '#'), '6', '#'), '7', '#'), '8', '#'), '9', '#'),
  '################', '#'), '####', '#'), '##', '#'), '##', '#'), '##', '#')

-- name: has_text
lower(error) LIKE lower(:part) ESCAPE '!'

-- name: has_text_or_group
(lower(error) LIKE lower(:part) ESCAPE '!' OR lower({{template "error_group"}}) LIKE lower(:part) ESCAPE '!')

-- name: in_group
{{template "error_group"}} = :group

-- name: one_of
key_digest IN (:digests)

-- name: none
1 = 0

-- name: begun_between
-- By time: PostgreSQL may look for digests in the list's index.
first_at >= :first AND first_at <= :last

-- name: ask_for_release
UPDATE {{table "dead_letters"}} SET state = :retry, last_at = {{now}} WHERE :which

-- name: drop_letters
DELETE FROM {{table "dead_letters"}} WHERE :which

-- name: count_dropped
UPDATE {{table "cursors"}} SET aside = aside - :dropped, version = version + 1
WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: forget_positions
UPDATE {{table "dead_letters"}} SET generation = -ABS(generation), op = :upsert WHERE :which

-- name: lock_letters
UPDATE {{table "dead_letters"}} SET collapsed = collapsed WHERE consumer = :consumer AND feed = :feed

-- name: letters_by_key
-- Two shards can have a dead letter of the same key, of two generations. The order puts the newer one last.
SELECT shard, key_digest, key_json, generation, position, data_shard FROM {{table "dead_letters"}}
WHERE consumer = :consumer AND feed = :feed ORDER BY key_digest, ABS(generation), last_at, shard

-- name: drop_letter
DELETE FROM {{table "dead_letters"}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest

-- name: move_letter
UPDATE {{table "dead_letters"}} SET shard = :to
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest

-- name: letters_in_state
SELECT COUNT(*) FROM {{table "dead_letters"}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND state = :state

-- name: shards_in_state
SELECT DISTINCT shard FROM {{table "dead_letters"}} WHERE consumer = :consumer AND feed = :feed AND state = :state

-- name: next_release
SELECT key_digest, key_json, generation, position, op, data_shard FROM {{table "dead_letters"}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND state = :retry
ORDER BY first_at, key_digest {{limit "1"}}

-- name: unchanged_letter
-- A dead letter as it was when it was read: no newer version has joined it.
consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest
  AND generation = :generation AND position = :position AND state = :retry

-- name: released
DELETE FROM {{table "dead_letters"}} WHERE {{template "unchanged_letter"}}

-- name: not_released
UPDATE {{table "dead_letters"}} SET state = :aside, attempts = attempts + 1, error = :error, last_at = {{now}}
WHERE {{template "unchanged_letter"}}

-- name: set_aside
{{insert_new "dead_letters"
  `consumer, feed, shard, key_digest, key_json, generation, position, op, state, attempts,
    collapsed, error, first_at, last_at, data_shard`
  (print `:consumer, :feed, :shard, :digest, :key, :generation, :position, :op, :aside, :attempts,
    0, :error, ` now `, ` now `, :data_shard`)
  "consumer, feed, shard, key_digest"}}

-- name: collapse
UPDATE {{table "dead_letters"}}
SET generation = :generation, position = :position, op = :op, data_shard = :data_shard, collapsed = collapsed + 1,
  last_at = {{now}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND key_digest = :digest

-- name: aside
SELECT key_digest, state FROM {{table "dead_letters"}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard

-- name: aside_among
SELECT key_digest, state FROM {{table "dead_letters"}}
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND (state = :retry OR key_digest IN (:digests))

-- name: end_pass
-- A key that was set aside before the pass and has not come in it is gone.
UPDATE {{table "dead_letters"}} SET op = :delete
WHERE consumer = :consumer AND feed = :feed AND shard = :shard AND generation < 0

-- name: mark_processed
{{insert_new "processed" "consumer, feed, generation, shard, position, processed_at"
  (print ":consumer, :feed, :generation, :shard, :position, " now)
  "consumer, feed, generation, shard, position"}}

-- name: processed_parts
SELECT DISTINCT generation, shard FROM {{table "processed"}}
WHERE consumer = :consumer AND feed = :feed AND generation <= :generation

-- name: processed_without_stamp
-- An id that was marked before entries had stamps, and not before this entry was published.
SELECT {{count}} FROM {{table "processed"}}
WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position = :position
  AND processed_at >= :published

-- name: end_of_batch
-- The position behind so many others.
SELECT position FROM {{table "processed"}}
WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position <= :last
ORDER BY position {{skip ":others"}}

-- name: purge_processed
DELETE FROM {{table "processed"}}
WHERE consumer = :consumer AND feed = :feed AND generation = :generation AND shard = :shard AND position <= :last

-- name: drop_processed
DELETE FROM {{table "processed"}} WHERE :which

-- name: ping
SELECT 1
