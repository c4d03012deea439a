-- Reading: pages, and scans for what waits. Nothing here locks anything.
--
-- A page is one statement, and so one snapshot of committed rows. It always answers at least one row: the generation
-- and the head come from the page's snapshot even if the page is empty.
--
-- The narrow positions are cut to the limit first, in the order of their index, and only these keys are looked up in
-- the source. LOOP JOIN and FORCE ORDER keep this order whatever the statistics; FORCESEEK looks each key up.

-- name: page
{{template "begin_page" .}}
LEFT JOIN (SELECT TOP (:limit) {{key}}, feed_sync_id, shard, deleted, hidden, published_at
  FROM {{positions}} WITH (INDEX(by_position), FORCESEEK)
  WHERE feed_sync_id > :after AND feed_sync_id <= {{template "head" .}}
    AND {{template "not_old_tombstone"}}
  ORDER BY feed_sync_id) AS p ON 1 = 1
{{template "end_page" .}}

-- name: page_of_part
{{template "begin_page" .}}
LEFT JOIN (SELECT TOP (:limit) x.* FROM (:buckets) AS x
  ORDER BY x.feed_sync_id) AS p ON 1 = 1
{{template "end_page" .}}

-- name: bucket
SELECT {{key}}, feed_sync_id, shard, deleted, hidden, published_at
  FROM {{positions}} WITH (INDEX(by_bucket), FORCESEEK)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= {{template "head" .}}
    AND shard >= :from AND shard < :to
    AND {{template "not_old_tombstone"}}

-- name: one_of_buckets
-- Each bucket is cut: see dialect.PageRows.EndAtCut. A merge of the buckets in order is possible, but nothing makes
-- the planner choose it.
SELECT * FROM ({{template "bucket" .}}
  ORDER BY feed_sync_id OFFSET 0 ROWS FETCH NEXT :share ROWS ONLY) AS b

-- name: page_of_rows
-- The position of a key is in its row, unless the key is hidden or was republished since. Both tables are read in the
-- order of their own index, and cut.
{{template "begin_page" .}}
LEFT JOIN (SELECT TOP (:limit) x.* FROM (
  SELECT * FROM (SELECT TOP (:limit) {{key}}, feed_sync_id, shard, deleted, hidden, published_at
    FROM {{positions}} WITH (INDEX(by_position), FORCESEEK)
    WHERE feed_sync_id > :after AND feed_sync_id <= {{template "head" .}} :of_part
      AND {{template "not_old_tombstone"}}
    ORDER BY feed_sync_id) AS own
  UNION ALL SELECT * FROM (SELECT TOP (:limit) {{row_as_key "r"}}, r.feed_sync_id AS feed_sync_id,
      COALESCE(r.shard, 0) AS shard, 0 AS deleted, 0 AS hidden, CONVERT(bigint, 0) AS published_at
    FROM {{source}} AS r WITH (INDEX({{object "row_position"}}), FORCESEEK)
    WHERE r.feed_sync_id > :after AND r.feed_sync_id <= {{template "head" .}} :row_of_part
      AND NOT EXISTS (SELECT 1 FROM {{positions}} AS h WITH (FORCESEEK)
        WHERE {{row_of "r" "h"}} AND (h.hidden = 1 OR h.feed_sync_id > r.feed_sync_id))
    ORDER BY r.feed_sync_id) AS placed) AS x
  ORDER BY x.feed_sync_id) AS p ON 1 = 1
{{template "end_page" .}}

-- name: of_part
AND shard >= :from AND shard < :to

-- name: row_of_part
AND COALESCE(r.shard, 0) >= :from AND COALESCE(r.shard, 0) < :to

-- name: begin_page
-- The text of a key is that of the table of positions: the row may spell it in another way. Key columns are never
-- NULL, so NULL means that the join has found no row.
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), :signature,
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN {{one_of_row "t"}} IS NULL THEN 0 ELSE 1 END, {{values "p" "t"}}
FROM {{table "feeds"}} AS f
JOIN {{sequence}} AS s ON s.name = f.name

-- name: end_page
LEFT JOIN {{source}} AS t WITH (FORCESEEK) ON {{row_of "t" "p"}}
WHERE f.name = :feed
:order
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: in_order
ORDER BY p.feed_sync_id OFFSET 0 ROWS FETCH NEXT :limit ROWS ONLY

-- name: in_any_order
-- A page has at most so many rows already.
ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT :more ROWS ONLY

-- name: head
(SELECT value FROM {{sequence}}{{if .Elsewhere}} s{{end}} WHERE name = :feed)

