// Package rowfeed turns tables of an ordinary SQL database into change feeds that
// nobody can miss a row of.
//
// A database assigns ids when a row is inserted and shows the row when its
// transaction commits, so whoever polls "id > cursor" passes over rows that commit
// late. rowfeed records which keys were written (by triggers, in the writer's own
// transaction), and a publisher gives every key a position after the commit, in one
// transaction that makes positions become visible in increasing order. Consumers
// fetch "position > cursor" and miss nothing: neither a late commit, nor a delete,
// nor the rows that were there before them.
//
// The pieces, each in the file of its name: a [DB] is rowfeed on one database; a
// [Feed] follows one table; [Feed.Publish] and [Feed.RunPublisher] give positions;
// [Feed.Fetch] answers a [Page] above a [Cursor]; [Source] is the seam that HTTP
// servers, clients and consumers share; a [Lease] is a job that one process at a time
// may do. What a database does its own way is behind
// package dialect.
package rowfeed
