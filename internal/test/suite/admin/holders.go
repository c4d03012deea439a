package admin

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLockHolders (M44): status names who has which shard since when, and who waits, as
// far as the database tells; it says how far that is. Heads are those of the shards.
func TestLockHolders(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		x.Write(-6, 2, 2)
		x.Exec(x.EventsTable("other"), "CREATE UNIQUE INDEX other_feed ON other (shard, ulid)")
		spec := suite.EventsSpec()
		spec.Name, spec.Table = "other", "other"
		other := x.Add(spec)
		status, five := x.ShardStatus(5)
		last := x.Page(x.Feed, 5, "", 10).Entries[0].Position
		if status.HoldersTold != x.Tells() || len(status.Shards) != 2 || status.Shards[0].Shard != -6 || five.Head != last || five.HeadAt == nil || five.HeadAt.Sub(x.Now()).Abs() > 20*time.Minute || five.Holder != nil {
			x.Fatalf("%+v", status)
		}
		tx := x.BeginAs("has")
		id := x.Connection(tx)
		x.Event(tx, 3, 5, x.At(x.Lock(tx, rowfeed.LockRequest{Shards: []int{5}}), 5, 0), "")
		if x.Tells() == admin.HoldersNone {
			if status, five := x.ShardStatus(5); five.Holder != nil || len(five.Waiting) != 0 {
				x.Errorf("%+v", status)
			}
			return
		}
		for end := range 2 { // somebody has the same shards of another feed, which were used before
			beside := x.Begin(sql.LevelReadCommitted)
			if _, err := other.Lock(x.Ctx, rowfeed.InTx(beside), rowfeed.LockRequest{Shards: []int{5, -6}}); err != nil {
				x.Fatal(err)
			}
			if end == 0 {
				x.Commit(beside)
			}
		}
		named := func(s *admin.Session, id, application string) bool {
			if s == nil || s.Session != id {
				return false
			}
			want := map[testdb.Engine]string{testdb.MariaDB: ""}
			if _, known := want[x.Engine]; !known {
				want[x.Engine] = application
			}
			if s.User == "" || s.Host == "" || s.Application != want[x.Engine] || s.Since == nil || s.Since.After(x.Now()) || x.Now().Sub(*s.Since) > 20*time.Minute || *s.AgeSeconds < 0 ||
				s.State == "" || s.StateSeconds == nil || *s.StateSeconds < 0 {
				text, _ := json.Marshal(s)
				x.Errorf("%s", text)
			}
			return true
		}
		if x.Tells() == admin.HoldersAll {
			x.Eventually("the holder is named", func() bool {
				_, five := x.ShardStatus(5)
				return named(five.Holder, id, "has") && len(five.Waiting) == 0
			})
		} else if status, five := x.ShardStatus(5); five.Holder != nil || !slices.ContainsFunc(status.Blockers, func(b admin.Blocker) bool { return b.Session == id && b.Scope == "wrote to some table" }) {
			x.Errorf("nobody waits: %+v", status)
		}
		w := x.Wait(5)
		x.Eventually("holder and waiter are named", func() bool {
			status, five := x.ShardStatus(5)
			if _, six := x.ShardStatus(-6); six.Holder != nil || six.Waiting == nil {
				x.Errorf("of a shard that nobody has: %+v", six)
			}
			return named(five.Holder, id, "has") && len(five.Waiting) == 1 && named(&five.Waiting[0], w.ID, "waits") &&
				slices.ContainsFunc(status.Blockers, func(b admin.Blocker) bool { return b.Session == id && b.Scope == "holds shard 5" })
		})
		// Who waits in vain is told, too, whom it waited for, where that can be learnt in three seconds.
		for try := 1; ; try++ {
			late := x.BeginAs("late")
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(late), rowfeed.LockRequest{Shards: []int{5}, Wait: time.Second})
			x.WantCode(err, rowfeed.Locked)
			late.Rollback()
			if strings.Contains(err.Error(), "session "+id+" ") {
				break
			}
			if try == 5 {
				x.Fatal(err)
			}
		}
		x.Commit(tx)
		x.Got(w)
		x.Eventually("nobody is named", func() bool { _, five := x.ShardStatus(5); return five.Holder == nil && len(five.Waiting) == 0 })
	})
}

