package dialect

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Core is what every database does.
type Core interface {
	// Begin is for transactions with this purpose.
	Begin(p Purpose, n Names) Beginning
	// Durability returns an error if a power failure could undo a commit of this connection. The error names
	// the setting to change.
	Durability(ctx context.Context, q Querier) error
	// Identity identifies this database, as far as the server knows: it differs from that of every other
	// database, and changes with a failover or a restore. It is empty if the server knows nothing. The error is
	// of class [ClassReadOnly] on a server that accepts no writes.
	Identity(ctx context.Context, q Querier, n Names) (string, error)
	// Classify returns the class of a driver's error, as its code tells.
	Classify(err error) Class
	// CurrentSchema returns the schema in which unqualified names are found and made, on databases whose
	// triggers must name it. Elsewhere it is empty. If q is nil, it is the one of a new database.
	CurrentSchema(ctx context.Context, q Querier) (string, error)
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
	// FeedUp returns the statements that make a feed's tables and triggers. If they fail half-way, running them
	// all again completes them. For an outbox feed these are its two tables, and triggers that append records.
	FeedUp(f *Feed, t *Table) ([]Step, error)
	// FeedDown returns the statements that remove what FeedUp has made. t is the source table as it is now, or
	// nil if it does not exist any more.
	FeedDown(f *Feed, t *Table) []Step
	// Verify compares a feed's triggers and tables with what FeedUp would make. It returns one sentence for
	// each difference, except for what NewPartitions returns.
	Verify(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
	// Repair returns the statements that correct what Verify found. At no moment while they run is a change
	// left uncaptured.
	Repair(ctx context.Context, q Querier, f *Feed, t *Table) ([]Step, error)
}

// Partitions is for databases that copy only row triggers to a new partition.
type Partitions interface {
	// NewPartitions returns the partitions that were added after FeedUp, for a feed with capture "trigger". It
	// is for databases that copy only row triggers to a new partition.
	NewPartitions(ctx context.Context, q Querier, f *Feed, t *Table) ([]NewPartition, error)
}

// Owners is for databases whose triggers run with the rights of a login that may lose them.
type Owners interface {
	// Takeovers returns one sentence for each trigger and routine of the feed that an upgrade makes again although
	// Verify accepts it. Such an object runs with the rights of another login, and q's login cannot see whether
	// that login has them. Or, on MariaDB, the statement that made it names its database.
	Takeovers(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
}

// Copies is for databases where a copy of a table, or a loaded dump, can have triggers that write into the tables of
// the original.
type Copies interface {
	// Strays returns one sentence for each trigger on another table that writes into this feed's tables. A copy of
	// the feed's table has such triggers if rowfeed's tables are in another schema. It also returns one for each
	// trigger of the feed that would become a stray one if a dump of its schema were loaded under another name.
	Strays(ctx context.Context, q Querier, f *Feed, t *Table) ([]string, error)
}

// Renames is for databases where a schema can be renamed.
type Renames interface {
	// Moved searches for the feed's table, which is not where the feed's record says. ok says that it was found
	// in another schema.
	Moved(ctx context.Context, q Querier, f *Feed) (now feedtype.TableName, ok bool, err error)
	// OtherSchemas returns the other schemas that have rowfeed's tables with this prefix, on databases where a schema
	// can be renamed.
	OtherSchemas(ctx context.Context, q Querier, n Names) ([]string, error)
}

// Migration is one version of rowfeed's own tables.
type Migration struct {
	Version int
	Title   string
	Up      []string
	Down    []string
}

// FirstVersion is the version of the tables that FirstMigration makes. Earlier ones were never released. NewestVersion
// is the one that this code needs, of the last of [Dialect.Migrations].
const (
	FirstVersion  = 11
	NewestVersion = FirstVersion
)

// FirstMigration makes what a file of statements creates, in its order. What is no table or index of one is dropped by
// the statement of the same name with "drop_" before it. Down first deletes the version: where each DDL statement
// commits, Up makes what an interrupted Down has dropped.
func FirstMigration(s *Syntax, n Names, file *Statements) Migration {
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
			if drop, err := file.Render(s, n, "drop_"+name); err == nil {
				m.Down = append(m.Down, drop.String())
			}
		}
	}
	m.Down = slices.Insert(m.Down, 0, "DELETE FROM "+table("schema_version"))
	m.Up = append(m.Up, fmt.Sprintf("INSERT INTO %s (version, applied_at) VALUES (%d, %s)", table("schema_version"),
		m.Version, s.Now))
	return m
}

// SameText tells whether two bodies of a trigger or a function differ at most in white space outside of literals and
// quoted names, and in comments.
func SameText(a, b string) bool { return words(a) == words(b) }

// words returns a text without comments, with one blank in place of white space.
func words(text string) string {
	var b strings.Builder
	blank := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			blank = true
			continue
		case strings.HasPrefix(text[i:], "-- "):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				end = len(text) - i
			}
			i += end - 1
			blank = true
			continue
		}
		if blank && b.Len() > 0 {
			b.WriteByte(' ')
		}
		blank = false
		if c == '\'' || c == '"' || c == '`' {
			if end := strings.IndexByte(text[i+1:], c); end >= 0 {
				b.WriteString(text[i : i+end+2])
				i += end + 1
				continue
			}
		}
		if c == '[' && beginsName(text, i) {
			end := i + nameLength(text[i:])
			b.WriteString(text[i:end])
			i = end - 1
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
