-- What the catalog says of a table. A table is given by its oid, which stays the same if it is renamed.

-- name: table
-- to_regclass returns NULL for a table that does not exist.
SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
  row_security_active(c.oid), EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhparent = c.oid), {{template "signature" .}}
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(:table)

-- name: signature
-- A table's columns in the snapshot of the statement.
COALESCE((SELECT string_agg(a.attname::text || ' ' || a.atttypid::text || ' ' || a.atttypmod::text, ','
    ORDER BY a.attnum)
  FROM pg_catalog.pg_attribute a WHERE a.attrelid = :relation AND a.attnum > 0 AND NOT a.attisdropped), '')

-- name: partitions
-- The partitions of the table, and partitions of partitions. The last column changes if a partition was detached and
-- attached again, because that writes a new row of pg_inherits, with another xmin.
SELECT n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
  CASE WHEN c.relkind = 'p' THEN '' ELSE c.oid::text || (SELECT string_agg('.' || i.xmin::text, '' ORDER BY i.inhrelid)
    FROM pg_partition_ancestors(c.oid) a JOIN pg_inherits i ON i.inhrelid = a.relid) END
FROM pg_partition_tree(:oid::bigint::oid::regclass) p
JOIN pg_class c ON c.oid = p.relid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.level > 0 ORDER BY 1, 2

-- name: columns
-- The columns, and the base types of domains (chain). Names of types have their schema, unless that is pg_catalog,
-- whatever the session's search_path. With quote_all_identifiers, format_type quotes even the names of built-in types.
WITH RECURSIVE chain AS (
  SELECT a.attnum, a.atttypid AS oid FROM pg_attribute a
  WHERE a.attrelid = :oid::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT c.attnum, t.typbasetype FROM chain c JOIN pg_type t ON t.oid = c.oid WHERE t.typtype = 'd'
)
SELECT a.attname::text,
  CASE WHEN e.typnamespace <> 'pg_catalog'::regnamespace AND pg_type_is_visible(e.oid)
    THEN quote_ident(en.nspname) || '.' ELSE '' END || format_type(a.atttypid, a.atttypmod),
  e.typnamespace = 'pg_catalog'::regnamespace, a.attnotnull,
  b.typname::text, b.typnamespace = 'pg_catalog'::regnamespace, b.typcategory::text,
  t.typtype = 'd' AND b.typtype IN ('e', 'r', 'm'),
  COALESCE((SELECT pn.nspname::text FROM pg_opclass k
    JOIN pg_am m ON m.oid = k.opcmethod AND m.amname = 'btree'
    JOIN pg_amop o ON o.amopfamily = k.opcfamily AND o.amopstrategy = 3
      AND o.amoplefttype = k.opcintype AND o.amoprighttype = k.opcintype
    JOIN pg_operator p ON p.oid = o.amopopr JOIN pg_namespace pn ON pn.oid = p.oprnamespace
    WHERE k.opcintype = b.oid AND k.opcdefault AND pn.nspname <> 'pg_catalog'), ''),
  CASE WHEN a.attcollation <> t.typcollation THEN quote_ident(cn.nspname) || '.' || quote_ident(co.collname) ELSE '' END,
  COALESCE(co.collisdeterministic, true),
  a.attgenerated::text <> '' OR a.attidentity::text = 'a', a.attgenerated::text = 'v'
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type e ON e.oid = CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END
JOIN pg_namespace en ON en.oid = e.typnamespace
JOIN chain c ON c.attnum = a.attnum
JOIN pg_type b ON b.oid = c.oid AND b.typtype <> 'd'
LEFT JOIN pg_collation co ON co.oid = a.attcollation
LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace
WHERE a.attrelid = :oid::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum

