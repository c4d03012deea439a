package mysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// plain returns a feed of a table t with one row, and a dialect that has read a page in an ordinary session. If the
// server reports enough about the session, the next page begins without a transaction.
func (h *harness) plain() (d *dialect.Dialect, f *dialect.Feed, publish func(row string)) {
	h.Helper()
	h.sql("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
	feed := h.add(h.open(), "t")
	h.publish(feed)
	f, _ = h.feed("t")
	d = mysql.New()
	h.read(d, h.pool(), f, 1)
	return d, f, func(row string) {
		h.sql("INSERT INTO t VALUES (" + row + ")")
		h.publish(feed)
	}
}

// read checks how many rows the feed's first page has.
func (h *harness) read(d *dialect.Dialect, pool *sql.DB, f *dialect.Feed, want int) {
	h.Helper()
	page, err := d.ReadPage(h.ctx(), pool, f, dialect.PageQuery{Limit: 100, MaxBytes: 1 << 20})
	h.must(err)
	if len(page.Rows) != want || page.Head.Number() != int64(want) {
		h.Errorf("%d rows up to %s, want %d", len(page.Rows), page.Head, want)
	}
}

// A page needs a transaction only if the settings of its session require one, or are unknown.
func TestPageBeginsTransactionOnlyIfNeeded(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		_, f, _ := h.plain()
		for params, plain := range map[string]bool{"": true, "transaction_isolation='READ-COMMITTED'": true,
			"transaction_isolation='SERIALIZABLE'": false, "transaction_isolation='READ-UNCOMMITTED'": false,
			"autocommit=0": false} {
			var begins atomic.Int64
			pool := h.OpenTapped(t, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if ev.Kind == testdb.Begin {
					begins.Add(1)
				}
				return nil
			}}, dsnFor(h.Engine, []string{params})...)
			d := mysql.New()
			h.read(d, pool, f, 1) // also learns the settings of this session
			begins.Store(0)
			h.read(d, pool, f, 1)
			if plain = plain && h.Engine == testdb.MariaDB; (begins.Load() == 0) != plain {
				t.Errorf("%q: %d transactions for a page", params, begins.Load())
			}
		}
	})
}

// A page has no uncommitted rows, whatever the sessions of earlier pages were like.
func TestPageHasNoUncommittedRows(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		d, f, _ := h.plain()
		tx, err := h.Admin().BeginTx(h.ctx(), nil)
		h.must(err)
		defer tx.Rollback()
		for _, statement := range []string{"INSERT INTO t VALUES (2)",
			"UPDATE rowfeed_positions_t SET feed_sync_id = 2 WHERE feed_sync_id = 1", "UPDATE rowfeed_sequences SET " +
				"value = 2"} {
			_, err := tx.ExecContext(h.ctx(), statement)
			h.must(err)
		}
		h.read(d, h.pool(dsnFor(h.Engine, []string{"transaction_isolation='READ-UNCOMMITTED'"})...), f, 1)
	})
}

// An open transaction in a session is an error: its snapshot may be old, and rowfeed must not end it.
func TestOpenTransactionOfASessionIsAnError(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		d, f, publish := h.plain()
		pool := h.pool()
		pool.SetMaxOpenConns(1)
		h.read(d, pool, f, 1)
		_, err := pool.ExecContext(h.ctx(), "START TRANSACTION WITH CONSISTENT SNAPSHOT")
		h.must(err)
		publish("2")
		page, err := d.ReadPage(h.ctx(), pool, f, dialect.PageQuery{Limit: 100, MaxBytes: 1 << 20})
		if err == nil {
			t.Errorf("a page up to %v, and %v", page, err)
		}
		_, err = pool.ExecContext(h.ctx(), "COMMIT")
		h.must(err)
		h.read(d, pool, f, 2)
	})
}

// If the connection of a page is closed, the page gets a new one, as every other statement does.
func TestPageReplacesAClosedConnection(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		d, f, _ := h.plain()
		var gone atomic.Bool
		pool := h.OpenTapped(t, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if (ev.Kind == testdb.Begin || isHead(ev) && !ev.InTx) && gone.CompareAndSwap(false, true) {
				return driver.ErrBadConn
			}
			return nil
		}})
		pool.SetMaxOpenConns(1)
		h.read(d, pool, f, 1)
		if !gone.Load() {
			t.Error("the connection was there")
		}
	})
}
