-- The catalog's description of a table.
--
-- A name is read as bytes, which no server converts to the connection's character set: see asBytes in values.go. Every
-- query has a LIMIT, because the session's sql_select_limit would cut the answer. A feed would then lack columns.

-- name: table
SELECT IF(TRUE, t.TABLE_SCHEMA, CAST('' AS BINARY)), IF(TRUE, t.TABLE_NAME, CAST('' AS BINARY)), t.TABLE_TYPE, t.ENGINE,
  @@GLOBAL.log_bin, @@GLOBAL.binlog_format
FROM information_schema.TABLES t
WHERE t.TABLE_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND t.TABLE_NAME = :table

-- name: client_charset
SELECT @@SESSION.character_set_client

-- name: columns
SELECT IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)), IF(TRUE, COLUMN_TYPE, CAST('' AS BINARY)), DATA_TYPE, IS_NULLABLE,
  CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_DEFAULT, GENERATION_EXPRESSION
FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table
ORDER BY ORDINAL_POSITION LIMIT 18446744073709551615

-- name: unique_indexes
-- Statements that name an index fail if it is INVISIBLE (MySQL) or IGNORED (MariaDB). Each server reads the other's
-- part as a comment. The column ROW END is left out: in MariaDB's system-versioned tables it is part of every key, and
-- the same for all current rows.
SELECT IF(TRUE, INDEX_NAME, CAST('' AS BINARY)), IF(TRUE, COLUMN_NAME, CAST('' AS BINARY)), SUB_PART, INDEX_TYPE,
  0 /*!80000 + (IS_VISIBLE = 'NO') */ /*M!100600 + (IGNORED = 'YES') */
FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table AND NON_UNIQUE = 0 AND COALESCE(COLUMN_NAME, '') NOT IN (
  SELECT COLUMN_NAME FROM information_schema.COLUMNS
  WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table AND GENERATION_EXPRESSION = 'ROW END')
ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX LIMIT 18446744073709551615

-- name: indexes
SELECT DISTINCT IF(TRUE, INDEX_NAME, CAST('' AS BINARY)) FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table LIMIT 18446744073709551615

-- name: update_triggers
SELECT IF(TRUE, TRIGGER_NAME, CAST('' AS BINARY)) FROM information_schema.TRIGGERS
WHERE EVENT_OBJECT_SCHEMA = :schema AND EVENT_OBJECT_TABLE = :table AND EVENT_MANIPULATION = 'UPDATE'
ORDER BY 1 LIMIT 18446744073709551615

-- name: cascades
-- The foreign keys that change rows of the table. InnoDB does that without firing triggers.
SELECT CONSTRAINT_NAME, REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE
FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = :schema AND TABLE_NAME = :table
  AND (DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))
ORDER BY CONSTRAINT_NAME LIMIT 18446744073709551615

-- name: signature
-- The table's columns: their number, and the sum of hashes over position, name, type and character set. GROUP_CONCAT
-- would be cut at group_concat_max_len. A statement that has opened the table holds its metadata lock, so the columns
-- cannot change while it runs.
(SELECT CONCAT(COUNT(*), '-', COALESCE(SUM(CAST(CONV(LEFT(SHA2(CONCAT_WS('/',
    ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME), 256), 15), 16, 10) AS UNSIGNED)), 0))
  FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table)

-- name: ask_signature
SELECT {{template "signature"}}
