package conformance

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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachWithRoles is a feed events of mode blocking, a second one of a table others, and one in
// mode sequence; on SQLite, which has no logins, it asserts the refusal.
func eachWithRoles(t *testing.T, f func(x *events)) {
	t.Helper()
	eachULID(t, func(x *events) {
		if x.family() == "sqlite" {
			for _, err := range []error{x.feed.Admin().Grant(x.ctx, rowfeed.Grants{Writers: []string{"w"}}), x.feed.Admin().Revoke(x.ctx, rowfeed.Grants{Readers: []string{"r"}})} {
				if x.wantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
					t.Error(err)
				}
			}
			return
		}
		x.exec(x.eventsTable("others"), "CREATE UNIQUE INDEX others_feed ON others (shard, ulid)", "CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
		spec := eventsSpec()
		spec.Name, spec.Table = "others", "others"
		x.add(spec)
		x.add(rowfeed.FeedSpec{Name: "plain", Table: "plain"})
		f(x)
	})
}

// TestWriterRole (M29): a login that is the feed's writer, and has INSERT on its table, locks and
// inserts, in Go and in SQL, and may do nothing else; before it was granted, and after that was
// revoked, it may not do that either.
func TestWriterRole(t *testing.T) {
	testdb.Quick(t)
	eachWithRoles(t, func(x *events) {
		w := x.newLogin(`wri"t'er`, nil)
		x.rightsOn("events", "SELECT, INSERT", w)
		without := x.db.Dump(x.T)
		_, err := w.rf.Feed(x.ctx, "events")
		x.wantCode(err, rowfeed.Refused)
		for range 2 {
			x.grant(x.feed, rowfeed.Grants{Writers: []string{w.name}})
		}
		if g := x.feed.Admin().Granted(); len(g.Writers) != 1 || g.Writers[0] != w.name || len(g.Readers) != 0 {
			t.Errorf("granted: %+v", g)
		}
		f := w.feedOf("events")
		for i, shards := range [][]int{{1}, {7, -5}} {
			tx := w.beginAs()
			u, err := f.Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: shards})
			if err != nil {
				t.Fatal(err)
			}
			x.event(tx, i+1, shards[0], x.at(u, shards[0], 0), "in Go")
			if err := u.Verify(x.ctx); err != nil {
				t.Error(err)
			}
			h, err := x.lockBySQL(tx, shards[0], "NULL")
			if err != nil {
				t.Fatal(err)
			}
			x.in(tx, fmt.Sprintf("INSERT INTO events (id, shard, ulid, data) SELECT %d, %d, %s, 'by SQL'", 10+i, shards[0], x.bySQL("3", shards[0])))
			if len(h.ulid) != 16 {
				t.Errorf("%x", h.ulid)
			}
			x.commit(tx)
		}
		x.wantIDs(x.page(x.feed, 1, "", 10), false, 1, 10)
		x.wantIDs(x.page(x.feed, 7, "", 10), false, 2, 11)
		x.wantSound(x.feed)

		w.mayNot(x.outOfReach()...)
		w.mayNot("SELECT * FROM rowfeed_shards FOR UPDATE", "SELECT * FROM rowfeed_sequences FOR UPDATE")
		_, err = w.feedOf("others").Lock(x.ctx, rowfeed.InTx(w.beginAs()), rowfeed.LockRequest{})
		x.wantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "feed grant others --writer") {
			t.Error(err)
		}
		_, err = f.Admin().Bump(x.ctx)
		x.wantCode(err, rowfeed.Refused)
		x.wantCode(w.rf.DropFeed(x.ctx, "events"), rowfeed.Refused)
		x.wantCode(f.Admin().Grant(x.ctx, rowfeed.Grants{Writers: []string{w.name}}), rowfeed.Refused)

		for range 2 {
			if err := x.feed.Admin().Revoke(x.ctx, rowfeed.Grants{Writers: []string{w.name}}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = f.Lock(x.ctx, rowfeed.InTx(w.beginAs()), rowfeed.LockRequest{})
		x.wantCode(err, rowfeed.Refused)
		w.mayNot("SELECT * FROM rowfeed_feeds", x.by(map[string]string{"postgres": "SELECT rowfeed_lock_events(1)", "mysql": "CALL rowfeed_lock_events(1, NULL, @a, @b, @c)"}))
		x.sameDump(without, "after revoke")
	})
}