// TestLockHolderHidden (M44): a holder that took the shard under a savepoint, and the first one of a new
// shard, are named where the database can tell, at the latest when somebody waits; else
// they are listed as who may have it.
func TestLockHolderHidden(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite names nobody
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		under := x.BeginAs("under")
		x.In(under, "SAVEPOINT s")
		x.Lock(under, rowfeed.LockRequest{Shards: []int{5}})
		x.In(under, "RELEASE SAVEPOINT s")
		if x.Family() == "postgres" {
			if status, five := x.ShardStatus(5); five.Holder != nil || len(status.Blockers) != 1 || status.Blockers[0].Session != x.Connection(under) {
				x.Errorf("while nobody waits: %+v", status)
			}
		}
		w := x.Wait(5)
		x.Eventually("who has it under a savepoint is named", func() bool {
			_, five := x.ShardStatus(5)
			return five.Holder != nil && five.Holder.Session == x.Connection(under) && len(five.Waiting) == 1
		})
		x.Commit(under)
		x.Got(w)

		first := x.BeginAs("first")
		id := x.Connection(first)
		x.Lock(first, rowfeed.LockRequest{Shards: []int{77}})
		w = x.Wait(77)
		x.Eventually("the first one is named", func() bool {
			status, new := x.ShardStatus(77)
			if x.Family() == "postgres" {
				return new.Holder == nil && slices.ContainsFunc(status.Blockers, func(b admin.Blocker) bool {
					return b.Session == id && b.Scope == "has a shard: a new one of this feed, one that it took under a savepoint, or another feed's"
				})
			}
			return new.Holder != nil && new.Holder.Session == id && len(new.Waiting) == 1
		})
		if found, err := x.Feed.Admin().Unblock(x.Ctx, admin.UnblockRequest{Shard: ptr(77)}); x.Family() == "postgres" {
			x.WantCode(err, rowfeed.Refused) // nobody can be sure
			x.Commit(first)
		} else if err != nil || !found.Ended || found.Holder.Session != id {
			x.Fatalf("%+v, %v", found, err)
		}
		x.Got(w)
	})
}

func ptr(n int) *int { return &n }

// TestUnblock (M44): the transaction that has a shard is ended, and no other; the next one gets the
// shard, and nothing of the former is committed. Who is not sure is refused.
func TestUnblock(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		x.Write(6, 2, 2)
		unblock := func(req admin.UnblockRequest) (*admin.Unblocked, error) { return x.Feed.Admin().Unblock(x.Ctx, req) }
		if x.Family() == "sqlite" {
			_, err := unblock(admin.UnblockRequest{})
			if x.WantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
				x.Error(err)
			}
			return
		}
		_, err := x.AddKV().Admin().Unblock(x.Ctx, admin.UnblockRequest{})
		if x.WantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
			x.Error(err)
		}
		_, err = unblock(admin.UnblockRequest{}) // which?
		x.WantCode(err, rowfeed.Refused)
		if found, err := unblock(admin.UnblockRequest{Shard: ptr(5)}); err != nil || found.Holder != nil || found.Ended {
			x.Fatalf("nobody has it: %+v, %v", found, err)
		}
		_, err = unblock(admin.UnblockRequest{Shard: ptr(5), Session: "1"})
		x.WantCode(err, rowfeed.Conflict)

		innocent, holder, six := x.BeginAs("innocent"), x.BeginAs("has"), x.BeginAs("six")
		id := x.Connection(holder)
		x.Event(holder, 3, 5, x.At(x.Lock(holder, rowfeed.LockRequest{Shards: []int{5}}), 5, 0), "")
		x.Lock(six, rowfeed.LockRequest{Shards: []int{6}})
		if x.Tells() == admin.HoldersAll {
			_, err = unblock(admin.UnblockRequest{}) // of two
			if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "5 6") {
				x.Error(err)
			}
		}
		// Nobody waits: it is found all the same, by waiting where that is what it takes.
		dry, err := unblock(admin.UnblockRequest{Shard: ptr(5), DryRun: true})
		if err != nil || dry.Ended || dry.Holder == nil || dry.Holder.Session != id {
			x.Fatalf("%+v, %v", dry, err)
		}
		w := x.Wait(5)
		x.Eventually("it waits", x.Waits)
		_, err = unblock(admin.UnblockRequest{Shard: ptr(5), Session: x.Connection(six)})
		x.WantCode(err, rowfeed.Conflict)
		// The only one that somebody waits for.
		found, err := unblock(admin.UnblockRequest{Session: id})
		if err != nil || !found.Ended || found.Shard != 5 || found.Holder.Session != id || len(found.Waiting) == 0 {
			x.Fatalf("%+v, %v", found, err)
		}
		x.Got(w)
		if _, err := holder.ExecContext(x.Ctx, "DELETE FROM events"); err == nil {
			x.Error("its session goes on")
		}
		x.WantIDs(x.Page(x.Feed, 5, "", 10), false, 1)
		for _, tx := range []*sql.Tx{innocent, six} {
			x.Connection(tx)
			x.Commit(tx)
		}
	})
}

