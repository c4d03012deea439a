// Package measuring has what measurements share: a database on a private server that is as durable as in production,
// figures with their medians and ratios, and tables in Markdown.
package measuring

import (
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Flags of all measurements.
var (
	Reps   = flag.Int("reps", 3, "repetitions of each figure")
	Window = flag.Duration("window", 3*time.Second, "how long writers run for one figure")
)

// Writers is the number of concurrent writers.
const Writers = 8

// Main is called by TestMain of a package of measurements. root is the path from the package's folder to the
// repository's root, where scripts/setup.sh unpacks servers. Main parses the flags.
func Main(m *testing.M, root string) {
	flag.Parse()
	setDefault("ROWFEED_TEST_ENGINES", "sqlite,postgres15,mariadb")
	if folder, err := filepath.EvalSymlinks(filepath.Join(root, ".engines")); err == nil {
		if folder, err = filepath.Abs(folder); err == nil {
			setDefault("ROWFEED_ENGINES_DIR", folder)
		}
	}
	if testing.Short() {
		*Reps, *Window = 1, 100*time.Millisecond
	}
	testdb.Main(m)
}

func setDefault(variable, value string) {
	if os.Getenv(variable) == "" {
		_ = os.Setenv(variable, value)
	}
}

// Scaled makes a size small if the run only checks that the measurement works.
func Scaled(n int) int {
	if testing.Short() {
		return max(n/100, 1)
	}
	return n
}

// Bed is a database to measure on.
type Bed struct {
	*testing.T
	*testdb.Database
	Pool    *sql.DB // opened as the rowfeed command opens it
	Dialect *dialect.Dialect
}

// New makes a database on a server of its own.
func New(t *testing.T, e testdb.Engine) *Bed {
	t.Helper()
	if !e.HasServer() {
		return On(t, e.New(t))
	}
	return On(t, e.Dedicated(t, e.Production()...).NewDatabase(t))
}

// On measures on an existing database.
func On(t *testing.T, d *testdb.Database) *Bed {
	t.Helper()
	b := &Bed{T: t, Database: d}
	b.Pool, b.Dialect = b.Open("")
	return b
}

// Must ends the test if there is an error.
func (b *Bed) Must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// SQL executes a statement.
func (b *Bed) SQL(query string, args ...any) {
	b.Helper()
	b.Exec(b.T, query, args...)
}

// Number returns the result of a query for one number.
func (b *Bed) Number(query string) (n int64) {
	b.Helper()
	b.Must(b.Admin().QueryRowContext(b.Context(), query).Scan(&n))
	return n
}

// Version returns the version of the database.
func (b *Bed) Version() string {
	query := "SELECT version()"
	if !b.HasServer() {
		query = "SELECT 'SQLite ' || sqlite_version()"
	}
	var version string
	b.Must(b.Admin().QueryRowContext(b.Context(), query).Scan(&version))
	return version
}

// Open opens a pool as the rowfeed command does. query is added to the URL.
func (b *Bed) Open(query string) (*sql.DB, *dialect.Dialect) {
	b.Helper()
	pool, d, err := open.Open(b.Context(), b.URL+query, open.Options{})
	b.Must(err)
	b.Cleanup(func() { _ = pool.Close() })
	return pool, d
}

// Rowfeed opens the library on a pool, and makes its tables.
func (b *Bed) Rowfeed(pool *sql.DB, cfg *rowfeed.Config) *rowfeed.DB {
	b.Helper()
	db, err := rowfeed.Open(b.Context(), pool, b.Dialect, cfg)
	b.Must(err)
	_, err = db.Migrate(b.Context())
	b.Must(err)
	return db
}

// Feed adds a feed.
func (b *Bed) Feed(db *rowfeed.DB, spec rowfeed.FeedSpec) *rowfeed.Feed {
	b.Helper()
	f, err := db.AddFeed(b.Context(), spec, nil)
	b.Must(err)
	return f
}

// Payload is the payload of a row: 200 bytes.
var Payload = func() string {
	text := make([]byte, 200)
	for i := range text {
		text[i] = byte('a' + i%26)
	}
	return string(text)
}()
