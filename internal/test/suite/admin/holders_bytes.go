package admin

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// noText is a ULID whose bytes are no text in any character set.
const noText = "\xa2\x03\x8a.\xe1\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5"

// TestHoldersAreNamedDespiteBinaryStatements (M44): status names the holder of a shard even if another waiting
// statement contains bytes that are no text, as statements with ULIDs do. MySQL then cannot show its transactions.
func TestHoldersAreNamedDespiteBinaryStatements(t *testing.T) {
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
			_, err := other.ExecContext(x.Ctx, x.Text("admin.insert_bytes", noText))
			waits <- err
		}()
		x.Eventually("the statement waits for the row", func() bool {
			if x.Has.ShowsOnlyRunningStatement {
				return x.Waits()
			}
			return x.Scalar(x.Text("admin.count_lock_waits")) > 0
		})
		w := x.Wait(5)
		x.Eventually("the holder is named", func() bool {
			_, five := x.ShardStatus(5)
			return five.Holder != nil && five.Holder.Session == id && len(five.Waiting) == 1
		})
		if found, err := x.Feed.Admin().Unblock(x.Ctx, admin.UnblockRequest{}); err != nil ||
			found.Holder.Session != id {
			t.Errorf("%+v, %v", found, err)
		}
		x.Got(w)
		if err := <-waits; err != nil && !strings.Contains(err.Error(), "ulid") {
			t.Error(err)
		}
		other.Rollback()
	})
}

// TestBlockersAreNamedDespiteBinaryStatements (M44, M72): status names the transaction that delays a feed's changes,
// even if another session's statement contains bytes that are no text.
func TestBlockersAreNamedDespiteBinaryStatements(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.MySQL) // MariaDB shows such statements
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("CREATE TABLE bytes (id BIGINT NOT NULL PRIMARY KEY, b BINARY(16))")
		writer := x.Begin(sql.LevelReadCommitted)
		id := x.Connection(writer)
		x.In(writer, "INSERT INTO kv VALUES (1, 'a', 1)", "INSERT INTO bytes VALUES (1, NULL)")
		other := x.Begin(sql.LevelReadCommitted)
		waits := make(chan error, 1)
		go func() {
			_, err := other.ExecContext(x.Ctx, x.Text("admin.insert_other_bytes", noText))
			waits <- err
		}()
		x.Eventually("the statement waits for the row", func() bool {
			return x.Scalar(x.Text("admin.count_lock_waits")) > 0
		})
		status, err := f.Admin().Status(x.Ctx)
		if err != nil || len(status.Blockers) != 1 || status.Blockers[0].Session != id ||
			status.Blockers[0].AgeSeconds == nil {
			t.Errorf("%+v, %v", status, err)
		}
		writer.Rollback()
		if err := <-waits; err != nil {
			t.Error(err)
		}
		other.Rollback()
	})
}
