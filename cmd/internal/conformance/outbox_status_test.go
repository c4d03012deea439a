package conformance

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
)

// TestOutboxStatus (M59): status counts the records that wait and says since when the oldest does, and
// how far a consumer is behind; it moves none.
func TestOutboxStatus(t *testing.T) {
	eachOutbox(t, func(x *events) {
		status := func() *admin.Status {
			x.Helper()
			s, err := x.feed.Admin().Status(x.ctx)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if s := status(); s.Waiting != 0 || s.OldestSeconds != 0 {
			t.Errorf("%+v", s)
		}
		c := &rowfeed.Consumer{Name: "test", Source: x.feed, DB: x.rf, Handle: func(context.Context, *sql.Tx, []rowfeed.Entry) error { return nil }}
		x.appended(1, 0, time.Time{})
		if err := c.RunOnce(x.ctx); err != nil {
			t.Fatal(err)
		}
		x.appended(2, 0, time.Time{})
		x.appended(3, 0, x.now().Add(-time.Hour))
		x.exec("UPDATE rowfeed_outbox_events SET appended_at = " + x.by(map[string]string{
			"sqlite": "appended_at - 600000000", "postgres": "appended_at - interval '10 minutes'", "mysql": "appended_at - interval 10 minute"}))
		for range 2 {
			if s := status(); s.Waiting != 2 || s.OldestSeconds < 600 || s.OldestSeconds > 1200 || len(s.Consumers) != 1 {
				t.Errorf("%+v", s)
			}
		}
		x.publish(x.feed)
		if s := status(); s.Waiting != 0 || s.OldestSeconds != 0 || len(s.Problems) != 0 {
			t.Errorf("%+v", s)
		}
	})
}
