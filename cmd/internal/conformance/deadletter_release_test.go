package conformance

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
)

// TestDeadLetterBehind (H25, H26): a source that is behind a letter's position
// cannot tell that a newer version is on its way. The letter stays until it can.
func TestDeadLetterBehind(t *testing.T) {
	eachReplicated(t, func(x *replicated) {
		_, there := x.on(rowfeed.Config{Replica: true})
		r := x.receiver()
		x.fill(1)
		x.publish(x.feed)
		x.reaches(there, "1")
		release := x.replica.HoldReplication(t)
		x.exec("UPDATE kv SET v = 9")
		x.publish(x.feed)
		r.fail = failsOn(1)
		c := r.consumer(x.feed, x.rf)
		c.OnFailure = rowfeed.SetAside
		r.once(c)
		r.fail = nil
		r.retry("")
		c.Source = there
		x.wantCode(c.RunOnce(x.ctx), rowfeed.Unavailable)
		r.wantLetters(`2 upsert {"id":1} retry`)
		release()
		x.reaches(there, "2")
		r.once(c)
		r.wantApplied("2 upsert 1")
		r.wantLetters()
	})
}

// TestDeadLetterOfALiveKey (H25): a delete is made of a letter only when a whole
// pass has come without its key.
func TestDeadLetterOfALiveKey(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(3)
		x.publish(f)
		r.fail = failsOn(2, 3)
		c := r.consumer(f, x.rf)
		c.OnFailure = rowfeed.SetAside
		r.once(c)
		r.fail = nil
		x.exec("DELETE FROM kv WHERE id = 3")
		x.publish(f)

		// A cursor that is no place yet: the source has not said what it means.
		r.retry(`{"id":2}`)
		x.exec("UPDATE rowfeed_cursors SET value = 'now', generation = 0")
		r.once(c)
		r.wantApplied("1 upsert 1", "2 upsert 2")
		r.wantLetters(`3 upsert {"id":3} aside`)

		// Released before the new pass, which brings one of the keys and not the other.
		x.fillFrom(4, 4)
		x.publish(f)
		r.fail = failsOn(4)
		r.once(c)
		r.fail = nil
		if _, err := x.rf.Admin().ResetConsumer(x.ctx, testConsumer); err != nil {
			x.Fatal(err)
		}
		r.retry("")
		r.takeHanded()
		c.Limit = 1
		r.once(c)
		if got, want := r.takeHanded(), []string{"1 upsert 1", "2 upsert 2", "3 delete 3", "5 upsert 4"}; !sameLines(got, want) {
			x.Errorf("handed over %q, want %q", got, want)
		}
		r.wantLetters()

		// The pass is left before it came to the key: nothing tells what became of it.
		r.fail = failsOn(4)
		x.exec("UPDATE kv SET v = 1 WHERE id = 4")
		x.publish(f)
		r.once(c)
		r.fail = nil
		if _, err := x.rf.Admin().ResetConsumer(x.ctx, testConsumer); err != nil {
			x.Fatal(err)
		}
		if _, err := x.rf.Admin().SeekConsumer(x.ctx, testConsumer, rowfeed.Now); err != nil {
			x.Fatal(err)
		}
		r.takeHanded()
		r.retry("")
		r.once(c)
		if got := r.takeHanded(); len(got) > 0 {
			x.Errorf("handed over %q", got)
		}
		r.wantLetters(`6 upsert {"id":4} aside`)
		all, err := x.rf.Admin().DeadLetters(x.ctx, testConsumer, nil)
		if err != nil || all[0].Generation != 0 || !strings.Contains(all[0].Error, "rowfeed republish") {
			x.Errorf("the letter: %+v %v", all, err)
		}
		if _, err := f.Admin().RepublishWhere(x.ctx, "id = 4", 10, nil); err != nil {
			x.Fatal(err)
		}
		x.publish(f)
		r.once(c)
		r.retry("")
		r.once(c)
		if got := r.takeHanded(); !slices.Equal(got, []string{"7 upsert 4"}) {
			x.Errorf("handed over %q", got)
		}
		r.wantLetters()
	})
}

// sameLines compares without regard to order.
func sameLines(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// TestPassEndsAside (H15): a pass is complete also when its last entry is set
// aside.
func TestPassEndsAside(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.exec("CREATE TABLE swept (n INTEGER)")
		x.fill(3)
		x.publish(f)
		r.fail = failsOn(3)
		c := r.consumer(f, x.rf)
		c.OnFailure = rowfeed.SetAside
		c.OnComplete = func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO swept VALUES (1)")
			return err
		}
		r.once(c)
		r.wantLetters(`3 upsert {"id":3} aside`)
		if n := x.scalar("SELECT count(*) FROM swept"); n != 1 {
			x.Errorf("OnComplete has done its work %d times", n)
		}
	})
}
