package install

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachWithRoles runs f with the feeds events and others of mode blocking and plain of mode sequence. If the database
// has no logins, it asserts that grants are refused instead.
func eachWithRoles(t *testing.T, f func(x *suite.Events)) {
	t.Helper()
	suite.EachULID(t, func(x *suite.Events) {
		if !x.Has.Logins {
			for _, err := range []error{
				x.Feed.Admin().Grant(x.Ctx, rowfeed.Grants{Writers: []string{"w"}}),
				x.Feed.Admin().Revoke(x.Ctx, rowfeed.Grants{Readers: []string{"r"}}),
			} {
				if x.WantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
					t.Error(err)
				}
			}
			return
		}
		x.Exec(x.EventsTable("others"), "CREATE UNIQUE INDEX others_feed ON others (shard, ulid)",
			"CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
		spec := suite.EventsSpec()
		spec.Name, spec.Table = "others", "others"
		x.Add(spec)
		x.Add(rowfeed.FeedSpec{Name: "plain", Table: "plain"})
		f(x)
	})
}

// TestWriterMayOnlyLockAndInsert (M29): a login that is a writer of the feed, with INSERT on its table, can lock and
// insert, in Go and in SQL, and nothing else. Without the grant, and after it was revoked, it cannot do that either.
func TestWriterMayOnlyLockAndInsert(t *testing.T) {
	testdb.Quick(t)
	eachWithRoles(t, func(x *suite.Events) {
		w := x.NewLogin(`wri"t'er`, nil)
		x.RightsOn("events", "SELECT, INSERT", w)
		without := x.DB.Dump(x.T)
		_, err := w.RF.Feed(x.Ctx, "events")
		x.WantCode(err, rowfeed.Refused)
		for range 2 {
			x.Grant(x.Feed, rowfeed.Grants{Writers: []string{w.Name}})
		}
		if g := x.Feed.Admin().Granted(); len(g.Writers) != 1 || g.Writers[0] != w.Name || len(g.Readers) != 0 {
			t.Errorf("granted: %+v", g)
		}
		f := w.FeedOf("events")
		for i, shards := range [][]int{{1}, {7, -5}} {
			tx := w.BeginAs()
			u, err := f.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: shards})
			if err != nil {
				t.Fatal(err)
			}
			x.Event(tx, i+1, shards[0], x.At(u, shards[0], 0), "in Go")
			if err := u.Verify(x.Ctx); err != nil {
				t.Error(err)
			}
			h, err := x.LockBySQL(tx, shards[0], "NULL")
			if err != nil {
				t.Fatal(err)
			}
			x.In(
				tx,
				fmt.Sprintf("INSERT INTO events (id, shard, ulid, data) SELECT %d, %d, %s, 'by SQL'", 10+i, shards[0],
					x.BySQL("3", shards[0])),
			)
			if len(h.ULID) != 16 {
				t.Errorf("%x", h.ULID)
			}
			x.Commit(tx)
		}
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 1, 10)
		x.WantIDs(x.Page(x.Feed, 7, "", 10), false, 2, 11)
		x.WantSound(x.Feed)

		wantDenials(w, forbiddenStatements(x.Env)...)
		wantDenials(w, "SELECT * FROM rowfeed_shards FOR UPDATE", "SELECT * FROM rowfeed_sequences FOR UPDATE")
		_, err = w.FeedOf("others").Lock(x.Ctx, rowfeed.InTx(w.BeginAs()), rowfeed.LockRequest{})
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "feed grant others --writer") {
			t.Error(err)
		}
		_, err = f.Admin().Bump(x.Ctx)
		x.WantCode(err, rowfeed.Refused)
		x.WantCode(w.RF.DropFeed(x.Ctx, "events"), rowfeed.Refused)
		x.WantCode(f.Admin().Grant(x.Ctx, rowfeed.Grants{Writers: []string{w.Name}}), rowfeed.Refused)

		for range 2 {
			if err := x.Feed.Admin().Revoke(x.Ctx, rowfeed.Grants{Writers: []string{w.Name}}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = f.Lock(x.Ctx, rowfeed.InTx(w.BeginAs()), rowfeed.LockRequest{})
		x.WantCode(err, rowfeed.Refused)
		wantDenials(w, "SELECT * FROM rowfeed_feeds", x.Text("install.lock_events"))
		x.SameDump(without, "after revoke")
	})
}

