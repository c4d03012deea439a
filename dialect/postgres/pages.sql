-- Reading: pages, and scans for what waits. Nothing here locks anything.
--
-- A page is one statement, which has one snapshot. It always returns at least one row: the generation and the head come
-- from the page's snapshot even if the page is empty.

-- name: page
-- The narrow positions are cut to the limit first, in the order of their index. Only these keys are looked up in the
-- source. So the cost of a page does not depend on the size of the table.
{{template "begin_page" .}}
LEFT JOIN (SELECT {{key}}, feed_sync_id, shard, deleted, hidden, published_at
  FROM {{positions}}{{if .RowShards}} o{{end}}
  WHERE feed_sync_id > :after AND feed_sync_id <= {{template "head" .}}{{if .RowShards}} :of_part{{end}}
    AND {{template "not_old_tombstone"}}
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
{{template "end_page" .}}

-- name: page_of_part
-- The planner merges a UNION of the buckets in order only if its statistics say that the buckets are large. Otherwise
-- it reads each bucket as a whole, and sorts. So a bucket has a subquery of its own, and is cut: see
-- dialect.PageRows.EndAtCut.
--
-- Bucket and position are compared together, and ordered by both, so that only the index by bucket can be used. With
-- the statistics of a time when all rows were in one bucket, the index on positions alone looks cheaper.
{{template "begin_page" .}}
LEFT JOIN (SELECT x.* FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS b (n)
  CROSS JOIN LATERAL (
  SELECT {{key}}, feed_sync_id, shard, deleted, hidden, published_at
  FROM {{positions}}
  WHERE (bucket, feed_sync_id) > (b.n, :after) AND (bucket, feed_sync_id) <= (b.n, {{template "head" .}})
    AND shard >= :from AND shard < :to
    AND {{template "not_old_tombstone"}}
  ORDER BY bucket, feed_sync_id LIMIT :share) x
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
{{template "end_page" .}}

-- name: page_of_rows
-- The position of a key is in its row, unless the key is hidden or was republished since. Both tables are read in the
-- order of their own index, and cut. While positions are moved out of rows, both can have a key at the same position.
{{template "begin_page" .}}
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT {{key}}, feed_sync_id, shard, deleted, hidden, published_at
  FROM {{positions}}{{if .OwnShard}} o{{end}}
  WHERE feed_sync_id > :after AND feed_sync_id <= {{template "head" .}} :of_part
    AND {{template "not_old_tombstone"}}
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT {{row_as_key "r"}}, r.feed_sync_id AS feed_sync_id,
    {{shard_of_row "r"}} AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM {{source}} r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= {{template "head" .}} :row_of_part
    AND NOT EXISTS (SELECT 1 FROM {{positions}} h
      WHERE {{row_of "r" "h"}} AND (h.hidden = 1 OR h.feed_sync_id >= r.feed_sync_id))
  ORDER BY r.feed_sync_id LIMIT :limit) placed) both_parts
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
{{template "end_page" .}}

-- name: of_part
-- A delete whose shard is not known any more belongs to all parts. A row that was inserted since gets a position of its
-- own.
{{if .OwnShard}}AND (shard >= :from AND shard < :to OR shard < 0 AND (hidden = 1 OR deleted = 1
    AND NOT EXISTS (SELECT 1 FROM {{source}} t WHERE {{row_of "t" "o"}})))
{{- else}}AND shard >= :from AND shard < :to{{end}}

-- name: row_of_part
AND {{shard_of_row "r"}} >= :from AND {{shard_of_row "r"}} < :to

-- name: begin_page
-- The text of a key comes from the table of positions, because the row may spell the key in another way. Key columns
-- are never NULL, so NULL means that the join has found no row.
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  {{if .ReadsRows}}CASE WHEN {{template "still_in_rows" .}} THEN :signature ELSE '' END{{else}}:signature{{end}},
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN {{one_of_row "t"}} IS NULL THEN 0 ELSE 1 END, {{values "p" "t"}}
FROM {{table "feeds"}} f
JOIN {{sequence}} s ON s.name = f.name

-- name: end_page
-- LATERAL with OFFSET 0 finds each row by its key, in a subquery of its own. With the statistics of a table that was
-- almost empty, the planner would read the whole source table once.
LEFT JOIN LATERAL (SELECT * FROM {{source}} t WHERE {{row_of "t" "p"}} OFFSET 0) t ON true
WHERE f.name = :feed
:order

-- name: in_order
ORDER BY p.feed_sync_id LIMIT :limit

-- name: in_any_order
-- A page has at most so many rows already.
LIMIT :more

-- name: head
(SELECT value FROM {{sequence}}{{if .Elsewhere}} s{{end}} WHERE name = :feed)

-- name: not_old_tombstone
-- A reader that started at the beginning when the head was at :mark has never seen the keys that were deleted by then.
NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: signature
:columns

