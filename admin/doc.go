// Package admin is what operators do with the feeds of a database: inspect and repair feeds, move and pause consumers,
// handle dead letters, release leases, make tokens, and read the audit log. Applications get an Admin from
// rowfeed.DB.Admin, and the operations of one feed from rowfeed.Feed.Admin.
//
// The package decides how an operator may move a cursor, what a token permits and when it expires, and what the audit
// log records. It uses packages of rowfeed's library, but not package rowfeed: Feed (feed.go) and Source (admin.go) say
// what it needs of a feed. Begin with admin.go.
package admin
