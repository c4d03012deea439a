package admin

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestHoldersBesideBytes (M44): who has a shard is named also while a statement waits that has bytes in
// it which are no text, as statements with ULIDs have: MySQL then cannot show its transactions.
func TestHoldersBesideBytes(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // elsewhere statements have no such bytes
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(5, 1, 1)
		tx := x.Begin(sql.LevelReadCommitted)
		id := x.Connection(tx)
		ulids := x.Lock(tx, rowfeed.LockRequest{Shards: []int{5}})
		x.Event(tx, 3, 5, x.At(ulids, 5, 0), "")
		other := x.Begin(sql.LevelReadCommitted)
		waits := make(chan error, 1)
		go func() {
			_, err := other.ExecContext(x.Ctx, "INSERT INTO events (id, shard, ulid) VALUES (3, 6, _binary'\xa2\x03\x8a.\xe1\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5')")
			waits <- err
		}()
		x.Eventually("it waits for the row", func() bool {
			if x.Engine == testdb.MariaDB {
				return x.Waits()
			}
			return x.Scalar("SELECT count(*) FROM performance_schema.data_lock_waits") > 0 // errCannotShow
		})
		w := x.Wait(5)
		x.Eventually("the holder is named", func() bool {
			_, five := x.ShardStatus(5)
			return five.Holder != nil && five.Holder.Session == id && len(five.Waiting) == 1
		})
		if found, err := x.Feed.Admin().Unblock(x.Ctx, admin.UnblockRequest{}); err != nil || found.Holder.Session != id {
			t.Errorf("%+v, %v", found, err)
		}
		x.Got(w)
		if err := <-waits; err != nil && !strings.Contains(err.Error(), "ulid") {
			t.Error(err)
		}
		other.Rollback()
	})
}

// TestBlockersBesideBytes (M44, M72): status names the transaction that delays a feed's changes, even if another
// session's statement contains bytes that are no valid text.
func TestBlockersBesideBytes(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.MySQL) // MariaDB shows such statements
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("CREATE TABLE bytes (id BIGINT NOT NULL PRIMARY KEY, b BINARY(16))")
		writer, id := x.Begin(sql.LevelReadCommitted), int64(0)
		x.In(writer, "INSERT INTO kv VALUES (1, 'a', 1)", "INSERT INTO bytes VALUES (1, NULL)")
		if err := writer.QueryRow("SELECT CONNECTION_ID()").Scan(&id); err != nil {
			x.Fatal(err)
		}
		other := x.Begin(sql.LevelReadCommitted)
		waits := make(chan error, 1)
		go func() {
			_, err := other.ExecContext(x.Ctx, "INSERT INTO bytes VALUES (1, _binary'\xa2\x03\x8a.\xe1\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5')")
			waits <- err
		}()
		x.Eventually("it waits for the row", func() bool { return x.Scalar("SELECT count(*) FROM performance_schema.data_lock_waits") > 0 })
		status, err := f.Admin().Status(x.Ctx)
		if err != nil || len(status.Blockers) != 1 || status.Blockers[0].Session != fmt.Sprint(id) || status.Blockers[0].AgeSeconds == nil {
			t.Errorf("%+v, %v", status, err)
		}
		writer.Rollback()
		if err := <-waits; err != nil {
			t.Error(err)
		}
		other.Rollback()
	})
}
