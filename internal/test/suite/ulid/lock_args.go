package ulid

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLockFunctionBoundsItsArguments (M41): PostgreSQL has times without end, and words of any length: a hint that never comes
// is refused like any that is ahead, one that has always been counts as none that is, and what a writer leaves
// with a shard is bounded, whatever it says.
func TestLockFunctionBoundsItsArguments(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere there are no such times, and the parameter has 40 characters
	suite.EachULID(t, func(x *suite.Events) {
		tx := x.Begin(sql.LevelReadCommitted)
		if _, err := tx.ExecContext(x.Ctx, "SELECT rowfeed_lock_events(5, 'infinity')"); err == nil || !strings.Contains(err.Error(), "ahead of the clock") {
			t.Error(err)
		}
		tx.Rollback()
		tx = x.Begin(sql.LevelReadCommitted)
		x.In(tx, "SELECT rowfeed_lock_events(5, '-infinity')", "SELECT rowfeed_lock_events(5, NULL, repeat('x', 100000))", "SELECT rowfeed_lock_events(5, NULL, repeat('y z', 100))")
		x.Commit(tx)
		if words := x.List("SELECT witness FROM rowfeed_shards WHERE shard = 5"); len(words) != 1 || words[0] != "y "+strings.Repeat("x", 40) {
			t.Errorf("left with the shard: %.200q", words)
		}
	})
}
