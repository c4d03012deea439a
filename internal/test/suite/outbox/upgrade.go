package outbox

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestUpgradeKeepsOutbox (M63): the key of the table becomes wider, and upgrade follows. Entries, waiting records,
// cursors and rights of the feed stay. A second upgrade changes nothing.
func TestUpgradeKeepsOutbox(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE events (id INT NOT NULL PRIMARY KEY, data VARCHAR(100))")
		f := x.Add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox})
		e := &suite.Events{Env: x, Feed: f}
		var w *suite.Login
		if x.Has.Logins {
			w = x.NewLogin("writer", nil)
			x.RightsOn("events", "SELECT, INSERT", w)
			x.Grant(e.Feed, rowfeed.Grants{Writers: []string{w.Name}, Readers: []string{w.Name}})
		}
		var handled []string
		c := &rowfeed.Consumer{Name: "test", Source: e.Feed, DB: x.RF}
		c.Handle = func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, entry := range entries {
				handled = append(handled, string(entry.Key.AppendJSON(nil)))
			}
			return nil
		}
		consume := func(want ...string) {
			x.Helper()
			handled = nil
			if err := c.RunOnce(x.Ctx); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(handled, want) {
				t.Errorf("the consumer has handled %q, want %q", handled, want)
			}
		}
		e.Appended(1, 7, time.Time{})
		e.Appended(2, 7, x.Now())
		consume(`{"id":1}`, `{"id":2}`)
		before := suite.Lines(e.Page(e.Feed, 7, "", 10))
		e.Appended(3, 7, time.Time{})
		x.Exec(x.Statements("outbox.widen_key")...)
		x.Exec("INSERT INTO events VALUES (3000000000, 'd')")
		if x.Has.TypedColumns {
			x.MustFail("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (7, 3000000000)")
			if mended, err := e.Feed.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 2 {
				t.Errorf("upgrade mended %q, %v", mended, err)
			}
		}
		if mended, err := e.Feed.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 0 {
			t.Errorf("the second upgrade mended %q, %v", mended, err)
		}
		if after := suite.Lines(e.Page(e.Feed, 7, "", 10)); !strings.HasPrefix(after, before) {
			t.Errorf("the entries were\n%s\nand are\n%s", before, after)
		}
		if w == nil {
			x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (7, 3000000000)")
		} else {
			tx := w.BeginAs()
			record := rowfeed.OutboxRecord{Shard: 7, Key: rowfeed.Key{int64(3000000000)}}
			if err := w.FeedOf("events").AppendOutbox(x.Ctx, rowfeed.InTx(tx), record); err != nil {
				t.Fatal(err)
			}
			x.Commit(tx)
		}
		consume(`{"id":3}`, `{"id":3000000000}`)
		if w != nil {
			e.WantIDs(e.Page(w.FeedOf("events"), 7, "", 10), false, 1, 2, 3, 3000000000)
		}
		x.WantSound(e.Feed)
	})
}
