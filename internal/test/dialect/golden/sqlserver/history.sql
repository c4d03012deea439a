-- name: count
SELECT count(*) FROM [rowfeed_terms] WHERE feed = :feed

-- name: ended_at
SELECT count(*) FROM [rowfeed_terms] WHERE feed = :feed AND term = :term AND upto = :head

-- name: lower
UPDATE [rowfeed_terms] SET upto = :head WHERE feed = :feed AND upto > :head

-- name: newest
SELECT MIN(ended_at) FROM (SELECT ended_at FROM [rowfeed_terms] WHERE feed = :feed
ORDER BY ended_at DESC OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY) newest

-- name: purge
DELETE FROM [rowfeed_terms] WHERE feed = :feed AND ended_at < :before

-- name: terms
SELECT s.value, COALESCE(s.term, 0), COALESCE(t.term, 0), COALESCE(t.upto, 0)
FROM [rowfeed_sequences] s LEFT JOIN [rowfeed_terms] t ON t.feed = s.name
WHERE s.name = :feed

