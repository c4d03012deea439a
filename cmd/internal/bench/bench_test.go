package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/tap"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
	"github.com/rowfeed/rowfeed/internal/test/testleaks"
)

func TestMain(m *testing.M) {
	testdb.RegisterChild("bench", func() {
		cfg := tiny(os.Getenv("URL"))
		cfg.Measures = []string{os.Getenv("MEASURE")}
		if n, err := strconv.ParseInt(os.Getenv("STATEMENT"), 10, 64); err == nil {
			hooks := testdb.BlockAt(n)
			cfg.tap = &hooks
		}
		blocked := testdb.BlockAt(1)
		cfg.Doing = func(what string, _ float64) {
			if at := os.Getenv("AT"); at != "" && strings.HasPrefix(what, at) {
				_ = blocked.Before(context.Background(), testdb.TapEvent{N: 1, SQL: what})
			}
		}
		if _, err := Run(context.Background(), cfg); err != nil {
			panic(err)
		}
	})
	testdb.Main(m)
}

// tiny returns the config of a run of a few seconds. It accepts a server that may forget commits.
func tiny(url string) Config {
	return Config{URL: url, DB: rowfeed.Config{UnsafeDurability: true}, Rows: 1200, Payload: 20, Writers: 3,
		Repetitions: 2, Window: 10 * time.Millisecond, Rate: 1000}
}

// user is a user's database: a table with a feed, and changes that are not yet published. A bench must not touch
// any of it.
type user struct {
	*testing.T
	*testdb.Database
	schema, rows string
}

func each(t *testing.T, test func(u *user)) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		u := &user{T: t, Database: e.New(t)}
		// This goroutine starts child processes.
		testleaks.None(t, goleak.IgnoreAnyFunction("github.com/rowfeed/rowfeed/internal/test/testdb.init.func1.1"))
		db := u.library("")
		_, err := db.Migrate(t.Context())
		u.must(err)
		u.Exec(t, "CREATE TABLE kv (id bigint NOT NULL PRIMARY KEY, v varchar(20))")
		u.Exec(t, "INSERT INTO kv VALUES (1, 'jim'), (2, NULL)")
		_, err = db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
		u.must(err)
		u.schema, u.rows = u.Dump(t), u.content()
		test(u)
	})
}

func (u *user) must(err error) {
	u.Helper()
	if err != nil {
		u.Fatal(err)
	}
}

// library opens rowfeed on the database, with a prefix.
func (u *user) library(prefix string) *rowfeed.DB {
	u.Helper()
	pool, d, err := open.Open(u.Context(), u.URL, open.Options{})
	u.must(err)
	u.Cleanup(func() { pool.Close() })
	db, err := rowfeed.Open(u.Context(), pool, d, &rowfeed.Config{Prefix: prefix, UnsafeDurability: true})
	u.must(err)
	return db
}

// content returns the rows of the user's tables and feeds.
func (u *user) content() string {
	u.Helper()
	var all []string
	for _, query := range []string{"SELECT id, v, '' FROM kv ORDER BY id",
		"SELECT name, state, generation FROM rowfeed_feeds",
		"SELECT id, kind, seq FROM rowfeed_changes_kv ORDER BY seq",
		"SELECT name, value, version FROM rowfeed_sequences", "SELECT id, feed_sync_id, '' FROM rowfeed_positions_kv",
		"SELECT consumer, feed, '' FROM rowfeed_cursors", "SELECT name, owner, epoch FROM rowfeed_leases"} {
		rows, err := u.Admin().Query(query)
		u.must(err)
		for rows.Next() {
			var a, b, c sql.NullString
			u.must(rows.Scan(&a, &b, &c))
			all = append(all, fmt.Sprint(a.String, b.String, c.String))
		}
		u.must(rows.Err())
		all = append(all, query)
	}
	return strings.Join(all, "\n")
}

// untouched fails if the run left anything, or changed anything of the user's.
func (u *user) untouched() {
	u.Helper()
	if got := u.Dump(u.T); got != u.schema {
		u.Errorf("the schema has changed\nbefore: %s\n after: %s", u.schema, got)
	}
	if got := u.content(); got != u.rows {
		u.Errorf("the user's rows have changed\nbefore: %s\n after: %s", u.rows, got)
	}
}

