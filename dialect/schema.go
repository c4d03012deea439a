package dialect

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Schema describes tables, and makes and removes the objects of feeds.
type Schema interface {
	// CurrentSchema returns the schema in which unqualified names are found and made, on databases whose
	// triggers must name it. Elsewhere it is empty. If q is nil, it is the one of a new database.
	CurrentSchema(ctx context.Context, q Querier) (string, error)
	// Migrations returns the versions of rowfeed's own tables, oldest first.
	Migrations(n Names) []Migration
	// WithSchemaLock runs fn on one connection, under the lock for changes of rowfeed's schema. A second caller
	// waits. If DDL is transactional, fn runs in one transaction, which is committed if fn returns nil. Waits
	// for other sessions' locks are bounded. If such a wait fails, the error is of class [ClassLockTimeout],
	// and nothing was changed; without transactional DDL, all that was done can be repeated.
	WithSchemaLock(ctx context.Context, db *sql.DB, n Names, fn func(Querier) error) error
	// SchemaVersion returns the newest version, or 0 if rowfeed's tables do not exist.
	SchemaVersion(ctx context.Context, q Querier, n Names) (int, error)
	// Describe reads a table's description from the catalog. The error is of class [ClassUndefined] if the
	// table does not exist.
	Describe(ctx context.Context, q Querier, t feedtype.TableName) (*Table, error)
	// MaxColumns returns the maximum number of columns in the answer of a statement, and in a table.
	MaxColumns() (answered, declared int)
	// KeyColumn returns what Describe would say of a column with this declaration, as far as that tells. It is
	// for printing scripts without a server.
	KeyColumn(name, declaration string) Column
	// FeedUp returns the statements that make a feed's tables and triggers. If they fail half-way, running them
	// all again completes them. For an outbox feed these are its two tables, and triggers that append records.
	FeedUp(f *Feed, t *Table) ([]Step, error)
	// FeedDown returns the statements that remove what FeedUp has made. t is the source table as it is now, or
	// nil if it does not exist any more.
	FeedDown(f *Feed, t *Table) []Step
	// Verify compares a feed's triggers and tables with what FeedUp would make. It returns one sentence for
	// each difference, except for what NewPartitions returns.
	Verify(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
	// NewPartitions returns the partitions that were added after FeedUp, for a feed with capture "trigger". It
	// is for databases that copy only row triggers to a new partition.
	NewPartitions(ctx context.Context, q Querier, f *Feed, t *Table) ([]NewPartition, error)
	// TriggerNames returns the names that a feed's triggers may have.
	TriggerNames(f *Feed) []string
	// Repair returns the statements that correct what Verify found. At no moment while they run is a change
	// left uncaptured.
	Repair(ctx context.Context, q Querier, f *Feed, t *Table) ([]Step, error)
	// Takeovers returns one sentence for each trigger and routine of the feed that an upgrade makes again although
	// Verify accepts it. Such an object runs with the rights of another login, and q's login cannot see whether
	// that login has them. Or, on MariaDB, the statement that made it names its database.
	Takeovers(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
	// Strays returns one sentence for each trigger on another table that writes into this feed's tables. A copy of
	// the feed's table has such triggers if rowfeed's tables are in another schema. It also returns one for each
	// trigger of the feed that would become a stray one if a dump of its schema were loaded under another name.
	Strays(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
	// Moved searches for the feed's table, which is not where the feed's record says. ok says that it was found
	// in another schema.
	Moved(ctx context.Context, q Querier, f *Feed) (now feedtype.TableName, ok bool, err error)
	// OtherSchemas returns the other schemas that have rowfeed's tables with this prefix, on databases where a schema
	// can be renamed.
	OtherSchemas(ctx context.Context, q Querier, n Names) ([]string, error)
	// BucketIndex returns the statements that make the index by bucket on the feed's table of positions if the
	// feed needs it ([Feed.ByBucket]), or remove it if the feed does not. There are none if nothing is to be
	// changed.
	BucketIndex(ctx context.Context, q Querier, f *Feed) ([]Step, error)
	// DeleteRow returns the statements that delete a row and record its delete. They run in one transaction,
	// each with the key as its parameters.
	DeleteRow(f *Feed) []string
}

// Migration is one version of rowfeed's own tables.
type Migration struct {
	Version int
	Title   string
	Up      []string
	Down    []string
}

// AddsColumn returns a version that adds a column, for databases that roll back schema changes with their
// transaction. name returns the quoted name of one of rowfeed's tables. now is the expression of
// [Spelling].Now.
func AddsColumn(name func(base string) string, now string, version int, title, table, column,
	definition string) Migration {
	return Migration{
		Version: version,
		Title:   title,
		Up: []string{
			"ALTER TABLE " + name(table) + " ADD COLUMN " + column + " " + definition,
			fmt.Sprintf("INSERT INTO %s VALUES (%d, %s)", name("schema_version"), version, now),
		},
		Down: []string{
			"ALTER TABLE " + name(table) + " DROP COLUMN " + column,
			fmt.Sprintf("DELETE FROM %s WHERE version = %d", name("schema_version"), version),
		},
	}
}

// OwnSchema is version 9. Since then, a feed's record has an empty schema if its table is in the schema of
// rowfeed's own tables. And publishers keep the spelling of a key that its tables have. A binary that knows
// neither must not publish. The version number keeps it from doing so.
func OwnSchema(s Spelling, n Names) Migration {
	table := func(base string) string { return Qualified(s, n.Table(base)) }
	return Migration{
		Version: 9,
		Title:   "tables beside rowfeed's own, texts of keys",
		Up: []string{
			"UPDATE " + table("feeds") + " SET source_schema = '' WHERE source_schema = " + s.Literal(n.Schema),
			"INSERT INTO " + table("schema_version") + " (version, applied_at) VALUES (9, " + s.Now() + ")",
		},
		// the table of feeds is dropped, too
		Down: []string{"DELETE FROM " + table("schema_version") + " WHERE version = 9"},
	}
}

// Failures is version 10. The failure of a consumer is stored with its cursor, that of a publisher with its feed: what
// fails, since when, how often, and when it is tried again. The index is for reading dead letters in pages, the oldest
// first. once returns the statements that run ddl, which adds a "column" or an "index" with this name to a table.
func Failures(s Spelling, n Names, once func(kind, table, name, ddl string) []string) Migration {
	table := func(base string) string { return Qualified(s, n.Table(base)) }
	if once == nil {
		once = func(_, _, _, ddl string) []string { return []string{ddl} }
	}
	m := Migration{
		Version: 10,
		Title:   "failures of consumers and publishers",
		// the tables are dropped, too
		Down: []string{"DELETE FROM " + table("schema_version") + " WHERE version = 10"},
	}
	for _, c := range []struct{ table, name, kind string }{
		{"cursors", "failing_since", "bigint"}, {"cursors", "attempts", "bigint"}, {"cursors", "next_try", "bigint"},
		{"cursors", "target", "text"},
		{"feeds", "failure", "text"}, {"feeds", "failing_since", "bigint"}, {"feeds", "attempts", "bigint"},
		{"feeds", "next_try", "bigint"},
	} {
		m.Up = append(m.Up, once("column", c.table, c.name,
			"ALTER TABLE "+table(c.table)+" ADD COLUMN "+c.name+" "+c.kind)...)
	}
	// Failures that consumers had before get the time of their cursor's last change.
	m.Up = append(m.Up, "UPDATE "+table("cursors")+" SET failing_since = updated_at, attempts = 1"+
		" WHERE failure IS NOT NULL AND failing_since IS NULL")
	first := n.Table("dead_letters_first").Name
	m.Up = append(m.Up, once("index", "dead_letters", first, "CREATE INDEX "+s.Quote(first)+" ON "+
		table("dead_letters")+" (consumer, feed, shard, first_at, key_digest)")...)
	m.Up = append(m.Up, "INSERT INTO "+table("schema_version")+" (version, applied_at) VALUES (10, "+s.Now()+")")
	return m
}

// Terms is version 11. A feed's sequence has the term of its present publisher, or NULL if that publisher is another
// program. The table of terms keeps up to which position each other term went, and when it ended: see package history.
// create makes a table with these columns unless it exists. once is that of Failures.
func Terms(s Spelling, n Names, once func(kind, table, name, ddl string) []string,
	create func(base, columns string) string) Migration {
	table := func(base string) string { return Qualified(s, n.Table(base)) }
	add := "ALTER TABLE " + table("sequences") + " ADD COLUMN term bigint"
	up := []string{add}
	if once != nil {
		up = once("column", "sequences", "term", add)
	}
	return Migration{
		Version: 11,
		Title:   "terms of publishers",
		Up: append(up,
			create("terms", `
  term bigint NOT NULL,
  upto bigint NOT NULL,
  ended_at bigint NOT NULL,
  PRIMARY KEY (feed, term)
`),
			"INSERT INTO "+table("schema_version")+" (version, applied_at) VALUES (11, "+s.Now()+")"),
		Down: []string{
			"DROP TABLE IF EXISTS " + table("terms"),
			"DELETE FROM " + table("schema_version") + " WHERE version = 11",
		},
	}
}
