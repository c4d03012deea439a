// Package dialect declares what a database must provide to rowfeed, and the structs that the dialects share
// with their callers.
//
// Each database implements the interfaces in its own package: dialect/sqlite, dialect/postgres, dialect/mysql.
// None of these imports the root package or internal packages. A statement that differs between databases only in
// spelling is written once, in the .sql file of the package that runs it: see [Statements]. Where its text depends on
// the call, it is built with [Spelling] and [Builder].
// What only one database has (locks, snapshots, triggers, types) is in that database's package.
//
// Values are exchanged in a form that loses nothing: see [feedtype.Kind].
package dialect

// Dialect is everything that rowfeed asks of a database.
type Dialect interface {
	Spelling
	Schema
	Publish
	Read
	ULID
	Roles
	Moving
	Rest
}
