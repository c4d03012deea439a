package admin

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/url"
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

// TestStatusNamesShardHolders (M44): status names which session holds which shard since when, and which sessions wait,
// as far as the database tells, and says how far that is. Heads are those of the shards.
func TestStatusNamesShardHolders(t *testing.T) {
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
		if status.HoldersTold != x.Tells() || len(status.Shards) != 2 || status.Shards[0].Shard != -6 ||
			five.Head != last || five.HeadAt == nil || five.HeadAt.Sub(x.Now()).Abs() > 20*time.Minute ||
			five.Holder != nil {
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
		for end := range 2 { // another session holds the same shards of another feed, which were used before
			another := x.Begin(sql.LevelReadCommitted)
			req := rowfeed.LockRequest{Shards: []int{5, -6}}
			if _, err := other.Lock(x.Ctx, rowfeed.InTx(another), req); err != nil {
				x.Fatal(err)
			}
			if end == 0 {
				x.Commit(another)
			}
		}
		named := func(s *admin.Session, id, application string) bool {
			if s == nil || s.Session != id {
				return false
			}
			if x.Has.ShowsOnlyRunningStatement {
				application = "" // it shows no names of programs, either
			}
			if s.User == "" || s.Host == "" || s.Application != application || s.Since == nil ||
				s.Since.After(x.Now()) || x.Now().Sub(*s.Since) > 20*time.Minute || *s.AgeSeconds < 0 ||
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
		} else {
			wrote := func(b admin.Blocker) bool { return b.Session == id && b.Scope == "wrote to some table" }
			if status, five := x.ShardStatus(5); five.Holder != nil || !slices.ContainsFunc(status.Blockers, wrote) {
				x.Errorf("no session waits: %+v", status)
			}
		}
		w := x.Wait(5)
		x.Eventually("holder and waiter are named", func() bool {
			status, five := x.ShardStatus(5)
			if _, six := x.ShardStatus(-6); six.Holder != nil || six.Waiting == nil {
				x.Errorf("a shard without a holder: %+v", six)
			}
			holds := func(b admin.Blocker) bool { return b.Session == id && b.Scope == "holds shard 5" }
			return named(five.Holder, id, "has") && len(five.Waiting) == 1 &&
				named(&five.Waiting[0], w.ID, "waits") && slices.ContainsFunc(status.Blockers, holds)
		})
		// The error of a wait that ends names the holder, too, if the database tells it within three seconds.
		for try := 1; ; try++ {
			late := x.BeginAs("late")
			req := rowfeed.LockRequest{Shards: []int{5}, Wait: time.Second}
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(late), req)
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
		x.Eventually("no session is named", func() bool {
			_, five := x.ShardStatus(5)
			return five.Holder == nil && len(five.Waiting) == 0
		})
	})
}

// TestStatusNamesHiddenHolders (M44): the holder that has locked its shard under a savepoint, and the first holder of a
// new shard, are named as soon as a session waits, if the database can tell. Otherwise they are listed as possible
// holders.
func TestStatusNamesHiddenHolders(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite names no sessions
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		under := x.BeginAs("under")
		x.In(under, "SAVEPOINT s")
		x.Lock(under, rowfeed.LockRequest{Shards: []int{5}})
		x.In(under, "RELEASE SAVEPOINT s")
		if x.Has.SavepointsHideLocks {
			if status, five := x.ShardStatus(5); five.Holder != nil || len(status.Blockers) != 1 ||
				status.Blockers[0].Session != x.Connection(under) {
				x.Errorf("while no session waits: %+v", status)
			}
		}
		w := x.Wait(5)
		x.Eventually("the holder under a savepoint is named", func() bool {
			_, five := x.ShardStatus(5)
			return five.Holder != nil && five.Holder.Session == x.Connection(under) && len(five.Waiting) == 1
		})
		x.Commit(under)
		x.Got(w)

		first := x.BeginAs("first")
		id := x.Connection(first)
		x.Lock(first, rowfeed.LockRequest{Shards: []int{77}})
		w = x.Wait(77)
		x.Eventually("the first holder is named", func() bool {
			_, new := x.ShardStatus(77)
			return new.Holder != nil && new.Holder.Session == id && len(new.Waiting) == 1
		})
		found, err := x.Feed.Admin().Unblock(x.Ctx, admin.UnblockRequest{Shard: ptr(77)})
		if err != nil || !found.Ended || found.Holder.Session != id {
			x.Fatalf("%+v, %v", found, err)
		}
		x.Got(w)
	})
}

