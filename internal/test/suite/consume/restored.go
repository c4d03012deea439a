package consume

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestConsumerOfRestoredFeedStartsOver (M74, H15): cursor and effects are in another database, which keeps what the
// restored database has lost. The consumer is refused, starts over by itself, and ends with the effects of the rows
// that exist.
func TestConsumerOfRestoredFeedStartsOver(t *testing.T) {
	testdb.Only(t, testdb.SQLite, testdb.Postgres15, testdb.MariaDB)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		var x *suite.Env
		if e.HasServer() {
			x = suite.OpenEnv(t, e.Dedicated(t).NewDatabase(t), nil)
		} else {
			x = suite.NewEnv(t, e, nil)
		}
		x.Migrate()
		f := x.AddKV()
		y := suite.NewEnv(t, testdb.SQLite, nil)
		y.Migrate()
		r := y.Receiver()
		c := r.Consumer(f, y.RF)
		started := 0
		c.Options.OnRefused = func(ctx context.Context, tx *sql.Tx, refusal error) error {
			started++
			if !suite.IsCode(refusal, rowfeed.HistoryLost) {
				t.Errorf("started over because of %v", refusal)
			}
			_, err := tx.ExecContext(ctx, "DELETE FROM applied")
			return err
		}
		stop := run(r, c)
		effects := func(ids string) func() bool {
			return func() bool {
				var got *string
				err := y.DB.Admin().QueryRow("SELECT group_concat(id, ' ') " +
					"FROM (SELECT id FROM applied ORDER BY generation, position)").Scan(&got)
				return err == nil && got != nil && *got == ids
			}
		}
		x.Fill(3)
		x.Publish(f)
		x.Eventually("three effects", effects("1 2 3"))
		restore := x.DB.Backup(t)
		x.Found(f)
		x.Exec("INSERT INTO kv VALUES (4, 'k', 0), (5, 'k', 0)")
		x.Publish(f)
		x.Eventually("five effects", effects("1 2 3 4 5"))
		restore()
		x.Found(f)
		x.Exec("INSERT INTO kv VALUES (6, 'k', 0), (7, 'k', 0), (8, 'k', 0)")
		x.Publish(f)
		x.Eventually("the effects of what is there", effects("1 2 3 6 7 8"))
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			x.Error(err)
		}
		if started != 1 {
			x.Errorf("started over %d times", started)
		}
	})
}