func (u *user) clean() Cleaned {
	u.Helper()
	cleaned, err := Clean(u.Context(), u.URL, rowfeed.Config{}, 100*time.Millisecond, nil)
	u.must(err)
	return cleaned
}

// TestReportMatchesTables takes all measures. The report counts the rows of the tables, Check finds nothing wrong
// with the feeds, and nothing of the user's has changed.
func TestReportMatchesTables(t *testing.T) {
	each(t, func(u *user) {
		cfg := tiny(u.URL)
		cfg.Keep = true
		var plan Plan
		cfg.Planned = func(p Plan) error { plan = p; u.untouched(); return nil }
		last := 0.0
		cfg.Doing = func(what string, behind float64) {
			if behind < last || behind > 1 {
				u.Errorf("%s: %g of the run is behind it, after %g", what, behind, last)
			}
			last = behind
		}
		report, err := Run(u.Context(), cfg)
		u.must(err)
		if report.Kept != plan.Prefix || plan.Tables != 5 || plan.Rows != cfg.Rows || plan.Bytes == 0 ||
			plan.Duration <= 0 || plan.Database != report.Database.Version {
			u.Errorf("planned: %+v", plan)
		}
		db := u.library(plan.Prefix)
		feeds, err := db.Feeds(u.Context())
		u.must(err)
		var names []string
		written := 0
		for _, f := range feeds {
			names = append(names, f.Name())
			findings, err := f.Admin().Check(u.Context())
			u.must(err)
			if len(findings) > 0 {
				u.Errorf("%s: %+v", f.Name(), findings)
			}
			written += u.count(f.Source().Name)
		}
		if want := []string{"app", "column", "idle", "latency", "trigger"}; !slices.Equal(names, want) {
			u.Errorf("the feeds are %v, want %v", names, want)
		}
		written += u.count(plan.Prefix + sharedTable) // the run has dropped its feeds
		if report.Rows.Written != written || report.Rows.Read != written || report.Rows.Positions < written {
			u.Errorf("%d rows are there, the report says %+v", written, report.Rows)
		}
		u.figures(cfg, report)
		if cleaned := u.clean(); len(cleaned.Removed) != 1 || cleaned.Removed[0].Prefix != plan.Prefix ||
			len(cleaned.AtWork) > 0 {
			u.Errorf("cleaned: %+v", cleaned)
		}
		u.untouched()
	})
}

func (u *user) count(table string) (n int) {
	u.Helper()
	u.must(u.Admin().QueryRow("SELECT count(*) FROM " + table).Scan(&n))
	return n
}

// figures checks that all figures are there. How good they are depends on the machine.
func (u *user) figures(cfg Config, r *Report) {
	u.Helper()
	var lines []string
	for _, w := range r.Writers {
		lines = append(lines, w.Write+" "+w.Capture)
		if w.LongestMS < 0 || w.Commits < 0 || w.RatioLow > w.Ratio || w.Ratio > w.RatioHigh {
			u.Errorf("writers: %+v", w)
		}
	}
	if want := []string{
		"INSERT none", "INSERT trigger", "INSERT app", "INSERT column", "UPDATE none", "UPDATE trigger", "UPDATE app",
		"UPDATE column",
	}; !slices.Equal(lines, want) {
		u.Errorf("writers: %v", lines)
	}
	for i, d := range r.Drain {
		if d.Batch != batches[i] || d.Keys != cfg.Rows || d.New <= 0 || d.Again <= 0 {
			u.Errorf("drain: %+v", d)
		}
	}
	if len(r.Drain) != len(batches) || r.Pages == nil || r.Pages.Entries != cfg.Rows || r.Pages.Speed <= 0 ||
		r.Pages.EndMS <= 0 {
		u.Errorf("drain: %+v, pages: %+v", r.Drain, r.Pages)
	}
	if r.Consume == nil || r.Consume.Entries != cfg.Rows || r.Consume.Speed <= 0 {
		u.Errorf("consume: %+v", r.Consume)
	}
	if l := r.Latency; l == nil || l.Commits != 20 || l.P50MS > l.P99MS || l.P99MS > l.MaxMS || l.Reached <= 0 {
		u.Errorf("latency: %+v", l)
	}
	if r.Idle == nil || r.Idle.Seconds <= 0 {
		u.Errorf("idle: %+v", r.Idle)
	}
	if d := r.Database; d.Kind != u.Family || d.Version == "" || len(d.Settings) < 2 {
		u.Errorf("database: %+v", d)
	}
}

