package install

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestAddingNamesCursorRowsOfOtherFeeds (M23): a table of cursors with a column feed has rows of other feeds. Adding a
// feed takes over its own consumers, and says whose rows are left out.
func TestAddingNamesCursorRowsOfOtherFeeds(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Exec("CREATE TABLE cursors (name VARCHAR(100) NOT NULL, feed VARCHAR(100), value BIGINT NOT NULL)",
			"INSERT INTO cursors VALUES ('mailer', 'kv', 3), ('report', 'key', 3), ('report', 'kvs', 7), "+
				"('index', 'key', 3), ('old', NULL, 1)")
		spec := adopting
		spec.AdoptCursors = "cursors"
		const others = `[no feed (1) feed "key" (2) feed "kvs" (1)]`
		plan, err := x.RF.PreviewAdd(x.Ctx, spec)
		if err != nil || fmt.Sprint(plan.Others) != others || len(plan.Consumers) != 1 {
			x.Errorf("the plan is %+v, %v", plan, err)
		}
		is, err := x.Add(spec).Admin().Adoption(x.Ctx)
		if err != nil || is.Consumers != 1 || fmt.Sprint(is.Others) != others {
			x.Errorf("adopted: %+v, %v", is, err)
		}
	})
}

// TestReadersOfTriedFeedAreToldTheirCursor (M28, M72): a feed without Adopt was tried first and dropped. The feed that
// adopts the table refuses the former publisher's plain numbers, because cursors of the first feed look like them.
// Adding it says so beforehand, and the refusal names the cursor to send. Until the feed is complete it asks to try
// again.
func TestReadersOfTriedFeedAreToldTheirCursor(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Publish(x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureTrigger}))
		dropFeed(x)
		plan, err := x.RF.PreviewAdd(x.Ctx, adopting)
		if err != nil || plan.Generation < 2 || plan.Continues || plan.Restart == "" {
			x.Errorf("the plan is %+v, %v", plan, err)
		}
		f := x.Add(adopting)
		x.Publish(f)
		_, err = f.Fetch(x.Ctx, rowfeed.Request{After: "3"})
		x.WantCode(err, rowfeed.GenerationChanged)
		cursor := fmt.Sprintf("%d:3", f.Generation())
		if !strings.Contains(err.Error(), fmt.Sprintf("send %q", cursor)) {
			x.Errorf("the refusal does not name %s: %v", cursor, err)
		}
		x.WantDrain(f, rowfeed.Cursor(cursor), suite.KV(1, "a", 1), suite.KV(3, "c", 3))
		if _, err = f.Fetch(x.Ctx, rowfeed.Request{After: "3@9"}); strings.Contains(fmt.Sprint(err), "send") {
			x.Errorf("a cursor that no former publisher has given: %v", err)
		}

		x.DB.Exec(x.T, "UPDATE rowfeed_feeds SET state = 'creating'")
		f, err = x.TappedDB(testdb.Hooks{}, nil).Feed(x.Ctx, "kv")
		if err == nil {
			_, err = f.Fetch(x.Ctx, rowfeed.Request{After: "3"})
		}
		if !errors.Is(err, rowfeed.Filling) || strings.Contains(err.Error(), "start again") {
			x.Errorf("while the feed is created: %v", err)
		}
		x.DB.Exec(x.T, "UPDATE rowfeed_feeds SET state = 'active'")
		_, err = f.Fetch(x.Ctx, rowfeed.Request{After: "3"})
		x.WantCode(err, rowfeed.GenerationChanged)
	})
}
