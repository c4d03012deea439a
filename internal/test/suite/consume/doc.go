// Package consume tests consumers: cursors, batches, groups that share shards, dead letters, rebalancing.
package consume
