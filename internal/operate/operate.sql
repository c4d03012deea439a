-- What status, check and repair read, and what repair records.
--
-- A rule is the FROM and WHERE of a query for the keys that break it, over the source (t), the positions (p) and the
-- changes (c). A key with a waiting change breaks no rule, except that a position is above the sequence. The changes
-- have no index on the key, since writers would pay for it. Every database builds an index or a hash of a DISTINCT
-- list. With NOT EXISTS, SQLite and MariaDB read all changes again for each key.

-- name: positions_and_rows
FROM {{positions}} p LEFT JOIN {{source}} t ON {{row_of "t" "p"}}

-- name: rows_and_positions
FROM {{source}} t LEFT JOIN {{positions}} p ON {{row_of "t" "p"}}

-- name: position_above_sequence
{{template "positions_and_rows" .}} JOIN {{table "sequences"}} s ON s.name = {{feed}}
WHERE (p.feed_sync_id > s.value)

-- name: row_outside_sequence
-- With capture "column".
{{template "rows_and_positions" .}} JOIN {{sequence}} s ON s.name = {{feed}}
WHERE (t.feed_sync_id > s.value OR t.feed_sync_id < 1)

-- name: row_without_position
-- Not with capture "column".
{{template "rows_and_positions" .}} LEFT JOIN (SELECT DISTINCT {{key}} FROM {{changes}}) c ON {{row_of "t" "c"}}
WHERE p.feed_sync_id IS NULL AND {{one_of_key "c"}} IS NULL{{with has_key "t"}} AND {{.}}{{end}}

-- name: position_without_row
{{template "positions_and_rows" .}} LEFT JOIN (SELECT DISTINCT {{key}} FROM {{changes}}) c ON {{same_key "c" "p"}}
WHERE p.deleted = 0 AND {{one_of_row "t"}} IS NULL AND {{one_of_key "c"}} IS NULL

-- name: deleted_position_with_row
{{template "positions_and_rows" .}} LEFT JOIN (SELECT DISTINCT {{key}} FROM {{changes}}) c ON {{same_key "c" "p"}}
WHERE p.deleted = 1{{if .InRows}} AND p.hidden = 0 AND t.feed_sync_id IS NOT NULL{{end}}
  AND NOT ({{one_of_row "t"}} IS NULL) AND {{one_of_key "c"}} IS NULL

-- name: find_positions
SELECT {{read_key "p"}} :rule {{at_most ":count"}}

-- name: find_rows
SELECT {{read_row "t"}} :rule {{at_most ":count"}}

-- name: count_vanished
SELECT {{count}} {{template "position_without_row" .}}

-- name: record_positions
-- The limit is as in package publish.
INSERT INTO {{changes}} ({{key}}, kind) SELECT {{numbered "x"}}, 0
FROM (SELECT {{numbered_key "p"}} :rule {{uncut ":all"}}) x

-- name: record_rows
INSERT INTO {{changes}} ({{key}}, kind) SELECT {{numbered "x"}}, 0
FROM (SELECT {{numbered_row "t"}} :rule {{uncut ":all"}}) x

-- name: record_placed
-- A hidden key is published as a delete, and stays hidden unless a waiting change shows it again.
INSERT INTO {{changes}} ({{key}}, kind) SELECT {{numbered "x"}}, :placed
FROM (SELECT {{numbered_key "p"}} FROM {{positions}} p WHERE p.feed_sync_id IN (:positions) {{uncut ":all"}}) x

-- name: shared_positions
-- Positions of more than one key.
SELECT feed_sync_id FROM {{positions}} GROUP BY feed_sync_id HAVING count(*) > 1

-- name: shared_positions_and_rows
SELECT feed_sync_id FROM (SELECT feed_sync_id FROM {{positions}}
  UNION ALL SELECT feed_sync_id FROM {{source}} WHERE feed_sync_id IS NOT NULL) x
GROUP BY feed_sync_id HAVING count(*) > 1

-- name: find_shared_positions
{{if .InRows}}{{template "shared_positions_and_rows" .}}{{else}}{{template "shared_positions" .}}{{end}} {{at_most ":count"}}

-- name: impossible_rows
-- A condition for rows (t) whose position cannot be right: below 1, above the sequence, or given to two keys. Positions
-- above :former, up to :now, are also impossible: see resetRows in repair.go.
t.feed_sync_id < 1 OR t.feed_sync_id > (SELECT value FROM {{table "sequences"}} WHERE name = :feed)
  OR t.feed_sync_id IN (SELECT feed_sync_id FROM ({{template "shared_positions_and_rows" .}}) shared)
  OR t.feed_sync_id > :former AND t.feed_sync_id <= :now

-- name: count_at_position
SELECT count(*) FROM {{source}} t WHERE t.feed_sync_id = :position

-- name: record_is_unchanged
SELECT count(*) FROM {{table "feeds"}} WHERE name = :feed AND generation = :generation
  AND data_shards = :data_shards AND state IN (:filling, :active)

-- name: sequence
SELECT s.value, s.updated_at, COALESCE(s.term, 0),
  (SELECT max(ended_at) FROM {{table "terms"}} t WHERE t.feed = s.name)
FROM {{sequence}} s WHERE s.name = :feed

-- name: head
SELECT value, {{now}} FROM {{sequence}}{{if .Elsewhere}} s{{end}} WHERE name = :feed

-- name: heads_of_shards
SELECT s.shard, (SELECT {{read_ulid "g"}} FROM {{ulids}} g WHERE {{shard "g"}} = s.shard
  ORDER BY {{ulid "g"}} DESC {{limit "1"}})
FROM {{table "shards"}} s WHERE s.feed = :feed ORDER BY s.shard {{limit ":count"}}

-- name: heads_of_named_shards
-- The named shards come first.
SELECT s.shard, (SELECT {{read_ulid "g"}} FROM {{ulids}} g WHERE {{shard "g"}} = s.shard
  ORDER BY {{ulid "g"}} DESC {{limit "1"}})
FROM {{table "shards"}} s WHERE s.feed = :feed
ORDER BY CASE WHEN s.shard IN (:named) THEN 0 ELSE 1 END, s.shard {{limit ":count"}}
