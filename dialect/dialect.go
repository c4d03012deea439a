// Package dialect declares what a database must provide to rowfeed, and the structs that the dialects share
// with their callers.
//
// Each database implements the interfaces in its own package: dialect/sqlite, dialect/postgres, dialect/mysql.
// None of these imports the root package or internal packages. SQL that differs between databases only in
// spelling is written once, by the callers or in this package, with the helpers of [Spelling] and [Builder].
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
