package page

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// lagging leads who reads to servers that lag behind the one that is looked at, one
// after the other. A reader is who has readers in their context.
type lagging struct {
	driver.Connector // where looks lead
	behind           []driver.Connector
	caughtUp         atomic.Bool
	reads, looks     atomic.Int64
	second           chan struct{} // the second look and all after it wait for it
}

type readers struct{}

func (l *lagging) Connect(ctx context.Context) (driver.Conn, error) {
	if ctx.Value(readers{}) != nil {
		n := l.reads.Add(1)
		if l.caughtUp.Load() {
			return l.Connector.Connect(ctx)
		}
		return l.behind[int(n)%len(l.behind)].Connect(ctx)
	}
	if l.looks.Add(1) > 1 {
		<-l.second
	}
	return l.Connector.Connect(ctx)
}

// TestWokenByAServerThatIsAhead (M69): where a pool leads to servers that lag, each in its own
// way, a waiter that has heard of an entry and reads on one server and then on another
// without finding it looks again when the watcher does, and not as fast as it can; and
// it is not lost. Real files of three ages, each with another head.
func TestWokenByAServerThatIsAhead(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.OpenEnv(t, testdb.SQLite.New(t), nil)
	x.Migrate()
	f := x.AddKV()
	x.Fill(1)
	x.Publish(f)
	l := &lagging{second: make(chan struct{})}
	connector := func(path string) driver.Connector {
		c, err := sqlite.NewConnector("file:" + path + "?_pragma=busy_timeout(5000)")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	age := func(name string) {
		path := filepath.Join(t.TempDir(), name)
		x.Exec("VACUUM INTO '" + path + "'")
		l.behind = append(l.behind, connector(path))
	}
	age("old.db")
	x.Exec("INSERT INTO kv VALUES (9, 'k', 0)", "DELETE FROM kv WHERE id = 9") // a position with nothing to show
	x.Publish(f)
	age("newer.db")
	x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
	x.Publish(f)
	l.Connector = connector(x.DB.Name)

	pool := sql.OpenDB(l)
	t.Cleanup(func() { pool.Close() })
	pool.SetMaxIdleConns(-1)
	ctx := context.WithValue(x.Ctx, readers{}, true)
	rf, err := rowfeed.Open(ctx, pool, x.Dialect, &rowfeed.Config{Replica: true})
	if err != nil {
		t.Fatal(err)
	}
	replica, err := rf.Feed(ctx, "kv")
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan suite.Fetched, 1)
	go func() {
		page, err := replica.Fetch(ctx, rowfeed.Request{After: "1", Wait: suite.Never})
		result <- suite.Fetched{Page: page, Err: err}
	}()
	before := l.reads.Load()
	x.Eventually("it was woken in vain, and waits for the next look", func() bool {
		if n := l.reads.Load() - before; n > 100 {
			close(l.second)
			t.Fatalf("%d readings after one look", n)
		}
		return l.looks.Load() > 1 && x.Parked("watch.(*Watcher).Wait(") == 1
	})
	l.caughtUp.Store(true)
	close(l.second)
	x.WantWoken(result, "3", suite.KV(2, "k", 0))
}
