package conformance

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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// tells is how much the engine tells of who has shards.
func (x *env) tells() string {
	switch {
	case x.family() == "sqlite":
		return admin.HoldersNone
	case x.engine == testdb.MariaDB:
		return admin.HoldersWaitedFor
	}
	return admin.HoldersAll
}

// connection is what the database calls a transaction's connection.
func (x *env) connection(tx *sql.Tx) (id string) {
	x.Helper()
	if err := tx.QueryRowContext(x.ctx, x.by(map[string]string{"sqlite": "SELECT ''", "postgres": "SELECT pg_backend_pid()", "mysql": "SELECT CONNECTION_ID()"})).Scan(&id); err != nil {
		x.Fatal(err)
	}
	return id
}

// beginAs opens a transaction on a connection of its own that has a name, where connections
// have names.
func (x *env) beginAs(name string) *sql.Tx {
	x.Helper()
	return x.beginOn(x.db.OpenTapped(x.T, testdb.Hooks{}, x.by(map[string]string{"sqlite": "_txlock=deferred", "postgres": "application_name=" + name, "mysql": "connectionAttributes=program_name:" + name})))
}

// waiter is a writer that waits for a shard in the background.
type waiter struct {
	tx   *sql.Tx
	id   string
	done chan error
}

func (x *events) wait(shard int) *waiter {
	x.Helper()
	w := &waiter{tx: x.beginAs("waits"), done: make(chan error, 1)}
	w.id = x.connection(w.tx)
	go func() {
		_, err := x.feed.Lock(x.ctx, rowfeed.InTx(w.tx), rowfeed.LockRequest{Shards: []int{shard}, Wait: time.Minute})
		w.done <- err
	}()
	return w
}

// got ends a waiter that must have got the shard by now, or soon.
func (x *events) got(w *waiter) {
	x.Helper()
	if err := <-w.done; err != nil {
		x.Fatal(err)
	}
	x.commit(w.tx)
}