// TestReaderRole (M61): a login that is the feed's reader, and has SELECT on its table, fetches,
// serves over HTTP, and consumes with cursors of its own; it may write nothing, lock nothing, and read of
// other feeds no row.
func TestReaderRole(t *testing.T) {
	testdb.Quick(t)
	eachWithRoles(t, func(x *events) {
		r := x.newLogin("reader", nil)
		x.rightsOn("events", "SELECT", r)
		x.grant(x.feed, rowfeed.Grants{Readers: []string{r.name}})
		x.write(3, 1, 2)
		x.write(-4, 3, 3)
		f := r.feedOf("events")
		x.wantIDs(x.page(f, 3, "", 1), true, 1)
		x.wantIDs(x.page(f, -4, "", 10), false, 3)
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(r.rf), &feedhttp.Config{NoPublish: true}))
		defer server.Close()
		client := &feedhttp.Client{URL: server.URL, Feed: "events"}
		x.wantIDs(x.page(client, 3, "", 10), false, 1, 2)
		if info, err := client.Info(x.ctx); err != nil || len(info.ShardIDs) != 2 {
			t.Errorf("%+v, %v", info, err)
		}

		r.mayNot(x.outOfReach()...)
		for _, table := range []string{"rowfeed_shards", "rowfeed_sequences", "rowfeed_feeds"} {
			if lock := "SELECT * FROM " + table + " FOR UPDATE"; x.engine != testdb.MariaDB {
				r.mayNot(lock)
			} else { // whoever may read a row may lock it there, as GUARANTEES.md says
				tx := r.beginAs()
				x.in(tx, lock)
				tx.Rollback()
			}
		}
		r.mayNot(x.by(map[string]string{"postgres": "SELECT rowfeed_lock_events(1)", "mysql": "CALL rowfeed_lock_events(1, NULL, @a, @b, @c)"}),
			"INSERT INTO events (id, shard, ulid) SELECT 9, shard, ulid FROM events", "UPDATE events SET data = ''", "DELETE FROM events")
		_, err := f.Lock(x.ctx, rowfeed.InTx(r.beginAs()), rowfeed.LockRequest{Shards: []int{3}})
		x.wantCode(err, rowfeed.Refused)
		_, err = r.feedOf("others").Fetch(x.ctx, rowfeed.Request{Shards: rowfeed.One(0)})
		if err == nil {
			t.Error("rows of another feed are fetched")
		}

		// Its cursors are in tables of its own, of another prefix.
		x.exec("DELETE FROM events WHERE shard = -4", "DELETE FROM rowfeed_shards WHERE shard = -4")
		own := openEnv(x.T, x.db, &rowfeed.Config{Prefix: "mine_"})
		own.migrate()
		for _, table := range []string{"schema_version", "feeds", "cursors", "consumers", "dead_letters", "processed"} {
			x.rightsOn("mine_"+table, "SELECT, INSERT, UPDATE, DELETE", r)
		}
		mine, err := rowfeed.Open(x.ctx, r.pool, r.dialect, &rowfeed.Config{Prefix: "mine_"})
		if err != nil {
			t.Fatal(err)
		}
		handled := 0
		consumer := &rowfeed.Consumer{Name: "c", Source: f, DB: mine, Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error { handled += len(entries); return nil }}
		if err := consumer.RunOnce(x.ctx); err != nil || handled != 2 {
			t.Errorf("%d entries, %v", handled, err)
		}
		consumer = &rowfeed.Consumer{Name: "c", Source: f, DB: r.rf, Handle: consumer.Handle}
		x.wantCode(consumer.RunOnce(x.ctx), rowfeed.Refused)
	})
}

