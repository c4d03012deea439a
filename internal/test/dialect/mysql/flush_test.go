package mysql_test

import (
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
)

// TestFlushNeedsAutocommit (G7): a statement outside of a transaction is a commit only with the session's autocommit.
// In an open transaction Flush writes nothing and returns an error, because what it wrote would not be on the disk.
func TestFlushNeedsAutocommit(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		d, f, _ := h.plain()
		flushed := int64(0)
		look := func(name string, d *dialect.Dialect, on dialect.SQLQuerier, want bool) {
			t.Helper()
			done, err := d.Flushing.FlushAlone(h.ctx(), dialect.On(on), f.Names)
			h.must(err)
			if want {
				flushed++
			}
			var n int64
			h.must(h.Admin().QueryRowContext(h.ctx(), "SELECT COALESCE(SUM(flush_count), 0) FROM "+
				"rowfeed_flushes").Scan(&n))
			if done != want || n != flushed {
				t.Errorf("%s: flushed is %v, %d of %d flushes are there", name, done, n, flushed)
			}
		}
		mariadb := h.Engine.Name == "mariadb"
		look("any session", d, h.pool(), mariadb)
		look("before a page was read", mysql.New(), h.pool(), false)
		look("autocommit=0", d, h.pool("autocommit=0"), false)
		left, err := h.pool().Conn(h.ctx())
		h.must(err)
		defer left.Close()
		_, err = left.ExecContext(h.ctx(), "START TRANSACTION")
		h.must(err)
		look("a transaction that was left open", d, left, false)
		_, err = left.ExecContext(h.ctx(), "ROLLBACK")
		h.must(err)
		look("and ended", d, left, mariadb)
	})
}