// shardStatus is what status says of a shard.
func (x *events) shardStatus(shard int) (*admin.Status, admin.ShardStatus) {
	x.Helper()
	status, err := x.feed.Admin().Status(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	if x.family() == "mysql" {
		rest(x.ctx, 150*time.Millisecond) // what InnoDB tells is read anew only when nobody has asked for 100 ms
	}
	i := slices.IndexFunc(status.Shards, func(s admin.ShardStatus) bool { return s.Shard == shard })
	if i < 0 {
		return status, admin.ShardStatus{}
	}
	return status, status.Shards[i]
}

// TestLockHolders (M44): status names who has which shard since when, and who waits, as
// far as the database tells; it says how far that is. Heads are those of the shards.
func TestLockHolders(t *testing.T) {
	testdb.Quick(t)
	eachULID(t, func(x *events) {
		x.write(5, 1, 1)
		x.write(-6, 2, 2)
		x.exec(x.eventsTable("other"), "CREATE UNIQUE INDEX other_feed ON other (shard, ulid)")
		spec := eventsSpec()
		spec.Name, spec.Table = "other", "other"
		other := x.add(spec)
		status, five := x.shardStatus(5)
		last := x.page(x.feed, 5, "", 10).Entries[0].Position
		if status.HoldersTold != x.tells() || len(status.Shards) != 2 || status.Shards[0].Shard != -6 || five.Head != last || five.HeadAt == nil || five.HeadAt.Sub(x.now()).Abs() > 20*time.Minute || five.Holder != nil {
			x.Fatalf("%+v", status)
		}
		tx := x.beginAs("has")
		id := x.connection(tx)
		x.event(tx, 3, 5, x.at(x.lock(tx, rowfeed.LockRequest{Shards: []int{5}}), 5, 0), "")
		if x.tells() == admin.HoldersNone {
			if status, five := x.shardStatus(5); five.Holder != nil || len(five.Waiting) != 0 {
				x.Errorf("%+v", status)
			}
			return
		}
		for end := range 2 { // somebody has the same shards of another feed, which were used before
			beside := x.begin(sql.LevelReadCommitted)
			if _, err := other.Lock(x.ctx, rowfeed.InTx(beside), rowfeed.LockRequest{Shards: []int{5, -6}}); err != nil {
				x.Fatal(err)
			}
			if end == 0 {
				x.commit(beside)
			}
		}
		named := func(s *admin.Session, id, application string) bool {
			if s == nil || s.Session != id {
				return false
			}
			want := map[testdb.Engine]string{testdb.MariaDB: ""}
			if _, known := want[x.engine]; !known {
				want[x.engine] = application
			}
			if s.User == "" || s.Host == "" || s.Application != want[x.engine] || s.Since == nil || s.Since.After(x.now()) || x.now().Sub(*s.Since) > 20*time.Minute || *s.AgeSeconds < 0 ||
				s.State == "" || s.StateSeconds == nil || *s.StateSeconds < 0 {
				text, _ := json.Marshal(s)
				x.Errorf("%s", text)
			}
			return true
		}
		if x.tells() == admin.HoldersAll {
			x.eventually("the holder is named", func() bool {
				_, five := x.shardStatus(5)
				return named(five.Holder, id, "has") && len(five.Waiting) == 0
			})
		} else if status, five := x.shardStatus(5); five.Holder != nil || !slices.ContainsFunc(status.Blockers, func(b admin.Blocker) bool { return b.Session == id && b.Scope == "wrote to some table" }) {
			x.Errorf("nobody waits: %+v", status)
		}
		w := x.wait(5)
		x.eventually("holder and waiter are named", func() bool {
			status, five := x.shardStatus(5)
			if _, six := x.shardStatus(-6); six.Holder != nil || six.Waiting == nil {
				x.Errorf("of a shard that nobody has: %+v", six)
			}
			return named(five.Holder, id, "has") && len(five.Waiting) == 1 && named(&five.Waiting[0], w.id, "waits") &&
				slices.ContainsFunc(status.Blockers, func(b admin.Blocker) bool { return b.Session == id && b.Scope == "holds shard 5" })
		})
		// Who waits in vain is told, too, whom it waited for, where that can be learnt in three seconds.
		for try := 1; ; try++ {
			late := x.beginAs("late")
			_, err := x.feed.Lock(x.ctx, rowfeed.InTx(late), rowfeed.LockRequest{Shards: []int{5}, Wait: time.Second})
			x.wantCode(err, rowfeed.Locked)
			late.Rollback()
			if strings.Contains(err.Error(), "session "+id+" ") {
				break
			}
			if try == 5 {
				x.Fatal(err)
			}
		}
		x.commit(tx)
		x.got(w)
		x.eventually("nobody is named", func() bool { _, five := x.shardStatus(5); return five.Holder == nil && len(five.Waiting) == 0 })
	})
}

// TestLockHolderHidden (M44): a holder that took the shard under a savepoint, and the first one of a new
// shard, are named where the database can tell, at the latest when somebody waits; else
// they are listed as who may have it.
func TestLockHolderHidden(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite names nobody
	eachULID(t, func(x *events) {
		x.write(5, 1, 1)
		under := x.beginAs("under")
		x.in(under, "SAVEPOINT s")
		x.lock(under, rowfeed.LockRequest{Shards: []int{5}})
		x.in(under, "RELEASE SAVEPOINT s")
		if x.family() == "postgres" {
			if status, five := x.shardStatus(5); five.Holder != nil || len(status.Blockers) != 1 || status.Blockers[0].Session != x.connection(under) {
				x.Errorf("while nobody waits: %+v", status)
			}
		}
		w := x.wait(5)
		x.eventually("who has it under a savepoint is named", func() bool {
			_, five := x.shardStatus(5)
			return five.Holder != nil && five.Holder.Session == x.connection(under) && len(five.Waiting) == 1
		})
		x.commit(under)
		x.got(w)

		first := x.beginAs("first")
		id := x.connection(first)
		x.lock(first, rowfeed.LockRequest{Shards: []int{77}})
		w = x.wait(77)
		x.eventually("the first one is named", func() bool {
			status, new := x.shardStatus(77)
			if x.family() == "postgres" {
				return new.Holder == nil && slices.ContainsFunc(status.Blockers, func(b admin.Blocker) bool {
					return b.Session == id && b.Scope == "has a shard: a new one of this feed, one that it took under a savepoint, or another feed's"
				})
			}
			return new.Holder != nil && new.Holder.Session == id && len(new.Waiting) == 1
		})
		if found, err := x.feed.Admin().Unblock(x.ctx, admin.UnblockRequest{Shard: ptr(77)}); x.family() == "postgres" {
			x.wantCode(err, rowfeed.Refused) // nobody can be sure
			x.commit(first)
		} else if err != nil || !found.Ended || found.Holder.Session != id {
			x.Fatalf("%+v, %v", found, err)
		}
		x.got(w)
	})
}

func ptr(n int) *int { return &n }

// TestUnblock (M44): the transaction that has a shard is ended, and no other; the next one gets the
// shard, and nothing of the former is committed. Who is not sure is refused.
func TestUnblock(t *testing.T) {
	testdb.Quick(t)
	eachULID(t, func(x *events) {
		x.write(5, 1, 1)
		x.write(6, 2, 2)
		unblock := func(req admin.UnblockRequest) (*admin.Unblocked, error) { return x.feed.Admin().Unblock(x.ctx, req) }
		if x.family() == "sqlite" {
			_, err := unblock(admin.UnblockRequest{})
			if x.wantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
				x.Error(err)
			}
			return
		}
		_, err := x.addKV().Admin().Unblock(x.ctx, admin.UnblockRequest{})
		if x.wantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
			x.Error(err)
		}
		_, err = unblock(admin.UnblockRequest{}) // which?
		x.wantCode(err, rowfeed.Refused)
		if found, err := unblock(admin.UnblockRequest{Shard: ptr(5)}); err != nil || found.Holder != nil || found.Ended {
			x.Fatalf("nobody has it: %+v, %v", found, err)
		}
		_, err = unblock(admin.UnblockRequest{Shard: ptr(5), Session: "1"})
		x.wantCode(err, rowfeed.Conflict)

		innocent, holder, six := x.beginAs("innocent"), x.beginAs("has"), x.beginAs("six")
		id := x.connection(holder)
		x.event(holder, 3, 5, x.at(x.lock(holder, rowfeed.LockRequest{Shards: []int{5}}), 5, 0), "")
		x.lock(six, rowfeed.LockRequest{Shards: []int{6}})
		if x.tells() == admin.HoldersAll {
			_, err = unblock(admin.UnblockRequest{}) // of two
			if x.wantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "5 6") {
				x.Error(err)
			}
		}
		// Nobody waits: it is found all the same, by waiting where that is what it takes.
		dry, err := unblock(admin.UnblockRequest{Shard: ptr(5), DryRun: true})
		if err != nil || dry.Ended || dry.Holder == nil || dry.Holder.Session != id {
			x.Fatalf("%+v, %v", dry, err)
		}
		w := x.wait(5)
		x.eventually("it waits", x.waits)
		_, err = unblock(admin.UnblockRequest{Shard: ptr(5), Session: x.connection(six)})
		x.wantCode(err, rowfeed.Conflict)
		// The only one that somebody waits for.
		found, err := unblock(admin.UnblockRequest{Session: id})
		if err != nil || !found.Ended || found.Shard != 5 || found.Holder.Session != id || len(found.Waiting) == 0 {
			x.Fatalf("%+v, %v", found, err)
		}
		x.got(w)
		if _, err := holder.ExecContext(x.ctx, "DELETE FROM events"); err == nil {
			x.Error("its session goes on")
		}
		x.wantIDs(x.page(x.feed, 5, "", 10), false, 1)
		for _, tx := range []*sql.Tx{innocent, six} {
			x.connection(tx)
			x.commit(tx)
		}
	})
}