func ptr(n int) *int { return &n }

// TestUnblockEndsOnlyTheHolder (M44): Unblock ends the transaction that holds the shard, and no other. The next writer
// gets the shard, and nothing of the ended transaction is committed. Unblock refuses if it is not sure.
func TestUnblockEndsOnlyTheHolder(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		x.Write(6, 2, 2)
		unblock := func(req admin.UnblockRequest) (*admin.Unblocked, error) {
			return x.Feed.Admin().Unblock(x.Ctx, req)
		}
		if x.Has.OneWriter {
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
		_, err = unblock(admin.UnblockRequest{}) // no shard is given
		x.WantCode(err, rowfeed.Refused)
		if found, err := unblock(admin.UnblockRequest{Shard: ptr(5)}); err != nil || found.Holder != nil ||
			found.Ended {
			x.Fatalf("no session holds it: %+v, %v", found, err)
		}
		_, err = unblock(admin.UnblockRequest{Shard: ptr(5), Session: "1"})
		x.WantCode(err, rowfeed.Conflict)

		innocent, holder, six := x.BeginAs("innocent"), x.BeginAs("has"), x.BeginAs("six")
		id := x.Connection(holder)
		x.Event(holder, 3, 5, x.At(x.Lock(holder, rowfeed.LockRequest{Shards: []int{5}}), 5, 0), "")
		x.Lock(six, rowfeed.LockRequest{Shards: []int{6}})
		if x.Tells() == admin.HoldersAll {
			_, err = unblock(admin.UnblockRequest{}) // two shards are held
			if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "5 6") {
				x.Error(err)
			}
		}
		// No session waits. Unblock finds the holder all the same, if necessary by waiting itself.
		dry, err := unblock(admin.UnblockRequest{Shard: ptr(5), DryRun: true})
		if err != nil || dry.Ended || dry.Holder == nil || dry.Holder.Session != id {
			x.Fatalf("%+v, %v", dry, err)
		}
		w := x.Wait(5)
		x.Eventually("the writer waits", x.Waits)
		_, err = unblock(admin.UnblockRequest{Shard: ptr(5), Session: x.Connection(six)})
		x.WantCode(err, rowfeed.Conflict)
		// The only shard that a session waits for.
		found, err := unblock(admin.UnblockRequest{Session: id})
		if err != nil || !found.Ended || found.Shard != 5 || found.Holder.Session != id || len(found.Waiting) == 0 {
			x.Fatalf("%+v, %v", found, err)
		}
		x.Got(w)
		if _, err := holder.ExecContext(x.Ctx, "DELETE FROM events"); err == nil {
			x.Error("the session of the holder continues")
		}
		x.WantIDs(x.Page(x.Feed, 5, "", 10), false, 1)
		for _, tx := range []*sql.Tx{innocent, six} {
			x.Connection(tx)
			x.Commit(tx)
		}
	})
}

// TestUnblockEndsHangingMover (M44): Unblock ends a mover of an outbox that hangs with its shard, as it ends a writer.
// The next mover moves the records, once.
func TestUnblockEndsHangingMover(t *testing.T) {
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
			x.Fatalf("the mover ended before: %v", err)
		}
		if x.Has.OneWriter {
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
		<-done // it may have failed, or found all records moved
		x.WantIDs(x.Page(x.Feed, 5, "", 10), false, 1, 2)
		x.WantSound(x.Feed)
	})
}

