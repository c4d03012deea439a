package consume

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestStartNowBeforeFirstEntryMissesNothing (M47): a consumer that starts at "now" of a feed without entries gets
// everything that is published later, also rows that were published and deleted while it was stopped.
func TestStartNowBeforeFirstEntryMissesNothing(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		c := r.Consumer(f, x.RF)
		c.Options.Start = rowfeed.Now
		r.Once(c)
		if got := stored(r); got != "" {
			x.Errorf("the cursor is %q", got)
		}
		// The consumer is stopped.
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		x.Publish(f)
		x.Exec("DELETE FROM kv WHERE id = 1", "INSERT INTO kv VALUES (3, 'c', 0)")
		x.Publish(f)
		r.Once(c)
		wantApplied(r, "2 upsert 2", "4 upsert 3") // it has never had row 1
		x.Exec("DELETE FROM kv WHERE id = 2")
		x.Publish(f)
		r.Once(c)
		wantApplied(r, "2 upsert 2", "4 upsert 3", "5 delete 2")
	})
}

// TestRefusedCursorMayBeOfOtherFeedWithItsName (M47): a cursor belongs to a consumer and a feed's name. If the source
// has another feed of that name, the error says that the cursor may belong to that one.
func TestRefusedCursorMayBeOfOtherFeedWithItsName(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		r := x.Receiver()
		long := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		x.Publish(long)
		other := suite.NewEnv(t, x.Engine, nil)
		other.Migrate()
		short := other.AddKV()
		other.Exec("INSERT INTO kv VALUES (7, 'x', 0)")
		other.Publish(short)
		r.Once(r.Consumer(long, x.RF))
		err := r.Consumer(short, x.RF).RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.HistoryLost)
		if !strings.Contains(err.Error(), "give each consumer a name of its own") {
			x.Errorf("%v", err)
		}
		named := r.Consumer(short, x.RF)
		named.Name = "test:other"
		r.Once(named)
	})
}
