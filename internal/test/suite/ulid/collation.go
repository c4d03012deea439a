package ulid

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestCollationDoesNotChangeOrder (M32): pages are in the order of ULIDs, and miss nothing where they are cut, in a
// database that orders texts as people of some country do (guarantee 2).
func TestCollationDoesNotChangeOrder(t *testing.T) {
	testdb.Quick(t)
	const rows = 256 // of one Lock, or of one move: the last two digits take every value
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if e.Family != "postgres" {
			return // positions are bytes
		}
		for _, locale := range []string{"da", "en-u-kn"} {
			db := e.Server(t).NewDatabaseWith(t, "LOCALE_PROVIDER icu ICU_LOCALE '"+locale+"' LOCALE 'C'")
			x := suite.OpenEnv(t, db, &rowfeed.Config{MaxPageBytes: 1000})
			x.Migrate()
			x.Exec(x.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)",
				"CREATE TABLE notes (id BIGINT NOT NULL PRIMARY KEY, data TEXT)")
			v := &suite.Events{Env: x, Feed: x.Add(suite.EventsSpec())}
			notes := x.Add(rowfeed.FeedSpec{Name: "notes", Table: "notes", Mode: rowfeed.ModeOutbox, Capture: "trigger"})
			x.Exec(fmt.Sprintf("INSERT INTO notes SELECT i, 'd' FROM generate_series(1, %d) i", rows))
			tx := x.Begin(sql.LevelReadCommitted)
			u := v.Lock(tx, rowfeed.LockRequest{})
			for id := range rows {
				v.Event(tx, id+1, 0, v.At(u, 0, int64(id)), strings.Repeat("d", 50))
			}
			x.Commit(tx)
			for _, f := range []*rowfeed.Feed{v.Feed, notes} {
				var got []int64
				for after, more := rowfeed.Beginning, true; more; {
					page := v.Page(f, 0, after, 100)
					for _, entry := range page.Entries {
						id, _ := entry.Key.Get("id")
						got = append(got, id.(int64))
					}
					after, more = page.Cursor, page.More
				}
				if len(got) != rows || !slices.IsSorted(got) {
					t.Errorf("%s, feed %s: %d of %d rows: %v", locale, f.Name(), len(got), rows, got)
				}
			}
		}
	})
}

// TestShardOutsideColumnTypeIsEmpty (M30): a shard that the column cannot hold is an empty one (M30).
func TestShardOutsideColumnTypeIsEmpty(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard SMALLINT NOT NULL, ulid "+x.ULIDType()+" NOT NULL, data VARCHAR(100))",
			"CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		v := &suite.Events{Env: x, Feed: x.Add(suite.EventsSpec())}
		v.Write(1, 1, 1)
		for _, shard := range []int{40_000, -40_000, 3_000_000_000, 1 << 62} {
			if page := v.Page(v.Feed, shard, "", 10); len(page.Entries) != 0 || page.Cursor != "" {
				x.Errorf("shard %d: %+v", shard, page)
			}
		}
		v.WantIDs(v.Page(v.Feed, 1, "", 10), false, 1)
	})
}