// TestUnblockSparesNextTransaction (M44): if the transaction has ended meanwhile, Unblock does not end the next
// transaction of its connection, even if that one holds the same shard.
func TestUnblockSparesNextTransaction(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite ends no sessions
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{})
		pool.SetMaxOpenConns(1)
		tx := x.BeginOn(pool)
		x.Lock(tx, rowfeed.LockRequest{Shards: []int{5}})
		w := x.Wait(5)
		names := dialect.Names{Prefix: "rowfeed_", Schema: x.Text("admin.schema", x.DB.Name)}
		feed := &dialect.Feed{Name: "events", Names: names, ULIDs: &dialect.ULIDColumns{}}
		holds := func() (h dialect.Holding) {
			x.Helper()
			x.Eventually("the holder is seen", func() bool {
				x.RestForLockViews()
				all, _, err := x.Dialect.Sessions.Holders(x.Ctx, dialect.On(x.Pool), feed)
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
		if ended, err := x.Dialect.Sessions.EndHolder(x.Ctx, dialect.On(x.Pool), feed, was); ended || err != nil {
			x.Errorf("a transaction that has ended: %v, %v", ended, err)
		}
		if now.Holder.ID != was.Holder.ID || now.Holder.Transaction == was.Holder.Transaction {
			x.Errorf("%+v, and then %+v", was.Holder, now.Holder)
		}
		x.Connection(tx) // the connection works
		if ended, err := x.Dialect.Sessions.EndHolder(x.Ctx, dialect.On(x.Pool), feed, now); !ended || err != nil {
			x.Errorf("%v, %v", ended, err)
		}
		x.Got(w)
	})
}

// TestUnblockNamesPreparedTransaction (M44): Unblock names a prepared transaction, and ends no session for it.
func TestUnblockNamesPreparedTransaction(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // a transaction that InnoDB prepares (XA) keeps its session, or is not shown
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		tx := x.Begin(sql.LevelReadCommitted)
		x.Lock(tx, rowfeed.LockRequest{Shards: []int{5}})
		x.In(tx, x.Text("suite.prepare", "of "+x.DB.Name))
		tx.Rollback()
		_, err := x.Feed.Admin().Unblock(x.Ctx, admin.UnblockRequest{})
		if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), x.Text("suite.prepare", "of "+x.DB.Name)) {
			x.Error(err)
		}
		x.Exec(x.Text("suite.rollback_prepared", "of "+x.DB.Name))
		x.Write(5, 2, 2)
	})
}

// TestUnblockNamesMissingRight (M44): a login without the rights is told which right it needs, and ends no session. Its
// status says that holders are unknown.
func TestUnblockNamesMissingRight(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no logins
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		login := "ops_" + x.DB.Name
		at, err := url.Parse(x.DB.URL)
		if err != nil {
			x.Fatal(err)
		}
		at.User = operator(x.Env, login)
		feed := func() *rowfeed.Feed {
			y := suite.OpenEnv(x.T, &testdb.Database{Engine: x.Engine, URL: at.String(), Name: x.DB.Name}, nil)
			f, err := y.RF.Feed(x.Ctx, "events")
			if err != nil {
				x.Fatal(err)
			}
			return f
		}
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{5}})
		w := x.Wait(5)
		x.Eventually("the writer waits", x.Waits)
		refused := func(right string) {
			x.Helper()
			_, err := feed().Admin().Unblock(x.Ctx, admin.UnblockRequest{Shard: ptr(5)})
			if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), right) {
				x.Error(err)
			}
		}
		if x.Has.ShowsSessionsToAll { // but not what they do
			status, err := feed().Admin().Status(x.Ctx)
			if err != nil || status.HoldersTold != admin.HoldersAll || len(status.Shards) != 1 ||
				status.Shards[0].Holder == nil || status.Shards[0].Holder.Since != nil {
				x.Errorf("%+v, %v", status, err)
			}
		} else {
			refused(x.Text("admin.right_to_see_holders"))
			status, err := feed().Admin().Status(x.Ctx)
			if err != nil || status.HoldersTold != admin.HoldersNone || len(status.Shards) != 1 {
				x.Errorf("%+v, %v", status, err)
			}
			x.Exec(x.Statements("admin.grant_to_see_holders", login)...)
		}
		refused(x.Text("admin.right_to_unblock"))
		x.Commit(holder)
		x.Got(w)
	})
}
