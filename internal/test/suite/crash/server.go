package crash

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPositionsSurviveServerCrash (G2, M6): a position that a reader has seen exists after the server was killed, even
// if commits are asynchronous by default. Readers' cursors stay valid, and no position is given to another key.
func TestPositionsSurviveServerCrash(t *testing.T) {
	testdb.Quick(t)
	// PostgreSQL writes nothing to the disk except for a commit that asks for it.
	asynchronous := []testdb.Option{testdb.Setting("synchronous_commit=off"), testdb.Setting("wal_writer_delay=10s")}
	binlog := []testdb.Option{
		testdb.Setting("log_bin=binlog"), testdb.Setting("sync_binlog=1"), testdb.Setting("server_id=1"),
	}
	for _, c := range []struct {
		engine   testdb.Engine
		settings []testdb.Option
		capture  feedtype.Capture
	}{
		{testdb.Postgres15, asynchronous, feedtype.CaptureTrigger},
		{testdb.Postgres15, asynchronous, feedtype.CaptureColumn},
		{testdb.Postgres18, asynchronous, feedtype.CaptureTrigger},
		{testdb.MariaDB, nil, feedtype.CaptureTrigger},
		{testdb.MariaDB, nil, feedtype.CaptureColumn},
		{testdb.MariaDB, binlog, feedtype.CaptureTrigger},
		{testdb.MySQL, nil, feedtype.CaptureTrigger},
	} {
		t.Run(c.engine.Name, func(t *testing.T) {
			c.engine.Require(t)
			server := c.engine.Dedicated(t, append(c.settings, testdb.Durable())...)
			x := suite.OpenEnv(t, server.NewDatabase(t), nil)
			x.Capture = c.capture
			x.Migrate()
			f := x.AddKV()
			x.Stays("kv")
			k := x.Recorder(f, 0)
			for id := 1; id <= 3; id++ {
				x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
				x.Publish(f)
				if got := k.Read(); len(got) != 1 {
					x.Fatalf("entries %q, want one", got)
				}
				server.Kill(t)
				x.Restart(server)
				var page rowfeed.Page
				var err error
				x.Eventually("the pool finds the server again", func() bool {
					page, err = f.Fetch(x.Ctx, rowfeed.Request{After: rowfeed.Now})
					return !suite.IsCode(err, rowfeed.Unavailable)
				})
				if err != nil {
					x.Fatal(err)
				}
				if head := string(suite.Place(page.Cursor)); head != strconv.Itoa(id) {
					x.Fatalf("the head is %q after the server was killed; readers have seen %d", head, id)
				}
				x.WantSound(f)
			}
			k.Read()
			k.Check(x.KVRows(), suite.ByID)
		})
	}
}
