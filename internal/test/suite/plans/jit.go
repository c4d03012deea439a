package plans

import (
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestForcedPlansAreNotCompiled (M53): where plans are forced their cost means nothing, and
// must not have PostgreSQL compile them: renewing the leases of a group took a second of
// a core each time.
func TestForcedPlansAreNotCompiled(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // the others have no compiler
	suite.Each(t, func(x *suite.Env) {
		for _, p := range []dialect.Purpose{
			dialect.ForPublish, dialect.ForRecord, dialect.ForRepair,
			dialect.ForRead, dialect.ForCheck, dialect.ForConsume,
		} {
			tx, err := x.Pool.BeginTx(x.Ctx, x.Dialect.TxOptions(p))
			if err != nil {
				x.Fatal(err)
			}
			x.In(tx, x.Dialect.Settings(p, dialect.Names{})...)
			var scans, jit string
			if err := tx.QueryRowContext(x.Ctx, x.Text("plans.forced_and_compiled")).Scan(&scans, &jit); err != nil {
				x.Fatal(err)
			}
			if (scans == "off") != (jit == "off") {
				x.Errorf("purpose %d: enable_seqscan is %s and jit is %s", p, scans, jit)
			}
			if err := tx.Rollback(); err != nil {
				x.Fatal(err)
			}
		}
	})
}