func TestOnlyNamedMeasuresRun(t *testing.T) {
	each(t, func(u *user) {
		cfg := tiny(u.URL)
		cfg.Measures = []string{Idle, Pages}
		report, err := Run(u.Context(), cfg)
		u.must(err)
		if report.Writers != nil || report.Drain != nil || report.Latency != nil || report.Consume != nil ||
			report.Pages == nil || report.Idle == nil || !slices.Equal(report.Options.Measures, []string{Pages, Idle}) {
			u.Errorf("taken: %+v", report)
		}
		u.untouched()
	})
}

// steps has a step of each kind, and a measure that includes the step.
var steps = []struct{ what, measure string }{
	{"making rowfeed's tables", Idle},
	{"filling", Pages},
	{"publishing the rows", Writers},
	{"writers: capture trigger", Writers},
	{"writers: reading", Writers}, {"drain:", Drain}, {"pages: publishing", Pages}, {"pages: reading", Pages}, {
		"consume: reading", Consume,
	}, {"latency:", Latency}, {"idle: a publisher of", Idle}, {"idle: a publisher and", Idle},
}

// TestInterruptedRunRemovesItsTables interrupts a run in each of its steps.
func TestInterruptedRunRemovesItsTables(t *testing.T) {
	each(t, func(u *user) {
		for _, step := range steps {
			ctx, interrupt := context.WithCancel(u.Context())
			cfg := tiny(u.URL)
			cfg.Measures = []string{step.measure}
			reached := false
			cfg.Doing = func(what string, _ float64) {
				if strings.HasPrefix(what, step.what) {
					reached = true
					interrupt()
				}
			}
			_, err := Run(ctx, cfg)
			if !errors.Is(err, context.Canceled) || !reached {
				u.Errorf("%s: reached %v, ended with %v", step.what, reached, err)
			}
			interrupt()
			u.untouched()
		}
	})
}

// TestFailedStatementRemovesTables lets one statement fail: the first, the fourth, the sixteenth and so on. The run
// returns the error and removes everything.
func TestFailedStatementRemovesTables(t *testing.T) {
	each(t, func(u *user) {
		for n := int64(1); ; n *= 4 {
			cfg := tiny(u.URL)
			failed := false
			cfg.tap = &tap.Hooks{Before: func(_ context.Context, ev tap.Event) error {
				if ev.N != n || strings.Contains(ev.SQL, "SET beats") {
					return nil
				}
				failed = true
				return testdb.ErrInjected
			}}
			_, err := Run(u.Context(), cfg)
			u.untouched()
			if !failed {
				u.must(err)
				break
			}
			if !errors.Is(err, testdb.ErrInjected) && err != nil {
				u.Errorf("statement %d fails: %v", n, err)
			}
		}
	})
}

// TestCleanRemovesTablesOfKilledRuns kills a process while it makes its tables, and while it fills, reads and removes
// them.
func TestCleanRemovesTablesOfKilledRuns(t *testing.T) {
	each(t, func(u *user) {
		for _, step := range []struct{ what, measure string }{{"making rowfeed's tables", Idle}, {"filling", Pages},
			{"pages: reading", Pages}, {"removing", Idle}} {
			child := testdb.CrashChild(u.T, "bench", "URL="+u.URL, "AT="+step.what, "MEASURE="+step.measure)
			if !child.WaitMarker(u.Context()) {
				u.Fatalf("%s: not reached: %s", step.what, child.Output())
			}
			child.Kill()
			if u.Dump(u.T) == u.schema {
				u.Errorf("%s: nothing is left of a run that was killed", step.what)
			}
			if cleaned := u.clean(); len(cleaned.Removed) != 1 || cleaned.Removed[0].Owner == "" {
				u.Errorf("%s: cleaned: %+v", step.what, cleaned)
			}
			u.untouched()
		}
	})
}

