package metrics_test

import (
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLockedRowsAreCountedAsSkipped: rows that another transaction has locked are counted in each pass, and published
// when it has ended. SQLite has one writer at a time, so its publisher waits instead.
func TestLockedRowsAreCountedAsSkipped(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		d := e.New(t)
		pool, spelling, err := open.Open(t.Context(), d.URL, open.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		m := metrics.New(&metrics.Config{WithoutProcess: true})
		db, err := rowfeed.Open(t.Context(), pool, spelling, &rowfeed.Config{Observer: m.Observer()})
		if err == nil {
			_, err = db.Migrate(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		d.Exec(t, `CREATE TABLE kv (id int NOT NULL PRIMARY KEY, v int)`)
		f, err := db.AddFeed(
			t.Context(),
			rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn},
			nil,
		)
		if err != nil {
			t.Fatal(err)
		}
		skipped := func() float64 {
			families, err := m.Registry().Gather()
			if err != nil {
				t.Fatal(err)
			}
			return max(value(families, "publish_rows_skipped_total", "feed=kv"), 0)
		}
		publish := func(want int) {
			t.Helper()
			if n, err := f.Publish(t.Context()); n != want || err != nil {
				t.Fatal(n, err)
			}
		}
		d.Exec(t, `INSERT INTO kv (id, v) VALUES (1, 1), (2, 2), (3, 3)`)
		if !e.HasServer() {
			publish(3)
			if n := skipped(); n != 0 {
				t.Errorf("%v rows skipped", n)
			}
			return
		}
		tx, err := pool.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), `UPDATE kv SET v = 9 WHERE id = 2`); err != nil {
			t.Fatal(err)
		}
		publish(2)
		if n := skipped(); n < 1 {
			t.Errorf("%v rows skipped", n)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		before := skipped()
		publish(1)
		if n := skipped(); n != before {
			t.Errorf("%v rows skipped, then %v", before, n)
		}
	})
}
