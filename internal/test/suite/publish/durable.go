package publish

import (
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPublishingIsSynchronous (G7): whatever server, database, role and
// connection say, the transactions that make positions and generations are committed
// to the disk. The tables themselves say what held in them. What asks for more than
// the disk keeps it.
func TestPublishingIsSynchronous(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		f := x.AddKV()
		x.Exec("CREATE TABLE settings (id int GENERATED ALWAYS AS IDENTITY, on_table text, synchronous text, isolation text)",
			`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO settings (on_table, synchronous, isolation) VALUES (TG_TABLE_NAME, current_setting('synchronous_commit'), current_setting('transaction_isolation'));
  RETURN NULL; END $$`)
		for _, table := range []string{"rowfeed_positions_kv", "rowfeed_sequences", "rowfeed_feeds"} {
			x.Exec("CREATE TRIGGER note AFTER INSERT OR UPDATE ON " + table + " FOR EACH ROW EXECUTE FUNCTION note()")
		}
		for i, c := range []struct{ setting, want string }{{"off", "on"}, {"local", "on"}, {"on", "on"}, {"remote_apply", "remote_apply"}} {
			x.Exec("ALTER DATABASE "+x.DB.Name+" SET synchronous_commit = "+c.setting,
				"ALTER DATABASE "+x.DB.Name+" SET default_transaction_isolation = 'serializable'",
				"ALTER DATABASE "+x.DB.Name+" SET default_transaction_read_only = on")
			pool := x.DB.OpenTapped(t, testdb.Hooks{}, "synchronous_commit="+c.setting, "default_transaction_read_only=on")
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
			if n := x.Scalar("SELECT count(*) FROM settings WHERE synchronous <> '" + c.want + "' OR isolation <> 'read committed'"); n != 0 {
				x.Errorf("%s: %d writes in transactions of other settings", c.setting, n)
			}
			x.Exec("DELETE FROM settings")
			pool.Close()
		}
		x.WantSound(f)
	})
}
