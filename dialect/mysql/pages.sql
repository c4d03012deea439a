-- Reading: pages, and scans for what waits. Nothing here locks a row.
--
-- A page is two statements, the head first. A read view of MariaDB is not atomic: with several publishers it can show
-- position n+1 without n. All that the first statement saw was committed before that statement ended, with every lower
-- position. So the second statement sees all of it. Each of the two answers at least one row, also if the page is
-- empty.

-- name: head
SELECT s.value, COALESCE(s.term, 0), f.generation, {{template "variables"}}
FROM {{sequence}} s JOIN {{table "feeds"}} f ON f.name = s.name
WHERE s.name = {{feed}}

-- name: head_of_shard
-- The state of the shard is read before the page. A reader that waits until the state changes must not have seen a
-- state of which the page lacks entries.
SELECT f.generation, {{template "variables"}}, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0),
  ({{template "greatest_ulid" .}}), {{template "record_waits" .}}, {{template "filling" .}}
FROM {{table "sequences"}} s JOIN {{table "feeds"}} f ON f.name = s.name
LEFT JOIN {{table "shards"}} h ON h.feed = f.name AND h.shard = :shard
WHERE f.name = :feed

-- name: state_of_head
-- What a reader's cursor is compared with. READ UNCOMMITTED shows it before its commit is visible.
SELECT {{if .ULIDs}}CONCAT_WS(' ', f.generation, h.ulid_high, h.ulid_low)
FROM {{table "feeds"}} f LEFT JOIN {{table "shards"}} h ON h.feed = f.name AND h.shard = :shard
WHERE f.name = {{feed}}
{{- else}}CONCAT_WS(' ', f.generation, s.value, s.term)
FROM {{sequence}} s JOIN {{table "feeds"}} f ON f.name = s.name
WHERE s.name = {{feed}}{{end}}

-- name: variables
-- The first three columns tell which log decides over a commit, and whether it is flushed at each commit. The others
-- are about statements outside of transactions: the session's unfit mode; 1 if each statement is a transaction of its
-- own that reads only committed rows; 1 if a transaction was left open, which may have an old snapshot. MySQL cannot
-- tell whether a transaction is open. So both last columns are 0 there: only MariaDB runs the text in /*M! */.
@@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, {{template "unfit"}},
/*M! @@SESSION.autocommit = 1 AND @@SESSION.tx_isolation IN ('READ-COMMITTED', 'REPEATABLE-READ') OR */ 0,
/*M! @@SESSION.in_transaction + */ 0

