package plans

import (
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestForcedPlansAreNotCompiled (M53): rowfeed forbids PostgreSQL some plans by making them seem expensive. PostgreSQL
// would compile statements that seem so expensive, so rowfeed forbids that, too. Without it, each renewal of a group's
// leases took a second of a core.
func TestForcedPlansAreNotCompiled(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // the others have no compiler
	suite.Each(t, func(x *suite.Env) {
		for _, p := range []dialect.Purpose{
			dialect.ForPublish, dialect.ForRecord, dialect.ForRepair,
			dialect.ForRead, dialect.ForCheck, dialect.ForConsume,
		} {
			begin := x.Dialect.Begin(p, dialect.Names{})
			tx, err := x.Pool.BeginTx(x.Ctx, begin.Options)
			if err != nil {
				x.Fatal(err)
			}
			x.In(tx, begin.First...)
			var scans, jit string
			if err := tx.QueryRowContext(x.Ctx, x.Text("plans.forced_and_compiled")).Scan(&scans, &jit); err != nil {
				x.Fatal(err)
			}
			if (scans == "off") != (jit == "off") {
				x.Errorf("purpose %d: enable_seqscan is %s and jit is %s, want the same of both", p, scans, jit)
			}
			if err := tx.Rollback(); err != nil {
				x.Fatal(err)
			}
		}
	})
}
