-- name: published_above
-- The lowest position above a given one.
SELECT feed_sync_id, published_at FROM {{positions}} WHERE feed_sync_id > :above ORDER BY feed_sync_id {{limit "1"}}
