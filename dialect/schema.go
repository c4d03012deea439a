package dialect

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

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

// FirstVersion is the version of the tables that FirstMigration makes. Earlier ones were never released.
const FirstVersion = 11

// FirstMigration makes the tables, and their indexes, that a file of statements creates, in its order.
func FirstMigration(s Spelling, n Names, file *Statements) Migration {
	table := func(base string) string { return Qualified(s, n.Table(base)) }
	m := Migration{Version: FirstVersion, Title: "rowfeed's tables"}
	for _, name := range file.order {
		st, err := file.Render(s, n, name)
		if err != nil {
			panic(err)
		}
		if text := st.String(); strings.HasPrefix(text, "CREATE ") {
			m.Up = append(m.Up, text)
			if strings.HasPrefix(text, "CREATE TABLE ") {
				m.Down = slices.Insert(m.Down, 0, "DROP TABLE IF EXISTS "+table(name))
			}
		}
	}
	m.Up = append(m.Up, fmt.Sprintf("INSERT INTO %s (version, applied_at) VALUES (%d, %s)", table("schema_version"),
		m.Version, s.Now()))
	return m
}
