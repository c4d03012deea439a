package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// ulidSetups are the ways in which a feed with ULIDs can be made of the table events.
var ulidSetups = map[string]rowfeed.FeedSpec{
	"blocking": eventsSpec(),
	"outbox":   {Name: "events", Table: "events", Mode: rowfeed.ModeOutbox},
	"trigger":  outboxTriggerSpec(),
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
			if err := crashing(call); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		})
	}
}

// eachULIDSetup runs f on every engine for some of them, before the feed is made.
func eachULIDSetup(t *testing.T, setups []string, f func(x *events, setup string)) {
	t.Helper()
	for _, setup := range setups {
		t.Run(setup, func(t *testing.T) {
			each(t, func(x *env) {
				x.exec(x.eventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
				if setup == "blocking" {
					x.exec("INSERT INTO events VALUES (1, 4, " + x.by(map[string]string{"sqlite": "x'01857302da88ffffbfffffffffffffff'",
						"postgres": "'01857302da88ffffbfffffffffffffff'", "mysql": "x'01857302da88ffffbfffffffffffffff'"}) + ", '')")
				}
				f(&events{env: x}, setup)
			})
		})
	}
}

// logins are a writer and a reader, where there are any and the feed has something for them.
func (x *events) logins(setup string) (g rowfeed.Grants) {
	x.Helper()
	if x.family() == "sqlite" {
		return g
	}
	if g.Readers = []string{x.newLogin("reader", nil).name}; setup != "trigger" {
		g.Writers = []string{x.newLogin("writer", nil).name}
	}
	return g
}

// made adds the feed with its logins.
func (x *events) made(setup string, g rowfeed.Grants) {
	x.Helper()
	if x.feed = x.add(ulidSetups[setup]); !g.IsZero() {
		x.grant(x.feed, g)
	}
}

// wantGone drops the feed, twice, and asserts that nothing of it is left.
func (x *events) wantGone(fresh, when string) {
	x.Helper()
	for range 2 {
		if err := x.rf.DropFeed(x.ctx, "events"); err != nil {
			x.Fatalf("%s: %v", when, err)
		}
	}
	x.sameDump(fresh, when)
	for _, left := range []string{"SELECT count(*) FROM rowfeed_shards", "SELECT count(*) FROM rowfeed_sequences", "SELECT count(*) FROM rowfeed_feeds WHERE state <> 'dropped'"} {
		if n := x.scalar(left); n != 0 {
			x.Errorf("%s: %s: %d", when, left, n)
		}
	}
	if x.Failed() {
		x.FailNow()
	}
}

// TestULIDAddKilledAtEveryStatement (M28, M63): `feed add` is killed before its statements in turn.
// Run again it completes what is half-made; a drop in its place leaves nothing.
func TestULIDAddKilledAtEveryStatement(t *testing.T) {
	eachULIDSetup(t, []string{"blocking", "trigger"}, func(x *events, setup string) {
		fresh := x.db.Dump(x.T)
		x.made(setup, rowfeed.Grants{})
		undisturbed := x.db.Dump(x.T)
		x.wantGone(fresh, "dropped")
		n, step := x.kills()
		for ; ; n += step {
			before := x.killed("ulid add", n, "SETUP="+setup)
			when := fmt.Sprintf("killed at n=%d (%s)", n, before)
			x.feed = x.add(ulidSetups[setup])
			x.sameDump(undisturbed, when)
			if problems, err := x.feed.Admin().Verify(x.ctx); err != nil || len(problems) != 0 {
				x.Errorf("%s: %v %v", when, problems, err)
			}
			x.wantSound(x.feed)
			x.wantGone(fresh, when+", completed, dropped")
			if before == "" {
				break
			}
			x.killed("ulid add", n, "SETUP="+setup)
			x.wantGone(fresh, when+", dropped")
		}
		if n < 8 {
			x.Errorf("it ended before statement %d", n)
		}
	})
}

// TestULIDDropKilledAtEveryStatement (M63): `feed drop` is killed before its statements in turn.
// Run again, twice, it leaves neither an object nor a right nor a state; also where the table is gone.
func TestULIDDropKilledAtEveryStatement(t *testing.T) {
	eachULIDSetup(t, []string{"blocking", "outbox", "trigger"}, func(x *events, setup string) {
		g := x.logins(setup)
		fresh := x.db.Dump(x.T)
		n, step := x.kills()
		for ; ; n += step {
			x.made(setup, g)
			before := x.killed("ulid drop", n)
			x.wantGone(fresh, fmt.Sprintf("killed at n=%d (%s)", n, before))
			if before == "" {
				break
			}
		}
		if n < 5 {
			x.Errorf("it ended before statement %d", n)
		}
		x.exec("DROP TABLE events")
		fresh = x.db.Dump(x.T)
		x.exec(x.eventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		x.made(setup, g)
		x.exec("DROP TABLE events")
		_, err := x.feed.Fetch(x.ctx, rowfeed.Request{Shards: rowfeed.One(0)})
		x.wantCode(err, rowfeed.Refused)
		x.wantGone(fresh, "without its table")
		for range 2 {
			if err := x.rf.MigrateDown(x.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if text := x.db.Dump(x.T); strings.Contains(text, "rowfeed_") {
			t.Errorf("left behind:\n%s", text)
		}
	})
}

// breakIt makes something of the feed that `feed upgrade` has to make anew.
func (x *events) breakIt(setup string) {
	x.Helper()
	switch {
	case setup == "trigger": // as a feed of before has none
		x.exec("DROP TRIGGER rowfeed_events_update")
	case setup != "blocking":
		x.exec("DROP TABLE rowfeed_feed_events")
	case x.family() == "postgres":
		x.exec("ALTER TABLE events ALTER COLUMN ulid TYPE bytea USING uuid_send(ulid)")
	case x.family() == "mysql":
		x.exec("DROP FUNCTION rowfeed_ulid_events", "DROP PROCEDURE rowfeed_take_events")
	}
}

// TestULIDUpgradeKilledAtEveryStatement (M63): `feed upgrade` is killed before its statements in
// turn. Run again everything is in order, rights included.
func TestULIDUpgradeKilledAtEveryStatement(t *testing.T) {
	eachULIDSetup(t, []string{"blocking", "outbox", "trigger"}, func(x *events, setup string) {
		if x.family() == "sqlite" && setup == "blocking" {
			return // there is nothing to mend
		}
		if x.family() == "postgres" && setup == "trigger" {
			return // it is one transaction
		}
		g := x.logins(setup)
		x.made(setup, g)
		x.breakIt(setup)
		if problems, err := x.feed.Admin().Verify(x.ctx); err != nil || len(problems) == 0 {
			t.Fatalf("%v %v", problems, err)
		}
		if mended, err := x.feed.Admin().Upgrade(x.ctx); err != nil || len(mended) == 0 {
			t.Fatalf("%v %v", mended, err)
		}
		undisturbed := x.db.Dump(x.T)
		n, step := x.kills()
		for ; ; n += step {
			if setup == "blocking" && x.family() == "postgres" {
				x.exec("ALTER TABLE events ALTER COLUMN ulid TYPE uuid USING encode(ulid, 'hex')::uuid")
				if _, err := x.feed.Admin().Upgrade(x.ctx); err != nil {
					t.Fatal(err)
				}
			}
			x.breakIt(setup)
			before := x.killed("ulid upgrade", n)
			if _, err := x.feed.Admin().Upgrade(x.ctx); err != nil {
				t.Fatal(err)
			}
			x.sameDump(undisturbed, fmt.Sprintf("killed at n=%d (%s)", n, before))
			if problems, err := x.feed.Admin().Verify(x.ctx); err != nil || len(problems) != 0 {
				t.Fatalf("killed at n=%d (%s): %v %v", n, before, problems, err)
			}
			if got := x.feed.Admin().Granted(); len(got.Writers) != len(g.Writers) || len(got.Readers) != len(g.Readers) {
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

// TestULIDUpgradeKeeps (M63): rows, cursors, states and rights outlive an upgrade, also where the
// position column has another type by then.
func TestULIDUpgradeKeeps(t *testing.T) {
	testdb.Quick(t)
	eachULID(t, func(x *events) {
		var w *login
		if x.family() != "sqlite" {
			w = x.newLogin("writer", nil)
			x.rightsOn("events", "SELECT, INSERT", w)
			x.grant(x.feed, rowfeed.Grants{Writers: []string{w.name}})
		}
		x.write(7, 1, 2)
		var handled []string
		consumer := func() *rowfeed.Consumer {
			return &rowfeed.Consumer{Name: "c", Source: x.feed, DB: x.rf, Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				for _, e := range entries {
					handled = append(handled, e.Position)
				}
				return nil
			}}
		}
		if err := consumer().RunOnce(x.ctx); err != nil {
			t.Fatal(err)
		}
		made := x.db.Dump(x.T)
		id := 2
		for _, change := range map[string][]string{
			"sqlite":   {"CREATE INDEX by_data ON events (data)", "DROP INDEX by_data"},
			"postgres": {"ALTER TABLE events ALTER COLUMN ulid TYPE bytea USING uuid_send(ulid)", "ALTER TABLE events ALTER COLUMN ulid TYPE uuid USING encode(ulid, 'hex')::uuid"},
			"mysql":    {"DROP FUNCTION rowfeed_ulid_events", "DROP PROCEDURE rowfeed_lock_events"},
		}[x.family()] {
			x.exec(change)
			mended, err := x.feed.Admin().Upgrade(x.ctx)
			if err != nil || len(mended) == 0 && x.family() != "sqlite" {
				t.Fatalf("%s: %v, %v", change, mended, err)
			}
			id++
			if w == nil {
				x.write(7, id, id)
			} else {
				tx := w.beginAs()
				if _, err := w.feedOf("events").Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{7}}); err != nil {
					t.Fatalf("%s: %v", change, err)
				}
				if x.family() == "postgres" {
					x.in(tx, "SELECT * FROM rowfeed_lock_events(7)")
				} else {
					x.in(tx, "CALL rowfeed_lock_events(7, NULL, @u, @high, @low)")
				}
				x.in(tx, fmt.Sprintf("INSERT INTO events (id, shard, ulid) SELECT %d, 7, %s", id, x.bySQL("0")))
				x.commit(tx)
			}
			if err := consumer().RunOnce(x.ctx); err != nil {
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
		if x.family() != "sqlite" {
			x.sameDump(made, "upgraded")
		}
		x.wantSound(x.feed)
	})
}
