package page

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// manyReaders is more than the pool has connections.
const manyReaders = 20

// readsPage matches the statement that reads a page of the feed kv.
func readsPage(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.Contains(ev.SQL, "positions_kv")
}

// TestSlowPagesLeaveConnectionsToOtherFeeds (G5, V2): more readers of a feed than the pool has connections wait for
// their pages. Another feed is published and read meanwhile.
func TestSlowPagesLeaveConnectionsToOtherFeeds(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const connections = 8
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)", "CREATE TABLE other (id BIGINT NOT NULL PRIMARY KEY, v BIGINT)")
		x.Publish(f)
		x.Add(rowfeed.FeedSpec{Name: "other", Table: "other"})
		release := make(chan struct{})
		var waiting atomic.Int64
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if readsPage(ev) {
				waiting.Add(1)
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			return nil
		}})
		pool.SetMaxOpenConns(connections)
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		kv, failed := rf.Feed(x.Ctx, "kv")
		other, err := rf.Feed(x.Ctx, "other")
		if err = cmp.Or(err, failed); err != nil {
			x.Fatal(err)
		}
		ended := make(chan error, manyReaders)
		for range manyReaders {
			go func() {
				_, err := kv.Fetch(x.Ctx, rowfeed.Request{})
				ended <- err
			}()
		}
		x.Eventually("readers wait", func() bool { return waiting.Load() >= 2 })
		x.Exec("INSERT INTO other VALUES (1, 1)")
		bounded, cancel := context.WithTimeout(x.Ctx, suite.Patience())
		defer cancel()
		if n, err := other.Publish(bounded); n != 1 || err != nil {
			x.Errorf("%d published, %v", n, err)
		}
		if page, err := other.Fetch(bounded, rowfeed.Request{}); len(page.Entries) != 1 || err != nil {
			x.Errorf("%d entries, %v", len(page.Entries), err)
		}
		close(release)
		for range manyReaders {
			if err := <-ended; err != nil {
				x.Error(err)
			}
		}
	})
}

// TestLockedTableIsRefusedAndReadLater (G5, V2): readers of a table that another session has locked are refused
// with the code Locked. Most of them use no connection. The publisher names that session. After the lock the feed
// is published and read.
func TestLockedTableIsRefusedAndReadLater(t *testing.T) {
	t.Parallel()
	testdb.Only(t, testdb.Servers...) // SQLite locks no single tables
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		x.Publish(f)
		var asked atomic.Int64
		counting := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if readsPage(ev) {
				asked.Add(1)
			}
			return nil
		}}
		pool, _, err := suite.Open(x.Ctx, x.DB.URL, &counting)
		if err != nil {
			x.Fatal(err)
		}
		defer pool.Close()
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		if f, err = rf.Feed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.Fetch(f, "", 1) // describes the table
		x.Exec("INSERT INTO kv VALUES (2, 'b', 2)")
		session, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer session.Close()
		run := func(name string) {
			x.Helper()
			for _, statement := range x.Statements(name) {
				if _, err := session.ExecContext(x.Ctx, statement); err != nil {
					x.Fatal(err)
				}
			}
		}
		run("page.lock_table")
		bounded, cancel := context.WithTimeout(x.Ctx, suite.Patience())
		defer cancel()
		_, err = f.Fetch(bounded, rowfeed.Request{})
		x.WantCode(err, rowfeed.Locked)
		_, err = f.Publish(x.Ctx)
		x.WantCode(err, rowfeed.Locked)
		if problems := f.Problems(); len(problems) != 1 {
			x.Errorf("problems: %q", problems)
		}
		asked.Store(0)
		ended := make(chan error, manyReaders)
		for range manyReaders {
			go func() {
				_, err := f.Fetch(x.Ctx, rowfeed.Request{})
				ended <- err
			}()
		}
		for range manyReaders {
			x.WantCode(<-ended, rowfeed.Locked)
		}
		if n := asked.Load(); n > 4 {
			x.Errorf("%d of %d readers have asked for the locked table", n, manyReaders)
		}
		var id string
		if err := session.QueryRowContext(x.Ctx, x.Text("suite.connection")).Scan(&id); err != nil {
			x.Fatal(err)
		}
		publisher, problem := x.RunPublisher(), ""
		x.Eventually("the publisher reports the lock", func() bool {
			problem = strings.Join(publisher.Feed.Problems(), "; ")
			return strings.Contains(problem, "publish")
		})
		holder := "session " + x.Text("admin.session", id) + " locks the feed's table"
		if strings.Contains(problem, holder) != x.Has.ShowsTableLocks {
			x.Errorf("the publisher reports %q; %s", problem, holder)
		}
		x.Eventually("the failure is stored with the feed", func() bool {
			all, err := x.RF.Admin().Failing(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			return len(all) == 1 && all[0].Feed == "kv" &&
				strings.Contains(all[0].Error, holder) == x.Has.ShowsTableLocks
		})
		run("page.unlock_table")
		x.Eventually("the publisher continues", x.AllPublished)
		publisher.Stop()
		x.Publish(f)
		x.WantPage(f, "", 10, `1 upsert {"id":1,"k":"a","v":1}`, `2 upsert {"id":2,"k":"b","v":2}`, "> 2")
	})
}
