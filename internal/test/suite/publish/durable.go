package publish

import (
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPublishingIsSynchronous (G7): transactions that write positions and generations are durable on disk, whatever the
// settings of the database and the connection are. Triggers record which settings hold in these transactions. A
// setting that waits for more than the disk is kept.
func TestPublishingIsSynchronous(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		f := x.AddKV()
		x.Exec(x.Statements("publish.note_settings")...)
		for i, c := range []struct{ setting, want string }{
			{"off", "on"}, {"local", "on"}, {"on", "on"}, {"remote_apply", "remote_apply"},
		} {
			x.Exec(x.Statements("publish.lax_database", x.DB.Name, c.setting)...)
			pool := x.DB.OpenTapped(t, testdb.Hooks{}, x.Statements("publish.lax_parameters", c.setting)...)
			rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
			if err != nil {
				x.Fatal(err)
			}
			own, err := rf.Feed(x.Ctx, "kv")
			if err != nil {
				x.Fatal(err)
			}
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
			x.Publish(own)
			if _, err := own.Admin().Bump(x.Ctx); err != nil {
				x.Fatal(err)
			}
			if n := x.Scalar("SELECT count(DISTINCT on_table) FROM settings"); n != 3 {
				x.Errorf("%s: %d of 3 tables were written", c.setting, n)
			}
			wrong := "synchronous <> '" + c.want + "' OR isolation <> 'read committed'"
			if n := x.Scalar("SELECT count(*) FROM settings WHERE " + wrong); n != 0 {
				x.Errorf("%s: %d writes in transactions with other settings", c.setting, n)
			}
			x.Exec("DELETE FROM settings")
			pool.Close()
		}
		x.WantSound(f)
	})
}
