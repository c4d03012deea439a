package capture

import (
	"database/sql"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestUpdatesStayInTheirPages: pages have room for new versions of the rows that rowfeed updates all the time, so that
// no index gets an entry for them. The position of a key that is published again stays in its page.
func TestUpdatesStayInTheirPages(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // other databases update in place
	suite.Each(t, func(x *suite.Env) {
		for _, s := range []struct{ table, columns, row, set string }{
			{"sequences", "name, value, version, updated_at", "'feed ' || n, 0, 0, 0", "version = version + 1"},
			{"cursors", "consumer, feed, shard, shard_count, value, generation, epoch, version, paused, updated_at",
				"'consumer', 'feed', n, 200, '1000', 1, 1, 0, 0, 0", "version = version + 1"},
			{"leases", "name, owner, epoch, acquired_at, renewals", "'lease ' || n, 'owner', 1, 0, 0",
				"renewals = renewals + 1"},
			{"shards", "feed, shard, time_ms, ulid_high, ulid_low, witness", "'feed', n, 0, 0, 0, ''",
				"ulid_low = ulid_low + 1"},
		} {
			x.Exec(x.Text("capture.insert_numbered_rows", "rowfeed_"+s.table, s.columns, s.row, 200))
			// A transaction keeps all versions of a row, as an old snapshot does.
			tx := x.Begin(sql.LevelReadCommitted)
			for range 3 {
				x.In(tx, "UPDATE rowfeed_"+s.table+" SET "+s.set)
			}
			var updated, inPage int
			query := x.Text("capture.count_updates_within_pages", "rowfeed_"+s.table)
			if err := tx.QueryRowContext(x.Ctx, query).Scan(&updated, &inPage); err != nil {
				x.Fatal(err)
			}
			if updated < 600 || inPage != updated {
				x.Errorf("of %d updates of %s, only %d stayed in the row's page", updated, s.table, inPage)
			}
			if err := tx.Rollback(); err != nil {
				x.Fatal(err)
			}
		}
		f := x.AddKV()
		x.Exec(x.Text("capture.insert_numbered_rows", "kv", "id, k, v", "n, 'a', 0", 500))
		x.Publish(f)
		x.Exec(x.Text("capture.remember_pages_of_positions"), "UPDATE kv SET v = 1 WHERE id % 5 = 0")
		x.Publish(f)
		moved := x.Scalar(x.Text("capture.count_moved_positions"))
		away := x.Scalar(x.Text("capture.count_positions_in_other_pages"))
		if moved != 100 || away != 0 {
			x.Errorf("%d keys were published again, %d of them in another page", moved, away)
		}
	})
}
