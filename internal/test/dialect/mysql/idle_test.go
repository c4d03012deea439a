package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestWaitTimeoutIsRestoredAfterPass: in a publisher's transaction wait_timeout is at most ten seconds. Afterwards it
// is restored, however the pass ends, so that no other user of the pool loses a connection.
func TestWaitTimeoutIsRestoredAfterPass(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY)")
		h.add(h.open(), "t")
		const connections = 2
		waitTimeout := func(q dialect.Querier) (seconds int) {
			t.Helper()
			h.must(dialect.QueryRow(h.ctx(), q, "SELECT @@SESSION.wait_timeout", nil, &seconds))
			return seconds
		}
		for _, own := range []struct {
			param   string
			seconds int
			inPass  int
		}{{"wait_timeout=77", 77, 10}, {"wait_timeout=5", 5, 5}} {
			var inPass func(ev testdb.TapEvent) error
			var passes atomic.Int64
			pool := h.OpenTapped(t, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if ev.InTx && strings.Contains(ev.SQL, "rowfeed_changes_t") {
					passes.Add(1)
					return inPass(ev)
				}
				return nil
			}}, own.param)
			pool.SetMaxOpenConns(connections)
			pool.SetMaxIdleConns(connections)
			rf, err := rowfeed.Open(h.ctx(), pool, mysql.New(), nil)
			h.must(err)
			f, err := rf.Feed(h.ctx(), "t")
			h.must(err)
			for _, ending := range []string{"committed", "failed", "canceled"} {
				h.sql("INSERT INTO t SELECT COALESCE(MAX(id), 0) + 1 FROM t")
				ctx, cancel := context.WithCancel(h.ctx())
				inPass = func(testdb.TapEvent) error {
					switch ending {
					case "failed":
						return testdb.ErrInjected
					case "canceled":
						cancel()
					}
					return nil
				}
				passes.Store(0)
				_, err := f.Publish(ctx)
				cancel()
				if passes.Load() == 0 || (err == nil) != (ending == "committed") {
					t.Fatalf("%s, %s: %d statements about changes, error %v", own.param, ending, passes.Load(), err)
				}
				var sessions []*sql.Conn
				for range connections {
					c, err := pool.Conn(h.ctx())
					h.must(err)
					sessions = append(sessions, c)
					if got := waitTimeout(dialect.On(c)); got != own.seconds {
						t.Errorf("%s, %s: the session's wait_timeout is %d", own.param, ending, got)
					}
				}
				for _, c := range sessions {
					h.must(c.Close())
				}
			}

			tx, err := pool.BeginTx(h.ctx(), nil)
			h.must(err)
			q := dialect.On(tx)
			for _, s := range mysql.New().Begin(dialect.ForPublish, dialect.Names{}).First {
				_, err := q.Exec(h.ctx(), s)
				h.must(err)
			}
			if got := waitTimeout(q); got != own.inPass {
				t.Errorf("%s: wait_timeout is %d in a publisher's transaction", own.param, got)
			}
			if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
				t.Error(err)
			}
		}
	})
}
