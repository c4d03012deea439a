-- name: published_above
SELECT feed_sync_id, published_at FROM [rowfeed_positions_<feed>] WHERE feed_sync_id > :above ORDER BY feed_sync_id OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

