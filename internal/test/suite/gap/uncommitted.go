package gap

import (
	"database/sql"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestUncommittedDeleteClosesNoGap (G1, G2, H29): a late writer has committed, and another publisher has deleted its
// change without committing. Sessions in READ UNCOMMITTED find nothing in the gap. When the other publisher is rolled
// back, the next pass publishes the change all the same.
func TestUncommittedDeleteClosesNoGap(t *testing.T) {
	testdb.Quick(t)
	for _, mode := range []string{rowfeed.ModeSequence, rowfeed.ModeOutbox} {
		t.Run(mode, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				if !x.Has.ReadsUncommitted {
					return
				}
				p := newPublisher(x, mode, 0, x.ReadUncommitted())
				x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
				p.wantNextPass("a row", 1)
				lock := "SELECT value FROM rowfeed_sequences WHERE name = 'kv' FOR UPDATE"
				if mode == rowfeed.ModeOutbox {
					lock = "SELECT time_ms FROM rowfeed_shards WHERE feed = 'kv' AND shard = 0 FOR UPDATE"
				}
				late, other := x.Begin(sql.LevelReadCommitted), x.Begin(sql.LevelReadCommitted)
				x.In(late, "INSERT INTO kv VALUES (1, 'late', 0)")
				p.publishMany(1000)
				p.publishUntilAsked(2)
				found := 0
				p.mu.Lock()
				p.whenAsked = func() {
					x.Commit(late)
					x.In(other, lock, "DELETE FROM "+p.table+" WHERE id = 1")
					p.whenLocks = func() {
						if err := other.Rollback(); err != nil {
							x.Error(err)
						}
					}
				}
				p.mu.Unlock()
				x.Eventually("the publisher finds the change, or closes the gap", func() bool {
					found += x.Publish(p.feed)
					return found > 0 || p.noGap()
				})
				if found == 0 {
					_ = other.Rollback()
					p.wantNextPass("the change whose delete was rolled back", 1)
				}
				p.awaitNoGap()
				x.WantSound(p.feed)
			})
		})
	}
}
