package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRenewalUsesThePrimaryKey (M53): the statement that renews all claims of a member finds them by their key, with
// the settings under which it runs. PostgreSQL would otherwise compile the plan, which takes a tenth of a second of
// processor time at each beat.
func TestRenewalUsesThePrimaryKey(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		var mu sync.Mutex
		var settings, renewal string
		var args []driver.NamedValue
		rf := stranger(x, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case strings.Contains(ev.SQL, "enable_seqscan"):
				settings = ev.SQL
			case strings.HasPrefix(ev.SQL, "UPDATE") && strings.Contains(ev.SQL, " OR "):
				renewal, args = ev.SQL, ev.Args
			}
			return nil
		}})
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- rf.Group("g", suite.GroupJobs, suite.GroupTTL).Run(ctx, suite.UntilAsked) }()
		x.Eventually("the member renews all its claims", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(args) > 3*suite.GroupJobs
		})
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if settings == "" {
			x.Fatal("the settings of the transaction were not seen")
		}
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, strings.Split(settings[strings.Index(settings, ";")+1:], "; ")...)
		var values []any
		for _, a := range args {
			values = append(values, a.Value)
		}
		rows, err := tx.QueryContext(x.Ctx, "EXPLAIN "+renewal, values...)
		if err != nil {
			x.Fatal(err)
		}
		defer rows.Close()
		var plan string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				x.Fatal(err)
			}
			plan += line + "\n"
		}
		if strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "Bitmap") || strings.Contains(plan, "JIT") ||
			!strings.Contains(plan, "Index Scan") {
			x.Errorf("the plan of the renewal:\n%s", plan)
		}
	})
}
