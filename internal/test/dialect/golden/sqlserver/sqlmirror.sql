-- name: clear_sweep
DELETE FROM :sweep

-- name: delete_keys
DELETE FROM :table WHERE :any

-- name: delete_marked
DELETE FROM :table WHERE EXISTS (SELECT 1 FROM :sweep s WHERE :same)

-- name: delete_others
DELETE FROM :table WHERE :same AND NOT (:own)

-- name: is_sweeping
SELECT 1 FROM :sweep ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: mark_rows
INSERT INTO :sweep (:key) SELECT :key FROM :table

-- name: respell
UPDATE :table SET :key WHERE :known AND :own

