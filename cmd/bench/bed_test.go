package bench

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/bench/measuring"
	measure "github.com/rowfeed/rowfeed/cmd/internal/bench"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// bed is a database to measure on.
type bed struct{ *measuring.Bed }

// each runs a measurement on every engine, each on a server of its own.
func each(t *testing.T, measure func(b *bed)) {
	testdb.Quick(t) // only ROWFEED_TEST_ENGINES selects engines
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		b := newBed(t, e)
		b.Logf("%s", b.Version())
		measure(b)
	})
}

func newBed(t *testing.T, e testdb.Engine) *bed {
	t.Helper()
	return &bed{measuring.New(t, e)}
}

// fill makes a table of n rows of 200 bytes with the ids 1 to n.
func (b *bed) fill(table string, n int) {
	b.Helper()
	key := "bigint"
	if b.Family == "sqlite" {
		key = "INTEGER" // the rowid, as in most SQLite tables
	}
	b.SQL("CREATE TABLE " + table + " (id " + key + " NOT NULL PRIMARY KEY, payload varchar(200) NOT NULL)")
	b.SQL("INSERT INTO " + table + " VALUES (1, '" + payload + "')")
	for have := 1; have < n; have *= 2 {
		b.SQL(fmt.Sprintf("INSERT INTO %s SELECT id + %d, payload FROM %s WHERE id <= %d", table, have, table, n-have))
	}
	b.analyze(table)
}

func (b *bed) analyze(table string) {
	b.Helper()
	if b.Family == "mysql" {
		table = "TABLE " + table
	}
	b.SQL("ANALYZE " + table)
}

// passes publishes in batches of one size. An error ends the test.
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
		return b.Rowfeed(pool, &cfg), nil
	})
	b.Must(err)
	return &passes{bed: b, db: p.DB, passes: p}
}

// pass publishes one batch. It returns 0 if no key is pending.
func (p *passes) pass(f *rowfeed.Feed) (keys int) {
	p.Helper()
	keys, err := p.passes.Pass(p.Context(), f)
	p.Must(err)
	return keys
}

// drain publishes all pending keys, and returns their number and the time.
func (p *passes) drain(f *rowfeed.Feed) (keys int, took time.Duration) {
	p.Helper()
	keys, took, err := p.passes.Drain(p.Context(), f)
	p.Must(err)
	return keys, took
}