-- name: not_old_tombstone
-- A reader that started at the beginning when the head was at :mark has never seen the keys that were deleted by then.
NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: signature
-- It changes whenever the table does, also without a change of its columns. Then the caller describes the table again.
COALESCE((SELECT CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
    (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
  FROM sys.objects AS o WHERE o.object_id = OBJECT_ID({{literal source}})), N'')

-- name: signature_if_served
-- The caller may know an older state or number of data shards, or those of another server, in the same generation. The
-- page then has an empty signature, so that the caller does not use it.
CASE WHEN f.state IN (:unserved) OR f.data_shards <> :data_shards THEN N'' ELSE {{template "signature" .}} END

-- name: signature_here
-- If the database has another identity than the feed's, commits may have been lost, and writers may have given their
-- ULIDs again: later ULIDs hide that. An empty identity is unknown.
CASE WHEN f.database_identity <> NULLIF(@identity, N'') THEN N'' ELSE {{template "signature" .}} END

-- name: signature_anywhere
{{template "signature" .}}

-- name: blocking_page
-- A page of one shard, along the unique index of shard and ULID; the statement fails if the index is gone. It ends at
-- the greatest ULID of the snapshot. A feed that was dropped has a record, but no sequence.
SET NOCOUNT ON;
:identity
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), ({{template "greatest_ulid" .}}), 0, 0, 0, :signature, p.place, p.present,
  {{value_names "p"}}
FROM {{table "feeds"}} AS f
JOIN {{table "sequences"}} AS s ON s.name = f.name
LEFT JOIN {{table "shards"}} AS h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT TOP (:limit) {{read_ulid "t"}} AS place, 1 AS present, {{numbered_values "t" "t"}}
  FROM {{source}} AS t WITH (INDEX({{quote .ULIDs.Index}}), FORCESEEK)
  WHERE {{shard "t"}} = :shard AND {{ulid "t"}} > :after
  ORDER BY {{ulid "t"}}) AS p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.place
OPTION (FORCE ORDER, MAXDOP 1)

-- name: outbox_page
-- The row of a place may be deleted by now. Whether a record waits is read together with the head. So no record is
-- missed between the two: it waits until its move is committed, and then its place is not above the head. live_from is
-- where the live part of the shard begins: 0 if neither a record nor back-fill has begun it.
SET NOCOUNT ON;
:identity
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), ({{template "greatest_ulid" .}}), COALESCE(:waiting, 0),
  CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0), :signature, p.place, p.present,
  {{value_names "p"}}
FROM {{table "feeds"}} AS f
JOIN {{table "sequences"}} AS s ON s.name = f.name
LEFT JOIN {{table "shards"}} AS h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT TOP (:limit) {{read_ulid "g"}} AS place,
    CASE WHEN {{one_of_row "t"}} IS NULL THEN 0 ELSE 1 END AS present, {{numbered_values "g" "t"}}
  FROM {{places}} AS g WITH (INDEX({{quote .ULIDs.Index}}), FORCESEEK)
  LEFT JOIN {{source}} AS t WITH (FORCESEEK) ON {{row_of "t" "g"}}
  WHERE {{shard "g"}} = :shard AND {{ulid "g"}} > :after
  ORDER BY {{ulid "g"}}) AS p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.place
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1)

-- name: greatest_ulid
SELECT TOP (1) {{read_ulid "g"}} FROM {{ulids}} AS g WITH (INDEX({{quote .ULIDs.Index}}), FORCESEEK)
WHERE {{shard "g"}} = :shard ORDER BY {{ulid "g"}} DESC

-- name: all_changes
FROM {{changes}}

-- name: changes_between
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
-- With the statistics of an empty outbox, the planner would read all of it.
FROM {{records}} WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard :but ORDER BY order_sequence

-- name: of_shard_between
FROM {{records}} WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard AND order_sequence BETWEEN :first AND :last :but
ORDER BY order_sequence

-- name: of_shard_above
FROM {{records}} WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard AND order_sequence > :above :but
ORDER BY order_sequence

-- name: newest_of_shard
SELECT TOP (1) order_sequence FROM {{records}} WITH (INDEX(by_shard), FORCESEEK) WHERE shard = :shard
ORDER BY order_sequence DESC

-- name: first_shard
SELECT TOP (1) shard FROM {{records}} WITH (INDEX(by_shard)) ORDER BY shard

-- name: next_shard
SELECT TOP (1) shard FROM {{records}} WITH (INDEX(by_shard), FORCESEEK) WHERE shard > :above ORDER BY shard

-- name: open_state_of_head
-- What a reader's cursor is compared with, before its commit is visible. The level ends with this batch, which has
-- parameters.
SET NOCOUNT ON; SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
{{template "state_of_head" .}}

-- name: state_of_head
SELECT {{if .ULIDs}}CONCAT(f.generation, N' ', h.ulid_high, N' ', h.ulid_low)
FROM {{table "feeds"}} AS f LEFT JOIN {{table "shards"}} AS h ON h.feed = f.name AND h.shard = :shard
WHERE f.name = :feed
{{- else}}CONCAT(f.generation, N' ', s.value, N' ', s.term)
FROM {{sequence}} AS s JOIN {{table "feeds"}} AS f ON f.name = s.name
WHERE s.name = :feed{{end}}