// TestReaderMayOnlyRead (M61): a login that is a reader of the feed, with SELECT on its table, can fetch, serve HTTP,
// and consume with cursors of its own. It cannot write, lock, or read rows of other feeds.
func TestReaderMayOnlyRead(t *testing.T) {
	testdb.Quick(t)
	eachWithRoles(t, func(x *suite.Events) {
		r := x.NewLogin("reader", nil)
		x.RightsOn("events", "SELECT", r)
		x.Grant(x.Feed, rowfeed.Grants{Readers: []string{r.Name}})
		x.Write(3, 1, 2)
		x.Write(-4, 3, 3)
		f := r.FeedOf("events")
		x.WantIDs(x.Page(f, 3, "", 1), true, 1)
		x.WantIDs(x.Page(f, -4, "", 10), false, 3)
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(r.RF), &feedhttp.Config{NoPublish: true}))
		defer server.Close()
		client := &feedhttp.Client{URL: server.URL, Feed: "events"}
		x.WantIDs(x.Page(client, 3, "", 10), false, 1, 2)
		if info, err := client.Info(x.Ctx); err != nil || len(info.ShardIDs) != 2 {
			t.Errorf("%+v, %v", info, err)
		}

		wantDenials(r, forbiddenStatements(x.Env)...)
		for _, table := range []string{"rowfeed_shards", "rowfeed_sequences", "rowfeed_feeds"} {
			if lock := "SELECT * FROM " + table + " FOR UPDATE"; !x.Has.ReadersLock {
				wantDenials(r, lock)
			} else { // GUARANTEES.md says so
				tx := r.BeginAs()
				x.In(tx, lock)
				tx.Rollback()
			}
		}
		wantDenials(r, x.Text("install.lock_events"),
			"INSERT INTO events (id, shard, ulid) SELECT 9, shard, ulid FROM events",
			"UPDATE events SET data = ''", "DELETE FROM events")
		_, err := f.Lock(x.Ctx, rowfeed.InTx(r.BeginAs()), rowfeed.LockRequest{Shards: []int{3}})
		x.WantCode(err, rowfeed.Refused)
		_, err = r.FeedOf("others").Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(0)})
		if !x.Has.HiddenTables {
			wantDenied(r, "fetch entries of another feed", err)
		} else if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "this login a right on it") {
			t.Error(err)
		}

		// The reader keeps cursors in tables of another prefix.
		x.Exec("DELETE FROM events WHERE shard = -4", "DELETE FROM rowfeed_shards WHERE shard = -4")
		own := suite.OpenEnv(x.T, x.DB, &rowfeed.Config{Prefix: "mine_"})
		own.Migrate()
		for _, table := range []string{"schema_version", "feeds", "cursors", "consumers", "dead_letters", "processed"} {
			x.RightsOn("mine_"+table, "SELECT, INSERT, UPDATE, DELETE", r)
		}
		mine, err := rowfeed.Open(x.Ctx, r.Pool, r.Dialect, &rowfeed.Config{Prefix: "mine_"})
		if err != nil {
			t.Fatal(err)
		}
		handled := 0
		consumer := &rowfeed.Consumer{
			Name:   "c",
			Source: f,
			DB:     mine,
			Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				handled += len(entries)
				return nil
			},
		}
		if err := consumer.RunOnce(x.Ctx); err != nil || handled != 2 {
			t.Errorf("%d entries, %v", handled, err)
		}
		consumer = &rowfeed.Consumer{Name: "c", Source: f, DB: r.RF, Handle: consumer.Handle}
		x.WantCode(consumer.RunOnce(x.Ctx), rowfeed.Refused)
	})
}

