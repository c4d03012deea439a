-- The mirror's table, and the small table beside it (:sweep) with the keys that a pass has not brought yet. Their names
-- and columns are the user's.

-- name: clear_sweep
DELETE FROM :sweep

-- name: mark_rows
INSERT INTO :sweep (:key) SELECT :key FROM :table

-- name: delete_marked
DELETE FROM :table WHERE EXISTS (SELECT 1 FROM :sweep s WHERE :same)

-- name: is_sweeping
SELECT 1 FROM :sweep {{at_most "1"}}

-- name: delete_keys
DELETE FROM :table WHERE :any

-- name: delete_others
-- Rows of other keys that have the values of a row in a unique index.
DELETE FROM :table WHERE :same AND NOT (:own)

-- name: respell
UPDATE :table SET :key WHERE :known AND :own
