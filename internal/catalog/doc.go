// Package catalog has what is known of a feed: its row of the feeds table (a Record), and the columns that its table
// has now (a Layout). A Feed is the handle that all packages above share; nothing of it runs. It decides which records
// this version can read, when a table has become one that the feed cannot follow, and which parts are not served yet.
// It uses store, dialect and feedtype. Begin with feed.go.
package catalog
