-- name: columns
SELECT c.name, CASE WHEN y.is_assembly_type = 1 THEN y.name ELSE TYPE_NAME(c.system_type_id) END,
  CONVERT(int, c.max_length), CONVERT(int, c.precision), CONVERT(int, c.scale), COALESCE(c.collation_name, N''),
  CONVERT(int, c.is_nullable), CONVERT(int, c.is_computed), COALESCE(x.definition, N''), CONVERT(int, c.is_identity)
FROM sys.columns AS c
JOIN sys.types AS y ON y.user_type_id = c.user_type_id
LEFT JOIN sys.default_constraints AS x ON x.object_id = c.default_object_id
WHERE c.object_id = OBJECT_ID(:table)
ORDER BY c.column_id

-- name: indexes
SELECT i.name, CONVERT(int, i.is_disabled) FROM sys.indexes AS i
WHERE i.object_id = OBJECT_ID(:table) AND i.name IS NOT NULL AND i.is_hypothetical = 0
ORDER BY i.name

-- name: signature_of_o
CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
  (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))

-- name: table_facts
SELECT s.name, o.name, RTRIM(o.type), CONVERT(int, COALESCE(t.is_memory_optimized, 0)),
  CONVERT(int, COALESCE(t.temporal_type, 0)), CONVERT(int, COALESCE(t.is_external, 0)),
  CONVERT(int, COALESCE(t.is_filetable, 0)), CONVERT(int, o.is_ms_shipped), CONCAT(CONVERT(nvarchar(30), o.modify_date, 126), N'-',
  (SELECT MAX(m.column_id) FROM sys.columns AS m WHERE m.object_id = o.object_id))
FROM sys.all_objects AS o
JOIN sys.schemas AS s ON s.schema_id = o.schema_id
LEFT JOIN sys.tables AS t ON t.object_id = o.object_id
WHERE o.object_id = OBJECT_ID(:table)

-- name: unique_indexes
SELECT i.name, CONVERT(int, i.is_primary_key), CONVERT(int, i.has_filter), CONVERT(int, i.is_unique_constraint), c.name
FROM sys.indexes AS i
JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.is_included_column = 0
JOIN sys.columns AS c ON c.object_id = k.object_id AND c.column_id = k.column_id
WHERE i.object_id = OBJECT_ID(:table) AND i.is_unique = 1 AND i.is_disabled = 0 AND i.is_hypothetical = 0
  AND k.key_ordinal > 0
ORDER BY i.is_primary_key DESC, i.name, k.key_ordinal

-- name: update_triggers
SELECT g.name FROM sys.triggers AS g
WHERE g.parent_id = OBJECT_ID(:table) AND g.is_disabled = 0 AND EXISTS (SELECT 1 FROM sys.trigger_events AS e
  WHERE e.object_id = g.object_id AND e.type_desc = N'UPDATE')
ORDER BY g.name

