// Package rowfeed turns tables of an ordinary SQL database into change feeds that
// nobody can miss a row of.
//
// A database assigns ids when a row is inserted and shows the row when its transaction commits. A reader that polls "id
// > cursor" therefore passes over rows that commit late. rowfeed records which keys were written, by triggers in the
// writer's own transaction. After the commit a publisher gives every key a position, in one transaction that makes
// positions visible in increasing order. Consumers fetch "position > cursor" and miss nothing: neither a late commit,
// nor a delete, nor the rows that were there before them.
//
// A [DB] is rowfeed on one database, a [Feed] follows one table. [Feed.RunPublisher] gives positions, [Feed.Fetch]
// answers a [Page] above a [Cursor], and a [Consumer] commits what it does together with its cursor. [Source] is what
// HTTP servers, clients and consumers have in common. A [Lease] is a job that one process at a time may do. Operators
// use [DB.Admin] and [Feed.Admin]. What differs between databases is behind package dialect.
//
// This package composes the packages below internal, and documents them; kinds.go is the one place where they meet.
package rowfeed
