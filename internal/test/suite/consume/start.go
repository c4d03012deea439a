package consume

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestStartNowOnAnEmptyFeed (M47): a consumer that starts at "now" where nothing was ever
// published gets all that is published after that moment, also what was published and
// deleted again before it came back.
func TestStartNowOnAnEmptyFeed(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		c := r.Consumer(f, x.RF)
		c.Options.Start = rowfeed.Now
		r.Once(c)
		if got := stored(r); got != "" {
			x.Errorf("the cursor is %q", got)
		}
		// The consumer is away.
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		x.Publish(f)
		x.Exec("DELETE FROM kv WHERE id = 1", "INSERT INTO kv VALUES (3, 'c', 0)")
		x.Publish(f)
		r.Once(c)
		wantApplied(r, "2 upsert 2", "4 upsert 3") // of row 1 it has never heard
		x.Exec("DELETE FROM kv WHERE id = 2")
		x.Publish(f)
		r.Once(c)
		wantApplied(r, "2 upsert 2", "4 upsert 3", "5 delete 2")
	})
}

// TestOneNameTwoSources (M47): a consumer's cursor is its own for each feed, but a feed is known
// by its name alone. Where another source's feed of the same name shows that the cursor
// is not of it, the error speaks of that.
func TestOneNameTwoSources(t *testing.T) {
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
		x.WantCode(err, rowfeed.CursorAhead)
		if !strings.Contains(err.Error(), "give each of them a name of its own") {
			x.Errorf("%v", err)
		}
		named := r.Consumer(short, x.RF)
		named.Name = "test:other"
		r.Once(named)
	})
}
