// Package dialect declares what a database must provide to rowfeed, and the structs that the dialects share
// with their callers.
//
// Each database is a folder: dialect/sqlite, dialect/postgres, dialect/mysql, dialect/sqlserver. Its function New makes
// a [Dialect]. No folder imports the root package or internal packages. A database's statements are whole in its `.sql`
// files, if they take locks, depend on a plan, or make anything. A statement that differs between databases only in
// spelling is written once, in the `.sql` file of the package that runs it: see [Statements]. Where a text depends on
// the data of a call, Go code joins named fragments.
//
// Values are exchanged in a form that loses nothing: see [feedtype.Kind].
package dialect

import "context"

// Dialect is a database: how it spells statements, what every database does, and what only some can do. A database is
// added by a folder that makes one.
type Dialect struct {
	*Syntax
	// Tables is the file of statements that make rowfeed's own tables, in its order.
	Tables *Statements
	Core
	Publishing
	Placing
	Pages
	Locks
	Moving
	Inspection
	// ULIDsAbove is the function [ULIDsAbove] in SQL: expressions for the state of a shard whose greatest ULID
	// is ulid, an expression of the type of the position column.
	ULIDsAbove func(f *Feed, ulid string) (timeMillis, high, low string)
	// TriggerNames returns the names that a feed's triggers may have.
	TriggerNames func(f *Feed) []string
	// Savepoint returns the statements of a savepoint. Savepoints of one transaction need different names: some
	// databases forget a savepoint when another one gets its name.
	Savepoint func(name string) Savepoint

	// Experimental says why feeds of this database are only made if the user asks for it: what has not been tested. It
	// is empty for a database whose tests pass.
	Experimental string

	// What follows is optional: nil means that the database cannot do it. The code that uses a field then takes the
	// path that the comment names.

	// IdentitySQL returns an expression for [Core].Identity, which is NULL on a server that accepts no writes.
	// Otherwise the server knows nothing.
	IdentitySQL func(n Names) string

	Batches    Batches    // otherwise the operations of Publishing, one after the other
	Gaps       Gaps       // otherwise every scan reads all changes
	Stamp      string     // a query for a text that changes with every commit; otherwise a read of what is asked for
	Flushing   Flushing   // otherwise what is visible is on the disk
	Replicas   Replicas   // otherwise no other server shows a commit before this one
	Bounds     Bounds     // otherwise the settings of the transaction bound its waits
	Routines   Routines   // otherwise only this library takes ULIDs
	Partitions Partitions // otherwise a partition has the triggers of its table
	Owners     Owners     // otherwise a trigger always has the rights it needs
	Copies     Copies     // otherwise no copy of a table writes into the feed
	Renames    Renames    // otherwise a table that is gone is gone
	Roles      Roles      // otherwise ErrUnsupported
	Fences     bool       // it can refuse positions that no publisher gives: see [Feed].Fence; otherwise ErrUnsupported
	OwnShards  bool       // a column of the source can hold data shards: see [Feed].OwnShard; otherwise ErrUnsupported
	Sessions   Sessions   // otherwise no holder is known, and ErrUnsupported for ending one
	// TriggersBreak says which statements of a table's writers fail once a feed's trigger is on it, and what to do.
	// Otherwise none does.
	TriggersBreak string
	// Together runs fn in one transaction of the connection of [Core].WithSchemaLock, where each statement would
	// commit. fn must contain no DDL. Otherwise WithSchemaLock runs everything in one transaction.
	Together func(ctx context.Context, q Querier, fn func() error) error
}

// Savepoint has the statements that set a savepoint, go back to it, and release it. Release is an error of class
// [ClassUndefined] if the transaction that set the savepoint has ended.
type Savepoint struct{ Set, Back, Release string }

// StandardSavepoint is [Dialect].Savepoint of the SQL standard.
func StandardSavepoint(name string) Savepoint {
	return Savepoint{"SAVEPOINT " + name, "ROLLBACK TO SAVEPOINT " + name, "RELEASE SAVEPOINT " + name}
}

// Migrations returns the versions of rowfeed's own tables, oldest first.
func (d *Dialect) Migrations(n Names) []Migration {
	return []Migration{FirstMigration(d.Syntax, n, d.Tables)}
}
