package ulid

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLockFunctionBoundsItsArguments (M41): PostgreSQL has infinite times and texts of any length. The function refuses
// an infinite hint as it refuses any hint ahead of the clock, and accepts one of minus infinity. The nonces that it
// stores with a shard have a limited length.
func TestLockFunctionBoundsItsArguments(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // others have no such times, and a parameter of 40 characters
	suite.EachULID(t, func(x *suite.Events) {
		tx := x.Begin(sql.LevelReadCommitted)
		_, err := tx.ExecContext(x.Ctx, x.Text("ulid.lock_with_endless_hint"))
		if err == nil || !strings.Contains(err.Error(), "ahead of the clock") {
			t.Errorf("error %v, want one about a hint ahead of the clock", err)
		}
		tx.Rollback()
		tx = x.Begin(sql.LevelReadCommitted)
		x.In(tx, x.Statements("ulid.lock_with_odd_arguments")...)
		x.Commit(tx)
		nonces := x.List("SELECT witness FROM rowfeed_shards WHERE shard = 5")
		if len(nonces) != 1 || nonces[0] != "y "+strings.Repeat("x", 40) {
			t.Errorf("the shard's state has the nonces %.200q", nonces)
		}
	})
}
