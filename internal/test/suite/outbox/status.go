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

// TestStatusCountsWaitingRecords (M59): status has the number of records that wait, the age of the oldest, and how far
// a consumer is behind. It moves no record.
func TestStatusCountsWaitingRecords(t *testing.T) {
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
			t.Errorf("status is %+v", s)
		}
		handle := func(context.Context, *sql.Tx, []rowfeed.Entry) error { return nil }
		c := &rowfeed.Consumer{Name: "test", Source: x.Feed, DB: x.RF, Handle: handle}
		x.Appended(1, 0, time.Time{})
		if err := c.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		x.Appended(2, 0, time.Time{})
		x.Appended(3, 0, x.Now().Add(-time.Hour))
		x.Exec(x.Text("outbox.append_ten_minutes_earlier"))
		for range 2 {
			if s := status(); s.Waiting != 2 || s.OldestSeconds < 600 || s.OldestSeconds > 1200 ||
				len(s.Consumers) != 1 {
				t.Errorf("status is %+v", s)
			}
		}
		x.Publish(x.Feed)
		if s := status(); s.Waiting != 0 || s.OldestSeconds != 0 || len(s.Problems) != 0 {
			t.Errorf("status is %+v", s)
		}
	})
}
