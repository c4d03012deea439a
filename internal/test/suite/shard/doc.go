// Package shard tests sequence feeds that are read in parts, and changes of the number of their shards.
package shard
