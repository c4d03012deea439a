package relay

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestFillingIsRetriedOverHTTP (M62): while older rows get positions, a reader that would miss some gets 503 "filling"
// with the time of the next attempt. Consumers and relays retry by themselves, and have all rows in the end.
func TestFillingIsRetriedOverHTTP(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // no database makes a difference
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(4)
		broken := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if suite.PlacesOldRows(ev) {
				return testdb.ErrInjected
			}
			return nil
		}}, nil)
		if _, err := broken.AddFeed(x.Ctx, suite.BackfillSpec(), nil); !errors.Is(err, testdb.ErrInjected) {
			x.Fatal(err)
		}
		y := x.KVEvents()
		x.Exec("INSERT INTO kv VALUES (10, 0, NULL)", "INSERT INTO kv VALUES (12, 3, NULL)")
		x.Publish(y.Feed)
		s := x.Served(x.RF)
		x.WantProblem(s.URL+"/_feeds/fetch/kv?shard=0", http.StatusServiceUnavailable, rowfeed.Filling, "5",
			"rowfeed feed backfill kv")
		var told, toldRelay suite.Troubles
		client := &feedhttp.Client{URL: s.URL, Feed: "kv"}
		r := y.Taker(nil)
		c := r.Consumer(client, x.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: told.Observer()}))
		c.Name = "consumer"
		stop := r.Run(c)
		to := newShelf(t)
		startRelaying(x, client, x.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: toldRelay.Observer()}), to, 1)
		x.Eventually("both are refused and retry", func() bool {
			return told.Like("placing older rows behind the head") > 1 &&
				toldRelay.Like("placing older rows behind the head") > 1
		})
		y.Backfilled(4)
		r.AwaitApplied("all rows", "0: 4 2 1 10", "3: 3 12")
		x.Eventually("all rows are delivered", func() bool { return to.size() == 6 })
		_ = stop()
	})
}

// TestExpiredEntriesStopOverHTTP (M59): a cursor below the oldest entry that is kept is refused with 410
// "entries-expired" and the next step. A consumer and a relay stop.
func TestExpiredEntriesStopOverHTTP(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // no database makes a difference
	suite.EachOutbox(t, func(x *suite.Events) {
		s := x.Served(x.RF)
		client := &feedhttp.Client{URL: s.URL, Feed: "events"}
		r := x.Taker(nil)
		c := r.Consumer(client, x.RF)
		to := newShelf(t)
		relay := &relays.Relay{Name: "relay", Source: client, DB: x.RF, Sink: to}
		appendedAll(r, 0, 1, 2)
		r.Once(c)
		if err := relay.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		old := x.Page(client, 0, "", 1).Cursor
		appendedAll(r, 0, 3, 6)
		x.Publish(x.Feed)
		x.Retain(rowfeed.Retention{Count: 1})
		x.Purged(5)
		x.WantProblem(s.URL+"/_feeds/fetch/events?shard=0&after="+string(old), http.StatusGone, rowfeed.EntriesExpired,
			"", `after=""`)
		err := c.RunOnce(x.Ctx)
		if x.WantCode(err, rowfeed.EntriesExpired); !strings.Contains(err.Error(),
			"rowfeed consumer reset test --feed events") {
			t.Error(err)
		}
		x.WantCode(relay.RunOnce(x.Ctx), rowfeed.EntriesExpired)
		if r.WantApplied("0: 1 2"); to.size() != 2 {
			t.Errorf("%d delivered", to.size())
		}
		relay.Restart = true
		if err := relay.RunOnce(x.Ctx); err != nil || to.size() != 3 {
			t.Errorf("%d delivered, %v", to.size(), err)
		}
	})
}

// appendedAll appends rows with these ids to a shard.
func appendedAll(r *suite.Taker, shard, first, last int) {
	r.Helper()
	for id := first; id <= last; id++ {
		r.Appended(id, shard, r.Now())
	}
}
