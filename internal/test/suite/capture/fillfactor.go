package capture

import (
	"database/sql"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestUpdatesStayInTheirPages: the rows that rowfeed updates all the time have room beside them for
// versions that cannot go away yet, so that no index gets an entry for any; and a key that is published again
// stays in its page of positions, which is then the only one that its table changes.
func TestUpdatesStayInTheirPages(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // the others update in place
	suite.Each(t, func(x *suite.Env) {
		for _, s := range []struct{ table, columns, row, set string }{
			{"sequences", "name, value, version, updated_at", "'feed ' || n, 0, 0, 0", "version = version + 1"},
			{"cursors", "consumer, feed, shard, shard_count, value, generation, epoch, version, paused, updated_at", "'consumer', 'feed', n, 200, '1000', 1, 1, 0, 0, 0", "version = version + 1"},
			{"leases", "name, owner, epoch, acquired_at, renewals", "'lease ' || n, 'owner', 1, 0, 0", "renewals = renewals + 1"},
			{"shards", "feed, shard, time_ms, ulid_high, ulid_low, witness", "'feed', n, 0, 0, 0, ''", "ulid_low = ulid_low + 1"},
		} {
			x.Exec("INSERT INTO rowfeed_" + s.table + " (" + s.columns + ") SELECT " + s.row + " FROM generate_series(1, 200) n")
			// In one transaction no version goes away, as beside an old snapshot.
			tx := x.Begin(sql.LevelReadCommitted)
			for range 3 {
				x.In(tx, "UPDATE rowfeed_"+s.table+" SET "+s.set)
			}
			var updated, inPage int
			if err := tx.QueryRowContext(x.Ctx, "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relid = 'rowfeed_"+s.table+"'::regclass").Scan(&updated, &inPage); err != nil {
				x.Fatal(err)
			}
			if updated < 600 || inPage != updated {
				x.Errorf("%s: %d updates, %d of them in the row's page", s.table, updated, inPage)
			}
			if err := tx.Rollback(); err != nil {
				x.Fatal(err)
			}
		}
		f := x.AddKV()
		x.Exec("INSERT INTO kv SELECT n, 'a', 0 FROM generate_series(1, 500) n")
		x.Publish(f)
		x.Exec("CREATE TABLE stood AS SELECT id, ctid AS place FROM rowfeed_positions_kv", "UPDATE kv SET v = 1 WHERE id % 5 = 0")
		x.Publish(f)
		block := func(place string) string { return "split_part(" + place + "::text, ',', 1)" }
		moved := x.Scalar("SELECT count(*) FROM stood s JOIN rowfeed_positions_kv p ON p.id = s.id AND p.ctid <> s.place")
		away := x.Scalar("SELECT count(*) FROM stood s JOIN rowfeed_positions_kv p ON p.id = s.id AND " + block("p.ctid") + " <> " + block("s.place"))
		if moved != 100 || away != 0 {
			x.Errorf("%d keys published again, %d of them into another page", moved, away)
		}
	})
}
