package gap

import (
	"database/sql"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestNotSettledByWhatIsNotCommitted (G1, G2, H29): who was waited for has committed, and another publisher has
// taken what he wrote, but not committed. Sessions that see so much find nothing left; what the other gives
// back is published all the same, at once.
func TestNotSettledByWhatIsNotCommitted(t *testing.T) {
	testdb.Quick(t)
	for _, mode := range []string{rowfeed.ModeSequence, rowfeed.ModeOutbox} {
		t.Run(mode, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				if x.Family() != "mysql" {
					return // no look sees what is not committed
				}
				l := lookerOf(x, mode, 0, x.ReadUncommitted())
				x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
				l.wantNext("a row", 1)
				lock := "SELECT value FROM rowfeed_sequences WHERE name = 'kv' FOR UPDATE"
				if mode == rowfeed.ModeOutbox {
					lock = "SELECT time_ms FROM rowfeed_shards WHERE feed = 'kv' AND shard = 0 FOR UPDATE"
				}
				late, other := x.Begin(sql.LevelReadCommitted), x.Begin(sql.LevelReadCommitted)
				x.In(late, "INSERT INTO kv VALUES (1, 'late', 0)")
				l.many(1000)
				l.askedAgain(2)
				found := 0
				l.mu.Lock()
				l.whenAsked = func() {
					x.Commit(late)
					x.In(other, lock, "DELETE FROM "+l.table+" WHERE id = 1")
					l.whenLocks = func() { // a pass begins
						if err := other.Rollback(); err != nil {
							x.Error(err)
						}
					}
				}
				l.mu.Unlock()
				x.Eventually("it looks for what has come, or does not any more", func() bool {
					found += x.Publish(l.feed)
					return found > 0 || l.areGone()
				})
				if found == 0 {
					_ = other.Rollback()
					l.wantNext("what was given back", 1)
				}
				l.gone()
				x.WantSound(l.feed)
			})
		})
	}
}
