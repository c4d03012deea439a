// Package feedtype has the types that readers of a feed use, whether they read it in the same process or over HTTP. A
// [Source] answers a [Request] with a [Page] of [Entry] above a [Cursor], and fails with an [Error]. The package
// defines how a value, a key, a cursor and a shard are written as text and JSON, and what an [Observer] and a [Tracer]
// receive. It needs no database driver. Begin with source.go; value.go says how a value becomes JSON. Package rowfeed
// has aliases for the types that applications use.
package feedtype
