// Package read reads pages. It decides which part of a feed a page shows, how far the page reaches, which cursors are
// refused, when a waiting reader gets its page, and which readers share a statement. It uses watch, history, catalog
// and the packages below them. A Pager, which package rowfeed chooses, has what differs between kinds of positions.
// Begin with Reader.Fetch in read.go. cursor.go refuses cursors, by what history knows; assemble.go turns rows into
// entries, deletes among them. DESIGN.md argues why no page skips an entry.
package read
