-- A feed's terms: which publishers have given its positions, and up to which head. See DESIGN.md. The statements of a
-- pass run while it has the lock on the row of the sequence.

-- name: terms
-- The present state and all other terms, in one snapshot.
SELECT s.value, COALESCE(s.term, 0), COALESCE(t.term, 0), COALESCE(t.upto, 0)
FROM {{sequence}} s LEFT JOIN {{table "terms"}} t ON t.feed = s.name
WHERE s.name = :feed

-- name: ended_at
-- Whether a term ended exactly at this head.
SELECT count(*) FROM {{table "terms"}} WHERE feed = :feed AND term = :term AND upto = :head

-- name: lower
-- What was above the head is lost.
UPDATE {{table "terms"}} SET upto = :head WHERE feed = :feed AND upto > :head

-- name: count
SELECT count(*) FROM {{table "terms"}} WHERE feed = :feed

-- name: newest
-- When the last of the :count newest terms ended.
SELECT MIN(ended_at) FROM (SELECT ended_at FROM {{table "terms"}} WHERE feed = :feed
ORDER BY ended_at DESC {{limit ":count"}}) newest

-- name: purge
DELETE FROM {{table "terms"}} WHERE feed = :feed AND ended_at < :before
