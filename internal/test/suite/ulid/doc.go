// Package ulid tests ULID feeds, and the shard locks under which ULIDs grow.
package ulid
