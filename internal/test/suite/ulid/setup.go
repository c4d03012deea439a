package ulid

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// ulidSetups are the ways in which a feed with ULIDs can be made of the table events.
var ulidSetups = map[string]rowfeed.FeedSpec{
	"blocking": suite.EventsSpec(),
	"outbox":   {Name: "events", Table: "events", Mode: rowfeed.ModeOutbox},
	"trigger":  suite.OutboxTriggerSpec(),
}

func init() {
	for name, call := range map[string]func(context.Context, *rowfeed.DB) error{
		"ulid add": func(ctx context.Context, rf *rowfeed.DB) error {
			_, err := rf.AddFeed(ctx, ulidSetups[os.Getenv("SETUP")], nil)
			return err
		},
		"ulid drop": func(ctx context.Context, rf *rowfeed.DB) error { return rf.DropFeed(ctx, "events") },
		"ulid upgrade": func(ctx context.Context, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "events")
			if err == nil {
				_, err = f.Admin().Upgrade(ctx)
			}
			return err
		},
	} {
		testdb.RegisterChild(name, func() {
			if err := suite.Crashing(call); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		})
	}
}

// eachULIDSetup runs f on every engine for some of them, before the feed is made.
func eachULIDSetup(t *testing.T, setups []string, f func(x *suite.Events, setup string)) {
	t.Helper()
	for _, setup := range setups {
		t.Run(setup, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				x.Exec(x.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
				if setup == "blocking" {
					x.Exec("INSERT INTO events VALUES (1, 4, " + x.By(map[string]string{"sqlite": "x'01857302da88ffffbfffffffffffffff'",
						"postgres": "'01857302da88ffffbfffffffffffffff'", "mysql": "x'01857302da88ffffbfffffffffffffff'"}) + ", '')")
				}
				f(&suite.Events{Env: x}, setup)
			})
		})
	}
}

// logins are a writer and a reader, where there are any and the feed has something for them.
func logins(x *suite.Events, setup string) (g rowfeed.Grants) {
	x.Helper()
	if x.Family() == "sqlite" {
		return g
	}
	if g.Readers = []string{x.NewLogin("reader", nil).Name}; setup != "trigger" {
		g.Writers = []string{x.NewLogin("writer", nil).Name}
	}
	return g
}

// made adds the feed with its logins.
func made(x *suite.Events, setup string, g rowfeed.Grants) {
	x.Helper()
	if x.Feed = x.Add(ulidSetups[setup]); !g.IsZero() {
		x.Grant(x.Feed, g)
	}
}

// wantGone drops the feed, twice, and asserts that nothing of it is left.
func wantGone(x *suite.Events, fresh, when string) {
	x.Helper()
	for range 2 {
		if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
			x.Fatalf("%s: %v", when, err)
		}
	}
	x.SameDump(fresh, when)
	for _, left := range []string{"SELECT count(*) FROM rowfeed_shards", "SELECT count(*) FROM rowfeed_sequences", "SELECT count(*) FROM rowfeed_feeds WHERE state <> 'dropped'"} {
		if n := x.Scalar(left); n != 0 {
			x.Errorf("%s: %s: %d", when, left, n)
		}
	}
	if x.Failed() {
		x.FailNow()
	}
}

// TestKilledAddFeedCanBeRepeated (M28, M63): `feed add` is killed before its statements in turn.
// Run again it completes what is half-made; a drop in its place leaves nothing.
func TestKilledAddFeedCanBeRepeated(t *testing.T) {
	eachULIDSetup(t, []string{"blocking", "trigger"}, func(x *suite.Events, setup string) {
		fresh := x.DB.Dump(x.T)
		made(x, setup, rowfeed.Grants{})
		undisturbed := x.DB.Dump(x.T)
		wantGone(x, fresh, "dropped")
		n, step := x.Kills()
		for ; ; n += step {
			before := x.Killed("ulid add", n, "SETUP="+setup)
			when := fmt.Sprintf("killed at n=%d (%s)", n, before)
			x.Feed = x.Add(ulidSetups[setup])
			x.SameDump(undisturbed, when)
			if problems, err := x.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) != 0 {
				x.Errorf("%s: %v %v", when, problems, err)
			}
			x.WantSound(x.Feed)
			wantGone(x, fresh, when+", completed, dropped")
			if before == "" {
				break
			}
			x.Killed("ulid add", n, "SETUP="+setup)
			wantGone(x, fresh, when+", dropped")
		}
		if n < 8 {
			x.Errorf("it ended before statement %d", n)
		}
	})
}

// TestKilledDropFeedCanBeRepeated (M63): `feed drop` is killed before its statements in turn.
// Run again, twice, it leaves neither an object nor a right nor a state; also where the table is gone.
func TestKilledDropFeedCanBeRepeated(t *testing.T) {
	eachULIDSetup(t, []string{"blocking", "outbox", "trigger"}, func(x *suite.Events, setup string) {
		g := logins(x, setup)
		fresh := x.DB.Dump(x.T)
		n, step := x.Kills()
		for ; ; n += step {
			made(x, setup, g)
			before := x.Killed("ulid drop", n)
			wantGone(x, fresh, fmt.Sprintf("killed at n=%d (%s)", n, before))
			if before == "" {
				break
			}
		}
		if n < 5 {
			x.Errorf("it ended before statement %d", n)
		}
		x.Exec("DROP TABLE events")
		fresh = x.DB.Dump(x.T)
		x.Exec(x.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		made(x, setup, g)
		x.Exec("DROP TABLE events")
		_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(0)})
		x.WantCode(err, rowfeed.Refused)
		wantGone(x, fresh, "without its table")
		for range 2 {
			if err := x.RF.MigrateDown(x.Ctx); err != nil {
				t.Fatal(err)
			}
		}
		if text := x.DB.Dump(x.T); strings.Contains(text, "rowfeed_") {
			t.Errorf("left behind:\n%s", text)
		}
	})
}