// TestUnblockMover (M44): a mover of an outbox that hangs with its shard is ended like a writer; the
// next one moves the records, once.
func TestUnblockMover(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 5, time.Time{})
		moved := x.Page(x.Feed, 5, "", 10) // so that the shard has a row
		x.Appended(2, 5, time.Time{})
		var placed atomic.Bool
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit && placed.Load() })
		mover := x.Other(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if suite.PlacesRecords(ev) {
				placed.Store(true)
			}
			return held.Before(ctx, ev)
		}}, nil)
		ctx, cancel := context.WithCancel(x.Ctx)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := mover.Fetch(ctx, rowfeed.Request{After: moved.Cursor, Shards: rowfeed.One(5)})
			done <- err
		}()
		select {
		case <-held.Reached:
		case err := <-done:
			x.Fatalf("it moved nothing: %v", err)
		}
		if x.Family() == "sqlite" {
			_, err := x.Feed.Admin().Unblock(x.Ctx, admin.UnblockRequest{Shard: ptr(5)})
			x.WantCode(err, rowfeed.Refused)
			held.Release()
			<-done
			return
		}
		found, err := x.Feed.Admin().Unblock(x.Ctx, admin.UnblockRequest{Shard: ptr(5)})
		if err != nil || !found.Ended {
			x.Fatalf("%+v, %v", found, err)
		}
		all := x.All(5)
		x.WantIDs(all, false, 1, 2)
		_, five := x.ShardStatus(5)
		if last := all.Entries[1].Position; five.Head != last || five.HeadAt == nil {
			x.Errorf("status: %+v, and the last entry is at %s", five, last)
		}
		held.Release()
		<-done // it may have moved nothing, or found that all is moved
		x.WantIDs(x.Page(x.Feed, 5, "", 10), false, 1, 2)
		x.WantSound(x.Feed)
	})
}

// TestUnblockLooksAgain (M44): a transaction that has ended meanwhile is not followed by its connection's
// next one, though that has the same shard.
func TestUnblockLooksAgain(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite ends nobody
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{})
		pool.SetMaxOpenConns(1)
		tx := x.BeginOn(pool)
		x.Lock(tx, rowfeed.LockRequest{Shards: []int{5}})
		w := x.Wait(5)
		feed := &dialect.Feed{Name: "events", Names: dialect.Names{Prefix: "rowfeed_", Schema: x.By(map[string]string{"postgres": "public", "mysql": x.DB.Name})}, ULIDs: &dialect.ULIDColumns{}}
		holds := func() (h dialect.Holding) {
			x.Helper()
			x.Eventually("the holder is seen", func() bool {
				if x.Family() == "mysql" {
					suite.Rest(x.Ctx, 150*time.Millisecond)
				}
				all, _, err := x.Dialect.Holders(x.Ctx, dialect.On(x.Pool), feed)
				if err != nil {
					x.Fatal(err)
				}
				if len(all) == 1 && all[0].Holder != nil {
					h = all[0]
				}
				return h.Holder != nil && h.Holder.ID == x.Connection(tx)
			})
			return h
		}
		was := holds()
		x.Commit(tx)
		x.Got(w)
		tx = x.BeginOn(pool)
		x.Lock(tx, rowfeed.LockRequest{Shards: []int{5}})
		w = x.Wait(5)
		now := holds()
		if ended, err := x.Dialect.EndHolder(x.Ctx, dialect.On(x.Pool), feed, was); ended || err != nil {
			x.Errorf("a transaction that has ended: %v, %v", ended, err)
		}
		if now.Holder.ID != was.Holder.ID || now.Holder.Transaction == was.Holder.Transaction {
			x.Errorf("%+v, and then %+v", was.Holder, now.Holder)
		}
		x.Connection(tx) // it lives
		if ended, err := x.Dialect.EndHolder(x.Ctx, dialect.On(x.Pool), feed, now); !ended || err != nil {
			x.Errorf("%v, %v", ended, err)
		}
		x.Got(w)
	})
}

