package conformance

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
)

// TestStartNowOnAnEmptyFeed (M47): a consumer that starts at "now" where nothing was ever
// published gets all that is published after that moment, also what was published and
// deleted again before it came back.
func TestStartNowOnAnEmptyFeed(t *testing.T) {
	eachCapture(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		c := r.consumer(f, x.rf)
		c.Start = rowfeed.Now
		r.once(c)
		if got := r.stored(); got != "" {
			x.Errorf("the cursor is %q", got)
		}
		// The consumer is away.
		x.exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		x.publish(f)
		x.exec("DELETE FROM kv WHERE id = 1", "INSERT INTO kv VALUES (3, 'c', 0)")
		x.publish(f)
		r.once(c)
		r.wantApplied("2 upsert 2", "4 upsert 3") // of row 1 it has never heard
		x.exec("DELETE FROM kv WHERE id = 2")
		x.publish(f)
		r.once(c)
		r.wantApplied("2 upsert 2", "4 upsert 3", "5 delete 2")
	})
}

// TestOneNameTwoSources (M47): a consumer's cursor is its own for each feed, but a feed is known
// by its name alone. Where another source's feed of the same name shows that the cursor
// is not of it, the error speaks of that.
func TestOneNameTwoSources(t *testing.T) {
	each(t, func(x *env) {
		r := x.receiver()
		long := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		x.publish(long)
		other := newEnv(t, x.engine, nil)
		other.migrate()
		short := other.addKV()
		other.exec("INSERT INTO kv VALUES (7, 'x', 0)")
		other.publish(short)
		r.once(r.consumer(long, x.rf))
		err := r.consumer(short, x.rf).RunOnce(x.ctx)
		x.wantCode(err, rowfeed.CursorAhead)
		if !strings.Contains(err.Error(), "give each of them a name of its own") {
			x.Errorf("%v", err)
		}
		named := r.consumer(short, x.rf)
		named.Name = "test:other"
		r.once(named)
	})
}
