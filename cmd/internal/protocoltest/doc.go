// Package protocoltest is `rowfeed conform`: it tests whether a server speaks the protocol of docs/PROTOCOL.md. It
// only reads, and it shares no code with rowfeed's server.
//
// Begin with Run in run.go. Each check tests one sentence of the protocol. The checks of a section of the protocol
// are in one file: listing.go, pages.go, cursors.go, shards.go, waiting.go, streams.go, problems.go, formats.go,
// caching.go and compression.go. client.go sends requests, and feed.go reads pages.
package protocoltest