-- name: unique_indexes
-- The columns of the valid unique indexes, in order. A column counts as an expression, without a name, in two cases.
-- The index has another collation than the column, so joins would not use it. Or the index has an operator class that
-- is not the default, whose equality may differ from that of rowfeed's tables.
SELECT c.relname::text, c.oid::text, i.indisprimary, i.indpred IS NOT NULL,
  CASE WHEN k.attnum = 0 OR (x.coll <> 0 AND x.coll <> a.attcollation)
    OR NOT oc.opcdefault AND oc.opcname NOT IN ('text_pattern_ops', 'varchar_pattern_ops', 'bpchar_pattern_ops')
  THEN '' ELSE a.attname::text END
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, n)
JOIN LATERAL unnest(i.indcollation::oid[]) WITH ORDINALITY x(coll, n) ON x.n = k.n
JOIN LATERAL unnest(i.indclass::oid[]) WITH ORDINALITY o(class, n) ON o.n = k.n
JOIN pg_opclass oc ON oc.oid = o.class
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = :oid::bigint::oid AND i.indisunique AND i.indisvalid AND k.n <= i.indnkeyatts
ORDER BY NOT i.indisprimary, c.relname, k.n

-- name: indexes
-- A CREATE INDEX CONCURRENTLY that broke off leaves an index that is not valid.
SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = :oid::bigint::oid AND i.indisvalid = :valid ORDER BY 1

-- name: tree
-- A table and its partitions at every level.
(SELECT :oid::bigint::oid UNION SELECT relid::oid FROM pg_partition_tree(:oid::bigint::oid::regclass))

-- name: position_column
-- It returns what makes a column unfit for positions: its type, its default, a unique index. A foreign key can refer to
-- the columns of a unique index, unless the index is partial or has expressions. The publisher's UPDATE of such a
-- column would wait for all transactions that insert references to the row, or fail in a deadlock with them. The query
-- leaves out an index of a partition that is part of an index of the whole table.
SELECT COALESCE(min(CASE WHEN a.atttypid <> 'int8'::regtype THEN format_type(a.atttypid, a.atttypmod) END), ''),
  COALESCE(min(CASE WHEN a.atthasdef OR a.attidentity <> ''
    THEN COALESCE(pg_get_expr(e.adbin, e.adrelid), 'identity') END), ''),
  COALESCE(min((SELECT min(i.indexrelid::regclass::text) FROM pg_index i
    WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL
      AND NOT EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)
      AND a.attnum = ANY ((i.indkey::int2[])[0 : i.indnkeyatts - 1]))), '')
FROM pg_attribute a LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
WHERE a.attrelid IN {{template "tree" .}} AND a.attname = 'feed_sync_id' AND NOT a.attisdropped

-- name: fit_unique_index
-- It returns the statements that replace a unique index by a partial one. The index of a constraint is dropped with its
-- constraint, because a constraint cannot be partial. The definition of a partitioned table's index contains ONLY,
-- which is removed: with ONLY, the partitions would get no index.
SELECT COALESCE(min('ALTER TABLE ' || k.conrelid::regclass || ' DROP CONSTRAINT ' || quote_ident(k.conname)),
    'DROP INDEX ' || min(i.indexrelid::regclass::text))
  || '; ' || min(replace(pg_get_indexdef(i.indexrelid), quote_ident(c.relname) || ' ON ONLY ',
    quote_ident(c.relname) || ' ON ')) || ' WHERE feed_sync_id IS NOT NULL'
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('u', 'p')
WHERE i.indexrelid = CAST(:index AS regclass)

-- name: triggers_on_update
-- Triggers, also of partitions, that fire when feed_sync_id is written. 16 is the bit of UPDATE in tgtype. Without a
-- list of columns, a trigger fires for every UPDATE.
SELECT DISTINCT g.tgname::text FROM pg_trigger g
WHERE g.tgrelid IN {{template "tree" .}} AND NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgtype::int & 16 <> 0
  AND (g.tgattr::text = '' OR EXISTS (SELECT 1 FROM pg_attribute a
    WHERE a.attrelid = g.tgrelid AND a.attname = 'feed_sync_id' AND a.attnum = ANY (g.tgattr::int2[])))
ORDER BY 1
