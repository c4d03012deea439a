package crash

import (
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestTakeoverKilledAtEveryStatement (M28): rowfeed takes over a feed that another publisher has numbered, and is
// killed before each of its statements. Either of the two publishers may go on then. The next call completes the
// takeover, no position is given twice, and a reader gets every row.
func TestTakeoverKilledAtEveryStatement(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		for _, fence := range []bool{false, true} {
			n, step := x.Kills()
			for ; ; n += step {
				for _, s := range []string{
					"CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT," +
						" feed_sync_id BIGINT NULL)",
					"CREATE TABLE sequences (name VARCHAR(100) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)",
					"INSERT INTO sequences VALUES ('kv', 9)",
					"INSERT INTO kv (id, k, v, feed_sync_id)" +
						" VALUES (1, 'a', 1, 9), (2, 'b', 2, NULL), (3, 'c', 3, NULL)",
				} {
					x.DB.Exec(x.T, s)
				}
				f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn,
					PublishedElsewhere: true, AdoptSequence: "sequences"})
				cursor := x.WantDrain(f, "", suite.KV(1, "a", 1))
				before := x.Killed("take over", n, fmt.Sprintf("FENCE=%d", map[bool]int{true: 1}[fence]))
				when := fmt.Sprintf("fence %v, killed at n=%d (%s)", fence, n, before)
				x.Publish(f)
				if x.Scalar("SELECT count(*) FROM rowfeed_feeds WHERE state = 'elsewhere'") == 1 {
					tx := x.Begin(0)
					_, err := tx.ExecContext(x.Ctx, "UPDATE sequences SET value = value + 1 WHERE name = 'kv'")
					if err == nil {
						_, err = tx.ExecContext(x.Ctx, "UPDATE kv SET feed_sync_id = "+
							"(SELECT value FROM sequences WHERE name = 'kv') WHERE id = 2")
					}
					switch {
					case err == nil:
						x.Commit(tx)
					case !fence || tx.Rollback() != nil:
						x.Fatalf("%s: the own publisher: %v", when, err)
					}
				}
				if _, err := f.Admin().TakeOver(x.Ctx, fence); err != nil {
					x.Fatalf("%s: %v", when, err)
				}
				x.Publish(f)
				cursor = x.WantDrain(f, cursor, suite.KV(2, "b", 2), suite.KV(3, "c", 3))
				x.Exec("UPDATE kv SET v = 4 WHERE id = 1")
				x.Publish(f)
				x.WantPage(f, cursor, 5, "12 "+suite.KV(1, "a", 4), "> 12")
				x.WantSound(f)
				if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil || x.Failed() {
					x.Fatalf("%s: %v", when, err)
				}
				x.Exec("DROP TABLE kv", "DROP TABLE sequences",
					"DELETE FROM rowfeed_feeds", "DELETE FROM rowfeed_terms")
				if before == "" {
					break
				}
			}
		}
	})
}
