// Package read answers pages. It decides which part of a feed a page is of, how far it reaches, which cursors are refused,
// when a waiting reader is answered, and which readers share one statement. It uses watch, history, catalog and what is
// below them. What differs between the kinds of positions is a Pager, which package rowfeed chooses. Begin with
// Reader.Fetch in read.go; DESIGN.md argues why no page passes over an entry.
package read