// TestUnblockMover (M44): a mover of an outbox that hangs with its shard is ended like a writer; the
// next one moves the records, once.
func TestUnblockMover(t *testing.T) {
	eachOutbox(t, func(x *events) {
		x.appended(1, 5, time.Time{})
		moved := x.page(x.feed, 5, "", 10) // so that the shard has a row
		x.appended(2, 5, time.Time{})
		var placed atomic.Bool
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit && placed.Load() })
		mover := x.other(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if placesRecords(ev) {
				placed.Store(true)
			}
			return held.Before(ctx, ev)
		}}, nil)
		ctx, cancel := context.WithCancel(x.ctx)
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
		if x.family() == "sqlite" {
			_, err := x.feed.Admin().Unblock(x.ctx, admin.UnblockRequest{Shard: ptr(5)})
			x.wantCode(err, rowfeed.Refused)
			held.Release()
			<-done
			return
		}
		found, err := x.feed.Admin().Unblock(x.ctx, admin.UnblockRequest{Shard: ptr(5)})
		if err != nil || !found.Ended {
			x.Fatalf("%+v, %v", found, err)
		}
		all := x.all(5)
		x.wantIDs(all, false, 1, 2)
		_, five := x.shardStatus(5)
		if last := all.Entries[1].Position; five.Head != last || five.HeadAt == nil {
			x.Errorf("status: %+v, and the last entry is at %s", five, last)
		}
		held.Release()
		<-done // it may have moved nothing, or found that all is moved
		x.wantIDs(x.page(x.feed, 5, "", 10), false, 1, 2)
		x.wantSound(x.feed)
	})
}

