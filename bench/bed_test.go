package bench

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	measure "github.com/rowfeed/rowfeed/internal/bench"
	"github.com/rowfeed/rowfeed/internal/open"
	"github.com/rowfeed/rowfeed/internal/testdb"
)

// bed is one database to measure on.
type bed struct {
	*testing.T
	*testdb.Database
	pool    *sql.DB // opened as the rowfeed command opens it
	dialect dialect.Dialect
}

// each runs a measurement on every engine, each on a server of its own with
// production's durability: PostgreSQL with fsync and synchronous_commit on, MariaDB
// and MySQL with innodb_flush_log_at_trx_commit=1, SQLite with synchronous=FULL.
func each(t *testing.T, measure func(b *bed)) {
	testdb.Quick(t) // ROWFEED_TEST_ENGINES alone says what is measured
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		b := newBed(t, e)
		b.Logf("%s", b.version())
		measure(b)
	})
}

func newBed(t *testing.T, e testdb.Engine) *bed {
	t.Helper()
	if !e.HasServer() {
		return bedOn(t, e.New(t))
	}
	return bedOn(t, e.Dedicated(t, durable(e)...).NewDatabase(t))
}

// bedOn measures on a database that there is.
func bedOn(t *testing.T, d *testdb.Database) *bed {
	t.Helper()
	b := &bed{T: t, Database: d}
	b.pool, b.dialect = b.open("")
	return b
}

// durable shapes a server as production has it; more are settings besides.
func durable(e testdb.Engine, more ...string) []testdb.Option {
	options := []testdb.Option{testdb.Durable()}
	for _, s := range append(slices.Clone(settings[e.Family]), more...) {
		options = append(options, testdb.Setting(s))
	}
	switch e {
	case testdb.MariaDB:
		options = append(options, testdb.Setting("innodb-log-file-size=512M"))
	case testdb.MySQL:
		options = append(options, testdb.Setting("innodb-redo-log-capacity=512M"))
	}
	return options
}

// settings are the ones that tests keep small and a production server does not.
var settings = map[string][]string{
	"postgres": {"shared_buffers=1GB", "max_wal_size=1GB", "fsync=on", "synchronous_commit=on"},
	"mysql":    {"innodb-buffer-pool-size=1G", "innodb-flush-log-at-trx-commit=1"},
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) sql(query string, args ...any) {
	b.Helper()
	b.Exec(b.T, query, args...)
}

func (b *bed) number(query string) (n int64) {
	b.Helper()
	b.must(b.Admin().QueryRowContext(b.Context(), query).Scan(&n))
	return n
}

func (b *bed) version() string {
	query := "SELECT version()"
	if !b.HasServer() {
		query = "SELECT 'SQLite ' || sqlite_version()"
	}
	var version string
	b.must(b.Admin().QueryRowContext(b.Context(), query).Scan(&version))
	return version
}

// open opens a pool as the rowfeed command does; query is added to the URL.
func (b *bed) open(query string) (*sql.DB, dialect.Dialect) {
	b.Helper()
	pool, d, err := open.Open(b.Context(), b.URL+query, open.Options{})
	b.must(err)
	b.Cleanup(func() { _ = pool.Close() })
	return pool, d
}

// rowfeed prepares the library on a pool, with its tables.
func (b *bed) rowfeed(pool *sql.DB, cfg *rowfeed.Config) *rowfeed.DB {
	b.Helper()
	db, err := rowfeed.Open(b.Context(), pool, b.dialect, cfg)
	b.must(err)
	_, err = db.Migrate(b.Context())
	b.must(err)
	return db
}

// fill makes a table of n rows of 200 bytes with the ids 1 to n.
func (b *bed) fill(table string, n int) {
	b.Helper()
	key := "bigint"
	if b.Family == "sqlite" {
		key = "INTEGER" // the row's own number, as most SQLite tables have it
	}
	b.sql("CREATE TABLE " + table + " (id " + key + " NOT NULL PRIMARY KEY, payload varchar(200) NOT NULL)")
	b.sql("INSERT INTO " + table + " VALUES (1, '" + payload + "')")
	for have := 1; have < n; have *= 2 {
		b.sql(fmt.Sprintf("INSERT INTO %s SELECT id + %d, payload FROM %s WHERE id <= %d", table, have, table, n-have))
	}
	b.analyze(table)
}

func (b *bed) analyze(table string) {
	b.Helper()
	if b.Family == "mysql" {
		table = "TABLE " + table
	}
	b.sql("ANALYZE " + table)
}

var payload = string(make200())

func make200() []byte {
	text := make([]byte, 200)
	for i := range text {
		text[i] = byte('a' + i%26)
	}
	return text
}

// passes publishes in batches of one size; what fails ends the test.
type passes struct {
	*bed
	db     *rowfeed.DB
	passes *measure.Passes
}

func (b *bed) passes(pool *sql.DB, size int) *passes {
	b.Helper()
	p, err := measure.NewPasses(func(cfg rowfeed.Config) (*rowfeed.DB, error) {
		cfg.BatchSize = size
		cfg.Observer.Retried = func(e rowfeed.RetryEvent) { b.Logf("retried: %+v", e) }
		return b.rowfeed(pool, &cfg), nil
	})
	b.must(err)
	return &passes{bed: b, db: p.DB, passes: p}
}

// pass publishes one batch; no keys when nothing waits.
func (p *passes) pass(f *rowfeed.Feed) (keys int) {
	p.Helper()
	keys, err := p.passes.Pass(p.Context(), f)
	p.must(err)
	return keys
}

// drain publishes everything that waits and answers the keys and the time.
func (p *passes) drain(f *rowfeed.Feed) (keys int, took time.Duration) {
	p.Helper()
	keys, took, err := p.passes.Drain(p.Context(), f)
	p.must(err)
	return keys, took
}

func (b *bed) add(db *rowfeed.DB, spec rowfeed.FeedSpec) *rowfeed.Feed {
	b.Helper()
	f, err := db.AddFeed(b.Context(), spec, nil)
	b.must(err)
	return f
}
