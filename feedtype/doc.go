// Package feedtype has the values that readers of a feed handle, wherever they read it: a [Source] answers a [Request]
// with a [Page] of [Entry] above a [Cursor], and fails with an [Error]. It decides how a value, a key, a cursor and a
// shard are written as text and JSON, and what an [Observer] or a [Tracer] is told. It uses the standard library
// only. Begin with source.go. Package rowfeed has aliases for the types that applications name.
package feedtype