// breakIt makes something of the feed that `feed upgrade` has to make anew.
func breakIt(x *suite.Events, setup string) {
	x.Helper()
	switch {
	case setup == "trigger": // as a feed of before has none
		x.Exec("DROP TRIGGER rowfeed_events_update")
	case setup != "blocking":
		x.Exec("DROP TABLE rowfeed_feed_events")
	case x.Family() == "postgres":
		x.Exec("ALTER TABLE events ALTER COLUMN ulid TYPE bytea USING uuid_send(ulid)")
	case x.Family() == "mysql":
		x.Exec("DROP FUNCTION rowfeed_ulid_events", "DROP PROCEDURE rowfeed_take_events")
	}
}

// TestKilledUpgradeCanBeRepeated (M63): `feed upgrade` is killed before its statements in
// turn. Run again everything is in order, rights included.
func TestKilledUpgradeCanBeRepeated(t *testing.T) {
	eachULIDSetup(t, []string{"blocking", "outbox", "trigger"}, func(x *suite.Events, setup string) {
		if x.Family() == "sqlite" && setup == "blocking" {
			return // there is nothing to mend
		}
		if x.Family() == "postgres" && setup == "trigger" {
			return // it is one transaction
		}
		g := logins(x, setup)
		made(x, setup, g)
		breakIt(x, setup)
		if problems, err := x.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) == 0 {
			t.Fatalf("%v %v", problems, err)
		}
		if mended, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil || len(mended) == 0 {
			t.Fatalf("%v %v", mended, err)
		}
		undisturbed := x.DB.Dump(x.T)
		n, step := x.Kills()
		for ; ; n += step {
			if setup == "blocking" && x.Family() == "postgres" {
				x.Exec("ALTER TABLE events ALTER COLUMN ulid TYPE uuid USING encode(ulid, 'hex')::uuid")
				if _, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil {
					t.Fatal(err)
				}
			}
			breakIt(x, setup)
			before := x.Killed("ulid upgrade", n)
			if _, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil {
				t.Fatal(err)
			}
			x.SameDump(undisturbed, fmt.Sprintf("killed at n=%d (%s)", n, before))
			if problems, err := x.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) != 0 {
				t.Fatalf("killed at n=%d (%s): %v %v", n, before, problems, err)
			}
			if got := x.Feed.Admin().Granted(); len(got.Writers) != len(g.Writers) || len(got.Readers) != len(g.Readers) {
				t.Fatalf("killed at n=%d (%s): granted: %+v", n, before, got)
			}
			if before == "" {
				break
			}
		}
		if n < 5 {
			t.Errorf("it ended before statement %d", n)
		}
	})
}

// TestUpgradeKeepsRowsCursorsAndRights (M63): rows, cursors, states and rights outlive an upgrade, also where the
// position column has another type by then.
func TestUpgradeKeepsRowsCursorsAndRights(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		var w *suite.Login
		if x.Family() != "sqlite" {
			w = x.NewLogin("writer", nil)
			x.RightsOn("events", "SELECT, INSERT", w)
			x.Grant(x.Feed, rowfeed.Grants{Writers: []string{w.Name}})
		}
		x.Write(7, 1, 2)
		var handled []string
		consumer := func() *rowfeed.Consumer {
			return &rowfeed.Consumer{Name: "c", Source: x.Feed, DB: x.RF, Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				for _, e := range entries {
					handled = append(handled, e.Position)
				}
				return nil
			}}
		}
		if err := consumer().RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		made := x.DB.Dump(x.T)
		id := 2
		for _, change := range map[string][]string{
			"sqlite":   {"CREATE INDEX by_data ON events (data)", "DROP INDEX by_data"},
			"postgres": {"ALTER TABLE events ALTER COLUMN ulid TYPE bytea USING uuid_send(ulid)", "ALTER TABLE events ALTER COLUMN ulid TYPE uuid USING encode(ulid, 'hex')::uuid"},
			"mysql":    {"DROP FUNCTION rowfeed_ulid_events", "DROP PROCEDURE rowfeed_lock_events"},
		}[x.Family()] {
			x.Exec(change)
			mended, err := x.Feed.Admin().Upgrade(x.Ctx)
			if err != nil || len(mended) == 0 && x.Family() != "sqlite" {
				t.Fatalf("%s: %v, %v", change, mended, err)
			}
			id++
			if w == nil {
				x.Write(7, id, id)
			} else {
				tx := w.BeginAs()
				if _, err := w.FeedOf("events").Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{7}}); err != nil {
					t.Fatalf("%s: %v", change, err)
				}
				if x.Family() == "postgres" {
					x.In(tx, "SELECT * FROM rowfeed_lock_events(7)")
				} else {
					x.In(tx, "CALL rowfeed_lock_events(7, NULL, @u, @high, @low)")
				}
				x.In(tx, fmt.Sprintf("INSERT INTO events (id, shard, ulid) SELECT %d, 7, %s", id, x.BySQL("0")))
				x.Commit(tx)
			}
			if err := consumer().RunOnce(x.Ctx); err != nil {
				t.Fatal(err)
			}
		}
		if len(handled) != 4 {
			t.Errorf("handled %v", handled)
		}
		for i := range handled {
			if i > 0 && handled[i] <= handled[i-1] {
				t.Errorf("handled %v", handled)
			}
		}
		if x.Family() != "sqlite" {
			x.SameDump(made, "upgraded")
		}
		x.WantSound(x.Feed)
	})
}
