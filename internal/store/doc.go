// Package store runs rowfeed's statements and transactions on one database. It decides which errors are tried again,
// how long to wait before that, how a database's error is explained, and what is refused when rowfeed's own tables
// are missing or of another version. It uses dialect and feedtype.
//
// Begin with store.go. retry.go decides which errors are tried again, by the classes of dialect/errors.go. errors.go
// explains an error. quota.go leaves connections to other feeds when a table is locked: see DESIGN.md.
package store
