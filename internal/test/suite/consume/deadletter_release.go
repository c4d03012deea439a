package consume

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestLetterWaitsForSourceBehind (H25, H26): a source that is behind a letter's position cannot tell whether a newer
// version is on its way. The letter stays until the source has reached the position.
func TestLetterWaitsForSourceBehind(t *testing.T) {
	suite.EachReplicated(t, func(x *suite.Replicated) {
		_, there := x.On(rowfeed.Config{Replica: true})
		r := x.Receiver()
		x.Fill(1)
		x.Publish(x.Feed)
		x.Reaches(there, "1")
		release := x.Replica.HoldReplication(t)
		x.Exec("UPDATE kv SET v = 9")
		x.Publish(x.Feed)
		r.Fail = failsOn(1)
		c := r.Consumer(x.Feed, x.RF)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		r.Fail = nil
		retry(r, "")
		c.Source = there
		x.WantCode(c.RunOnce(x.Ctx), rowfeed.Unavailable)
		wantLetters(r, `2 upsert {"id":1} retry`)
		release()
		x.Reaches(there, "2")
		r.Once(c)
		wantApplied(r, "2 upsert 1")
		wantLetters(r)
	})
}

// TestLetterIsNoDeleteBeforePassEnds (H25): a letter becomes a delete only when a whole pass has come without its key.
func TestLetterIsNoDeleteBeforePassEnds(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(3)
		x.Publish(f)
		r.Fail = failsOn(2, 3)
		c := r.Consumer(f, x.RF)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		r.Fail = nil
		x.Exec("DELETE FROM kv WHERE id = 3")
		x.Publish(f)

		// The cursor is not resolved to a position yet.
		retry(r, `{"id":2}`)
		x.Exec("UPDATE rowfeed_cursors SET value = 'now', generation = 0")
		r.Once(c)
		wantApplied(r, "1 upsert 1", "2 upsert 2")
		wantLetters(r, `3 upsert {"id":3} aside`)

		// Both keys are released before the new pass, which brings only one of them.
		x.FillFrom(4, 4)
		x.Publish(f)
		r.Fail = failsOn(4)
		r.Once(c)
		r.Fail = nil
		if _, err := x.RF.Admin().ResetConsumer(x.Ctx, suite.TestConsumer); err != nil {
			x.Fatal(err)
		}
		retry(r, "")
		takeHanded(r)
		c.Options.Limit = 1
		r.Once(c)
		want := []string{"1 upsert 1", "2 upsert 2", "3 delete 3", "5 upsert 4"}
		if got := takeHanded(r); !sameLines(got, want) {
			x.Errorf("handed over %q, want %q", got, want)
		}
		wantLetters(r)

		// The pass is abandoned before it reached the key, so the consumer does not know whether the key still exists.
		r.Fail = failsOn(4)
		x.Exec("UPDATE kv SET v = 1 WHERE id = 4")
		x.Publish(f)
		r.Once(c)
		r.Fail = nil
		if _, err := x.RF.Admin().ResetConsumer(x.Ctx, suite.TestConsumer); err != nil {
			x.Fatal(err)
		}
		if _, err := x.RF.Admin().SeekConsumer(x.Ctx, suite.TestConsumer, rowfeed.Now); err != nil {
			x.Fatal(err)
		}
		takeHanded(r)
		retry(r, "")
		r.Once(c)
		if got := takeHanded(r); len(got) > 0 {
			x.Errorf("handed over %q", got)
		}
		wantLetters(r, `6 upsert {"id":4} aside`)
		page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(suite.TestConsumer, ""))
		all := page.Letters
		if err != nil || all[0].Generation != 0 || !strings.Contains(all[0].Error, "rowfeed republish") {
			x.Errorf("the letter: %+v %v", all, err)
		}
		if _, err := f.Admin().RepublishWhere(x.Ctx, "id = 4", 10, nil); err != nil {
			x.Fatal(err)
		}
		x.Publish(f)
		r.Once(c)
		retry(r, "")
		r.Once(c)
		if got := takeHanded(r); !slices.Equal(got, []string{"7 upsert 4"}) {
			x.Errorf("handed over %q", got)
		}
		wantLetters(r)
	})
}

// TestReleaseAfterRestartDeliversMissedDelete (H25): a consumer that restarts does not get deletes. If a key that is
// set aside does not come again, its release delivers the delete.
func TestReleaseAfterRestartDeliversMissedDelete(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(4)
		x.Publish(f)
		r.Fail = failsOn(2, 3)
		c := r.Consumer(f, x.RF)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		wantLetters(r, `2 upsert {"id":2} aside`, `3 upsert {"id":3} aside`)
		x.Exec("DELETE FROM kv WHERE id = 2", "UPDATE kv SET v = 3 WHERE id = 3")
		x.Publish(f)
		if _, err := x.RF.Admin().ResetConsumer(x.Ctx, suite.TestConsumer); err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM applied")
		r.Fail = nil
		r.Once(c)
		wantApplied(r, "1 upsert 1", "4 upsert 4") // the new version of 3 has joined its letter
		retry(r, "")
		r.Once(c)
		wantLetters(r)
		wantApplied(r, "1 upsert 1", "2 delete 2", "4 upsert 4", "6 upsert 3")
	})
}

// sameLines compares lines in any order.
func sameLines(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// TestPassEndsWithKeySetAside (H15): a pass is complete even if its last entry is set aside.
func TestPassEndsWithKeySetAside(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Exec("CREATE TABLE swept (n INTEGER)")
		x.Fill(3)
		x.Publish(f)
		r.Fail = failsOn(3)
		c := r.Consumer(f, x.RF)
		c.OnFailure = rowfeed.SetAside
		c.Options.OnComplete = func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO swept VALUES (1)")
			return err
		}
		r.Once(c)
		wantLetters(r, `3 upsert {"id":3} aside`)
		if n := x.Scalar("SELECT count(*) FROM swept"); n != 1 {
			x.Errorf("OnComplete has done its work %d times", n)
		}
	})
}