// TestCleanKeepsTablesOfOthers calls Clean during a run, and in a database with tables that are named like those of a
// run.
func TestCleanKeepsTablesOfOthers(t *testing.T) {
	each(t, func(u *user) {
		u.Exec(u.T, "CREATE TABLE rfbenchabcd_rows (id int)")                                 // no marker
		u.Exec(u.T, "CREATE TABLE rfbenchdcba_run (owner varchar(20), distance int)")         // other columns
		u.Exec(u.T, "CREATE TABLE rfbenchx_run (owner varchar(20), began_at int, beats int)") // no prefix of a run
		u.schema = u.Dump(u.T)
		ctx, cancel := context.WithCancel(u.Context())
		defer cancel()
		atWork, resume := make(chan string, 1), make(chan struct{})
		cfg := tiny(u.URL)
		cfg.Measures = []string{Drain}
		var prefix string
		cfg.Planned = func(p Plan) error { prefix = p.Prefix; return nil }
		cfg.Doing = func(what string, _ float64) {
			if strings.HasPrefix(what, "drain: batches of 100,") {
				select {
				case atWork <- prefix:
					<-resume
				default: // the second repetition
				}
			}
		}
		ended := make(chan error, 1)
		go func() { _, err := Run(ctx, cfg); ended <- err }()
		at := <-atWork
		cleaned, err := Clean(u.Context(), u.URL, rowfeed.Config{}, time.Minute, nil)
		u.must(err)
		if len(cleaned.Removed) > 0 || len(cleaned.AtWork) != 1 || cleaned.AtWork[0].Prefix != at {
			u.Errorf("during the run %s: %+v", at, cleaned)
		}
		close(resume)
		u.must(<-ended)
		u.untouched()
	})
}

// TestMissingEntryFailsTheRun deletes a position before a measure reads the feed.
func TestMissingEntryFailsTheRun(t *testing.T) {
	each(t, func(u *user) {
		for _, c := range []struct{ measure, at, feed string }{
			{Pages, "pages: reading", "pages"},
			{Consume, "consume: reading", "consume"},
			{Writers, "writers: reading what they wrote, capture app", "app"},
		} {
			cfg := tiny(u.URL)
			cfg.Measures = []string{c.measure}
			var prefix string
			cfg.Planned = func(p Plan) error { prefix = p.Prefix; return nil }
			cfg.Doing = func(what string, _ float64) {
				if strings.HasPrefix(what, c.at) {
					u.Exec(u.T, "DELETE FROM "+prefix+"positions_"+c.feed+" WHERE id = 3")
				}
			}
			_, err := Run(u.Context(), cfg)
			if !errors.Is(err, rowfeed.Failed) || !strings.Contains(err.Error(), "rows were written to") ||
				!strings.Contains(err.Error(), "entries read from its feed") {
				u.Errorf("%s: ended with %v", c.measure, err)
			}
			u.untouched()
		}
	})
}

// TestCleanAfterKillAtAnyStatement kills a process before its first statement, its fourth, its sixteenth and so on.
func TestCleanAfterKillAtAnyStatement(t *testing.T) {
	each(t, func(u *user) {
		for n := 1; ; n *= 4 {
			child := testdb.CrashChild(u.T, "bench", "URL="+u.URL, "MEASURE="+Pages, fmt.Sprint("STATEMENT=", n))
			if !child.WaitMarker(u.Context()) {
				break // the run has no more statements
			}
			child.Kill()
			if cleaned := u.clean(); len(cleaned.Removed) > 1 {
				u.Errorf("statement %d: cleaned: %+v", n, cleaned)
			}
			u.untouched()
		}
	})
}

// TestRemovalWaitsForRunningStatements lets the server create a table late, as it does when it continues a statement
// whose client has gone. The removal sees the statement, and waits for it.
func TestRemovalWaitsForRunningStatements(t *testing.T) {
	each(t, func(u *user) {
		if !u.HasServer() {
			return // SQLite: a statement ends with its client
		}
		cfg := tiny(u.URL)
		cfg.Measures = []string{Pages}
		var late string
		cfg.Planned = func(p Plan) error { late = p.Prefix + "late"; return nil }
		flavour := flavours[u.Family]
		created := make(chan error, 1)
		// The statement waits for a lock until the removal has seen the statement.
		waits := map[string]string{"postgres": "pg_advisory_lock(1)::text",
			"mysql": "GET_LOCK(DATABASE(), 1000)"}[u.Family]
		frees := map[string]string{"postgres": "SELECT pg_advisory_unlock(1)",
			"mysql": "SELECT RELEASE_LOCK(DATABASE())"}[u.Family]
		holder, err := u.Admin().Conn(u.Context())
		u.must(err)
		defer holder.Close()
		_, err = holder.ExecContext(u.Context(), "SELECT "+waits)
		u.must(err)
		free := sync.OnceFunc(func() {
			_, err := holder.ExecContext(u.Context(), frees)
			u.must(err)
		})
		cfg.tap = &tap.Hooks{After: func(_ context.Context, ev tap.Event, err error) error {
			if ev.SQL == flavour.busy {
				free()
			}
			return err
		}}
		cfg.Doing = func(what string, _ float64) {
			if what != "removing its tables" {
				return
			}
			go func() {
				_, err := u.Admin().Exec("CREATE TABLE " + late + " AS SELECT " + waits + " AS a")
				created <- err
			}()
			for n := 0; n == 0; {
				u.must(u.Admin().QueryRow(strings.NewReplacer("$1",
					"'"+late+"'", "?", "'"+late+"'").Replace(flavour.busy)).Scan(&n))
				u.must(pause(u.Context(), time.Millisecond))
			}
		}
		_, err = Run(u.Context(), cfg)
		u.must(err)
		free()
		u.must(<-created)
		u.untouched()
	})
}

