// Package rowfeed turns tables of an ordinary SQL database into change feeds. A reader of a feed misses no row.
//
// A database assigns ids when a row is inserted, and shows the row when its transaction commits. A reader that polls
// "id > cursor" therefore misses rows that commit late. rowfeed records the keys that were written, by triggers in
// the writer's own transaction. After the commit a publisher gives every key a position. It does so in one
// transaction, which makes positions visible in increasing order. Consumers fetch "position > cursor" and miss
// nothing: no late commit, no delete, and no row that existed before the feed.
//
// A [DB] is rowfeed on one database. A [Feed] follows one table. [Feed.RunPublisher] assigns positions, and
// [Feed.Fetch] returns the [Page] above a [Cursor]. A [Consumer] commits its effects together with its cursor. HTTP
// servers, clients and consumers read a [Source]. A [Lease] is a job that one process at a time may do. Operators use
// [DB.Admin] and [Feed.Admin]. Package dialect has what differs between databases.
//
// This package composes the packages below internal, and documents them. Their implementations are connected in
// kinds.go.
package rowfeed
