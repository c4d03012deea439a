// Package catalog has what is known of a feed: its row of the feeds table (a FeedRecord) and the columns that its table
// has (a Layout). A Feed is the handle that all packages above share; it runs nothing. The package decides which
// records this version can read, which changes of a table end a feed, and when parts are not served. It uses store,
// dialect and feedtype. Begin with feed.go.
package catalog