// TestUnblockLooksAgain (M44): a transaction that has ended meanwhile is not followed by its connection's
// next one, though that has the same shard.
func TestUnblockLooksAgain(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite ends nobody
	eachULID(t, func(x *events) {
		x.write(5, 1, 1)
		pool := x.db.OpenTapped(x.T, testdb.Hooks{})
		pool.SetMaxOpenConns(1)
		tx := x.beginOn(pool)
		x.lock(tx, rowfeed.LockRequest{Shards: []int{5}})
		w := x.wait(5)
		feed := &dialect.Feed{Name: "events", Names: dialect.Names{Prefix: "rowfeed_", Schema: x.by(map[string]string{"postgres": "public", "mysql": x.db.Name})}, ULIDs: &dialect.ULIDColumns{}}
		holds := func() (h dialect.Holding) {
			x.Helper()
			x.eventually("the holder is seen", func() bool {
				if x.family() == "mysql" {
					rest(x.ctx, 150*time.Millisecond)
				}
				all, _, err := x.dialect.Holders(x.ctx, dialect.On(x.pool), feed)
				if err != nil {
					x.Fatal(err)
				}
				if len(all) == 1 && all[0].Holder != nil {
					h = all[0]
				}
				return h.Holder != nil && h.Holder.ID == x.connection(tx)
			})
			return h
		}
		was := holds()
		x.commit(tx)
		x.got(w)
		tx = x.beginOn(pool)
		x.lock(tx, rowfeed.LockRequest{Shards: []int{5}})
		w = x.wait(5)
		now := holds()
		if ended, err := x.dialect.EndHolder(x.ctx, dialect.On(x.pool), feed, was); ended || err != nil {
			x.Errorf("a transaction that has ended: %v, %v", ended, err)
		}
		if now.Holder.ID != was.Holder.ID || now.Holder.Transaction == was.Holder.Transaction {
			x.Errorf("%+v, and then %+v", was.Holder, now.Holder)
		}
		x.connection(tx) // it lives
		if ended, err := x.dialect.EndHolder(x.ctx, dialect.On(x.pool), feed, now); !ended || err != nil {
			x.Errorf("%v, %v", ended, err)
		}
		x.got(w)
	})
}