-- name: unfit
-- A mode in the session's sql_mode under which keys would be read as other keys, or NULL. In MariaDB's ORACLE and
-- EMPTY_STRING_IS_NULL an empty text is NULL. On MySQL, PAD_CHAR_TO_FULL_LENGTH adds blanks to a CHAR, which under the
-- default collations then equals no parameter. Other modes change nothing (TestSessionSettingsChangeNothing).
CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL'
  WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE'
  /*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END

-- name: page
-- The narrow positions are cut to the limit first, in the order of their index. Only these keys are looked up in the
-- source. So the cost of a page does not depend on the size of the table.
{{template "begin_page" .}}
LEFT JOIN (SELECT {{key}}, feed_sync_id, shard, deleted, hidden, published_at
  FROM {{positions}}{{if .RowShards}} o{{end}}
  WHERE feed_sync_id > :after AND feed_sync_id <= :head{{if .RowShards}} :of_part{{end}}
    AND {{template "not_old_tombstone"}}
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
{{template "end_page" .}}

-- name: page_of_part
{{template "begin_page" .}}
LEFT JOIN (:buckets
  ORDER BY feed_sync_id LIMIT :limit) p ON 1 = 1
{{template "end_page" .}}

-- name: bucket
SELECT {{key}}, feed_sync_id, shard, deleted, hidden, published_at
  FROM {{positions}} FORCE INDEX (bucket)
  WHERE bucket = :bucket AND feed_sync_id > :after AND feed_sync_id <= :head
    AND shard >= :from AND shard < :to
    AND {{template "not_old_tombstone"}}

-- name: one_of_buckets
-- The server reads each branch of a UNION to its end before it merges the branches. So each is cut: see
-- dialect.PageRows.EndAtCut.
({{template "bucket" .}}
  ORDER BY feed_sync_id LIMIT :share)

-- name: page_of_rows
-- The position of a key is in its row, unless the key is hidden or was republished since. Both tables are read in the
-- order of their own index, and cut. While positions are moved out of rows, both can have a key at the same position.
{{template "begin_page" .}}
LEFT JOIN (SELECT * FROM (SELECT * FROM (SELECT {{key}}, feed_sync_id, shard, deleted, hidden, published_at
  FROM {{positions}}{{if .OwnShard}} o{{end}}
  WHERE feed_sync_id > :after AND feed_sync_id <= :head :of_part
    AND {{template "not_old_tombstone"}}
  ORDER BY feed_sync_id LIMIT :limit) own
  UNION ALL SELECT * FROM (SELECT {{row_as_key "r"}}, r.feed_sync_id AS feed_sync_id,
    {{shard_of_row "r"}} AS shard, 0 AS deleted, 0 AS hidden, 0 AS published_at
  FROM {{source}} r
  WHERE r.feed_sync_id > :after AND r.feed_sync_id <= :head :row_of_part
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
-- The text of a key comes from the table of positions, because the row may spell it in another way. Key columns are
-- never NULL, so NULL means that the join has found no row.
SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0),
  {{if .ReadsRows}}CASE WHEN {{template "still_in_rows" .}} THEN :signature ELSE '' END{{else}}:signature{{end}},
  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,
  CASE WHEN {{one_of_row "t"}} IS NULL THEN 0 ELSE 1 END, {{values "p" "t"}}
FROM {{table "feeds"}} f
JOIN {{sequence}} s ON s.name = f.name

-- name: end_page
-- With statistics from a time when the source was empty, the planner would read the whole table for every page.
LEFT JOIN {{source}} t{{if .Primary}} FORCE INDEX (PRIMARY){{end}} ON {{row_of "t" "p"}}
WHERE f.name = :feed
:order

-- name: in_order
ORDER BY p.feed_sync_id LIMIT :limit

-- name: in_any_order
-- A page has at most so many rows already. But a session may have sql_select_limit, which cuts the result of a
-- statement that has no LIMIT.
LIMIT :more

-- name: not_old_tombstone
-- A reader that started at the beginning when the head was at :mark has never seen the keys that were deleted by then.
NOT (feed_sync_id <= :mark AND (deleted = 1 OR hidden = 1))

-- name: signature
-- The statement holds the source's metadata lock while it reads the catalog.
:columns

-- name: still_in_rows
-- This is false if positions were moved out of the rows after the caller has read the feed's record. Other programs may
-- now write any number into the column, so the caller has to read the record again.
{{if .Moving}}f.state = {{literal "moving"}}{{else}}f.capture = {{literal "column"}}{{end}}

-- name: signature_if_served
-- The caller may know an older state or number of data shards, or those of another server, in the same generation. The
-- page then has an empty signature, so that the caller does not use it.
CASE WHEN f.state IN (:unserved) OR f.data_shards <> :data_shards THEN '' ELSE {{template "signature"}} END

-- name: blocking_page
-- A page of one shard, along the unique index of shard and ULID. The statement fails if the index is gone. Rows are
-- ordered by the bare column, because the expression that reads it may have another order. A feed that was dropped
-- still has a row in the table of feeds. The join with the sequences leaves it out, because its sequence is gone.
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), :head, 0, 0, 0, :signature, p.place, p.present, {{value_names "p"}}
FROM {{table "feeds"}} f
JOIN {{table "sequences"}} s ON s.name = f.name
LEFT JOIN {{table "shards"}} h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT {{ulid "t"}} AS ordered, {{read_ulid "t"}} AS place, 1 AS present, {{numbered_values "t" "t"}}
  FROM {{source}} t FORCE INDEX ({{quote .ULIDs.Index}})
  WHERE {{shard "t"}} = CAST(:shard AS DECIMAL(20,0)) AND {{ulid "t"}} > :after AND {{ulid "t"}} <= :head
  ORDER BY {{ulid "t"}} LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: outbox_page
-- The row of a place may be deleted by now.
SELECT f.generation, COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), COALESCE(h.below_high, 0),
  COALESCE(h.below_low, 0), :head, {{template "record_waits" .}}, {{template "filling" .}}, :signature,
  p.place, p.present, {{value_names "p"}}
FROM {{table "feeds"}} f
JOIN {{table "sequences"}} s ON s.name = f.name
LEFT JOIN {{table "shards"}} h ON h.feed = f.name AND h.shard = :shard
LEFT JOIN (SELECT {{ulid "g"}} AS ordered, {{read_ulid "g"}} AS place,
    CASE WHEN {{one_of_row "t"}} IS NULL THEN 0 ELSE 1 END AS present, {{numbered_values "g" "t"}}
  FROM {{places}} g FORCE INDEX ({{quote .ULIDs.Index}}) LEFT JOIN {{source}} t ON {{row_of "t" "g"}}
  WHERE {{shard "g"}} = CAST(:shard AS DECIMAL(20,0)) AND {{ulid "g"}} > :after AND {{ulid "g"}} <= :head
  ORDER BY {{ulid "g"}} LIMIT :limit) p ON 1 = 1
WHERE f.name = :feed
ORDER BY p.ordered LIMIT :limit

-- name: greatest_ulid
SELECT {{read_ulid "g"}} FROM {{ulids}} g WHERE {{shard "g"}} = CAST(:shard AS DECIMAL(20,0))
ORDER BY {{ulid "g"}} DESC LIMIT 1

-- name: record_waits
-- It returns 1 if a record waits. The statement that contains it also reads the head, so a record that is being moved
-- is not missed: before the commit of its move it waits, and afterwards its ULID is not above the head.
{{if .Outbox}}COALESCE(:waiting, 0){{else}}0{{end}}

-- name: filling
-- It returns whether back-fill is placing rows, and the position at which the live part of the shard begins. The
-- position is 0 if the shard has neither moved records nor back-filled rows.
{{if .Outbox}}CASE WHEN f.state IN (:unserved) THEN 1 ELSE 0 END, COALESCE(h.live_from, 0){{else}}0, 0{{end}}

-- name: signature_here
-- It is empty if the database has another identity than the feed. Commits may then have been lost, and writers may have
-- allocated their ULIDs again. No reader could notice that from the ULIDs.
CASE WHEN f.database_identity <> :identity THEN '' ELSE {{template "signature"}} END

-- name: signature_anywhere
{{template "signature"}}

-- name: all_changes
FROM {{changes}}

-- name: changes_among
-- The numbers of gaps are listed one by one. A range that ends in deleted records is read far beyond its end, up to the
-- first record that exists. The hint keeps the planner from reading the index from its beginning.
FROM {{changes}} FORCE INDEX (PRIMARY) WHERE :numbers

-- name: all_records
FROM {{records}}

-- name: records_among
FROM {{records}} FORCE INDEX (PRIMARY) WHERE :numbers

-- name: all_of_shard
-- With the statistics of an empty outbox, the planner would read all of it. A range of shards would make MariaDB read
-- the shard to its end.
FROM {{records}} FORCE INDEX (shard) WHERE shard = :shard :but ORDER BY order_sequence

-- name: of_shard_among
-- Only MariaDB runs the text in /*M! */; for MySQL it is a comment. With the condition on numbers, MySQL would read the
-- index from its beginning to get the rows in order.
FROM {{records}} FORCE INDEX (shard) WHERE shard = :shard /*M! AND (:numbers) */ :but ORDER BY order_sequence

-- name: newest_of_shard
SELECT order_sequence FROM {{records}} FORCE INDEX (shard) WHERE shard = :shard ORDER BY order_sequence DESC LIMIT 1

-- name: first_shard
SELECT shard FROM {{records}} FORCE INDEX (shard) ORDER BY shard LIMIT 1

-- name: next_shard
SELECT shard FROM {{records}} FORCE INDEX (shard) WHERE shard > :above ORDER BY shard LIMIT 1