// TestOutboxWriterMayOnlyAppend (M29, M61): a writer of an outbox can append records, in Go and in SQL, but cannot
// choose their positions. A reader can read records that have been moved, and an error tells it to leave moving to
// others.
func TestOutboxWriterMayOnlyAppend(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has no logins: TestWriterMayOnlyLockAndInsert asserts the refusal
	suite.EachOutbox(t, func(x *suite.Events) {
		w, r := x.NewLogin("writer", nil), x.NewLogin("reader", nil)
		x.RightsOn("events", "SELECT, INSERT", w)
		x.RightsOn("events", "SELECT", r)
		x.Grant(x.Feed, rowfeed.Grants{Writers: []string{w.Name}, Readers: []string{r.Name}})
		tx := w.BeginAs()
		x.In(tx, "INSERT INTO events VALUES (1, ''), (2, '')",
			"INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 1)")
		record := rowfeed.OutboxRecord{Key: rowfeed.Key{int64(2)}}
		must(x.Env, w.FeedOf("events").AppendOutbox(x.Ctx, rowfeed.InTx(tx), record))
		x.Commit(tx)
		_, err := r.FeedOf("events").Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(0)})
		if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "--no-publish") {
			t.Error(err)
		}
		if n := x.Publish(x.Feed); n != 2 {
			t.Errorf("%d moved", n)
		}
		x.WantIDs(x.Page(r.FeedOf("events"), 0, "", 10), false, 1, 2)
		x.Exec("INSERT INTO events VALUES (3, '')", "INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 3)")
		for _, l := range []*suite.Login{w, r} {
			wantDenials(l, x.Text("install.insert_with_position"), "UPDATE rowfeed_outbox_events SET shard = 1",
				"DELETE FROM rowfeed_outbox_events", "DELETE FROM rowfeed_feed_events",
				"UPDATE rowfeed_feed_events SET shard = 1", "INSERT INTO rowfeed_feed_events (shard) VALUES (1)",
				"UPDATE rowfeed_shards SET ulid_low = 0", "UPDATE rowfeed_feeds SET generation = 7",
				"SELECT * FROM rowfeed_cursors", "DROP TABLE rowfeed_outbox_events")
			_, err := l.FeedOf("events").Publish(x.Ctx)
			wantDenied(l, "publish", err)
		}
		if n := x.Publish(x.Feed); n != 1 {
			t.Errorf("%d records were left to publish, want 1", n)
		}
		wantDenials(w, "SELECT * FROM rowfeed_outbox_events", "SELECT * FROM rowfeed_feed_events")
		wantDenials(r, "INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 1)")
		err = r.FeedOf("events").
			AppendOutbox(x.Ctx, rowfeed.InTx(r.BeginAs()), rowfeed.OutboxRecord{Key: rowfeed.Key{int64(2)}})
		x.WantCode(err, rowfeed.Refused)
	})
}