// TestUnblockPrepared (M44): a prepared transaction is named, and no session is ended for it.
func TestUnblockPrepared(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // what InnoDB prepares (XA) keeps its session, or is not told of
	eachULID(t, func(x *events) {
		x.write(5, 1, 1)
		tx := x.begin(sql.LevelReadCommitted)
		x.lock(tx, rowfeed.LockRequest{Shards: []int{5}})
		x.in(tx, "PREPARE TRANSACTION 'of "+x.db.Name+"'")
		tx.Rollback()
		_, err := x.feed.Admin().Unblock(x.ctx, admin.UnblockRequest{})
		if x.wantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "PREPARE TRANSACTION 'of "+x.db.Name+"'") {
			x.Error(err)
		}
		x.exec("ROLLBACK PREPARED 'of " + x.db.Name + "'")
		x.write(5, 2, 2)
	})
}

// TestUnblockRights (M44): a login without the rights is told which it takes, and ends nobody;
// its status says that it does not know.
func TestUnblockRights(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no logins
	eachULID(t, func(x *events) {
		x.write(5, 1, 1)
		login := "ops_" + x.db.Name
		url := strings.Replace(x.db.URL, "//postgres@", "//"+login+"@", 1)
		if x.family() == "postgres" {
			x.exec("CREATE ROLE "+login+" LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+login)
			x.Cleanup(func() { x.exec("DROP OWNED BY "+login, "DROP ROLE "+login) })
		} else {
			url = strings.Replace(x.db.URL, "//root@", "//"+login+":pw@", 1)
			x.exec("CREATE USER "+login+"@'%' IDENTIFIED BY 'pw'", "GRANT SELECT, INSERT, UPDATE ON "+x.db.Name+".* TO "+login+"@'%'")
			x.Cleanup(func() { x.exec("DROP USER " + login + "@'%'") })
		}
		feed := func() *rowfeed.Feed {
			y := openEnv(x.T, &testdb.Database{Engine: x.engine, URL: url, Name: x.db.Name}, nil)
			f, err := y.rf.Feed(x.ctx, "events")
			if err != nil {
				x.Fatal(err)
			}
			return f
		}
		holder := x.begin(sql.LevelReadCommitted)
		x.lock(holder, rowfeed.LockRequest{Shards: []int{5}})
		w := x.wait(5)
		x.eventually("it waits", x.waits)
		refused := func(right string) {
			x.Helper()
			_, err := feed().Admin().Unblock(x.ctx, admin.UnblockRequest{Shard: ptr(5)})
			if x.wantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), right) {
				x.Error(err)
			}
		}
		if x.family() == "postgres" {
			refused("pg_signal_backend")
			status, err := feed().Admin().Status(x.ctx)
			if err != nil || status.HoldersTold != admin.HoldersAll || len(status.Shards) != 1 || status.Shards[0].Holder == nil || status.Shards[0].Holder.Since != nil {
				x.Errorf("%+v, %v", status, err) // who it is everybody may see, what it does not
			}
		} else {
			refused("PROCESS")
			if status, err := feed().Admin().Status(x.ctx); err != nil || status.HoldersTold != admin.HoldersNone || len(status.Shards) != 1 {
				x.Errorf("%+v, %v", status, err)
			}
			x.exec("GRANT PROCESS ON *.* TO " + login + "@'%'")
			if x.engine == testdb.MySQL {
				x.exec("GRANT SELECT ON performance_schema.* TO " + login + "@'%'")
			}
			refused("CONNECTION")
		}
		x.commit(holder)
		x.got(w)
	})
}
