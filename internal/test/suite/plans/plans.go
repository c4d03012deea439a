package plans

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// shape is a table to publish: rows are numbered from 0.
type shape struct {
	name, create string
	key          map[string]string // by family: the key columns' expressions over n
}

var shapes = []shape{
	{"number", "CREATE TABLE hot (id BIGINT NOT NULL PRIMARY KEY, v BIGINT, w VARCHAR(200))",
		map[string]string{"sqlite": "n", "postgres": "n", "mysql": "n"}},
	{
		"texts",
		"CREATE TABLE hot (ns VARCHAR(20) NOT NULL, k VARCHAR(50) NOT NULL, v BIGINT, w VARCHAR(200), PRIMARY KEY " +
			"(ns, k))",
		map[string]string{
			"sqlite":   "'ns' || (n % 7), 'key' || n",
			"postgres": "'ns' || (n % 7), 'key' || n",
			"mysql":    "CONCAT('ns', n % 7), CONCAT('key', n)",
		},
	},
}

// insert adds the rows from (inclusive) to to (exclusive) in one statement.
func (s shape) insert(x *suite.Env, from, to int) {
	x.Helper()
	series := x.By(map[string]string{
		"sqlite":   "WITH RECURSIVE s(n) AS (SELECT %d UNION ALL SELECT n + 1 FROM s WHERE n < %d)",
		"postgres": "WITH s(n) AS (SELECT * FROM generate_series(%d, %d))",
		"mysql":    "WITH RECURSIVE s(n) AS (SELECT %d UNION ALL SELECT n + 1 FROM s WHERE n < %d)",
	})
	columns := " (" + strings.Join(x.OwnColumns("hot"), ", ") + ")"
	with := fmt.Sprintf(series, from, to-1)
	rows := " SELECT " + s.key[x.Family()] + ", n, '" + strings.Repeat("x", 100) + "' FROM s"
	switch x.Engine {
	case testdb.MariaDB: // both statements on one connection
		x.Exec("SET SESSION max_recursive_iterations = 1000000; INSERT INTO hot" + columns + " " + with + rows)
	case testdb.MySQL:
		x.Exec("SET SESSION cte_max_recursion_depth = 1000000; INSERT INTO hot" + columns + " " + with + rows)
	default:
		x.Exec(with + " INSERT INTO hot" + columns + rows)
	}
}

func analyze(x *suite.Env) {
	x.Helper()
	x.Exec(
		x.By(
			map[string]string{
				"sqlite":   "ANALYZE",
				"postgres": "ANALYZE",
				"mysql":    "ANALYZE TABLE hot, rowfeed_positions_hot, rowfeed_changes_hot",
			},
		),
	)
}

// vacuum is analyze, and on PostgreSQL clears away what is dead: that costs, too, and
// is measured elsewhere (hazard 29).
func vacuum(x *suite.Env) {
	x.Helper()
	analyze(x)
	if x.Family() == "postgres" {
		x.Exec("VACUUM ANALYZE")
	}
}

// TestHotStatementsUseIndexes (H17, H29): what publishers
// and readers run all day is done by keys and indexes, never by reading a table whole
// or sorting it: on a fresh table and on one of 100,000 rows, with 0, 1 and 100 % of
// them waiting, before the first ANALYZE and after it, with plans made for the values
// and with plans kept from before.
func TestHotStatementsUseIndexes(t *testing.T) {
	testdb.Quick(t)
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				const batch, few = 100, 1000
				many := 100_000
				if s.name != "number" || suite.Raced() && x.Family() == "sqlite" {
					many = 20_000
				}
				x.Exec(s.create)
				publisher := x.Add(rowfeed.FeedSpec{Name: "hot", Table: "hot"})
				p := newPlans(x, batch)
				p.measure("empty")
				analyze(x)
				s.insert(x, 0, 3)
				p.measure("fresh, all waiting")
				s.insert(x, 3, few)
				x.Publish(publisher)
				x.Exec("UPDATE hot SET v = v + 1")
				vacuum(x)
				small := p.measure("1,000 rows, all waiting")
				// Statistics that are good for nothing but an empty table.
				x.Exec("DELETE FROM hot")
				x.Publish(publisher)
				x.Exec("DELETE FROM rowfeed_positions_hot")
				analyze(x)
				s.insert(x, 0, many)
				p.measure("all waiting, never published")
				if s.name == "texts" {
					analyze(x)
					p.measure("all waiting, never published, analyzed")
				}
				x.Publish(publisher)
				p.measure("nothing waiting")
				x.Exec("DELETE FROM hot WHERE v % 2000 = 1")
				p.measure("some deleted, by the statistics of an empty table")
				x.Publish(publisher)
				x.Exec("UPDATE hot SET v = v + 1 WHERE v % 100 = 0")
				p.measure("1 % waiting")
				x.Exec("UPDATE hot SET v = v + 1")
				p.measure("all waiting")
				analyze(x)
				p.measure("all waiting, analyzed")
				x.Publish(publisher)
				p.measure("nothing waiting, analyzed when all was")
				analyze(x)
				p.measure("nothing waiting, analyzed")
				x.Exec("UPDATE hot SET v = v + 1 WHERE v % 100 = 0")
				p.measure("1 % waiting, analyzed when nothing was")
				vacuum(x)
				large := p.measure("1 % waiting, analyzed")
				for name, c := range large {
					if before, ok := small[name]; ok && (c.rows > 2*before.rows+100 || c.pages > 3*before.pages+100) {
						x.Errorf("%s: %+v at %d rows, %+v at %d", name, before, few, c, many)
					}
				}
				x.Logf("1,000 rows: %v", small)
				x.Logf("%d rows: %v", many, large)
			})
		})
	}
}