// TestOutboxRoles (M29, M61): a writer of an outbox appends records, in Go and in SQL, but does not
// say where in their order they stand; a reader reads what was moved, and is told who moves the rest.
func TestOutboxRoles(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has no logins: TestWriterRole asserts the refusal
	eachOutbox(t, func(x *events) {
		w, r := x.newLogin("writer", nil), x.newLogin("reader", nil)
		x.rightsOn("events", "SELECT, INSERT", w)
		x.rightsOn("events", "SELECT", r)
		x.grant(x.feed, rowfeed.Grants{Writers: []string{w.name}, Readers: []string{r.name}})
		tx := w.beginAs()
		x.in(tx, "INSERT INTO events VALUES (1, ''), (2, '')", "INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 1)")
		if err := w.feedOf("events").AppendOutbox(x.ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{int64(2)}}); err != nil {
			t.Fatal(err)
		}
		x.commit(tx)
		_, err := r.feedOf("events").Fetch(x.ctx, rowfeed.Request{Shards: rowfeed.One(0)})
		if x.wantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "--no-publish") {
			t.Error(err)
		}
		if n := x.publish(x.feed); n != 2 {
			t.Errorf("%d moved", n)
		}
		x.wantIDs(x.page(r.feedOf("events"), 0, "", 10), false, 1, 2)
		own := x.by(map[string]string{"postgres": "(order_sequence, shard, id) OVERRIDING SYSTEM VALUE VALUES (1, 0, 3)", "mysql": "(order_sequence, shard, id) VALUES (1, 0, 3)"})
		for _, l := range []*login{w, r} {
			l.mayNot("INSERT INTO rowfeed_outbox_events "+own, "UPDATE rowfeed_outbox_events SET shard = 1", "DELETE FROM rowfeed_outbox_events", "DELETE FROM rowfeed_feed_events",
				"UPDATE rowfeed_feed_events SET shard = 1", "INSERT INTO rowfeed_feed_events (shard) VALUES (1)", "UPDATE rowfeed_shards SET ulid_low = 0", "UPDATE rowfeed_feeds SET generation = 7",
				"SELECT * FROM rowfeed_cursors", "DROP TABLE rowfeed_outbox_events")
			_, err := l.feedOf("events").Publish(x.ctx)
			if err == nil && x.scalar("SELECT count(*) FROM rowfeed_outbox_events") != 0 {
				t.Errorf("%s publishes", l.name)
			}
		}
		w.mayNot("SELECT * FROM rowfeed_outbox_events", "SELECT * FROM rowfeed_feed_events")
		r.mayNot("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 1)")
		err = r.feedOf("events").AppendOutbox(x.ctx, rowfeed.InTx(r.beginAs()), rowfeed.OutboxRecord{Key: rowfeed.Key{int64(2)}})
		x.wantCode(err, rowfeed.Refused)
	})
}

// TestGrants (M29): logins that are none, groups of logins, and what a login keeps for other feeds (M29, M61,
// M63).
func TestGrants(t *testing.T) {
	testdb.Quick(t)
	eachWithRoles(t, func(x *events) {
		before := x.db.Dump(x.T)
		for _, login := range []string{"nobody " + x.db.Name, "", "public", "PUBLIC"} {
			err := x.feed.Admin().Grant(x.ctx, rowfeed.Grants{Readers: []string{login}})
			var e *rowfeed.Error
			if !errors.As(err, &e) || e.Next == "" || e.Code != rowfeed.Refused && e.Code != rowfeed.InvalidRequest {
				t.Errorf("%q: %v", login, err)
			}
		}
		x.sameDump(before, "refused")
		x.wantCode(x.feed.Admin().Grant(x.ctx, rowfeed.Grants{}), rowfeed.InvalidRequest)
		plain, err := x.rf.Feed(x.ctx, "plain")
		if err != nil {
			t.Fatal(err)
		}
		a, b := x.newLogin("a", nil), x.newLogin("b", nil)
		x.wantCode(plain.Admin().Grant(x.ctx, rowfeed.Grants{Writers: []string{a.name}}), rowfeed.Refused) // triggers record for it
		// One that is there and one that is not: nobody gets anything.
		before = x.db.Dump(x.T)
		x.wantCode(x.feed.Admin().Grant(x.ctx, rowfeed.Grants{Writers: []string{a.name, "zz nobody " + x.db.Name}}), rowfeed.Refused)
		x.info(x.feed) // reads the record again
		if g := x.feed.Admin().Granted(); !g.IsZero() {
			t.Errorf("granted: %+v", g)
		}
		x.sameDump(before, "refused")

		// A group: whoever is in it.
		group := "group_" + x.db.Name
		x.exec("CREATE ROLE "+group, "GRANT "+group+" TO "+b.sql)
		x.Cleanup(func() {
			if x.family() == "postgres" {
				x.exec("DROP OWNED BY " + group)
			}
			x.exec("DROP ROLE " + group)
		})
		switch x.engine {
		case testdb.MariaDB:
			x.exec("SET DEFAULT ROLE " + group + " FOR " + b.sql)
		case testdb.MySQL:
			x.exec("SET DEFAULT ROLE " + group + " TO " + b.sql)
		}
		before = x.db.Dump(x.T)
		others, err := x.rf.Feed(x.ctx, "others")
		if err != nil {
			t.Fatal(err)
		}
		x.grant(x.feed, rowfeed.Grants{Writers: []string{a.name, group}, Readers: []string{a.name}})
		x.grant(others, rowfeed.Grants{Writers: []string{a.name}})
		c := openEnv(x.T, b.db, nil) // a session from after the grant
		f, err := c.rf.Feed(x.ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		tx, err := c.pool.BeginTx(x.ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}}); err != nil {
			t.Error(err)
		}
		x.commit(tx)
		// What both feeds take stays for the one that is left.
		if err := x.rf.DropFeed(x.ctx, "events"); err != nil {
			t.Fatal(err)
		}
		if tx, err = a.pool.BeginTx(x.ctx, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := a.feedOf("others").Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{}); err != nil {
			t.Error(err)
		}
		x.commit(tx)
		a.mayNot("SELECT * FROM rowfeed_sequences")
		if err := x.rf.DropFeed(x.ctx, "others"); err != nil {
			t.Fatal(err)
		}
		a.mayNot("SELECT * FROM rowfeed_feeds")
		for _, f := range []string{"others", "events"} {
			spec := eventsSpec()
			spec.Name, spec.Table = f, f
			if g := x.add(spec).Admin().Granted(); !g.IsZero() {
				t.Errorf("a feed that is made anew: %+v", g)
			}
		}
		x.sameDump(before, "dropped and made again")
	})
}

