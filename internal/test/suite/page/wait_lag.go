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

// lagging connects readers, in turn, to servers that lag behind the server to which it connects the watcher. The
// context of a reader has the value readers.
type lagging struct {
	driver.Connector // of the watcher
	behind           []driver.Connector
	caughtUp         atomic.Bool // readers use the watcher's server, too
	reads, polls     atomic.Int64
	second           chan struct{} // the watcher's second poll waits until it is closed
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
	if l.polls.Add(1) > 1 {
		<-l.second
	}
	return l.Connector.Connect(ctx)
}

// TestLaggingServersCauseNoBusyLoop (M69): a pool connects to servers that lag differently. A waiting reader is woken
// for an entry and does not find it on the servers that it reads from. It reads again after the watcher's next poll,
// not in a loop, and gets the entry in the end. The servers are files of three ages.
func TestLaggingServersCauseNoBusyLoop(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.OpenEnv(t, testdb.SQLite.New(t), nil)
	x.Migrate()
	f := x.AddKV()
	x.Fill(1)
	x.Publish(f)
	l := &lagging{second: make(chan struct{})}
	connector := func(path string) driver.Connector {
		c, err := sqlite.NewConnector(x.Text("page.file_source", path))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	age := func(name string) {
		path := filepath.Join(t.TempDir(), name)
		x.Exec(x.Text("page.copy_to_file", path))
		l.behind = append(l.behind, connector(path))
	}
	age("old.db")
	x.Exec("INSERT INTO kv VALUES (9, 'k', 0)", "DELETE FROM kv WHERE id = 9") // a position without an entry
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
	x.Eventually("the reader was woken without an entry, and waits for the next poll", func() bool {
		if n := l.reads.Load() - before; n > 100 {
			close(l.second)
			t.Fatalf("%d reads after one poll", n)
		}
		return l.polls.Load() > 1 && x.Parked("watch.(*Watcher).Wait(") == 1
	})
	l.caughtUp.Store(true)
	close(l.second)
	x.WantWoken(result, "3", suite.KV(2, "k", 0))
}
