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

// ulidSetups are the specs of ULID feeds of the table events.
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

// eachULIDSetup runs f on every engine for some setups. It creates the table, but not the feed.
func eachULIDSetup(t *testing.T, setups []string, f func(x *suite.Events, setup string)) {
	t.Helper()
	for _, setup := range setups {
		t.Run(setup, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				x.MakeEvents()
				if setup == "blocking" {
					row := x.ULIDLiteral("01857302da88ffffbfffffffffffffff")
					x.Exec("INSERT INTO events VALUES (1, 4, " + row + ", '')")
				}
				f(&suite.Events{Env: x}, setup)
			})
		})
	}
}

// logins creates a writer and a reader, if the database has logins and the feed has rights for them.
func logins(x *suite.Events, setup string) (g rowfeed.Grants) {
	x.Helper()
	if !x.Has.Logins {
		return g
	}
	if g.Readers = []string{x.NewLogin("reader", nil).Name}; setup != "trigger" {
		g.Writers = []string{x.NewLogin("writer", nil).Name}
	}
	return g
}

// made adds the feed and grants its rights.
func made(x *suite.Events, setup string, g rowfeed.Grants) {
	x.Helper()
	if x.Feed = x.Add(ulidSetups[setup]); !g.IsZero() {
		x.Grant(x.Feed, g)
	}
}

// wantGone drops the feed twice, and asserts that nothing of the feed is left.
func wantGone(x *suite.Events, fresh, when string) {
	x.Helper()
	for range 2 {
		if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
			x.Fatalf("%s: %v", when, err)
		}
	}
	x.SameDump(fresh, when)
	for _, table := range []string{"rowfeed_shards", "rowfeed_sequences", "rowfeed_feeds WHERE state <> 'dropped'"} {
		if n := x.Scalar("SELECT count(*) FROM " + table); n != 0 {
			x.Errorf("%s: %d rows are left in %s", when, n, table)
		}
	}
	if x.Failed() {
		x.FailNow()
	}
}

// TestKilledAddFeedCanBeRepeated (M28, M63): a process is killed before each statement of AddFeed in turn. A second
// AddFeed completes the feed. DropFeed instead leaves nothing.
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
			x.Errorf("AddFeed ended before statement %d", n)
		}
	})
}

// TestKilledDropFeedCanBeRepeated (M63): a process is killed before each statement of DropFeed in turn. When DropFeed
// is run again, twice, no object, right or state is left. The same holds if the table was dropped before.
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
			x.Errorf("DropFeed ended before statement %d", n)
		}
		x.Exec("DROP TABLE events")
		fresh = x.DB.Dump(x.T)
		x.MakeEvents()
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
			t.Errorf("the schema still has objects of rowfeed:\n%s", text)
		}
	})
}

// damages returns statements after which `feed upgrade` has to make objects of the feed again.
func damages(x *suite.Events, setup string) []string {
	x.Helper()
	switch setup {
	case "blocking":
		return x.Statements("ulid.damage_blocking")
	case "trigger":
		return x.Statements("ulid.damage_trigger")
	}
	return []string{"DROP TABLE rowfeed_feed_events"}
}

// TestKilledUpgradeCanBeRepeated (M63): a process is killed before each statement of Upgrade in turn. After a second
// Upgrade the feed's objects and rights are in order.
func TestKilledUpgradeCanBeRepeated(t *testing.T) {
	eachULIDSetup(t, []string{"blocking", "outbox", "trigger"}, func(x *suite.Events, setup string) {
		damage := damages(x, setup)
		if len(damage) == 0 {
			return // the feed has no object to repair, or its upgrade is one transaction
		}
		g := logins(x, setup)
		made(x, setup, g)
		x.Exec(damage...)
		if problems, err := x.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) == 0 {
			t.Fatalf("verify: %v, %v; want problems", problems, err)
		}
		if repaired, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil || len(repaired) == 0 {
			t.Fatalf("upgrade: %v, %v; want repairs", repaired, err)
		}
		undisturbed := x.DB.Dump(x.T)
		n, step := x.Kills()
		for ; ; n += step {
			if setup == "blocking" {
				x.Exec(x.Statements("ulid.undo_damage_blocking")...)
				if _, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil {
					t.Fatal(err)
				}
			}
			x.Exec(damage...)
			before := x.Killed("ulid upgrade", n)
			if _, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil {
				t.Fatal(err)
			}
			x.SameDump(undisturbed, fmt.Sprintf("killed at n=%d (%s)", n, before))
			if problems, err := x.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) != 0 {
				t.Fatalf("killed at n=%d (%s): verify: %v, %v", n, before, problems, err)
			}
			got := x.Feed.Admin().Granted()
			if len(got.Writers) != len(g.Writers) || len(got.Readers) != len(g.Readers) {
				t.Fatalf("killed at n=%d (%s): logins %+v have rights, want %+v", n, before, got, g)
			}
			if before == "" {
				break
			}
		}
		if n < 5 {
			t.Errorf("Upgrade ended before statement %d", n)
		}
	})
}

// TestUpgradeKeepsRowsCursorsAndRights (M63): objects of a feed are changed and the feed is upgraded, while a consumer
// and a writer without other rights use it. The consumer gets every row once, and the writer can still lock shards.
func TestUpgradeKeepsRowsCursorsAndRights(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		var w *suite.Login
		if x.Has.Logins {
			w = x.NewLogin("writer", nil)
			x.RightsOn("events", "SELECT, INSERT", w)
			x.Grant(x.Feed, rowfeed.Grants{Writers: []string{w.Name}})
		}
		x.Write(7, 1, 2)
		var handled []string
		consumer := func() *rowfeed.Consumer {
			handle := func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				for _, e := range entries {
					handled = append(handled, e.Position)
				}
				return nil
			}
			return &rowfeed.Consumer{Name: "c", Source: x.Feed, DB: x.RF, Handle: handle}
		}
		if err := consumer().RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		made := x.DB.Dump(x.T)
		id := 2
		for _, change := range x.Statements("ulid.changes_before_upgrade") {
			x.Exec(change)
			repaired, err := x.Feed.Admin().Upgrade(x.Ctx)
			if err != nil || len(repaired) == 0 && x.Has.Functions {
				t.Fatalf("%s: upgrade: %v, %v", change, repaired, err)
			}
			id++
			if w == nil {
				x.Write(7, id, id)
			} else {
				tx := w.BeginAs()
				request := rowfeed.LockRequest{Shards: []int{7}}
				if _, err := w.FeedOf("events").Lock(x.Ctx, rowfeed.InTx(tx), request); err != nil {
					t.Fatalf("%s: %v", change, err)
				}
				x.In(tx, x.Text("ulid.lock", 7),
					fmt.Sprintf("INSERT INTO events (id, shard, ulid) SELECT %d, 7, %s", id, x.BySQL("0")))
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
		x.SameDump(made, "upgraded")
		x.WantSound(x.Feed)
	})
}