// TestBackfillBatchesCostTheSame: recording the rows of a table goes from key to key, so that a
// batch costs the same wherever it begins, whether or not the table was ever
// analyzed.
func TestBackfillBatchesCostTheSame(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				const batch = 200
				x.Exec(s.create)
				s.insert(x, 0, 30_000)
				x.Add(rowfeed.FeedSpec{Name: "hot", Table: "hot"})
				p := newPlans(x, batch)
				enough := errors.New("enough")
				if x.Family() == "mysql" {
					analyze(x) // they do so themselves, seconds after a table has grown
				}
				for _, state := range []string{"never analyzed", "analyzed"} {
					calls := 0
					list := p.during(func() error {
						_, err := p.feed.Admin().RepublishWhere(x.Ctx, "", batch, func(int64) error {
							if calls++; calls == 60 {
								return enough
							}
							return nil
						})
						if errors.Is(err, enough) {
							err = nil
						}
						return err
					})
					if len(list) != 120 {
						x.Fatalf("%d statements", len(list))
					}
					for _, i := range []int{0, 1, 2, 3, 118, 119} {
						x.Logf("%s, batch %d, %s: %+v", state, i/2, list[i].name,
							p.explain(fmt.Sprintf("%s, batch %d, %s", state, i/2, list[i].name), list[i]))
					}
					analyze(x)
				}
			})
		})
	}
}

// TestKeptPlansStayGood (H29): connections keep the plans of statements that they run
// often. Plans from a time when nothing waited must still be good when everything
// does: PostgreSQL's own count of rows read by scanning whole tables tells.
func TestKeptPlansStayGood(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if e.Family != "postgres" {
			return // SQLite and MySQL plan each execution
		}
		const rows = 20_000
		x := suite.NewEnv(t, e, &rowfeed.Config{BatchSize: 100})
		x.Migrate()
		x.Exec(shapes[0].create)
		f := x.Add(rowfeed.FeedSpec{Name: "hot", Table: "hot"})
		shapes[0].insert(x, 0, rows)
		x.Publish(f)
		x.Exec("VACUUM ANALYZE")
		x.Pool.SetMaxOpenConns(2)
		for range 20 {
			x.Publish(f)
			x.Fetch(f, "", 1)
			x.Fetch(f, rowfeed.Now, 1)
		}
		scanned := func() int64 {
			return x.Scalar("SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname LIKE 'rowfeed_%_hot'")
		}
		before := scanned()
		x.Exec("UPDATE hot SET v = v + 1")
		x.Publish(f)
		for cursor, more := rowfeed.Cursor(fmt.Sprint(rows)), true; more; {
			page := x.Fetch(f, cursor, 1000)
			cursor, more = page.Cursor, page.More
		}
		x.Pool.Close() // sessions report what they did when they end
		x.Eventually("the sessions have reported", func() bool {
			return x.Scalar("SELECT n_tup_del FROM pg_stat_user_tables WHERE relname = 'rowfeed_changes_hot'") >= 2*rows
		})
		if n := scanned() - before; n > 1000 {
			t.Errorf("%d rows were read by scanning whole tables", n)
		}
	})
}
