-- Changes, positions and tombstones of sequence feeds, if their statements are the same for every database.

-- name: record_rows
-- A limit makes the database run the query before the first insert: on MariaDB no other session can draw a number while
-- an INSERT … SELECT runs. :all is the largest number, so that it cuts no row off. See dialect.Syntax.DrawsUncut.
INSERT INTO {{changes}} ({{key}}, kind) SELECT {{numbered "x"}}, :kind
FROM (SELECT {{numbered_row "t"}} {{template "rows" .}} {{uncut_in_order "t" ":all"}}) x
{{- with order_of_draws "x"}} {{.}}{{end}}

-- name: record_key
INSERT INTO {{changes}} ({{key}}, kind) VALUES (:values, :kind)

-- name: rows
FROM {{source}} t WHERE {{with has_key "t"}}{{.}} AND {{end}}:which

-- name: last_key
-- The key of the row after the first :others rows, in key order.
SELECT {{read_row "t"}} {{template "rows" .}} ORDER BY {{ordered "t"}} {{skip ":others"}}

-- name: count_rows
SELECT {{count}} {{template "rows" .}}

-- name: count_of_key
-- The rows and the positions of a key.
SELECT (SELECT count(*) FROM {{source}} x WHERE :has_row) + (SELECT count(*) FROM {{positions}} x WHERE :has_position)

-- name: waiting_rows
SELECT {{read_row "t"}} FROM {{source}} t WHERE t.feed_sync_id IS NULL ORDER BY {{ordered "t"}} {{limit ":count"}}

-- name: count_waiting_rows
SELECT count(*) FROM (SELECT feed_sync_id FROM {{source}} WHERE feed_sync_id IS NULL {{at_most ":count"}}) x

-- name: count_placed_rows
SELECT {{count}} FROM {{source}} WHERE feed_sync_id > :base

-- name: foreign_positions
-- Positions above :base that the pass has not given. The pass has given the positions above :first, up to :last, to one
-- row each.
SELECT feed_sync_id FROM {{source}} WHERE feed_sync_id > :base
GROUP BY feed_sync_id HAVING count(*) > 1 OR feed_sync_id <= :first OR feed_sync_id > :last
ORDER BY feed_sync_id {{limit ":count"}}

-- name: positions_above_sequence
SELECT t.feed_sync_id FROM {{table "sequences"}} s JOIN {{source}} t ON t.feed_sync_id > s.value
WHERE s.name = {{feed}} ORDER BY t.feed_sync_id {{limit ":count"}}

-- name: lowest_change
SELECT seq FROM {{changes}} ORDER BY seq ASC {{limit "1"}}

-- name: highest_change
SELECT seq FROM {{changes}} ORDER BY seq DESC {{limit "1"}}

-- name: tombstones
SELECT feed_sync_id, {{now}} - published_at FROM {{positions}}
WHERE deleted = 1 AND hidden = 0 AND feed_sync_id >= :from
ORDER BY feed_sync_id {{limit ":count"}}

-- name: all_tombstones
-- Without a condition on positions a database may choose the index of tombstones.
SELECT feed_sync_id, {{now}} - published_at FROM {{positions}}
WHERE deleted = 1 AND hidden = 0
ORDER BY feed_sync_id {{limit ":count"}}

-- name: delete_tombstones
DELETE FROM {{positions}} WHERE deleted = 1 AND feed_sync_id IN (:positions)

-- name: raise_tombstones_below
UPDATE {{table "feeds"}} SET tombstones_below = :highest WHERE name = :feed AND tombstones_below < :highest

-- name: head
-- :hint and :unlocked are dialect.Syntax.SkipLockedHint and SkipLocked: they leave out a row that a pass has locked.
SELECT value FROM {{table "sequences"}}:hint WHERE name = :feed :unlocked

-- name: advance
-- It changes no row in four cases. The version is another: an in-house publisher that does not lock the row has
-- advanced the sequence. The generation is another: the feed was dropped, and another one was added under its name. The
-- number of data shards is another: the transaction has assigned shards of the former number. The positions are being
-- moved out of the rows, and the transaction has written positions into rows.
UPDATE {{table "sequences"}} SET value = :head, term = :term, version = version + 1, updated_at = :now
WHERE name = :feed AND version = :version
  AND EXISTS (SELECT 1 FROM {{table "feeds"}}
    WHERE name = :feed AND generation = :generation AND data_shards = :data_shards
      {{- if .InRows}} AND capture = {{literal "column"}}{{end}})

-- name: published_here
-- It returns a row unless another publisher than rowfeed's gives the feed's positions.
SELECT 0 FROM {{table "feeds"}} WHERE name = {{feed}} AND state <> :elsewhere

-- name: failed
-- A :pause of NULL means that there is no next pass.
UPDATE {{table "feeds"}}
SET failure = :failure, failing_since = COALESCE(failing_since, {{now}}), attempts = :attempts,
  next_try = {{now}} + :pause
WHERE name = :feed

-- name: recovered
UPDATE {{table "feeds"}} SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL
WHERE name = :feed AND failure IS NOT NULL
