package conformance

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TestOutboxUpgradeKeeps (M63): places, records that wait, cursors and rights of a feed with an outbox outlive
// an upgrade after which its tables hold keys that they could not hold before; run again it changes nothing.
func TestOutboxUpgradeKeeps(t *testing.T) {
	each(t, func(x *env) {
		x.exec("CREATE TABLE events (id INT NOT NULL PRIMARY KEY, data VARCHAR(100))")
		e := &events{x, x.add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox})}
		var w *login
		if x.family() != "sqlite" {
			w = x.newLogin("writer", nil)
			x.rightsOn("events", "SELECT, INSERT", w)
			x.grant(e.feed, rowfeed.Grants{Writers: []string{w.name}, Readers: []string{w.name}})
		}
		var handled []string
		c := &rowfeed.Consumer{Name: "test", Source: e.feed, DB: x.rf, Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, entry := range entries {
				handled = append(handled, string(entry.Key.AppendJSON(nil)))
			}
			return nil
		}}
		consume := func(want ...string) {
			x.Helper()
			handled = nil
			if err := c.RunOnce(x.ctx); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(handled, want) {
				t.Errorf("handled %q, want %q", handled, want)
			}
		}
		e.appended(1, 7, time.Time{})
		e.appended(2, 7, x.now())
		consume(`{"id":1}`, `{"id":2}`)
		before := lines(e.page(e.feed, 7, "", 10))
		e.appended(3, 7, time.Time{})
		if alter := x.by(map[string]string{"sqlite": "", "postgres": "ALTER COLUMN id TYPE bigint", "mysql": "MODIFY id BIGINT NOT NULL"}); alter != "" {
			x.exec("ALTER TABLE events "+alter, "INSERT INTO events VALUES (3000000000, 'd')")
			x.mustFail("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (7, 3000000000)")
			if mended, err := e.feed.Admin().Upgrade(x.ctx); err != nil || len(mended) != 2 {
				t.Errorf("mended %q, %v", mended, err)
			}
		} else {
			x.exec("INSERT INTO events VALUES (3000000000, 'd')")
		}
		if mended, err := e.feed.Admin().Upgrade(x.ctx); err != nil || len(mended) != 0 {
			t.Errorf("again: mended %q, %v", mended, err)
		}
		if after := lines(e.page(e.feed, 7, "", 10)); !strings.HasPrefix(after, before) {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		if w == nil {
			x.exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (7, 3000000000)")
		} else {
			tx := w.beginAs()
			if err := w.feedOf("events").AppendOutbox(x.ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Shard: 7, Key: rowfeed.Key{int64(3000000000)}}); err != nil {
				t.Fatal(err)
			}
			x.commit(tx)
		}
		consume(`{"id":3}`, `{"id":3000000000}`)
		if w != nil {
			e.wantIDs(e.page(w.feedOf("events"), 7, "", 10), false, 1, 2, 3, 3000000000)
		}
		x.wantSound(e.feed)
	})
}