func TestRunUsesNamedSchema(t *testing.T) {
	each(t, func(u *user) {
		if u.Family != "postgres" {
			return
		}
		u.Exec(u.T, `CREATE SCHEMA "odd.Schema"`)
		u.schema = u.Dump(u.T)
		cfg := tiny(u.URL)
		cfg.DB.Schema, cfg.Keep = "odd.Schema", true
		_, err := Run(u.Context(), cfg)
		u.must(err)
		if cleaned := u.clean(); len(cleaned.Removed) > 0 {
			u.Errorf("in the schema of the connection: %+v", cleaned)
		}
		cleaned, err := Clean(u.Context(), u.URL, cfg.DB, time.Millisecond, nil)
		if u.must(err); len(cleaned.Removed) != 1 {
			u.Errorf("cleaned: %+v", cleaned)
		}
		u.untouched()
	})
}

// TestFailedRemovalNamesWhatIsLeft lets the drop of a table fail. The error says how to remove the table later.
func TestFailedRemovalNamesWhatIsLeft(t *testing.T) {
	each(t, func(u *user) {
		cfg := tiny(u.URL)
		cfg.Measures = []string{Pages}
		cfg.tap = &tap.Hooks{Before: func(_ context.Context, ev tap.Event) error {
			if strings.HasPrefix(ev.SQL, "DROP TABLE") && strings.Contains(ev.SQL, sharedTable) {
				return testdb.ErrInjected
			}
			return nil
		}}
		var plan Plan
		cfg.Planned = func(p Plan) error { plan = p; return nil }
		_, err := Run(u.Context(), cfg)
		var left *LeftError
		if !errors.As(err, &left) || !errors.Is(err, testdb.ErrInjected) {
			u.Fatalf("ended with %v", err)
		}
		for _, want := range []string{
			"table " + plan.Prefix + sharedTable + ", table " + plan.Prefix + marker,
			"Next: run `rowfeed bench --clean`",
		} {
			if !strings.Contains(left.Error(), want) {
				u.Errorf("%q lacks %q", left, want)
			}
		}
		if strings.Contains(left.Error(), "positions") {
			u.Errorf("%q names tables that were removed", left)
		}
		if cleaned := u.clean(); len(cleaned.Removed) != 1 {
			u.Errorf("cleaned: %+v", cleaned)
		}
		u.untouched()
	})
}

// TestStatementsAreCounted checks what the measure idle counts: one round trip for each statement.
func TestStatementsAreCounted(t *testing.T) {
	each(t, func(u *user) {
		d, err := open.Dialect(u.URL)
		u.must(err)
		var sent int
		pool, _, err := open.Open(u.Context(), u.URL,
			open.Options{Tap: &tap.Hooks{Before: func(context.Context, tap.Event) error { sent++; return nil }}})
		u.must(err)
		defer pool.Close()
		tx, err := pool.BeginTx(u.Context(), nil)
		u.must(err)
		_, err = tx.ExecContext(u.Context(), "UPDATE kv SET v = v WHERE id = "+d.Placeholder(1), 7)
		u.must(err)
		u.must(tx.Commit())
		_, err = dialect.On(pool).Exec(u.Context(), "UPDATE kv SET v = v WHERE id = 8")
		u.must(err)
		if sent != 4 { // BEGIN, UPDATE, COMMIT; UPDATE
			u.Errorf("%d statements were counted", sent)
		}
	})
}
