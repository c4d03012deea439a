-- The statements that make, fill, reshard and drop feeds, if they are the same for every database.

-- name: insert_sequence
-- its sequence
--
-- It has no term yet: the first publisher draws one.
INSERT INTO {{table "sequences"}} (name, value, version, updated_at) VALUES (:feed, :value, 0, {{now}})

-- name: count_null_keys
-- It reads the index of the key, and stops at :count.
SELECT count(*) FROM (SELECT 1 AS one FROM {{source}} t WHERE NOT ({{with has_key "t"}}{{.}}{{else}}1 = 1{{end}}) {{at_most ":count"}}) x

-- name: count_sequences
SELECT count(*) FROM {{table "sequences"}} WHERE name = :feed

-- name: raise_sequence
UPDATE {{table "sequences"}} SET value = :value, version = version + 1, updated_at = {{now}}
WHERE name = :feed AND value < :value

-- name: sequence_value
SELECT value FROM {{table "sequences"}} WHERE name = :feed

-- name: drop_sequence
DELETE FROM {{table "sequences"}} WHERE name = :feed

-- name: drop_terms
DELETE FROM {{table "terms"}} WHERE feed = :feed

-- name: drop_shards
DELETE FROM {{table "shards"}} WHERE feed = :feed

-- name: set_state
UPDATE {{table "feeds"}} SET state = :state, fill_after = NULL WHERE name = :feed

-- name: set_first_state
UPDATE {{table "feeds"}} SET state = :state WHERE name = {{feed}}

-- name: set_first_state_and_identity
UPDATE {{table "feeds"}} SET state = :state, database_identity = :identity WHERE name = {{feed}}

-- name: set_key_columns
UPDATE {{table "feeds"}} SET key_columns = :key WHERE name = :feed

-- name: set_source_schema
UPDATE {{table "feeds"}} SET source_schema = :schema WHERE name = :feed

-- name: feeds_left
SELECT name FROM {{table "feeds"}} WHERE state <> :dropped ORDER BY name

-- name: created_at
SELECT created_at FROM {{table "feeds"}} WHERE name = :feed

-- name: lock_record
UPDATE {{table "feeds"}} SET state = state WHERE name = :feed AND generation = :generation

-- name: state
SELECT state FROM {{table "feeds"}} WHERE name = :feed AND generation = :generation

-- name: set_identity
UPDATE {{table "feeds"}} SET database_identity = :identity WHERE name = :feed

-- name: set_unknown_identity
UPDATE {{table "feeds"}} SET database_identity = :identity WHERE name = :feed AND database_identity IS NULL

-- name: forget_identity
-- the next publisher saves the identity of its database
UPDATE {{table "feeds"}} SET database_identity = NULL WHERE name = {{feed}}

-- name: bump_sequence
-- wait for a publisher that is in a pass
--
-- A publisher holds the lock on this row until its commit.
UPDATE {{table "sequences"}} SET version = version + 1 WHERE name = {{feed}}

-- name: bump
-- from now on cursors of the former generation are refused
UPDATE {{table "feeds"}}
SET generation = CASE WHEN ROUND({{now}} / 1000000, 0) > generation + 1 THEN ROUND({{now}} / 1000000, 0)
    ELSE generation + 1 END,
  database_identity = :identity
WHERE name = {{feed}}

-- name: begin_sharding
-- publishers and pages that were made for the former number notice it by data_shards
UPDATE {{table "feeds"}} SET state = :sharding, fill_after = NULL, data_shards = :data_shards
WHERE name = :feed AND state = :active AND generation = :generation

-- name: begin_moving
-- publishers that write positions into rows notice it by the capture
UPDATE {{table "feeds"}} SET state = :moving, capture = :trigger, fill_after = NULL, options = :options
WHERE name = :feed AND generation = :generation AND state = :active AND capture = :column