// TestUnblockPrepared (M44): a prepared transaction is named, and no session is ended for it.
func TestUnblockPrepared(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // what InnoDB prepares (XA) keeps its session, or is not told of
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		tx := x.Begin(sql.LevelReadCommitted)
		x.Lock(tx, rowfeed.LockRequest{Shards: []int{5}})
		x.In(tx, "PREPARE TRANSACTION 'of "+x.DB.Name+"'")
		tx.Rollback()
		_, err := x.Feed.Admin().Unblock(x.Ctx, admin.UnblockRequest{})
		if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "PREPARE TRANSACTION 'of "+x.DB.Name+"'") {
			x.Error(err)
		}
		x.Exec("ROLLBACK PREPARED 'of " + x.DB.Name + "'")
		x.Write(5, 2, 2)
	})
}

// TestUnblockRights (M44): a login without the rights is told which it takes, and ends nobody;
// its status says that it does not know.
func TestUnblockRights(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no logins
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		login := "ops_" + x.DB.Name
		url := strings.Replace(x.DB.URL, "//postgres@", "//"+login+"@", 1)
		if x.Family() == "postgres" {
			x.Exec("CREATE ROLE "+login+" LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+login)
			x.Cleanup(func() { x.Exec("DROP OWNED BY "+login, "DROP ROLE "+login) })
		} else {
			url = strings.Replace(x.DB.URL, "//root@", "//"+login+":pw@", 1)
			x.Exec("CREATE USER "+login+"@'%' IDENTIFIED BY 'pw'", "GRANT SELECT, INSERT, UPDATE ON "+x.DB.Name+".* TO "+login+"@'%'")
			x.Cleanup(func() { x.Exec("DROP USER " + login + "@'%'") })
		}
		feed := func() *rowfeed.Feed {
			y := suite.OpenEnv(x.T, &testdb.Database{Engine: x.Engine, URL: url, Name: x.DB.Name}, nil)
			f, err := y.RF.Feed(x.Ctx, "events")
			if err != nil {
				x.Fatal(err)
			}
			return f
		}
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{5}})
		w := x.Wait(5)
		x.Eventually("it waits", x.Waits)
		refused := func(right string) {
			x.Helper()
			_, err := feed().Admin().Unblock(x.Ctx, admin.UnblockRequest{Shard: ptr(5)})
			if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), right) {
				x.Error(err)
			}
		}
		if x.Family() == "postgres" {
			refused("pg_signal_backend")
			status, err := feed().Admin().Status(x.Ctx)
			if err != nil || status.HoldersTold != admin.HoldersAll || len(status.Shards) != 1 || status.Shards[0].Holder == nil || status.Shards[0].Holder.Since != nil {
				x.Errorf("%+v, %v", status, err) // who it is everybody may see, what it does not
			}
		} else {
			refused("PROCESS")
			if status, err := feed().Admin().Status(x.Ctx); err != nil || status.HoldersTold != admin.HoldersNone || len(status.Shards) != 1 {
				x.Errorf("%+v, %v", status, err)
			}
			x.Exec("GRANT PROCESS ON *.* TO " + login + "@'%'")
			if x.Engine == testdb.MySQL {
				x.Exec("GRANT SELECT ON performance_schema.* TO " + login + "@'%'")
			}
			refused("CONNECTION")
		}
		x.Commit(holder)
		x.Got(w)
	})
}
