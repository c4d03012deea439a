package outbox

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestOutboxStatus (M59): status counts the records that wait and says since when the oldest does, and
// how far a consumer is behind; it moves none.
func TestOutboxStatus(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		status := func() *admin.Status {
			x.Helper()
			s, err := x.Feed.Admin().Status(x.Ctx)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if s := status(); s.Waiting != 0 || s.OldestSeconds != 0 {
			t.Errorf("%+v", s)
		}
		c := &rowfeed.Consumer{Name: "test", Source: x.Feed, DB: x.RF, Handle: func(context.Context, *sql.Tx, []rowfeed.Entry) error { return nil }}
		x.Appended(1, 0, time.Time{})
		if err := c.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		x.Appended(2, 0, time.Time{})
		x.Appended(3, 0, x.Now().Add(-time.Hour))
		x.Exec("UPDATE rowfeed_outbox_events SET appended_at = " + x.By(map[string]string{
			"sqlite": "appended_at - 600000000", "postgres": "appended_at - interval '10 minutes'", "mysql": "appended_at - interval 10 minute"}))
		for range 2 {
			if s := status(); s.Waiting != 2 || s.OldestSeconds < 600 || s.OldestSeconds > 1200 || len(s.Consumers) != 1 {
				t.Errorf("%+v", s)
			}
		}
		x.Publish(x.Feed)
		if s := status(); s.Waiting != 0 || s.OldestSeconds != 0 || len(s.Problems) != 0 {
			t.Errorf("%+v", s)
		}
	})
}