-- name: moved_shard
-- A publisher has written it, unless the table's owner does.
{{if .OwnShard}}{{own_shard "t"}}{{else -}}
CASE WHEN t.shard >= 0 AND t.shard < {{.DataShards}} THEN t.shard ELSE 0 END{{end}}

-- name: move_positions
-- It copies the positions of rows whose keys have none in the table of positions. A position that another program has
-- given may be above the sequence, or may belong to several keys: record_unmoved records such rows. The time at which
-- the row was published is unknown. The row gets the earliest known time after it: the time of the next higher
-- position, or of the sequence. With an earlier time, a reader that starts at a time would miss the row.
INSERT INTO {{positions}} ({{key}}, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT {{row "t"}}, t.feed_sync_id, :shard, :bucket, 0, 0, COALESCE((SELECT b.published_at FROM {{positions}} b
    WHERE b.feed_sync_id > t.feed_sync_id ORDER BY b.feed_sync_id {{limit "1"}}),
  :published)
FROM {{source}} t
WHERE :which AND t.feed_sync_id >= 1 AND t.feed_sync_id <= :since
  AND NOT EXISTS (SELECT 1 FROM {{positions}} h WHERE {{row_of "t" "h"}})
  AND NOT EXISTS (SELECT 1 FROM {{positions}} h WHERE h.feed_sync_id = t.feed_sync_id)
  AND (SELECT count(*) FROM {{source}} o WHERE o.feed_sync_id = t.feed_sync_id) = 1

-- name: record_unmoved
-- It records rows that the table of positions does not have as they are: pending rows, and rows whose position another
-- program gave. A key with a position above :since was published after the triggers were made, so it is left out. The
-- limit is as in package publish.
INSERT INTO {{changes}} ({{key}}, kind) SELECT {{numbered "x"}}, 0
FROM (SELECT {{numbered_row "t"}} FROM {{source}} t
  WHERE :which AND NOT EXISTS (SELECT 1 FROM {{positions}} h WHERE {{row_of "t" "h"}} AND (h.feed_sync_id > :since
    OR h.deleted = 0 AND t.feed_sync_id IS NOT NULL AND (h.hidden = 1 OR h.feed_sync_id >= t.feed_sync_id)))
  {{uncut_in_order "t" ":all"}}) x{{with order_of_draws "x"}} {{.}}{{end}}

-- name: begin_filling
UPDATE {{table "feeds"}} SET state = :filling, fill_after = NULL, options = :options
WHERE name = :feed AND generation = :generation AND state = :active

-- name: unchanged
-- The record has the generation, the number of data shards, the state and the mark that were read. A later walk to the
-- same number of data shards may continue from the same mark, because both walks did the same up to it. :mark is one of
-- the next two.
name = :feed AND generation = :generation AND data_shards = :data_shards AND state = :state AND :mark

-- name: no_mark
fill_after IS NULL

-- name: same_mark
fill_after = :mark

-- name: count_unchanged
SELECT count(*) FROM {{table "feeds"}} WHERE :unchanged

-- name: save_mark
UPDATE {{table "feeds"}} SET fill_after = :to WHERE :unchanged

-- name: end_walk
UPDATE {{table "feeds"}} SET state = :active, fill_after = NULL WHERE :unchanged

-- name: purged_shards
SELECT count(*) FROM {{table "shards"}} WHERE feed = :feed AND (below_high <> 0 OR below_low <> 0)

-- name: set_filled_by
UPDATE {{table "shards"}} SET filled_by = :run WHERE feed = :feed AND shard = :shard AND filled_by = 0

-- name: insert_shard
{{insert_new "shards" "feed, shard, time_ms, ulid_high, ulid_low, witness" ":feed, :shard, :time, :high, :low, ''"
  "feed, shard"}}

-- name: raise_shard
-- The row of a shard may be from an earlier attempt. Its ULID may then be below rows that were written since.
UPDATE {{table "shards"}} SET time_ms = :time, ulid_high = :high, ulid_low = :low
WHERE feed = :feed AND shard = :shard AND time_ms < :time

-- name: insert_shards
-- new ULIDs are above the existing rows of their shard; the unique index on both columns, the shard first, must exist
INSERT INTO {{table "shards"}} (feed, shard, time_ms, ulid_high, ulid_low, witness)
SELECT {{feed}}, x.shard, :time, :high, :low, ''
FROM (SELECT s.shard, (SELECT {{ulid "g"}} FROM {{source}} g WHERE {{shard "g"}} = s.shard
    ORDER BY {{ulid "g"}} DESC {{limit "1"}}) AS highest
  FROM (SELECT DISTINCT {{shard "g"}} AS shard FROM {{source}} g) s) x

-- name: count_rows_without_ulid
-- :from is catalog.WithoutULID.
SELECT {{count}} :from

-- name: rows_where
FROM {{source}} t WHERE :condition

-- name: first_row
SELECT {{read_row "t"}} :from {{at_most "1"}}

-- name: record_all_rows
-- the rows that the table already has; `rowfeed feed add` does this in resumable batches
INSERT INTO {{changes}} ({{key}})
SELECT {{row}} FROM {{source}}

-- name: end_of_batch
-- The last of :count positions, or :to.
SELECT COALESCE(max(x.at), :to) FROM (SELECT p.feed_sync_id AS at FROM {{positions}} p
  WHERE p.feed_sync_id > :above AND p.feed_sync_id <= :to ORDER BY p.feed_sync_id {{limit ":count"}}) x

-- name: record_vanished
-- It records keys whose row is gone, among positions that are not deletes. The limit is as in package publish.
INSERT INTO {{changes}} ({{key}}, kind) SELECT {{numbered "x"}}, 0
FROM (SELECT {{numbered_key "p"}} FROM {{positions}} p
  WHERE p.feed_sync_id > :above AND p.feed_sync_id <= :to AND p.deleted = 0
    AND (SELECT 1 FROM {{source}} t WHERE {{row_of "t" "p"}} {{uncut "1"}}) IS NULL
  {{uncut ":all"}}) x

-- name: bounds_of_positions
SELECT min(feed_sync_id), max(feed_sync_id) FROM {{source}}

-- name: shared_position
SELECT feed_sync_id FROM {{source}} WHERE feed_sync_id IS NOT NULL
GROUP BY feed_sync_id HAVING count(*) > 1 ORDER BY feed_sync_id {{limit "1"}}

-- name: highest_position
SELECT max(feed_sync_id) FROM {{source}}

-- name: recent_shared_position
SELECT feed_sync_id FROM (SELECT feed_sync_id FROM {{positions}} WHERE feed_sync_id > :from
  UNION ALL SELECT feed_sync_id FROM {{source}} WHERE feed_sync_id > :from) x
GROUP BY feed_sync_id HAVING count(*) > 1 ORDER BY feed_sync_id {{limit "1"}}

-- name: rows_outside_shards
-- It reads the whole table if there are none.
SELECT {{template "own_value" .}}, {{read_row "t"}} FROM {{source}} t WHERE {{own_shard "t"}} < 0 {{at_most ":count"}}

-- name: own_value
{{with .OwnShard}}t.{{quote .}}{{else}}0{{end}}

-- name: recent_rows_outside_shards
SELECT {{template "own_value" .}}, {{read_row "t"}} FROM {{source}} t
WHERE t.feed_sync_id > :from AND {{own_shard "t"}} < 0 {{at_most ":count"}}

-- name: positions_outside_shards
-- They are at the beginning of the index by bucket. A key that was deleted keeps the shard -1.
SELECT {{template "own_value" .}}, {{read_row "t"}} FROM {{positions}} p JOIN {{source}} t ON {{row_of "t" "p"}}
WHERE p.bucket = -1 AND p.deleted = 0 {{at_most ":count"}}

-- name: gains_shard
t.feed_sync_id > :from AND {{own_shard "t"}} < 0 AND :in_shard

-- name: count_gaining_shard
SELECT {{count}} FROM {{source}} t WHERE {{own_shard "t"}} < 0 AND :in_shard

-- name: in_shard
{{own_shard "t"}} >= 0

-- name: record_shardless
-- A hidden key is published as a delete, and stays hidden.
INSERT INTO {{changes}} ({{key}}, kind) SELECT {{numbered "x"}}, :placed
FROM (SELECT {{numbered_key "p"}} FROM {{positions}} p WHERE p.feed_sync_id IN (:positions) {{uncut ":all"}}) x

-- name: highest_shard
SELECT max(shard) FROM {{positions}} WHERE bucket >= :bucket

-- name: former_sequence
SELECT value FROM :table WHERE name = :name

-- name: count_former_sequences
SELECT count(*) FROM :table WHERE name = :name

-- name: lock_former_sequence
-- :unlocked is dialect.Syntax.SkipLocked: it leaves the row out while a pass has locked it.
SELECT value FROM :table WHERE name = :name :unlocked

-- name: take_over
UPDATE {{table "feeds"}} SET state = :active, options = :options WHERE name = :feed AND state = :elsewhere

-- name: head_elsewhere
SELECT s.value FROM {{sequence}} s WHERE s.name = :feed

-- name: former_cursors
SELECT name, :position, COALESCE(:shard, 0), COALESCE(:shard_count, 1) FROM :table ORDER BY name, :position

-- name: former_cursors_of_feed
SELECT name, :position, COALESCE(:shard, 0), COALESCE(:shard_count, 1) FROM :table WHERE feed = :feed ORDER BY name, :position

-- name: former_cursors_of_others
SELECT feed, count(*) FROM :table WHERE feed IS NULL OR feed <> :feed GROUP BY feed
ORDER BY CASE WHEN feed IS NULL THEN 0 ELSE 1 END, feed

-- name: insert_cursor
{{insert_new "cursors"
  "consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at"
  (print ":consumer, :feed, 0, 1, :value, :generation, 0, 0, 0, 0, " now)
  "consumer, feed, shard"}}

-- name: sequence_left
SELECT value, COALESCE(term, 0) FROM {{table "sequences"}} WHERE name = :feed

-- name: set_tombstones_below
UPDATE {{table "feeds"}} SET tombstones_below = :below WHERE name = :feed

-- name: any_change
SELECT count(*) FROM (SELECT 1 AS n FROM :changes {{at_most "1"}}) x

-- name: highest_tombstone
SELECT COALESCE(max(feed_sync_id), 0) FROM {{positions}} WHERE deleted = 1

-- name: outdated
-- Rows with an outdated position: their keys were republished or hidden since, and have their positions in the table of
-- positions.
t.feed_sync_id IS NOT NULL AND EXISTS (SELECT 1 FROM {{positions}} p WHERE {{row_of "t" "p"}} AND p.deleted = 0)

-- name: count_outdated
SELECT {{count}} FROM {{source}} t WHERE :outdated

-- name: hand_back_sequence
UPDATE :table SET value = :value :version WHERE name = :name AND value = :was

-- name: hand_back_cursor
-- A former reader may have continued since an earlier attempt, so no cursor is set back.
UPDATE :table SET :position = :value WHERE name = :name AND {{template "behind"}}

-- name: behind
(:position < :value OR :position IS NULL)

-- name: hand_back_cursor_of_feed
UPDATE :table SET :position = :value WHERE name = :name AND feed = :feed AND {{template "behind"}}

-- name: letters_of_feed
SELECT consumer, position FROM {{table "dead_letters"}} WHERE feed = :feed

-- name: cursors_of_feed
SELECT consumer, shard, shard_count, value, generation FROM {{table "cursors"}} WHERE feed = :feed
ORDER BY consumer, shard
