package ulid

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestFailedInsertFreesShard (M35): an insert fails after a lock, in Go and in SQL as docs/ULIDS.md has it. The error
// is the database's own, the transaction is rolled back, and the shard is free at once.
func TestFailedInsertFreesShard(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(7, 1, 1)
		conn := connection(x.Env)
		_, original := conn.ExecContext(x.Ctx,
			"INSERT INTO events (id, shard, ulid) SELECT id, shard + 1, ulid FROM events")
		if original == nil {
			t.Fatal("the table accepts two rows with one key")
		}
		ways := map[string]func() error{"in Go": func() error {
			tx, err := conn.BeginTx(x.Ctx, &sql.TxOptions{})
			if err != nil {
				return err
			}
			defer tx.Rollback()
			u, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{7}})
			if err != nil {
				return err
			}
			for i, id := range []int{0, 1} {
				if err := x.TryEvent(x.Ctx, tx, id, 7, x.At(u, 7, int64(i)), ""); err != nil {
					return err
				}
			}
			return tx.Commit()
		}}
		if x.Has.Functions {
			for _, block := range ulidDocument(t) {
				if block.is(x.Env) && block.routine() {
					x.Exec(strings.Join(block.statements, ";\n"))
				}
			}
			insertTwo := func(id int) error {
				_, err := conn.ExecContext(x.Ctx, x.Text("ulid.lock_and_insert_two", id))
				return err
			}
			ways["by SQL"] = func() error { return insertTwo(0) }
			if err := insertTwo(10); err != nil {
				t.Error(err)
			}
			x.WantIDs(x.Page(x.Feed, 7, "", 10), false, 1, 10, 11)
			x.Exec("DELETE FROM events WHERE id > 1")
		}
		id := 1
		want := []int{1}
		for way, do := range ways {
			if err := do(); err == nil || err.Error() != original.Error() {
				t.Errorf("%s: error %v, want %v", way, err, original)
			}
			id++
			x.Write(7, id, id) // in another session, which does not wait
			want = append(want, id)
			x.WantIDs(x.Page(x.Feed, 7, "", 10), false, want...)
		}
		x.WantSound(x.Feed)
	})
}
