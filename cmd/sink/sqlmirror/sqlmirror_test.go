package sqlmirror

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/sinktest"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestMirrorPassesSinkSuite (S5) runs the suite on every database. The tests of the sink in a relay, in one transaction
// with its cursor, are in cmd/internal/suite/relay (TestMirror…).
func TestMirrorPassesSinkSuite(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		large := map[string]string{"sqlite": "text", "postgres": "text", "mysql": "longtext"}[e.Family]
		sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
			db := e.New(t)
			db.Exec(t, "CREATE TABLE kv (id bigint NOT NULL PRIMARY KEY, v "+large+")")
			var down atomic.Bool
			s := openSink(t, db, db.OpenTapped(t, testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error {
				if down.Load() {
					return driver.ErrBadConn
				}
				return nil
			}}))
			return sinktest.Receiver{
				Sink:     s,
				Received: func() []sinktest.Delivery { return received(t, db) },
				Down:     func() { down.Store(true) }, Up: func() { down.Store(false) },
				Refuse:     func(int64) { db.Exec(t, "ALTER TABLE kv RENAME TO gone"); recreate(t, db, large) },
				Idempotent: true, Large: 3 << 20,
			}
		})
	})
}

// recreate creates the table again, with a constraint that refuses key 3.
func recreate(t *testing.T, db *testdb.Database, large string) {
	t.Helper()
	db.Exec(t, "CREATE TABLE kv (id bigint NOT NULL PRIMARY KEY CHECK (id <> 3), v "+large+")")
}

func openSink(t *testing.T, db *testdb.Database, pool *sql.DB) *Sink {
	t.Helper()
	d, err := open.Dialect(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	rf, err := rowfeed.Open(t.Context(), pool, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), Config{Pool: pool, Dialect: d, DB: rf, Table: "kv"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func received(t *testing.T, db *testdb.Database) (all []sinktest.Delivery) {
	t.Helper()
	rows, err := db.Admin().QueryContext(context.Background(), "SELECT id, v FROM kv ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		d := sinktest.Delivery{Op: feedtype.Upsert}
		if err := rows.Scan(&d.Key, &d.V); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLastVersionOfAKeyCounts: a batch of another source than a feed may contain a key twice. The last version counts.
func TestLastVersionOfAKeyCounts(t *testing.T) {
	db := testdb.SQLite.New(t)
	db.Exec(t, "CREATE TABLE kv (id bigint NOT NULL PRIMARY KEY, v text)")
	s := openSink(t, db, db.OpenTapped(t, testdb.Hooks{}))
	batch := []sink.Entry{sinktest.Upsert(t, 1, 1, "a"), sinktest.Delete(t, 2, 1), sinktest.Upsert(t, 3, 1, "b"),
		sinktest.Upsert(t, 4, 2, "c"), sinktest.Delete(t, 5, 2)}
	for _, r := range s.Deliver(t.Context(), batch) {
		if r.State != sink.Accepted {
			t.Fatal(r.Err)
		}
	}
	if got := received(t, db); len(got) != 1 || got[0].Key != 1 || got[0].V != "b" {
		t.Errorf("the mirror has %v", got)
	}
	if err := s.Close(); err != nil || !errors.Is(s.Deliver(t.Context(), batch)[0].Err, errClosed) {
		t.Errorf("closed: %v", err)
	}
}
