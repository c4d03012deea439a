package ulid

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestFailedInsertFreesShard (M35): an error behind a lock takes back all of its transaction, and is told as the database
// tells it; the shard is free at once. So it is in Go, and in SQL as docs/ULIDS.md has it.
func TestFailedInsertFreesShard(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(7, 1, 1)
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		x.Cleanup(func() { conn.Close() })
		_, original := conn.ExecContext(x.Ctx, "INSERT INTO events (id, shard, ulid) SELECT id, shard + 1, ulid FROM events")
		if original == nil {
			t.Fatal("two rows have one key")
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
		switch x.Family() {
		case "postgres":
			ways["by SQL"] = func() error {
				_, err := conn.ExecContext(x.Ctx, "DO $$ BEGIN PERFORM rowfeed_lock_events(7); INSERT INTO events (id, shard, ulid) VALUES (0, 7, rowfeed_ulid_events(0)); INSERT INTO events (id, shard, ulid) VALUES (1, 7, rowfeed_ulid_events(1)); END $$")
				return err
			}
		case "mysql":
			for _, block := range ulidDocument(t) {
				if block.is(x.Env) && block.routine() {
					x.Exec(strings.Join(block.statements, ";\n"))
				}
			}
			call := func(id int) error {
				_, err := conn.ExecContext(x.Ctx, fmt.Sprintf("CALL append_events(%d, 'by SQL')", id))
				return err
			}
			ways["by SQL"] = func() error { return call(0) }
			if err := call(10); err != nil {
				t.Error(err)
			}
			x.WantIDs(x.Page(x.Feed, 7, "", 10), false, 1, 10, 11)
			x.Exec("DELETE FROM events WHERE id > 1")
		}
		id := 1
		want := []int{1}
		for way, do := range ways {
			if err := do(); err == nil || err.Error() != original.Error() {
				t.Errorf("%s: %v, want %v", way, err, original)
			}
			id++
			x.Write(7, id, id) // in another session, which waits for nobody
			want = append(want, id)
			x.WantIDs(x.Page(x.Feed, 7, "", 10), false, want...)
		}
		x.WantSound(x.Feed)
	})
}