// TestReaderVerifies (M61): a reader's and a writer's process, such as a server that is asked whether it is
// ready, takes nothing for missing that its login is not shown; who has made the feed is told what is.
func TestReaderVerifies(t *testing.T) {
	eachWithRoles(t, func(x *events) {
		x.exec("CREATE TABLE triggered (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL)")
		x.add(rowfeed.FeedSpec{Name: "triggered", Table: "triggered", Mode: rowfeed.ModeOutbox, Capture: "trigger", ShardColumn: "shard"})
		a, group := x.newLogin("a", nil), "group_"+x.db.Name
		x.exec("CREATE ROLE " + group)
		x.Cleanup(func() {
			if x.family() == "postgres" {
				x.exec("DROP OWNED BY " + group)
			}
			x.exec("DROP ROLE " + group)
		})
		b := x.newLogin("b", nil)
		x.exec("GRANT " + group + " TO " + b.sql)
		switch x.engine {
		case testdb.MariaDB:
			x.exec("SET DEFAULT ROLE " + group + " FOR " + b.sql)
		case testdb.MySQL:
			x.exec("SET DEFAULT ROLE " + group + " TO " + b.sql)
		}
		for _, name := range []string{"events", "plain", "triggered"} {
			f, err := x.rf.Feed(x.ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range []*login{a, b} {
				x.rightsOn(name, "SELECT", l)
			}
			x.grant(f, rowfeed.Grants{Readers: []string{a.name, group}})
		}
		bs := openEnv(x.T, b.db, nil) // a session from after the grant
		for _, rf := range []*rowfeed.DB{a.rf, bs.rf} {
			for _, name := range []string{"events", "plain", "triggered", "others"} { // the last one it was not granted
				f, err := rf.Feed(x.ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				if problems, err := f.Admin().Verify(x.ctx); err != nil || len(problems) > 0 {
					t.Errorf("%s: %q, %v", name, problems, err)
				}
			}
		}
		x.exec("DROP TABLE others")
		others, err := x.rf.Feed(x.ctx, "others")
		if err != nil {
			t.Fatal(err)
		}
		_, err = others.Admin().Verify(x.ctx)
		x.wantCode(err, rowfeed.Refused)
		for _, s := range x.dialect.ULIDDown(&dialect.Feed{Name: "events", Names: dialect.Names{Prefix: "rowfeed_"}}) {
			x.exec(s.SQL)
		}
		if problems, err := x.feed.Admin().Verify(x.ctx); err != nil || len(problems) != x.routines() {
			t.Errorf("%q, %v", problems, err)
		}
	})
}
