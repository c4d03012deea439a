package ulid

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRowWithoutULIDIsReported (M42): the position column accepts bytes of other lengths, or values of any type. If a
// row holds no ULID, pages fail with an error that says how to find the row, check names it, and feed add refuses such
// a table.
func TestRowWithoutULIDIsReported(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		table := x.Text("ulid.loose_table")
		if table == "" {
			return // all columns for ULIDs refuse such values
		}
		x.Exec(table, "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		e := &suite.Events{Env: x, Feed: x.Add(suite.EventsSpec())}
		e.Write(7, 1, 2)
		for i, row := range x.Statements("ulid.rows_without_ulid") {
			x.Exec("INSERT INTO events (id, shard, ulid) VALUES (50, " + row + ")")
			if i == 0 {
				_, err := e.Feed.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(7)})
				x.WantCode(err, rowfeed.Failed)
				for _, words := range []string{
					`feed "events", shard 7: a row of table `, `events holds no ULID in "ulid"`, "WHERE ", "<> 16",
				} {
					if !strings.Contains(err.Error(), words) {
						t.Errorf("error %v, want %q in it", err, words)
					}
				}
				if !x.Has.Functions { // Lock reads the last row itself
					tx := x.Begin(sql.LevelDefault)
					_, err := e.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{7}})
					if x.WantCode(err, rowfeed.Failed); !strings.Contains(err.Error(), "holds no ULID") {
						t.Errorf("error %v, want one about the row", err)
					}
					if err := tx.Rollback(); err != nil {
						t.Fatal(err)
					}
				}
			}
			findings, err := e.Feed.Admin().Check(x.Ctx)
			if err != nil || len(findings) != 1 || findings[0].Key == nil ||
				!strings.Contains(findings[0].Problem, `"ulid" holds no ULID of 16 bytes`) {
				t.Fatalf("%s: check: %+v, %v", row, findings, err)
			}
			if id, _ := findings[0].Key.Get("id"); id != int64(50) {
				t.Errorf("%s: check names row %v, want 50", row, id)
			}
			other := suite.EventsSpec()
			other.Name, other.Table = "copy", "copied"
			x.Exec(strings.ReplaceAll(table, "events", "copied"),
				"CREATE UNIQUE INDEX copied_feed ON copied (shard, ulid)", "INSERT INTO copied SELECT * FROM events")
			_, err = x.RF.AddFeed(x.Ctx, other, nil)
			if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "in 1 of its rows") {
				t.Errorf("%s: AddFeed: %v", row, err)
			}
			x.Exec("DROP TABLE copied", "DELETE FROM events WHERE id = 50")
		}
		e.WantIDs(e.Page(e.Feed, 7, "", 10), false, 1, 2)
		x.WantSound(e.Feed)
	})
}
