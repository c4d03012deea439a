-- Positions in the rows of the user's table, for feeds with capture "column".
--
-- The transaction has the only write lock. So there is no row to skip, and rows stay as they are between two
-- statements.

-- name: waiting_keys
-- The keys of the rows that place_rows is about to number. The client computes their data shards.
SELECT {{read_row "t"}} FROM {{source}} t :waiting LIMIT :limit

-- name: place_rows
-- The data shards are text of five digits each, in which the n-th one is found by its offset. SQLite may read a list
-- that is joined once for every row.
UPDATE {{source}} AS r SET feed_sync_id = :base + j.n
{{- if .KeyShards}}, shard = CAST(substr(:shards, j.n * 5 - 4, 5) AS INTEGER){{end}}
FROM (SELECT *, row_number() OVER (ORDER BY {{template "order_of_numbered" .}}) AS n
  FROM (SELECT {{numbered_row "t"}} FROM {{source}} t :waiting LIMIT :limit)) j
WHERE {{template "is_numbered" .}}

-- name: order_of_numbered
{{range $i, $c := .Key}}{{if $i}}, {{end}}k{{$i}}{{$c.Collate}}{{end}}

-- name: is_numbered
-- The left side decides the collation, which is that of the key's index.
{{range $i, $c := .Key}}{{if $i}} AND {{end}}j.k{{$i}}{{$c.Collate}} = r.{{quote $c.Name}}{{end}}

-- name: open_fence
INSERT INTO {{batch}} (open) VALUES (1)

-- name: close_fence
DELETE FROM {{batch}}

-- name: clear_positions
-- The entry of a key in the table of positions is deleted, unless the key is hidden.
DELETE FROM {{positions}} WHERE hidden = 0 AND ({{key}}) IN (SELECT {{row "t"}} FROM {{source}} t
  WHERE t.feed_sync_id > :base AND t.feed_sync_id <= :last)

-- name: reset_rows
UPDATE {{source}} AS t SET feed_sync_id = NULL WHERE

-- name: set_shards
-- One key after the other, each found by its position. In a join with a list SQLite chooses the order. With statistics
-- from a time when the table was small, it reads the list again for every key of the table.
UPDATE {{positions}} SET shard = :shard, bucket = :bucket WHERE feed_sync_id = :position

-- name: set_shards_of_rows
UPDATE {{source}} SET shard = :shard WHERE feed_sync_id = :position