-- name: still_in_rows
-- If this is false, positions were moved out of the rows since the caller read the feed's record. Other programs may
-- now write any number into the column, so the caller has to read the record again.
{{if .Moving}}f.state = {{literal "moving"}}{{else}}f.capture = {{literal "column"}}{{end}}

-- name: signature_if_served
-- The caller's record of the feed may be older, or from another server, although it has the same generation.
CASE WHEN f.state IN (:unserved) OR f.data_shards <> :data_shards THEN '' ELSE {{template "signature"}} END

-- name: blocking_page
-- A page of one shard, along the unique index of shard and ULID. Rows are ordered by the column itself. The page may
-- read it as text, whose collation can have another order. A feed that was dropped has a record, but no sequence.
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), ({{template "greatest_ulid" .}}), 0, 0, 0, :signature,
  p.place, p.present, {{value_names "p"}}
FROM {{table "feeds"}} f
JOIN {{table "sequences"}} s ON s.name = f.name
LEFT JOIN {{table "shards"}} h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT {{ulid "t"}} AS ordered, {{read_ulid "t"}} AS place, 1 AS present, {{numbered_values "t" "t"}}
  FROM {{source}} t
  WHERE {{shard "t"}} = CAST(:shard AS bigint) AND {{ulid "t"}} > :after
  ORDER BY {{ulid "t"}} LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: outbox_page
-- The row of a place may be deleted by now. Whether a record waits is read together with the head. So no record is
-- missed between the two: it waits until its move is committed, and then its place is not above the head. live_from is
-- where the live part of the shard begins: 0 if neither a record nor back-fill has begun it.
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), ({{template "greatest_ulid" .}}), COALESCE(:waiting, 0),
  CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), :signature,
  p.place, p.present, {{value_names "p"}}
FROM {{table "feeds"}} f
JOIN {{table "sequences"}} s ON s.name = f.name
LEFT JOIN {{table "shards"}} h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT {{ulid "g"}} AS ordered, {{read_ulid "g"}} AS place,
    CASE WHEN {{one_of_row "t"}} IS NULL THEN 0 ELSE 1 END AS present, {{numbered_values "g" "t"}}
  FROM {{places}} g LEFT JOIN {{source}} t ON {{row_of "t" "g"}}
  WHERE {{shard "g"}} = CAST(:shard AS bigint) AND {{ulid "g"}} > :after
  ORDER BY {{ulid "g"}} LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: greatest_ulid
SELECT {{read_ulid "g"}} FROM {{ulids}} g WHERE {{shard "g"}} = CAST(:shard AS bigint)
ORDER BY {{ulid "g"}} DESC LIMIT 1

-- name: signature_here
-- If the database has another identity than the feed's, commits may have been lost, and writers may have given their
-- ULIDs again: later ULIDs hide that.
CASE WHEN f.database_identity <> :identity THEN ''{{if not .Outbox}} WHEN NOT {{template "indexed" .}} THEN ''{{end}}
  ELSE {{template "signature"}} END

-- name: signature_anywhere
{{if .Outbox}}{{template "signature"}}{{else}}CASE WHEN NOT {{template "indexed" .}} THEN ''
  ELSE {{template "signature"}} END{{end}}

-- name: indexed
-- Without the unique index two rows could have the same position. The catalog's own index makes this one lookup,
-- whatever plans the session's settings allow.
EXISTS (SELECT 1 FROM pg_catalog.pg_index i
  WHERE i.indexrelid = CAST({{literal .ULIDs.IndexMade}} AS oid) AND i.indisvalid)

-- name: all_changes
FROM {{changes}}

-- name: changes_between
-- The ends of ranges are parameters, so that there are few different statements.
FROM {{changes}} WHERE seq BETWEEN :first AND :last

-- name: changes_above
FROM {{changes}} WHERE seq > :above

-- name: all_records
FROM {{records}}

-- name: records_between
FROM {{records}} WHERE order_sequence BETWEEN :first AND :last

-- name: records_above
FROM {{records}} WHERE order_sequence > :above

-- name: all_of_shard
-- The shard is a range: only the index of shard and order_sequence has the order of the query then. Otherwise a planner
-- that expects many records of the shard would scan the primary key, through the records of all other shards.
FROM {{records}} WHERE shard BETWEEN :shard AND :shard :but ORDER BY shard, order_sequence

-- name: of_shard_between
FROM {{records}} WHERE (shard, order_sequence) >= (:shard, :first) AND (shard, order_sequence) <= (:shard, :last) :but
ORDER BY shard, order_sequence

-- name: of_shard_above
FROM {{records}} WHERE (shard, order_sequence) > (:shard, :above) AND shard <= :shard :but
ORDER BY shard, order_sequence

-- name: newest_of_shard
SELECT order_sequence FROM {{records}} WHERE shard BETWEEN :shard AND :shard
ORDER BY shard DESC, order_sequence DESC LIMIT 1

-- name: first_shard
SELECT shard FROM {{records}} ORDER BY shard LIMIT 1

-- name: next_shard
SELECT shard FROM {{records}} WHERE shard > :above ORDER BY shard LIMIT 1