// TestGrantsAndRevokesAreExact (M29, M61, M63): a grant to a login that does not exist changes nothing, even if other
// logins of the grant exist. Members of a granted group get its rights. Dropping a feed keeps the rights that its
// logins need for other feeds.
func TestGrantsAndRevokesAreExact(t *testing.T) {
	testdb.Quick(t)
	eachWithRoles(t, func(x *suite.Events) {
		before := x.DB.Dump(x.T)
		for _, login := range []string{"nobody " + x.DB.Name, "", "public", "PUBLIC"} {
			err := x.Feed.Admin().Grant(x.Ctx, rowfeed.Grants{Readers: []string{login}})
			var e *rowfeed.Error
			if !errors.As(err, &e) || e.Next == "" || e.Code != rowfeed.Refused && e.Code != rowfeed.InvalidRequest {
				t.Errorf("%q: %v", login, err)
			}
		}
		x.SameDump(before, "refused")
		x.WantCode(x.Feed.Admin().Grant(x.Ctx, rowfeed.Grants{}), rowfeed.InvalidRequest)
		plain, err := x.RF.Feed(x.Ctx, "plain")
		if err != nil {
			t.Fatal(err)
		}
		a, b := x.NewLogin("a", nil), x.NewLogin("b", nil)
		// Writers of a feed with triggers need no grant.
		x.WantCode(plain.Admin().Grant(x.Ctx, rowfeed.Grants{Writers: []string{a.Name}}), rowfeed.Refused)
		// If one login of a grant does not exist, no login gets a right.
		before = x.DB.Dump(x.T)
		x.WantCode(x.Feed.Admin().Grant(x.Ctx, rowfeed.Grants{Writers: []string{a.Name, "zz nobody " + x.DB.Name}}),
			rowfeed.Refused)
		x.Info(x.Feed) // reads the record again
		if g := x.Feed.Admin().Granted(); !g.IsZero() {
			t.Errorf("granted: %+v", g)
		}
		x.SameDump(before, "refused")

		group := newGroup(x.Env, b)
		before = x.DB.Dump(x.T)
		others, err := x.RF.Feed(x.Ctx, "others")
		if err != nil {
			t.Fatal(err)
		}
		x.Grant(x.Feed, rowfeed.Grants{Writers: []string{a.Name, group}, Readers: []string{a.Name}})
		x.Grant(others, rowfeed.Grants{Writers: []string{a.Name}})
		c := suite.OpenEnv(x.T, b.DB, nil) // the grant is for new sessions
		f, err := c.RF.Feed(x.Ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		tx, err := c.Pool.BeginTx(x.Ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}}); err != nil {
			t.Error(err)
		}
		x.Commit(tx)
		// Rights that both feeds need stay for the remaining feed.
		if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
			t.Fatal(err)
		}
		if tx, err = a.Pool.BeginTx(x.Ctx, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := a.FeedOf("others").Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{}); err != nil {
			t.Error(err)
		}
		x.Commit(tx)
		wantDenials(a, "SELECT * FROM rowfeed_sequences")
		if err := x.RF.DropFeed(x.Ctx, "others"); err != nil {
			t.Fatal(err)
		}
		wantDenials(a, "SELECT * FROM rowfeed_feeds")
		for _, f := range []string{"others", "events"} {
			spec := suite.EventsSpec()
			spec.Name, spec.Table = f, f
			if g := x.Add(spec).Admin().Granted(); !g.IsZero() {
				t.Errorf("a feed that is made anew: %+v", g)
			}
		}
		x.SameDump(before, "dropped and made again")
	})
}

// TestVerifyNeedsNoRightsOfOwner (M61): Verify finds no problem if a reader's login may not see an object. With the
// owner's login, it finds what is missing.
func TestVerifyNeedsNoRightsOfOwner(t *testing.T) {
	eachWithRoles(t, func(x *suite.Events) {
		x.Exec("CREATE TABLE triggered (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL)")
		x.Add(
			rowfeed.FeedSpec{
				Name:        "triggered",
				Table:       "triggered",
				Mode:        rowfeed.ModeOutbox,
				Capture:     "trigger",
				ShardColumn: "shard",
			},
		)
		a, b := x.NewLogin("a", nil), x.NewLogin("b", nil)
		group := newGroup(x.Env, b)
		for _, name := range []string{"events", "plain", "triggered"} {
			f, err := x.RF.Feed(x.Ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range []*suite.Login{a, b} {
				x.RightsOn(name, "SELECT", l)
			}
			x.Grant(f, rowfeed.Grants{Readers: []string{a.Name, group}})
		}
		bs := suite.OpenEnv(x.T, b.DB, nil) // the grant is for new sessions
		for _, rf := range []*rowfeed.DB{a.RF, bs.RF} {
			// The logins have no grant for the last feed.
			for _, name := range []string{"events", "plain", "triggered", "others"} {
				f, err := rf.Feed(x.Ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
					t.Errorf("%s: %q, %v", name, problems, err)
				}
			}
		}
		x.Exec("DROP TABLE others")
		others, err := x.RF.Feed(x.Ctx, "others")
		if err != nil {
			t.Fatal(err)
		}
		_, err = others.Admin().Verify(x.Ctx)
		x.WantCode(err, rowfeed.Refused)
		for _, s := range x.Dialect.Routines.ULIDDown(
			&dialect.Feed{Name: "events", Names: dialect.Names{Prefix: "rowfeed_"}}) {
			x.Exec(s.SQL)
		}
		if problems, err := x.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) != x.Routines() {
			t.Errorf("%q, %v", problems, err)
		}
	})
}
