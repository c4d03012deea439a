package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// pooled opens a database through PgBouncer in transaction mode.
func pooled(t *testing.T) (x *suite.Env, direct *testdb.Database) {
	t.Helper()
	testdb.Postgres15.Require(t)
	direct = testdb.Postgres15.New(t)
	return suite.OpenEnv(t, direct.Pooled(t), nil), direct
}

// TestFeedWorksBehindTransactionPooler (H30): a feed works, from its creation until it is dropped, behind a pooler in
// transaction mode, which may give every transaction another connection. rowfeed keeps no state in a session and leaves
// no setting in one.
func TestFeedWorksBehindTransactionPooler(t *testing.T) {
	x, direct := pooled(t)
	before := direct.Dump(t)
	x.Migrate()
	for _, capture := range []feedtype.Capture{feedtype.CaptureTrigger, feedtype.CaptureColumn} {
		name := "by_" + string(capture)
		x.Exec(x.Statements("publish.fifty_rows", name)...)
		f := x.Add(rowfeed.FeedSpec{Name: name, Table: name, Capture: capture})
		k := x.Recorder(f, 7)
		x.Publish(f)
		for more := true; more; {
			_, more = k.Page()
		}
		if len(k.Log) != 50 || suite.Place(k.Cursor) != "50" {
			x.Fatalf("%s: %d entries, cursor %q", name, len(k.Log), k.Cursor)
		}
		if n, err := f.Admin().RepublishWhere(x.Ctx, "v > 40", 5, nil); err != nil || n != 10 {
			x.Fatalf("%d rows republished: %v", n, err)
		}
		if n := x.Publish(f); n != 10 {
			x.Fatalf("%d keys published again", n)
		}
		k.Read()
		waited := make(chan error, 1)
		go func() {
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: k.Cursor, Wait: time.Minute})
			if err == nil && len(page.Entries) == 0 {
				err = errors.New("the page has no entries")
			}
			waited <- err
		}()
		x.Exec("UPDATE " + name + " SET v = -1 WHERE v = 7")
		x.Publish(f)
		if err := <-waited; err != nil {
			x.Fatal(err)
		}
		x.Exec("UPDATE " + name + " SET v = -2 WHERE v = 8")
		page, err := f.Fetch(x.Ctx, rowfeed.Request{After: k.Cursor, Consistent: true})
		if err != nil || len(page.Entries) < 2 {
			x.Fatalf("consistent: %d entries, %v", len(page.Entries), err)
		}
		if _, err := f.Admin().Status(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if _, err := f.Admin().Bump(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.WantSound(f)
	}
	wantClean(x)
	for _, name := range []string{"by_trigger", "by_column"} {
		if err := x.RF.DropFeed(x.Ctx, name); err != nil {
			x.Fatal(err)
		}
		x.Exec("DROP TABLE " + name)
	}
	if err := x.RF.MigrateDown(x.Ctx); err != nil {
		x.Fatal(err)
	}
	if after := direct.Dump(t); after != before {
		x.Errorf("the schema is not as it was:\n%s", after)
	}
}

// wantClean asserts that every connection of the pooler has the settings of a new connection, and holds no lock.
func wantClean(x *suite.Env) {
	x.Helper()
	settings := x.Text("publish.session_settings")
	var want string
	if err := x.DB.Admin().QueryRow(settings).Scan(&want); err != nil {
		x.Fatal(err)
	}
	for range 3 { // the pooler has three connections, and each open transaction keeps one
		tx, err := x.Pool.BeginTx(x.Ctx, nil)
		if err != nil {
			x.Fatal(err)
		}
		defer tx.Rollback()
		var got string
		if err := tx.QueryRow(settings).Scan(&got); err != nil {
			x.Fatal(err)
		}
		if got != want {
			x.Errorf("left behind in a session: %s\nwant: %s", got, want)
		}
	}
	if n := x.Scalar(x.Text("publish.advisory_locks")); n != 0 {
		x.Errorf("%d advisory locks", n)
	}
}

// TestRacingBehindPoolerLosesNothing (H30): with writers, two publishers and a consumer behind a pooler, no entry is
// lost, repeated or out of order.
func TestRacingBehindPoolerLosesNothing(t *testing.T) {
	x, _ := pooled(t)
	x.Migrate()
	f := x.AddKV()
	x.RunPublisher()
	x.RunPublisher()
	ctx, cancel := context.WithCancel(x.Ctx)
	defer cancel()
	var writers sync.WaitGroup
	for w := range 6 {
		writers.Go(func() {
			for i := range 40 {
				tx, err := x.Pool.BeginTx(ctx, nil)
				if err != nil {
					x.Error(err)
					return
				}
				id := w*100 + i
				for _, s := range []string{
					fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id),
					fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id = %d", w*100+i/2),
					fmt.Sprintf("DELETE FROM kv WHERE id = %d AND id %% 5 = 0", w*100+i/3),
				} {
					if _, err := tx.ExecContext(ctx, s); err != nil {
						x.Error(err)
					}
				}
				if i%7 == 3 {
					err = tx.Rollback()
				} else {
					err = tx.Commit()
				}
				if err != nil {
					x.Error(err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writers.Wait(); close(written) }()
	k := x.Recorder(f, 50)
	for running := true; running; {
		select {
		case <-written:
			running = false
		default:
		}
		k.Page()
	}
	x.Publish(f)
	k.Read()
	k.Check(x.KVRows(), suite.ByID)
	x.WantSound(f)
	r := x.Receiver()
	r.Once(r.Consumer(f, x.RF))
	if got, want := int64(len(r.Applied())), x.Scalar("SELECT count(*) FROM kv"); got != want {
		x.Errorf("%d effects of a consumer that started late, %d rows", got, want)
	}
	wantClean(x)
}
