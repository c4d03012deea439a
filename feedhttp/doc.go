// Package feedhttp implements rowfeed's HTTP protocol: a [Handler] serves feeds, and a [Client] reads one feed of
// such a server as a [rowfeed.Source].
//
//	GET /_feeds                                        all feeds
//	GET /_feeds/{feed}                                 one feed
//	GET /_feeds/fetch/{feed}?after=&limit=&wait=       a page of its entries
//	GET /_feeds/stream/{feed}?after=                   its entries as Server-Sent Events
//	GET /_feeds/shards/{feed}?since=&wait=             the watermarks of its shards
//	GET /_feeds/http-feeds/{feed}?lastEventId=         its entries in the format of http-feeds.org
//	GET /_feeds/openapi.json                           the OpenAPI description of all parameters and answers
//
// A page is one JSON object. Positions and cursors are strings. A consumer stores the cursor, and sends it back as
// after. more is false if, and only if, the page reached the head of the feed at the time of the fetch. base64 has
// the names of the page's columns whose JSON strings are base64.
//
// With "Accept: application/x-ndjson" a page is one entry per line, and then a line with cursor, more and base64.
// With "Accept: application/cloudevents-batch+json" it is a batch of CloudEvents, and the header Rowfeed-Cursor has
// the cursor.
//
// An error is an RFC 9457 problem (application/problem+json). Its type is "urn:rowfeed:problem:" and a stable code.
// It has title, status and detail. It may also have the members feed, parameter (the invalid one) and next (what to
// do about it).
//
// The server sends the status 200 after it has read the page. It sends a large page while it encodes it. If that
// fails, the connection is aborted (the stream, with HTTP/2), and the client does not get the cursor, which follows
// the entries.
//
// An answer that a client may keep has an ETag, and must be revalidated each time; see DESIGN.md.
//
// Pages of 1400 bytes or more are compressed for clients that send "Accept-Encoding: zstd" or gzip (see
// Config.NoCompression). A [Client] sends it unless the server is on the same machine. Its MaxBytes limits the
// decompressed size.
package feedhttp
