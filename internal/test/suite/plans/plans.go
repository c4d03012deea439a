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
	name, columns string
	key           string // expressions of the key columns of row i
}

var shapes = []shape{
	{"number", "id BIGINT NOT NULL PRIMARY KEY, v BIGINT, w VARCHAR(200)", "i"},
	{"texts", "ns VARCHAR(20) NOT NULL, k VARCHAR(50) NOT NULL, v BIGINT, w VARCHAR(200), PRIMARY KEY (ns, k)",
		"CONCAT('ns', i % 7), CONCAT('key', i)"},
}

// create returns the statement that creates the table.
func (s shape) create() string { return "CREATE TABLE hot (" + s.columns + ")" }

// insert adds the rows from (inclusive) to to (exclusive) in one statement.
func (s shape) insert(x *suite.Env, from, to int) {
	x.Helper()
	columns := " (" + strings.Join(x.OwnColumns("hot"), ", ") + ") "
	x.Exec("INSERT INTO hot" + columns + numbered(from, to-1, s.key+", i, '"+strings.Repeat("x", 100)+"'"))
}

// numbered returns a SELECT of the expressions for each number i from first to last, in their order. The numbers must
// be below 250,000: a recursion ends after 1,000 steps on some databases.
func numbered(first, last int, expressions string) string {
	const ones = 500
	return fmt.Sprintf("WITH RECURSIVE d (x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM d WHERE x < %d)"+
		" SELECT %s FROM (SELECT %d * a.x + b.x AS i FROM d a CROSS JOIN d b WHERE a.x >= %d AND a.x <= %d) n"+
		" WHERE i >= %d AND i <= %d ORDER BY i", ones-1, expressions, ones, first/ones, last/ones, first, last)
}

// tables are those that the statements of a feed with a change log read.
const tables = "hot, rowfeed_positions_hot, rowfeed_changes_hot"

func analyze(x *suite.Env, tables string) {
	x.Helper()
	x.Exec(x.Text("plans.analyze", tables))
}

// vacuum is analyze that also removes dead rows, if the database keeps them.
func vacuum(x *suite.Env) {
	x.Helper()
	x.Exec(x.Text("plans.vacuum", tables))
}

// TestHotStatementsUseIndexes (H17, H29): the statements of publishers and readers use indexes, and neither read a
// table whole nor sort it. That holds for a fresh table and for 100,000 rows, of which 0, 1 and 100 % wait for a
// position. It holds before the first ANALYZE and after it, with plans for a statement's values and with plans that a
// session keeps.
func TestHotStatementsUseIndexes(t *testing.T) {
	testdb.Quick(t)
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				x.Needs("plans.explained_by")
				const batch, few = 100, 1000
				many := 100_000
				if s.name != "number" || suite.Raced() && x.Has.InProcess {
					many = 20_000
				}
				x.Exec(s.create())
				publisher := x.Add(rowfeed.FeedSpec{Name: "hot", Table: "hot"})
				p := newPlans(x, batch)
				p.measure("empty")
				analyze(x, tables)
				s.insert(x, 0, 3)
				p.measure("fresh, all waiting")
				s.insert(x, 3, few)
				x.Publish(publisher)
				x.Exec("UPDATE hot SET v = v + 1")
				vacuum(x)
				small := p.measure("1,000 rows, all waiting")
				// From here on the statistics are those of an empty table.
				x.Exec("DELETE FROM hot")
				x.Publish(publisher)
				x.Exec("DELETE FROM rowfeed_positions_hot")
				analyze(x, tables)
				s.insert(x, 0, many)
				p.measure("all waiting, never published")
				if s.name == "texts" {
					analyze(x, tables)
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
				analyze(x, tables)
				p.measure("all waiting, analyzed")
				x.Publish(publisher)
				p.measure("nothing waiting, analyzed when all was")
				analyze(x, tables)
				p.measure("nothing waiting, analyzed")
				x.Exec("UPDATE hot SET v = v + 1 WHERE v % 100 = 0")
				p.measure("1 % waiting, analyzed when nothing was")
				vacuum(x)
				large := p.measure("1 % waiting, analyzed")
				for name, c := range large {
					if before, ok := small[name]; ok && (c.rows > 2*before.rows+100 || c.pages > 3*before.pages+100) {
						x.Errorf("%s cost %+v in a table of %d rows and %+v in one of %d", name, before, few, c, many)
					}
				}
				x.Logf("1,000 rows: %v", small)
				x.Logf("%d rows: %v", many, large)
			})
		})
	}
}

// TestBackfillBatchesCostTheSame: republishing the rows of a table begins each batch behind the last key of the one
// before. A batch costs the same wherever it begins, whether or not the table was ever analyzed.
func TestBackfillBatchesCostTheSame(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				x.Needs("plans.explained_by")
				const batch = 200
				x.Exec(s.create())
				s.insert(x, 0, 30_000)
				x.Add(rowfeed.FeedSpec{Name: "hot", Table: "hot"})
				p := newPlans(x, batch)
				enough := errors.New("enough")
				if x.Has.SoonAnalyzed {
					analyze(x, tables)
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
						x.Fatalf("60 batches sent %d statements, want 2 for each", len(list))
					}
					for _, i := range []int{0, 1, 2, 3, 118, 119} {
						what := fmt.Sprintf("%s, batch %d, %s", state, i/2, list[i].name)
						x.Logf("%s: %+v", what, p.explain(what, list[i]))
					}
					analyze(x, tables)
				}
			})
		})
	}
}

// TestKeptPlansStayGood (H29): sessions keep the plans of statements that they run often. Plans that a session made
// while no row waited for a position read no table whole when all rows wait. PostgreSQL counts the rows of such reads.
func TestKeptPlansStayGood(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // sessions of the others keep no plans
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		const rows = 20_000
		x := suite.NewEnv(t, e, &rowfeed.Config{BatchSize: 100})
		x.Migrate()
		x.Exec(shapes[0].create())
		f := x.Add(rowfeed.FeedSpec{Name: "hot", Table: "hot"})
		shapes[0].insert(x, 0, rows)
		x.Publish(f)
		vacuum(x)
		x.Pool.SetMaxOpenConns(2)
		for range 20 {
			x.Publish(f)
			x.Fetch(f, "", 1)
			x.Fetch(f, rowfeed.Now, 1)
		}
		scanned := func() int64 { return x.Scalar(x.Text("plans.rows_scanned")) }
		before := scanned()
		x.Exec("UPDATE hot SET v = v + 1")
		x.Publish(f)
		for cursor, more := rowfeed.Cursor(fmt.Sprint(rows)), true; more; {
			page := x.Fetch(f, cursor, 1000)
			cursor, more = page.Cursor, page.More
		}
		x.Pool.Close() // sessions report what they did when they end
		x.Eventually("the sessions have reported", func() bool {
			return x.Scalar(x.Text("plans.changes_deleted")) >= 2*rows
		})
		if n := scanned() - before; n > 1000 {
			t.Errorf("%d rows were read by scanning whole tables", n)
		}
	})
}
