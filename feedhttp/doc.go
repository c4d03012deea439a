// Package feedhttp is rowfeed's HTTP protocol: a [Handler] that serves feeds, and a
// [Client] that reads one feed of such a server as a [rowfeed.Source].
//
//	GET /_feeds                                        every feed
//	GET /_feeds/{feed}                                 one feed
//	GET /_feeds/fetch/{feed}?after=&limit=&wait=       a page of its entries
//	GET /_feeds/stream/{feed}?after=                   its entries as Server-Sent Events
//	GET /_feeds/shards/{feed}?since=&wait=             how far its shards are
//	GET /_feeds/http-feeds/{feed}?lastEventId=         its entries as http-feeds.org has them
//	GET /_feeds/openapi.json                           all of this, with every parameter and answer
//
// A page is one JSON object, or with "Accept: application/x-ndjson" one entry a line
// and then a line with cursor, more and base64. Positions and cursors are strings. A
// consumer stores the cursor and sends it back as after; more is false when the page
// reached the head of its moment, and only then. With "Accept:
// application/cloudevents-batch+json" it is a batch of CloudEvents, and the cursor in the header
// Rowfeed-Cursor. The names in base64 are those of the
// page's columns whose JSON strings are base64.
//
// An error is an RFC 9457 problem (application/problem+json). Its type is
// "urn:rowfeed:problem:" and a stable code; besides title, status and detail it may
// have the members feed, parameter (the one at fault) and next (what to do about it).
// No status of 200 is sent before the page has been read. A large page is sent while it
// is made; if that fails the connection breaks off (of HTTP/2 the stream), and the cursor,
// which stands behind the entries, is not there.
//
// What may be kept has an ETag, and is to be asked for again each time; see DESIGN.md.
//
// Pages of 1400 bytes or more are compressed for who sends "Accept-Encoding: zstd" or gzip (see
// Config.NoCompression). A [Client] does, unless the server is on the same machine; its MaxBytes
// bounds what it inflates.
package feedhttp
