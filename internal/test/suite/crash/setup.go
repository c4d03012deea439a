package crash

import (
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestFeedAddKilledAtEveryStatement (M28): feed add on a live table is killed before each of its statements, and run
// again. Writers never fail. In the end the feed has every row, and the schema is that of an uninterrupted feed add.
func TestFeedAddKilledAtEveryStatement(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		x.Fill(30)
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv"}
		fresh := x.DB.Dump(x.T)
		x.Add(spec)
		undisturbed := x.DB.Dump(x.T)
		rounds := 0
		write := func() {
			rounds++
			n := rounds
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'live', %d)", 10_000+n, n),
				fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id IN (1, %d, 2099)", n),
				fmt.Sprintf("DELETE FROM kv WHERE id = %d", 10_000+n-1))
		}
		verify := func(f *rowfeed.Feed, when string) {
			x.Helper()
			if got := x.DB.Dump(x.T); got != undisturbed {
				x.Fatalf("%s: the schema is\n%s\nwant\n%s", when, got, undisturbed)
			}
			if f.State() != "active" {
				x.Errorf("%s: the feed is %s", when, f.State())
			}
			k := x.Recorder(f, 10_000)
			x.Publish(f)
			k.Read()
			k.Check(x.KVRows(), suite.ByID)
			x.WantSound(f)
			if x.Failed() {
				x.Fatal(when)
			}
		}
		drop := func() {
			x.Helper()
			if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
				x.Fatal(err)
			}
			if got := x.DB.Dump(x.T); got != fresh {
				x.Fatalf("feed drop left behind\n%s\nwant\n%s", got, fresh)
			}
		}

		// Feed add is killed once, and the next one completes it.
		drop()
		n, step := x.Kills()
		for ; ; n += step {
			before := x.Killed("add", n)
			write()
			verify(x.Add(spec), fmt.Sprintf("killed at n=%d (%s)", n, before))
			if before == "" {
				break
			}
			drop()
		}
		if n < 15 {
			x.Errorf("feed add sent fewer than %d statements, want at least 15", n)
		}

		fills := x.Capture != feedtype.CaptureColumn // with capture "column", rows need no back-fill
		// Feed add is killed several times, each time later: first until all objects exist, then during back-fill. The
		// table has enough rows for two batches.
		drop()
		x.Exec("DELETE FROM kv WHERE id <= 30")
		x.Fill(2100)
		for m := 1; fills && x.Scalar("SELECT count(*) FROM rowfeed_feeds WHERE state = 'filling'") == 0; m += step {
			if x.Killed("add", m) == "" {
				x.Fatal("feed add was not killed before back-fill")
			}
			write()
		}
		halfway := false
		for m := 1; x.Killed("add", m) != ""; m += step {
			write()
			halfway = halfway ||
				x.Scalar("SELECT count(*) FROM rowfeed_feeds WHERE state = 'filling' AND fill_after IS NOT NULL") == 1
		}
		if fills && !halfway {
			x.Error("feed add was never killed between two batches of back-fill")
		}
		write()
		f, err := x.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		verify(f, "killed several times")
		drop()
	})
}

// TestFeedDropKilledAtEveryStatement (M28): feed drop is killed before each of its statements, and run again. Writers
// never fail, and in the end nothing is left.
func TestFeedDropKilledAtEveryStatement(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		x.Fill(3)
		fresh := x.DB.Dump(x.T)
		n, step := x.Kills()
		for ; ; n += step {
			x.Publish(x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"}))
			before := x.Killed("drop", n)
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'live', %d)", 10+n, n),
				"UPDATE kv SET v = v + 1 WHERE id = 1", "UPDATE kv SET id = -id WHERE id IN (2, -2)",
				fmt.Sprintf("DELETE FROM kv WHERE id = %d", 9+n))
			if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
				x.Fatalf("killed at n=%d (%s): %v", n, before, err)
			}
			if got := x.DB.Dump(x.T); got != fresh {
				x.Fatalf("killed at n=%d (%s): left behind\n%s\nwant\n%s", n, before, got, fresh)
			}
			if before == "" {
				break
			}
		}
		if n < 5 {
			x.Errorf("feed drop sent fewer than %d statements, want at least 5", n)
		}
	})
}
