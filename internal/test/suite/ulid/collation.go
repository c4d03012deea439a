package ulid

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestCollationDoesNotChangeOrder (M32): the database sorts texts by the rules of a language. Pages of a blocking feed
// and of an outbox are in the order of ULIDs, and no row is missing at the end of a page.
func TestCollationDoesNotChangeOrder(t *testing.T) {
	testdb.Quick(t)
	const rows = 256 // the last byte has every value
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		for _, locale := range fixture.Of(e).Statements(t, "ulid.sorting_databases") { // none if positions are bytes
			db := e.Server(t).NewDatabaseWith(t, locale)
			x := suite.OpenEnv(t, db, &rowfeed.Config{MaxPageBytes: 1000})
			x.Migrate()
			x.MakeEvents()
			x.Exec("CREATE TABLE notes (id BIGINT NOT NULL PRIMARY KEY, data TEXT)")
			v := &suite.Events{Env: x, Feed: x.Add(suite.EventsSpec())}
			notes := x.Add(rowfeed.FeedSpec{
				Name: "notes", Table: "notes", Mode: rowfeed.ModeOutbox, Capture: "trigger",
			})
			x.Exec("INSERT INTO notes (id, data) " + series("i + 1, 'd'", rows))
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
					t.Errorf("%s, feed %s: got %d of %d rows: %v", locale, f.Name(), len(got), rows, got)
				}
			}
		}
	})
}

// TestShardOutsideColumnTypeIsEmpty (M30): a reader asks for shards that do not fit into the type of the shard column.
// It gets empty pages.
func TestShardOutsideColumnTypeIsEmpty(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(strings.Replace(x.EventsTable("events"), "shard INT", "shard SMALLINT", 1),
			"CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		v := &suite.Events{Env: x, Feed: x.Add(suite.EventsSpec())}
		v.Write(1, 1, 1)
		for _, shard := range []int{40_000, -40_000, 3_000_000_000, 1 << 62} {
			if page := v.Page(v.Feed, shard, "", 10); len(page.Entries) != 0 || page.Cursor != "" {
				x.Errorf("shard %d has the page %+v, want an empty one", shard, page)
			}
		}
		v.WantIDs(v.Page(v.Feed, 1, "", 10), false, 1)
	})
}
